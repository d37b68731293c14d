//! The forms of `--emit`, each with its template.

use crate::model::Framework;
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

    /// Returns the form for models of a framework; [`EmitForm::Examples`] if the framework is
    /// unknown or has no form of its own.
    pub fn of_framework(framework: Option<Framework>) -> Self {
        match framework {
            Some(Framework::Poptorch) => EmitForm::Poptorch,
            Some(Framework::Popart) => EmitForm::Popart,
            Some(Framework::Tensorflow) => EmitForm::Keras,
            _ => EmitForm::Examples,
        }
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
        }
    }

    /// Returns whether the form has comments, in which notes for the user can be. JSON has none.
    pub(super) fn has_comments(self) -> bool {
        !matches!(self, EmitForm::Optimum | EmitForm::TfStages)
    }
}
