//! The live bytes of each stage, step by step, and where they are most.

use crate::memory::lanes::{self, ByLane, Bytes};
use std::cmp::Ordering;

/// The live bytes of some stages at one step, and the most so far, by lane.
#[derive(Debug, Default)]
pub(super) struct LiveSums<B, const N: usize> {
    /// By sum, without what every stage has.
    live: Vec<[B; N]>,
    /// The same: where it was most in this phase, and in those before.
    highest: Vec<Highest<B, N>>,
    before: Vec<Vec<Highest<B, N>>>,
    /// Bytes of every stage.
    common: ByLane<B, N>,
}

/// The most that was live of a sum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Highest<B, const N: usize> {
    /// With what every stage has.
    pub(super) bytes: [B; N],
    /// Those of them that every stage has.
    pub(super) common: [B; N],
    /// The first step that has them.
    pub(super) step: [u32; N],
}

impl<B: Bytes, const N: usize> LiveSums<B, N> {
    /// Begins with nothing live; each sum has its first step.
    pub(super) fn restart(&mut self, firsts: impl Iterator<Item = u32>) {
        let none = [B::default(); N];
        self.before.clear();
        self.highest.clear();
        self.highest.extend(firsts.map(|first| Highest {
            bytes: none,
            common: none,
            step: [first; N],
        }));
        self.live.clear();
        self.live.resize(self.highest.len(), none);
        *self.common = none;
    }

    /// The sum that these bytes are part of; `None` for what every stage has.
    fn sum(&mut self, sum: Option<usize>) -> &mut [B; N] {
        sum.map_or(&mut self.common, |sum| &mut self.live[sum])
    }

    /// These bytes begin to be live.
    #[inline]
    pub(super) fn begin(&mut self, sum: Option<usize>, bytes: &[B; N]) {
        lanes::add(self.sum(sum), bytes);
    }

    /// They end to be live.
    #[inline]
    pub(super) fn end(&mut self, sum: Option<usize>, bytes: &[B; N]) {
        lanes::subtract(self.sum(sum), bytes);
    }

    /// Looks whether a sum is higher at this step than at all before.
    #[inline]
    pub(super) fn look(&mut self, sum: usize, step: u32) {
        let (mut all, highest) = (self.live[sum], &mut self.highest[sum]);
        lanes::add(&mut all, &self.common);
        for (lane, &bytes) in all.iter().enumerate() {
            if bytes > highest.bytes[lane] {
                highest.bytes[lane] = bytes;
                highest.common[lane] = self.common[lane];
                highest.step[lane] = step;
            }
        }
    }

    /// Begins a phase at a step: what was most before it is kept apart.
    pub(super) fn begin_phase(&mut self, step: u32) {
        let none = Highest {
            bytes: [B::default(); N],
            common: [B::default(); N],
            step: [step; N],
        };
        let highest = vec![none; self.highest.len()];
        self.before
            .push(std::mem::replace(&mut self.highest, highest));
    }

    /// The most that was live of a sum in a phase, if there was one.
    pub(super) fn highest(&self, phase: usize, sum: usize) -> Option<&Highest<B, N>> {
        match phase.cmp(&self.before.len()) {
            Ordering::Less => self.before[phase].get(sum),
            Ordering::Equal => self.highest.get(sum),
            Ordering::Greater => None,
        }
    }
}
