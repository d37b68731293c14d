//! The steps at which variables of uses begin and cease to be live, the live bytes of each stage, step
//! by step, and their highest sum.

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

/// The rows that change at each step; reused for the next tiles.
#[derive(Debug, Default)]
pub(super) struct LiveChanges {
    /// Starts in `rows` of two lists for each step: rows that end before it, and rows that begin at
    /// it. One more start marks the end.
    starts: Vec<u32>,
    /// Rows of the uses.
    rows: Vec<u32>,
}

impl LiveChanges {
    /// Loads half-open ranges of steps, each with its row; there are `steps` steps.
    pub(super) fn load(&mut self, steps: u32, live: &[(u32, u32, u32)]) {
        self.starts.clear();
        self.starts.resize(2 * (steps as usize + 1) + 1, 0);
        each_change(live, |place, _| self.starts[place] += 1);
        let mut end = 0;
        for start in &mut self.starts {
            end += std::mem::replace(start, end);
        }
        self.rows.resize(end as usize, 0);
        each_change(live, |place, row| {
            let start = &mut self.starts[place];
            self.rows[*start as usize] = row;
            *start += 1;
        });
        // Each start has become the start of the next list.
        self.starts.rotate_right(1);
        self.starts[0] = 0;
    }

    /// Rows that cease to be live before a step.
    pub(super) fn ends(&self, step: u32) -> &[u32] {
        self.at(2 * step as usize)
    }

    /// Rows that begin to be live at a step.
    pub(super) fn begins(&self, step: u32) -> &[u32] {
        self.at(2 * step as usize + 1)
    }

    fn at(&self, place: usize) -> &[u32] {
        &self.rows[self.starts[place] as usize..self.starts[place + 1] as usize]
    }
}

/// Calls `visit` with the index of the list and with the row of each change.
fn each_change(live: &[(u32, u32, u32)], mut visit: impl FnMut(usize, u32)) {
    for &(from, to, row) in live {
        visit(2 * from as usize + 1, row);
        visit(2 * to as usize, row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_comes_before_what_begins() {
        let mut changes = LiveChanges::default();
        changes.load(4, &[(0, 2, 0), (3, 4, 0), (2, 4, 2)]);
        let ends: Vec<_> = (0..=4).map(|step| changes.ends(step)).collect();
        let begins: Vec<_> = (0..=4).map(|step| changes.begins(step)).collect();
        assert_eq!(ends, [&[][..], &[], &[0], &[], &[0, 2]]);
        assert_eq!(begins, [&[0][..], &[], &[2], &[0], &[]]);
    }
}
