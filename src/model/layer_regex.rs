//! The rules of the original tool for layers: a regex finds the layer of an operation in its name
//! or its inputs, or else the following operation decides (docs/model.md, "Layers").

use super::{LayerOptions, Operation};
use clap::ValueEnum;
use regex::{Captures, Regex};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;

/// The rule that gave an operation its layer, or the reason why the operation has no layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// The operation has a layer, because its name contains the layer.
    Name,
    /// The operation only creates a tensor, so it has no layer.
    TensorFilter,
    /// The names of the operation's inputs have exactly one distinct match of the layer regex,
    /// which gives the layer.
    InputNames,
    /// The operation is a Call whose name and inputs contain no layer; it has the layer of the
    /// operation that follows it.
    FollowingOperation,
    /// The inputs of the operation match the regex for inputs of the first layer, so it belongs to
    /// the first layer.
    InputsRegexLayer0,
    /// The operation has no layer, because its name does not give one, and the names of its inputs
    /// have this number of distinct matches of the layer regex (none or several).
    InputLayers(usize),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Name => Ok(()),
            Note::TensorFilter => f.write_str("tensor_filter"),
            Note::InputNames => f.write_str("deduced_from_input_names"),
            Note::FollowingOperation => f.write_str("deduced_from_following_operation"),
            Note::InputsRegexLayer0 => f.write_str("inputs_regex_layer_0"),
            Note::InputLayers(count) => write!(f, "{count}_input_layers"),
        }
    }
}

/// The order in which layers from a regex are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LayerOrder {
    /// Number layers by name in natural order, where `layer2` comes before `layer10`.
    Natural,
    /// Number layers by the order of their first operations in the program.
    #[default]
    Steps,
}

/// Stands for "no layer" in place of the index of a layer. Entry 0 of
/// [`Layering::names`](super::Layering::names) is therefore empty.
pub const NO_LAYER: u32 = 0;

/// The texts of the capture groups of one match of the layer regex. They identify a layer: matches
/// with equal texts belong to the same layer.
pub type CaptureGroups = Vec<String>;

/// Finds the layer of each operation by searching for `layer_regex` in the names and inputs of
/// operations. Returns the layer of each operation (from 1, or [`NO_LAYER`]), the rule that gave
/// the layer, and the capture groups of each layer in the order of layers.
pub fn assign(
    operations: &[Operation],
    layer_regex: &Regex,
    options: &LayerOptions,
) -> (Vec<u32>, Vec<Note>, Vec<CaptureGroups>) {
    let own_layer = |operation: &Operation| {
        if operation.is_tensor {
            return (None, Note::TensorFilter);
        }
        if let Some(groups) = only(matches(layer_regex, &operation.name)) {
            return (Some(groups), Note::Name);
        }
        let in_inputs = matches(layer_regex, &operation.inputs);
        let note = match in_inputs.len() {
            1 => Note::InputNames,
            0 if operation.name.starts_with("Call") => Note::FollowingOperation,
            _ if options.inputs_regex.is_match(&operation.inputs) => Note::InputsRegexLayer0,
            count => Note::InputLayers(count),
        };
        (only(in_inputs), note)
    };
    let (found, notes): (Vec<Option<CaptureGroups>>, Vec<Note>) =
        operations.iter().map(own_layer).unzip();
    let mut seen = FxHashSet::default();
    let mut names: Vec<&CaptureGroups> = found
        .iter()
        .flatten()
        .filter(|&groups| seen.insert(groups))
        .collect();
    if let LayerOrder::Natural = options.order {
        names.sort_by(|a, b| {
            alphanumeric_sort::compare_str(a.concat(), b.concat()).then_with(|| a.cmp(b))
        });
    }
    let numbers: FxHashMap<&CaptureGroups, u32> = names.iter().copied().zip(1..).collect();
    let mut layers = vec![NO_LAYER; operations.len()];
    let mut following = NO_LAYER;
    for (at, note) in notes.iter().enumerate().rev() {
        layers[at] = match note {
            Note::FollowingOperation => following,
            Note::InputsRegexLayer0 => u32::from(!names.is_empty()),
            _ => found[at].as_ref().map_or(NO_LAYER, |own| numbers[own]),
        };
        if *note != Note::TensorFilter {
            following = layers[at];
        }
    }
    (layers, notes, names.into_iter().cloned().collect())
}

/// Returns the capture groups of each distinct match of `regex` in `text`. A capture group that
/// matches nothing is empty. If the regex has no capture groups, the whole match is the only group.
pub fn matches(regex: &Regex, text: &str) -> FxHashSet<CaptureGroups> {
    let groups = |captures: Captures<'_>| -> CaptureGroups {
        captures
            .iter()
            .skip(usize::from(captures.len() > 1))
            .map(|group| group.map_or("", |m| m.as_str()).to_string())
            .collect()
    };
    regex.captures_iter(text).map(groups).collect()
}

pub fn only(matches: FxHashSet<CaptureGroups>) -> Option<CaptureGroups> {
    let is_single = matches.len() == 1;
    matches.into_iter().next().filter(|_| is_single)
}
