//! The cycles of stages, and of the step of a pipeline (docs/model.md, "Time").
//!
//! [`StageTimes`] knows the cycles of any range of positions by pass, with what the
//! pipeline recomputes. [`StepTime`] is what one step takes: all micro-batches through all
//! stages, the copies between them, and the update.

mod order;
mod recomputed;
mod slots;
mod split;
mod step;
mod streams;

#[cfg(test)]
mod tests;

pub use step::StepTime;

pub(crate) use order::Order;
pub(crate) use slots::{SlotKind, Slots};

use crate::memory::{Pipeline, Recompute};
use crate::model::{CyclesByLayer, PassCycles, Positions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The micro-batches of a step where nobody says how many: the fewest that every schedule
/// takes on 64 IPUs, so that times on any number of IPUs can be compared. A profile does not
/// record them.
pub const USUAL_MICRO_BATCHES: u64 = 128;

/// Numbers that a step depends on beside the cycles of the layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepOptions {
    /// How many micro-batches gradients are accumulated over, or an inference step has;
    /// `None` for [`USUAL_MICRO_BATCHES`].
    pub micro_batches: Option<u64>,
    /// Bytes that an IPU sends to a neighbour in a second, and receives from it.
    pub link_bandwidth: u64,
    /// The samples of a micro-batch.
    pub micro_batch: Option<u64>,
    /// How many replicas run side by side.
    pub replicas: u64,
    /// Bytes that an IPU loads in a second from memory outside the IPUs, and stores there,
    /// if that is known.
    pub streaming_bandwidth: Option<u64>,
    /// Nanoseconds that a step may take.
    pub max_nanoseconds: Option<u64>,
}

impl Default for StepOptions {
    fn default() -> Self {
        Self {
            micro_batches: None,
            link_bandwidth: 29_000_000_000,
            micro_batch: None,
            replicas: 1,
            streaming_bandwidth: None,
            max_nanoseconds: None,
        }
    }
}

/// The cycles of ranges of positions as stages of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageTimes {
    pipeline: Pipeline,
    is_training: bool,
    /// By pass (forward, backward, update), the cycles of all positions before each.
    before: [Vec<u128>; 3],
    /// The forward cycles of all positions before each that run again layer by layer: not those
    /// of Out, nor of what has no backward pass, as frozen layers.
    again_before: Vec<u128>,
    /// Those of Out, which is in the first position, and runs on the first IPU.
    out_in_first: Option<Passes>,
    /// Has Out the last position?
    has_out: bool,
    options: StepOptions,
    /// Cycles of a tile in a second, where the profile has them.
    clock_hertz: Option<u64>,
    /// Bytes over a cut after each position but the last, in the forward and in the
    /// backward pass; one more between the last position and Out, where Out is on the first IPU.
    cut_bytes: Vec<[u64; 2]>,
    /// Bytes of state of the optimizer of all positions before each, which stages stream where it
    /// is off the chip.
    state_before: Vec<u128>,
}

/// The cycles of a micro-batch by position: those of a stage are the sums over its positions
/// of `once` and, where one of them `recomputes`, of what is recomputed there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PositionCycles {
    /// Of the forward and the backward pass.
    pub once: Vec<u64>,
    /// Cycles of recomputation in a stage that other stages of the pipeline follow.
    pub recomputed: Vec<u64>,
    /// Cycles of recomputation in the last stage of the pipeline.
    pub recomputed_last: Vec<u64>,
    /// By position, does a stage with it recompute? Stages of frozen layers alone do not.
    pub recomputes: Vec<bool>,
    /// Is Out in the first position? Then the pipeline of several stages ends there, and
    /// something follows each of them.
    pub is_out_first: bool,
}

/// Cycles beyond any real number become the highest one.
pub(crate) fn narrow(cycles: u128) -> u64 {
    u64::try_from(cycles).unwrap_or(u64::MAX)
}

