//! The cycles of each layer, against those of the planted operations as they
//! are executed one after the other.

use popliner::model::{CycleSource, CyclesByLayer, Layerless};
use serde_json::Value;
use std::cell::RefCell;

use super::subject;

#[test]
fn every_layer_takes_the_cycles_that_were_planted() {
    let sources = RefCell::new(Vec::new());
    subject::each_fixture(|subject| {
        let mut sources = sources.borrow_mut();
        let name = &subject.name;
        let placement = subject.placement(Layerless::Assign);
        let planted = &subject.planted()["cycles"];
        let Some(found) = subject.model.layer_cycles(&placement) else {
            assert!(planted.is_null(), "{name}");
            sources.push("none");
            return;
        };
        let runs = planted["runs"].as_u64().unwrap();
        let source = match found.source {
            CycleSource::Executed { runs: read } => {
                assert_eq!(read, runs, "{name}");
                "executed"
            }
            CycleSource::Estimated => "estimated",
        };
        assert_eq!(planted["source"], source, "{name}");
        sources.push(source);
        check_layers(name, &found, planted, runs);
        let cycles = subject.model.cycles.as_ref().unwrap();
        let all = cycles.by_operation.iter().sum::<u64>() + cycles.unexplained;
        let nowhere = planted["nowhere"].as_u64().unwrap();
        assert_eq!(
            all,
            planted_layers(planted).iter().sum::<u64>() + nowhere,
            "{name}"
        );
    });
    let mut sources = sources.into_inner();
    sources.sort_unstable();
    assert_eq!(
        sources,
        ["estimated", "estimated", "estimated", "executed", "none"]
    );
}

fn planted_layers(planted: &Value) -> Vec<u64> {
    let layers = planted["layers"].as_array().unwrap();
    layers
        .iter()
        .map(|cycles| cycles.as_u64().unwrap())
        .collect()
}

fn check_layers(name: &str, found: &CyclesByLayer, planted: &Value, runs: u64) {
    let layers = planted_layers(planted);
    // What runs before the layers was planted for the first, after them for
    // the last.
    let ends = found.by_layer.len() - layers.len();
    assert_eq!(ends, 2, "{name}");
    let mut by_layer = found.by_layer[1..=layers.len()].to_vec();
    by_layer[0] += found.by_layer[0];
    by_layer[layers.len() - 1] += found.by_layer[layers.len() + 1];
    for (layer, &truth) in layers.iter().enumerate() {
        let (found, truth) = (by_layer[layer], truth.div_ceil(runs));
        assert!(
            found.abs_diff(truth) * 100 < truth * 12,
            "{name} layer {layer}: {found} of {truth}"
        );
    }
    // What misses is the part of operations that reach over the model, which
    // each place has in equal parts; none is lost.
    let all = found.by_layer.iter().sum::<u64>() + found.unplaced;
    let nowhere = planted["nowhere"].as_u64().unwrap();
    let truth = (layers.iter().sum::<u64>() + nowhere).div_ceil(runs);
    let rounded = found.by_layer.len() as u64 + 1;
    assert!(all.abs_diff(truth) <= rounded, "{name}: {all} of {truth}");
}
