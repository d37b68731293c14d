//! Tests that cannot run here. A list of them is printed at the end, also if another test failed.

use std::fs::File;
use std::io::Write;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{LazyLock, Mutex};

/// A process that prints the lines of its input, with their number, when this program ends and the
/// pipe is closed.
static LIST: LazyLock<Option<Mutex<ChildStdin>>> = LazyLock::new(|| {
    let print = r#"lines=$(sort -u)
        printf '\n%d skipped\n%s\n\n' $(printf '%s\n' "$lines" | wc -l) "$lines""#;
    let mut shell = Command::new("sh");
    let child = shell.args(["-c", print]).stdin(Stdio::piped()).spawn();
    child.ok()?.stdin.map(Mutex::new)
});

/// Lists the running test, or a part of it, as skipped.
#[track_caller]
pub fn skip(reason: &str) {
    // A test's thread has its name, unless there is only one thread.
    let place = std::panic::Location::caller();
    let place = format!("{}:{}", place.file(), place.line());
    let thread = std::thread::current();
    let test = thread.name().filter(|&name| name != "main");
    let line = format!("{}: {reason}\n", test.unwrap_or(&place));
    if let Some(list) = &*LIST {
        let mut list = list.lock().expect("the list");
        list.write_all(format!("    {line}").as_bytes())
            .expect("a list of what was skipped");
    }
    // `.ci/run` has a list of its own, which is not only of tests.
    if let Some(list) = std::env::var_os("SKIPPED_LIST") {
        let list = File::options().create(true).append(true).open(list);
        list.and_then(|mut list| list.write_all(line.as_bytes()))
            .expect("a list of what was skipped");
    }
    // cargo hides the output of a test that passes, but not direct writes to standard error.
    let _ = std::io::stderr().write_all(format!("skipped: {line}").as_bytes());
}
