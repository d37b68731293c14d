//! The live bytes of each stage, step by step, and their highest sum.

use crate::memory::lanes::{self, ByLane, Bytes};
use crate::memory::pipeline::PHASES;

/// The live bytes of some stages at one step, and the highest so far, by lane.
#[derive(Debug, Default)]
pub(super) struct LiveSums<B, const N: usize> {
    /// By stage, without variables of every stage.
    live: Vec<[B; N]>,
    /// Live bytes of the variables of every stage.
    common: ByLane<B, N>,
    /// The current phase.
    phase: usize,
    /// By stage and phase.
    highest: Vec<[Highest<B, N>; PHASES]>,
}

/// The highest live bytes of a stage in a phase.
#[derive(Debug, Clone, Copy)]
pub(super) struct Highest<B, const N: usize> {
    /// All live bytes, with the variables of every stage.
    pub(super) bytes: [B; N],
    /// The share of `bytes` from the variables of every stage.
    pub(super) common: [B; N],
    /// The first step with these bytes.
    pub(super) step: [u32; N],
}

impl<B: Bytes, const N: usize> LiveSums<B, N> {
    /// Starts with nothing live; `firsts` has the first step of each stage.
    pub(super) fn restart(&mut self, firsts: impl Iterator<Item = u32>) {
        let none = [B::default(); N];
        let highest = |first| Highest {
            bytes: none,
            common: none,
            step: [first; N],
        };
        self.phase = 0;
        self.highest.clear();
        self.highest
            .extend(firsts.map(|first| [highest(first); PHASES]));
        self.live.clear();
        self.live.resize(self.highest.len(), none);
        *self.common = none;
    }

    /// The live bytes of a stage, or (`None`) of the variables of every stage.
    #[inline]
    pub(super) fn of(&mut self, stage: Option<usize>) -> &mut [B; N] {
        stage.map_or(&mut self.common, |stage| &mut self.live[stage])
    }

    /// Raises the highest bytes of a stage if this step has more.
    #[inline]
    pub(super) fn look(&mut self, stage: usize, step: u32) {
        let mut all = self.live[stage];
        let highest = &mut self.highest[stage][self.phase];
        lanes::add(&mut all, &self.common);
        for (lane, &bytes) in all.iter().enumerate() {
            if bytes > highest.bytes[lane] {
                highest.bytes[lane] = bytes;
                highest.common[lane] = self.common[lane];
                highest.step[lane] = step;
            }
        }
    }

    /// Begins the next phase at a step.
    pub(super) fn begin_phase(&mut self, step: u32) {
        self.phase += 1;
        for highest in &mut self.highest {
            highest[self.phase].step = [step; N];
        }
    }

    /// The highest live bytes of a stage in a phase.
    pub(super) fn highest(&self, stage: usize, phase: usize) -> &Highest<B, N> {
        &self.highest[stage][phase]
    }
}
