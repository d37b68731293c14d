//! Computes the time of one step of a pipeline (docs/model.md, "Time"): finds which stages work in
//! each slot of the step, and sums up the cycles of the slots.
//!
//! A pass is the forward or the backward work of a stage on one micro-batch. In a slot, each IPU
//! runs the passes that are due; the slot ends when the last IPU is done. If a micro-batch enters
//! the pipeline every e slots, pass k of micro-batch n runs in slot k + n * e.

use super::{Passes, StageTimes, narrow};
use crate::memory::Schedule;
use std::{cmp::Ordering, ops::Range};

/// The time of one step: all micro-batches through all stages, and the weight update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepTime {
    /// Number of micro-batches that go through the pipeline in one step.
    pub micro_batches: u64,
    /// Cycles of the whole step, including the copies between stages (if they are known) and the
    /// weight update.
    pub cycles: u128,
    /// Cycles that one more micro-batch adds to the step, if it is added while every stage has
    /// work.
    pub steady: u128,
    /// Cycles that are lost while the pipeline fills and drains: the cycles of the step, without
    /// copies and the weight update, minus those in a pipeline that is always full (`steady` for
    /// each micro-batch).
    pub ramps: u128,
    /// Cycles of the copies between stages in the whole step. `None` if anything is copied and the
    /// clock frequency is unknown, without which the time of copies cannot be converted to cycles.
    /// Then `cycles` does not include the copies.
    pub copies: Option<u128>,
    /// Cycles of the weight update at the end of the step, including the streaming of optimizer
    /// state if the bandwidth for streaming is known.
    pub update: u128,
    /// Bytes of optimizer state that the IPUs of one replica load from memory off the chip, plus
    /// the bytes that they store there, in the step. `update` includes the cycles of these
    /// transfers if the bandwidth for streaming is known.
    pub streamed: u128,
}

impl StepTime {
    /// Computes the time of a step from its `slots` (intervals in which each IPU runs the passes
    /// that are due) and from `period`, the slots that one more micro-batch adds. `stages` has one
    /// entry per stage: the index of its IPU, and its cycles. Returns `None` if a sum overflows.
    pub(super) fn new(
        (slots, period): (&Slots, &Slots),
        stages: &[(usize, Passes)],
        (micro_batches, copies, update, streamed): (u64, Option<u128>, u128, u128),
    ) -> Option<Self> {
        let (work, steady) = (slots.cycles(stages)?, period.cycles(stages)?);
        let through = steady.checked_mul(micro_batches.into())?;
        Some(Self {
            micro_batches,
            cycles: work.checked_add(update)?.checked_add(copies.unwrap_or(0))?,
            steady,
            // A step takes at least `steady` cycles for each micro-batch. The remaining cycles are
            // for filling and draining the pipeline.
            ramps: work.saturating_sub(through),
            copies,
            update,
            streamed,
        })
    }

    /// Returns the share (from 0 to 1) of the cycles of the step in which the pipeline is full:
    /// without filling and draining it, copies and the weight update. Higher is better.
    pub fn efficiency(&self) -> f64 {
        let through = self.steady as f64 * self.micro_batches as f64;
        match self.cycles {
            0 => 1.0,
            cycles => through / cycles as f64,
        }
    }

    /// Returns the cycles of the step per micro-batch, if `replicas` replicas process micro-batches
    /// at the same time. This rate can be compared between steps with different numbers of
    /// micro-batches.
    pub(crate) fn rate(&self, replicas: usize) -> Rate {
        Rate {
            cycles: self.cycles,
            micro_batches: self.micro_batches.saturating_mul(replicas as u64),
        }
    }
}

/// The cycles of a step divided by its number of micro-batches, as an exact fraction, to compare
/// steps with different numbers of micro-batches.
#[derive(Clone, Copy)]
pub struct Rate {
    pub cycles: u128,
    pub micro_batches: u64,
}

