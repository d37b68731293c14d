//! Computes the cycles of stages, and the cycles of one step of a pipeline (docs/model.md, "Time").
//!
//! [`StageTimes`] has the cycles of any stage by pass, including recomputation. [`StepTime`] has
//! the cycles of one step: all micro-batches through all stages, the copies between stages, and the
//! weight update.

mod step;

#[cfg(test)]
pub(crate) mod tests;

pub use step::StepTime;

pub(crate) use step::{Rate, SlotKind, Slots};

use crate::{
    memory::{Pipeline, Recompute, StatePlace},
    model::{CyclesByLayer, Positions},
};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Number of micro-batches in a step if the user gives no number, since a profile does not record
/// the number. It is the fewest micro-batches with which every schedule can run on 64 IPUs, so that
/// times on any number of IPUs can be compared.
pub const USUAL_MICRO_BATCHES: u64 = 128;

/// Numbers that the time of a step (all micro-batches and one weight update) depends on, besides
/// the cycles of layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepOptions {
    /// Number of micro-batches in one step (over which training accumulates gradients). `None`
    /// stands for `usual_micro_batches`.
    pub micro_batches: Option<u64>,
    /// Number of micro-batches in one step if the user gives no number.
    pub usual_micro_batches: u64,
    /// Bytes per second that an IPU can send over its links; it can receive as many at the same
    /// time.
    pub link_bandwidth: u64,
    /// Number of samples in the profile's micro-batch; `None` if unknown.
    pub micro_batch: Option<u64>,
    /// Bytes per second that an IPU loads from memory off the chip, or stores there; `None` if
    /// unknown.
    pub streaming_bandwidth: Option<u64>,
}

impl Default for StepOptions {
    fn default() -> Self {
        Self {
            micro_batches: None,
            usual_micro_batches: USUAL_MICRO_BATCHES,
            link_bandwidth: 29_000_000_000,
            micro_batch: None,
            streaming_bandwidth: None,
        }
    }
}

impl StepOptions {
    /// Converts these settings of a pipeline step to a profile whose micro-batch has `samples`
    /// samples. The numbers of micro-batches are scaled and rounded up, so that a step does not
    /// have fewer samples than before. Returns the settings unchanged if the old or the new number
    /// of samples is unknown.
    pub fn with_size(self, samples: Option<u64>) -> Self {
        let Some((samples, own)) = samples.zip(self.micro_batch) else {
            return self;
        };
        let converted = |count: u64| count.saturating_mul(own).div_ceil(samples.max(1));
        Self {
            micro_batches: self.micro_batches.map(converted),
            usual_micro_batches: converted(self.usual_micro_batches),
            micro_batch: Some(samples),
            ..self
        }
    }
}

/// The cycles of a model in a pipeline, from which the cycles of any stage (range of positions: In,
/// layers, Out) follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageTimes {
    pipeline: Pipeline,
    is_training: bool,
    /// Prefix sums of cycles and bytes: entry `i` has the sums over the positions (In, layers, Out)
    /// before position `i`. The sums of a stage are the difference of two entries.
    before: Vec<Sums>,
    /// Cycles of Out (the operations after the last layer) if Out runs on the first IPU, otherwise
    /// `None`. The cycles of position 0 in the prefix sums `before` include them.
    out_in_first: Option<Passes>,
    options: StepOptions,
    /// Clock frequency of a tile in Hz; `None` if the profile does not record it.
    pub clock_hertz: Option<u64>,
    /// One entry per cut (split point): the bytes that the cut sends between IPUs for one
    /// micro-batch, first in the forward pass, then in the backward pass. The first cut is before
    /// position 1. If Out (the operations after the last layer) is on the first IPU, an additional
    /// last entry is for the cut between the last layer and Out.
    cut_bytes: Vec<[u64; 2]>,
}

/// Sums over consecutive positions (In, layers, Out), by index:
///
/// - 0: forward cycles
/// - 1: backward cycles
/// - 2: cycles of the weight update
/// - 3: forward cycles that run again if each layer is recomputed, without those of Out and of
///   layers without a backward pass
/// - 4: bytes of optimizer state, which stages stream if the state is off the chip; 0 if unknown
/// - 5: forward cycles without those of Out
type Sums = [u128; 6];

