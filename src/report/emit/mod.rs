//! A split as configuration that can be pasted.
//!
//! Each form is in a file of its own and is a pure function of the [`Report`], of the module names
//! that the user gave ([`Modules`]) and of the module names in the profile ([`ModuleCalls`]). Notes
//! for the user are comments above the configuration; a comment line has at least two words, so
//! that it is not mistaken for the name of a section. JSON has no comments, so its notes are apart.
//! If no module name is known, the form has a placeholder that no framework accepts, and a comment
//! that says what to write.
//!
//! A split that does not fit is still written, under a warning. A split that leaves layers out is
//! not written: the result is only notes.

mod counts;
mod examples;
mod keras;
mod lines;
mod module;
mod notes;
mod optimum;
mod pipeline_splits;
mod popart;
mod poptorch;
#[cfg(test)]
mod tests;
mod tf_stages;

pub(crate) use counts::blocks;
pub use lines::Line;
pub use module::{ModuleName, ModuleTemplate};

use super::{Report, Split, printable};
use crate::memory::{self, Recompute, Schedule};
use crate::model::{Framework, ModuleCalls, PseudoLayers};
use crate::time::USUAL_MICRO_BATCHES;
use clap::ValueEnum;
use lines::Lines;
use thiserror::Error;

/// In what form a split is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// How many layers each IPU gets, as YAML for Graphcore's examples.
    #[value(alias = "layers-per-ipu")]
    Examples,
    /// How many layers each IPU gets, as Optimum's ipu_config.json.
    Optimum,
    /// A block for each stage, as Python.
    Poptorch,
    /// Session options and annotations by layer, as Python.
    Popart,
    /// A pipeline stage for each layer, as Python.
    Keras,
    /// A list for each stage, as JSON of Graphcore's BERT for TensorFlow.
    TfStages,
    /// The modules that start a new IPU, as YAML.
    PipelineSplits,
}

/// How to write the module of a layer in Python.
const MODULE_FORMS: &str = "write [{}] for a number, [\"{}\"] for a key, or a valid Python name";

/// Why a split cannot be written in a form.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EmitError {
    /// A layer's name cannot be used in the template of `--module`.
    #[error("--module: with layer {layer} it would be {module}, but {reason}; {MODULE_FORMS}")]
    NoModuleName {
        /// The layer's name.
        layer: String,
        /// The template with the layer's name in it.
        module: String,
        /// Why that module cannot be used.
        reason: &'static str,
    },
    /// The split does not say where Out runs.
    #[error(
        "--module-out: this memory model has no Out, and the operations after the layers run with \
         the last layer; leave the option out"
    )]
    NoOut,
}

/// Names of modules in the model's code, as far as the user gave them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Modules<'a> {
    /// The model.
    pub root: Option<&'a ModuleName>,
    /// The template for the module of a layer.
    pub layer: Option<&'a ModuleTemplate>,
    /// The first module of In, such as the embedding.
    pub before: Option<&'a ModuleName>,
    /// The first module of Out, such as the head.
    pub after: Option<&'a ModuleName>,
}

impl Form {
    /// Returns the form's name on the command line.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or(String::new(), |value| value.get_name().to_string())
    }

    /// Returns the name of the form's section on standard output.
    pub fn section(self) -> String {
        format!("emit-{}", self.name())
    }

    /// Returns the form that fits a framework; [`Form::Examples`] if the framework is unknown.
    pub fn of_framework(framework: Option<Framework>) -> Self {
        match framework {
            Some(Framework::Poptorch) => Form::Poptorch,
            Some(Framework::Popart) => Form::Popart,
            Some(Framework::Tensorflow) => Form::Keras,
            _ => Form::Examples,
        }
    }
}

/// A split in a form. Each line ends with a line feed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Emitted {
    /// The text to paste, with notes as comments where the form has comments.
    pub text: String,
    /// The notes of a form without comments.
    pub notes: String,
}

/// Writes the split of a report in a form; empty without a split.
///
///
/// # Errors
/// [`EmitError`] when the form cannot hold the layers or `modules`.
pub fn emit(form: Form, report: &Report, modules: &Modules<'_>) -> Result<Emitted, EmitError> {
    let Some(split) = &report.split else {
        return Ok(Emitted::default());
    };
    let pipeline = Pipeline {
        report,
        split,
        modules,
        most_stages: None,
    };
    let lines = written(form, pipeline)?;
    let text = |is_apart: bool| {
        let lines = lines.iter().filter(|line| line.is_apart() == is_apart);
        let lines = lines.filter_map(|line| line.of(pipeline));
        lines.map(|line| line + "\n").collect()
    };
    Ok(Emitted {
        text: text(false),
        notes: text(true),
    })
}

/// Returns the lines of every split of the same layers into at most `most_stages` stages; empty
/// without a split.
///
/// # Errors
/// [`EmitError`] when the form cannot hold the layers.
pub(super) fn lines(
    form: Form,
    report: &Report,
    most_stages: usize,
) -> Result<Vec<Line>, EmitError> {
    let modules = &Modules::default();
    let pipeline = |split| Pipeline {
        report,
        split,
        modules,
        most_stages: Some(most_stages),
    };
    let split = report.split.as_ref();
    split.map_or(Ok(Vec::new()), |split| written(form, pipeline(split)))
}

