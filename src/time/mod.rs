//! Cycles of stages, and of the step of a pipeline (docs/model.md, "Time").
//!
//! [`StageTimes`] has the cycles of any range of positions by pass, including recomputation.
//! [`StepTime`] has the cycles of one step: all micro-batches through all stages, the copies
//! between them, and the update.

mod slots;
mod stage;
mod step;

#[cfg(test)]
pub(crate) mod tests;

pub use step::StepTime;

pub(crate) use slots::{SlotKind, Slots};
pub(crate) use step::Rate;

use crate::memory::{Pipeline, Recompute};
use crate::model::{CyclesByLayer, PassCycles, Positions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Micro-batches of a step if none are requested: the fewest that every schedule takes on 64 IPUs,
/// so that times on any number of IPUs can be compared. A profile does not record them.
pub const USUAL_MICRO_BATCHES: u64 = 128;

/// Numbers that a step depends on, besides the cycles of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepOptions {
    /// Micro-batches over which gradients are accumulated, or of an inference step; `None` for
    /// [`USUAL_MICRO_BATCHES`].
    pub micro_batches: Option<u64>,
    /// Bytes per second that an IPU can send over its links, and that it can receive at the same
    /// time.
    pub link_bandwidth: u64,
    /// Samples of a micro-batch.
    pub micro_batch: Option<u64>,
    /// Number of replicas that run side by side.
    pub replicas: u64,
    /// Bytes per second that an IPU loads from, or stores to, memory off the chip; `None` if
    /// unknown.
    pub streaming_bandwidth: Option<u64>,
    /// Maximum duration of a step, in nanoseconds.
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

/// Cycles of ranges of positions as stages of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageTimes {
    pipeline: Pipeline,
    is_training: bool,
    /// By pass (forward, backward, update): prefix sums of cycles over positions.
    before: [Vec<u128>; 3],
    /// Prefix sums over positions of the forward cycles that run again if layers are recomputed one
    /// by one: without Out, and without layers that have no backward pass, such as frozen ones.
    again_before: Vec<u128>,
    /// Cycles of Out if it runs on the first IPU and so counts in the first position.
    out_in_first: Option<Passes>,
    /// Is Out the last position?
    has_out: bool,
    options: StepOptions,
    /// Clock of a tile in Hz; `None` if the profile lacks it.
    clock_hertz: Option<u64>,
    /// Bytes over the cut after each position but the last, in the forward and in the backward
    /// pass; with one more entry for the cut before Out if Out is on the first IPU.
    cut_bytes: Vec<[u64; 2]>,
    /// Prefix sums over positions of the bytes of optimizer state, which stages stream if it is off
    /// the chip.
    state_before: Vec<u128>,
}

/// The cycles of a micro-batch by position. A stage takes the sum of `once` over its positions and,
/// if one of them `recomputes`, also the sum of the recomputation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PositionCycles {
    /// Cycles of the forward and the backward pass.
    pub once: Vec<u64>,
    /// Cycles of recomputation in a stage that is not the last of the pipeline.
    pub recomputed: Vec<u64>,
    /// Cycles of recomputation in the last stage of the pipeline.
    pub recomputed_last: Vec<u64>,
    /// Does a stage with the position recompute? Stages with only frozen layers do not.
    pub recomputes: Vec<bool>,
    /// Further numbers for the time of a step; `None` if Out runs on the first IPU, or if optimizer
    /// state is streamed.
    pub step: Option<StepNumbers>,
    /// Is Out in the first position? Then a pipeline of several stages ends there, and every stage
    /// has a stage after it.
    pub is_out_first: bool,
}

/// Numbers for the time of a step, beside the cycles of its stages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepNumbers {
    /// Cycles of the backward pass of a micro-batch, by position.
    pub backward: Vec<u64>,
    /// Cycles of the weight update, by position.
    pub update: Vec<u64>,
    /// Do all IPUs update their weights at the same time?
    pub updates_side_by_side: bool,
    /// Bytes over a cut after each position except the last, in the forward and in the backward
    /// pass.
    pub cut_bytes: Vec<[u64; 2]>,
    /// Bytes per second that an IPU sends to a neighbour, and also receives from it.
    pub link_bandwidth: u64,
    /// Micro-batches of a step by the number of stages, from 1.
    pub micro_batches: Vec<u64>,
}

