//! Layers as runs of the program between which little data flows, for names that show no modules.

use super::cover::Sums;
use super::tree::{Node, Tree};
use std::ops::Range;

/// Number of layers if all runs had equal bytes.
const RUNS: u64 = 32;

/// A tree whose nodes are cut in two where least data flows, not far from half of their bytes.
pub(super) fn tree(sums: &Sums, flow: &[(usize, usize)], operations: usize) -> Tree {
    let crossing = crossing(flow, operations);
    let mut tree = Tree {
        nodes: vec![Node::new(0..operations)],
        paths: vec![Vec::new(); operations],
    };
    let mut number = 0;
    while number < tree.nodes.len() {
        let run = tree.nodes[number].operations.clone();
        if run.len() > 1 {
            let cut = cut(sums, &crossing, &run);
            let first = tree.nodes.len();
            tree.nodes.push(Node::new(run.start..cut));
            tree.nodes.push(Node::new(cut..run.end));
            tree.nodes[number].children = vec![first, first + 1];
        }
        number += 1;
    }
    tree
}

/// The largest nodes with at most 1/`RUNS` of all bytes, in the order of the program.
pub(super) fn layers(tree: &Tree, sums: &Sums) -> Vec<Vec<usize>> {
    let mut layers = Vec::new();
    let mut left = vec![0];
    while let Some(number) = left.pop() {
        let node = &tree.nodes[number];
        if node.children.is_empty() || sums.bytes(&node.operations) <= sums.all_bytes() / RUNS {
            layers.push(vec![number]);
        } else {
            left.extend(node.children.iter().rev());
        }
    }
    layers
}

/// By operation: number of operations before it whose data flows to it or a later one. `flow` is
/// ascending.
pub(super) fn crossing(flow: &[(usize, usize)], operations: usize) -> Vec<i64> {
    let mut change = vec![0i64; operations + 1];
    for flows in flow.chunk_by(|a, b| a.0 == b.0) {
        let (from, last) = flows[flows.len() - 1];
        change[from + 1] += 1;
        change[last + 1] -= 1;
    }
    let mut crossing = 0;
    change
        .iter()
        .map(|change| {
            crossing += change;
            crossing
        })
        .collect()
}

/// Where to cut a run of two operations or more: within the middle half of its bytes, where data
/// of the fewest operations crosses; the earliest of several such places.
fn cut(sums: &Sums, crossing: &[i64], run: &Range<usize>) -> usize {
    let all = sums.bytes(run);
    let is_central = |&at: &usize| {
        let before = sums.bytes(&(run.start..at));
        before >= all / 4 && before <= all - all / 4
    };
    let places = run.start + 1..run.end;
    let central = places
        .clone()
        .filter(is_central)
        .min_by_key(|&at| crossing[at]);
    let nearest = |&at: &usize| sums.bytes(&(run.start..at)).abs_diff(all / 2);
    central
        .or_else(|| places.min_by_key(nearest))
        .unwrap_or(run.end - 1)
}
