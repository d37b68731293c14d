//! Small functions on lists, such as sorting without duplicates, that several modules need.

use rustc_hash::FxHashMap;
use std::hash::Hash;

pub fn ascending<T: Ord>(all: impl IntoIterator<Item = T>) -> Box<[T]> {
    let mut all: Vec<T> = all.into_iter().collect();
    all.sort_unstable();
    all.dedup();
    all.into()
}

/// Sums up, for each point in a list of `count` items, the values that are passed on there, such as
/// the bytes that operations pass on to later operations. Each entry of `passed` has the item that
/// makes a value, the last item that uses it, and the value. Returns `count + 1` sums: entry `n`
/// has the values that items before `n` make and that item `n` or a later one uses.
pub fn crossing(count: usize, passed: impl Iterator<Item = (usize, usize, i64)>) -> Vec<i64> {
    let mut changes = vec![0; count + 1];
    for (from, to, value) in passed {
        changes[from + 1] += value;
        changes[to + 1] -= value;
    }
    for at in 1..changes.len() {
        changes[at] += changes[at - 1];
    }
    changes
}

pub fn counts<T: Hash + Eq>(all: impl IntoIterator<Item = T>) -> FxHashMap<T, usize> {
    let mut counts = FxHashMap::default();
    for item in all {
        *counts.entry(item).or_default() += 1;
    }
    counts
}
