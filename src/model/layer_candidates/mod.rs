//! Which numbers in the names of operations may be those of layers: candidates for
//! the layer regex of a model that no other was written for.
//!
//! Every number in a name belongs to a pattern: the word before it (`layer/#`,
//! `CS #`), two of them (`stage#/block#`), or the word before that as well
//! (`encoder/layer/#`). Patterns whose numbers vary are judged by what layers are
//! like: they cover most operations and bytes, each is one range of the program,
//! their numbers grow from step to step and have few gaps, each has several
//! operations, and an operation of one has its like in the others. The best are
//! written as regexes, and what these find in the model is what a candidate says of
//! itself.

mod evidence;
mod patterns;
mod regexes;

use super::{LayerOptions, Layering, NO_LAYER, Note, Operation};
use crate::limits;
pub use evidence::Covered;
use evidence::{Evidence, Filled, Names, part};
use patterns::{Filling, NumberPattern};
use regex::Regex;
use rustc_hash::{FxHashMap, FxHashSet};

/// How many candidates a user sees.
const MAX_CANDIDATES: usize = 3;
/// How many patterns are judged: those that cover most.
const MAX_JUDGED: usize = 64;
/// How many of them are tried as regexes.
const MAX_TRIED: usize = 12;

/// A regex that may find the layers of a model.
#[derive(Debug, Clone)]
pub struct LayerCandidate {
    /// The regex, for `--layer-name-regex`.
    pub regex: Regex,
    /// How many layers it finds.
    pub layers: usize,
    /// How much of the operations that have a name gets a layer.
    pub covered: Covered,
    /// All operations that have a name.
    pub all: Covered,
    /// Names of an operation of the first layer and of one of the last.
    pub samples: [Box<str>; 2],
}

impl LayerCandidate {
    /// The best candidates, the most likely first. `bytes` are those of each
    /// operation group, where they are known; where inputs name the first layer and
    /// how layers are ordered, `options` say.
    pub fn find(operations: &[Operation], bytes: &[u64], options: &LayerOptions) -> Vec<Self> {
        let names = Names::new(operations, bytes);
        let all = names.covered(|_| true);
        let mut judged: Vec<(f64, Evidence<'_>)> = evidence(&names)
            .into_iter()
            .map(|evidence| (evidence.score(&names, all), evidence))
            .collect();
        judged.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let mut partitions = FxHashSet::default();
        // A pattern that finds equal layers is no other candidate.
        judged.retain(|(_, evidence)| partitions.insert(evidence.partition()));
        let tried = judged.iter().take(MAX_TRIED);
        let found = tried.filter_map(|(_, evidence)| candidate(evidence, &names, all, options));
        found.take(MAX_CANDIDATES).collect()
    }

    /// The part of the operations, and of their bytes, that gets a layer, in per cent.
    pub fn per_cent(&self) -> [f64; 2] {
        [
            part(self.covered.operations as f64, self.all.operations as f64),
            part(self.covered.bytes as f64, self.all.bytes as f64),
        ]
        .map(|part| part * 100.0)
    }
}

/// The patterns that may say layers, with all that fills them.
fn evidence<'a>(names: &Names<'a>) -> Vec<Evidence<'a>> {
    let chosen = varying(names);
    let mut filled: FxHashMap<NumberPattern<'a>, Vec<Filled<'a>>> = FxHashMap::default();
    for (operation, operation_of) in names.named() {
        for (pattern, filling) in patterns::of_name(&operation_of.name) {
            if chosen.contains(&pattern) {
                let entry = Filled { operation, filling };
                filled.entry(pattern).or_default().push(entry);
            }
        }
    }
    let all = filled.into_iter();
    let mut all: Vec<Evidence<'a>> = all
        .map(|(pattern, evidence)| Evidence::new(pattern, evidence))
        .collect();
    all.retain(|evidence| {
        (2..=limits::LAYERS).contains(&evidence.fillings.len()) && evidence.is_refined()
    });
    // Of equals the plainest comes first.
    all.sort_by_key(|evidence| evidence.pattern.rank());
    all
}

/// The patterns that different numbers fill, those that most operations fill first.
fn varying<'a>(names: &Names<'a>) -> FxHashSet<NumberPattern<'a>> {
    // How many operations fill each, what the first of them does, and whether another
    // fills it otherwise.
    let mut seen: FxHashMap<NumberPattern<'a>, (usize, Filling<'a>, bool)> = FxHashMap::default();
    for (_, operation_of) in names.named() {
        for (pattern, filling) in patterns::of_name(&operation_of.name) {
            let (count, first, varies) = seen.entry(pattern).or_insert((0, filling, false));
            *count += 1;
            *varies |= *first != filling;
        }
    }
    let mut varying: Vec<_> = seen
        .into_iter()
        .filter(|(_, seen_values)| seen_values.2)
        .collect();
    // A map has no order of its own.
    varying.sort_by_key(|(pattern, (count, ..))| (std::cmp::Reverse(*count), pattern.rank()));
    let chosen = varying.into_iter().take(MAX_JUDGED);
    chosen.map(|(pattern, _)| pattern).collect()
}

/// The candidate of a pattern: the first of its regexes that finds just its layers.
fn candidate(
    evidence: &Evidence<'_>,
    names: &Names<'_>,
    all: Covered,
    options: &LayerOptions,
) -> Option<LayerCandidate> {
    let found = regexes::of(evidence).into_iter().find_map(|regex| {
        let regex = Regex::new(&regex).ok()?;
        let options = LayerOptions {
            layer_regex: regex.clone(),
            ..options.clone()
        };
        let layering = Layering::new(names.operations, &options);
        evidence.agrees(&layering).then_some((regex, layering))
    });
    let (regex, layering) = found?;
    let found = names.covered(|operation| layering.layers[operation] != NO_LAYER);
    let sample = |layer: u32| {
        let mut entries = evidence.filled.iter();
        let first = entries.find(|found| layering.layers[found.operation] == layer);
        first.map_or(Box::default(), |found| {
            names.operations[found.operation].name.clone()
        })
    };
    let layers = layering.len() - 1;
    Some(LayerCandidate {
        layers,
        covered: found,
        all,
        samples: [sample(1), sample(layers as u32)],
        regex,
    })
}

impl Evidence<'_> {
    /// Does a regex give every operation that fills the pattern a layer by its name,
    /// and tell as many layers apart as the pattern does?
    fn agrees(&self, layering: &Layering) -> bool {
        let layer = |entry: &Filled<'_>| {
            let layer = layering.layers[entry.operation];
            let by_name = layering.notes[entry.operation] == Note::Name;
            (by_name && layer != NO_LAYER).then_some(layer)
        };
        let layers: Option<FxHashSet<u32>> = self.filled.iter().map(layer).collect();
        layers.is_some_and(|layers| layers.len() == self.fillings.len())
    }

    /// Which operations have the same layer: equal for patterns that tell the same
    /// layers apart.
    fn partition(&self) -> Vec<(usize, u32)> {
        let operations = self.filled.iter().map(|entry| entry.operation);
        operations.zip(self.layers.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests;