/// Cycles of one micro-batch by position (In, layers, Out), from which the cycles of any stage
/// follow: the sum of `once` over the positions of the stage. If `recomputes` is true for any of
/// them, also add the sum of `recomputed` or, for the last stage of the pipeline, of
/// `recomputed_last`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PositionCycles {
    /// One entry per position (In, layers, Out): cycles of the forward and the backward pass,
    /// without recomputation.
    pub once: Vec<u64>,
    /// One entry per position (In, layers, Out): cycles that the position adds to the recomputation
    /// of its stage, if the stage is not the last of the pipeline.
    pub recomputed: Vec<u64>,
    /// One entry per position (In, layers, Out): cycles that the position adds to the recomputation
    /// of its stage, if the stage is the last of the pipeline.
    pub recomputed_last: Vec<u64>,
    /// One entry per position (In, layers, Out): whether the position makes its stage recompute,
    /// because its backward pass needs its forward pass again. A stage of frozen layers only does
    /// not recompute.
    pub recomputes: Vec<bool>,
    /// Further numbers, besides the cycles by position, from which the time of a whole step
    /// follows. `null` if Out (the operations after the last layer) runs on the first IPU or
    /// optimizer state is streamed, since the time then depends on more than these numbers.
    pub step: Option<StepNumbers>,
    /// Whether Out (the operations after the last layer) runs on the first IPU. The cycles of the
    /// first position then include those of Out. If a split has several stages, Out is the last
    /// stage of the pipeline, after all of them. `recomputed_last` then only applies to a split
    /// into a single stage.
    pub is_out_first: bool,
}

/// Numbers from which the time of a step follows, besides the cycles of its stages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StepNumbers {
    /// One entry per position (In, layers, Out): cycles of the backward pass of one micro-batch,
    /// without recomputation.
    pub backward: Vec<u64>,
    /// One entry per position (In, layers, Out): cycles of the weight update of one step.
    pub update: Vec<u64>,
    /// Whether all IPUs update their weights at the same time; otherwise one IPU after the other.
    pub updates_side_by_side: bool,
    /// One entry per position from 1 on: bytes that a cut before this position sends in the forward
    /// pass and in the backward pass of one micro-batch.
    pub cut_bytes: Vec<[u64; 2]>,
    /// Bytes per second that an IPU sends over its links, and at the same time receives.
    pub link_bandwidth: u64,
    /// Number of micro-batches of one step, by number of stages: entry 0 is for 1 stage.
    pub micro_batches: Vec<u64>,
}

/// Converts a number of cycles to 64 bits; numbers that do not fit become `u64::MAX`.
pub(crate) fn narrow(cycles: u128) -> u64 {
    u64::try_from(cycles).unwrap_or(u64::MAX)
}

/// Cycles of a stage by pass. The cycles of the forward and the backward pass are for one
/// micro-batch, the cycles of the weight update are for one step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passes {
    /// Cycles of the forward pass of a stage for one micro-batch.
    pub forward: u128,
    /// Cycles of the backward pass of a stage for one micro-batch, without recomputation.
    pub backward: u128,
    /// Cycles of the forward operations of a stage that run again for the backward pass of one
    /// micro-batch.
    pub recomputed: u128,
    /// Cycles of the weight update of one step, including loading and storing optimizer state that
    /// is off the chip.
    pub update: u128,
}

impl Passes {
    /// Returns the cycles that a stage takes for one micro-batch, in all passes and without the
    /// weight update.
    pub fn of_micro_batch(self) -> u128 {
        self.forward + self.backward + self.recomputed
    }
}

