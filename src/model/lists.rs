//! Small functions on lists.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Returns the values in ascending order, each once.
pub(crate) fn ascending<T: Ord>(all: impl IntoIterator<Item = T>) -> Box<[T]> {
    let mut all: Vec<T> = all.into_iter().collect();
    all.sort_unstable();
    all.dedup();
    all.into()
}

/// Returns, by place in a list of `count` items, the sum of the values that are passed on from an
/// item before it to one at it or later; with one more entry for the end. `passed` has the item from
/// which, the last item to which, and the value.
pub(super) fn crossing(
    count: usize,
    passed: impl Iterator<Item = (usize, usize, i64)>,
) -> Vec<i64> {
    let mut changes = vec![0; count + 1];
    for (from, to, value) in passed {
        changes[from + 1] += value;
        changes[to + 1] -= value;
    }
    let sums = changes.into_iter().scan(0, |sum, change| {
        *sum += change;
        Some(*sum)
    });
    sums.collect()
}
/// Returns how often each item occurs.
pub(super) fn counts<T: Hash + Eq>(all: impl IntoIterator<Item = T>) -> FxHashMap<T, usize> {
    let mut counts = FxHashMap::default();
    for item in all {
        *counts.entry(item).or_default() += 1;
    }
    counts
}
