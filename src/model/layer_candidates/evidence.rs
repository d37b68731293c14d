//! How much speaks for a pattern: do the numbers in it look like those of layers?

use super::patterns::{Filling, NumberPattern};
use crate::model::{Operation, Pass};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};

/// The names of a model that may say a layer, and what they cost.
pub(super) struct Names<'a> {
    pub(super) operations: &'a [Operation],
    /// By operation group: its bytes; empty where they are not known.
    pub(super) bytes: &'a [u64],
    /// By operation: may its name say a layer?
    pub(super) is_named: Vec<bool>,
}

impl<'a> Names<'a> {
    /// Tensors, and what the framework did not name, have no layer of their own.
    pub(super) fn new(operations: &'a [Operation], bytes: &'a [u64]) -> Self {
        let is_named = |operation: &Operation| {
            !operation.is_tensor && !operation.is_anonymous && has_name(&operation.name)
        };
        Self {
            operations,
            bytes,
            is_named: operations.iter().map(is_named).collect(),
        }
    }

    /// The operations whose names may say a layer.
    pub(super) fn named(&self) -> impl Iterator<Item = (usize, &'a Operation)> + '_ {
        let all = self.operations.iter().enumerate();
        all.filter(|&(index, _)| self.is_named[index])
    }

    /// How many of the named operations are `wanted`, and how many bytes they have:
    /// each group once.
    pub(super) fn covered(&self, wanted: impl Fn(usize) -> bool) -> Covered {
        let mut covered = Covered::default();
        let mut groups = FxHashSet::default();
        for (_, operation) in self.named().filter(|&(index, _)| wanted(index)) {
            covered.operations += 1;
            if groups.insert(operation.group) {
                let bytes = self.bytes.get(operation.group as usize);
                covered.bytes += u128::from(bytes.copied().unwrap_or(0));
            }
        }
        covered
    }
}

/// Is it no name of calls, tensors or operations without a name?
fn has_name(name: &str) -> bool {
    let heads = ["Anonymous", "Call(", "Tensor("];
    name != "Call" && !heads.iter().any(|head| name.starts_with(head))
}

/// Operations, and bytes of their groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Covered {
    /// How many operations.
    pub operations: usize,
    /// Bytes of the variables and the code of their groups, each group once.
    pub bytes: u128,
}

/// A part of a whole, from 0 to 1; 0 of nothing.
pub(super) fn part(some: f64, all: f64) -> f64 {
    if all > 0.0 { some / all } else { 0.0 }
}

/// A name that fills a pattern.
pub(super) struct Filled<'a> {
    pub(super) operation: usize,
    pub(super) filling: Filling<'a>,
}

/// The operations that fill one pattern, and the layers that they would have.
pub(super) struct Evidence<'a> {
    pub(super) pattern: NumberPattern<'a>,
    pub(super) filled: Vec<Filled<'a>>,
    /// By entry of `filled`: its layer, by first appearance from 0.
    pub(super) layers: Vec<u32>,
    /// By layer: what fills the pattern in it.
    pub(super) fillings: Vec<Filling<'a>>,
}

impl<'a> Evidence<'a> {
    pub(super) fn new(pattern: NumberPattern<'a>, filled: Vec<Filled<'a>>) -> Self {
        let mut numbers: FxHashMap<Filling<'a>, u32> = FxHashMap::default();
        let mut fillings = Vec::new();
        let layers = filled.iter().map(|entry| {
            *numbers.entry(entry.filling).or_insert_with(|| {
                fillings.push(entry.filling);
                fillings.len() as u32 - 1
            })
        });
        let layers = layers.collect();
        Self {
            pattern,
            filled,
            layers,
            fillings,
        }
    }

