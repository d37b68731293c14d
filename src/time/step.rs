//! Time of one step of a pipeline.

use super::Passes;
use super::slots::{SlotKind, Slots};
use std::cmp::Ordering;

/// Cycles of one step: all micro-batches through all stages, and the update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepTime {
    /// Micro-batches of the step.
    pub micro_batches: u64,
    /// Cycles of the whole step.
    pub cycles: u128,
    /// Cycles that one more micro-batch adds while every stage has work.
    pub steady: u128,
    /// Cycles that filling and draining the pipeline adds to a steady cycle for each micro-batch.
    pub ramps: u128,
    /// Cycles of copies between stages, over all slots; `None` if unknown, and then not in
    /// `cycles`.
    pub copies: Option<u128>,
    /// Cycles of the update.
    pub update: u128,
    /// Bytes that are loaded from and stored to memory off the chip. Their cycles are in `update`
    /// if the bandwidth is known.
    pub streamed: u128,
}

impl StepTime {
    /// Step of `stages`, each given with its IPU, in `slots`. `period` has the slots of one
    /// micro-batch, `copies` the cycles of copies. `None` if sums overflow.
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

    /// Share of the step that a permanently full pipeline would take (1 is the best).
    pub fn efficiency(&self) -> f64 {
        let through = self.steady as f64 * self.micro_batches as f64;
        match self.cycles {
            0 => 1.0,
            cycles => through / cycles as f64,
        }
    }

    /// Orders steps by cycles for each micro-batch, the fastest first.
    pub fn by_rate(&self, other: &Self) -> Ordering {
        let [one, others] = [
            self.cycles.saturating_mul(other.micro_batches.into()),
            other.cycles.saturating_mul(self.micro_batches.into()),
        ];
        one.cmp(&others)
    }
}

impl Slots {
    /// Cycles of all slots without copies; `None` if they overflow.
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
    /// Cycles of one slot: those of the IPU with the most work.
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
    /// Cycles of the active passes in one micro-batch.
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
