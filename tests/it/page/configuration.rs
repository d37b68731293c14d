//! The text that the page offers for pasting equals the output of `--emit`, for any cuts.

use super::opened::{Page, page};
use crate::support::{DEFAULT_REGEX, FORMS, finish, models::share, root, sections};
use std::path::Path;
use std::process::{Command, Stdio};

impl Page {
    /// Shows a form, and returns its text with the command line that prints the same.
    fn form(&mut self, form: &str) -> [String; 2] {
        self.value(&format!(
            "(() => {{ const one = document.getElementById('configuration-form'); one.value = '{form}';
              one.dispatchEvent(new Event('change')); }})()"
        ));
        ["#configuration-text", "#configuration-command"].map(|place| self.text(place))
    }
}

/// Runs a command line like a user who has the tool in the PATH.
fn typed(line: &str) -> String {
    let tool = Path::new(env!("CARGO_BIN_EXE_popliner"));
    let folder = tool.parent().expect("a folder").display();
    let path = std::env::var("PATH").expect("a path");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("{line} -q")])
        .current_dir(root())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let run = finish(shell.env("PATH", format!("{folder}:{path}")));
    assert!([0, 1].contains(&run.code), "{line}: {run:?}");
    run.out
}

/// Shortens the warning that a configuration does not fit, since the page does not know the tile.
fn without_warning(text: &str) -> String {
    let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
    match text.starts_with("# WARNING: the model does not fit. This split ") {
        true => format!("# does not fit\n{rest}"),
        false => text.into(),
    }
}

#[test]
fn the_configuration_is_that_of_emit() {
    let options = ["--solve", "--num-ipus=4"];
    let mut page = or_skip!(page("training-pipeline", &options, "#view=configuration"));
    for form in FORMS {
        let [shown, line] = page.form(form);
        assert_eq!(shown, typed(&line), "{line}");
    }
    page.done();
}

#[test]
fn the_configuration_of_moved_cuts_is_that_of_emit() {
    let cases: [(&str, &[&str]); 4] = [
        ("training-pipeline", &["--num-ipus=5"]),
        ("tensorflow-cnn", &["--num-ipus=4", "--out-on=first"]),
        (
            "popart-bert-inference",
            &["--num-ipus=4", "--memory-model=classic"],
        ),
        ("impossible", &["--num-ipus=3"]),
    ];
    for (fixture, options) in cases {
        // Layers by the regex stay the same at other limits and cuts.
        let options = [options, &["--solve", DEFAULT_REGEX]].concat();
        let mut page = or_skip!(page(fixture, &options, "#view=configuration"));
        let what_if = &page.report["what_if"];
        let boundaries = what_if["boundaries"].as_array().expect("a list").len() as u64;
        let last = boundaries - 2;
        // In as a stage of its own, Out as one, both, and other cuts; and one stage.
        let all = [vec![1], vec![last], vec![1, 2, last], vec![2, 3], vec![]];
        for cuts in all.iter().step_by(share(2)) {
            let cuts: Vec<String> = cuts.iter().map(u64::to_string).collect();
            let cuts = if cuts.is_empty() {
                "none".into()
            } else {
                cuts.join(",")
            };
            page.value(&format!("choose({{ cuts: '{cuts}' }})"));
            let forms = FORMS.map(|form| page.form(form));
            // One search for all forms, since their command lines differ only in the form.
            let [_, line] = &forms[0];
            let line = line.trim_end_matches(" --emit=examples");
            let emit = FORMS.map(|form| format!(" --emit={form}"));
            let printed = sections(&typed(&(line.to_owned() + &emit.concat())));
            for (form, [text, command]) in FORMS.iter().zip(&forms) {
                assert_eq!(command, &format!("{line} --emit={form}"));
                let mut printed = printed.iter();
                let expected = printed.find(|(name, _)| *name == format!("emit-{form}"));
                let (_, expected) = expected.expect("each form");
                assert_eq!(
                    without_warning(text),
                    without_warning(expected),
                    "{command}"
                );
            }
        }
        page.done();
    }
}
