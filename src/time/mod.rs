//! The cycles of stages, and of the step of a pipeline (docs/model.md, "Time").
//!
//! [`StageTimes`] knows the cycles of any range of positions by pass, with what the
//! pipeline recomputes. [`StepTime`] is what one step takes: all micro-batches through all
//! stages, the copies between them, and the update.

mod slots;
mod step;
#[cfg(test)]
mod tests;

pub use step::StepTime;

pub(crate) use slots::{SlotKind, Slots};

use crate::memory::{Pipeline, Recompute, Schedule, Storage, Streamed};
use crate::model::{CyclesByLayer, PassCycles, Positions};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// What a step depends on beside the cycles of the layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepOptions {
    /// How many micro-batches gradients are accumulated over, or an inference step has;
    /// `None` for the fewest that the schedule allows for all IPUs.
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
    /// What a step may take.
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
    /// Those of Out, which is in the first position, and runs on the first IPU.
    out_in_first: Option<Passes>,
    /// Has Out the last position?
    has_out: bool,
    options: StepOptions,
    /// Cycles of a tile in a second, where the profile has them.
    clock_hertz: Option<u64>,
    /// Bytes over a cut after each position but the last, in the forward and in the
    /// backward pass.
    cut_bytes: Vec<[u64; 2]>,
    /// What stages stream if it is elsewhere: state of the optimizer and accumulators of all
    /// positions before each, and what ranges stash.
    streamed: Streams,
    /// For how many stages the schedule must have micro-batches enough.
    most_stages: usize,
}

/// The cycles of a micro-batch by position: those of a stage are the sums over its positions
/// of `once` and of what is recomputed there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PositionCycles {
    /// Of the forward and the backward pass.
    pub once: Vec<u64>,
    /// What is recomputed in a stage that other stages of the pipeline follow.
    pub recomputed: Vec<u64>,
    /// What is recomputed in the last stage of the pipeline.
    pub recomputed_last: Vec<u64>,
    /// Is Out in the first position? Then the pipeline of several stages ends there, and
    /// something follows each of them.
    pub is_out_first: bool,
}

/// What is beyond any real number of cycles is the highest.
pub(crate) fn narrow(cycles: u128) -> u64 {
    u64::try_from(cycles).unwrap_or(u64::MAX)
}

/// What stages stream, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Streams {
    state_before: Vec<u128>,
    accumulators_before: Vec<u128>,
    stash: Arc<[Vec<Vec<u64>>]>,
}

impl Streams {
    fn new(streamed: &Streamed) -> Self {
        let before = |all: &[u64]| {
            let mut sums = vec![0u128];
            for &own in all {
                sums.push(sums[sums.len() - 1] + u128::from(own));
            }
            sums
        };
        Self {
            state_before: before(&streamed.state),
            accumulators_before: before(&streamed.accumulators),
            stash: streamed.stash.as_slice().into(),
        }
    }
}

/// The bytes that a stage loads and stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct StreamedBytes {
    /// For the update.
    update: u128,
    /// In the forward pass of a micro-batch.
    forward: u128,
    /// In its backward pass.
    backward: u128,
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
    /// Of streaming what is elsewhere, in the forward and in the backward pass.
    pub streaming: [u128; 2],
}

impl Passes {
    /// Those of a micro-batch: all but the update and streaming.
    pub fn of_micro_batch(self) -> u128 {
        self.forward + self.backward + self.recomputed
    }
}