    /// Do both parts of a pattern of two tell layers apart that one of them does not?
    pub(super) fn is_refined(&self) -> bool {
        let distinct = |part: fn(&Filling<'a>) -> &'a str| {
            let parts: FxHashSet<&str> = self.fillings.iter().map(part).collect();
            parts.len()
        };
        let all = self.fillings.len();
        let (words, firsts) = (
            distinct(|filling| filling.word),
            distinct(|filling| filling.first),
        );
        match (self.pattern.after_word, self.pattern.between) {
            (Some(_), _) => words > 1 && firsts < all,
            (_, Some(between)) => {
                let stands_alone = between.bytes().any(|byte| byte.is_ascii_alphabetic());
                firsts < all && (firsts > 1 || !stands_alone)
            }
            _ => true,
        }
    }

    /// From 0 to about 1: the more, the more likely are these the layers.
    pub(super) fn score(&self, names: &Names<'_>, all: Covered) -> f64 {
        [
            self.coverage(names, all),
            self.contiguity(names),
            self.order(names),
            self.density(),
            self.likeness(names),
            self.size(names),
            self.preference(),
        ]
        .iter()
        .product()
    }

    /// Of two that are as good, finer layers can be cut in more places, and a regex
    /// with a word is easier to read.
    fn preference(&self) -> f64 {
        let NumberPattern {
            is_part,
            after_word,
            between,
            ..
        } = self.pattern;
        if between.is_some() || after_word.is_some() {
            1.0
        } else if is_part {
            0.9
        } else {
            0.91
        }
    }

    /// The part of operations and bytes that gets a layer.
    fn coverage(&self, names: &Names<'_>, all: Covered) -> f64 {
        let covered: FxHashSet<usize> = self.filled.iter().map(|entry| entry.operation).collect();
        let found = names.covered(|operation| covered.contains(&operation));
        let operations = part(found.operations as f64, all.operations as f64);
        let bytes = part(found.bytes as f64, all.bytes as f64);
        (operations + bytes) / 2.0
    }

    /// A layer is one contiguous range of each pass.
    fn contiguity(&self, names: &Names<'_>) -> f64 {
        let (mut layers, mut runs) = (0, 0);
        for pass in [Pass::Forward, Pass::Backward, Pass::Update] {
            let layers_of_pass = self.of_pass(names, pass);
            runs += layers_of_pass.chunk_by(|a, b| a == b).count();
            layers += layers_of_pass.into_iter().collect::<FxHashSet<u32>>().len();
        }
        (layers as f64 / runs.max(1) as f64).sqrt()
    }

    /// The layers of the operations of a pass, in the order of the program.
    fn of_pass(&self, names: &Names<'_>, pass: Pass) -> Vec<u32> {
        let of_pass = |operation: usize| match names.operations[operation].pass {
            Pass::Both => pass == Pass::Forward,
            wanted => wanted == pass,
        };
        let all = self.filled.iter().zip(&self.layers);
        let entry = all.filter(|(entry, _)| of_pass(entry.operation));
        entry.map(|(_, &layer)| layer).collect()
    }

    /// Their numbers grow in the forward pass.
    fn order(&self, names: &Names<'_>) -> f64 {
        let mut seen = FxHashSet::default();
        let mut first = self.of_pass(names, Pass::Forward);
        first.retain(|&layer| seen.insert(layer));
        let pairs = first.windows(2).map(|pair| {
            let [a, b] = [pair[0], pair[1]].map(|layer| self.fillings[layer as usize]);
            a.word != b.word || numbers(a) < numbers(b)
        });
        let (all, growing) = pairs.fold((0, 0), |(all, growing), grows| {
            (all + 1, growing + usize::from(grows))
        });
        0.4 + 0.6 * (f64::from(growing as u32) / f64::from(all.max(1) as u32))
    }

    /// Their numbers have few gaps.
    fn density(&self) -> f64 {
        let mut spans: FxHashMap<(&str, &str), (u64, u64, usize)> = FxHashMap::default();
        for &filling in &self.fillings {
            let (first, second) = numbers(filling);
            let (outer, number) = match self.pattern.between {
                Some(_) => (filling.first, second),
                None => ("", first),
            };
            let span = spans
                .entry((filling.word, outer))
                .or_insert((number, number, 0));
            *span = (span.0.min(number), span.1.max(number), span.2 + 1);
        }
        let (mut there, mut wide) = (0.0, 0.0);
        for (lowest, highest, count) in spans.into_values() {
            there += count as f64;
            wide += (highest - lowest) as f64 + 1.0;
        }
        0.5 + 0.5 * (there / f64::max(wide, 1.0))
    }

    /// Layers repeat each other: an operation of one has its like in the others.
    fn likeness(&self, names: &Names<'_>) -> f64 {
        let shapes = self.filled.iter().map(|entry| {
            let name = &names.operations[entry.operation].name;
            shape(name, entry.filling.word)
        });
        let shapes: Vec<u64> = shapes.collect();
        let pairs: FxHashSet<(u64, u32)> = shapes
            .iter()
            .copied()
            .zip(self.layers.iter().copied())
            .collect();
        let mut layers_with: FxHashMap<u64, usize> = FxHashMap::default();
        for (shape, _) in pairs {
            *layers_with.entry(shape).or_default() += 1;
        }
        let sum: usize = shapes.iter().map(|shape| layers_with[shape]).sum();
        let all_pairs = shapes.len() * self.fillings.len();
        0.2 + 0.8 * (sum as f64 / all_pairs.max(1) as f64)
    }

    /// Layers have several operations.
    fn size(&self, names: &Names<'_>) -> f64 {
        let forward = self.of_pass(names, Pass::Forward);
        let layers: FxHashSet<u32> = forward.iter().copied().collect();
        let each = forward.len() as f64 / layers.len().max(1) as f64;
        f64::min(1.0, 0.4 + 0.2 * each)
    }
}

/// Runs of a few digits, so both fit.
fn numbers(filling: Filling<'_>) -> (u64, u64) {
    let number = |text: &str| text.parse().unwrap_or(0);
    (number(filling.first), number(filling.second))
}

/// A name without its numbers and without `word`.
fn shape(name: &str, word: &str) -> u64 {
    let mut hasher = FxHasher::default();
    let parts = if word.is_empty() {
        None
    } else {
        name.split_once(word)
    };
    let (before, after) = parts.unwrap_or((name, ""));
    for part in [before, after] {
        let words = part
            .split(|c: char| c.is_ascii_digit())
            .filter(|word| !word.is_empty());
        words.for_each(|word| word.hash(&mut hasher));
    }
    hasher.finish()
}