/// The sums of all numbers before each, and of all.
fn sums_before(all: impl Iterator<Item = u64>) -> Vec<u128> {
    let sums = all.scan(0u128, |sum, number| {
        *sum += u128::from(number);
        Some(*sum)
    });
    [0].into_iter().chain(sums).collect()
}

/// The cycles of a stage in one micro-batch; those of the update in a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passes {
    /// Of the forward pass.
    pub forward: u128,
    /// Of the backward pass.
    pub backward: u128,
    /// Of forward operations that run again before it.
    pub recomputed: u128,
    /// Of updates of weights, and of streaming state for them.
    pub update: u128,
}

impl Passes {
    /// Those of a micro-batch: all but the update.
    pub fn of_micro_batch(self) -> u128 {
        self.forward + self.backward + self.recomputed
    }
}

impl StageTimes {
    /// The times of a model whose layers take `cycles`, and whose cuts send `cut_bytes`
    /// ([`MemoryModel::cut_bytes_by_pass`](crate::memory::MemoryModel::cut_bytes_by_pass)), in
    /// `pipeline`.
    pub fn new(
        cycles: &CyclesByLayer,
        positions: &Positions,
        (pipeline, is_training): (Pipeline, bool),
        cut_bytes: Vec<[u64; 2]>,
        options: StepOptions,
    ) -> Self {
        let before =
            |pass: fn(&PassCycles) -> u64| sums_before(cycles.passes_by_layer.iter().map(pass));
        let out = cycles.out_in_first;
        Self {
            pipeline,
            is_training,
            before: [
                before(|passes| passes.forward),
                before(|passes| passes.backward),
                before(|passes| passes.update),
            ],
            again_before: Vec::new(),
            out_in_first: positions.out_is_first().then(|| Passes {
                forward: out.forward.into(),
                backward: out.backward.into(),
                recomputed: 0,
                update: out.update.into(),
            }),
            has_out: positions.out().is_some(),
            options,
            clock_hertz: cycles.clock_hertz,
            cut_bytes,
            state_before: Vec::new(),
        }
        .with_frozen()
    }

    /// The times where layers without a backward pass do not run again.
    fn with_frozen(mut self) -> Self {
        let mut sums = vec![0];
        for position in 0..self.positions() {
            let range = position..position + 1;
            let again = match self.sums(&range) {
                Some([_, backward, _]) if backward > 0 => self.forward_without_out(&range),
                _ => 0,
            };
            sums.push(sums[position] + again);
        }
        self.again_before = sums;
        self
    }

    /// Times of a model that runs forward alone and sends nothing: `cycles` by position.
    pub fn of_cycles(cycles: &[u64]) -> Self {
        let passes = |&forward: &u64| PassCycles {
            forward,
            ..PassCycles::default()
        };
        let cycles = CyclesByLayer {
            source: crate::model::CycleSource::Estimated,
            by_layer: cycles.to_vec(),
            exchange_by_layer: vec![0; cycles.len()],
            passes_by_layer: cycles.iter().map(passes).collect(),
            out_in_first: PassCycles::default(),
            unplaced: 0,
            unplaced_exchange: 0,
            other: 0,
            clock_hertz: None,
        };
        let names = vec![String::new(); cycles.by_layer.len()];
        let positions = Positions::classic(&crate::model::Layering::of(names, Vec::new()));
        let pipeline = (Pipeline::default(), false);
        Self::new(
            &cycles,
            &positions,
            pipeline,
            Vec::new(),
            StepOptions::default(),
        )
    }

    /// The times where stages may stream so many bytes of state of the optimizer, by position.
    pub fn streaming(self, state: &[u64]) -> Self {
        Self {
            state_before: sums_before(state.iter().copied()),
            ..self
        }
    }

    /// The times of the model in another pipeline.
    pub fn in_pipeline(&self, pipeline: Pipeline) -> Self {
        Self {
            pipeline,
            ..self.clone()
        }
    }

    /// Cycles of a tile in a second, where the profile has them.
    pub fn clock_hertz(&self) -> Option<u64> {
        self.clock_hertz
    }

