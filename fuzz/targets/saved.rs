//! The reader of saved files: parts with any contents, or those of a sound
//! model with some bytes changed, under a right checksum and a right size, so
//! that the fuzzer does not have to guess those.
#![no_main]

use flate2::Crc;
use libfuzzer_sys::fuzz_target;
use popliner::debug_info::DebugInfo;
use popliner::memory::{MemoryModel, Pipeline, Recompute, Schedule};
use popliner::model::{
    DEFAULT_INPUTS_REGEX, DEFAULT_LAYER_REGEX, LayerOptions, LayerOrder, Layering, Model,
    Placement, PlacementOptions,
};
use popliner::profile::Profile;
use popliner::saved::{from_bytes, to_bytes};
use regex::Regex;
use std::sync::LazyLock;

static OPTIONS: LazyLock<LayerOptions> = LazyLock::new(|| LayerOptions {
    layer_regex: Regex::new(DEFAULT_LAYER_REGEX).expect("a regex"),
    inputs_regex: Regex::new(DEFAULT_INPUTS_REGEX).expect("a regex"),
    order: LayerOrder::Steps,
});

fuzz_target!(|data: &[u8]| {
    assert!(from_bytes(data).is_err() || data.starts_with(b"\x89PopL"));
    let file = match data {
        [0, rest @ ..] => assemble(&pieces(rest)),
        _ => assemble(&changed(data)),
    };
    let Ok(model) = from_bytes(&file) else {
        return;
    };
    weigh(&model);
    let again = to_bytes(&model).expect("what was loaded can be saved");
    assert!(from_bytes(&again).expect("what was saved can be loaded") == model);
});

/// What the parts of a file hold.
type Contents = Vec<Vec<u8>>;

/// The contents of a small model.
static BASE: LazyLock<Contents> = LazyLock::new(|| {
    let folder = tempfile::TempDir::new().expect("a folder");
    synthesize::write(folder.path(), ["--layers=2", "--tiles=4"]).expect("both files");
    let profile = Profile::read(&folder.path().join("profile.pop")).expect("a profile");
    let debug_info = DebugInfo::read(&folder.path().join("debug.cbor")).expect("contexts");
    let model = Model::build(profile, &debug_info, true).expect("a model");
    take_apart(&to_bytes(&model).expect("a file"))
});

fn take_apart(file: &[u8]) -> Contents {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
    assert_eq!(word(8), VERSION, "the target must know the newest format");
    let count = word(12) as usize;
    let mut at = HEADER + ENTRY * count;
    let contents = (0..count).map(|part| {
        let entry = HEADER + ENTRY * part;
        let content = &file[at..at + word(entry) as usize];
        at += content.len();
        content.to_vec()
    });
    contents.collect()
}

/// Pieces of `data`: each is its length in two bytes, and its contents.
fn pieces(mut data: &[u8]) -> Contents {
    let mut contents = Contents::new();
    while let [low, high, rest @ ..] = data {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (raw, behind) = rest.split_at(length);
        data = behind;
        contents.push(raw.to_vec());
    }
    contents
}

/// The small model with changes: each is a part, a place in two bytes, what is
/// done there, and a byte.
fn changed(data: &[u8]) -> Contents {
    let mut contents = BASE.clone();
    for change in data.chunks_exact(5) {
        let &[part, low, high, what, value] = change else {
            continue;
        };
        let count = contents.len();
        let raw = &mut contents[usize::from(part) % count];
        let place = usize::from(u16::from_le_bytes([low, high])) % raw.len().max(1);
        match what % 8 {
            0 => raw.insert(place, value),
            1 if !raw.is_empty() => drop(raw.remove(place)),
            2 => raw.truncate(place),
            3 if !raw.is_empty() => raw[place] ^= 1 << (value % 8),
            4 if !raw.is_empty() => raw[place] = raw[place].wrapping_add(value),
            _ if !raw.is_empty() => raw[place] = value,
            _ => raw.push(value),
        }
    }
    contents
}

/// That of the format, which the reader looks at first.
const VERSION: u32 = 15;

/// Bytes of the header, and of an entry of the table behind it.
const HEADER: usize = 24;
const ENTRY: usize = 4;

/// The file of these parts.
fn assemble(contents: &Contents) -> Vec<u8> {
    let (mut table, mut parts) = (Vec::new(), Vec::new());
    for raw in contents {
        table.extend((raw.len() as u32).to_le_bytes());
        parts.extend(raw);
    }
    let count = contents.len() as u32;
    let mut file = b"\x89PopL\r\n\n".to_vec();
    file.extend(VERSION.to_le_bytes());
    file.extend(count.to_le_bytes());
    let size = HEADER + table.len() + parts.len() + 4;
    file.extend((size as u64).to_le_bytes());
    file.extend(table);
    file.extend(parts);
    let mut crc = Crc::new();
    crc.update(&file);
    file.extend(crc.sum().to_le_bytes());
    file
}

/// Does with a model what is done with every model.
fn weigh(model: &Model) {
    let layering = Layering::new(&model.operations, &OPTIONS);
    let options = PlacementOptions::default();
    let placements = [
        Placement::classic(model, &layering),
        Placement::full(model, &layering, &options),
    ];
    // Layers that share more than those of any real model are refused.
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
        assert!(memory.between().cut_bytes().len() <= memory.layers());
        let _ = (memory.operation_groups(), memory.coverage());
    }
}

/// The sweep over all ranges and the sum over one count the same, each in its own
/// way.
fn weigh_ranges(memory: &MemoryModel<'_>) {
    let layers = memory.layers();
    let Ok(costs) = memory.range_costs(u64::MAX) else {
        return;
    };
    let halves = [0..layers / 2, layers / 2..layers];
    for split in [&[0..layers][..], &halves[..]] {
        // Alone, the pseudo-layer has rules of its own.
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
