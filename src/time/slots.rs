//! Which passes are active in which slots of a step (docs/model.md, "Time").
//!
//! A pass is the forward or the backward work of a stage on one micro-batch. In a slot
//! each IPU works on those of its passes that are active; the slot ends when the last of
//! them does. Pass k works on micro-batch n in slot k + n * e, e being 1 or, where a
//! micro-batch enters every second slot, 2.

use super::Order;

/// Slots with the same active passes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlotKind {
    /// How many there are.
    pub count: u64,
    /// By stage: does it run forward?
    pub forward: Vec<bool>,
    /// By stage: does it run backward?
    pub backward: Vec<bool>,
}

/// All slots of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slots {
    /// In no particular order.
    pub kinds: Vec<SlotKind>,
}

/// The work of a pass: forward and backward, by stage.
type Work = (Option<usize>, Option<usize>);

impl Slots {
    /// Those of a pipeline of `stages` stages.
    pub(crate) fn new(order: Order, stages: usize, micro_batches: u64) -> Self {
        let passes = passes(order, stages);
        let kind = |count: u64, active: &[Work]| {
            let (mut forward, mut backward) = (vec![false; stages], vec![false; stages]);
            for (ahead, back) in active {
                ahead.iter().for_each(|&stage| forward[stage] = true);
                back.iter().for_each(|&stage| backward[stage] = true);
            }
            SlotKind {
                count,
                forward,
                backward,
            }
        };
        let every = match order {
            Order::Together { every } | Order::Apart { every } => every,
            _ if order.is_one_after_the_other() => {
                let alone = passes.iter().map(|&pass| kind(micro_batches, &[pass]));
                return Self {
                    kinds: alone.collect(),
                };
            }
            _ => 1,
        };
        let of_slot = |slot: u64| {
            let is_active = |&(pass, _): &(u64, &Work)| {
                let since = slot.checked_sub(pass);
                since.is_some_and(|since| since % every == 0 && since / every < micro_batches)
            };
            let active = (0..).zip(&passes).filter(is_active);
            active.map(|(_, &work)| work).collect::<Vec<Work>>()
        };
        let kinds = distinct_slots(passes.len() as u64, every, micro_batches);
        let kinds = kinds.map(|(slot, count)| kind(count, &of_slot(slot)));
        Self {
            kinds: kinds.collect(),
        }
    }

    /// Those in which one micro-batch enters while all stages have work.
    pub(crate) fn of_one_micro_batch(order: Order, stages: usize) -> Self {
        // So many that one slot at least has all passes of its turn active.
        let passes = passes(order, stages).len() as u64;
        let mut slots = Self::new(order, stages, 2 * passes + 2);
        if !order.is_one_after_the_other() {
            slots.kinds.retain(|kind| kind.count > 1);
        }
        slots.kinds.iter_mut().for_each(|kind| kind.count = 1);
        slots
    }

    /// How many slots there are.
    pub(crate) fn count(&self) -> u128 {
        self.kinds.iter().map(|kind| u128::from(kind.count)).sum()
    }
}

/// The passes in their order. With all of them a micro-batch is through.
fn passes(order: Order, stages: usize) -> Vec<Work> {
    let forward = |stage: usize| (Some(stage), None);
    let backward = |stage: usize| (None, Some(stage));
    match order {
        Order::Forward | Order::ForwardOneAfterTheOther => (0..stages).map(forward).collect(),
        Order::Together { .. } => {
            let last = stages.saturating_sub(1);
            let ahead = (0..last).map(forward);
            let turn = (stages > 0).then_some((Some(last), Some(last)));
            ahead
                .chain(turn)
                .chain((0..last).rev().map(backward))
                .collect()
        }
        Order::Apart { .. } | Order::OneAfterTheOther => {
            let back = (0..stages).rev().map(backward);
            (0..stages).map(forward).chain(back).collect()
        }
    }
}

/// One slot for each kind of them, and how many are like it: those in the middle, in
/// which all passes have begun and none has ended, repeat.
fn distinct_slots(passes: u64, every: u64, micro_batches: u64) -> impl Iterator<Item = (u64, u64)> {
    let begun = passes.saturating_sub(1);
    let ends = every.saturating_mul(micro_batches.saturating_sub(1));
    let all = if micro_batches == 0 || passes == 0 {
        0
    } else {
        begun.saturating_add(ends) + 1
    };
    // The first slot in which all have begun, and the first in which one has ended.
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
