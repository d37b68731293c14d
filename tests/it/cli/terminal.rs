//! Output on a terminal: no line is wider than the terminal, progress bars appear if there is room,
//! and colour only if it is wanted. Goldens show the output to a pipe.

use crate::support::{DEFAULT_REGEX, Words, command, finish, profile, python, root};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use textwrap::core::display_width;

/// Runs the tool on a terminal with this number of columns. Returns the text that stays there,
/// after checking its width; `None` if the test is skipped.
fn drawn(fixture: &str, columns: u16, options: &str, variables: &str) -> Option<String> {
    let profile = root().join(profile(fixture)).display().to_string();
    let tool = [env!("CARGO_BIN_EXE_popliner"), &profile];
    let command = [&tool[..], &options.words()].concat();
    let variables = variables.split(' ').filter_map(|own| own.split_once('='));
    let environment: BTreeMap<&str, &str> = variables.collect();
    let input = json!({ "command": command, "columns": columns, "environment": environment });
    let found = python(include_str!("terminal.py"), &input.to_string())?;
    let found: Value = serde_json::from_str(&found).expect("JSON");
    assert!(found["code"] == 0 || found["code"] == 1, "{found}");
    let text = found["text"].as_str().expect("a text");
    // A line with a command to copy is never broken.
    let fits = |line: &str| line.contains(" popliner ") || display_width(line) <= columns.into();
    let mut lines = text.split(ERASED).flat_map(str::lines);
    assert!(lines.all(fits), "{columns}:\n{text}");
    Some(staying(text))
}

/// The text with which a progress bar erases its line of the terminal.
const ERASED: &str = "\u{1b}[2K";

fn staying(text: &str) -> String {
    // Remove cursor movements between progress bars.
    let text = text.replace("\u{1b}[1A", "").replace("\u{1b}[1B", "");
    let lines = text.split('\n');
    let lines = lines.map(|line| line.rsplit(ERASED).next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

const USUAL: &str = "TERM=xterm-256color LANG=C.UTF-8";

#[test]
fn nothing_is_wider_than_the_terminal() {
    let options = format!("--solve --num-ipus=4 -v {DEFAULT_REGEX}");
    for columns in [60, 79, 80, 100, 200] {
        for fixture in ["popart-bert-inference", "impossible"] {
            let text = or_skip!(drawn(fixture, columns, &options, USUAL));
            let has_room = columns >= 79 || fixture == "impossible";
            assert_eq!(text.contains('│'), has_room, "{columns}:\n{text}");
        }
    }
}

#[test]
fn colour_is_for_those_who_want_it() {
    for (variables, coloured) in [
        (USUAL, true),
        ("TERM=xterm-256color NO_COLOR=1", false),
        ("TERM=xterm-256color NO_COLOR=1 CLICOLOR_FORCE=1", false),
        ("TERM=dumb", false),
        ("TERM=xterm-256color CLICOLOR=0", false),
    ] {
        let text = or_skip!(drawn("poplar-mlp", 100, "--solve", variables));
        assert_eq!(text.contains('\u{1b}'), coloured, "{variables}: {text}");
        assert!(text.contains("SUCCESS:"), "{text}");
    }
}

#[test]
fn a_terminal_without_utf_8_gets_ascii() {
    let variables = "TERM=xterm LANG=en_US.UTF-8 LC_ALL=C";
    let text = or_skip!(drawn("poplar-mlp", 100, "--solve", variables));
    assert!(text.is_ascii() && text.contains("##"), "{text}");
}

#[test]
fn tables_lose_columns_where_they_are_too_wide() {
    for columns in ["60", "80", "400"] {
        let mut command = command([profile("poplar-mlp")]);
        let options = ["--list-layers", "--format=table"];
        let run = finish(command.args(options).env("COLUMNS", columns));
        let widest = run.out.lines().map(display_width).max();
        assert!(widest <= columns.parse().ok(), "{run:?}");
        assert_eq!(run.out.contains("Not shown: "), columns != "400", "{run:?}");
    }
}
