//! The live bytes of each stage, updated step by step, and their highest sums.

use crate::memory::lanes::{self, ByLane, Bytes};
use crate::memory::pipeline::PHASES;

/// The live bytes of some stages at the current step, and the highest so far, by lane (tile).
#[derive(Debug, Default)]
pub(super) struct LiveSums<B, const N: usize> {
    /// For each stage: its live bytes at the current step, without variables that every stage has.
    live: Vec<[B; N]>,
    /// The live bytes, at the current step, of the variables that every stage has.
    common: ByLane<B, N>,
    /// The number of the current phase.
    phase: usize,
    /// For each stage and phase: the highest live bytes so far.
    highest: Vec<[Highest<B, N>; PHASES]>,
}

/// The highest live bytes of a stage in a phase, by lane (tile).
#[derive(Debug, Clone, Copy)]
pub(super) struct Highest<B, const N: usize> {
    /// All live bytes, including those of variables that every stage has.
    pub(super) bytes: [B; N],
    /// The part of `bytes` that belongs to variables which every stage has.
    pub(super) common: [B; N],
    /// The first step with these bytes.
    pub(super) step: [u32; N],
}

impl<B: Bytes, const N: usize> LiveSums<B, N> {
    /// Starts with no live bytes; `firsts` has the first step of each stage.
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

    /// Returns the live bytes of a stage, to be changed; for `None`, those of variables that every
    /// stage has.
    #[inline]
    pub(super) fn of(&mut self, stage: Option<usize>) -> &mut [B; N] {
        stage.map_or(&mut self.common, |stage| &mut self.live[stage])
    }

    /// Compares the current live bytes of a stage with its highest ones, and keeps the higher ones
    /// with their step.
    #[inline]
    pub(super) fn raise_highest(&mut self, stage: usize, step: u32) {
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

    /// Begins the next phase at `step`.
    pub(super) fn begin_phase(&mut self, step: u32) {
        self.phase += 1;
        for highest in &mut self.highest {
            highest[self.phase].step = [step; N];
        }
    }

    /// Returns the highest live bytes of a stage in a phase.
    pub(super) fn highest(&self, stage: usize, phase: usize) -> &Highest<B, N> {
        &self.highest[stage][phase]
    }
}

/// The rows of variables that begin or cease to be live at each step. The buffers are reused for
/// the next tiles.
#[derive(Debug, Default)]
pub(super) struct LiveChanges {
    /// Starts in `rows` of two lists for each step: the rows that cease to be live before the step,
    /// and the rows that begin to be live at it. The last entry is the end of the last list.
    starts: Vec<u32>,
    /// The rows of all lists, one list after the other. A row is an index of the variables of a use
    /// (class and use set).
    rows: Vec<u32>,
}

impl LiveChanges {
    /// Loads half-open ranges of steps (first, end, row), for a model with `steps` steps.
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

    /// Returns the rows that cease to be live before `step`.
    pub(super) fn ends(&self, step: u32) -> &[u32] {
        self.at(2 * step as usize)
    }

    /// Returns the rows that begin to be live at `step`.
    pub(super) fn begins(&self, step: u32) -> &[u32] {
        self.at(2 * step as usize + 1)
    }

    /// Returns the rows of the list with this index. Each step has two lists: ends, then begins.
    fn at(&self, place: usize) -> &[u32] {
        &self.rows[self.starts[place] as usize..self.starts[place + 1] as usize]
    }
}

/// Calls `visit` for each begin and each end of a live range, with the index of its list in
/// [`LiveChanges`] and with its row.
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