impl Rate {
    /// Compares two training or inference steps by their cycles divided by their number of
    /// micro-batches. Returns `Less` if `self` needs fewer cycles for each micro-batch.
    pub fn compare(self, other: Self) -> Ordering {
        let scaled = |cycles: u128, batches: u64| cycles.saturating_mul(batches.into());
        scaled(self.cycles, other.micro_batches).cmp(&scaled(other.cycles, self.micro_batches))
    }
}

impl Slots {
    /// Returns the cycles of all slots (intervals) of a step, without the copies at the end of each
    /// slot; `None` if the sum overflows. `stages` has one entry per stage: the index of its IPU
    /// (below the number of stages), and its cycles.
    fn cycles(&self, stages: &[(usize, Passes)]) -> Option<u128> {
        let mut by_ipu = vec![0u128; stages.len()];
        let mut sum = 0u128;
        for kind in &self.kinds {
            by_ipu.fill(0);
            for (number, (ipu, stage)) in stages.iter().enumerate() {
                let active = stage.active(kind.forward[number], kind.backward[number]);
                by_ipu[*ipu] = by_ipu[*ipu].checked_add(active)?;
            }
            // A slot (an interval of the step) ends when the last IPU has run its passes, so it
            // takes as long as the IPU with the most work.
            let slot = by_ipu.iter().max()?;
            sum = sum.checked_add(slot.checked_mul(kind.count.into())?)?;
        }
        Some(sum)
    }
}

impl Passes {
    /// Returns the cycles that a stage takes in a slot (an interval of the step) in which it runs
    /// the forward pass (if `forward`) and the backward pass (if `backward`), each for one
    /// micro-batch. Recomputation is part of the backward pass.
    pub(super) fn active(self, forward: bool, backward: bool) -> u128 {
        let forward = if forward { self.forward } else { 0 };
        let again = self.backward + self.recomputed;
        forward.saturating_add(if backward { again } else { 0 })
    }

    /// Returns the cycles of a stage in a slot (an interval of the step) for each set of passes
    /// that it may run there: none, forward, backward, both.
    pub(crate) fn by_set(self) -> [u64; 4] {
        std::array::from_fn(|set| narrow(self.active(set & 1 > 0, set & 2 > 0)))
    }
}

/// A stage of a split: the times of the model in one profile, and the range of the stage's
/// positions (In, layers, Out). A model may have several profiles, compiled with different options,
/// and each stage takes its cycles from one of them.
pub type TimedStage<'t> = (&'t StageTimes, &'t Range<usize>);

