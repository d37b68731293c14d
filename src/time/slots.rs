//! Finds which stages work in each slot of a step (docs/model.md, "Time").
//!
//! A pass is the forward or the backward work of a stage on one micro-batch. In a slot, each IPU
//! works on its active passes; the slot ends when the last IPU is done. If a micro-batch enters the
//! pipeline every e slots, pass k of micro-batch n runs in slot k + n * e.

use super::StageTimes;
use crate::memory::Schedule;

/// The order in which a micro-batch passes through the stages, and how often a micro-batch enters
/// the pipeline. Time is divided into slots: in a slot, each stage runs at most one forward and one
/// backward pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    /// The order of the forward and backward passes of a micro-batch.
    pub passes: PassOrder,
    /// The number of slots from the entry of one micro-batch into the pipeline to the entry of the
    /// next; `None` if only one stage works at a time.
    pub every: Option<u64>,
}

/// The order of the forward and backward passes of a micro-batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PassOrder {
    /// Forward through all stages, then backward through them in reverse; the last stage runs both
    /// passes in one slot.
    Together,
    /// Forward through all stages, then backward through them in reverse; the last stage runs each
    /// pass in a slot of its own.
    Apart,
    /// Only forward, through all stages: inference.
    Forward,
}

impl StageTimes {
    /// Returns the order in which micro-batches pass through the stages in the schedule of the
    /// pipeline.
    pub(crate) fn order(&self) -> Order {
        let (passes, every) = match self.pipeline.schedule {
            Schedule::Sequential if !self.is_training => (PassOrder::Forward, None),
            _ if !self.is_training => (PassOrder::Forward, Some(1)),
            Schedule::Popart => (PassOrder::Together, Some(1)),
            Schedule::TfGrouped => (PassOrder::Apart, Some(1)),
            Schedule::TfInterleaved => (PassOrder::Apart, Some(2)),
            Schedule::None | Schedule::Sequential => (PassOrder::Apart, None),
        };
        Order { passes, every }
    }
}

/// Slots of a step (not necessarily consecutive) in which the same stages run the same passes.
pub(crate) struct SlotKind {
    /// Number of slots of this kind in the step.
    pub count: u64,
    /// One entry per stage: whether the stage runs a forward pass in slots of this kind.
    pub forward: Vec<bool>,
    /// One entry per stage: whether the stage runs a backward pass in slots of this kind.
    pub backward: Vec<bool>,
}

/// All slots of a step, grouped by the stages that work in them.
pub(crate) struct Slots {
    /// The slots of the step by kind, in no particular order. Two kinds may have the same working
    /// stages.
    pub kinds: Vec<SlotKind>,
}

/// The stages that work on one micro-batch in one slot. The first item is the index of the stage
/// that runs the forward pass of the micro-batch, the second item the index of the stage that runs
/// its backward pass. An item is `None` if no stage runs the pass.
type ActiveStages = (Option<usize>, Option<usize>);

impl Slots {
    /// Returns the slots of a step of `micro_batches` micro-batches through `stages` stages. If
    /// `micro_batches` is `None`, returns the slots that one more micro-batch adds to a step while
    /// all stages have work.
    pub fn new(order: Order, stages: usize, micro_batches: Option<u64>) -> Self {
        let passes = passes(order, stages);
        let count = passes.len() as u64;
        let slots = match (order.every, micro_batches) {
            (None, number) => (0..count).map(|slot| (slot, number.unwrap_or(1))).collect(),
            (Some(every), Some(number)) => distinct_slots(count, every, number),
            (Some(every), None) => {
                // All passes have begun in slot `full`, and none ends, since the number of
                // micro-batches has no bound here.
                let full = count.saturating_sub(1);
                (full..full + every).map(|slot| (slot, 1)).collect()
            }
        };
        let micro_batches = micro_batches.unwrap_or(u64::MAX);
        let kind = |(slot, count)| {
            let mut kind = SlotKind {
                count,
                forward: vec![false; stages],
                backward: vec![false; stages],
            };
            for (ahead, back) in active_passes(&passes, slot, (order.every, micro_batches)) {
                ahead.iter().for_each(|&stage| kind.forward[stage] = true);
                back.iter().for_each(|&stage| kind.backward[stage] = true);
            }
            kind
        };
        Self {
            kinds: slots.into_iter().map(kind).collect(),
        }
    }

    /// Returns the number of slots in the step.
    pub fn count(&self) -> u128 {
        self.kinds.iter().map(|kind| u128::from(kind.count)).sum()
    }
}

/// Iterates over the passes that run in the slot with the index `slot`, each on another
/// micro-batch. `passes` has the passes of one micro-batch in order ([`passes`]). Of
/// `micro_batches` micro-batches, one enters the pipeline every `every` slots; `every` is `None` if
/// only one stage works at a time.
fn active_passes(
    passes: &[ActiveStages],
    slot: u64,
    (every, micro_batches): (Option<u64>, u64),
) -> impl Iterator<Item = &ActiveStages> {
    let every = every.unwrap_or(u64::MAX);
    passes
        .iter()
        .enumerate()
        .skip((slot % every) as usize)
        .step_by(every as usize)
        .filter(move |&(pass, _)| {
            let since = slot.checked_sub(pass as u64);
            since.is_some_and(|since| since / every < micro_batches)
        })
        .map(|(_, work)| work)
}

/// Returns the passes of one micro-batch through `stages` stages, in order. There is one entry for
/// each slot that the micro-batch takes: the stage that runs forward in this slot, and the stage
/// that runs backward.
fn passes(order: Order, stages: usize) -> Vec<ActiveStages> {
    let mut passes: Vec<ActiveStages> = (0..stages).map(|stage| (Some(stage), None)).collect();
    let mut backward = (0..stages).rev().map(Some);
    match (order.passes, passes.last_mut()) {
        (PassOrder::Forward, _) => return passes,
        (PassOrder::Together, Some((_, last))) => *last = backward.next().flatten(),
        _ => {}
    }
    passes.extend(backward.map(|stage| (None, stage)));
    passes
}

/// Returns slots that stand for all slots of a step, as pairs: the index of a slot, and the number
/// of slots that have the same passes. `passes` is the number of passes of a micro-batch, and one
/// micro-batch enters every `every` slots. Only slots in the middle of the step, in which all
/// passes have begun and none has ended, occur several times.
fn distinct_slots(passes: u64, every: u64, micro_batches: u64) -> Vec<(u64, u64)> {
    if micro_batches == 0 || passes == 0 {
        return Vec::new();
    }
    let ends = every.saturating_mul(micro_batches - 1);
    // `from` is the index of the first slot in which all passes have begun. `to` is the index of
    // the first slot in which a pass has ended because no micro-batch is left for it.
    let (from, to) = (passes - 1, ends + 1);
    let repeats = to.saturating_sub(from);
    let single = (0..from).chain(from.max(to)..from.saturating_add(ends) + 1);
    single
        .map(|slot| (slot, 1))
        .chain((0..every.min(repeats)).map(|n| (from + n, (repeats - n).div_ceil(every))))
        .collect()
}
