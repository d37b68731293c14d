//! BERT-Large with the sizes of published configurations. With optimizer state on the chip it does
//! not fit on 4 IPUs; with state off the chip and a checkpoint for each layer it does, in the
//! published stages.
//!
//! `cargo test` has 23 tiles for each IPU, a 64th, with full sizes on each tile. `TILES=1472 cargo
//! test --release --test it bert_large` has all tiles.

use super::{number, stages};
use crate::support::{model_in, run_on};
use popliner::memory::MemoryModel;
use popliner::model::{Layering, Placement, PlacementOptions};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

const LAYERS: usize = 24;
const TILES_OF_IPU: u64 = 1_472;
/// Rows of 1,024 weights: rows of the words, and all rows of In and Out.
const WORDS: u64 = 30_522;
const ROWS: u64 = WORDS + 512 + 4 + 1_024;
const MIB: u64 = 1 << 20;

fn tiles() -> u64 {
    let wanted = std::env::var("TILES");
    wanted.map_or(23, |tiles| tiles.parse().expect("TILES=a number"))
}

fn generate(folder: &Path) {
    let options = format!(
        "--framework popart --mode training --layers {LAYERS} --tiles {} --optimiser adam-each \
         --accumulation --tied ends --bert-large",
        tiles()
    );
    synthesize::write(folder, options.split_whitespace()).expect("both files");
}

/// Returns optimizer state by position: In, the layers, Out.
fn state(folder: &Path) -> Vec<u64> {
    let model = model_in(folder);
    let layering = Layering::original(&model.operations);
    let placement = Placement::full(&model, &layering, &PlacementOptions::default());
    let placement = placement.expect("places");
    let memory = MemoryModel::new(&model, &placement).expect("memory");
    memory.streamed_state()
}

/// Converts bytes on this number of tiles to MiB of a whole IPU.
fn on_an_ipu(bytes: u64, tiles: u64) -> u64 {
    (bytes * TILES_OF_IPU / tiles + MIB / 2) / MIB
}

/// Returns the exit code and the report of a run with a checkpoint for each layer.
fn run(folder: &Path, more: &str) -> (i32, Value) {
    let options = "--num-ipus=4 -q --export-json=- --recompute=layer --objective=time";
    let run = run_on(folder, &format!("{options} {more}"));
    (run.code, run.report())
}

fn layers_per_ipu(report: &Value) -> Vec<u64> {
    let number = |name: &Value| name.as_str()?.parse::<u32>().ok();
    let count = |stage: &Value| {
        let layers = stage["layers"].as_array().expect("layers");
        layers.iter().filter_map(number).count() as u64
    };
    stages(report).iter().map(count).collect()
}

/// Two moments of 32 bits take 96 MiB for each layer, 673 MiB of 897 for seven layers, and 238 MiB
/// for the table of words, which takes 358 to 477 MiB in its update.
#[test]
fn it_fits_on_four_ipus_as_published() {
    let folder = TempDir::new().expect("a folder");
    generate(folder.path());
    let state = state(folder.path());
    assert_eq!(on_an_ipu(638_976, 1), 897);
    for bytes in &state[1..=LAYERS] {
        assert_eq!(on_an_ipu(*bytes, tiles()), 96, "{state:?}");
    }
    assert_eq!(on_an_ipu(state[1..8].iter().sum(), tiles()), 673);
    assert_eq!(on_an_ipu(state[0] * WORDS / ROWS, tiles()), 238);

    let (code, on_chip) = run(folder.path(), "--optimizer-state=on-chip --solve");
    assert_eq!((code, &on_chip["split"]["fits"]), (1, &Value::Bool(false)));
    let published = "--optimizer-state=off-chip --splits=3,10,17";
    let (code, published) = run(folder.path(), published);
    assert_eq!(layers_per_ipu(&published), [3, 7, 7, 7]);
    assert_eq!(code, 0, "{}", published["split"]);
    the_table_of_words_takes_most(&stages(&published)[0]["pipeline"]["update"]);

    let (code, best) = run(folder.path(), "--optimizer-state=off-chip --solve");
    assert_eq!(code, 0);
    let found = layers_per_ipu(&best);
    let differs = found.iter().zip([3u64, 7, 7, 7]);
    let differs = differs.map(|(found, published)| found.abs_diff(published));
    assert!(differs.max() <= Some(1), "{found:?}");
}

fn the_table_of_words_takes_most(update: &Value) {
    assert_eq!(update["weights"][0], "Embedding_Dict");
    let [taken, most, least] = ["taken", "bytes", "at_least"].map(|name| number(&update[name]));
    let spared = most - least;
    let both = [taken, taken - spared].map(|bytes| on_an_ipu(bytes, 1));
    assert_eq!(both, [477, 358]);
}