impl StageTimes {
    /// Computes the times of a model in `pipeline`, without streamed optimizer state, which
    /// [`streaming`](Self::streaming) adds. `cycles` has the cycles of one micro-batch by position
    /// (In, a layer or Out), and `is_training` tells whether there is a backward pass. `cut_bytes`
    /// has one entry per cut (split point): the bytes that the cut sends in the forward and in the
    /// backward pass
    /// ([`MemoryModel::cut_bytes_by_pass`](crate::memory::MemoryModel::cut_bytes_by_pass)).
    pub fn new(
        cycles: &CyclesByLayer,
        positions: &Positions,
        (pipeline, is_training): (Pipeline, bool),
        cut_bytes: Vec<[u64; 2]>,
        options: StepOptions,
    ) -> Self {
        let out = cycles.out_in_first;
        let out_in_first = positions.out_is_first().then(|| Passes {
            forward: out.forward.into(),
            backward: out.backward.into(),
            recomputed: 0,
            update: out.update.into(),
        });
        let (mut sums, mut before) = (Sums::default(), vec![Sums::default()]);
        for (position, of) in cycles.passes_by_layer.iter().enumerate() {
            let without_out = match position {
                _ if Some(position) == positions.out() => 0,
                0 if out_in_first.is_some() => of.forward.saturating_sub(out.forward),
                _ => of.forward,
            };
            let again = if of.backward == 0 { 0 } else { without_out };
            let added = [of.forward, of.backward, of.update, again, 0, without_out];
            sums = std::array::from_fn(|kind| sums[kind] + u128::from(added[kind]));
            before.push(sums);
        }
        Self {
            pipeline,
            is_training,
            before,
            out_in_first,
            options,
            clock_hertz: cycles.clock_hertz,
            cut_bytes,
        }
    }

    /// Adds the optimizer state to these times. `state` has its bytes by position (In, layers,
    /// Out). If the state is off the chip, each stage loads and stores its own in the weight
    /// update.
    pub fn streaming(mut self, state: &[u64]) -> Self {
        let mut sum = 0;
        for (before, &bytes) in self.before.iter_mut().skip(1).zip(state) {
            sum += u128::from(bytes);
            before[4] = sum;
        }
        self
    }

    /// Returns the times of the same model in `pipeline`. The cycles of positions are unchanged.
    pub fn in_pipeline(&self, pipeline: Pipeline) -> Self {
        Self {
            pipeline,
            ..self.clone()
        }
    }

    /// Returns the set of all passes that a stage runs for a micro-batch (forward and, in training,
    /// backward), as an index into [`Passes::by_set`].
    pub(crate) fn all_passes(&self) -> usize {
        if self.is_training { 3 } else { 1 }
    }

    /// Returns the number of positions in the layer order: In, the layers and Out.
    pub fn positions(&self) -> usize {
        self.before.len() - 1
    }

    /// Returns whether the cycles of a stage depend on the number of stages after it. This is so in
    /// training with recomputation, because the last stage recomputes less than the others.
    pub fn is_by_depth(&self) -> bool {
        self.is_training && self.pipeline.recompute != Recompute::None
    }

    /// Returns the cycles of one micro-batch by position (In, layers, Out), from which the cycles
    /// of any stage follow.
    pub fn by_position(&self) -> PositionCycles {
        // In (the operations before the first layer) is recomputed together with the first layer.
        // So its cycles are those that a stage of In and the first layer recomputes, minus those
        // that a stage of only the first layer recomputes.
        let recomputed = |is_last| {
            let sum = |range: &Range<usize>| self.recomputed_among_others(range, is_last);
            self.of_each(|range| match range.start {
                0 if self.positions() > 1 => sum(&(0..2)).saturating_sub(sum(&(1..2))),
                _ => sum(range),
            })
        };
        let again = self.of_each(|range| self.forward_again(range));
        PositionCycles {
            once: self.of_each(|range| self.sum(range, 0) + self.sum(range, 1)),
            recomputed: recomputed(false),
            recomputed_last: recomputed(true),
            recomputes: again.into_iter().map(|cycles| cycles > 0).collect(),
            step: self.step_numbers(),
            is_out_first: self.out_in_first.is_some(),
        }
    }

    /// Calls `cycles` for each position (In, a layer or Out), as a range of one position, and
    /// returns the results. A result that does not fit in 64 bits becomes [`u64::MAX`].
    fn of_each(&self, cycles: impl Fn(&Range<usize>) -> u128) -> Vec<u64> {
        (0..self.positions())
            .map(|position| narrow(cycles(&(position..position + 1))))
            .collect()
    }

    fn step_numbers(&self) -> Option<StepNumbers> {
        if self.out_in_first.is_some() || self.pipeline.state.is_off_chip() {
            return None;
        }
        Some(StepNumbers {
            backward: self.of_each(|range| self.sum(range, 1)),
            update: self.of_each(|range| self.sum(range, 2)),
            updates_side_by_side: self.updates_side_by_side(),
            cut_bytes: self.cut_bytes.clone(),
            link_bandwidth: self.options.link_bandwidth,
            micro_batches: (1..=self.positions())
                .map(|stages| self.micro_batches(stages))
                .collect(),
        })
    }

