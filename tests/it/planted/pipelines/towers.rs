//! Pipelines of models with two towers, such as an encoder and a decoder, whose layers come from a
//! regex or from modules: the library places what runs between two blocks.
//!
//! `cargo test --test it planted::pipelines::towers -- --nocapture` prints the distribution of
//! errors. By default a share of the cases runs; `SEEDS=0..9` runs all, with nine draws of each.
//! `POPLINER_GRAPHS` names a folder of more graphs.

use std::collections::HashMap;
use std::path::PathBuf;

use popliner::model::{LayerOptions, LayerSource};
use regex::Regex;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::places::MOST_UNDER;
use super::super::places::drawn::graph_in;
use super::drawn::Trained;
use super::errors::Errors;
use crate::support::models::{seeds, share};
use crate::support::{graph_file, more_graphs, read_graph};

/// Graphs, each with a regex whose matches are the blocks of both towers.
const GRAPHS: [(&str, &str); 3] = [
    ("clip", r"(text_model|vision_model)/encoder/(\d+)"),
    ("bart", r"(encoder|decoder)/(\d+)"),
    ("t5", r"^(encoder|decoder)/(\d+)"),
];

/// Graphs that may be in the folder `POPLINER_GRAPHS`.
const MORE: [(&str, &str); 3] = [
    ("blip", r"(vision_model|text_decoder)/.*encoder/(\d+)"),
    ("mbart", r"(encoder|decoder)/(\d+)"),
    ("speecht5", r"wrapped_(encoder|decoder)/(\d+)"),
];

/// Returns the file and the regex of each graph.
fn graphs() -> Vec<(PathBuf, &'static str)> {
    let own = GRAPHS.map(|(name, regex)| (graph_file(name), regex));
    let more = more_graphs().into_iter().filter_map(|path| {
        let is_it = |(name, _): &&(&str, &str)| path.ends_with(format!("{name}.json"));
        let regex = MORE.iter().find(is_it)?.1;
        Some((path, regex))
    });
    own.into_iter().chain(more).collect()
}

/// Writes a graph in which no weight is shared: with an embedding that encoder and decoder share,
/// all encoder blocks are on the first IPU.
fn untied(mut graph: Value) -> Value {
    let groups = graph["tied"].as_array().into_iter().flatten();
    let tied: Vec<Value> = groups
        .filter_map(Value::as_array)
        .flatten()
        .cloned()
        .collect();
    let mut own = Vec::new();
    for operation in graph["ops"].as_array_mut().expect("operations") {
        let scope = operation[0].as_str().unwrap_or_default().replace('/', ".");
        for name in operation[3].as_array_mut().expect("parameters") {
            if tied.contains(name) {
                let shared = std::mem::replace(name, json!(format!("{scope}.weight")));
                own.push((name.clone(), shared));
            }
        }
    }
    for (name, shared) in own {
        let elements = graph["parameters"][shared.as_str().expect("a name")].clone();
        graph["parameters"][name.as_str().expect("a name")] = elements;
    }
    graph["tied"] = json!([]);
    graph
}

/// Gives operations outside blocks to the block beside them in which the library has them: either of
/// two blocks is right. An operation in a layer between two blocks goes to the later one.
fn with_homes(mut graph: Value, trained: &Trained) -> Value {
    let blocks = graph["blocks"].as_array_mut().expect("blocks");
    let found = trained.forward().into_iter();
    let found: HashMap<usize, usize> = found.map(|(number, _, found)| (number, found)).collect();
    let inside = (0..blocks.len()).filter(|&op| !blocks[op].is_null());
    let mut ends: Vec<Option<usize>> = inside.map(Some).collect();
    ends.insert(0, None);
    ends.push(None);
    for pair in ends.windows(2) {
        let (before, after) = (pair[0], pair[1]);
        let is_later = |op: &usize| match before {
            Some(before) => found.get(op) > found.get(&before),
            None => after.is_some_and(|after| found.get(op) >= found.get(&after)),
        };
        let between = before.map_or(0, |op| op + 1)..after.unwrap_or(blocks.len());
        let later = between.clone().find(is_later).unwrap_or(between.end);
        for op in between {
            let home = if op < later { before } else { after };
            blocks[op] = home.map_or(Value::Null, |home| blocks[home].clone());
        }
    }
    graph
}

/// The graph and its regex, the framework, whether the regex gives the layers, and the seed.
type Case<'a> = (&'a (PathBuf, &'static str), &'a str, bool, u64);

fn trained(&((path, regex), framework, by_regex, seed): &Case<'_>) -> Option<Trained> {
    let options = LayerOptions {
        source: match by_regex {
            true => LayerSource::Regex(Regex::new(regex).expect("a regex")),
            false => LayerSource::Modules,
        },
        ..LayerOptions::default()
    };
    let folder = TempDir::new().expect("a folder");
    // The distribution of errors has the name of the file.
    let name = path.file_name().expect("a name").display();
    let source = if by_regex { "regex" } else { "modules" };
    let file = folder.path().join(format!("{name} by {source}"));
    let of = |graph: &Value| {
        std::fs::write(&file, graph.to_string()).expect("a graph");
        let trained = Trained::new(seed, graph_in(&file, framework, "training"))?;
        Some(trained.with_layers(&options))
    };
    let graph = untied(read_graph(path));
    let graph = with_homes(graph.clone(), &of(&graph)?);
    of(&graph)
}

#[test]
fn no_stage_of_two_towers_is_too_low() {
    let graphs = graphs();
    let mut cases: Vec<Case<'_>> = Vec::new();
    for graph in &graphs {
        for by_regex in [true, false] {
            for framework in ["poptorch", "tensorflow"] {
                cases.extend(seeds(3).map(|seed| (graph, framework, by_regex, seed)));
            }
        }
    }
    let cases: Vec<Case<'_>> = cases.into_iter().step_by(share(5)).collect();
    let all = Errors::of(&cases, trained);
    super::assert_none(&all, |(_, stage)| stage.under > MOST_UNDER);
}
