//! Functions on lists that several parts of the model need.

use rustc_hash::FxHashMap;
use std::hash::Hash;

pub fn ascending<T: Ord>(all: impl IntoIterator<Item = T>) -> Box<[T]> {
    let mut all: Vec<T> = all.into_iter().collect();
    all.sort_unstable();
    all.dedup();
    all.into()
}

/// Returns, for each of `count` items in order (such as operations) and for the end, the sum of the
/// values (such as bytes) that earlier items make and that this or a later item uses. Each entry of
/// `passed` has the item that makes a value, the last item that uses the value, and the value.
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