impl StageTimes {
    /// Returns one entry per stage of the pipeline, for a split into `stages`: the index of its
    /// IPU, and its cycles. Stage i of the split is on IPU i. If Out (the operations after the last
    /// layer) runs on the first IPU and there are several stages, Out is one more stage at the end,
    /// on IPU 0. Returns `None` if a stage has positions that the model lacks.
    fn pipeline_stages(stages: &[TimedStage<'_>]) -> Option<Vec<(usize, Passes)>> {
        let (mut found, mut last) = (Vec::new(), None);
        for (ipu, (times, range)) in stages.iter().enumerate() {
            let (passes, out) = times.stage_and_out(range, stages.len() - 1 - ipu)?;
            found.push((ipu, passes));
            last = last.or(out);
        }
        found.extend(last.map(|out| (0, out)));
        Some(found)
    }

    /// Returns the number of stages of the pipeline for a split into `stages` stages. If Out (the
    /// operations after the last layer) runs on the first IPU, and there are several stages, Out is
    /// one more stage.
    pub(crate) fn pipeline_depth(&self, stages: usize) -> usize {
        stages + usize::from(self.out_in_first.is_some() && stages > 1)
    }

    /// Returns the number of micro-batches in a step for a split into `stages` stages: the number
    /// that the user gives, or the usual number, but at least the minimum of the schedule. Training
    /// in a grouped or interleaved schedule of TensorFlow needs a multiple of the minimum, so the
    /// number is rounded up.
    pub fn micro_batches(&self, stages: usize) -> u64 {
        let depth = self.pipeline_depth(stages);
        let schedule = self.pipeline.schedule;
        let options = &self.options;
        let wanted = options.micro_batches.unwrap_or(options.usual_micro_batches);
        match depth as u64 {
            _ if !self.is_training && schedule == Schedule::Sequential => wanted.max(1),
            depth if !self.is_training => wanted.max(depth).max(1),
            1 => schedule.accumulation(1, wanted),
            _ => schedule.accumulation(schedule.least_accumulation(depth) as u64, wanted),
        }
    }

    /// Computes the time of one step of a split into `stages`. The times of all stages must be of
    /// one model in one pipeline, but may come from different profiles. Returns `None` if `stages`
    /// is empty, if a stage has positions that the model lacks, or if a sum overflows.
    pub fn step(stages: &[TimedStage<'_>]) -> Option<StepTime> {
        let (first, _) = stages.first()?;
        let of_pipeline = Self::pipeline_stages(stages)?;
        let micro_batches = first.micro_batches(stages.len());
        let (order, depth) = (first.order(), of_pipeline.len());
        let slots = Slots::new(order, depth, Some(micro_batches));
        let period = Slots::new(order, depth, None);
        let copied = (0..stages.len()).fold([0; 2], |copied, number| {
            let neighbour = |by: usize| stages[(number + by) % stages.len()].0;
            let (times, range) = stages[number];
            let [arrives, _] = neighbour(stages.len() - 1).sent_at(range.start);
            let [_, returns] = neighbour(1).sent_at(range.end);
            times.with_copies(copied, (number, range), [arrives, returns])
        });
        let copies = first.copy_cycles(copied, (slots.count(), micro_batches));
        let streamed = stages
            .iter()
            .map(|(times, range)| times.streamed_by(range))
            .sum();
        let of_step = (micro_batches, copies, first.update(&of_pipeline), streamed);
        StepTime::new((&slots, &period), &of_pipeline, of_step)
    }

    /// Returns a lower bound on the sum of the update cycles of all stages of a split, in which
    /// each stage may have the times of any of `profiles`. The bound is exact if there is one
    /// profile and no streamed optimizer state.
    pub(crate) fn least_update(profiles: &[&Self]) -> Option<u128> {
        let all = 0..profiles.first()?.positions();
        let streaming = profiles
            .iter()
            .map(|times| times.streaming_cycles(times.streamed_by(&all)));
        all.clone().try_fold(streaming.min()?, |sum, position| {
            let updates = profiles
                .iter()
                .map(|times| Some(times.sums(&(position..position + 1))?[2]));
            Some(sum.saturating_add(updates.min()??))
        })
    }

    /// Returns the cycles of the weight update of one step. `stages` has one entry per stage: the
    /// index of its IPU, and its cycles. In TensorFlow's grouped and interleaved schedules, all
    /// IPUs update at the same time, so the IPU with the most cycles decides. In other schedules,
    /// one IPU updates after the other, so all cycles are added up.
    fn update(&self, stages: &[(usize, Passes)]) -> u128 {
        let mut by_ipu = vec![0; stages.len()];
        for (ipu, stage) in stages {
            by_ipu[*ipu] += stage.update;
        }
        if self.updates_side_by_side() {
            by_ipu.into_iter().max().unwrap_or(0)
        } else {
            by_ipu.into_iter().sum()
        }
    }

    /// Returns whether all IPUs update their weights at the same time, as in TensorFlow's grouped
    /// and interleaved schedules, rather than one IPU after the other.
    pub(crate) fn updates_side_by_side(&self) -> bool {
        self.pipeline.schedule.is_of_tensorflow()
    }

    /// Returns the bytes that cross the split point before `position` for one micro-batch, first in
    /// the forward pass, then in the backward pass. At position 0 and after the last position,
    /// returns the bytes between the last layer and Out (the operations after it) if Out is on the
    /// first IPU, otherwise 0.
    pub(crate) fn sent_at(&self, position: usize) -> [u128; 2] {
        let last = self.positions().saturating_sub(1);
        let bytes = self.cut_bytes.get(position.checked_sub(1).unwrap_or(last));
        bytes.map_or([0, 0], |bytes| bytes.map(u128::from))
    }

    /// Adds the copies of one stage to `bytes`, and returns the result: the most bytes that any IPU
    /// sends or receives in a slot (an interval of the step). The first number is for slots with an
    /// even index, the second for odd ones; they differ only if a micro-batch enters every second
    /// slot. If only one stage works at a time, the first number is the sum over all stages.
    ///
    /// The added stage has the positions `stage` and the index `number`. For one micro-batch, it
    /// receives `arrives` bytes from the stage before it in the forward pass, and `returns` bytes
    /// from the stage after it in the backward pass.
    pub(crate) fn with_copies(
        &self,
        mut bytes: [u128; 2],
        (number, stage): (usize, &Range<usize>),
        [arrives, returns]: [u128; 2],
    ) -> [u128; 2] {
        if stage.len() == self.positions() {
            return bytes;
        }
        let (back, on) = (self.sent_at(stage.start)[1], self.sent_at(stage.end)[0]);
        match self.order().every {
            None => bytes[0] += on + returns,
            Some(2) => {
                let in_slot = &mut bytes[number % 2];
                *in_slot = (*in_slot).max(on).max(returns);
            }
            Some(_) => {
                let sent = (arrives + returns).max(back + on);
                bytes = bytes.map(|bytes| bytes.max(sent));
            }
        }
        bytes
    }

    /// Returns the cycles of all copies between IPUs in a step of `slots` slots, intervals that end
    /// with copies. The IPU that copies the most bytes determines how long the copies of a slot
    /// take: `even` bytes in slots with an even index, `odd` bytes in the others. If only one stage
    /// works at a time, `even` has all bytes of one micro-batch. Returns `None` if bytes are copied
    /// but the clock frequency is unknown.
    pub(crate) fn copy_cycles(
        &self,
        [even, odd]: [u128; 2],
        (slots, micro_batches): (u128, u64),
    ) -> Option<u128> {
        let [even, odd] = [self.link_cycles(even)?, self.link_cycles(odd)?];
        Some(match self.order().every {
            None => even.saturating_mul(micro_batches.into()),
            Some(_) => odd
                .saturating_mul(slots / 2)
                .saturating_add(even.saturating_mul(slots.div_ceil(2))),
        })
    }

    /// Returns the cycles that a link between IPUs takes to send `bytes`; `None` if the clock
    /// frequency is unknown and `bytes` is not 0.
    fn link_cycles(&self, bytes: u128) -> Option<u128> {
        if bytes == 0 {
            return Some(0);
        }
        let bandwidth = u128::from(self.options.link_bandwidth.max(1));
        let cycles = bytes.checked_mul(self.clock_hertz?.into());
        Some(cycles.map_or(u128::MAX, |cycles| cycles.div_ceil(bandwidth)))
    }
}

/// The order in which a micro-batch passes through the stages, and how often a micro-batch enters
/// the pipeline. A micro-batch goes forward through all stages, then in training backward through
/// them in reverse. Time is divided into slots: in a slot, each stage runs at most one forward and
/// one backward pass.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    /// When the last stage runs the backward pass of a micro-batch: 0 if in the same slot (interval
    /// of the step) as the forward pass, 1 if in the next slot. `None` in inference, which has no
    /// backward pass.
    pub turn: Option<u64>,
    /// Number of slots from the entry of one micro-batch into the pipeline to the entry of the
    /// next; `None` if only one stage works at a time. A slot is an interval in which each stage
    /// runs at most one forward and one backward pass.
    pub every: Option<u64>,
}

impl StageTimes {
    pub(crate) fn order(&self) -> Order {
        let (turn, every) = match self.pipeline.schedule {
            Schedule::Sequential if !self.is_training => (None, None),
            _ if !self.is_training => (None, Some(1)),
            Schedule::Popart => (Some(0), Some(1)),
            Schedule::TfGrouped => (Some(1), Some(1)),
            Schedule::TfInterleaved => (Some(1), Some(2)),
            Schedule::None | Schedule::Sequential => (Some(1), None),
        };
        Order { turn, every }
    }
}

/// A kind of slot: all slots of a step in which the same stages run the same passes, and which
/// therefore take the same time. A slot is an interval in which each stage runs at most one forward
/// and one backward pass. Slots of one kind need not be consecutive.
pub struct SlotKind {
    pub count: u64,
    /// One entry per stage: whether the stage runs a forward pass in each slot of this kind.
    pub forward: Vec<bool>,
    /// One entry per stage: whether the stage runs a backward pass in each slot of this kind.
    pub backward: Vec<bool>,
}

pub struct Slots {
    pub kinds: Vec<SlotKind>,
}

impl Slots {
    /// Returns the slots of a step of `micro_batches` micro-batches through `stages` stages. In a
    /// slot, each stage runs at most one forward and one backward pass. Slots in which the same
    /// stages run the same passes are counted as one kind ([`SlotKind`]). If `micro_batches` is
    /// `None`, returns the slots that one more micro-batch adds to a step while all stages have
    /// work.
    pub fn new(order: Order, stages: usize, micro_batches: Option<u64>) -> Self {
        let stages = stages as u64;
        // The slot (an interval of the step) in which the last stage runs the backward pass of the
        // first micro-batch. The stages before it run their backward passes in the slots after it.
        let first_backward = order.turn.map(|turn| stages - 1 + turn);
        let passes = first_backward.unwrap_or(0) + stages;
        let slots = match (order.every, micro_batches) {
            (None, number) => (0..passes)
                .map(|slot| (slot, number.unwrap_or(1)))
                .collect(),
            (Some(every), Some(number)) => distinct_slots(passes, every, number),
            // Without a number of micro-batches, return the slots (intervals of the step) that one
            // more micro-batch adds while all stages have work. As one enters every `every` slots,
            // these are `every` slots of a full pipeline: from the last pass of the first
            // micro-batch on.
            (Some(every), None) => (0..every).map(|slot| (passes - 1 + slot, 1)).collect(),
        };
        let every = order.every.unwrap_or(u64::MAX);
        let micro_batches = micro_batches.unwrap_or(u64::MAX);
        let kind = |(slot, count): (u64, u64)| {
            let mut kind = SlotKind {
                count,
                forward: vec![false; stages as usize],
                backward: vec![false; stages as usize],
            };
            // A micro-batch enters every `every` slots. So if the first micro-batch runs a pass in
            // slot `first`, micro-batch n runs this pass in slot `first` + n * `every`.
            for first in (slot % every..passes).step_by(every as usize) {
                if first > slot || (slot - first) / every >= micro_batches {
                    continue;
                }
                if let Some(runs) = kind.forward.get_mut(first as usize) {
                    *runs = true;
                }
                if let Some(behind) = first_backward.and_then(|slot| first.checked_sub(slot)) {
                    kind.backward[(stages - 1 - behind) as usize] = true;
                }
            }
            kind
        };
        Self {
            kinds: slots.into_iter().map(kind).collect(),
        }
    }

    pub fn count(&self) -> u128 {
        self.kinds.iter().map(|kind| u128::from(kind.count)).sum()
    }
}

/// Returns the different slots of a step, each as its index and the number of slots with the same
/// passes. In a slot, every stage runs at most one forward and one backward pass. A micro-batch has
/// `passes` passes in consecutive slots, and the next one enters `every` slots later. While the
/// pipeline is full, the same `every` slots repeat; all others occur once.
fn distinct_slots(passes: u64, every: u64, micro_batches: u64) -> Vec<(u64, u64)> {
    if micro_batches == 0 {
        return Vec::new();
    }
    let ends = every.saturating_mul(micro_batches - 1);
    // The first micro-batch runs its last pass in slot `from` (an interval of the step), so the
    // pipeline is full from this slot on. The last micro-batch enters in the slot before `to`, so
    // the pipeline drains from slot `to` on.
    let (from, to) = (passes - 1, ends + 1);
    let repeats = to.saturating_sub(from);
    (0..from)
        .chain(from.max(to)..from.saturating_add(ends) + 1)
        .map(|slot| (slot, 1))
        .chain((0..every.min(repeats)).map(|n| (from + n, (repeats - n).div_ceil(every))))
        .collect()
}
