//! SECURITY.md against the bounds in the code.

use crate::support::root;
use popliner::limits;

#[test]
fn its_table_has_all_limits() {
    let page = std::fs::read_to_string(root().join("SECURITY.md")).expect("a page");
    let rows = page.lines().skip_while(|line| *line != "| what | limit |");
    let rows: Vec<&str> = rows
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    let expected = limits::table().into_iter();
    let expected: Vec<String> = expected
        .map(|(what, limit)| format!("| {what} | {limit} |"))
        .collect();
    assert_eq!(rows, expected, "\n{}", expected.join("\n"));
}
