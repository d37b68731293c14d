//! The case `big` of the benchmark against the second analyser. It takes minutes and some 10 GB of
//! memory, so it runs only by hand, on the folder that `benches/big.sh` made or the generator
//! wrote:
//!
//!     POPLINER_BIG=target/big/48-layers-10M cargo test --release big:: -- --nocapture
//!
//! This comparison always runs on small models (`numbers::fixtures`).

use std::ops::Range;
use std::path::PathBuf;

use crate::oracle::Oracle;
use crate::oracle::layers::Rules;
use crate::support::{model, skip};
use popliner::memory::MemoryModel;
use popliner::model::{DEFAULT_INPUTS_REGEX, DEFAULT_LAYER_REGEX, Layering, Placement};

#[test]
fn big_is_computed_as_the_second_analyser_computes_it() {
    let Some(folder) = std::env::var_os("POPLINER_BIG").map(PathBuf::from) else {
        skip("POPLINER_BIG names no folder with profile.pop and debug.cbor");
        return;
    };
    let (profile, debug) = (folder.join("profile.pop"), folder.join("debug.cbor"));
    let model = model(&profile, &debug);
    let layering = Layering::original(&model.operations);
    let placement = Placement::classic(&model, &layering).expect("few sets");
    let memory = MemoryModel::new(&model, &placement).expect("few sets");
    let rules = Rules {
        layer_regex: DEFAULT_LAYER_REGEX.to_string(),
        inputs_regex: DEFAULT_INPUTS_REGEX.to_string(),
        natural: false,
    };
    let oracle = Oracle::new(&profile, &debug, &rules);
    let names = layering.names.iter().skip(1).map(Some);
    assert!(
        oracle
            .layering
            .names
            .iter()
            .skip(1)
            .map(Option::as_ref)
            .eq(names)
    );
    let layers = layering.names.len();
    let costs = memory.range_costs(u64::MAX).expect("few sets");
    for range in [
        0..2,
        layers / 3..layers / 3 + 2,
        layers - 4..layers,
        0..layers,
    ] {
        let found = memory.stages(std::slice::from_ref(&range));
        let expected = oracle.stage(&oracle.members(range.clone()));
        assert_eq!(
            costs.least(range.clone()),
            Some(expected.peak()),
            "{range:?}"
        );
        let tiles = found[0].tiles.iter().zip(&expected.tiles);
        for (tile, (found, expected)) in tiles.enumerate() {
            let found = [
                found.variables,
                found.vertex_code,
                found.vertex_state,
                found.exchange_code,
                found.control_code,
            ];
            let expected = [
                expected.variables,
                expected.vertex_code,
                expected.vertex_state,
                expected.exchange_code,
                expected.control_code,
            ];
            assert_eq!(found, expected, "layers {range:?}, tile {tile}");
        }
        report(&range, expected.peak(), expected.tiles.len());
    }
}

fn report(range: &Range<usize>, peak: u64, tiles: usize) {
    println!("layers {range:?}: equal on all {tiles} tiles, {peak} bytes on the fullest");
}
