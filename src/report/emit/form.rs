//! The forms of `--emit`, each with its template.

use super::form_source::FormSource;
use super::{MODEL, counts};
use crate::model::Framework;
use crate::report::Report;
use clap::ValueEnum;

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
    /// Returns the name of the form on the command line, such as `poptorch`.
    pub fn name(self) -> String {
        self.to_possible_value()
            .map_or(String::new(), |value| value.get_name().to_string())
    }

    /// Returns the name of the section on standard output that has the split in this form, such as
    /// `emit-poptorch`.
    pub fn section(self) -> String {
        format!("emit-{}", self.name())
    }

    /// Returns the form to propose for the split of a report; `None` without a split, and if the
    /// framework, such as Poplar, has no configuration. TensorFlow has Keras layers if the profile
    /// names those that begin stages, and else blocks, if stages begin with whole ones, or scopes.
    pub fn of_report(report: &Report) -> Option<Self> {
        let source = FormSource::of(report, MODEL)?;
        Some(match report.framework()? {
            Framework::Poptorch => EmitForm::Poptorch,
            Framework::Popart => EmitForm::Popart,
            Framework::Tensorflow if source.has_keras_names() => EmitForm::Keras,
            Framework::Tensorflow if counts::begin_stages(source) => EmitForm::TfStages,
            Framework::Tensorflow => EmitForm::PipelineSplits,
            Framework::Popxl | Framework::Poplar => return None,
        })
    }

    /// Returns the text of the form's template.
    pub(super) fn template(self) -> &'static str {
        match self {
            EmitForm::Examples => include_str!("forms/examples.txt"),
            EmitForm::Optimum => include_str!("forms/optimum.txt"),
            EmitForm::Poptorch => include_str!("forms/poptorch.txt"),
            EmitForm::Popart => include_str!("forms/popart.txt"),
            EmitForm::Keras => include_str!("forms/keras.txt"),
            EmitForm::TfStages => include_str!("forms/tf-stages.txt"),
            EmitForm::PipelineSplits => include_str!("forms/pipeline-splits.txt"),
            EmitForm::Mmcv => include_str!("forms/mmcv.txt"),
        }
    }

    /// Returns whether the form has comments, in which notes for the user can be. JSON has none.
    pub(super) fn has_comments(self) -> bool {
        !matches!(self, EmitForm::Optimum | EmitForm::TfStages)
    }
}
