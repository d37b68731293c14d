//! A split as configuration that can be pasted.
//!
//! Each form is in a file of its own and is a pure function of the [`Report`]
//! and of what the model's code calls its [`Modules`]. What a user must know is
//! above it as comments; a comment line has at least two words, so that it is
//! not taken for the name of a section. Where a module must be named and its
//! name was not given, there is a placeholder that no framework takes, and a
//! comment on what to write.
//!
//! A split that does not fit is written all the same, under a warning. One that
//! leaves layers out is not: then there are comments alone.

mod keras;
mod layers_per_ipu;
mod lines;
mod module;
mod notes;
mod pipeline_splits;
mod popart;
mod poptorch;
#[cfg(test)]
mod tests;

pub use lines::Line;
pub use module::{ModuleName, ModuleTemplate};

use super::{Report, Split, printable};
use crate::memory::{self, Recompute, Schedule};
use crate::model::PseudoLayers;
use clap::ValueEnum;
use lines::Lines;
use thiserror::Error;

/// In what form a split is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// How many layers each IPU gets, as YAML.
    LayersPerIpu,
    /// A block for each stage, as Python.
    Poptorch,
    /// Session options and annotations by layer, as Python.
    Popart,
    /// A pipeline stage for each layer, as Python.
    Keras,
    /// The modules that start a new IPU, as YAML.
    PipelineSplits,
}

/// How a module of a layer can be written in Python.
const MODULE_FORMS: &str =
    "write [{}] for a number, [\"{}\"] for a key, or a name that Python takes";

/// Why a split cannot be written in a form.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EmitError {
    /// The form names modules, and no template was given.
    #[error(
        "--emit {0} names modules; give their names with --module, such as \
         --module 'model.bert.encoder.layer[{{}}]'"
    )]
    NoModule(&'static str),
    /// Layers are counted from the first, but are in another order.
    #[error(
        "--emit layers-per-ipu counts layers from the lowest, but layer {after} is after layer \
         {before} in the order of layers; put them in order with --layer-order natural"
    )]
    NotAscending {
        /// The earlier layer, with the higher number.
        before: String,
        /// The one after it.
        after: String,
    },
    /// A layer's name cannot be used where the template has it.
    #[error("--module: with layer {layer} it would be {module}, but {reason}; {MODULE_FORMS}")]
    NoModuleName {
        /// The layer's name.
        layer: String,
        /// The module that the template makes of it.
        module: String,
        /// The reason why that cannot be used.
        reason: &'static str,
    },
    /// Two stages would begin at one module.
    #[error(
        "two stages would begin at {0}; give other names with --module, --module-in and --module-out"
    )]
    SameModule(String),
    /// The split does not say where Out runs.
    #[error(
        "--module-out: this memory model has no Out, and what runs after the layers is where the \
         last layer is; leave the option out"
    )]
    NoOut,
}

/// Names of the modules in the model's code, as far as they were given.
#[derive(Debug, Clone, Copy, Default)]
pub struct Modules<'a> {
    /// The module of a layer.
    pub layer: Option<&'a ModuleTemplate>,
    /// The first module of In, such as the embedding.
    pub before: Option<&'a ModuleName>,
    /// The first module of Out, such as the head.
    pub after: Option<&'a ModuleName>,
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

    /// Can it be written with these modules?
    ///
    /// # Errors
    /// [`EmitError::NoModule`] when it names those of layers and none is given.
    pub fn check(self, modules: &Modules<'_>) -> Result<(), EmitError> {
        match (self, modules.layer) {
            (Form::PipelineSplits, None) => Err(EmitError::NoModule(self.name())),
            _ => Ok(()),
        }
    }
}

/// The split of a report in a form, with a line feed at the end of each line;
/// nothing without a split.
///
/// # Errors
/// [`EmitError`] when the layers or `modules` do not go with the form.
pub fn emit(form: Form, report: &Report, modules: &Modules<'_>) -> Result<String, EmitError> {
    form.check(modules)?;
    let Some(split) = &report.split else {
        return Ok(String::new());
    };
    let pipeline = Pipeline {
        report,
        split,
        most_stages: None,
    };
    let lines = written(form, pipeline, modules)?;
    let lines = lines.iter().filter_map(|line| line.of(pipeline));
    Ok(lines.map(|line| line + "\n").collect())
}

/// The lines of every split of up to `most_stages` stages of the layers of a report's
/// split; none without a split.
///
/// # Errors
/// [`EmitError`] when the layers do not go with the form, or it names modules.
pub(super) fn lines(
    form: Form,
    report: &Report,
    most_stages: usize,
) -> Result<Vec<Line>, EmitError> {
    let modules = Modules::default();
    form.check(&modules)?;
    let pipeline = |split| Pipeline {
        report,
        split,
        most_stages: Some(most_stages),
    };
    let split = report.split.as_ref();
    split.map_or(Ok(Vec::new()), |split| {
        written(form, pipeline(split), &modules)
    })
}

