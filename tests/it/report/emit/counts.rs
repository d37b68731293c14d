//! The split that Optimum makes of `layers_per_ipu`, computed as its code does, against what the
//! comment says about it.

use super::graphs::write_model;
use crate::support::models::share;
use crate::support::{each, read_json, root, run_on, split_of, typed};
use regex::Regex;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Splits of graphs: some begin a stage inside a block, some outside blocks, some at blocks only.
const CASES: &str = "
    bert --splits=3,6,9
    bert --splits=3,6.output,9
    bart --splits=encoder.layers.6,decoder.embed_tokens,decoder.layers.6
    bart --splits=encoder.embed_positions,encoder.layers.6,decoder.layers.6
    clip --splits=pre_layrnorm,text_model.embeddings,text_projection
    clip --num-ipus=4 --mem-per-tile=150000
    t5 --splits=encoder.block.0,encoder.final_layer_norm,decoder.final_layer_norm
    t5 --num-ipus=4
";

/// Returns the names of the layers on each IPU, without IPUs that have none: In and what runs before
/// the first block on IPU 0, blocks by their numbers, what runs between blocks with the block before
/// it, and what runs after the last block on the last IPU. `layers` has In first, and Out last.
fn placed(layers: &[Value], counts: &[usize]) -> Vec<Vec<Value>> {
    let block = Regex::new(r"^(?:.*?[./])??\d+(?:[./]|$)").expect("a regex");
    let counted = counts.iter().enumerate();
    let of_layer: Vec<usize> = counted.flat_map(|(ipu, &count)| vec![ipu; count]).collect();
    let block_of = |name: &Value| {
        let found = block.find(name.as_str()?)?;
        Some(found.as_str().trim_end_matches('.').to_owned())
    };
    let last = layers.iter().rposition(|name| block_of(name).is_some());
    let last = last.expect("a block");
    let mut ipus = vec![Vec::new(); counts.len()];
    let (mut seen, mut ipu) = (Vec::new(), 0);
    for (at, name) in layers.iter().enumerate() {
        if let Some(block) = block_of(name)
            && seen.last() != Some(&block)
        {
            ipu = of_layer[seen.len()];
            seen.push(block);
        }
        ipu = if at > last { counts.len() - 1 } else { ipu };
        ipus[ipu].push(name.clone());
    }
    ipus.retain(|names| !names.is_empty());
    ipus
}

/// Returns the layers of all stages in one list, and whether Out is on the first IPU.
fn in_order(stages: &Value) -> (Vec<Value>, bool) {
    let stages: Vec<Vec<Value>> = serde_json::from_value(stages.clone()).expect("stages");
    let is_first = stages.len() > 1 && stages[0].last() == Some(&json!("Out"));
    let mut layers = stages.concat();
    if is_first {
        layers.remove(stages[0].len() - 1);
    }
    (layers, is_first)
}

fn check(case: &&str) {
    let (graph, options) = case.trim().split_once(' ').expect("options");
    let folder = TempDir::new().expect("a folder");
    write_model(folder.path(), graph, "poptorch", "inference");
    let options = format!("{options} --emit=optimum --export-json=-");
    let run = run_on(folder.path(), &options);
    let report = run.report();
    let counts = read_json(&run.section("emit-optimum"))["layers_per_ipu"].clone();
    let counts: Vec<usize> = serde_json::from_value(counts).expect("counts");
    let (own, _) = split_of(&report);
    let other = &report["split"]["by_counts"];
    let said = if other.is_null() {
        &own
    } else {
        &other["stages"]
    };
    let (layers, out_is_first) = in_order(said);
    let mut expected = placed(&layers, &counts);
    if out_is_first {
        expected[0].push(json!("Out"));
    }
    assert_eq!(said, &json!(expected), "{case}");
    if other.is_null() {
        assert!(!run.err.contains("these counts"), "{run:?}");
        return;
    }
    assert_ne!(said, &own, "{case}");
    let command = other["command"].as_str().expect("a command");
    let again = typed(&format!("{command} --export-json=- -q"), root());
    let (_, peak) = split_of(&again.report());
    assert_eq!(peak, other["fullest_tile_bytes"].as_u64());
    assert_eq!(other["fits"] == true, again.code == 0, "{again:?}");
    run.says(match again.code {
        0 => "It fits: the fullest tile needs ",
        _ => "WARNING: the model does not fit as the code that takes these counts splits it, ",
    });
}

#[test]
fn the_comment_is_about_the_split_that_optimum_makes() {
    let cases = CASES.trim().lines().step_by(share(2));
    each(&cases.collect::<Vec<_>>(), check);
}
