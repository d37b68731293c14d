//! The passes that are active in each slot of a step (docs/model.md, "Time").
//!
//! A pass is the forward or the backward work of a stage on one micro-batch. In a slot each IPU
//! works on its active passes; the slot ends when the last IPU is done. Pass k works on micro-batch
//! n in slot k + n * e, where e is 1, or 2 if a micro-batch enters every second slot.

use super::StageTimes;
use crate::memory::Schedule;

/// The order of passes in a pipeline, and the interval at which micro-batches enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    /// The passes of a micro-batch.
    pub passes: PassOrder,
    /// Number of slots between two micro-batches that enter; `None` if only one stage works at a
    /// time.
    pub every: Option<u64>,
}

/// The passes of a micro-batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PassOrder {
    /// The last stage runs forward and backward in one slot.
    Together,
    /// The last stage runs forward and backward in two slots.
    Apart,
    /// All stages only run forward.
    Forward,
}

impl StageTimes {
    /// Order of passes, by the schedule of the pipeline.
    pub(crate) fn order(&self) -> Order {
        let (passes, every) = match self.pipeline.schedule {
            Schedule::Popart => (PassOrder::Together, Some(1)),
            Schedule::TfGrouped => (PassOrder::Apart, Some(1)),
            Schedule::TfInterleaved => (PassOrder::Apart, Some(2)),
            Schedule::None if !self.is_training => (PassOrder::Forward, Some(1)),
            Schedule::None | Schedule::Sequential => (PassOrder::Apart, None),
        };
        if self.is_training {
            return Order { passes, every };
        }
        Order {
            passes: PassOrder::Forward,
            every: every.map(|_| 1),
        }
    }
}

/// Slots with the same active passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlotKind {
    /// Number of slots of this kind.
    pub count: u64,
    /// By stage: does the stage run forward?
    pub forward: Vec<bool>,
    /// By stage: does the stage run backward?
    pub backward: Vec<bool>,
}

/// All slots of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slots {
    /// Kinds of slots, in no particular order.
    pub kinds: Vec<SlotKind>,
}

/// Stage that runs forward and stage that runs backward in a pass.
type Work = (Option<usize>, Option<usize>);

impl Slots {
    /// The slots of a pipeline with `stages` stages.
    pub(crate) fn new(order: Order, stages: usize, micro_batches: u64) -> Self {
        let passes = passes(order, stages);
        let Some(every) = order.every else {
            return Self::one_after_the_other(&passes, stages, micro_batches);
        };
        let distinct = distinct_slots(passes.len() as u64, every, micro_batches);
        let kinds = distinct.map(|(slot, count)| {
            let active = active_passes(&passes, slot, (every, micro_batches));
            SlotKind::new(count, stages, active)
        });
        Self {
            kinds: kinds.collect(),
        }
    }

    /// The slots in which one micro-batch enters while all stages have work.
    pub(crate) fn of_one_micro_batch(order: Order, stages: usize) -> Self {
        let passes = passes(order, stages);
        let Some(every) = order.every else {
            return Self::one_after_the_other(&passes, stages, 1);
        };
        // In this slot all passes have begun and none has ended.
        let full = (passes.len() as u64).saturating_sub(1);
        let of_turn = |slot| {
            let active = active_passes(&passes, slot, (every, u64::MAX));
            SlotKind::new(1, stages, active)
        };
        let is_none = passes.is_empty();
        let turns = (full..full + every).filter(|_| !is_none).map(of_turn);
        Self {
            kinds: turns.collect(),
        }
    }

    /// One slot for each pass on each micro-batch.
    fn one_after_the_other(passes: &[Work], stages: usize, micro_batches: u64) -> Self {
        let of_pass = |pass| SlotKind::new(micro_batches, stages, std::iter::once(pass));
        Self {
            kinds: passes.iter().map(of_pass).collect(),
        }
    }

    /// Number of slots.
    pub(crate) fn count(&self) -> u128 {
        self.kinds.iter().map(|kind| u128::from(kind.count)).sum()
    }
}

impl SlotKind {
    fn new<'a>(count: u64, stages: usize, active: impl Iterator<Item = &'a Work>) -> Self {
        let (mut forward, mut backward) = (vec![false; stages], vec![false; stages]);
        for (ahead, back) in active {
            ahead.iter().for_each(|&stage| forward[stage] = true);
            back.iter().for_each(|&stage| backward[stage] = true);
        }
        Self {
            count,
            forward,
            backward,
        }
    }
}

/// The passes that work on a micro-batch in `slot`: those of micro-batches that entered up to then,
/// one in `every` slots.
fn active_passes(
    passes: &[Work],
    slot: u64,
    (every, micro_batches): (u64, u64),
) -> impl Iterator<Item = &Work> {
    let first = (slot % every) as usize;
    let begun = passes
        .iter()
        .enumerate()
        .skip(first)
        .step_by(every as usize);
    let since = move |pass: usize| slot.checked_sub(pass as u64).map(|since| since / every);
    let is_active = move |pass| since(pass).is_some_and(|turn| turn < micro_batches);
    begun
        .filter(move |&(pass, _)| is_active(pass))
        .map(|(_, work)| work)
}

/// The passes through which a micro-batch goes, in order.
fn passes(order: Order, stages: usize) -> Vec<Work> {
    let forward = |stage: usize| (Some(stage), None);
    let backward = |stage: usize| (None, Some(stage));
    match order.passes {
        PassOrder::Forward => (0..stages).map(forward).collect(),
        PassOrder::Together => {
            let last = stages.saturating_sub(1);
            let ahead = (0..last).map(forward);
            let turn = (stages > 0).then_some((Some(last), Some(last)));
            ahead
                .chain(turn)
                .chain((0..last).rev().map(backward))
                .collect()
        }
        PassOrder::Apart => {
            let back = (0..stages).rev().map(backward);
            (0..stages).map(forward).chain(back).collect()
        }
    }
}

/// One slot of each kind, with the number of its repetitions: the slots in the middle, in which all
/// passes have begun and none has ended, repeat.
fn distinct_slots(passes: u64, every: u64, micro_batches: u64) -> impl Iterator<Item = (u64, u64)> {
    let begun = passes.saturating_sub(1);
    let ends = every.saturating_mul(micro_batches.saturating_sub(1));
    let all = if micro_batches == 0 || passes == 0 {
        0
    } else {
        begun.saturating_add(ends) + 1
    };
    // The first slot in which all passes have begun, and the first in which one has ended.
    let (from, to) = (begun, ends + 1);
    let repeats = to.saturating_sub(from);
    let (head, tail) = if repeats > 0 && all > 0 {
        (from, to)
    } else {
        (all, all)
    };
    let alone = (0..head).chain(tail..all).map(|slot| (slot, 1));
    let middle = (0..every.min(repeats)).filter(move |_| all > 0);
    let middle = middle.map(move |n| (from + n, (repeats - n).div_ceil(every)));
    alone.chain(middle)
}
