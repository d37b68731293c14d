//! The manual page and the completions, as shells and readers take them.

use crate::support::{piped, popliner, run_fixture, skip, try_finish};
use clap::CommandFactory;
use popliner::app::Options;

fn generated(what: &str) -> String {
    let run = popliner([format!("--generate={what}")]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{what}");
    run.out
}

/// Returns every long option, with its dashes.
fn options() -> Vec<String> {
    let command = Options::command();
    let options = command
        .get_arguments()
        .filter_map(|option| option.get_long());
    options.map(|name| format!("--{name}")).collect()
}

/// Checks the syntax of a file with a shell, without running it. Skips if the shell is missing.
fn check_syntax(shell: &str, text: &str) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), text).expect("a script");
    match try_finish(piped(shell).arg("-n").arg(file.path())) {
        Some(run) => assert_eq!(run.code, 0, "{shell}: {run:?}"),
        None => skip(&format!("there is no {shell}")),
    }
}

#[test]
fn completions_know_every_option_and_the_shell_reads_them() {
    for shell in ["bash", "zsh", "fish"] {
        let text = generated(&format!("complete-{shell}"));
        for option in options() {
            // fish writes options without dashes.
            let part = match shell {
                "fish" => format!("-l {}", &option[2..]),
                _ => option,
            };
            assert!(
                text.contains(&part),
                "{part} in the completions for {shell}"
            );
        }
        check_syntax(shell, &text);
    }
}

#[test]
fn bash_completes_options_and_values() {
    let completions = generated("complete-bash");
    let cases: [(&[&str], &[&str]); 2] = [
        (
            &["--mem"],
            &["--memory-totals", "--memory-model", "--mem-per-tile"],
        ),
        (&["--emit", "p"], &["poptorch", "popart", "pipeline-splits"]),
    ];
    for (words, expected) in cases {
        let last = words.last().expect("a word");
        let before = words.iter().rev().nth(1).unwrap_or(&"popliner");
        let call = format!(
            "\nCOMP_WORDS=(popliner {}); COMP_CWORD={}; _popliner popliner '{last}' '{before}'\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
            words.join(" "),
            words.len()
        );
        let script = format!("{completions}{call}");
        let Some(run) = try_finish(piped("bash").args(["-c", &script])) else {
            skip("there is no bash");
            return;
        };
        let offered = run.out;
        for word in expected {
            assert!(
                offered.lines().any(|line| line == *word),
                "{word} in {offered}"
            );
        }
    }
}

#[test]
fn the_manual_page_has_every_option_and_the_exit_codes() {
    let page = generated("man");
    assert!(page.contains(".TH popliner 1"), "{page}");
    let plain = page.replace("\\-", "-");
    for option in options() {
        assert!(plain.contains(&option), "{option}");
    }
    assert!(plain.contains("Exit codes:"), "{plain}");
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), &page).expect("a page");
    let mut groff = piped("groff");
    // A long word makes a ragged line, which is no mistake in the page.
    groff.args(["-man", "-Tutf8", "-Wbreak", "-z"]);
    match try_finish(groff.arg(file.path())) {
        Some(run) => assert_eq!((run.code, &*run.err), (0, ""), "{run:?}"),
        None => skip("there is no groff"),
    }
}

#[test]
fn nothing_else_goes_with_it() {
    let run = run_fixture("poplar-mlp", &["--generate=man"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
    let run = popliner(["--generate=complete-cmd"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.err.contains("complete-bash"), "{}", run.err);
}
