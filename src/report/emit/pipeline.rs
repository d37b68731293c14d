//! The split that a form of configuration is written for, its pipeline, and what its configuration depends
//! on.

use super::module::Modules;
use crate::memory::{self, Recompute, Schedule};
use crate::model::{Framework, ModuleCalls, PseudoLayers};
use crate::report::sentences::Sentence;
use crate::report::{Report, Split, Units};
use crate::time::USUAL_MICRO_BATCHES;

/// The layers whose outputs are kept when others are recomputed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checkpoints {
    None,
    /// Every layer.
    Layers,
    /// The last layer of each stage except the last stage, in PopART without a pipeline.
    Stages,
}

/// A split to write, and the report that contains it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pipeline<'a> {
    pub(super) report: &'a Report,
    pub(super) split: &'a Split,
    pub(super) modules: &'a Modules<'a>,
    /// With a number, the lines of every split of the same layers into at most that number of
    /// stages are written; `None` for the one split.
    pub(super) most_stages: Option<usize>,
}

impl<'a> Pipeline<'a> {
    /// Returns every layer with its position, in order, without pseudo-layers.
    pub(super) fn layers(self) -> impl Iterator<Item = (u32, &'a str)> {
        let stages = self.split.stages.iter();
        let all = stages.flat_map(|stage| stage.positions.clone().zip(&stage.layers));
        let named = all.filter_map(|(position, name)| Some((position, name.as_deref()?)));
        named.filter(move |&(position, _)| Some(position) != self.out())
    }

    /// Returns the position of Out, if it has a position of its own.
    pub(super) fn out(self) -> Option<u32> {
        let last = self.split.stages.last()?.positions.end.checked_sub(1);
        last.filter(|_| self.report.pseudo_layers == PseudoLayers::InAndOut)
    }

    /// Returns the modules that a position calls; `None` if another framework recorded the profile,
    /// since its names are not module names in this form.
    pub(super) fn calls(self, position: u32, framework: Framework) -> Option<&'a ModuleCalls> {
        let facts = self.report.pipeline.as_ref();
        let is_known = facts.is_none_or(|facts| facts.recording.framework == framework);
        self.split
            .modules
            .get(position as usize)
            .filter(|_| is_known)
    }

    /// Returns the position of Out (the operations after the layers) in [`calls`](Self::calls).
    pub(super) fn place_of_out(self) -> u32 {
        self.split.modules.len().saturating_sub(1) as u32
    }

    /// Returns the lowest and the highest number of stages of the splits to write.
    pub(super) fn numbers_of_stages(self) -> (usize, usize) {
        let stages = self.split.stages.len();
        self.most_stages.map_or((stages, stages), |most| (1, most))
    }

    /// Returns the number of forward pipeline stages: one for each IPU, and one more if Out runs on
    /// the first IPU.
    pub(super) fn forward_stages(self, stages: usize) -> usize {
        stages + usize::from(self.out_returns(stages))
    }

    /// Lists the IPU of each forward pipeline stage, with commas between.
    pub(super) fn ipus_of_stages(self, stages: usize) -> String {
        let returns = self.out_returns(stages).then_some(0);
        let ipus: Vec<String> = (0..stages)
            .chain(returns)
            .map(|ipu| ipu.to_string())
            .collect();
        ipus.join(", ")
    }

    /// Returns the pipeline that the memory of the stages was computed for, if it trains the model.
    pub(super) fn training(self) -> Option<memory::Pipeline> {
        let facts = self.report.pipeline.as_ref();
        facts
            .filter(|facts| facts.trains())
            .map(|facts| facts.pipeline)
    }

    /// Returns the number of micro-batches over which a training pipeline of this many stages
    /// accumulates gradients: the number of the step whose time is shown, rounded as the schedule
    /// requires (PopART's schedule if none was chosen). `None` for inference or an unknown use of
    /// the model.
    pub(super) fn accumulation(self, stages: usize) -> Option<u64> {
        let facts = self.report.pipeline.as_ref();
        let facts = facts.filter(|facts| facts.is_training)?;
        let schedule = match facts.pipeline.schedule {
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
    pub(super) fn is_inference(self) -> bool {
        let facts = self.report.pipeline.as_ref();
        facts.is_some_and(|facts| !facts.is_training)
    }

    /// Do stages of a training pipeline run one after the other?
    pub(super) fn is_sequential(self) -> bool {
        self.training()
            .is_some_and(|training| training.schedule == Schedule::Sequential)
    }

    /// Returns the number of replicas that share the weights.
    pub(super) fn replicas(self) -> u64 {
        self.training()
            .map_or(1, |training| training.replicas.max(1))
    }

    /// Returns the layers whose outputs are kept when others are recomputed.
    pub(super) fn checkpoints(self) -> Checkpoints {
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
    pub(super) fn out_returns(self, stages: usize) -> bool {
        self.report.pseudo_layers == PseudoLayers::OutWithIn && stages > 1
    }

    /// Returns a sentence as plain text, with a capital letter and a full stop.
    pub(super) fn full_sentence(self, text: String) -> String {
        let sentence = Sentence::from(text).capital();
        sentence.plain(Units::Bytes, self.report.pseudo_layers) + "."
    }
}
