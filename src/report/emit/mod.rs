//! A split as configuration that can be pasted.
//!
//! Each form stands in a file of its own and is a pure function of the
//! [`Split`] and, where modules are named, a [`ModuleTemplate`]. What a user
//! must know stands above as comments; a comment line has at least two words,
//! so that nobody takes it for the name of a section.
//!
//! A split that does not fit is written all the same, under a warning. One that
//! leaves layers out is not: then there are comments alone.

mod keras;
mod layers_per_ipu;
mod module;
mod notes;
mod pipeline_splits;
mod popart;
mod poptorch;
#[cfg(test)]
mod tests;

pub use module::ModuleTemplate;

use super::{Split, Stage, printable};
use notes::Notes;
use thiserror::Error;

/// In what form a split is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// YAML: how many layers each IPU gets.
    LayersPerIpu,
    /// Python: a `poptorch.BeginBlock` for each stage.
    Poptorch,
    /// Python: the session options and a `with` for each layer.
    Popart,
    /// Python: the stage of each layer, and the IPU of each stage.
    Keras,
    /// YAML: the modules that start a new IPU.
    PipelineSplits,
}

/// Why a split cannot be written in a form.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EmitError {
    /// The form names modules, and no template was given.
    #[error(
        "--emit {0} names modules: give their names with --module, such as \
         --module 'model.bert.encoder.layer[{{}}]'"
    )]
    NoModule(&'static str),
    /// Layers are counted from the first, but stand in another order.
    #[error(
        "--emit layers-per-ipu counts layers from the lowest, but layer {after} stands after layer \
         {before} in the order of layers; --layer-order natural puts them in order"
    )]
    NotAscending {
        /// The earlier layer, with the higher number.
        before: String,
        /// The one after it.
        after: String,
    },
    /// A layer's name cannot stand where the template has it.
    #[error("--module: with layer {layer} it would be {module}, and {reason}")]
    NoModuleName {
        /// The layer's name.
        layer: String,
        /// What the template makes of it.
        module: String,
        /// What is wrong with that.
        reason: &'static str,
    },
    /// Two stages would begin at one module.
    #[error("--module: two stages would begin at {0}")]
    SameModule(String),
}

impl Form {
    /// All forms, in the order in which they are printed.
    pub const ALL: [Form; 5] = [
        Form::LayersPerIpu,
        Form::Poptorch,
        Form::Popart,
        Form::Keras,
        Form::PipelineSplits,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Form::LayersPerIpu => "layers-per-ipu",
            Form::Poptorch => "poptorch",
            Form::Popart => "popart",
            Form::Keras => "keras",
            Form::PipelineSplits => "pipeline-splits",
        }
    }

    /// The name of its section on standard output.
    pub fn section(self) -> &'static str {
        match self {
            Form::LayersPerIpu => "emit-layers-per-ipu",
            Form::Poptorch => "emit-poptorch",
            Form::Popart => "emit-popart",
            Form::Keras => "emit-keras",
            Form::PipelineSplits => "emit-pipeline-splits",
        }
    }

    /// Can it be written with or without `module`?
    ///
    /// # Errors
    /// [`EmitError::NoModule`] when it names modules and none is given.
    pub fn check(self, module: Option<&ModuleTemplate>) -> Result<(), EmitError> {
        match (self, module) {
            (Form::Poptorch | Form::PipelineSplits, None) => Err(EmitError::NoModule(self.name())),
            _ => Ok(()),
        }
    }
}

/// `split` in a form, with a line feed at the end of each line.
///
/// # Errors
/// [`EmitError`] when the layers or `module` do not go with the form.
pub fn emit(
    form: Form,
    split: &Split,
    module: Option<&ModuleTemplate>,
) -> Result<String, EmitError> {
    let named = || module.ok_or(EmitError::NoModule(form.name()));
    let mut notes = Notes::new(split);
    if !split.unplaced.is_empty() {
        return Ok(notes.to_string());
    }
    let text = match form {
        Form::LayersPerIpu => layers_per_ipu::emit(split, &mut notes)?,
        Form::Poptorch => poptorch::emit(split, named()?, &mut notes)?,
        Form::Popart => popart::emit(split, &mut notes),
        Form::Keras => keras::emit(split, module, &mut notes),
        Form::PipelineSplits => pipeline_splits::emit(split, named()?, &mut notes)?,
    };
    Ok(format!("{notes}{text}"))
}

/// The layers of a stage that have a name: not the pseudo-layer.
fn named_layers(stage: &Stage) -> impl Iterator<Item = &str> {
    stage.layers.iter().flatten().map(String::as_str)
}

/// Every layer that has a name with the number of its stage, in order.
fn layers(split: &Split) -> impl Iterator<Item = (usize, &str)> {
    let stages = split.stages.iter().enumerate();
    stages.flat_map(|(number, stage)| named_layers(stage).map(move |layer| (number, layer)))
}

/// The first layer of each stage that has one, with the stage's number.
fn starts(split: &Split) -> impl Iterator<Item = (usize, &str)> {
    let stages = split.stages.iter().enumerate();
    stages.filter_map(|(number, stage)| Some((number, named_layers(stage).next()?)))
}

/// A text in double quotes, as JSON, YAML and Python all read it.
fn quoted(text: &str) -> String {
    // A text as JSON cannot fail; its escapes are those of the other two.
    serde_json::Value::from(text).to_string()
}
