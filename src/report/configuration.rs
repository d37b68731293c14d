//! The split in every form of configuration, as data for the page, which other programs read in JSON too.

use super::Report;
use super::emit::{Form, Line, Modules, emit, lines};
use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;

/// The split in one form of configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Configuration {
    /// The value of `--emit`.
    pub form: String,
    /// The text to paste; `null` if the form cannot be written.
    pub text: Option<String>,
    /// The notes of a form without comments.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(default)]
    pub notes: String,
    /// Why the form cannot be written; `null` if it can.
    pub problem: Option<String>,
    /// The lines of every split that can be tried (`what_if`); empty without such data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub lines: Vec<Line>,
}

/// Returns the split in all forms; empty without a split.
pub(super) fn configurations(report: &Report) -> Vec<Configuration> {
    let forms = report.split.iter().flat_map(|_| Form::value_variants());
    let most_stages = report.what_if.as_ref().map(|grid| grid.max_stages as usize);
    let configuration = |&form: &Form| {
        let written = emit(form, report, &Modules::default());
        let lines = most_stages.and_then(|most| lines(form, report, most).ok());
        let problem = written.as_ref().err().map(ToString::to_string);
        let (text, notes) = written
            .ok()
            .map(|written| (written.text, written.notes))
            .unzip();
        Configuration {
            form: form.name(),
            text,
            notes: notes.unwrap_or_default(),
            problem,
            lines: lines.unwrap_or_default(),
        }
    };
    forms.map(configuration).collect()
}