    /// Computes the cycles of the stage of positions `range`, which has `after` stages after it in
    /// the split. If Out (the operations after the last layer) runs on the first IPU, the first
    /// stage also has the cycles of Out. Returns `None` if positions do not exist.
    pub fn stage(&self, range: &Range<usize>, after: usize) -> Option<Passes> {
        let [forward, backward, update, ..] = self.sums(range)?;
        // If Out (the operations after the last layer) is on the first IPU, and the split has
        // several stages, Out is one more stage of the pipeline, after all stages of the split.
        let is_last = after == 0 && (self.out_in_first.is_none() || range.start == 0);
        Some(Passes {
            forward,
            backward,
            recomputed: match self.forward_again(range) {
                0 => 0,
                _ => self.recomputed_among_others(range, is_last),
            },
            update: update.saturating_add(self.streaming_cycles(self.streamed_by(range))),
        })
    }

    fn sums(&self, range: &Range<usize>) -> Option<Sums> {
        let (start, end) = (self.before.get(range.start)?, self.before.get(range.end)?);
        (range.start <= range.end).then(|| std::array::from_fn(|kind| end[kind] - start[kind]))
    }

    fn sum(&self, range: &Range<usize>, kind: usize) -> u128 {
        self.sums(range).map_or(0, |sums| sums[kind])
    }

    /// Returns the cycles of the stage of positions `range`, which has `after` stages after it, and
    /// separately those of Out (the operations after the last layer) if Out runs on the same IPU as
    /// a stage of its own. This is so for the first of several stages if Out runs on the first IPU.
    /// Returns `None` if positions do not exist.
    pub(crate) fn stage_and_out(
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

    /// Returns the cycles that the positions `range` add to the recomputation of their stage. The
    /// caller checks that the stage recomputes: a stage without a backward pass does not. `is_last`
    /// states whether the stage is the last of the pipeline.
    fn recomputed_among_others(&self, range: &Range<usize>, is_last: bool) -> u128 {
        match self.pipeline.recompute {
            _ if !self.is_by_depth() => 0,
            Recompute::Stage if is_last => 0,
            Recompute::Stage => self.sum(range, 5),
            // If each layer is recomputed, the last stage recomputes its layers too, but not Out
            // (the operations after the last layer), which comes after the last checkpoint.
            _ => self.forward_again(range),
        }
    }

    /// Returns the forward cycles of the positions `range` that run again if each layer is
    /// recomputed:
    ///
    /// - Positions with a backward pass run again, since that pass needs the results.
    /// - In (the operations before the first layer) also runs again if the first layer does.
    /// - Out (the operations after the last layer) does not run again.
    fn forward_again(&self, range: &Range<usize>) -> u128 {
        let again = |range: &Range<usize>| self.sum(range, 3);
        // Recomputing the first layer starts at the inputs of the model, so it includes In (the
        // operations before the first layer) even if In has no backward pass.
        let runs_in =
            range.start == 0 && range.end > 1 && again(&(0..1)) == 0 && again(&(1..2)) > 0;
        again(range) + u128::from(runs_in) * self.sum(&(0..1), 5)
    }

    /// Returns the bytes that the stage of positions `range` loads from memory off the chip, plus
    /// the bytes that it stores there, in one weight update on one replica. Returns 0 if optimizer
    /// state is on the chip.
    fn streamed_by(&self, range: &Range<usize>) -> u128 {
        let parts = match self.pipeline.state {
            StatePlace::OnChip | StatePlace::Sharded => return 0,
            StatePlace::OffChip => 1,
            StatePlace::ShardedOffChip => self.pipeline.replicas.max(1),
        };
        2 * self.sum(range, 4).div_ceil(parts.into())
    }

    /// Returns the cycles that an IPU takes to load or store `bytes` of memory off the chip; 0 if
    /// the bandwidth or the clock frequency is unknown.
    fn streaming_cycles(&self, bytes: u128) -> u128 {
        self.options
            .streaming_bandwidth
            .zip(self.clock_hertz)
            .map_or(0, |(bandwidth, clock)| {
                bytes
                    .saturating_mul(clock.into())
                    .div_ceil(bandwidth.max(1).into())
            })
    }
}
