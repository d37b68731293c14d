//! The case `big` of the benchmark against the second analyser. It takes minutes and some 10 GB of
//! memory, so it runs only by hand, on the folder that `benches/big.sh` made or the generator
//! wrote:
//!
//!     POPLINER_BIG=target/big/48-layers-10M cargo test --release big:: -- --nocapture
//!
//! This comparison always runs on small models (`numbers::fixtures`).

use std::path::PathBuf;

use crate::oracle::Oracle;
use crate::oracle::layers::Rules;
use crate::oracle::memory::Parts;
use crate::support::{model, skip};
use popliner::memory::MemoryModel;
use popliner::model::{DEFAULT_INPUTS_REGEX, DEFAULT_LAYER_REGEX, Layering, Placement};

#[test]
fn big_is_computed_as_the_second_analyser_computes_it() {
    let Some(folder) = std::env::var_os("POPLINER_BIG").map(PathBuf::from) else {
        return skip("POPLINER_BIG names no folder with profile.pop and debug.cbor");
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
    let names = oracle.layering.names.iter().flatten();
    assert!(names.eq(layering.names.iter().skip(1)));
    let layers = layering.names.len();
    let costs = memory.range_costs(u64::MAX).expect("few sets");
    for range in [
        0..2,
        layers / 3..layers / 3 + 2,
        layers - 4..layers,
        0..layers,
    ] {
        let found = &memory.stages(std::slice::from_ref(&range))[0];
        let expected = oracle.stage(&oracle.members(range.clone()));
        let peak = expected.peak();
        assert_eq!(costs.least(range.clone()), Some(peak), "{range:?}");
        let tiles = found.tiles.iter().zip(&expected.tiles);
        for (tile, (found, expected)) in tiles.enumerate() {
            let found = Parts {
                variables: found.variables,
                vertex_code: found.vertex_code,
                vertex_state: found.vertex_state,
                exchange_code: found.exchange_code,
                control_code: found.control_code,
            };
            assert_eq!(found, *expected, "layers {range:?}, tile {tile}");
        }
        let tiles = expected.tiles.len();
        println!("layers {range:?}: equal on all {tiles} tiles, {peak} bytes on the fullest");
    }
}