fn written(
    form: Form,
    pipeline: Pipeline<'_>,
    modules: &Modules<'_>,
) -> Result<Vec<Line>, EmitError> {
    if modules.after.is_some() && pipeline.report.pseudo_layers == PseudoLayers::NoneFirst {
        return Err(EmitError::NoOut);
    }
    let mut notes = Lines::new(pipeline, true);
    let mut text = Lines::new(pipeline, false);
    notes::begin(pipeline, &mut notes);
    if pipeline.split.unplaced.is_empty() {
        match form {
            Form::LayersPerIpu => layers_per_ipu::write(pipeline, &mut notes, &mut text)?,
            Form::Poptorch => poptorch::write(pipeline, modules, &mut notes, &mut text)?,
            Form::Popart => popart::write(pipeline, modules, &mut notes, &mut text),
            Form::Keras => keras::write(pipeline, modules, &mut notes, &mut text)?,
            Form::PipelineSplits => {
                pipeline_splits::write(pipeline, modules, &mut notes, &mut text)?;
            }
        }
    }
    notes.all.append(&mut text.all);
    Ok(notes.all)
}

/// The layers whose outputs are kept where others are recomputed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checkpoints {
    None,
    /// Each.
    Layers,
    /// The last of each stage but the last, in PopART without a pipeline.
    Stages,
}

/// A split to be written, and the report that it is in.
#[derive(Debug, Clone, Copy)]
struct Pipeline<'a> {
    report: &'a Report,
    split: &'a Split,
    /// With it, what is written is every split of the same layers with up to so many
    /// stages.
    most_stages: Option<usize>,
}

impl<'a> Pipeline<'a> {
    /// Every layer with its position, in order, without pseudo-layers.
    fn layers(self) -> impl Iterator<Item = (u32, &'a str)> {
        let stages = self.split.stages.iter();
        let all = stages.flat_map(|stage| stage.positions.clone().zip(&stage.layers));
        let named = all.filter_map(|(position, name)| Some((position, name.as_deref()?)));
        named.filter(move |&(position, _)| Some(position) != self.out())
    }

    /// The position of Out, where it has one of its own.
    fn out(self) -> Option<u32> {
        let last = self.split.stages.last()?.positions.end.checked_sub(1);
        last.filter(|_| self.report.pseudo_layers == PseudoLayers::InAndOut)
    }

    /// The fewest and the most stages of what is written.
    fn numbers_of_stages(self) -> (usize, usize) {
        let stages = self.split.stages.len();
        self.most_stages.map_or((stages, stages), |most| (1, most))
    }

    /// Forward pipeline stages: one for each IPU, and Out on the first IPU.
    fn forward_stages(self, stages: usize) -> usize {
        stages + usize::from(self.out_returns(stages))
    }

    /// The pipeline that the memory of the stages was computed for, if it trains the model.
    fn training(self) -> Option<memory::Pipeline> {
        let facts = self.report.pipeline.as_ref();
        facts
            .filter(|facts| facts.trains())
            .map(|facts| facts.pipeline())
    }

    /// The micro-batches that a training pipeline of so many stages accumulates gradients over:
    /// as many as were requested, or else the fewest that its schedule allows, that of PopART
    /// where none was computed for. `None` for inference, and where it is not known what the
    /// model does.
    fn accumulation(self, stages: usize) -> Option<u64> {
        let facts = self.report.pipeline.as_ref();
        let facts = facts.filter(|facts| facts.is_training)?;
        let schedule = match facts.schedule {
            Schedule::None => Schedule::Popart,
            schedule => schedule,
        };
        let step = self.report.step.as_ref();
        let requested = step.filter(|step| !step.micro_batches_by_default);
        let least = schedule.least_accumulation(self.forward_stages(stages)) as u64;
        Some(requested.map_or(least, |step| step.micro_batches.max(least)))
    }

    /// Is the model known to be used for inference alone?
    fn is_inference(self) -> bool {
        let facts = self.report.pipeline.as_ref();
        facts.is_some_and(|facts| !facts.is_training)
    }

    /// Do stages of training run one after the other?
    fn is_sequential(self) -> bool {
        self.training()
            .is_some_and(|training| training.schedule == Schedule::Sequential)
    }

    /// The layers whose outputs are kept where others are recomputed.
    fn checkpoints(self) -> Checkpoints {
        match self
            .training()
            .map(|training| (training.recompute, training.schedule))
        {
            Some((Recompute::Layer, _)) => Checkpoints::Layers,
            Some((Recompute::Stage, Schedule::Sequential)) => Checkpoints::Stages,
            _ => Checkpoints::None,
        }
    }

    /// Does Out run on the first IPU, after the last of so many stages was on another?
    fn out_returns(self, stages: usize) -> bool {
        self.report.pseudo_layers == PseudoLayers::OutWithIn && stages > 1
    }
}
