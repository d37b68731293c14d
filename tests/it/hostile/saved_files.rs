//! Saved files that were altered, or were made to do harm.

use std::ffi::OsStr;
use std::fs;

use popliner::model::{
    Model, NO_CALL, NO_USERS, Operation, OperationGroup, Pass, VariableGroup, VariableGroups,
};
use popliner::profile::{LiveClasses, TileBytes};
use popliner::saved::to_bytes;

use crate::hostile::cases::{Case, limited, new_folder};
use crate::support::models::share;
use crate::support::{Run, finish, model};

fn load(bytes: &[u8]) -> Run {
    let folder = new_folder();
    let path = folder.path().join("model");
    fs::write(&path, bytes).unwrap();
    let arguments = [
        path.as_os_str(),
        OsStr::new("--load-from-file"),
        OsStr::new("--solve"),
        OsStr::new(r"--layer-name-regex=(?:Layer|layer)(\d+)"),
    ];
    let run = finish(&mut limited("", &arguments));
    assert_eq!(fs::read(&path).unwrap(), bytes);
    run
}

#[test]
fn saved_files() {
    let case = Case::new();
    let path = case.folder.path().join("model");
    let option = format!("--save-to-file={}", path.display());
    let arguments = [
        case.profile.as_os_str(),
        case.debug.as_os_str(),
        OsStr::new(&option),
    ];
    assert_eq!(finish(&mut limited("", &arguments)).code, 0);
    let good = fs::read(&path).unwrap();
    assert!(load(&good).code < 2);
    let mut cases = vec![
        (good[..good.len() - 1].to_vec(), "cut off"),
        (good[..30].to_vec(), "cut off"),
        ([&good[..], b"more"].concat(), "altered"),
        (b"\x89PopL".to_vec(), "cut off"),
        (
            b"no model".to_vec(),
            "not a model that --save-to-file wrote",
        ),
        (
            fs::read(&case.profile).unwrap(),
            "leave --load-from-file out to read a profile.pop",
        ),
        (Vec::new(), "cut off"),
    ];
    for place in [40, 200, good.len() / 2, good.len() - 3] {
        let mut bad = good.clone();
        bad[place] ^= 0x10;
        cases.push((bad, "altered"));
    }
    let mut endless = good.clone();
    endless[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
    cases.push((endless, "cut off"));
    for (bytes, part) in cases {
        let run = load(&bytes);
        assert_eq!(run.code, 3, "{run:?}");
        assert!(
            run.err.contains("model: ") && run.err.contains(part),
            "{part}: {run:?}"
        );
    }
    for (part, place) in (0..40).map(|number| (number % 3, number * 29)) {
        let run = load(&claiming_much(&good, part, place));
        assert!(run.code <= 3, "{part} {place}: {run:?}");
    }
}

/// Returns the file with the number 2^32 - 1 at a place of one of its parts, with a valid checksum.
fn claiming_much(good: &[u8], part: usize, place: usize) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(good[at..at + 4].try_into().unwrap()) as usize;
    let (count, entry) = (word(12), 24 + 4 * part);
    let before: usize = (0..part).map(|part| word(24 + 4 * part)).sum();
    let from = 24 + 4 * count + before;
    let mut content = good[from..from + word(entry)].to_vec();
    let place = place % content.len();
    content.splice(place..=place, *b"\xff\xff\xff\xff\x0f");
    let mut file = good[..good.len() - 4].to_vec();
    file.splice(from..from + word(entry), content.iter().copied());
    file[entry..entry + 4].copy_from_slice(&(content.len() as u32).to_le_bytes());
    let size = file.len() as u64 + 4;
    file[16..24].copy_from_slice(&size.to_le_bytes());
    let mut crc = flate2::Crc::new();
    crc.update(&file);
    file.extend(crc.sum().to_le_bytes());
    file
}

/// Loads a fixture with this change. The result must be right, or be refused within the limits.
fn changed(change: impl FnOnce(&mut Model)) -> Run {
    let case = Case::new();
    let mut model = model(&case.profile, &case.debug);
    model.cycles = None;
    change(&mut model);
    let bytes = to_bytes(&model).unwrap();
    assert!(bytes.len() < 2 << 20, "{}", bytes.len());
    load(&bytes)
}

/// Adds an operation group and one operation in it with this name.
fn add(model: &mut Model, name: &str) -> u32 {
    let group = model.operation_groups.len() as u32;
    let empty = OperationGroup {
        uid: 1 << 40 | u64::from(group),
        window: None,
        code: Default::default(),
        host_copies: Vec::new(),
        clusters: Vec::new(),
    };
    model.operation_groups.push(empty);
    model.operations.push(named_operation(group, name));
    group
}

fn named_operation(group: u32, name: &str) -> Operation {
    Operation {
        group,
        name: name.into(),
        inputs: "".into(),
        is_tensor: false,
        is_anonymous: false,
        is_backward: false,
        is_update: false,
        pass: Pass::Forward,
        is_nested: false,
        window: None,
        call: NO_CALL,
    }
}

/// Puts variables on the first tile only, one for each (class, set).
fn on_first_tile(model: &mut Model, uses: impl Iterator<Item = (u32, u32)>) {
    let group = |(class, set)| VariableGroup {
        class,
        set,
        bytes: 1,
    };
    let groups = uses.map(|used| (0, group(used)));
    model.variables = VariableGroups::new(model.target.num_tiles, groups);
}

#[test]
fn saved_sets_that_contain_each_other() {
    let run = changed(|model| {
        let mut set = NO_USERS;
        let mut sets = Vec::new();
        for _ in 0..30_000 {
            let group = add(model, "other");
            set = model.use_sets.push(set, group);
            sets.push((0, set));
        }
        on_first_tile(model, sets.into_iter());
    });
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.err.contains("groups of layers"), "{run:?}");
}

#[test]
fn saved_variables_of_all_layers() {
    let run = changed(|model| {
        let mut set = NO_USERS;
        for layer in 0..600 {
            let group = add(model, &format!("layer{}", 1000 + layer));
            set = model.use_sets.push(set, group);
        }
        let classes = 20_000;
        let ranges = (0..classes).map(|class| (class, class * 2, class * 2 + 1));
        let always = vec![false; classes as usize];
        model.classes = LiveClasses::new(always, ranges.collect(), classes * 2);
        model.code_variables = VariableGroups::new(model.target.num_tiles, std::iter::empty());
        model
            .operation_groups
            .iter_mut()
            .for_each(|group| group.window = None);
        on_first_tile(model, (0..classes).map(|class| (class, set)));
    });
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.err.contains("groups of layers"), "{run:?}");
}

#[test]
fn saved_code_of_many_groups_on_many_tiles() {
    let (layers, tiles) = (100 / share(2), 1000);
    let run = changed(|model| {
        model.target.num_tiles = tiles;
        model.target.tiles_per_ipu = tiles;
        model.recorded.tiles.clear();
        model.code_variables = VariableGroups::new(tiles, std::iter::empty());
        on_first_tile(model, std::iter::empty());
        for first in 0..layers {
            for second in first + 1..layers {
                let group = add(model, &format!("layer{}", 1000 + first));
                let other = format!("layer{}", 1000 + second);
                model.operations.push(named_operation(group, &other));
                let everywhere: TileBytes = (0..tiles).map(|_| 1).collect();
                let code = &mut model.operation_groups[group as usize].code;
                code.vertex_memory = everywhere.clone();
                code.exchange_code = everywhere.clone();
                code.control_code = everywhere;
            }
        }
    });
    assert!(run.code < 2, "{run:?}");
}
