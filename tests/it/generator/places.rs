//! Tensors, calls, gaps and places in the files.

use std::collections::{HashMap, HashSet};

use ciborium::Value;
use popliner::profile::encoding::decode_list;
use synthesize::places::Places;
use tempfile::TempDir;

use super::debug_file::{contexts, ids, uint};
use super::{generate, number, open, pairs, rows, sized};

type Context = HashMap<String, Value>;

fn text<'a>(context: &'a Context, key: &str) -> Option<&'a str> {
    context.get(key).and_then(Value::as_text)
}

/// Returns, for each unlowered variable by name, its contexts, innermost first.
fn chains(arguments: &str) -> Vec<(String, Vec<Context>)> {
    let directory = TempDir::new().unwrap();
    let arguments: Vec<&str> = arguments.split(' ').collect();
    generate(directory.path(), &arguments);
    let contexts = contexts(directory.path()).0.into_iter();
    let by_id: HashMap<u64, Context> = contexts
        .map(|context| (uint(context.get("id")).unwrap(), context))
        .collect();
    let profile = open(&directory.path().join("profile.pop"));
    let sql = "SELECT name, ids FROM unlowered_vars JOIN debug_ids ON id = variable_id";
    let variables = rows(&profile, sql, |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?))
    });
    let chain = |ids: Vec<u8>| {
        let first = decode_list(&ids, 1).unwrap()[0];
        let parent = |context: &&Context| by_id.get(&uint(context.get("parentId")).unwrap_or(0));
        std::iter::successors(by_id.get(&first), parent)
            .cloned()
            .collect()
    };
    variables
        .into_iter()
        .map(|(name, ids)| (name, chain(ids)))
        .collect()
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
    let training = "--framework popart --mode training --optimiser adam-each --constants";
    let found = tensors(training);
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
    for (pairs, called) in [(&[][..], 5), (&["--pairs-on-replaced"], 3)] {
        let directory = TempDir::new().unwrap();
        let arguments = ["--framework", "popart", "--outlined", "once"];
        let nested = ["--nested", "--shuffle-pairs"];
        generate(directory.path(), &[&arguments[..], &nested, pairs].concat());
        let contexts = contexts(directory.path()).0;
        let with_pairs = contexts
            .iter()
            .filter(|context| context.contains_key("outlinedDebugContextIds"));
        let with_pairs: Vec<&Context> = with_pairs.collect();
        assert_eq!(with_pairs.len(), 3 + 2 * 3, "{pairs:?}");
        let profile = open(&directory.path().join("profile.pop"));
        let sql = "SELECT debug_id FROM programs WHERE variant =
                   (SELECT id FROM program_types WHERE name = 'Call')";
        let programs: HashSet<i64> = rows(&profile, sql, |row| row.get(0)).into_iter().collect();
        let is_called =
            |context: &&&Context| programs.contains(&(uint(context.get("id")).unwrap() as i64));
        let called_with_pairs = with_pairs.iter().filter(is_called).count();
        assert_eq!(called_with_pairs, called);
        let shuffled = with_pairs
            .iter()
            .any(|call| !ids(call, "outlinedDebugContextIds").is_sorted());
        assert!(shuffled, "{pairs:?}");
    }
}

#[test]
fn calls_tell_their_layer_or_not() {
    for (anonymous, expected) in [(&[][..], 6), (&["--anonymous-calls"], 0)] {
        let directory = TempDir::new().unwrap();
        let arguments = ["--framework", "tensorflow", "--mode", "training"];
        let calls = ["--outlined", "once", "--outline-backward"];
        generate(
            directory.path(),
            &[&arguments[..], &calls, anonymous].concat(),
        );
        let profile = open(&directory.path().join("profile.pop"));
        let functions = number(&profile, "SELECT count(*) FROM function_programs");
        assert_eq!(functions, 2, "forward and backward");
        let calls = number(&profile, "SELECT count(*) FROM program_type_call");
        assert_eq!(calls, 6);
        let names = contexts(directory.path()).0;
        let names = names.iter().filter_map(|context| text(context, "op_name"));
        let named = names.filter(|name| name.contains("/blocks/") && name.contains("call_"));
        assert_eq!(named.count(), expected, "{anonymous:?}");
    }
}

/// The memory of a range of places grows with each place, is at most the sum of its parts, and
/// equals the recorded memory for all places.
#[test]
fn ranges_of_places_need_what_is_recorded() {
    for case in super::cases() {
        let directory = TempDir::new().unwrap();
        let truth = synthesize::write_with_truth(directory.path(), sized(&case)).unwrap();
        let profile = open(&directory.path().join("profile.pop"));
        let sql = "SELECT tile, total FROM memory_by_tile ORDER BY tile";
        let recorded = pairs(&profile, sql).into_iter();
        let recorded: Vec<u64> = recorded.map(|(_, total)| total as u64).collect();
        let (layers, last) = (truth.layers(), truth.layers() + 1);
        let ranges = (0..=last).flat_map(|from| (from..=last).map(move |to| (from, to)));
        let needs = |from, to| truth.bytes(Places::positions(layers, from..=to));
        let ranges: HashMap<(u32, u32), Vec<u64>> = ranges
            .map(|(from, to)| ((from, to), needs(from, to)))
            .collect();
        assert_eq!(ranges[&(0, last)], recorded, "{case:?}");
        for (&(from, to), range) in ranges.iter().filter(|((from, to), _)| from < to) {
            let (left, right) = (&ranges[&(from, to - 1)], &ranges[&(to, to)]);
            for (part, (left, right)) in range.iter().zip(left.iter().zip(right)) {
                // Each part's share of a gap is rounded up.
                let parts = *left.max(right)..=left + right + 1;
                assert!(parts.contains(part), "{case:?}, {from} to {to}");
            }
        }
        // Each of these models has one weight that several places share.
        let tied = ["--tied", "t5.json", "bert.json"];
        let is_tied = tied.iter().any(|tied| case.join(" ").contains(tied));
        assert_eq!(truth.ties().len(), usize::from(is_tied), "{case:?}");
    }
}

#[test]
fn a_model_may_have_more_layers_than_a_word_has_bits() {
    let directory = TempDir::new().unwrap();
    let options = "--layers 70 --tiles 4 --mode training --vars-per-layer-tile 1 --constants";
    let options = options.split(' ');
    let truth = synthesize::write_with_truth(directory.path(), options).expect("both files");
    let profile = open(&directory.path().join("profile.pop"));
    let sql = "SELECT tile, total FROM memory_by_tile ORDER BY tile";
    let recorded = pairs(&profile, sql)
        .into_iter()
        .map(|(_, total)| total as u64);
    let needs = |range| truth.bytes(Places::positions(70, range));
    let all = needs(0..=71);
    assert_eq!(all, recorded.collect::<Vec<u64>>());
    for (tile, all) in all.into_iter().enumerate() {
        let parts = [0..=61, 62..=66, 67..=71].map(|range| needs(range)[tile]);
        assert!(
            parts.iter().all(|&part| 0 < part && part < all),
            "{parts:?} of {all}"
        );
        assert!(parts.iter().sum::<u64>() >= all, "{parts:?} of {all}");
    }
}
