//! Layers of real models, found without options, against the blocks of the models.
//!
//! `cargo test --test it planted::modules -- --nocapture` prints each model. By default a third of
//! them run, with `SEEDS=0..1` all; `POPLINER_GRAPHS` names a folder of more graphs, which run too.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::BufReader;

use popliner::model::{LayerOptions, Layering, NO_LAYER, Note, Pass};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::places::drawn::{Drawn, GRAPHS, graph_in, in_both_modes, more_in_both_modes};
use super::places::planted::Planted;
use crate::support::{each, model_in, read_graph, sample};

/// How well the layers of a model match its blocks.
#[derive(Debug)]
struct Agreement {
    /// The share of operations of blocks whose layer mostly belongs to their block.
    pure: f64,
    /// The share of cuts between blocks that are also cuts between layers.
    cuts: f64,
    blocks: usize,
    layers: usize,
    is_ordered: bool,
}

impl Agreement {
    /// Compares the layer and the block of each operation, in the order of the program.
    fn new(operations: &[(u32, Option<&str>)]) -> Self {
        let mut shares: HashMap<u32, BTreeMap<Option<&str>, usize>> = HashMap::new();
        for &(layer, block) in operations.iter().filter(|(layer, _)| *layer != NO_LAYER) {
            *shares.entry(layer).or_default().entry(block).or_default() += 1;
        }
        let main = |layer: &u32| {
            let share = shares.get(layer)?.iter().max_by_key(|(_, count)| **count);
            share.and_then(|(block, _)| *block)
        };
        let inside: Vec<(u32, &str)> = operations
            .iter()
            .filter_map(|&(layer, block)| Some((layer, block?)))
            .collect();
        let pure = inside
            .iter()
            .filter(|(layer, block)| main(layer) == Some(block));
        let between = inside.windows(2).filter(|pair| pair[0].1 != pair[1].1);
        let cut = between.clone().filter(|pair| pair[0].0 != pair[1].0);
        let blocks: HashSet<&str> = inside.iter().map(|(_, block)| *block).collect();
        let layered = operations.iter().map(|(layer, _)| *layer);
        // A module that runs several times is one layer.
        let mut seen = HashSet::new();
        let layered: Vec<u32> = layered
            .filter(|&layer| layer != NO_LAYER && seen.insert(layer))
            .collect();
        Self {
            pure: pure.count() as f64 / inside.len() as f64,
            cuts: cut.count() as f64 / between.count().max(1) as f64,
            blocks: blocks.len(),
            layers: layered.len(),
            is_ordered: layered.is_sorted(),
        }
    }

    fn is_right(&self) -> bool {
        let few = self.layers <= (3 * self.blocks).max(64);
        self.pure >= 0.98 && self.cuts >= 0.95 && few && self.is_ordered
    }
}

/// Compares the layers of the profile of a graph with the blocks of the graph.
fn agreement(drawn: Drawn) -> Agreement {
    let Planted { folder, truth, .. } = Planted::with(drawn);
    let planted = truth.operations.iter().filter_map(|operation| {
        let context: u64 = operation.context.into();
        Some((context, (operation.forward?, operation.block.as_deref())))
    });
    let planted: HashMap<u64, (usize, Option<&str>)> = planted.collect();
    let model = model_in(folder.path());
    let layering = Layering::new(&model, &LayerOptions::default());
    let mut operations = BTreeMap::new();
    for (number, operation) in model.operations.iter().enumerate() {
        let layer = match layering.notes[number] {
            Note::Name => layering.layers[number],
            _ => NO_LAYER,
        };
        let uid = model.operation_groups[operation.group as usize].uid;
        // Gradients have the number of their forward operation.
        if let (Some(&(number, block)), Pass::Forward) = (planted.get(&uid), operation.pass) {
            operations.insert(number, (layer, block));
        }
    }
    Agreement::new(&operations.into_values().collect::<Vec<_>>())
}

