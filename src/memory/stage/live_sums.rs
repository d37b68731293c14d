//! The live bytes of each stage, step by step, and their highest sum.

use crate::memory::lanes::{self, ByLane, Bytes};
use std::cmp::Ordering;

/// The live bytes of some stages at one step, and the highest so far, by lane.
#[derive(Debug, Default)]
pub(super) struct LiveSums<B, const N: usize> {
    /// By stage, without variables of every stage.
    live: Vec<[B; N]>,
    /// By stage, the highest bytes in this phase; and in each earlier phase.
    highest: Vec<Highest<B, N>>,
    before: Vec<Vec<Highest<B, N>>>,
    /// Live bytes of the variables of every stage.
    common: ByLane<B, N>,
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

    /// The sum of a stage, or (`None`) of the variables of every stage.
    fn sum(&mut self, sum: Option<usize>) -> &mut [B; N] {
        sum.map_or(&mut self.common, |sum| &mut self.live[sum])
    }

    /// Adds bytes that begin to be live.
    #[inline]
    pub(super) fn begin(&mut self, sum: Option<usize>, bytes: &[B; N]) {
        lanes::add(self.sum(sum), bytes);
    }

    /// Takes away bytes that cease to be live.
    #[inline]
    pub(super) fn end(&mut self, sum: Option<usize>, bytes: &[B; N]) {
        lanes::subtract(self.sum(sum), bytes);
    }

    /// Raises the highest bytes of a stage if this step has more.
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

    /// Begins a phase at a step; the highest bytes of the phase before are kept.
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

    /// The highest live bytes of a stage in a phase; `None` if there is no such phase.
    pub(super) fn highest(&self, phase: usize, sum: usize) -> Option<&Highest<B, N>> {
        match phase.cmp(&self.before.len()) {
            Ordering::Less => self.before[phase].get(sum),
            Ordering::Equal => self.highest.get(sum),
            Ordering::Greater => None,
        }
    }
}
