//! The split in every form that can be pasted, as data.

use crate::report::Report;
use crate::report::emit::{Form, Line, Modules, emit, lines};
use schemars::JsonSchema;
use serde::Serialize;

/// One form of configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Configuration {
    /// The value of `--emit`.
    pub form: &'static str,
    /// The text to paste; `null` where it cannot be written.
    pub text: Option<String>,
    /// Why it cannot be written; `null` where it can.
    pub problem: Option<String>,
    /// Where the report has what other splits need (`what_if`): the lines of all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub lines: Vec<Line>,
}

/// All forms; none without a split.
pub(in crate::report) fn configurations(report: &Report) -> Vec<Configuration> {
    let forms = report.split.iter().flat_map(|_| Form::ALL);
    let most_stages = report.what_if.as_ref().map(|grid| grid.max_stages as usize);
    let configuration = |form: Form| {
        let written = emit(form, report, &Modules::default());
        let lines = most_stages.and_then(|most| lines(form, report, most).ok());
        Configuration {
            form: form.name(),
            problem: written.as_ref().err().map(ToString::to_string),
            text: written.ok(),
            lines: lines.unwrap_or_default(),
        }
    };
    forms.map(configuration).collect()
}
