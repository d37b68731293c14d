//! The text that the page offers for pasting equals the output of `--emit`, for any cuts.

use super::opened::{Page, page};
use crate::support::{DEFAULT_REGEX, FORMS, graph_file, models::share, root, typed};
use serde_json::Value;

impl Page {
    /// Shows a form, and returns its text with the command line that prints the same.
    fn form(&mut self, form: &str) -> [String; 2] {
        self.enter("#configuration-form", form, "change");
        ["#configuration-text", "#configuration-command"].map(|place| self.text(place))
    }
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
    for (fixture, options) in [
        ("training-pipeline", "--num-ipus=5"),
        ("tensorflow-cnn", "--num-ipus=4 --out-on=first"),
        (
            "popart-bert-inference",
            "--num-ipus=4 --memory-model=classic",
        ),
        ("impossible", "--num-ipus=3"),
    ] {
        // Layers by the regex stay the same at other limits and cuts.
        let options = format!("{options} --solve {DEFAULT_REGEX}");
        let mut page = or_skip!(page(fixture, &options, "#view=configuration"));
        let last = page.at::<Vec<u64>>("/what_if/boundaries").len() - 2;
        // Cuts to try: those of the best split; In or Out or both in stages of their own; others;
        // none.
        let both = format!("1,2,{last}");
        let moved = ["1", &last.to_string(), &both, "2,3", "none"];
        for cuts in [""].iter().chain(moved.iter().step_by(share(2))) {
            if !cuts.is_empty() {
                page.run(&format!("choose({{ cuts: '{cuts}' }})"));
            }
            let forms = FORMS.map(|form| page.form(form));
            // One search for all forms, since their command lines differ only in the form.
            let line = forms[0][1].trim_end_matches(" --emit=examples");
            let emit = FORMS.map(|form| format!(" --emit={form}"));
            let run = typed(&format!("{line}{} -q", emit.concat()), root());
            assert!(run.code < 2, "{line}: {run:?}");
            for (form, [text, command]) in FORMS.iter().zip(&forms) {
                assert_eq!(command, &format!("{line} --emit={form}"));
                let expected = without_warning(&run.section(&format!("emit-{form}")));
                assert_eq!(without_warning(text), expected, "{command}");
            }
        }
    }
}

/// Where counts of blocks cannot say the split, the page has the verdict on the split that they make.
#[test]
fn the_split_of_counts_is_judged() {
    let graph = graph_file("bert").display().to_string();
    let model = format!("--graph {graph} --framework poptorch --tiles 4");
    let mut page = or_skip!(Page::of_model(&model, "--splits=3,6.output,9"));
    page.run("choose({ view: 'configuration' })");
    let own = page.at::<Value>("/split/by_counts");
    assert!(own["fits"].is_boolean(), "{own}");
    page.form("optimum");
    let said = page.text("#configuration-notes");
    let verdict = if own["fits"] == true {
        "The code that takes these counts splits the model otherwise, "
    } else {
        "WARNING: the model does not fit as the code that takes these counts splits it, "
    };
    assert!(said.contains(verdict), "{said}");
}
