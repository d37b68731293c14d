//! Live bytes step by step: sums over a window, sets of steps, and ranges of steps.

use super::lanes::{self, ByLane};
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

/// Half-open ranges of steps, ascending and disjoint: mostly one or two.
pub(super) type Steps = Vec<(u32, u32)>;

/// A position, and the steps at which it needs a variable.
pub(super) type OfPosition = (u32, Steps);

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
pub(super) fn together(own: &[OfPosition]) -> Vec<(Vec<u32>, Steps)> {
    let mut changes = Vec::new();
    for (number, (_, steps)) in own.iter().enumerate() {
        for &(from, to) in steps.iter().filter(|(from, to)| from < to) {
            changes.extend([(from, number, true), (to, number, false)]);
        }
    }
    changes.sort_unstable();
    let mut found: Vec<(Vec<u32>, Steps)> = Vec::new();
    let mut active = vec![false; own.len()];
    let mut here = changes.chunk_by(|a, b| a.0 == b.0).peekable();
    while let Some(at) = here.next() {
        // At one step, ends come before begins.
        for is_begin in [false, true] {
            let changed = at.iter().filter(|change| change.2 == is_begin);
            changed.for_each(|&(_, number, _)| active[number] = is_begin);
        }
        let Some(next) = here.peek() else { break };
        let numbered = own.iter().zip(&active).filter(|(_, is_active)| **is_active);
        let positions: Vec<u32> = numbered.map(|((position, _), _)| *position).collect();
        let steps = (at[0].0, next[0].0);
        match found.iter_mut().find(|(known, _)| *known == positions) {
            _ if positions.is_empty() => {}
            Some((_, known)) => match known.last_mut() {
                Some(last) if last.1 == steps.0 => last.1 = steps.1,
                _ => known.push(steps),
            },
            None => found.push((positions, vec![steps])),
        }
    }
    found
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
