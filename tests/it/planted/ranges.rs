//! Every range of layers against what the generator planted for it, which comes
//! from the generator's plan and not from the rows that it wrote.

use popliner::model::{Layerless, Placement};
use serde_json::Value;
use std::cell::Cell;
use std::ops::Range;

use super::subject::{Subject, each_fixture, each_generated};

fn bytes(value: &Value, tile: usize) -> u64 {
    value[tile].as_u64().unwrap()
}

/// Bytes of each tile that the layers of a planted range need together.
fn planted_range(range: &Value, tile: usize) -> u64 {
    let code = range["code"].as_object().unwrap().values();
    let code: u64 = code.map(|by_tile| bytes(by_tile, tile)).sum();
    bytes(&range["always_live"], tile) + bytes(&range["peak"], tile) + code
}

/// Layers of a planted range as positions of the layer order: the pseudo-layer
/// goes with the first.
fn positions(range: &Value) -> Range<usize> {
    let layer = |key: &str| range[key].as_u64().unwrap() as usize;
    let from = layer("from");
    (if from == 0 { 0 } else { from + 1 })..layer("to") + 2
}

/// How far the prediction is from what was planted, as a part of that, for
/// each range of layers and tile.
fn errors(subject: &Subject, planted: &Value, placement: &Placement) -> Vec<f64> {
    let memory = subject.memory(placement);
    let ranges = planted["ranges"].as_array().unwrap();
    let positions: Vec<Range<usize>> = ranges.iter().map(positions).collect();
    let mut errors = Vec::new();
    for (range, stage) in ranges.iter().zip(memory.stages(&positions)) {
        for (tile, parts) in stage.tiles.iter().enumerate() {
            let predicted = (parts.total() - parts.overhead) as f64;
            errors.push(predicted / planted_range(range, tile) as f64 - 1.0);
        }
    }
    assert!(!errors.is_empty(), "{}", subject.name);
    errors
}

/// How many are within 1 %, and the largest without its sign.
fn close_and_worst(errors: &[f64]) -> (usize, f64) {
    let sizes = errors.iter().map(|error| error.abs());
    let close = sizes.clone().filter(|&size| size < 0.01).count();
    (close, sizes.fold(0.0, f64::max))
}

/// What misses is an operation whose home is another layer than the one that it
/// was made for.
#[test]
fn ranges_of_fixtures_need_what_was_planted() {
    each_fixture(|subject| {
        let name = &subject.name;
        let placement = subject.placement(Layerless::Assign);
        let errors = errors(subject, &subject.planted(), &placement);
        let (close, worst) = close_and_worst(&errors);
        println!("{name}: {close} of {} within 1 %", errors.len());
        assert!(worst < 0.12, "{name}: off by {worst}");
        assert!(close * 4 > errors.len() * 3, "{name}: {close} within 1 %");
    });
}

/// The same for generated models of which no more is shared between layers than
/// by default. In those that share more, an operation without a layer often has
/// most in common with a layer that it was not made for.
#[test]
fn most_ranges_of_generated_models_need_what_was_planted() {
    let (close, all) = (Cell::new(0), Cell::new(0));
    each_generated(|subject| {
        let shares = |part: &str| subject.name.contains(&format!("--shared-fraction {part} "));
        if shares("0") || shares("0.25") {
            let placement = subject.placement(Layerless::Assign);
            let errors = errors(subject, &subject.planted(), &placement);
            close.set(close.get() + close_and_worst(&errors).0);
            all.set(all.get() + errors.len());
        }
    });
    let (close, all) = (close.get(), all.get());
    println!("generated models: {close} of {all} within 1 %");
    assert!(close * 4 > all * 3, "{close} of {all} within 1 %");
}
