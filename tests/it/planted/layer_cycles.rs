//! Cycles of each place, against the cycles of the planted operations, executed one after the
//! other.

use popliner::model::{CycleSource, CyclesByLayer};

use synthesize::planted::Cycles;

use super::subject::{Kind, Subject};
use crate::support::{cases, each};

/// Models of all frameworks, below the source of their cycles.
const MODELS: &str = "
    estimated
        popart --layers 8 --outlined per-call --seed 13
        poptorch --layers 5 --mode training --outlined once --seed 42
        tensorflow --layers 6 --mode training --seed 33
    executed
        poplar --layers 5 --constants --execution --seed 46
    none
        popart --layers 4 --masks --no-cycle-estimates --seed 18
";

#[test]
fn cycles_of_layers_are_what_was_planted() {
    each(&cases(MODELS), |(source, models)| {
        for model in models {
            let options = format!("--tiles 16 --vars-per-layer-tile 6 --framework {model}");
            let words = options.split(' ').map(String::from);
            let subject = Kind::Generated(words.collect()).subject();
            assert_eq!(check(&subject), *source, "{model}");
        }
    });
}

/// Checks a model, and returns the source of its cycles.
fn check(subject: &Subject) -> &'static str {
    let (planted, _) = subject.planted.as_ref().expect("a generated model");
    let placement = subject.placement();
    let Some(found) = subject.model.layer_cycles(&placement) else {
        assert!(planted.cycles().is_none());
        return "none";
    };
    let planted = planted.cycles().expect("planted cycles");
    let source = match found.source {
        CycleSource::Executed { runs } => {
            assert_eq!(runs, planted.runs);
            "executed"
        }
        CycleSource::Estimated => "estimated",
    };
    check_positions(&found, &planted);
    let cycles = subject.model.cycles.as_ref().expect("cycles");
    let all = cycles.by_operation.iter().chain([&cycles.unexplained]);
    let all: u64 = all.map(|cycles| cycles.all).sum();
    assert_eq!(all, planted.positions.iter().sum::<u64>() + planted.nowhere);
    check_exchanges(&found);
    source
}

/// Exchanges are a part of the cycles of each position, and of some not all.
fn check_exchanges(found: &CyclesByLayer) {
    let (all, exchange) = (by_layer(found), &found.exchange_by_layer);
    assert!(all.iter().zip(exchange).all(|(all, part)| part <= all));
    assert!(found.unplaced_exchange <= found.unplaced);
    assert!(exchange.iter().sum::<u64>() > 0 && all != *exchange);
}

fn by_layer(found: &CyclesByLayer) -> Vec<u64> {
    found
        .passes_by_layer
        .iter()
        .map(|own| own.total())
        .collect()
}

/// Compares the cycles of each position, and those of no position, with the planted ones.
fn check_positions(found: &CyclesByLayer, planted: &Cycles) {
    let Cycles {
        runs,
        positions,
        nowhere,
    } = planted;
    let by_layer = by_layer(found);
    assert_eq!(by_layer.len(), positions.len());
    for (position, (&found, truth)) in by_layer.iter().zip(positions).enumerate() {
        let truth = truth.div_ceil(*runs);
        // If contexts of a framework do not distinguish the compiler's exchanges from operations,
        // these count before the layers.
        let nowhere = match position {
            0 => nowhere.div_ceil(*runs),
            _ => 0,
        };
        let range = truth * 99 / 100..=(truth + nowhere) * 101 / 100;
        assert!(range.contains(&found), "{position}: {found} of {truth}");
    }
    // The difference is the cycles of operations that span the model, which are divided equally
    // among places; none are lost.
    let all = by_layer.iter().sum::<u64>() + found.unplaced;
    let truth = (positions.iter().sum::<u64>() + nowhere).div_ceil(*runs);
    let rounded = by_layer.len() as u64 + 1;
    assert!(all.abs_diff(truth) <= rounded, "{all} of {truth}");
}
