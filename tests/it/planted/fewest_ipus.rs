//! The fewest IPUs of real models: at the limit at which whole blocks need 2, 4 or 8 IPUs, by brute
//! force over the planted bytes of all ranges of blocks, the command needs no more.
//!
//! By default a seventh of the cases run, with `SEEDS=0..1` all; `POPLINER_GRAPHS` names a folder of
//! more graphs, which run too.

use super::places::drawn::{GRAPHS, InMode, graph_in, in_both_modes, more_in_both_modes};
use super::places::planted::Planted;
use super::places::splits::Peaks;
use crate::support::{Run, each, popliner, split_of};

fn planted((path, framework, mode): &InMode) -> Planted {
    Planted::with(graph_in(path, framework, mode))
}

/// Solves a model without what a pipeline adds: the planted bytes are those of layers.
fn solve(planted: &Planted, options: &str) -> Run {
    let folder = planted.folder.path().to_str().expect("a plain path");
    let fixed = [folder, "--solve", "--schedule=none"];
    popliner(fixed.into_iter().chain(options.split(' ')))
}

/// Returns what is wrong at the limits of a model.
fn misses(case: &InMode) -> Vec<String> {
    let planted = planted(case);
    let peaks = Peaks::new(&planted);
    let mut wrong = Vec::new();
    for ipus in [2, 4, 8] {
        // The limit has 2 % of room, but is too low for half the IPUs.
        let limit = peaks.lowest(ipus).saturating_mul(102).div_ceil(100);
        if peaks.lowest(ipus / 2) <= limit {
            continue;
        }
        let run = solve(&planted, &format!("--mem-per-tile={limit}"));
        let stages: Vec<serde_json::Value> = serde_json::from_str(&run.out).unwrap_or_default();
        let count = stages.len();
        if run.code != 0 || count > ipus {
            wrong.push(format!("{case:?}, {ipus} IPUs at {limit}: {count} stages"));
        }
    }
    wrong
}

#[test]
fn no_more_ipus_are_needed_than_by_brute_force() {
    // In models other than BERT the blocks are not one after the other.
    let graphs = GRAPHS
        .into_iter()
        .filter(|(name, _)| !name.ends_with("bert"));
    let mut cases = in_both_modes(&graphs.collect::<Vec<_>>(), 7);
    cases.extend(more_in_both_modes());
    let wrong: Vec<String> = each(&cases, misses).into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Graphs without blocks, whose layers are modules or runs of operations.
const WITHOUT_BLOCKS: [(&str, &str); 3] = [
    ("albert", "poptorch"),
    ("keras_inceptionv3", "tensorflow"),
    ("keras_nasnet", "tensorflow"),
];

/// Returns the bytes on the fullest tile of the best split on 4 IPUs that the command finds, and of
/// the best split between any two operations.
fn peaks_on_four_ipus(case: &InMode) -> (u64, u64) {
    let planted = planted(case);
    let run = solve(
        &planted,
        "--num-ipus=4 --objective=peak --format=json --export-json=-",
    );
    assert!(run.code < 2, "{}", run.err);
    let (_, highest) = split_of(&run.report()["export_json"]);
    (highest.expect("bytes"), Peaks::new(&planted).lowest(4))
}

#[test]
fn cuts_between_layers_are_as_good_as_cuts_between_operations() {
    let cases = in_both_modes(&WITHOUT_BLOCKS, 6);
    for (case, (by_layers, lowest)) in cases.iter().zip(each(&cases, peaks_on_four_ipus)) {
        let above = by_layers as f64 / lowest as f64 - 1.0;
        println!("{case:?}: {:+.1} %", above * 100.0);
        assert!(
            above < 0.05,
            "{case:?}: {by_layers} bytes, and {lowest} between operations"
        );
    }
}
