//! SECURITY.md against the bounds in the code.

use super::read;
use popliner::limits;

#[test]
fn its_table_has_all_limits() {
    let rows = limits::table().into_iter();
    let rows = rows.map(|(what, limit)| format!("| {what} | {limit} |\n"));
    let table = format!(
        "\n| what | limit |\n|---|---|\n{}\n",
        rows.collect::<String>()
    );
    assert!(read("SECURITY.md").contains(&table), "{table}");
}
