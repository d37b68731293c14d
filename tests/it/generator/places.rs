//! Tensors, calls, gaps and places in the files.

use std::collections::{HashMap, HashSet};

use ciborium::Value;
use popliner::profile::encoding::decode_list;
use synthesize::place_truth::PlaceTruth;
use synthesize::places::Places;
use tempfile::TempDir;

use super::debug_file::{Context, contexts, ids, uint};
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

#[test]
fn names_tell_no_layer_where_none_shall() {
    for framework in ["popart", "poptorch", "tensorflow", "poplar"] {
        let arguments =
            format!("--framework {framework} --mode training --optimiser adam-fused --names none");
        let chains = chains(&arguments);
        let is_moment = |name: &str| {
            let ends = ["/Adam", "/Adam_1", "/m", "/v"];
            name.starts_with("Accl") || ends.iter().any(|end| name.ends_with(end))
        };
        let moments = chains.iter().filter(|(name, _)| is_moment(name));
        let names: Vec<&String> = moments.map(|(name, _)| name).collect();
        assert!(names.len() >= 2 * 3, "{names:?}");
        let has_layer = |name: &&&String| ["ayer", "blocks"].iter().any(|l| name.contains(l));
        assert_eq!(names.iter().find(has_layer), None, "{framework}");
    }
}

#[test]
fn pairs_of_nested_calls_stand_where_they_are_asked_for() {
    // Each of the three layers has one call with two more inside it; the body has the clones of
    // these two.
    for (pairs, called) in [("", 5), ("--pairs-on-replaced", 3)] {
        let nested = "--framework popart --outlined once --nested --shuffle-pairs";
        let made = Made::of(&format!("{nested} {pairs}"));
        let contexts = contexts(made.directory.path()).0.into_iter();
        let with_pairs = contexts.filter(|own| own.contains_key("outlinedDebugContextIds"));
        let with_pairs: Vec<Context> = with_pairs.collect();
        assert_eq!(with_pairs.len(), 3 + 2 * 3, "{pairs}");
        let sql = "SELECT debug_id FROM programs WHERE variant =
                   (SELECT id FROM program_types WHERE name = 'Call')";
        let programs: Vec<u64> = rows(&made.profile, sql, |row| row.get(0));
        let is_called = |own: &&Context| programs.contains(&uint(own, "id").unwrap());
        assert_eq!(with_pairs.iter().filter(is_called).count(), called);
        let is_sorted = |own: &Context| ids(own, "outlinedDebugContextIds").is_sorted();
        assert!(!with_pairs.iter().all(is_sorted), "{pairs}");
    }
}

#[test]
fn calls_tell_their_layer_or_not() {
    for (anonymous, expected) in [("", 6), ("--anonymous-calls", 0)] {
        let outlined = "--framework tensorflow --mode training --outlined once --outline-backward";
        let made = Made::of(&format!("{outlined} {anonymous}"));
        // Forward and backward.
        assert_eq!(made.number("SELECT count(*) FROM function_programs"), 2);
        assert_eq!(made.number("SELECT count(*) FROM program_type_call"), 6);
        let names = contexts(made.directory.path()).0;
        let names = names.iter().filter_map(|context| text(context, "op_name"));
        let named = names.filter(|name| name.contains("/blocks/") && name.contains("call_"));
        assert_eq!(named.count(), expected, "{anonymous}");
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

#[test]
fn a_model_may_have_more_layers_than_a_word_has_bits() {
    let options = "--layers 70 --tiles 4 --mode training --vars-per-layer-tile 1 --constants";
    let (truth, recorded) = with_truth(options);
    let needs = |range| truth.bytes(Places::positions(70, range));
    let all = needs(0..=71);
    assert_eq!(all, recorded);
    for (tile, all) in all.into_iter().enumerate() {
        let parts = [0..=61, 62..=66, 67..=71].map(|range| needs(range)[tile]);
        let are_parts = parts.iter().all(|&part| 0 < part && part < all);
        let sum: u64 = parts.iter().sum();
        assert!(are_parts && sum >= all, "{parts:?} of {all}");
    }
}
