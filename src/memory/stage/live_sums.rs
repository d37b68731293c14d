//! The live bytes of each stage, updated step by step, and their highest values so far.

use crate::memory::lanes::{self, Bytes};
use crate::memory::pipeline::PHASES;

/// The live bytes of some stages at the current step, and their highest live bytes so far in each
/// phase, by lane (tile). Each list has one entry per stage, in the order in which the stages were
/// given.
#[derive(Default)]
pub(super) struct LiveSums<B, const N: usize> {
    /// One entry per stage: its live bytes at the current step, without the variables that every
    /// stage has. One more entry at the end has the live bytes of the variables that every stage
    /// has.
    pub live: Vec<[B; N]>,
    /// The index of the current phase (see [`PHASES`]).
    pub phase: usize,
    /// One entry per stage, with one entry per phase: the highest live bytes at the steps so far.
    pub highest: Vec<[Highest<B, N>; PHASES]>,
}

/// The highest live bytes of a stage in a phase, by lane (tile).
#[derive(Clone, Copy)]
pub(super) struct Highest<B, const N: usize> {
    /// The live bytes of the stage, including those of variables that every stage has.
    pub bytes: [B; N],
    /// The part of `bytes` that belongs to variables which every stage has.
    pub common: [B; N],
    /// The first step of the phase at which the live bytes of the stage are `bytes`.
    pub step: [u32; N],
}

impl<B: Bytes, const N: usize> LiveSums<B, N> {
    /// Removes all live bytes. `firsts` has one entry per stage: the first step of the stage in
    /// each phase.
    pub fn restart(&mut self, firsts: impl Iterator<Item = [u32; PHASES]>) {
        let none = [B::default(); N];
        let highest = |first| Highest {
            bytes: none,
            common: none,
            step: [first; N],
        };
        self.highest.clear();
        self.highest
            .extend(firsts.map(|firsts| firsts.map(highest)));
        self.live.clear();
        self.live.resize(self.highest.len() + 1, none);
    }

    /// Updates the highest live bytes of the stage with the index `stage` in the current phase:
    /// they become its live bytes at the current step, `step`, if these are higher. The step is
    /// kept with them.
    #[inline]
    pub fn raise_highest(&mut self, stage: usize, step: u32) {
        let (mut all, common) = (self.live[stage], self.live[self.highest.len()]);
        let highest = &mut self.highest[stage][self.phase];
        lanes::add(&mut all, &common);
        for (lane, &bytes) in all.iter().enumerate() {
            if bytes > highest.bytes[lane] {
                highest.bytes[lane] = bytes;
                highest.common[lane] = common[lane];
                highest.step[lane] = step;
            }
        }
    }
}

/// For each step, the *rows* that begin to be live or cease to be live at the step, as numbers. The
/// user of this type defines what a row is. The same buffers are used for one group of tiles after
/// the other.
#[derive(Default)]
pub(super) struct LiveChanges {
    /// The starts of lists in `rows`, as indices into it. Each step has two lists: the rows that
    /// cease to be live before the step, then the rows that begin to be live at the step. One more
    /// entry at the end is the end of the last list.
    starts: Vec<u32>,
    /// The indices of the rows of the first list, then of the second, and so on.
    rows: Vec<u32>,
}

impl LiveChanges {
    /// Replaces the lists by those for `live`, which has the half-open live ranges of rows as
    /// triples: the first step, the end and the number of the row. `steps` is the number of steps;
    /// no end may exceed it.
    pub fn load(&mut self, steps: u32, live: &[(u32, u32, u32)]) {
        self.starts.clear();
        self.starts.resize(2 * (steps as usize + 1) + 1, 0);
        let changes = || {
            live.iter()
                .flat_map(|&(from, to, row)| [(2 * from as usize + 1, row), (2 * to as usize, row)])
        };
        for (place, _) in changes() {
            self.starts[place] += 1;
        }
        let mut end = 0;
        for start in &mut self.starts {
            end += std::mem::replace(start, end);
        }
        self.rows.resize(end as usize, 0);
        for (place, row) in changes() {
            let start = &mut self.starts[place];
            self.rows[*start as usize] = row;
            *start += 1;
        }
        // The loop has moved each entry of `starts` to the start of the next list, so the entries
        // are moved back by one list.
        self.starts.rotate_right(1);
        self.starts[0] = 0;
    }

    /// Returns the numbers of the rows that are live at the step before `step` but not at `step`.
    pub fn ends(&self, step: u32) -> &[u32] {
        self.at(2 * step as usize)
    }

    /// Returns the numbers of the rows that are live at `step` but not at the step before it.
    pub fn begins(&self, step: u32) -> &[u32] {
        self.at(2 * step as usize + 1)
    }

    /// Returns the numbers of the rows in the list with the index `place`. Step `s` has the lists
    /// `2 * s` (rows that cease to be live) and `2 * s + 1` (rows that begin to be live).
    fn at(&self, place: usize) -> &[u32] {
        &self.rows[self.starts[place] as usize..self.starts[place + 1] as usize]
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
