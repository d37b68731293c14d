//! The split that is written as configuration, and the properties of its pipeline that a
//! configuration depends on.

use crate::memory::{self, Recompute, Schedule};
use crate::model::{Framework, ModuleCalls, PseudoLayers};
use crate::report::{BestSplit, Report, Split};
use crate::time::USUAL_MICRO_BATCHES;

/// A split that is written as configuration, with the report that contains it.
#[derive(Debug, Clone, Copy)]
pub struct FormSource<'a> {
    pub report: &'a Report,
    pub split: &'a Split,
    /// The name of the model in the user's code.
    pub root: &'a str,
    /// With a number, the configuration is written for every split of the layers of `split` into at
    /// most this number of stages; with `None`, only for `split`.
    pub most_stages: Option<usize>,
    /// The split that the user's code makes of the configuration, if the form cannot say `split`.
    pub other: Option<&'a BestSplit>,
}

impl<'a> FormSource<'a> {
    /// Returns the source of a form for the split of `report`; `None` if the report has no split.
    pub fn of(report: &'a Report, root: &'a str) -> Option<Self> {
        Some(Self {
            report,
            split: report.split.as_ref()?,
            root,
            most_stages: None,
            other: None,
        })
    }

    /// Returns each layer with its position in the layer order, without In and Out.
    pub fn layers(self) -> impl Iterator<Item = (u32, &'a str)> {
        self.split
            .stages
            .iter()
            .flat_map(|stage| stage.positions.clone().zip(&stage.layers))
            .filter_map(|(position, name)| Some((position, name.as_deref()?)))
            .filter(move |&(position, _)| Some(position) != self.out())
    }

    /// Returns the layers as [`layers`](Self::layers) does, then Out if it has its own position.
    pub fn layers_and_out(self) -> impl Iterator<Item = (u32, &'a str)> {
        self.layers().chain(self.out().map(|out| (out, "Out")))
    }

    /// Returns the position of Out in the layer order; `None` if Out has no position of its own.
    pub fn out(self) -> Option<u32> {
        self.split
            .stages
            .last()?
            .positions
            .end
            .checked_sub(1)
            .filter(|_| self.report.pseudo_layers == PseudoLayers::InAndOut)
    }

    /// Returns the modules that a position of the layer order calls. `framework` is the framework
    /// that the form is for; `None` if another framework recorded the profile, since its names are
    /// no module names in this form, or if the position does not exist.
    pub fn calls(self, position: u32, framework: Framework) -> Option<&'a ModuleCalls> {
        let is_known = self.report.framework().is_none_or(|own| own == framework);
        self.split
            .modules
            .get(position as usize)
            .filter(|_| is_known)
    }

    /// Returns the position of Out, the operations after the layers, for [`calls`](Self::calls):
    /// after all layers, even if Out runs on the first IPU.
    pub fn place_of_out(self) -> u32 {
        self.split.modules.len().saturating_sub(1) as u32
    }

    /// Returns the number of forward pipeline stages of a split into `stages` stages: one for each
    /// IPU, and one more if Out runs on the first IPU.
    pub fn forward_stages(self, stages: usize) -> usize {
        stages + usize::from(self.out_returns(stages))
    }

    /// Returns the training pipeline that the memory of the stages was computed for; `None` if it
    /// is unknown, for inference, and without a pipeline.
    pub fn training(self) -> Option<memory::Pipeline> {
        let facts = self.report.pipeline.as_ref();
        Some(facts.filter(|facts| facts.trains())?.pipeline)
    }

    /// Returns the number of micro-batches over which a training pipeline of `stages` stages
    /// accumulates gradients: the number that the user gave, or else [`USUAL_MICRO_BATCHES`],
    /// raised to what the schedule needs (PopART's schedule if there is none). `None` for
    /// inference, or if the report has no pipeline.
    pub fn accumulation(self, stages: usize) -> Option<u64> {
        let facts = self.report.pipeline.as_ref();
        let facts = facts.filter(|facts| facts.is_training)?;
        let schedule = match facts.pipeline.schedule {
            Schedule::None => Schedule::Popart,
            schedule => schedule,
        };
        let wanted = match &self.report.step {
            Some(step) if step.given_micro_batches.is_some() => step.micro_batches,
            _ => USUAL_MICRO_BATCHES,
        };
        let least = schedule.least_accumulation(self.forward_stages(stages)) as u64;
        Some(schedule.accumulation(least, wanted))
    }

    /// Returns the available memory proportion of each IPU for a split into `stages` stages; empty if
    /// unknown.
    pub fn amps(self, stages: usize) -> Vec<f64> {
        let of_split = self.split.stages.iter().map(|stage| stage.amp);
        let amps: Vec<f64> = of_split.collect::<Option<_>>().unwrap_or_default();
        match amps.first() {
            // If the stages have the same proportion, the stages of any other split have it, too.
            Some(&first) if amps.iter().all(|&amp| amp == first) => vec![first; stages],
            _ => amps,
        }
    }

    /// Returns whether the stages of the pipeline run one after the other, without overlap.
    pub fn is_sequential(self) -> bool {
        self.report.schedule() == Some(Schedule::Sequential)
    }

    /// Returns the number of replicas that share optimizer state, at least 1; 1 for inference.
    pub fn replicas(self) -> u64 {
        self.training().map_or(1, |own| own.replicas.max(1))
    }

    /// Returns the layers whose outputs the pipeline keeps as checkpoints, from which recomputation
    /// starts: with `Layer`, every layer; with `Stage`, the last layer of each stage except the last
    /// stage, as PopART without a pipeline needs it.
    pub fn checkpoints(self) -> Recompute {
        match self.training().map(|own| own.recompute) {
            Some(Recompute::Stage) if !self.is_sequential() => Recompute::None,
            recompute => recompute.unwrap_or_default(),
        }
    }

    /// Returns whether, in a split into `stages` stages, Out runs on the first IPU after the last
    /// stage has run on another.
    pub fn out_returns(self, stages: usize) -> bool {
        self.report.pseudo_layers == PseudoLayers::OutWithIn && stages > 1
    }
}
