//! The fewest IPUs of real models: at the limit at which whole blocks need 2, 4 or 8 IPUs, by brute
//! force over the planted bytes of all ranges of blocks, the command needs no more.
//!
//! By default a seventh of the cases run, with `SEEDS=0..1` all.

use std::collections::HashMap;
use std::path::Path;

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

/// The planted bytes of all ranges of positions between which a model may be cut: no tied weight is
/// on two IPUs.
struct Ranges<'t> {
    truth: &'t PlaceTruth,
    /// Positions at which a stage may begin or end, ascending.
    cuts: Vec<u32>,
    peaks: HashMap<(u32, u32), u64>,
}

impl<'t> Ranges<'t> {
    fn new(truth: &'t PlaceTruth) -> Self {
        let positions = truth.layers() + 2;
        let before = |cut: u32| Places::positions(truth.layers(), 0..=cut.max(1) - 1);
        let is_allowed = |&cut: &u32| {
            let mut ties = truth.ties().iter().map(|(_, tied)| *tied);
            cut == 0 || ties.all(|tied| !before(cut).meets(tied) || before(cut).holds(tied))
        };
        Self {
            truth,
            cuts: (0..=positions).filter(is_allowed).collect(),
            peaks: HashMap::new(),
        }
    }

    fn peak(&mut self, start: u32, end: u32) -> u64 {
        let truth = self.truth;
        let peak = || {
            let places = Places::positions(truth.layers(), start..=end - 1);
            truth.bytes(places).into_iter().max().expect("tiles")
        };
        *self.peaks.entry((start, end)).or_insert_with(peak)
    }

    /// The fewest ranges within a limit that make up the model, if at most `most` do. A longer
    /// range never needs less, so each goes as far as it fits.
    fn fewest(&mut self, limit: u64, most: usize) -> Option<usize> {
        let mut first = 0;
        for stages in 1..=most {
            let (mut fits, mut exceeds) = (first, self.cuts.len());
            while fits + 1 < exceeds {
                let middle = fits.midpoint(exceeds);
                match self.peak(self.cuts[first], self.cuts[middle]) <= limit {
                    true => fits = middle,
                    false => exceeds = middle,
                }
            }
            match fits {
                _ if fits + 1 == self.cuts.len() => return Some(stages),
                _ if fits == first => return None,
                _ => first = fits,
            }
        }
        None
    }

    /// The lowest peak in bytes of any split into at most so many ranges.
    fn lowest_peak(&mut self, stages: usize) -> u64 {
        let all = self.peak(0, self.cuts[self.cuts.len() - 1]);
        let (mut exceeds, mut fits) = (0, all);
        while exceeds + 1 < fits {
            let middle = exceeds.midpoint(fits);
            match self.fewest(middle, stages) {
                Some(_) => fits = middle,
                None => exceeds = middle,
            }
        }
        fits
    }
}

/// Writes the profile of a graph in a mode, on four tiles.
fn written(file: &Path, framework: &str, mode: &str) -> (TempDir, PlaceTruth) {
    let folder = TempDir::new().expect("a folder");
    let file = file.to_str().expect("a plain path");
    let settings = ["--framework", framework, "--mode", mode, "--tiles", "4"];
    let options = [&["--graph", file], &settings[..]].concat();
    let truth = synthesize::write_with_truth(folder.path(), &options).expect("both files");
    (folder, truth)
}

/// Returns what is wrong at the limits of a model in a mode.
fn misses(&(graph, framework, mode): &(&str, &str, &str)) -> Vec<String> {
    let (folder, truth) = written(&graph_file(graph), framework, mode);
    let mut ranges = Ranges::new(&truth);
    let mut found = Vec::new();
    for ipus in [2, 4, 8] {
        // With 2 % of room, and where fewer IPUs are not enough.
        let limit = ranges.lowest_peak(ipus).saturating_mul(102).div_ceil(100);
        if ranges.lowest_peak(ipus / 2) <= limit {
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
    let cases = pairs(&GRAPHS, &["inference", "training"], 7);
    let cases: Vec<_> = cases.map(|(of, mode)| (of.0, of.1, *mode)).collect();
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
fn peaks_on_four_ipus(&(graph, framework, mode): &(&str, &str, &str)) -> (u64, u64) {
    let (folder, truth) = written(&graph_file(graph), framework, mode);
    let report = folder.path().join("report.json");
    let files = [folder.path(), Path::new("--export-json"), &report];
    let options = [
        "--solve",
        "--num-ipus=4",
        "--objective=peak",
        "--schedule=none",
    ];
    let run = popliner(files.into_iter().chain(options.iter().map(Path::new)));
    assert!(run.code < 2, "{}", run.err);
    let report = std::fs::read(report).expect("a report");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    let stages = report["split"]["stages"].as_array().expect("stages");
    let peaks = stages
        .iter()
        .map(|stage| stage["fullest_tile"]["bytes"].as_u64());
    let highest = peaks.max().flatten().expect("bytes");
    (highest, Ranges::new(&truth).lowest_peak(4))
}

#[test]
fn cuts_between_layers_are_as_good_as_cuts_between_operations() {
    let cases = pairs(&WITHOUT_BLOCKS, &["inference", "training"], 6);
    let cases: Vec<_> = cases.map(|(of, mode)| (of.0, of.1, *mode)).collect();
    for (case, (by_layers, lowest)) in cases.iter().zip(each(&cases, peaks_on_four_ipus)) {
        let above = by_layers as f64 / lowest as f64 - 1.0;
        println!("{case:?}: {:+.1} %", above * 100.0);
        assert!(
            above < 0.05,
            "{case:?}: {by_layers} bytes, and {lowest} between operations"
        );
    }
}
