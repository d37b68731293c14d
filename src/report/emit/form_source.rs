//! Defines the split that `--emit` writes as configuration, and the properties of its pipeline that
//! the configuration depends on.

use crate::{
    memory::{Pipeline, Recompute, Schedule},
    model::{Framework, ModuleCalls, PseudoLayers},
    report::{BestSplit, Report, Split},
    time::USUAL_MICRO_BATCHES,
};

/// A split that is written as configuration, with the report that contains it.
#[derive(Debug, Clone, Copy)]
pub struct FormSource<'a> {
    pub report: &'a Report,
    pub split: &'a Split,
    /// The name of the model in the user's code, from which paths of modules start.
    pub root: &'a str,
    /// For an HTML page, the configuration is written for every split of the model's layers into at
    /// most this number of stages. `None` if only `split` is written.
    pub most_stages: Option<usize>,
    /// The split that the user's code would make of the configuration, if the form of `--emit`
    /// cannot express `split`; otherwise `None`.
    pub other: Option<&'a BestSplit>,
}

impl<'a> FormSource<'a> {
    /// Returns the split of `report` as the only split to write as configuration; `None` if the
    /// report has no split. `root` is the name of the model in the user's code.
    pub fn of(report: &'a Report, root: &'a str) -> Option<Self> {
        Some(Self {
            report,
            split: report.split.as_ref()?,
            root,
            most_stages: None,
            other: None,
        })
    }

    /// Returns the layers without In and Out, each as its position in the layer order and its name.
    pub fn layers(self) -> impl Iterator<Item = (u32, &'a str)> {
        self.split
            .stages
            .iter()
            .flat_map(|stage| stage.positions.clone().zip(&stage.layers))
            .filter_map(|(position, name)| Some((position, name.as_deref()?)))
            .filter(move |&(position, _)| Some(position) != self.out())
    }

    /// Returns the layers, each as its position in the layer order and its name, then Out (the
    /// operations after the last layer) if Out has a position of its own.
    pub fn layers_and_out(self) -> impl Iterator<Item = (u32, &'a str)> {
        self.layers().chain(self.out().map(|out| (out, "Out")))
    }

    /// Returns the position of Out in the layer order; `None` if Out has none of its own, since it
    /// runs with In or with the last layer.
    pub fn out(self) -> Option<u32> {
        self.split
            .stages
            .last()?
            .positions
            .end
            .checked_sub(1)
            .filter(|_| self.report.pseudo_layers == PseudoLayers::InAndOut)
    }

    /// Returns the modules of the model's code that run at a position of the layer order (In, a
    /// layer or Out). Returns `None` if there is no such position, or if the profile was recorded
    /// with a framework other than `framework`, since a configuration needs the module names of its
    /// own framework.
    pub fn calls(self, position: u32, framework: Framework) -> Option<&'a ModuleCalls> {
        (self.split.modules.get(position as usize))
            .filter(|_| self.report.framework().is_none_or(|own| own == framework))
    }

    /// Returns the index of Out (the operations after the last layer) in the split's list
    /// `modules`. It is the last entry, even if Out runs on the first IPU.
    pub fn place_of_out(self) -> u32 {
        self.split.modules.len().saturating_sub(1) as u32
    }

    /// Returns the number of forward pipeline stages of a split into `stages` stages. If Out (the
    /// operations after the last layer) runs on the first IPU after the last stage, Out is one more
    /// forward stage.
    pub fn forward_stages(self, stages: usize) -> usize {
        stages + usize::from(self.out_returns(stages))
    }

    /// Returns the training pipeline for which the memory of stages was computed; `None` for
    /// inference, without a pipeline, or if the pipeline is unknown.
    pub fn training(self) -> Option<Pipeline> {
        let facts = self.report.pipeline.as_ref()?;
        facts.trains().then_some(facts.pipeline)
    }

    /// Returns the number of micro-batches over which a training pipeline of `stages` stages
    /// accumulates gradients. It is the number that the user gave, by default 128
    /// ([`USUAL_MICRO_BATCHES`]), raised to what the schedule needs. A pipeline without a schedule
    /// counts as one with PopART's schedule. Returns `None` for inference, or if the report has no
    /// pipeline.
    pub fn accumulation(self, stages: usize) -> Option<u64> {
        let facts = (self.report.pipeline.as_ref()).filter(|facts| facts.is_training)?;
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

    /// Returns the available memory proportion of each IPU for a split into `stages` stages; an
    /// empty list if the proportions are unknown.
    pub fn amps(self, stages: usize) -> Vec<f64> {
        let own = &self.split.stages;
        (0..stages)
            .filter_map(|stage| own.get(stage).or(own.first())?.amp)
            .collect()
    }

    /// Returns the number of replicas that share optimizer state; 1 for inference, or if replicas
    /// share no state.
    pub fn replicas(self) -> u64 {
        self.training().map_or(1, |own| own.replicas.max(1))
    }

    /// Returns which layers have outputs that the configuration must declare as checkpoints, from
    /// which PopART recomputes:
    /// - `Layer`: all layers
    /// - `Stage`, only with the schedule `sequential`: the last layer of each stage except the last
    ///   stage
    /// - `None`: no layer
    pub fn checkpoints(self) -> Recompute {
        match self.training().map(|own| own.recompute) {
            Some(Recompute::Stage) if !self.report.is_sequential() => Recompute::None,
            recompute => recompute.unwrap_or_default(),
        }
    }

    /// Returns whether Out (the operations after the last layer) runs on the first IPU, after the
    /// last stage has run on another IPU.
    pub fn out_returns(self, stages: usize) -> bool {
        self.report.pseudo_layers == PseudoLayers::OutWithIn && stages > 1
    }
}
