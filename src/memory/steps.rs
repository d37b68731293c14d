//! Sums of live bytes at each liveness step, and operations on sets of liveness steps.

use super::lanes;
use std::{collections::BTreeMap, ops::Range};

/// The live bytes at each step of a range of liveness steps, side by side for up to `N` tiles.
/// Variables are added one by one.
pub struct StepSums<const N: usize> {
    window: Range<u32>,
    /// Changes of the live bytes within `window`, where variables begin or cease to be live: pairs
    /// of a step and the change in each lane (tile), in any order. Decreases are negative numbers
    /// in wrapping arithmetic. The first step always has a change, if only of 0 bytes.
    changes: Vec<(u32, [u64; N])>,
}

impl<const N: usize> StepSums<N> {
    pub fn new(window: Range<u32>) -> Self {
        Self {
            changes: vec![(window.start, [0; N])],
            window,
        }
    }

    /// Adds the bytes of a variable, by lane (tile), at the liveness steps of `ranges`, the
    /// variable's half-open live ranges. Steps outside the window that [`StepSums::new`] was given
    /// are ignored.
    pub fn add(&mut self, bytes: [u64; N], ranges: &[(u32, u32)]) {
        let Range { start, end } = self.window;
        for &(from, to) in ranges {
            let (from, to) = (from.max(start), to.min(end));
            if from < to {
                self.changes.push((from, bytes));
                if to < end {
                    self.changes.push((to, bytes.map(u64::wrapping_neg)));
                }
            }
        }
    }

    /// Iterates over pairs of a liveness step and the live bytes in each lane (tile) from this step
    /// on, in ascending order. There is one pair for the first step of the window that
    /// [`StepSums::new`] was given, and one for each later step at which variables begin or cease
    /// to be live.
    pub fn points(&mut self) -> impl Iterator<Item = (u32, [u64; N])> {
        self.changes.sort_unstable_by_key(|&(step, _)| step);
        let mut live = [0; N];
        self.changes
            .chunk_by(|a, b| a.0 == b.0)
            .map(move |changes| {
                for (_, change) in changes {
                    lanes::add(&mut live, change);
                }
                (changes[0].0, live)
            })
    }

    pub fn highest(&mut self) -> [u64; N] {
        self.points().fold([0; N], |mut highest, (_, live)| {
            lanes::raise(&mut highest, &live);
            highest
        })
    }
}

/// A set of liveness steps as half-open ranges, ascending and disjoint. Most sets have one or two
/// ranges.
pub type Steps = Vec<(u32, u32)>;

/// A position of the layer order (In, a layer or Out), and the liveness steps at which it needs a
/// certain variable.
pub type StepsOfPosition = (u32, Steps);

pub fn has_step(ranges: &[(u32, u32)], step: u32) -> bool {
    ranges.iter().any(|&(from, to)| (from..to).contains(&step))
}

/// Sorts half-open ranges of liveness steps and joins ranges that overlap or touch.
pub fn merged(ranges: impl IntoIterator<Item = (u32, u32)>) -> Steps {
    let mut ranges: Steps = ranges.into_iter().filter(|(from, to)| from < to).collect();
    ranges.sort_unstable();
    let mut merged = Steps::new();
    for range in ranges {
        append(&mut merged, range);
    }
    merged
}

/// Appends a half-open range of liveness steps to `steps`, or joins it with the last range if they
/// overlap or touch. The range must not begin before any range in `steps`.
fn append(steps: &mut Steps, (from, to): (u32, u32)) {
    match steps.last_mut() {
        Some(last) if last.1 >= from => last.1 = last.1.max(to),
        _ => steps.push((from, to)),
    }
}

/// Returns the liveness steps of `ranges` that are in none of `others`. All lists have half-open
/// ranges, ascending and disjoint; empty ranges in `others` are ignored.
pub fn without(ranges: &[(u32, u32)], others: &[(u32, u32)]) -> Steps {
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

/// Groups the liveness steps at which positions (In, layers, Out) need a variable. `own` has the
/// steps of each position. A key of the result is a set of positions (ascending); its value has the
/// steps at which exactly these positions need the variable.
pub fn by_positions(own: &[StepsOfPosition]) -> BTreeMap<Vec<u32>, Steps> {
    let ranges = own
        .iter()
        .flat_map(|(position, steps)| steps.iter().map(move |&(from, to)| (from, to, *position)));
    let mut found = BTreeMap::<Vec<u32>, Steps>::new();
    each_stretch(ranges, |from, to, positions| {
        let positions = positions.keys().copied().collect();
        append(found.entry(positions).or_default(), (from, to));
    });
    found
}

/// Cuts a sequence of liveness steps (or tiles) into pieces at both ends of each of `ranges`. Each
/// range is half-open and has an owner, such as a layer. Calls `visit` in ascending order for each
/// piece that any range contains: with the first step of the piece, its end (exclusive), and the
/// owners of all ranges that contain it, each with the number of these ranges.
pub fn each_stretch<T: Copy + Ord>(
    ranges: impl Iterator<Item = (u32, u32, T)>,
    mut visit: impl FnMut(u32, u32, &BTreeMap<T, i32>),
) {
    let mut changes: Vec<(u32, i32, T)> = ranges
        .filter(|(from, to, _)| from < to)
        .flat_map(|(from, to, owner)| [(from, 1, owner), (to, -1, owner)])
        .collect();
    changes.sort_unstable();
    let (mut owners, mut from) = (BTreeMap::new(), 0);
    for (to, change, owner) in changes {
        if from < to && !owners.is_empty() {
            visit(from, to, &owners);
        }
        from = to;
        let count = owners.entry(owner).or_default();
        *count += change;
        if *count == 0 {
            owners.remove(&owner);
        }
    }
}

/// Returns the smallest range of liveness steps that contains all of `windows`, as its first and
/// its last step, both inclusive. Windows that are `None` are ignored; the result is `None` if all
/// are.
pub fn covering(windows: &[Option<(u32, u32)>]) -> Option<(u32, u32)> {
    windows
        .iter()
        .flatten()
        .copied()
        .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
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
            merged([(4, 6), (1, 2), (2, 3), (5, 5)])[..],
            [(1, 3), (4, 6)]
        );
        assert_eq!(without(&[(0, 4), (6, 9)], &[(2, 7)])[..], [(0, 2), (7, 9)]);
        assert_eq!(without(&[(0, 4)], &[(3, 2)])[..], [(0, 4)]);
        let others = [(1, 2), (4, 6), (9, 12), (20, 30)];
        let left = [(0, 1), (2, 4), (6, 9), (12, 13), (15, 20)];
        assert_eq!(without(&[(0, 10), (11, 13), (15, 22)], &others)[..], left);
    }
}
