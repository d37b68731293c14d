//! Every range of layers against what the generator planted for it, which comes
//! from the generator's plan and not from the rows that it wrote.

use popliner::memory::MemoryModel;
use popliner::model::Layerless;
use serde_json::Value;

use super::subject::{Subject, each_fixture};

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
fn positions(range: &Value) -> std::ops::Range<usize> {
    let layer = |key: &str| range[key].as_u64().unwrap() as usize;
    let from = layer("from");
    (if from == 0 { 0 } else { from + 1 })..layer("to") + 2
}

fn ranges_need_what_was_planted(subject: &Subject) {
    let name = &subject.name;
    let placement = subject.placement(Layerless::Home);
    let memory = MemoryModel::full(&subject.model, &subject.layering, &placement);
    let planted = subject.planted();
    let (mut close, mut all) = (0, 0);
    for range in planted["ranges"].as_array().unwrap() {
        let stage = &memory.stages(&[positions(range)])[0];
        for (tile, parts) in stage.tiles.iter().enumerate() {
            let truth = planted_range(range, tile) as f64;
            let predicted = (parts.total() - parts.overhead) as f64;
            let above = predicted / truth - 1.0;
            assert!(
                above.abs() < 0.12,
                "{name} tile {tile}: {predicted} of {truth}"
            );
            close += usize::from(above.abs() < 0.01);
            all += 1;
        }
    }
    // What misses is an operation whose home is off by a layer.
    println!("{name}: {close} of {all} (range, tile) within 1 %");
    assert!(
        close * 4 > all * 3,
        "{name}: only {close} of {all} within 1 %"
    );
}

#[test]
fn ranges_of_fixtures_need_what_was_planted() {
    each_fixture(ranges_need_what_was_planted);
}
