//! Fuzzes the reader of saved files, with any content, and with the content of a sound model in
//! which some bytes are changed. Checksum and size are always correct, so that the fuzzer does not
//! have to guess them.
#![no_main]

use flate2::Crc;
use libfuzzer_sys::fuzz_target;
use popliner::debug_info::DebugInfo;
use popliner::memory::{MemoryModel, Pipeline, Recompute, Schedule};
use popliner::model::{
    DEFAULT_LAYER_REGEX, LayerOptions, LayerSource, Layering, Model, Placement, PlacementOptions,
};
use popliner::profile::Profile;
use popliner::saved::{from_bytes, to_bytes};
use regex::Regex;
use std::sync::LazyLock;

static OPTIONS: LazyLock<LayerOptions> = LazyLock::new(|| LayerOptions {
    source: LayerSource::Regex(Regex::new(DEFAULT_LAYER_REGEX).expect("a regex")),
    ..LayerOptions::default()
});

fuzz_target!(|data: &[u8]| {
    assert!(from_bytes(data).is_err() || data.starts_with(b"\x89PopL"));
    let file = match data {
        [0, rest @ ..] => assemble(rest),
        _ => assemble(&changed(data)),
    };
    let Ok(model) = from_bytes(&file) else {
        return;
    };
    weigh(&model);
    let again = to_bytes(&model).expect("what was loaded can be saved");
    assert!(from_bytes(&again).expect("what was saved can be loaded") == model);
});

/// The content of a saved file of a small model, without header and checksum.
static BASE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = tempfile::TempDir::new().expect("a folder");
    synthesize::write(folder.path(), ["--layers=2", "--tiles=4"]).expect("both files");
    let profile = Profile::read(&folder.path().join("profile.pop")).expect("a profile");
    let debug_info = DebugInfo::read(&folder.path().join("debug.cbor")).expect("contexts");
    let (model, _) = Model::build(profile, debug_info, true).expect("a model");
    let file = to_bytes(&model).expect("a file");
    let version = u32::from_le_bytes(file[8..12].try_into().expect("four bytes"));
    assert_eq!(version, VERSION, "the target must know the newest format");
    file[HEADER..file.len() - CHECKSUM].to_vec()
});

/// Returns the content of [`BASE`] with changes. Each change takes four bytes of `data`: a place in
/// two bytes, the kind of change, and a value.
fn changed(data: &[u8]) -> Vec<u8> {
    let mut content = BASE.clone();
    for change in data.chunks_exact(4) {
        let &[low, high, what, value] = change else {
            continue;
        };
        let place = usize::from(u16::from_le_bytes([low, high])) % content.len().max(1);
        match what % 8 {
            0 => content.insert(place, value),
            1 if !content.is_empty() => drop(content.remove(place)),
            2 => content.truncate(place),
            3 if !content.is_empty() => content[place] ^= 1 << (value % 8),
            4 if !content.is_empty() => content[place] = content[place].wrapping_add(value),
            _ if !content.is_empty() => content[place] = value,
            _ => content.push(value),
        }
    }
    content
}

/// The version of the format of saved files, which the reader checks first.
const VERSION: u32 = 1;

/// Number of bytes of the header of a saved file.
const HEADER: usize = 20;
/// Number of bytes of the checksum at the end of a saved file.
const CHECKSUM: usize = 4;

/// Returns the saved file with this content: header, content and checksum.
fn assemble(content: &[u8]) -> Vec<u8> {
    let mut file = b"\x89PopL\r\n\n".to_vec();
    file.extend(VERSION.to_le_bytes());
    let size = HEADER + content.len() + CHECKSUM;
    file.extend((size as u64).to_le_bytes());
    file.extend(content);
    let mut crc = Crc::new();
    crc.update(&file);
    file.extend(crc.sum().to_le_bytes());
    file
}

/// Computes the memory of all ranges of layers in several pipelines, as for any model.
fn weigh(model: &Model) {
    let layering = Layering::new(model, &OPTIONS);
    let options = PlacementOptions::default();
    let placements = [
        Placement::classic(model, &layering),
        Placement::full(model, &layering, &options),
    ];
    // A placement in which layers share more than in any real model is an error, and is skipped.
    for placement in placements.into_iter().flatten() {
        let Ok(memory) = MemoryModel::new(model, &placement) else {
            continue;
        };
        weigh_ranges(&memory);
        for schedule in [Schedule::Popart, Schedule::TfInterleaved] {
            for recompute in [Recompute::None, Recompute::Stage, Recompute::Layer] {
                let pipeline = Pipeline {
                    schedule,
                    recompute,
                    ..Pipeline::default()
                };
                if let Ok(memory) = memory.in_pipeline(pipeline) {
                    weigh_ranges(&memory);
                }
            }
        }
        assert!(memory.cut_bytes().len() <= memory.layers());
        let _ = (memory.operation_groups(), memory.coverage());
    }
}

/// Checks that the costs of ranges, which are computed in one sweep, equal the sums over each
/// range.
fn weigh_ranges(memory: &MemoryModel<'_>) {
    let layers = memory.layers();
    let Ok(costs) = memory.range_costs(u64::MAX) else {
        return;
    };
    let halves = [0..layers / 2, layers / 2..layers];
    for split in [&[0..layers][..], &halves[..]] {
        // A model without layers has one position for everything, which has rules of its own.
        if layers <= 1 || split.len() > costs.stages().max(1) {
            continue;
        }
        for (number, stage) in memory.split(split).iter().enumerate() {
            let after = split.len() - 1 - number;
            let peak = costs.peak(split[number].clone(), after);
            assert_eq!(peak, Some(stage.max_tile_bytes()));
        }
    }
}
