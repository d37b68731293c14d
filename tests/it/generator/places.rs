//! Tensors, calls, gaps and places in the files.

use std::collections::{HashMap, HashSet};

use ciborium::Value;
use popliner::profile::encoding::decode_list;
use synthesize::place_truth::PlaceTruth;
use synthesize::places::Places;
use tempfile::TempDir;

use super::debug_file::{Context, contexts, uint};
use super::{Made, SIZE, open, rows};
use crate::support::Words;

fn text<'a>(context: &'a Context, key: &str) -> Option<&'a str> {
    context.get(key).and_then(Value::as_text)
}

/// Returns, for each unlowered variable by name, its contexts, innermost first.
fn chains(options: &str) -> Vec<(String, Vec<Context>)> {
    let made = Made::of(options);
    let contexts = contexts(made.directory.path()).0.into_iter();
    let by_id = contexts.map(|context| (uint(&context, "id").unwrap(), context));
    let by_id: HashMap<u64, Context> = by_id.collect();
    let chain = |ids: Vec<u8>| {
        let first = decode_list(&ids, 1).unwrap()[0];
        let parent = |own: &&Context| by_id.get(&uint(own, "parentId")?);
        let chain = std::iter::successors(by_id.get(&first), parent);
        chain.cloned().collect()
    };
    let sql = "SELECT name, ids FROM unlowered_vars JOIN debug_ids ON id = variable_id";
    rows(&made.profile, sql, |row| {
        Ok((row.get(0)?, chain(row.get(1)?)))
    })
}

/// Returns the PopART tensors of variables: name, type, element type.
fn tensors(arguments: &str) -> HashSet<[String; 3]> {
    let chains = chains(arguments);
    let contexts = chains.iter().flat_map(|(_, chain)| chain);
    let tensors = contexts.filter(|context| text(context, "category") == Some("tensor"));
    let fields = ["tensorId", "type", "elementType"];
    tensors
        .map(|tensor| fields.map(|field| text(tensor, field).unwrap().to_string()))
        .collect()
}

#[test]
fn variables_lead_to_their_tensors() {
    let found = tensors("--framework popart --mode training --optimiser adam-each --constants");
    for [name, kind, element] in [
        ["Layer1/Attention/Query/weight", "Variable", "FLOAT16"],
        ["Accl1___Layer1/Attention/Query/weight", "Variable", "FLOAT"],
        ["Accl2___Layer2/FF/1/weight", "Variable", "FLOAT"],
        ["Embedding_Dict", "Variable", "FLOAT16"],
        ["constant_0", "Const", "FLOAT16"],
        ["learningRate_FLOAT", "Stream", "FLOAT"],
    ] {
        let tensor = [name, kind, element].map(str::to_string);
        assert!(found.contains(&tensor), "{tensor:?} in {found:?}");
    }
    assert!(found.iter().all(|tensor| !tensor[0].contains("onnx::")));
}

/// A weight that is not trained has no state, and no update of its own.
#[test]
fn frozen_weights_have_no_state() {
    let found =
        tensors("--framework popart --mode training --optimiser adam-each --accumulation --frozen");
    let has = |name: &str| found.iter().any(|tensor| tensor[0] == name);
    let [trained, frozen] = ["Layer2/FF/1/weight", "Layer0/FF/1/weight"];
    assert!(has(trained) && has(frozen), "{found:?}");
    for state in ["Accl1___", "Accl2___", "Accum___"] {
        assert!(has(&format!("{state}{trained}")), "{state}");
        assert!(!has(&format!("{state}{frozen}")), "{state}");
    }
}

/// Writes a model, and returns its true memory of places and its recorded bytes of each tile.
fn with_truth(options: &str) -> (PlaceTruth, Vec<u64>) {
    let folder = TempDir::new().unwrap();
    let model = synthesize::write(folder.path(), options.words()).unwrap();
    let profile = open(&folder.path().join("profile.pop"));
    let recorded = "SELECT total FROM memory_by_tile ORDER BY tile";
    (model.places(), rows(&profile, recorded, |row| row.get(0)))
}

/// The memory of a range of places grows with each place, is at most the sum of its parts, and
/// equals the recorded memory for all places.
#[test]
fn ranges_of_places_need_what_is_recorded() {
    for case in super::cases() {
        let (truth, recorded) = with_truth(&format!("{SIZE} {case}"));
        let (layers, last) = (truth.layers, truth.layers + 1);
        let ranges = (0..=last).flat_map(|from| (from..=last).map(move |to| (from, to)));
        let needs = |(from, to)| truth.bytes(Places::positions(layers, from..=to));
        let ranges = ranges.map(|range| (range, needs(range)));
        let ranges: HashMap<(u32, u32), Vec<u64>> = ranges.collect();
        assert_eq!(ranges[&(0, last)], recorded, "{case}");
        for (&(from, to), range) in ranges.iter().filter(|((from, to), _)| from < to) {
            let (left, right) = (&ranges[&(from, to - 1)], &ranges[&(to, to)]);
            for (part, (left, right)) in range.iter().zip(left.iter().zip(right)) {
                // Each part's share of a gap is rounded up.
                let parts = *left.max(right)..=left + right + 1;
                assert!(parts.contains(part), "{case}, {from} to {to}");
            }
        }
        // Each of these models has one weight that several places share.
        let tied = ["--tied", "t5.json", "bert.json"];
        let is_tied = tied.iter().any(|tied| case.contains(tied));
        assert_eq!(truth.ties.len(), usize::from(is_tied), "{case}");
    }
}
