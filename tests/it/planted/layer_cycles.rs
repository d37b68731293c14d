//! Cycles of each place, against the cycles of the planted operations, executed one after the
//! other.

use popliner::model::{CycleSource, CyclesByLayer};
use serde_json::Value;
use std::cell::RefCell;

use super::subject;

#[test]
fn every_place_takes_the_cycles_that_were_planted() {
    let sources = RefCell::new(Vec::new());
    subject::each_fixture(|subject| {
        let mut sources = sources.borrow_mut();
        let name = &subject.name;
        let placement = subject.placement();
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
        check_positions(name, &found, planted, runs);
        let cycles = subject.model.cycles.as_ref().unwrap();
        let all = cycles.by_operation.iter().chain([&cycles.unexplained]);
        let all: u64 = all.map(|cycles| cycles.all).sum();
        let nowhere = planted["nowhere"].as_u64().unwrap();
        assert_eq!(
            all,
            planted_positions(planted).iter().sum::<u64>() + nowhere,
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

fn planted_positions(planted: &Value) -> Vec<u64> {
    let positions = planted["positions"].as_array().unwrap();
    positions
        .iter()
        .map(|cycles| cycles.as_u64().unwrap())
        .collect()
}

fn check_positions(name: &str, found: &CyclesByLayer, planted: &Value, runs: u64) {
    let positions = planted_positions(planted);
    let nowhere = planted["nowhere"].as_u64().unwrap().div_ceil(runs);
    assert_eq!(found.by_layer.len(), positions.len(), "{name}");
    for (position, (&found, truth)) in found.by_layer.iter().zip(&positions).enumerate() {
        let truth = truth.div_ceil(runs);
        // If contexts of a framework do not distinguish the compiler's exchanges from operations,
        // these count before the layers.
        let nowhere = if position == 0 { nowhere } else { 0 };
        let range = truth * 99 / 100..=(truth + nowhere) * 101 / 100;
        assert!(
            range.contains(&found),
            "{name} position {position}: {found} of {truth}"
        );
    }
    // The difference is the cycles of operations that span the model, which are divided equally
    // among places; none are lost.
    let all = found.by_layer.iter().sum::<u64>() + found.unplaced;
    let nowhere = planted["nowhere"].as_u64().unwrap();
    let truth = (positions.iter().sum::<u64>() + nowhere).div_ceil(runs);
    let rounded = found.by_layer.len() as u64 + 1;
    assert!(all.abs_diff(truth) <= rounded, "{name}: {all} of {truth}");
}
