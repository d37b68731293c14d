//! What is live of each stage, step by step, and where that is most.

use crate::memory::lanes::{self, Bytes};

/// The live bytes of some sums at one step, and the most so far, by lane.
#[derive(Debug)]
pub(super) struct LiveSums<B, const N: usize> {
    /// By sum, without what every stage has.
    live: Vec<[B; N]>,
    /// The same: where it was most.
    highest: Vec<Highest<B, N>>,
    /// What every stage has.
    common: [B; N],
}

/// The most that was live of a sum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Highest<B, const N: usize> {
    /// With what every stage has.
    pub(super) bytes: [B; N],
    /// What every stage has of them.
    pub(super) common: [B; N],
    /// The first step that has them.
    pub(super) step: [u32; N],
}

impl<B: Bytes, const N: usize> Default for LiveSums<B, N> {
    fn default() -> Self {
        Self {
            live: Vec::new(),
            highest: Vec::new(),
            common: [B::default(); N],
        }
    }
}

impl<B: Bytes, const N: usize> LiveSums<B, N> {
    /// Begins with nothing live; each sum has its first step.
    pub(super) fn restart(&mut self, firsts: impl Iterator<Item = u32>) {
        let none = [B::default(); N];
        self.highest.clear();
        self.highest.extend(firsts.map(|first| Highest {
            bytes: none,
            common: none,
            step: [first; N],
        }));
        self.live.clear();
        self.live.resize(self.highest.len(), none);
        self.common = none;
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

    /// The most that was live of a sum.
    pub(super) fn highest(&self, sum: usize) -> &Highest<B, N> {
        &self.highest[sum]
    }
}
