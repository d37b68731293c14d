//! The time of one step of a pipeline.

use super::Passes;
use super::slots::{SlotKind, Slots};
use std::cmp::Ordering;

/// The cycles of one step: all micro-batches through all stages, and the update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepTime {
    /// The micro-batches of the step.
    pub micro_batches: u64,
    /// All its cycles.
    pub cycles: u128,
    /// Those that one more micro-batch takes while every stage has work.
    pub steady: u128,
    /// Those that filling and draining the pipeline takes beyond a steady cycle for each
    /// micro-batch.
    pub ramps: u128,
    /// Those of copies between stages, over all slots; `None` where they are not known,
    /// and then not among `cycles`.
    pub copies: Option<u128>,
    /// Those of the update.
    pub update: u128,
    /// The bytes that are loaded from memory outside the IPUs, and stored there. What that
    /// takes is among the cycles where the bandwidth is known.
    pub streamed: u128,
}

impl StepTime {
    /// The step of these stages (each with its IPU) in `slots`, of which `period` are those
    /// of one micro-batch, with `copies` cycles of copies; `None` where sums overflow.
    pub(super) fn new(
        (slots, period): (&Slots, &Slots),
        stages: &[(usize, Passes)],
        (micro_batches, copies, update): (u64, Option<u128>, u128),
    ) -> Option<Self> {
        let (work, steady) = (slots.cycles(stages)?, period.cycles(stages)?);
        let through = steady.checked_mul(micro_batches.into())?;
        let with_update = work.checked_add(update)?;
        Some(Self {
            micro_batches,
            cycles: with_update.checked_add(copies.unwrap_or(0))?,
            steady,
            // No IPU does its work in less than a steady cycle for each micro-batch.
            ramps: work.saturating_sub(through),
            copies,
            update,
            streamed: 0,
        })
    }

    /// The part of the step that a pipeline which is always full would take.
    pub fn efficiency(&self) -> f64 {
        let through = self.steady as f64 * self.micro_batches as f64;
        match self.cycles {
            0 => 1.0,
            cycles => through / cycles as f64,
        }
    }

    /// Orders steps by their cycles for each micro-batch, the fastest first.
    pub fn by_rate(&self, other: &Self) -> Ordering {
        let [one, others] = [
            self.cycles.saturating_mul(other.micro_batches.into()),
            other.cycles.saturating_mul(self.micro_batches.into()),
        ];
        one.cmp(&others)
    }
}

impl Slots {
    /// The cycles of all slots without copies; `None` where they overflow.
    fn cycles(&self, stages: &[(usize, Passes)]) -> Option<u128> {
        let mut by_ipu = vec![0u128; stages.len()];
        let mut sum = 0u128;
        for kind in &self.kinds {
            let slot = kind.cycles(stages, &mut by_ipu)?;
            sum = sum.checked_add(slot.checked_mul(kind.count.into())?)?;
        }
        Some(sum)
    }
}

impl SlotKind {
    /// The cycles of one slot: those of the IPU that has the most work.
    fn cycles(&self, stages: &[(usize, Passes)], by_ipu: &mut [u128]) -> Option<u128> {
        by_ipu.fill(0);
        for (number, (ipu, stage)) in stages.iter().enumerate() {
            let active = stage.active(self.forward[number], self.backward[number]);
            by_ipu[*ipu] = by_ipu[*ipu].checked_add(active)?;
        }
        by_ipu.iter().copied().max()
    }
}

impl Passes {
    /// Those of the passes that are active.
    pub(crate) fn active(self, forward: bool, backward: bool) -> u128 {
        let forward = if forward { self.forward } else { 0 };
        let backward = if backward {
            self.backward + self.recomputed
        } else {
            0
        };
        forward.saturating_add(backward)
    }
}
