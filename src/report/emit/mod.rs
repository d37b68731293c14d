//! Writes a split as configuration that users paste into their code.
//!
//! Each form of configuration (a value of `--emit`) has a template in the folder `forms`, which
//! `template` reads. `counts`, `entries` and `poptorch` write the lines that depend on the layers.
//! A configuration depends only on the [`Report`], which has the names of the model's modules
//! ([`ModuleCalls`](crate::model::ModuleCalls)), and on the name of the model in the user's code.
//! If no module name is known, the configuration has a placeholder that no framework accepts, and a
//! comment that tells the user what to write instead.
//!
//! Notes for the user are comments below the configuration; only notes that the split does not fit,
//! or may not fit, are above it. A form in JSON, which has no comments, has its notes in a separate
//! text. A comment has at least two words: in the command's output, a comment of one word is the
//! name of a section, such as `# solve`, by which programs separate the results.
//!
//! A split that does not fit is still written, below a warning. If some layers are in no stage of
//! the split, only notes are written, and no configuration.

mod counts;
mod entries;
mod form_source;
mod lines;
mod poptorch;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use counts::blocks;
pub use lines::Line;
pub use poptorch::module_name;

use super::Report;
use crate::{model::Framework, wording::option_name};
use clap::ValueEnum;
use form_source::FormSource;
use lines::{Draft, Lines, STAGE};
use serde::Serialize;

/// The name of the model in the user's code, unless the user gives another one (`--module-root`).
pub const MODEL: &str = "model";

/// The form in which a split is written as configuration (`--emit`).
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub enum EmitForm {
    /// How many layers each IPU gets, as YAML for Graphcore's examples.
    Examples,
    /// How many layers each IPU gets, as Optimum's ipu_config.json.
    Optimum,
    /// Code for PopTorch that begins a block for each stage, as Python.
    Poptorch,
    /// PopART's session options, and the IPU and the stage of each layer, as Python.
    Popart,
    /// The pipeline stage of each Keras layer, as Python.
    Keras,
    /// The parts of the model in each stage, as JSON for Graphcore's BERT for TensorFlow.
    TfStages,
    /// The modules at which the next IPU begins, as YAML for Graphcore's vision examples.
    PipelineSplits,
    /// The module that begins each IPU, as Python for configurations of mmcv's runners.
    Mmcv,
}

impl EmitForm {
    /// Returns the value of `--emit` that requests this form of configuration, such as `poptorch`.
    pub fn name(self) -> String {
        option_name(&self)
    }

    /// Chooses the form of configuration that suits the framework of the report. For TensorFlow, it
    /// is the first of these forms that is possible:
    /// - the Keras layer at which each stage begins, if the profile names these layers
    /// - the parts of BERT in each stage, if each stage begins at the beginning of a block of
    ///   layers
    /// - the scope at which each stage begins
    ///
    /// Returns `None` if the report has no split, or if no form suits its framework, such as
    /// Poplar.
    pub fn of_report(report: &Report) -> Option<Self> {
        let source = FormSource::of(report, MODEL)?;
        Some(match report.framework()? {
            Framework::Poptorch => Self::Poptorch,
            Framework::Popart => Self::Popart,
            Framework::Tensorflow if source.has_keras_names() => Self::Keras,
            Framework::Tensorflow if source.begins_with_blocks() => Self::TfStages,
            Framework::Tensorflow => Self::PipelineSplits,
            Framework::Popxl | Framework::Poplar => return None,
        })
    }

    fn template(self) -> &'static str {
        match self {
            Self::Examples => include_str!("forms/examples.txt"),
            Self::Optimum => include_str!("forms/optimum.txt"),
            Self::Poptorch => include_str!("forms/poptorch.txt"),
            Self::Popart => include_str!("forms/popart.txt"),
            Self::Keras => include_str!("forms/keras.txt"),
            Self::TfStages => include_str!("forms/tf-stages.txt"),
            Self::PipelineSplits => include_str!("forms/pipeline-splits.txt"),
            Self::Mmcv => include_str!("forms/mmcv.txt"),
        }
    }

    /// Returns whether this form of configuration has only the number of blocks (of a transformer,
    /// for example) on each IPU, so that the model's code places the layers outside blocks.
    pub fn has_counts(self) -> bool {
        matches!(self, Self::Examples | Self::Optimum)
    }
}

/// The split as configuration, in one form of `--emit`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Configuration {
    /// The value of `--emit` that requests this configuration, such as `poptorch`.
    pub form: String,
    /// The text to paste into the user's code or configuration.
    pub text: String,
    /// Notes for the user about the configuration, if its form is JSON, which has no comments. In
    /// all other forms, the notes are comments in `text`, and this field is empty.
    pub notes: String,
    /// The lines of configuration for all splits that the reader of an HTML page can make by
    /// moving cuts. Each line states the splits to which it belongs. Empty if the page cannot
    /// move cuts.
    pub lines: Vec<Line>,
}

/// Writes the split of `report` as configuration in the given form of `--emit`. The result is empty
/// if the report has no split, and has only notes for the user if some layers are in no stage.
/// `root` is the name of the model in the user's code. With `most_stages`, also returns the lines
/// for all splits of the report's layers into at most this number of stages
/// ([`Configuration::lines`]), among which an HTML page chooses when its reader moves cuts.
pub fn emit(
    form: EmitForm,
    report: &Report,
    root: &str,
    most_stages: Option<usize>,
) -> Configuration {
    let Some(mut source) = FormSource::of(report, root) else {
        return Configuration::default();
    };
    let of_all = FormSource {
        most_stages,
        ..source
    };
    source.other = (source.split.by_counts.as_ref()).filter(|_| form.has_counts());
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
        lines: most_stages.map_or(Vec::new(), |_| written(form, of_all)),
    }
}

fn written(form: EmitForm, source: FormSource<'_>) -> Vec<Line> {
    // JSON has no comments. A configuration in JSON has its notes for the user in a separate text,
    // where they need no comment marks.
    let mark = match form {
        EmitForm::Optimum | EmitForm::TfStages => "",
        _ => "# ",
    };
    let mut draft = Draft {
        source,
        notes: Lines::new(source, Some(mark)),
        text: Lines::new(source, None),
    };
    draft.fill(form);
    draft.text.all.append(&mut draft.notes.all);
    draft.text.all
}
