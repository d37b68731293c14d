//! Joins small pieces between blocks to a neighbouring block.

use super::cover::Sums;
use super::tree::Tree;
use std::ops::Range;

/// A run is small if its operations are at most 1/`FEW_OPERATIONS` of those of a typical run.
const FEW_OPERATIONS: usize = 6;

/// A run is small if its bytes are at most 1/`FEW_BYTES` of those of a typical run.
const FEW_BYTES: u64 = 4;

/// Joins small runs, such as a cast or a shortcut, to the neighbouring run in the same module, or
/// between two modules to the run that their data flows to. `is_used(run, next)` says whether data
/// flows from the first to the second. Returns the nodes of each joined run.
pub(super) fn attach(
    tree: &Tree,
    sums: &Sums,
    chosen: &[usize],
    is_used: impl Fn(&Range<usize>, &Range<usize>) -> bool,
) -> Vec<Vec<usize>> {
    let run = |at: usize| &tree.nodes[chosen[at]].operations;
    let operations: Vec<u64> = (0..chosen.len()).map(|at| run(at).len() as u64).collect();
    let bytes: Vec<u64> = (0..chosen.len()).map(|at| sums.bytes(run(at))).collect();
    let (typical_operations, typical_bytes) = (typical(&operations), typical(&bytes));
    let is_small = |at: usize| {
        operations[at].saturating_mul(FEW_OPERATIONS as u64) <= typical_operations
            && bytes[at].saturating_mul(FEW_BYTES) <= typical_bytes
    };
    let shared = |a: usize, b: usize| {
        let pairs = tree.path(chosen[a]).iter().zip(tree.path(chosen[b]));
        pairs.take_while(|(a, b)| a == b).count()
    };
    // By run: does it join the run before it?
    let mut is_joined = vec![false; chosen.len()];
    for at in (0..chosen.len()).filter(|&at| is_small(at)) {
        let before = at.checked_sub(1).map(|before| shared(before, at));
        let after = (at + 1 < chosen.len()).then(|| shared(at, at + 1));
        let is_before = match (before, after) {
            (Some(before), Some(after)) if before == after => !is_used(run(at), run(at + 1)),
            (before, after) => before > after,
        };
        match (is_before, before, after) {
            (true, Some(_), _) => is_joined[at] = true,
            (false, _, Some(_)) => is_joined[at + 1] = true,
            _ => {}
        }
    }
    let mut joined: Vec<Vec<usize>> = Vec::new();
    for (&node, is_joined) in chosen.iter().zip(is_joined) {
        match joined.last_mut() {
            Some(last) if is_joined => last.push(node),
            _ => joined.push(vec![node]),
        }
    }
    joined
}

/// The size for which half of the total is in runs of at most this size.
fn typical(sizes: &[u64]) -> u64 {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let all: u128 = sorted.iter().map(|&size| u128::from(size)).sum();
    let mut seen = 0;
    let typical = sorted.iter().find(|&&size| {
        seen += u128::from(size);
        2 * seen >= all
    });
    typical.copied().unwrap_or(0)
}