#[test]
fn layers_of_real_models_are_their_blocks() {
    let mut cases = in_both_modes(&GRAPHS, 3);
    cases.extend(more_in_both_modes());
    let found = each(&cases, |(path, framework, mode)| {
        agreement(graph_in(path, framework, mode))
    });
    let all = || cases.iter().zip(&found);
    all().for_each(|(case, agreement)| println!("{case:?}: {agreement:?}"));
    let wrong: Vec<_> = all().filter(|(_, found)| !found.is_right()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// PopTorch records no scopes with `disableModuleNamescope`, only the names of parameters.
#[test]
fn parameters_show_modules_where_operations_have_no_scopes() {
    // HRNet has 12 blocks of many modules, which are more layers than allowed.
    let is_tried = |graph: &&(&str, &str)| graph.1 != "tensorflow" && graph.0 != "hrnet";
    let graphs: Vec<_> = GRAPHS.iter().filter(is_tried).copied().collect();
    let cases = in_both_modes(&graphs, 5);
    let found = each(&cases, |(path, _, mode)| {
        let mut graph = read_graph(path);
        for operation in graph["ops"].as_array_mut().expect("operations") {
            operation[0] = json!("");
        }
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("graph.json");
        std::fs::write(&path, graph.to_string()).expect("a graph");
        agreement(graph_in(&path, "poptorch", mode))
    });
    for (case, found) in cases.iter().zip(&found) {
        assert!(found.is_right(), "{case:?}: {found:?}");
    }
}

/// The context that PopTorch writes to `debug.cbor` for a call of PopART's builder.
#[derive(Debug, Deserialize)]
struct BuilderCall {
    api: String,
    category: String,
    #[serde(default, rename = "tensorId")]
    tensor: Option<String>,
    #[serde(default)]
    inputs: Vec<String>,
    #[serde(default)]
    outputs: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct DebugFile {
    contexts: Vec<BuilderCall>,
}

/// The block of YOLOv3 that a scope belongs to: a residual block or a downsampling of the
/// backbone, a detection block of the neck, or a head. The convolutions between detection blocks
/// are small and belong to no block.
fn block_of(scope: &str) -> Option<String> {
    let parts: Vec<&str> = scope.split('/').collect();
    let depth = match parts[..] {
        ["backbone", part, _, ..] if part.starts_with("conv_res_block") => 3,
        ["neck", part, ..] if part.starts_with("conv") => return None,
        ["backbone" | "neck" | "bbox_head", _, ..] => 2,
        _ => return None,
    };
    Some(parts[..depth].join("."))
}

/// The graph of the recorded calls, as `crates/synthesize/graphs` has graphs. Sizes are not
/// recorded, so all tensors are equally large.
fn graph_of(calls: &[BuilderCall]) -> Value {
    let is_parameter = |call: &&BuilderCall| call.api == "addInitializedInputTensor";
    let parameters = calls.iter().filter(is_parameter);
    let parameters: HashSet<&str> = parameters
        .filter_map(|call| call.tensor.as_deref())
        .collect();
    let mut tensors: HashMap<&str, usize> = HashMap::new();
    let (mut ops, mut blocks) = (Vec::new(), Vec::new());
    // PopART folds constants.
    let is_operation =
        |call: &&BuilderCall| call.category == "api" && !call.api.ends_with("constant");
    for call in calls.iter().filter(is_operation) {
        let name = call.outputs[0].split(':').next().unwrap_or_default();
        let (scope, kind) = name.rsplit_once('/').unwrap_or(("", name));
        let inputs = call.inputs.iter().map(String::as_str);
        let (used, inputs): (Vec<&str>, Vec<&str>) =
            inputs.partition(|name| parameters.contains(name));
        let number = |input: &&str| tensors.get(*input).map_or(-1, |&number| number as i64);
        let inputs: Vec<i64> = inputs.iter().map(number).collect();
        let first = tensors.len();
        tensors.extend(call.outputs.iter().map(String::as_str).zip(first..));
        let outputs: Vec<usize> = (first..tensors.len()).collect();
        ops.push(json!([
            scope,
            kind,
            scope.replace('/', "."),
            used,
            inputs,
            outputs
        ]));
        blocks.push(block_of(scope));
    }
    let parameters: BTreeMap<&str, u64> = parameters.into_iter().map(|name| (name, 1000)).collect();
    json!({"ops": ops, "tensors": vec![1000; tensors.len()], "parameters": parameters, "blocks": blocks})
}

#[test]
fn layers_of_a_recorded_detector_are_its_blocks() {
    let Some(path) = sample("poptorch-yolo.debug.cbor") else {
        return;
    };
    let file = BufReader::new(File::open(path).expect("a readable sample"));
    let recorded: DebugFile = ciborium::from_reader(file).expect("contexts");
    let graph = graph_of(&recorded.contexts);
    assert_eq!(graph["ops"].as_array().map(Vec::len), Some(2256));
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("graph.json");
    std::fs::write(&path, graph.to_string()).expect("a graph");
    let found = agreement(graph_in(&path, "poptorch", "inference"));
    println!("{found:?}");
    assert!(found.is_right() && found.blocks == 35, "{found:?}");
}