    /// How many positions there are.
    pub fn positions(&self) -> usize {
        self.before[0].len() - 1
    }

    /// The pipeline.
    pub fn pipeline(&self) -> Pipeline {
        self.pipeline
    }

    /// The numbers that a step depends on beside the cycles.
    pub fn options(&self) -> StepOptions {
        self.options
    }

    /// Does it matter how many stages come after a stage?
    pub fn is_by_depth(&self) -> bool {
        self.is_training && self.pipeline.recompute != Recompute::None
    }

    /// The cycles of a stage with `after` stages after it, those of Out with In among
    /// them where Out runs on the first IPU; `None` where there are no such positions.
    pub fn stage(&self, range: &Range<usize>, after: usize) -> Option<Passes> {
        let [forward, backward, update] = self.sums(range)?;
        // One stage alone is no pipeline: Out is its end.
        let is_last = after == 0 && (self.out_in_first.is_none() || range.start == 0);
        Some(Passes {
            forward,
            backward,
            recomputed: self.recomputed(range, is_last),
            update: update.saturating_add(self.streaming_cycles(self.streamed_by(range))),
        })
    }

    /// The cycles that a stage takes for a micro-batch, with what is recomputed.
    pub fn cycles(&self, range: &Range<usize>, after: usize) -> Option<u128> {
        self.stage(range, after).map(Passes::of_micro_batch)
    }

    /// The cycles of a micro-batch by position, from which those of every stage add up.
    pub fn by_position(&self) -> PositionCycles {
        let positions = || (0..self.positions()).map(|position| position..position + 1);
        // In counts as in a stage that has the first layer too.
        let recomputed = |is_last| {
            let sum = move |range: &Range<usize>| self.recomputed_among_others(range, is_last);
            positions().map(move |range| match range.start {
                0 if self.positions() > 1 => narrow(sum(&(0..2)).saturating_sub(sum(&(1..2)))),
                _ => narrow(sum(&range)),
            })
        };
        let once = |range: Range<usize>| {
            let [forward, backward, _] = self.sums(&range).unwrap_or_default();
            narrow(forward + backward)
        };
        PositionCycles {
            once: positions().map(once).collect(),
            recomputed: recomputed(false).collect(),
            recomputed_last: recomputed(true).collect(),
            recomputes: positions()
                .map(|range| self.forward_again(&range) > 0)
                .collect(),
            is_out_first: self.out_in_first.is_some(),
        }
    }

    /// The forward, backward and update cycles of all positions of a range.
    fn sums(&self, range: &Range<usize>) -> Option<[u128; 3]> {
        let mut sums = [0; 3];
        for (sum, before) in sums.iter_mut().zip(&self.before) {
            *sum = before
                .get(range.end)?
                .checked_sub(*before.get(range.start)?)?;
        }
        Some(sums)
    }

    /// The forward cycles of Out, where this range has it.
    fn forward_of_out(&self, range: &Range<usize>) -> u128 {
        let last = self.positions().saturating_sub(1);
        let in_first = self.out_in_first.filter(|_| range.start == 0);
        match self.has_out && range.contains(&last) {
            true => self.sums(&(last..last + 1)).map_or(0, |[sum, ..]| sum),
            false => in_first.map_or(0, |out| out.forward),
        }
    }

    /// The cycles of a stage without Out and, for the first stage of several where Out
    /// runs on the first IPU, those of Out, which is the pipeline's last stage.
    pub(crate) fn parts(
        &self,
        range: &Range<usize>,
        after: usize,
    ) -> Option<(Passes, Option<Passes>)> {
        let mut stage = self.stage(range, after)?;
        let out = self.out_in_first.filter(|_| after > 0 && range.start == 0);
        if let Some(out) = out {
            stage.forward = stage.forward.saturating_sub(out.forward);
            stage.backward = stage.backward.saturating_sub(out.backward);
            stage.update = stage.update.saturating_sub(out.update);
        }
        Some((stage, out))
    }
}
