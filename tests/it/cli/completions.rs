//! Tests the manual page and the shell completions.

use crate::support::{FORMS, piped, popliner, skip, try_finish};
use clap::{Arg, CommandFactory};
use popliner::app::Options;
use std::process::Command;

fn generated(text: &str) -> String {
    let run = popliner([format!("--generate={text}")]);
    assert_eq!(run.exits(0).err, "", "{text}");
    run.out
}

/// Checks that `text` has every long option, with `before` before its name.
fn has_options(text: &str, before: &str) {
    let command = Options::command();
    for option in command.get_arguments().filter_map(Arg::get_long) {
        let is_there = text.contains(&format!("{before}{option}"));
        assert!(is_there, "{option} in {text}");
    }
}

/// Lets `program` read a file, and checks that it reports no mistakes. Skips if there is no
/// `program`.
fn check_syntax(program: &mut Command, text: &str) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("a file");
    match try_finish(program.arg(file.path())) {
        Some(run) => assert_eq!(run.exits(0).err, ""),
        None => skip(&format!("there is no {}", program.get_program().display())),
    }
}

#[test]
fn completions_know_every_option_and_the_shell_reads_them() {
    // fish writes options without dashes.
    for (shell, before) in [("bash", "--"), ("zsh", "--"), ("fish", "-l ")] {
        let text = generated(&format!("complete-{shell}"));
        has_options(&text, before);
        let missing = FORMS.iter().find(|form| !text.contains(**form));
        assert_eq!(missing, None, "a value of --emit");
        check_syntax(piped(shell).arg("-n"), &text);
    }
}

#[test]
fn the_manual_page_has_every_option_and_the_exit_codes() {
    let page = generated("man");
    assert!(page.contains(".TH popliner 1"), "{page}");
    let plain = page.replace("\\-", "-");
    has_options(&plain, "--");
    assert!(plain.contains("Exit codes:"), "{plain}");
    // A long word makes a ragged line, which is no mistake in the page.
    let options = ["-man", "-Tutf8", "-Wbreak", "-z"];
    check_syntax(piped("groff").args(options), &page);
}
