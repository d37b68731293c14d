//! The fewest IPUs of real models: at the limit at which whole blocks need 2, 4 or 8 IPUs, by brute
//! force over the planted bytes of all ranges of blocks, the command needs no more.
//!
//! By default a fifth of the cases run, with `SEEDS=0..1` all.

use std::collections::HashMap;

use synthesize::place_truth::PlaceTruth;
use synthesize::places::Places;
use tempfile::TempDir;

use crate::support::models::pairs;
use crate::support::{each, graph_file, popliner};

/// Graphs of real models whose blocks are one after the other, and the framework of each.
const GRAPHS: [(&str, &str); 8] = [
    ("clip", "poptorch"),
    ("resnet50", "poptorch"),
    ("hrnet", "poptorch"),
    ("unet_sd", "poptorch"),
    ("bart", "poptorch"),
    ("t5", "poptorch"),
    ("keras_resnet50", "tensorflow"),
    ("keras_xception", "tensorflow"),
];

/// Returns by the number of stages, from 0, the lowest peak in bytes of any split into at most that
/// many ranges of positions in which no tied weight is on two IPUs.
fn lowest_peaks(truth: &PlaceTruth, most: usize) -> Vec<u64> {
    let positions = truth.layers() as usize + 2;
    let range = |start, end| Places::positions(truth.layers(), start as u32..=end as u32 - 1);
    let is_allowed = |places: Places| {
        let mut ties = truth.ties().iter();
        ties.all(|(_, tied)| !places.meets(*tied) || places.holds(*tied))
    };
    let mut peaks = HashMap::new();
    for (start, end) in
        (0..positions).flat_map(|start| (start + 1..=positions).map(move |end| (start, end)))
    {
        let places = range(start, end);
        if is_allowed(places) {
            let highest = truth.bytes(places).into_iter().max().expect("tiles");
            peaks.insert((start, end), highest);
        }
    }
    // By the number of positions that are in a stage.
    let mut reached = vec![u64::MAX; positions + 1];
    reached[0] = 0;
    let mut lowest = vec![u64::MAX];
    for _ in 0..most {
        let mut next = reached.clone();
        for (&(start, end), &peak) in &peaks {
            next[end] = next[end].min(reached[start].max(peak));
        }
        reached = next;
        lowest.push(reached[positions]);
    }
    lowest
}

/// Returns what is wrong at the limits of a model in a mode.
fn misses(&(graph, framework, mode): &(&str, &str, &str)) -> Vec<String> {
    let file = graph_file(graph);
    let folder = TempDir::new().expect("a folder");
    let file = file.to_str().expect("a plain path");
    let settings = ["--framework", framework, "--mode", mode, "--tiles", "4"];
    let options = [&["--graph", file], &settings[..]].concat();
    let truth = synthesize::write_with_truth(folder.path(), &options).expect("both files");
    let lowest = lowest_peaks(&truth, 8);
    let mut found = Vec::new();
    for ipus in [2, 4, 8] {
        // With 2 % of room, and where fewer IPUs are not enough.
        let limit = lowest[ipus].saturating_mul(102).div_ceil(100);
        if lowest[ipus / 2] <= limit {
            continue;
        }
        let limit = format!("--mem-per-tile={limit}");
        let folder = folder.path().to_str().expect("a plain path");
        // The planted bytes are those of layers, without what a pipeline adds.
        let run = popliner([folder, "--solve", &limit, "--schedule=none"]);
        let stages: Vec<serde_json::Value> = serde_json::from_str(&run.out).unwrap_or_default();
        if run.code != 0 || stages.len() > ipus {
            let count = stages.len();
            found.push(format!(
                "{graph} {mode}, {ipus} IPUs at {limit}: {count} stages"
            ));
        }
    }
    found
}

#[test]
fn no_more_ipus_are_needed_than_by_brute_force() {
    let cases = pairs(&GRAPHS, &["inference", "training"], 5);
    let cases: Vec<_> = cases.map(|(of, mode)| (of.0, of.1, *mode)).collect();
    let wrong: Vec<String> = each(&cases, misses).into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
