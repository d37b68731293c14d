//! The README against the tool: its commands are run, and what they print must
//! be what stands below them. Its options are those of `--help`.
//!
//! A block that begins with three backticks and `console` is a session: lines
//! after `$ ` are commands for `sh`, the others are what is printed, standard
//! error included. A line `...` stands for at least one line that is left out.
//! Where the tool prints tabs, the README may have any spaces.

#![cfg(unix)]

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::{Run, finish, piped, popliner, root};
use regex::Regex;

/// Options that the README has of other commands.
const OF_OTHERS: [&str; 4] = ["--growth", "--path", "--release", "--test"];

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).expect("a README")
}

/// A command of a session and the lines that it should print.
struct Step<'a> {
    command: &'a str,
    lines: Vec<&'a str>,
}

/// All sessions, one after the other.
fn steps(readme: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut in_session = false;
    for line in readme.lines() {
        if line.starts_with("```") {
            in_session = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| in_session) {
            let lines = Vec::new();
            steps.push(Step { command, lines });
        } else if in_session {
            let step = steps.last_mut().expect("a command before its output");
            step.lines.push(line);
        }
    }
    steps
}

/// Runs a command line in `folder`, with the tool on the path.
fn run(command: &str, folder: &Path) -> Run {
    let tool = Path::new(env!("CARGO_BIN_EXE_popliner"));
    let tools = tool.parent().expect("a folder").to_path_buf();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(tools).chain(std::env::split_paths(&path));
    let mut shell = piped("sh");
    shell
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(folder)
        .env("PATH", std::env::join_paths(all).expect("a path"));
    finish(&mut shell)
}

/// Is this the line that the README has?
fn is_line(expected: &str, found: &str) -> bool {
    match found.contains('\t') {
        true => expected.split_whitespace().eq(found.split_whitespace()),
        false => expected == found,
    }
}

/// Do the lines agree, with `...` for one line or more?
fn agree(expected: &[&str], found: &[&str]) -> bool {
    match (expected, found) {
        ([], found) => found.is_empty(),
        (["...", rest @ ..], found) => (1..=found.len()).any(|skip| agree(rest, &found[skip..])),
        ([first, rest @ ..], [line, others @ ..]) => is_line(first, line) && agree(rest, others),
        ([_, ..], []) => false,
    }
}

#[test]
fn its_commands_print_what_it_shows() {
    let readme = readme();
    let steps = steps(&readme);
    let folder = tempfile::tempdir().expect("a folder");
    let fixtures = folder.path().join("fixtures");
    std::os::unix::fs::symlink(root().join("fixtures"), fixtures).expect("a link");
    for Step { command, lines } in &steps {
        let run = run(command, folder.path());
        let found: Vec<&str> = run.out.lines().collect();
        assert_eq!(run.code, 0, "{command}\n{}", run.out);
        assert!(agree(lines, &found), "{command} prints\n{}", run.out);
    }
    let commands = readme.matches("popliner fixtures/").count();
    assert_eq!(commands, steps.len(), "a command stands in no session");
}

#[test]
fn it_has_all_options_and_no_others() {
    let option = Regex::new(r"--[a-z][a-z-]*[a-z0-9]").expect("a regex");
    let options = |text: &str| -> BTreeSet<String> {
        let found = option.find_iter(text);
        found.map(|found| found.as_str().to_string()).collect()
    };
    let mut known = options(&popliner(["--help"]).out);
    let found = options(&readme());
    let missing: Vec<&String> = known.difference(&found).collect();
    assert_eq!(missing, ["--version"], "not in the README");
    known.extend(OF_OTHERS.map(str::to_string));
    let unknown: Vec<&String> = found.difference(&known).collect();
    assert!(unknown.is_empty(), "only in the README: {unknown:?}");
}

#[test]
fn lines_are_left_out_where_it_says_so() {
    assert!(agree(&["a", "...", "d"], &["a", "b", "c", "d"]));
    assert!(agree(&["...", "b"], &["a", "b"]) && agree(&["a", "..."], &["a", "b"]));
    assert!(!agree(&["a", "...", "b"], &["a", "b"]));
    assert!(!agree(&["a"], &["a", "b"]) && !agree(&["a", "b"], &["a"]));
    assert!(agree(&["a  b"], &["a\tb"]) && !agree(&["a  b"], &["a b"]));
}
