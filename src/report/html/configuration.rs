//! The split in every form that can be pasted, as data.

use crate::report::Report;
use crate::report::emit::{Form, Modules, emit};
use schemars::JsonSchema;
use serde::Serialize;

/// One form of configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Configuration {
    /// The value of `--emit`.
    pub form: &'static str,
    /// What to paste; `null` where it cannot be written.
    pub text: Option<String>,
    /// Why it cannot be written; `null` where it can.
    pub problem: Option<String>,
}

/// All forms; none without a split.
pub(in crate::report) fn configurations(report: &Report) -> Vec<Configuration> {
    let forms = report.split.iter().flat_map(|_| Form::ALL);
    let configuration = |form: Form| {
        let written = emit(form, report, &Modules::default());
        Configuration {
            form: form.name(),
            problem: written.as_ref().err().map(ToString::to_string),
            text: written.ok(),
        }
    };
    forms.map(configuration).collect()
}
