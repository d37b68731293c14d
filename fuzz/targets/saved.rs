//! The reader of saved files: frames with any contents, under a right checksum
//! and a right size, so that the fuzzer does not have to guess those.
#![no_main]

use libfuzzer_sys::fuzz_target;
use popliner::memory::MemoryModel;
use popliner::model::{
    DEFAULT_INPUTS_REGEX, DEFAULT_LAYER_REGEX, LayerOptions, LayerOrder, Layerless, Layering,
    Model, Placement,
};
use popliner::saved::{from_bytes, to_bytes};
use regex::Regex;
use std::sync::LazyLock;
use xxhash_rust::xxh3::xxh3_64;

static OPTIONS: LazyLock<LayerOptions> = LazyLock::new(|| LayerOptions {
    layer_regex: Regex::new(DEFAULT_LAYER_REGEX).expect("a regex"),
    inputs_regex: Regex::new(DEFAULT_INPUTS_REGEX).expect("a regex"),
    order: LayerOrder::Steps,
});

fuzz_target!(|data: &[u8]| {
    assert!(from_bytes(data).is_err() || data.starts_with(b"\x89PopL"));
    let Ok(model) = from_bytes(&assemble(data)) else {
        return;
    };
    weigh(&model);
    let again = to_bytes(&model).expect("what was loaded can be saved");
    assert!(from_bytes(&again).expect("what was saved can be loaded") == model);
});

/// A file whose frames hold the pieces of `data`: each is its kind, its length
/// in two bytes, and its contents.
fn assemble(mut data: &[u8]) -> Vec<u8> {
    let (mut table, mut frames) = (Vec::new(), Vec::new());
    let mut count = 0u32;
    while let [kind, low, high, rest @ ..] = data {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (raw, behind) = rest.split_at(length);
        data = behind;
        let stored = zstd::bulk::compress(raw, 1).expect("a frame");
        table.extend(u32::from(*kind).to_le_bytes());
        table.extend((stored.len() as u32).to_le_bytes());
        table.extend((raw.len() as u32).to_le_bytes());
        frames.extend(stored);
        count += 1;
    }
    let mut file = b"\x89PopL\r\n\n".to_vec();
    file.extend(1u32.to_le_bytes());
    file.extend(count.to_le_bytes());
    let size = 24 + table.len() + frames.len() + 8;
    file.extend((size as u64).to_le_bytes());
    file.extend(table);
    file.extend(frames);
    let checksum = xxh3_64(&file);
    file.extend(checksum.to_le_bytes());
    file
}

/// Does with a model what is done with every model.
fn weigh(model: &Model) {
    let layering = Layering::new(&model.operations, &OPTIONS);
    let placement = Placement::new(model, &layering, Layerless::Home);
    for memory in [
        MemoryModel::classic(model, &layering),
        MemoryModel::full(model, &layering, &placement),
    ] {
        let layers = memory.layers();
        let costs = memory.range_costs(u64::MAX);
        let stages = memory.stages(std::slice::from_ref(&(0..layers)));
        let peak = stages.first().map(|stage| stage.max_tile_bytes());
        // Both count the same, each in its own way. Alone, the pseudo-layer
        // has rules of its own.
        if layers > 1 {
            assert_eq!(costs.peak(0..layers), peak);
        }
        assert!(memory.between().cut_bytes().len() <= layers);
        let _ = (memory.bodies(), memory.coverage());
    }
}
