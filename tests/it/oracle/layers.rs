//! docs/model.md, "Layers": the layer of each operation.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use regex::Regex;

use super::operations::Operation;

/// The default layer regex.
pub const LAYER_REGEX: &str = r"(?:^|\/)(?:[L|l]ayer|blocks|encoder)[\/_\.]?(\d+)";
/// The default regex for inputs of the first layer.
pub const INPUTS_REGEX: &str = "(word_embeddings|Embedding_Dict)";

/// How layers are found and ordered.
#[derive(Clone)]
pub struct Rules {
    pub layer_regex: String,
    pub inputs_regex: String,
    pub natural: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            layer_regex: LAYER_REGEX.to_string(),
            inputs_regex: INPUTS_REGEX.to_string(),
            natural: false,
        }
    }
}

pub struct Layering {
    /// The layer order; position 0 is all operations without a layer, and has no name.
    pub names: Vec<Option<String>>,
    /// The position of each operation in the layer order; `None` without a layer.
    pub layer: Vec<Option<usize>>,
    /// A note on each operation that says why.
    pub notes: Vec<String>,
    /// Did a `Call` have inputs of several layers?
    pub mixed_call: bool,
}

/// The layer of an operation, before the layers are put in order.
#[derive(Clone, PartialEq)]
enum Mark {
    None,
    /// The capture groups of the layer.
    Of(Vec<String>),
    /// The layer that comes first in the order.
    First,
}

/// Returns the distinct matches in a text, as lists of capture groups.
fn find(regex: &Regex, text: &str) -> BTreeSet<Vec<String>> {
    let groups = |captures: regex::Captures<'_>| -> Vec<String> {
        let from = usize::from(captures.len() > 1);
        let group = |index| captures.get(index).map_or("", |group| group.as_str());
        let groups = (from..captures.len()).map(|index| group(index).to_string());
        groups.collect()
    };
    regex.captures_iter(text).map(groups).collect()
}

impl Layering {
    pub fn new(operations: &[Operation], rules: &Rules) -> Self {
        let (marks, notes) = marks(operations, rules);
        let mut order: Vec<Vec<String>> = Vec::new();
        for mark in &marks {
            if let Mark::Of(key) = mark
                && !order.contains(key)
            {
                order.push(key.clone());
            }
        }
        if rules.natural {
            order.sort_by(|a, b| natural(&a.concat(), &b.concat()));
        }
        let place = |mark: &Mark| match mark {
            Mark::None => None,
            Mark::Of(key) => order.iter().position(|other| other == key).map(|n| n + 1),
            Mark::First => (!order.is_empty()).then_some(1),
        };
        let layer: Vec<Option<usize>> = marks.iter().map(place).collect();
        let names = order.iter().map(|key| Some(key.concat()));
        Self {
            names: [None].into_iter().chain(names).collect(),
            mixed_call: mixed_call(operations, rules),
            layer,
            notes,
        }
    }
}

/// Applies the rules of docs/model.md, "Layers", to all operations in reverse.
fn marks(operations: &[Operation], rules: &Rules) -> (Vec<Mark>, Vec<String>) {
    let layer_regex = Regex::new(&rules.layer_regex).expect("a regex");
    let inputs_regex = Regex::new(&rules.inputs_regex).expect("a regex");
    let mut current = Mark::None;
    let mut all = Vec::new();
    for operation in operations.iter().rev() {
        let in_name = find(&layer_regex, &operation.name);
        let in_inputs = find(&layer_regex, &operation.inputs);
        let only = |keys: &BTreeSet<Vec<String>>| Mark::Of(keys.first().expect("one").clone());
        let (mark, note) = if operation.is_tensor {
            (Mark::None, "tensor_filter".to_string())
        } else if in_name.len() == 1 {
            current = only(&in_name);
            (current.clone(), String::new())
        } else if in_inputs.len() == 1 {
            current = only(&in_inputs);
            (current.clone(), "deduced_from_input_names".to_string())
        } else if in_inputs.is_empty() && operation.name.starts_with("Call") {
            let note = "deduced_from_following_operation".to_string();
            (current.clone(), note)
        } else if inputs_regex.is_match(&operation.inputs) {
            current = Mark::First;
            (Mark::First, "inputs_regex_layer_0".to_string())
        } else {
            current = Mark::None;
            (Mark::None, format!("{}_input_layers", in_inputs.len()))
        };
        all.push((mark, note));
    }
    all.reverse();
    all.into_iter().unzip()
}

fn mixed_call(operations: &[Operation], rules: &Rules) -> bool {
    let regex = Regex::new(&rules.layer_regex).expect("a regex");
    let mut calls = operations.iter().filter(|op| op.name.starts_with("Call"));
    calls.any(|call| find(&regex, &call.inputs).len() > 1)
}

/// Compares runs of digits as numbers, and other text by characters.
fn natural(a: &str, b: &str) -> Ordering {
    let (a, b) = (runs(a), runs(b));
    let number = |run: &str| run.parse::<u128>().ok();
    for (a, b) in a.iter().zip(&b) {
        let order = match (number(a), number(b)) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.cmp(b),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

fn runs(text: &str) -> Vec<String> {
    let mut runs: Vec<String> = Vec::new();
    for c in text.chars() {
        match runs.last_mut() {
            Some(run) if run.ends_with(|p: char| p.is_ascii_digit()) == c.is_ascii_digit() => {
                run.push(c);
            }
            _ => runs.push(c.to_string()),
        }
    }
    runs
}
