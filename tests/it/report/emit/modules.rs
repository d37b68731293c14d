//! Blocks at the modules of real models: the model's forward pass begins each block once, in the
//! order of the stages. `search::layer_names` checks that each path is that of the right module.
//!
//! With `SEEDS=0..1` all graphs run with more stages, by default a share of both.

use super::graphs::Printed;
use super::{numbered, parsed};
use crate::support::models::share;
use crate::support::{each, graph_file, read_graph};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Graphs of PyTorch. Most cuts of UNet and ALBERT are inside modules, or where a module runs
/// again.
const GRAPHS: [&str; 8] = [
    "bert", "unet_sd", "t5", "albert", "resnet50", "clip", "hrnet", "bart",
];

/// Reads a list of the file of a graph: its operations or its blocks.
fn read(graph: &str, list: &str) -> Vec<Value> {
    let graph = read_graph(graph_file(graph));
    graph[list].as_array().expect("a list").clone()
}

/// Returns, for each operation of a graph, the paths of the modules that are being called.
fn calls(graph: &str) -> Vec<Vec<String>> {
    let modules = |operation: Value| {
        let path = operation[2].as_str().expect("a module");
        let ends = path.match_indices('.').map(|(at, _)| at);
        let ends = ends.chain([path.len()]);
        ends.map(|end| path[..end].to_string()).collect()
    };
    read(graph, "ops").into_iter().map(modules).collect()
}

/// Returns the path of a module in Python below `model`.
fn path(module: &str) -> String {
    let path = module.strip_prefix("model").expect("below the model");
    let path = path.replace('[', ".").replace(']', "");
    path.trim_start_matches('.').to_string()
}

/// Returns the IPUs of blocks, in the order in which a forward pass begins them.
fn begun(calls: &[Vec<String>], blocks: &[(String, usize)]) -> Vec<usize> {
    let mut begun = Vec::new();
    let mut before: &[String] = &[];
    for called in calls {
        let shared = called.iter().zip(before).take_while(|(a, b)| a == b);
        for module in &called[shared.count()..] {
            let block = blocks.iter().filter(|(path, _)| path == module);
            begun.extend(block.map(|&(_, ipu)| ipu));
        }
        before = called;
    }
    begun
}

fn check(&(graph, ipus): &(&str, usize)) {
    let options = format!("--num-ipus={ipus}");
    let printed = Printed::of(graph, "poptorch", "inference", &options);
    let calls = calls(graph);
    // A placeholder is no module, and Python reports that.
    let text = printed.form("poptorch");
    let text = text.replace("BeginBlock(...,", "BeginBlock(model.none,");
    let found = or_skip!(parsed("poptorch", &text));
    let blocks = numbered(&found["blocks"]).into_iter();
    let blocks = blocks.map(|(module, ipu)| (path(&module), ipu));
    let (missing, blocks): (Vec<_>, Vec<_>) = blocks.partition(|(path, _)| path == "none");
    let said = text.matches("# WARNING: no module begins where").count();
    assert_eq!(missing.len(), said, "{text}");
    let ipus: Vec<usize> = blocks.iter().map(|&(_, ipu)| ipu).collect();
    assert_eq!(begun(&calls, &blocks), ipus, "{graph}: {text}");
}

#[test]
fn blocks_begin_at_modules_of_the_model() {
    let cases = GRAPHS.iter().flat_map(|&graph| [(graph, 4), (graph, 7)]);
    each(&cases.step_by(share(5)).collect::<Vec<_>>(), check);
}

/// Only blocks of transformers are counted, and each is in one stage, or a warning says that it is
/// not.
#[test]
fn counts_are_of_the_blocks_of_the_model() {
    for graph in ["bert", "t5", "bart", "clip"].iter().step_by(share(3)) {
        let printed = Printed::of(graph, "poptorch", "inference", "--num-ipus=4");
        let text = printed.form("examples");
        let blocks = read(graph, "blocks");
        let blocks: HashSet<&str> = blocks.iter().filter_map(Value::as_str).collect();
        let found: Value = serde_yaml_ng::from_str(text).expect("YAML");
        let counts = found["layers_per_ipu"].as_array().expect("counts").iter();
        let sum: u64 = counts.map(|count| count.as_u64().expect("a count")).sum();
        assert_eq!(sum, blocks.len() as u64, "{graph}: {text}");
    }
}

/// Every Keras layer of a functional model has its stage. The layers that begin a stage are the
/// ones of `pipeline_splits`.
#[test]
fn stages_are_of_layers_of_the_model() {
    for graph in ["keras_resnet50", "keras_xception"] {
        let printed = Printed::of(graph, "tensorflow", "inference", "--num-ipus=4");
        let text = printed.form("keras");
        let operations = read(graph, "ops");
        let operations = operations.iter();
        let scopes = operations.map(|operation| operation[0].as_str().expect("a scope"));
        let mut layers: Vec<&str> = scopes.filter_map(|scope| scope.split('/').nth(1)).collect();
        let mut seen = HashSet::new();
        layers.retain(|layer| seen.insert(*layer));
        let source = format!("#layers {}\n{text}", json!(layers));
        let found = or_skip!(parsed("keras", &source));
        let stages = numbered(&found["model"]);
        let is_sorted = stages.is_sorted_by_key(|(_, stage)| stage);
        assert!(is_sorted, "{graph}: {stages:?}");
        let changes = stages.windows(2).filter(|pair| pair[0].1 < pair[1].1);
        let begun: Vec<&String> = changes.map(|pair| &pair[1].0).collect();
        assert_eq!(begun.len() + 1, printed.stages().len(), "{graph}: {text}");
        let splits = printed.form("pipeline-splits");
        let splits: Value = serde_yaml_ng::from_str(splits).expect("YAML");
        assert_eq!(splits["pipeline_splits"], json!(begun), "{graph}");
    }
}