impl StageTimes {
    /// The times of a model whose layers take `cycles`, and whose cuts send `cut_bytes`
    /// (by position but the last; forward, backward), in `pipeline`.
    pub fn new(
        cycles: &CyclesByLayer,
        positions: &Positions,
        (pipeline, is_training): (Pipeline, bool),
        cut_bytes: Vec<[u64; 2]>,
        options: StepOptions,
    ) -> Self {
        let before = |pass: &dyn Fn(&PassCycles) -> u64| {
            let mut sums = vec![0u128];
            for own in &cycles.passes_by_layer {
                sums.push(sums[sums.len() - 1] + u128::from(pass(own)));
            }
            sums
        };
        let out = cycles.out_in_first;
        Self {
            pipeline,
            is_training,
            before: [
                before(&|own| own.forward),
                before(&|own| own.backward),
                before(&|own| own.update),
            ],
            out_in_first: positions.out_is_first().then(|| Passes {
                forward: out.forward.into(),
                backward: out.backward.into(),
                recomputed: 0,
                update: out.update.into(),
                streaming: [0; 2],
            }),
            has_out: positions.out().is_some(),
            options,
            clock_hertz: cycles.clock_hertz,
            cut_bytes,
            streamed: Streams::default(),
            most_stages: 1,
        }
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

    /// The same where a step has micro-batches enough for this number of split stages.
    pub fn for_stages(self, most_stages: usize) -> Self {
        Self {
            most_stages: most_stages.max(1).min(self.positions().max(1)),
            ..self
        }
    }

    /// The same where stages may stream these bytes.
    pub fn streaming(self, streamed: &Streamed) -> Self {
        Self {
            streamed: Streams::new(streamed),
            ..self
        }
    }

    /// What a stage loads and stores in this pipeline.
    fn streams(&self, range: &Range<usize>) -> StreamedBytes {
        let Pipeline {
            state,
            accumulators,
            stash,
            replicas,
            recompute,
            ..
        } = self.pipeline;
        let own = &self.streamed;
        let sum = |before: &[u128]| {
            let both = before.get(range.end).zip(before.get(range.start));
            both.map_or(0, |(end, start)| end.saturating_sub(*start))
        };
        let parts = match state.is_sharded() {
            true => u128::from(replicas.max(1)),
            false => 1,
        };
        let state_bytes = match state.is_off_chip() {
            true => sum(&own.state_before).div_ceil(parts),
            false => 0,
        };
        let kept = own.stash.get(recompute as usize);
        let kept = kept.and_then(|kept| kept.get(range.start)?.get(range.len().checked_sub(1)?));
        let kept = match stash {
            Storage::OffChip => kept.map_or(0, |&bytes| u128::from(bytes)),
            Storage::OnChip => 0,
        };
        let summed = match accumulators {
            Storage::OffChip => 2 * sum(&own.accumulators_before),
            Storage::OnChip => 0,
        };
        StreamedBytes {
            update: 2 * state_bytes,
            forward: kept,
            backward: kept + summed,
        }
    }

    /// The bytes that a step loads and stores on all IPUs of a replica.
    fn streamed_in_step(&self, stages: &[Range<usize>], micro_batches: u64) -> u128 {
        let of_stages = stages.iter().map(|range| {
            let own = self.streams(range);
            let through = (own.forward + own.backward).saturating_mul(micro_batches.into());
            own.update.saturating_add(through)
        });
        of_stages.fold(0, u128::saturating_add)
    }

    /// The cycles of so many bytes that are loaded or stored; none where it is not known how
    /// long that takes.
    fn streaming_cycles(&self, bytes: u128) -> u128 {
        let known = self.options.streaming_bandwidth.zip(self.clock_hertz);
        known.map_or(0, |(bandwidth, clock)| {
            let cycles = bytes.saturating_mul(clock.into());
            cycles.div_ceil(u128::from(bandwidth.max(1)))
        })
    }

    /// The same model in another pipeline.
    pub fn in_pipeline(&self, pipeline: Pipeline) -> Self {
        Self {
            pipeline,
            ..self.clone()
        }
    }

    /// The same with this number of micro-batches, where it is not left to the schedule.
    pub fn with(self, micro_batches: Option<u64>) -> Self {
        let options = StepOptions {
            micro_batches,
            ..self.options
        };
        Self { options, ..self }
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

    /// What a step depends on beside the cycles.
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
        let out_after = self.out_in_first.filter(|_| after > 0 || range.start > 0);
        let out_here = out_after.filter(|_| range.start == 0);
        let again = forward.saturating_sub(out_here.map_or(0, |out| out.forward));
        let streams = self.streams(range);
        Some(Passes {
            forward,
            backward,
            streaming: [streams.forward, streams.backward].map(|own| self.streaming_cycles(own)),
            recomputed: match self.pipeline.recompute {
                _ if !self.is_training => 0,
                Recompute::None => 0,
                _ if after > 0 || out_after.is_some() => again,
                Recompute::Stage => 0,
                // What follows the last checkpoint, the end of the last layer, is kept.
                Recompute::Layer => again.saturating_sub(self.forward_of_out(range)),
            },
            update: update.saturating_add(self.streaming_cycles(streams.update)),
        })
    }

    /// The cycles that a stage takes for a micro-batch, with what is recomputed.
    pub fn cycles(&self, range: &Range<usize>, after: usize) -> Option<u128> {
        self.stage(range, after).map(Passes::of_micro_batch)
    }

    /// The cycles of a micro-batch by position, from which those of every stage add up.
    pub fn by_position(&self) -> PositionCycles {
        let is_recomputed = self.is_by_depth();
        let is_last_recomputed = is_recomputed && self.pipeline.recompute == Recompute::Layer;
        let cycles = |own: u128, is_counted: bool| if is_counted { narrow(own) } else { 0 };
        let mut found = PositionCycles {
            is_out_first: self.out_in_first.is_some(),
            ..PositionCycles::default()
        };
        for position in 0..self.positions() {
            let range = position..position + 1;
            let [forward, backward, _] = self.sums(&range).unwrap_or_default();
            let of_out_first = match position {
                0 => self.out_in_first.map_or(0, |out| out.forward),
                _ => 0,
            };
            let of_out = match self.has_out && range.end == self.positions() {
                true => forward,
                false => of_out_first,
            };
            found.once.push(narrow(forward + backward));
            let again = forward.saturating_sub(of_out_first);
            found.recomputed.push(cycles(again, is_recomputed));
            let again = forward.saturating_sub(of_out);
            found
                .recomputed_last
                .push(cycles(again, is_last_recomputed));
        }
        found
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

    /// The forward cycles of Out, where this stage has it.
    fn forward_of_out(&self, range: &Range<usize>) -> u128 {
        let last = self.positions().saturating_sub(1);
        if self.has_out && range.contains(&last) {
            self.sums(&(last..last + 1))
                .map_or(0, |[forward, ..]| forward)
        } else {
            self.out_in_first.map_or(0, |out| out.forward)
        }
    }

    /// The cycles of a stage without Out and, for the first stage of several where Out
    /// runs on the first IPU, those of Out, which is the pipeline's last stage.
    pub(crate) fn parts(
        &self,
        range: &Range<usize>,
        after: usize,
    ) -> Option<(Passes, Option<Passes>)> {
        let mut own = self.stage(range, after)?;
        let out = self.out_in_first.filter(|_| after > 0 && range.start == 0);
        if let Some(out) = out {
            own.forward = own.forward.saturating_sub(out.forward);
            own.backward = own.backward.saturating_sub(out.backward);
            own.update = own.update.saturating_sub(out.update);
        }
        Some((own, out))
    }

    /// The stages of the pipeline that a split makes, by the IPU that they are on: one
    /// for each stage of the split and, where Out runs on the first IPU, Out last.
    fn pipeline_stages(&self, stages: &[Range<usize>]) -> Option<Vec<(usize, Passes)>> {
        let mut found = Vec::with_capacity(stages.len() + 1);
        let mut last = None;
        for (ipu, range) in stages.iter().enumerate() {
            let (own, out) = self.parts(range, stages.len() - 1 - ipu)?;
            found.push((ipu, own));
            last = last.or(out);
        }
        found.extend(last.map(|out| (0, out)));
        Some(found)
    }

    /// How many stages the pipeline of a split into this number of stages has.
    pub(crate) fn pipeline_depth(&self, stages: usize) -> usize {
        stages + usize::from(self.out_in_first.is_some() && stages > 1)
    }

    /// How the passes of a pipeline of this number of stages follow each other.
    pub(crate) fn order(&self) -> Order {
        match self.pipeline.schedule {
            Schedule::Popart => Order::Together { every: 1 },
            Schedule::TfGrouped => Order::Apart { every: 1 },
            Schedule::TfInterleaved => Order::Apart { every: 2 },
            Schedule::None if !self.is_training => Order::Together { every: 1 },
            Schedule::None | Schedule::Sequential => Order::OneAfterTheOther,
        }
        .of(self.is_training)
    }

    /// The micro-batches of a step for a split into this number of stages: those that
    /// were requested, or else the fewest for the maximum number of stages, rounded up
    /// to what the schedule allows for these.
    pub fn micro_batches(&self, stages: usize) -> u64 {
        let least = |stages: usize| {
            let depth = self.pipeline_depth(stages);
            let least = match self.pipeline.schedule {
                _ if !self.is_training => depth,
                Schedule::None => 1,
                _ if depth == 1 => 1,
                schedule => schedule.least_accumulation(depth),
            };
            least as u64
        };
        let (own, most) = (least(stages).max(1), least(self.most_stages).max(1));
        let wanted = self.options.micro_batches.unwrap_or(most).max(own);
        match self.pipeline.schedule {
            Schedule::TfGrouped | Schedule::TfInterleaved if self.is_training => {
                wanted.div_ceil(own).saturating_mul(own)
            }
            _ => wanted,
        }
    }

    /// What one step of a split takes; `None` where it has no stage, or positions that
    /// are not there.
    pub fn step(&self, stages: &[Range<usize>]) -> Option<StepTime> {
        let of_pipeline = self.pipeline_stages(stages)?;
        let micro_batches = self.micro_batches(stages.len());
        let (order, depth) = (self.order(), of_pipeline.len());
        let slots = Slots::new(order, depth, micro_batches);
        let period = Slots::of_one_micro_batch(order, depth);
        let update = self.update(&of_pipeline);
        let copy = self.copy_cycles(stages);
        StepTime::new(
            (&slots, &period),
            &of_pipeline,
            (micro_batches, copy, update),
        )
        .map(|own| StepTime {
            streamed: self.streamed_in_step(stages, micro_batches),
            ..own
        })
    }

    /// The cycles of the update: PopART updates the weights of one IPU after the other,
    /// TensorFlow those of all side by side.
    fn update(&self, stages: &[(usize, Passes)]) -> u128 {
        let of_stages = stages.iter().map(|(_, own)| own.update);
        if !self.updates_side_by_side() {
            return of_stages.sum();
        }
        let mut by_ipu = vec![0; stages.len()];
        for (ipu, own) in stages {
            by_ipu[*ipu] += own.update;
        }
        by_ipu.into_iter().max().unwrap_or(0)
    }

    /// Do all IPUs update their weights at the same time?
    pub(crate) fn updates_side_by_side(&self) -> bool {
        let schedule = self.pipeline.schedule;
        matches!(schedule, Schedule::TfGrouped | Schedule::TfInterleaved)
    }

    /// The cycles that stages take to send each other what crosses the cuts, in each
    /// slot: those of the IPU that sends or receives the most bytes. `None` where the
    /// clock of the target is not known, 0 without cuts.
    pub fn copy_cycles(&self, stages: &[Range<usize>]) -> Option<u128> {
        let cuts = stages
            .iter()
            .skip(1)
            .map(|stage| self.bytes_over(stage.start));
        let mut highest = 0;
        let (mut before, end) = ([0, 0], [[0, 0]]);
        for after in cuts.chain(end) {
            let (sent, received) = (after[0] + before[1], before[0] + after[1]);
            highest = highest.max(sent).max(received);
            before = after;
        }
        self.link_cycles(highest)
    }

    /// The bytes over a cut before this position: forward, backward.
    pub(crate) fn bytes_over(&self, position: usize) -> [u128; 2] {
        let own = position.checked_sub(1);
        let own = own.and_then(|before| self.cut_bytes.get(before));
        own.map_or([0, 0], |bytes| bytes.map(u128::from))
    }

    /// The cycles that a link takes for so many bytes.
    pub(crate) fn link_cycles(&self, bytes: u128) -> Option<u128> {
        if bytes == 0 {
            return Some(0);
        }
        let bandwidth = u128::from(self.options.link_bandwidth.max(1));
        let cycles = bytes.checked_mul(self.clock_hertz?.into());
        Some(cycles.map_or(u128::MAX, |cycles| cycles.div_ceil(bandwidth)))
    }
}

/// How the passes of a pipeline follow each other, and how often a micro-batch enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The last stage runs forward and backward at once; inference runs forward alone.
    Together {
        /// Every how many slots a micro-batch enters.
        every: u64,
    },
    /// The last stage runs forward and backward in two slots.
    Apart {
        /// Every how many slots a micro-batch enters.
        every: u64,
    },
    /// No two stages work at the same time.
    OneAfterTheOther,
    /// Only forward, at the same time.
    Forward,
    /// Only forward, no two stages at the same time.
    ForwardOneAfterTheOther,
}

impl Order {
    fn is_one_after_the_other(self) -> bool {
        matches!(
            self,
            Order::OneAfterTheOther | Order::ForwardOneAfterTheOther
        )
    }

    fn of(self, is_training: bool) -> Self {
        match self {
            _ if is_training => self,
            Order::OneAfterTheOther => Order::ForwardOneAfterTheOther,
            _ => Order::Forward,
        }
    }
}
