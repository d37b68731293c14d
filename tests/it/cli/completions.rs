//! The manual page and the completions, as shells and readers take them.

use crate::support::{piped, popliner, skip, try_finish};
use clap::{Arg, CommandFactory};
use popliner::app::Options;
use std::process::Command;

fn generated(text: &str) -> String {
    let run = popliner([format!("--generate={text}")]);
    assert_eq!(run.exits(0).err, "", "{text}");
    run.out
}

/// Checks that a text has every long option, with these characters before it.
fn has_options(text: &str, before: &str) {
    let command = Options::command();
    for option in command.get_arguments().filter_map(Arg::get_long) {
        assert!(
            text.contains(&format!("{before}{option}")),
            "{option} in {text}"
        );
    }
}

/// Lets a program read a file, and checks that it has nothing to say. Skips if it is missing.
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
        check_syntax(piped(shell).arg("-n"), &text);
    }
}

#[test]
fn bash_completes_options_and_values() {
    let completions = generated("complete-bash");
    for (before, last, expected) in [
        (
            "popliner",
            "--mem",
            "--memory-totals --memory-model --mem-per-tile",
        ),
        ("--emit", "p", "poptorch popart pipeline-splits"),
    ] {
        let words = format!("popliner {before} {last}").replace("popliner popliner", "popliner");
        let script = format!(
            "{completions}\nCOMP_WORDS=({words}); COMP_CWORD={}\n\
             _popliner popliner '{last}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
            words.split(' ').count() - 1
        );
        let Some(run) = try_finish(piped("bash").args(["-c", &script])) else {
            return skip("there is no bash");
        };
        let offered: Vec<&str> = run.out.lines().collect();
        let missing = expected.split(' ').find(|word| !offered.contains(word));
        assert_eq!(missing, None, "{offered:?}");
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
    check_syntax(
        piped("groff").args(["-man", "-Tutf8", "-Wbreak", "-z"]),
        &page,
    );
}
