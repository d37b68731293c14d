//! Layers of real models, found without options, against the blocks of the models.
//!
//! `cargo test --test it planted::modules -- --nocapture` prints each model. By default a third of
//! them run, with `SEEDS=0..1` all.

use std::collections::{BTreeMap, HashMap, HashSet};

use popliner::model::{LayerOptions, Layering, NO_LAYER, Note, Pass};
use tempfile::TempDir;

use crate::support::models::pairs;
use crate::support::{each, graph_file, model_in};

/// Graphs of real models with blocks, and the framework of each.
const GRAPHS: [(&str, &str); 10] = [
    ("bert", "poptorch"),
    ("bart", "poptorch"),
    ("t5", "poptorch"),
    ("clip", "poptorch"),
    ("resnet50", "poptorch"),
    ("hrnet", "poptorch"),
    ("unet_sd", "poptorch"),
    ("keras_resnet50", "tensorflow"),
    ("keras_xception", "tensorflow"),
    ("tf_bert", "tensorflow"),
];

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
        let layered: Vec<u32> = layered.filter(|&layer| layer != NO_LAYER).collect();
        Self {
            pure: pure.count() as f64 / inside.len() as f64,
            cuts: cut.count() as f64 / between.count().max(1) as f64,
            blocks: blocks.len(),
            layers: layered.iter().collect::<HashSet<_>>().len(),
            is_ordered: layered.is_sorted(),
        }
    }

    fn is_right(&self) -> bool {
        let few = self.layers <= (3 * self.blocks).max(64);
        self.pure >= 0.98 && self.cuts >= 0.95 && few && self.is_ordered
    }
}

/// Compares the layers of a graph's profile in a mode with the graph's blocks.
fn agreement((graph, framework, mode): &(&str, &str, &str)) -> Agreement {
    let file = graph_file(graph);
    let folder = TempDir::new().expect("a folder");
    let options = ["--graph", file.to_str().expect("a plain path")];
    let settings = ["--framework", framework, "--mode", mode, "--tiles", "4"];
    let options: Vec<String> = options
        .iter()
        .chain(&settings)
        .map(|o| o.to_string())
        .collect();
    let truth = synthesize::write_with_truth(folder.path(), &options).expect("both files");
    let planted = truth.operations().iter().filter_map(|operation| {
        let context: u64 = operation.context.into();
        Some((context, (operation.forward?, operation.block.as_deref())))
    });
    let planted: HashMap<u64, (usize, Option<&str>)> = planted.collect();
    let model = model_in(folder.path());
    let layering = Layering::new(&model, &LayerOptions::default());
    let mut operations = BTreeMap::new();
    for (number, operation) in model.operations.iter().enumerate() {
        let is_named = layering.notes[number] == Note::Name;
        let layer = if is_named {
            layering.layers[number]
        } else {
            NO_LAYER
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
    let cases = pairs(&GRAPHS, &["inference", "training"], 3);
    let cases: Vec<_> = cases.map(|(of, mode)| (of.0, of.1, *mode)).collect();
    let found = each(&cases, agreement);
    for (case, agreement) in cases.iter().zip(&found) {
        println!("{case:?}: {agreement:?}");
    }
    let wrong: Vec<_> = cases
        .iter()
        .zip(&found)
        .filter(|(_, found)| !found.is_right())
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
