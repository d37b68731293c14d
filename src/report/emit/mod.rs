//! A split as configuration that can be pasted.
//!
//! Each form is a template (`forms`, which `template` reads) and a pure function of the [`Report`],
//! with the module names of the profile ([`ModuleCalls`](crate::model::ModuleCalls)), and of the
//! name of the model in the user's code. A file of its own has the lines that depend on the
//! layers. Notes for the user are comments below the configuration, apart from a verdict against it,
//! which is above; a comment line has at least two words, so that it is not mistaken for the name of
//! a section. JSON has no comments, so its notes are apart. If no module name is known, the form has
//! a placeholder that no framework accepts, and a comment that says what to write.
//!
//! A split that does not fit is still written, under a warning. A split that leaves layers out is
//! not written: the result is only notes.

mod counts;
mod form;
mod form_source;
mod keras;
mod lines;
mod mmcv;
mod module;
mod pipeline_splits;
mod popart;
mod poptorch;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use counts::blocks;
pub use form::EmitForm;
pub use lines::Line;
pub use module::module_name;

use super::Report;
use form_source::FormSource;
use lines::Lines;
use serde::Serialize;

/// The name of the model in the user's code unless `--module-root` gives another one.
pub const MODEL: &str = "model";

/// The split in one form of `--emit`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Configuration {
    /// The form, as `--emit` names it, such as `poptorch`.
    pub form: String,
    /// The text to paste into the user's code or configuration.
    pub text: String,
    /// Notes for the user, if the form has no comments; otherwise they are comments in `text`, and
    /// this is empty.
    pub notes: String,
    /// The lines of this form for all splits that the reader can try on the page, with the
    /// conditions under which a split has them; empty if the page cannot try other splits.
    pub lines: Vec<Line>,
}

/// Writes the split of a report in a form, each line with a line feed at its end, but not the lines
/// for all splits. Empty if the report has no split, and only notes if the
/// split leaves layers out. `root` is the name of the model in the user's code.
pub fn emit(form: EmitForm, report: &Report, root: &str) -> Configuration {
    let Some(source) = FormSource::of(report, root) else {
        return Configuration::default();
    };
    let lines = written(form, source);
    let text = |is_apart: bool| {
        lines
            .iter()
            .filter(|line| line.note == is_apart)
            .filter_map(|line| line.of(source))
            .map(|line| line + "\n")
            .collect()
    };
    Configuration {
        form: form.name(),
        text: text(false),
        notes: text(true),
        lines: Vec::new(),
    }
}

/// Returns the lines of a form for every split into at most `most_stages` stages of the layers in
/// the report's split, for the page, in which cuts are moved. Empty if the report has no split.
pub(super) fn lines(form: EmitForm, report: &Report, most_stages: usize) -> Vec<Line> {
    let source = FormSource::of(report, MODEL).map(|source| FormSource {
        most_stages: Some(most_stages),
        ..source
    });
    source.map_or(Vec::new(), |source| written(form, source))
}

fn written(form: EmitForm, source: FormSource<'_>) -> Vec<Line> {
    let mut notes = Lines::new(source, Some(if form.has_comments() { "# " } else { "" }));
    let mut text = Lines::new(source, None);
    template::write(form, source, &mut notes, &mut text);
    text.all.append(&mut notes.all);
    text.all
}
