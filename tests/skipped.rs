//! The last of the test programs: says which tests were skipped, so that a run
//! where all is well does not look like one where all was tested.

#[path = "it/support/skipped.rs"]
mod skipped;

use std::collections::BTreeSet;

fn main() {
    // Other programs than cargo may only want to know what tests there are.
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let list = skipped::list();
    let text = std::fs::read_to_string(&list).unwrap_or_default();
    let lines: BTreeSet<&str> = text.lines().collect();
    println!("\n{} skipped", lines.len());
    for line in lines {
        println!("    {line}");
    }
    println!();
    // What `.ci/run` gave is for `.ci/run`.
    if std::env::var_os("SKIPPED_LIST").is_none() {
        let _ = std::fs::remove_file(list);
    }
}
