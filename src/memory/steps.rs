//! Live bytes step by step: sums over a window, and ranges of steps.

use super::lanes::{self, ByLane};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Live bytes in a window of steps, by lane.
#[derive(Debug, Default)]
pub(super) struct StepSums<const N: usize> {
    window: Range<u32>,
    /// Bytes that are live on the first step of the window.
    at_start: ByLane<u64, N>,
    /// Later steps of the window, each with a change of the live bytes, which wraps around.
    changes: Vec<(u32, [u64; N])>,
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
                self.changes.push((to, bytes.map(u64::wrapping_neg)));
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
        [first].into_iter().chain(changed)
    }

    /// By lane, the highest live bytes.
    pub(super) fn highest(&mut self) -> [u64; N] {
        self.points().fold([0; N], |mut highest, (_, live)| {
            lanes::raise(&mut highest, &live);
            highest
        })
    }
}

/// Half-open ranges of steps, ascending and disjoint: mostly one or two.
pub(super) type Steps = Vec<(u32, u32)>;

/// A position, and the steps at which it needs a variable.
pub(super) type OfPosition = (u32, Steps);

/// Positions, and the steps at which exactly they need a variable.
pub(super) type OfPositions = (Vec<u32>, Steps);

/// Sorts and merges ranges, so that they ascend and are disjoint.
pub(super) fn joined(ranges: impl IntoIterator<Item = (u32, u32)>) -> Steps {
    let mut ranges: Steps = ranges.into_iter().filter(|(from, to)| from < to).collect();
    ranges.sort_unstable();
    let mut joined = Steps::new();
    for (from, to) in ranges {
        match joined.last_mut() {
            Some(last) if last.1 >= from => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

/// `ranges` without the steps of `others`; both ascend and are disjoint.
pub(super) fn without(ranges: &[(u32, u32)], others: &[(u32, u32)]) -> Steps {
    let mut others = others.iter().filter(|range| range.0 < range.1).peekable();
    let mut left = Steps::new();
    for &(mut from, to) in ranges {
        while let Some(&&(first, end)) = others.peek()
            && first < to
        {
            if from < first {
                left.push((from, first));
            }
            from = from.max(end);
            if end > to {
                break;
            }
            others.next();
        }
        if from < to {
            left.push((from, to));
        }
    }
    left
}

/// Groups steps by the positions that need the variables together: each set of positions has the
/// steps at which exactly its positions need them.
pub(super) fn together(own: &[OfPosition]) -> Vec<OfPositions> {
    let mut changes = Vec::new();
    for (position, steps) in own {
        for &(from, to) in steps.iter().filter(|(from, to)| from < to) {
            changes.extend([(from, true, *position), (to, false, *position)]);
        }
    }
    // At one step, ends come before begins.
    changes.sort_unstable();
    let mut found: BTreeMap<Vec<u32>, Steps> = BTreeMap::new();
    let (mut active, mut from) = (BTreeSet::new(), 0);
    for (step, is_begin, position) in changes {
        if from < step && !active.is_empty() {
            let steps = found.entry(active.iter().copied().collect()).or_default();
            match steps.last_mut() {
                Some(last) if last.1 == from => last.1 = step,
                _ => steps.push((from, step)),
            }
        }
        from = step;
        match is_begin {
            true => active.insert(position),
            false => active.remove(&position),
        };
    }
    found.into_iter().collect()
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
    fn steps_are_joined_and_taken_away() {
        assert_eq!(
            joined([(4, 6), (1, 2), (2, 3), (5, 5)])[..],
            [(1, 3), (4, 6)]
        );
        assert_eq!(without(&[(0, 4), (6, 9)], &[(2, 7)])[..], [(0, 2), (7, 9)]);
        assert_eq!(without(&[(0, 4)], &[(3, 2)])[..], [(0, 4)]);
        let others = [(1, 2), (4, 6), (9, 12), (20, 30)];
        let left = [(0, 1), (2, 4), (6, 9), (12, 13), (15, 20)];
        assert_eq!(without(&[(0, 10), (11, 13), (15, 22)], &others)[..], left);
    }
}
