//! Cycles of each place, against the cycles of the planted operations, executed one after the
//! other.

use popliner::model::{CycleSource, CyclesByLayer};

use super::subject::Subject;

/// Checks a model, and returns the source of its cycles.
pub fn check(subject: &Subject) -> &'static str {
    let planted = &subject.planted()["cycles"];
    let placement = subject.placement();
    let Some(found) = subject.model.layer_cycles(&placement) else {
        assert!(planted.is_null());
        return "none";
    };
    let number = |field: &str| planted[field].as_u64().expect("a number");
    let [runs, nowhere] = ["runs", "nowhere"].map(number);
    let source = match found.source {
        CycleSource::Executed { runs: read } => {
            assert_eq!(read, runs);
            "executed"
        }
        CycleSource::Estimated => "estimated",
    };
    assert_eq!(planted["source"], source);
    let positions = planted["positions"]
        .as_array()
        .expect("cycles by position")
        .iter();
    let positions: Vec<u64> = positions.filter_map(|cycles| cycles.as_u64()).collect();
    check_positions(&found, &positions, nowhere, runs);
    let cycles = subject.model.cycles.as_ref().expect("cycles");
    let all = cycles.by_operation.iter().chain([&cycles.unexplained]);
    let all: u64 = all.map(|cycles| cycles.all).sum();
    assert_eq!(all, positions.iter().sum::<u64>() + nowhere);
    check_exchanges(&found);
    source
}

/// Exchanges are a part of the cycles of each position, and of some not all.
fn check_exchanges(found: &CyclesByLayer) {
    let mut positions = found.by_layer.iter().zip(&found.exchange_by_layer);
    assert!(positions.all(|(all, exchange)| exchange <= all));
    assert!(found.unplaced_exchange <= found.unplaced);
    let [all, exchange] = [&found.by_layer, &found.exchange_by_layer];
    assert!(exchange.iter().sum::<u64>() > 0 && all != exchange);
}

/// Compares the cycles of each position with the planted ones of this number of runs; `nowhere` are
/// the cycles of no position.
fn check_positions(found: &CyclesByLayer, positions: &[u64], nowhere: u64, runs: u64) {
    assert_eq!(found.by_layer.len(), positions.len());
    for (position, (&found, truth)) in found.by_layer.iter().zip(positions).enumerate() {
        let truth = truth.div_ceil(runs);
        // If contexts of a framework do not distinguish the compiler's exchanges from operations,
        // these count before the layers.
        let nowhere = match position {
            0 => nowhere.div_ceil(runs),
            _ => 0,
        };
        let range = truth * 99 / 100..=(truth + nowhere) * 101 / 100;
        assert!(
            range.contains(&found),
            "position {position}: {found} of {truth}"
        );
    }
    // The difference is the cycles of operations that span the model, which are divided equally
    // among places; none are lost.
    let all = found.by_layer.iter().sum::<u64>() + found.unplaced;
    let truth = (positions.iter().sum::<u64>() + nowhere).div_ceil(runs);
    let rounded = found.by_layer.len() as u64 + 1;
    assert!(all.abs_diff(truth) <= rounded, "{all} of {truth}");
}
