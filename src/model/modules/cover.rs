//! Which modules are layers: the cover of the module tree that describes the program in the fewest
//! words (docs/model.md, "Layers from modules").

use super::tree::{Node, Tree};
use rustc_hash::FxHashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::Range;

/// Cost of naming one layer, in operations: with less, parts of blocks become layers, with more,
/// whole stages of blocks.
pub(super) const WORD: f64 = 1.5;

/// A module with more than 1/`LARGE` of all bytes is cut into its parts if no other module is like
/// it.
pub(super) const LARGE: u64 = 4;

/// A hash of an operation type; sums of different types are different.
fn hash(kind: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(kind)
}

/// Sums over any run of operations.
#[derive(Debug)]
pub(super) struct Sums {
    /// By operation: bytes of all operations before it.
    bytes: Vec<u64>,
    /// By operation: sum of the hashes of the types of all operations before it.
    types: Vec<u64>,
}

impl Sums {
    pub(super) fn new<'a>(bytes: &[u64], types: impl Iterator<Item = &'a str>) -> Self {
        let mut sums = Self {
            bytes: vec![0],
            types: vec![0],
        };
        for (&bytes, kind) in bytes.iter().zip(types) {
            let (before, types) = (
                sums.bytes[sums.bytes.len() - 1],
                sums.types[sums.types.len() - 1],
            );
            sums.bytes.push(before.saturating_add(bytes));
            sums.types.push(types.wrapping_add(hash(kind)));
        }
        sums
    }

    /// Bytes of a run of operations.
    pub(super) fn bytes(&self, operations: &Range<usize>) -> u64 {
        self.bytes[operations.end] - self.bytes[operations.start]
    }

    /// Bytes of all operations.
    pub(super) fn all_bytes(&self) -> u64 {
        self.bytes[self.bytes.len() - 1]
    }

    /// A number that is equal for runs with the same types of operations, each equally often.
    fn likeness(&self, operations: &Range<usize>) -> u64 {
        self.types[operations.end].wrapping_sub(self.types[operations.start])
    }

    /// Does a run have more than 1/[`LARGE`] of all bytes?
    pub(super) fn is_large(&self, operations: &Range<usize>) -> bool {
        self.bytes(operations) > self.all_bytes() / LARGE
    }
}

/// Lengths of descriptions of runs: each costs a word, and the operations of runs that are alike
/// are described once.
pub(super) struct Lengths<'a> {
    sums: &'a Sums,
    alike: FxHashMap<u64, u32>,
    word: f64,
}

impl<'a> Lengths<'a> {
    pub(super) fn new<'r>(
        sums: &'a Sums,
        runs: impl Iterator<Item = &'r Range<usize>>,
        word: f64,
    ) -> Self {
        let mut alike = FxHashMap::default();
        for run in runs {
            *alike.entry(sums.likeness(run)).or_default() += 1;
        }
        Self { sums, alike, word }
    }

    /// Is no other run like this one?
    pub(super) fn is_alone(&self, run: &Range<usize>) -> bool {
        self.alike
            .get(&self.sums.likeness(run))
            .is_none_or(|&count| count < 2)
    }

    /// Length of the description of a run, in operations.
    pub(super) fn of(&self, run: &Range<usize>) -> f64 {
        let alike = self.alike.get(&self.sums.likeness(run)).copied();
        self.word + run.len() as f64 / f64::from(alike.unwrap_or(1))
    }
}

/// The nodes that cover the tree in the shortest description, in the order of the program.
pub(super) fn cover(tree: &Tree, sums: &Sums, word: f64) -> Vec<usize> {
    let runs = tree.nodes.iter().map(|node| &node.operations);
    let described = Lengths::new(sums, runs, word);
    let mut is_cut = vec![false; tree.nodes.len()];
    let mut lengths = vec![0.0; tree.nodes.len()];
    // Parts come after the modules that they belong to.
    for (number, node) in tree.nodes.iter().enumerate().rev() {
        let whole = described.of(&node.operations);
        let parts: f64 = node.children.iter().map(|&child| lengths[child]).sum();
        is_cut[number] = !node.children.is_empty() && (number == 0 || parts < whole);
        lengths[number] = if is_cut[number] { parts } else { whole };
    }
    let mut chosen = Vec::new();
    // Parts of a large module stay whole unless they are large themselves.
    let mut left = vec![(0, false)];
    while let Some((number, is_part)) = left.pop() {
        let node = &tree.nodes[number];
        let is_cut_by_words = is_cut[number] && !is_part;
        if is_cut_by_words {
            cut_alike(tree, &node.children, &mut is_cut);
        }
        let is_container = !node.children.is_empty()
            && sums.is_large(&node.operations)
            && described.is_alone(&node.operations);
        if is_cut_by_words || is_container {
            let children = node.children.iter().rev();
            left.extend(children.map(|&child| (child, !is_cut_by_words)));
        } else {
            chosen.push(number);
        }
    }
    chosen
}

/// Also cuts a module if most of its siblings with the same parts, weighted by operations, are cut:
/// the first stage of blocks is often shorter than the others.
fn cut_alike(tree: &Tree, siblings: &[usize], is_cut: &mut [bool]) {
    let parts = |node: &Node| {
        let mut parts: Vec<u32> = node
            .children
            .iter()
            .map(|&child| tree.nodes[child].component)
            .collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    };
    let mut votes: FxHashMap<u32, i64> = FxHashMap::default();
    let mut undecided = Vec::new();
    for &sibling in siblings {
        let node = &tree.nodes[sibling];
        let operations = node.operations.len() as i64;
        let parts = parts(node);
        for &part in &parts {
            *votes.entry(part).or_default() += if is_cut[sibling] {
                operations
            } else {
                -operations
            };
        }
        if !is_cut[sibling] && parts.len() > 1 {
            undecided.push((sibling, parts));
        }
    }
    for (sibling, parts) in undecided {
        let cut = parts.iter().filter(|part| votes[part] > 0).count();
        is_cut[sibling] = 2 * cut > parts.len();
    }
}