/// Cycles as 64 bits; larger values saturate.
pub(crate) fn narrow(cycles: u128) -> u64 {
    u64::try_from(cycles).unwrap_or(u64::MAX)
}

/// Prefix sums: before each number, and after the last.
fn sums_before(all: impl Iterator<Item = u64>) -> Vec<u128> {
    let sums = all.scan(0u128, |sum, number| {
        *sum += u128::from(number);
        Some(*sum)
    });
    [0].into_iter().chain(sums).collect()
}

/// Cycles of a stage: of its passes in one micro-batch, and of its update in one step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passes {
    /// Forward pass.
    pub forward: u128,
    /// Backward pass.
    pub backward: u128,
    /// Forward operations that run again before the backward pass.
    pub recomputed: u128,
    /// Updates of weights, and streaming of their state.
    pub update: u128,
}

impl Passes {
    /// Cycles of one micro-batch: all but the update.
    pub fn of_micro_batch(self) -> u128 {
        self.forward + self.backward + self.recomputed
    }
}

impl StageTimes {
    /// Times of a model in `pipeline`. `cut_bytes` has the bytes over each cut
    /// ([`MemoryModel::cut_bytes_by_pass`](crate::memory::MemoryModel::cut_bytes_by_pass)).
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
        let out_in_first = positions.out_is_first().then(|| Passes {
            forward: out.forward.into(),
            backward: out.backward.into(),
            recomputed: 0,
            update: out.update.into(),
        });
        let has_out = positions.out().is_some();
        let count = cycles.passes_by_layer.len();
        let again = |(position, passes): (usize, &PassCycles)| match position {
            _ if passes.backward == 0 || has_out && position + 1 == count => 0,
            0 if out_in_first.is_some() => passes.forward.saturating_sub(out.forward),
            _ => passes.forward,
        };
        let again = cycles.passes_by_layer.iter().enumerate().map(again);
        Self {
            pipeline,
            is_training,
            before: [
                before(|passes| passes.forward),
                before(|passes| passes.backward),
                before(|passes| passes.update),
            ],
            again_before: sums_before(again),
            out_in_first,
            has_out,
            options,
            clock_hertz: cycles.clock_hertz,
            cut_bytes,
            state_before: Vec::new(),
        }
    }

    /// Times if stages may stream optimizer state, in bytes by position.
    pub fn streaming(self, state: &[u64]) -> Self {
        Self {
            state_before: sums_before(state.iter().copied()),
            ..self
        }
    }

    /// Times of the model in another pipeline.
    pub fn in_pipeline(&self, pipeline: Pipeline) -> Self {
        Self {
            pipeline,
            ..self.clone()
        }
    }

    /// Clock of a tile in Hz; `None` if the profile lacks it.
    pub fn clock_hertz(&self) -> Option<u64> {
        self.clock_hertz
    }

    /// Number of positions.
    pub fn positions(&self) -> usize {
        self.before[0].len() - 1
    }

    /// Do the cycles of a stage depend on the number of stages after it?
    pub fn is_by_depth(&self) -> bool {
        self.is_training && self.pipeline.recompute != Recompute::None
    }

    /// Cycles of a micro-batch by position, which add up to the cycles of any stage.
    pub fn by_position(&self) -> PositionCycles {
        let positions = || (0..self.positions()).map(|position| position..position + 1);
        // In is counted as in a stage that also has the first layer.
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
            step: self.step_numbers(),
            is_out_first: self.out_in_first.is_some(),
        }
    }

    fn step_numbers(&self) -> Option<StepNumbers> {
        if self.out_in_first.is_some() || self.pipeline.state.is_off_chip() {
            return None;
        }
        let of_pass = |pass: usize| {
            let sums = self.before[pass].windows(2);
            sums.map(|sum| narrow(sum[1].saturating_sub(sum[0])))
                .collect()
        };
        let stages = 1..=self.positions();
        Some(StepNumbers {
            backward: of_pass(1),
            update: of_pass(2),
            updates_side_by_side: self.updates_side_by_side(),
            cut_bytes: self.cut_bytes.clone(),
            link_bandwidth: self.options.link_bandwidth,
            micro_batches: stages.map(|stages| self.micro_batches(stages)).collect(),
        })
    }
}
