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

/// Returns, by index in a list of `count` items, the sum of the values that earlier items pass on
/// to the item at this index or to later ones; with one more entry for the end. Each entry of
/// `passed` is the item that makes a value, the last item that uses it, and the value.
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
/// Returns how often each item of `all` occurs.
pub(super) fn counts<T: Hash + Eq>(all: impl IntoIterator<Item = T>) -> FxHashMap<T, usize> {
    let mut counts = FxHashMap::default();
    for item in all {
        *counts.entry(item).or_default() += 1;
    }
    counts
}
