//! The README and the pages in `docs` against the tool: their commands run, and print the lines
//! below them. Their options are in `--help`, and their links lead somewhere.
//!
//! A block that begins with three backticks and `console` is a session. Lines after `$ ` are
//! commands for `sh`; the other lines are output, with standard error. A line `...` stands for at
//! least one line that is left out. If the tool prints tabs, a page may have any spaces.

#![cfg(unix)]

use std::collections::BTreeSet;

use super::read;
use crate::support::{popliner, root, typed};
use regex::Regex;

/// Options of other commands on the pages.
const OF_OTHERS: &str = "--compile-only --ipu --path --profile-dir";

/// Returns the README and the pages that it leads to: paths below the root, and texts.
fn pages() -> Vec<(String, String)> {
    let docs = std::fs::read_dir(root().join("docs")).expect("a folder");
    let docs = docs.map(|file| format!("docs/{}", file.expect("a file").file_name().display()));
    let docs = docs.filter(|path| path.ends_with(".md"));
    let readmes = ["README.md", "action/README.md"].map(str::to_owned);
    let all = docs.chain(readmes).map(|path| (path.clone(), read(&path)));
    all.collect()
}

/// A command of a session, and its expected lines.
struct Step<'a> {
    command: &'a str,
    lines: Vec<&'a str>,
}

/// Returns the steps of all sessions.
fn steps(page: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut in_session = false;
    for line in page.lines() {
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

/// Returns whether `found`, a line of output, matches the line of the page.
fn is_line(expected: &str, found: &str) -> bool {
    match found.contains('\t') {
        true => expected.split_whitespace().eq(found.split_whitespace()),
        false => expected == found,
    }
}

/// Returns whether the output matches the lines of the page, where `...` stands for one line or
/// more.
fn agree(expected: &[&str], found: &[&str]) -> bool {
    match (expected, found) {
        ([], found) => found.is_empty(),
        (["...", rest @ ..], found) => (1..=found.len()).any(|skip| agree(rest, &found[skip..])),
        ([first, rest @ ..], [line, others @ ..]) => is_line(first, line) && agree(rest, others),
        ([_, ..], []) => false,
    }
}

#[test]
fn their_commands_print_what_they_show() {
    let folder = tempfile::tempdir().expect("a folder");
    let fixtures = folder.path().join("fixtures");
    std::os::unix::fs::symlink(root().join("fixtures"), fixtures).expect("a link");
    for (path, page) in pages() {
        let steps = steps(&page);
        for Step { command, lines } in &steps {
            let run = typed(&format!("exec 2>&1\n{command}"), folder.path());
            let found: Vec<&str> = run.exits(0).out.lines().collect();
            let is_shown = agree(lines, &found);
            assert!(is_shown, "{path}: {command} prints\n{}", run.out);
        }
        let commands = |text: &str| text.matches("popliner fixtures/").count();
        let printed = steps.iter().flat_map(|step| &step.lines);
        let printed: usize = printed.map(|line| commands(line)).sum();
        let in_sessions = printed + steps.len();
        let all = commands(&page);
        assert_eq!(all, in_sessions, "a command is in no session of {path}");
    }
}

#[test]
fn they_have_all_options_and_no_others() {
    let option = Regex::new(r"--[a-z][a-z-]*[a-z0-9]").expect("a regex");
    let options = |text: &str| -> BTreeSet<String> {
        let found = option.find_iter(text);
        found.map(|found| found.as_str().to_string()).collect()
    };
    let mut documented = options(&popliner(["--help"]).out);
    let found: BTreeSet<String> = pages().iter().flat_map(|(_, page)| options(page)).collect();
    let missing: Vec<&String> = documented.difference(&found).collect();
    assert_eq!(missing, ["--version"]);
    documented.extend(options(OF_OTHERS));
    assert_eq!(found.difference(&documented).next(), None, "only on a page");
}

/// Returns the anchor that hosts of repositories make of a heading.
fn anchor(heading: &str) -> String {
    let letters = heading.chars();
    let kept = letters.filter(|c| c.is_alphanumeric() || " -".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn their_links_lead_to_files_and_headings() {
    let link = Regex::new(r"\]\(([^)#]*)(?:#([^)]*))?\)").expect("a regex");
    let path = "CONTRIBUTING.md";
    let others = [(path.to_owned(), read(path))];
    for (path, page) in pages().into_iter().chain(others) {
        let here = root().join(&path);
        let targets = link.captures_iter(&page);
        for target in targets.filter(|target| !target[1].contains("://")) {
            let file = match &target[1] {
                "" => here.clone(),
                file => here.parent().expect("a folder").join(file),
            };
            assert!(file.exists(), "{path} has a link to {}", &target[1]);
            if let Some(wanted) = target.get(2) {
                let text = std::fs::read_to_string(&file).expect("a page");
                let headings = text.lines().filter_map(|line| line.strip_prefix('#'));
                let mut anchors = headings.map(|line| anchor(line.trim_start_matches('#').trim()));
                let is_there = anchors.any(|anchor| anchor == wanted.as_str());
                assert!(is_there, "{path} has a link to #{}", wanted.as_str());
            }
        }
    }
}
