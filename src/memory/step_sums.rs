//! Live bytes step by step: sums over a window, live ranges of a class, and sets of steps.

use super::lanes::{self, ByLane};
use crate::profile::LiveClasses;
use std::ops::Range;

/// When the variables of a class are live. Reading it takes one access to memory, where the ranges
/// of the class take three. Most classes have one half-open step range, or two, one for each pass.
#[derive(Debug, Clone, Copy)]
pub(super) enum ClassLife {
    /// On every step.
    Always,
    Once([(u32, u32); 1]),
    Twice([(u32, u32); 2]),
    /// On more than two ranges, or on none.
    Otherwise,
}

impl ClassLife {
    pub(super) fn of(classes: &LiveClasses, class: u32) -> Self {
        match *classes.ranges(class) {
            _ if classes.is_always_live(class) => Self::Always,
            [range] => Self::Once([range]),
            [first, second] => Self::Twice([first, second]),
            _ => Self::Otherwise,
        }
    }

    /// The half-open step ranges of `class`, which `self` was made of; `None` if it is live on
    /// every step.
    #[inline]
    pub(super) fn ranges<'a>(
        &'a self,
        classes: &'a LiveClasses,
        class: u32,
    ) -> Option<&'a [(u32, u32)]> {
        match self {
            Self::Always => None,
            Self::Once(range) => Some(range),
            Self::Twice(ranges) => Some(ranges),
            Self::Otherwise => Some(classes.ranges(class)),
        }
    }
}

/// Live bytes in a window of steps, by lane.
#[derive(Debug, Default)]
pub(super) struct StepSums<const N: usize> {
    window: Range<u32>,
    /// Bytes that are live on the first step of the window.
    at_start: ByLane<i64, N>,
    /// Later steps of the window, each with a change of the live bytes.
    changes: Vec<(u32, [i64; N])>,
}

impl<const N: usize> StepSums<N> {
    /// Starts with nothing live in a window of steps.
    pub(super) fn new(window: Range<u32>) -> Self {
        Self {
            window,
            ..Self::default()
        }
    }

    /// Clears the sums for another window.
    pub(super) fn restart(&mut self, window: Range<u32>) {
        self.window = window;
        self.at_start = ByLane::default();
        self.changes.clear();
    }

    /// Adds bytes that are live on half-open step ranges.
    pub(super) fn add(&mut self, bytes: [u64; N], ranges: &[(u32, u32)]) {
        let bytes = bytes.map(|bytes| bytes as i64);
        let Range { start, end } = self.window;
        for &(from, to) in ranges {
            let (from, to) = (from.max(start), to.min(end));
            if from >= to {
                continue;
            }
            match from == start {
                true => lanes::add(&mut self.at_start, &bytes),
                false => self.changes.push((from, bytes)),
            }
            if to < end {
                self.changes.push((to, bytes.map(|bytes| -bytes)));
            }
        }
    }

    /// The live bytes at the start of the window, and at each later step with changes.
    pub(super) fn points(&mut self) -> impl Iterator<Item = (u32, [u64; N])> {
        self.changes.sort_unstable_by_key(|&(step, _)| step);
        let mut live = *self.at_start;
        let first = (self.window.start, live);
        let changed = self
            .changes
            .chunk_by(|a, b| a.0 == b.0)
            .map(move |changes| {
                for (_, change) in changes {
                    lanes::add(&mut live, change);
                }
                (changes[0].0, live)
            });
        let all = [first].into_iter().chain(changed);
        all.map(|(step, live)| (step, live.map(|bytes| bytes as u64)))
    }

    /// By lane, the highest live bytes.
    pub(super) fn highest(&mut self) -> [u64; N] {
        self.points().fold([0; N], |mut highest, (_, live)| {
            lanes::raise(&mut highest, &live);
            highest
        })
    }
}

/// A set of steps, one bit each.
#[derive(Debug, Default)]
pub(super) struct StepSet(Vec<u64>);

impl StepSet {
    /// Empties the set and makes room for steps below `count`.
    pub(super) fn restart(&mut self, count: usize) {
        self.0.clear();
        self.0.resize(count.div_ceil(64), 0);
    }

    /// Adds a step.
    ///
    /// # Panics
    /// When `step` is not below the count given to [`StepSet::restart`].
    pub(super) fn add(&mut self, step: u32) {
        self.0[step as usize / 64] |= 1 << (step % 64);
    }
}

/// Calls `visit` with each step that any of `sets` has, ascending, and with whether each set has
/// it. All sets must have room for the same count.
pub(super) fn visit<const N: usize>(sets: [&StepSet; N], mut visit: impl FnMut(u32, [bool; N])) {
    let words = sets.iter().map(|set| set.0.len()).min().unwrap_or(0);
    for index in 0..words {
        let words = sets.map(|set| set.0[index]);
        let mut rest = words.iter().fold(0, |all, word| all | word);
        while rest != 0 {
            let bit = rest.trailing_zeros();
            rest &= rest - 1;
            visit(
                index as u32 * 64 + bit,
                words.map(|word| word >> bit & 1 == 1),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_half_open_and_clipped_to_the_window() {
        let mut sums = StepSums::new(2..6);
        sums.add([100], &[(0, 2), (6, 9)]);
        assert_eq!(sums.points().collect::<Vec<_>>(), [(2, [0])]);
        sums.add([1], &[(0, 3)]);
        sums.add([2], &[(3, 5)]);
        sums.add([4], &[(5, 9)]);
        let points = [(2, [1]), (3, [2]), (5, [4])];
        assert_eq!(sums.points().collect::<Vec<_>>(), points);
        sums.add([8], &[(0, 9)]);
        assert_eq!(sums.highest(), [12]);
    }

    #[test]
    fn steps_come_in_order_with_the_sets_they_are_in() {
        let mut sets = [StepSet::default(), StepSet::default()];
        sets.iter_mut().for_each(|set| set.restart(130));
        [129, 0, 64].iter().for_each(|&step| sets[0].add(step));
        [64, 63].iter().for_each(|&step| sets[1].add(step));
        let mut seen = Vec::new();
        visit([&sets[0], &sets[1]], |step, is_in| seen.push((step, is_in)));
        let (first, second, both) = ([true, false], [false, true], [true, true]);
        assert_eq!(seen, [(0, first), (63, second), (64, both), (129, first)]);
        sets[0].restart(64);
        sets[1].restart(64);
        visit([&sets[0], &sets[1]], |_, _| panic!("nothing is left"));
    }
}
