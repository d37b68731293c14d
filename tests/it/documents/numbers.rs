//! Numbers on pages that no command prints, against the code.

use super::read;
use popliner::limits::LAYERS;

/// Each row of the table names a figure of `benches/big.sh`, and has the bound that the script
/// checks.
#[test]
fn the_bounds_of_speed_are_those_of_the_script() {
    let (page, script) = (read("docs/speed.md"), read("benches/big.sh"));
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.rsplit_once(" | "));
    let rows: Vec<_> = rows.collect();
    assert!(rows.len() > 5);
    for (row, _measured) in rows {
        let (figure, bound) = row.split_once("` | ").expect("two cells");
        let (_, rest) = script.split_once(&format!("\"{figure}\"")).expect(figure);
        // A command ends with the first line that has no backslash at its end.
        let ends = |line: &&str| !line.ends_with('\\');
        let last = rest.lines().find(ends).expect("an end");
        assert!(last.ends_with(&format!(" {bound}")), "{row}: {last}");
    }
}

#[test]
fn the_page_of_limits_has_the_most_layers() {
    let most = format!("at most {},{:03} layers", LAYERS / 1000, LAYERS % 1000);
    assert!(read("docs/limits.md").contains(&most), "{most}");
}