fn written(form: Form, pipeline: Pipeline<'_>) -> Result<Vec<Line>, EmitError> {
    if pipeline.modules.after.is_some() && pipeline.report.pseudo_layers == PseudoLayers::NoneFirst
    {
        return Err(EmitError::NoOut);
    }
    let has_comments = !matches!(form, Form::Optimum | Form::TfStages);
    let mut notes = Lines::new(pipeline, Some(if has_comments { "# " } else { "" }));
    let mut text = Lines::new(pipeline, None);
    notes::begin(pipeline, &mut notes);
    if pipeline.split.unplaced.is_empty() {
        let (notes, text) = (&mut notes, &mut text);
        match form {
            Form::Examples => examples::write(pipeline, notes, text),
            Form::Optimum => optimum::write(pipeline, notes, text),
            Form::Poptorch => poptorch::write(pipeline, notes, text)?,
            Form::Popart => popart::write(pipeline, notes, text),
            Form::Keras => keras::write(pipeline, notes, text),
            Form::TfStages => tf_stages::write(pipeline, notes, text),
            Form::PipelineSplits => pipeline_splits::write(pipeline, notes, text),
        }
    }
    notes.all.append(&mut text.all);
    Ok(notes.all)
}

/// The layers whose outputs are kept when others are recomputed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checkpoints {
    None,
    /// Every layer.
    Layers,
    /// The last layer of each stage except the last stage, in PopART without a pipeline.
    Stages,
}

/// A split to write, and the report that contains it.
#[derive(Debug, Clone, Copy)]
struct Pipeline<'a> {
    report: &'a Report,
    split: &'a Split,
    modules: &'a Modules<'a>,
    /// With a number, the lines of every split of the same layers into at most that number of
    /// stages are written; `None` for the one split.
    most_stages: Option<usize>,
}

impl<'a> Pipeline<'a> {
    /// Returns every layer with its position, in order, without pseudo-layers.
    fn layers(self) -> impl Iterator<Item = (u32, &'a str)> {
        let stages = self.split.stages.iter();
        let all = stages.flat_map(|stage| stage.positions.clone().zip(&stage.layers));
        let named = all.filter_map(|(position, name)| Some((position, name.as_deref()?)));
        named.filter(move |&(position, _)| Some(position) != self.out())
    }

    /// Returns the position of Out, if it has a position of its own.
    fn out(self) -> Option<u32> {
        let last = self.split.stages.last()?.positions.end.checked_sub(1);
        last.filter(|_| self.report.pseudo_layers == PseudoLayers::InAndOut)
    }

    /// Returns the modules that a position calls; `None` if another framework recorded the profile,
    /// since its names are not module names in this form.
    fn calls(self, position: u32, framework: Framework) -> Option<&'a ModuleCalls> {
        let facts = self.report.pipeline.as_ref();
        let is_known = facts.is_none_or(|facts| facts.framework == framework);
        self.split
            .modules
            .get(position as usize)
            .filter(|_| is_known)
    }

    /// Returns the position of Out (the operations after the layers) in [`calls`](Self::calls).
    fn place_of_out(self) -> u32 {
        self.split.modules.len().saturating_sub(1) as u32
    }

    /// Returns the lowest and the highest number of stages of the splits to write.
    fn numbers_of_stages(self) -> (usize, usize) {
        let stages = self.split.stages.len();
        self.most_stages.map_or((stages, stages), |most| (1, most))
    }

    /// Returns the number of forward pipeline stages: one for each IPU, and one more if Out runs on
    /// the first IPU.
    fn forward_stages(self, stages: usize) -> usize {
        stages + usize::from(self.out_returns(stages))
    }

    /// Lists the IPU of each forward pipeline stage, with commas between.
    fn ipus_of_stages(self, stages: usize) -> String {
        let returns = self.out_returns(stages).then_some(0);
        let ipus: Vec<String> = (0..stages)
            .chain(returns)
            .map(|ipu| ipu.to_string())
            .collect();
        ipus.join(", ")
    }

    /// Returns the pipeline that the memory of the stages was computed for, if it trains the model.
    fn training(self) -> Option<memory::Pipeline> {
        let facts = self.report.pipeline.as_ref();
        facts
            .filter(|facts| facts.trains())
            .map(|facts| facts.pipeline())
    }

    /// Returns the number of micro-batches over which a training pipeline of this many stages
    /// accumulates gradients: the number of the step whose time is shown, rounded as the schedule
    /// requires (PopART's schedule if none was chosen). `None` for inference or an unknown use of
    /// the model.
    fn accumulation(self, stages: usize) -> Option<u64> {
        let facts = self.report.pipeline.as_ref();
        let facts = facts.filter(|facts| facts.is_training)?;
        let schedule = match facts.schedule {
            Schedule::None => Schedule::Popart,
            schedule => schedule,
        };
        let step = self.report.step.as_ref();
        let requested = step.filter(|step| !step.micro_batches_by_default);
        let wanted = requested.map_or(USUAL_MICRO_BATCHES, |step| step.micro_batches);
        let least = schedule.least_accumulation(self.forward_stages(stages)) as u64;
        Some(schedule.accumulation(least, wanted))
    }

    /// Is the model known to be used only for inference?
    fn is_inference(self) -> bool {
        let facts = self.report.pipeline.as_ref();
        facts.is_some_and(|facts| !facts.is_training)
    }

    /// Do stages of a training pipeline run one after the other?
    fn is_sequential(self) -> bool {
        self.training()
            .is_some_and(|training| training.schedule == Schedule::Sequential)
    }

    /// Returns the number of replicas that share the weights.
    fn replicas(self) -> u64 {
        self.training()
            .map_or(1, |training| training.replicas.max(1))
    }

    /// Returns the layers whose outputs are kept when others are recomputed.
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

    /// With this many stages, does Out run on the first IPU after the last stage on another?
    fn out_returns(self, stages: usize) -> bool {
        self.report.pseudo_layers == PseudoLayers::OutWithIn && stages > 1
    }
}
