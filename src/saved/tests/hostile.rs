//! Files with a valid checksum and invalid contents.

use super::super::container::{
    CHECKSUM, Content, ENTRY, HEADER, Part, assemble, checksum, take_apart,
};
use super::super::*;
use super::any_model::any_model;
use super::models::{full, target};
use crate::memory::MemoryModel;
use crate::memory::testing::share;
use crate::model::{
    ClusterCycles, DEFAULT_INPUTS_REGEX, DEFAULT_LAYER_REGEX, LayerOptions, LayerOrder,
    LayerSource, Layering, Placement, PlacementOptions, VariableGroup, VariableGroups, WorkCycles,
};
use crate::profile::{LiveClasses, TileBytes};
use proptest::prelude::*;
use regex::Regex;

/// Contents of the parts of `model`.
fn contents(model: &Model) -> Vec<Vec<u8>> {
    let file = to_bytes(model).unwrap();
    let parts = take_apart(&file).unwrap();
    parts.iter().map(|part| part.bytes.to_vec()).collect()
}

/// File whose parts have these contents.
fn file(contents: &[Vec<u8>]) -> Vec<u8> {
    let parts = contents.iter().enumerate();
    let parts = parts.map(|(position, bytes)| Part {
        content: Content::at(position),
        bytes: bytes.into(),
    });
    assemble(&parts.collect::<Vec<_>>()).unwrap()
}

/// File of `model`, which may be invalid, with the variables of another model.
fn unchecked(model: &Model, contents: &[Vec<u8>]) -> Vec<u8> {
    let mut contents = contents.to_vec();
    contents[0] = postcard::to_stdvec(model).unwrap();
    file(&contents)
}

/// Runs the computations that every model goes through.
fn compute(model: &Model) {
    let options = LayerOptions {
        source: LayerSource::Regex(Regex::new(DEFAULT_LAYER_REGEX).unwrap()),
        inputs_regex: Regex::new(DEFAULT_INPUTS_REGEX).unwrap(),
        order: LayerOrder::Steps,
        ..LayerOptions::default()
    };
    let layering = Layering::of_names(&model.operations, &options);
    let options = PlacementOptions::default();
    let placements = [
        Placement::classic(model, &layering),
        Placement::full(model, &layering, &options),
    ];
    for placement in placements.into_iter().flatten() {
        let Ok(memory) = MemoryModel::new(model, &placement) else {
            continue;
        };
        let layers = memory.layers();
        if let Ok(costs) = memory.range_costs(u64::MAX) {
            assert_eq!(costs.layers(), layers);
        }
        assert_eq!(memory.stages(std::slice::from_ref(&(0..layers))).len(), 1);
        let cuts = memory.between().cut_bytes();
        assert!(cuts.len() <= layers);
    }
    for variable in model.memory_peak.iter().flat_map(|found| &found.variables) {
        let bodies = model.use_sets.groups(variable.set);
        assert!(
            bodies
                .into_iter()
                .all(|body| model.operation_groups.len() > body as usize)
        );
    }
}

/// Is the result an error, or a model that can be used and saved?
fn refused_or_sound(file: &[u8]) -> bool {
    let Ok(model) = from_bytes(file) else {
        return true;
    };
    compute(&model);
    from_bytes(&to_bytes(&model).unwrap()).unwrap() == model
}

#[test]
fn any_changed_byte_inside_a_part_is_refused_or_harmless() {
    let contents = contents(&full());
    assert_eq!(contents.len(), 3, "model, uses and variables");
    let mut accepted = 0;
    for part in 0..contents.len() {
        for place in (0..contents[part].len()).step_by(share(4)) {
            let byte = contents[part][place];
            for other in [0, 1, 0x80, 0xff, byte.wrapping_add(1)] {
                let mut contents = contents.clone();
                contents[part][place] = other;
                let file = file(&contents);
                assert!(refused_or_sound(&file), "{part} {place} {other}");
                accepted += u32::from(from_bytes(&file).is_ok());
            }
            let mut cut = contents.clone();
            cut[part].truncate(place);
            assert!(from_bytes(&file(&cut)).is_err());
        }
        let mut longer = contents.clone();
        longer[part].push(0);
        assert!(from_bytes(&file(&longer)).is_err());
    }
    assert!(accepted > 20, "some changes make another model: {accepted}");
}

#[test]
fn parts_that_are_missing_or_stand_twice_are_refused() {
    let contents = contents(&full());
    for part in 0..contents.len() {
        let mut missing = contents.clone();
        let twice = missing.remove(part);
        assert!(from_bytes(&file(&missing)).is_err(), "{part}");
        let mut doubled = contents.clone();
        doubled.insert(part, twice);
        assert!(from_bytes(&file(&doubled)).is_err());
        let mut swapped = contents.clone();
        swapped.swap(part, (part + 1) % contents.len());
        assert!(from_bytes(&file(&swapped)).is_err());
    }
    assert!(from_bytes(&file(&[])).is_err());
}

proptest! {
    #[test]
    fn random_contents_are_refused_or_harmless(
        model in any_model(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        part in any::<prop::sample::Index>(),
    ) {
        let mut contents = contents(&model);
        let part = part.index(contents.len());
        for (place, byte) in changes {
            let content = &mut contents[part];
            if !content.is_empty() {
                let place = place.index(content.len());
                content[place] = byte;
            }
        }
        prop_assert!(refused_or_sound(&file(&contents)));
    }
}

/// Error of loading a valid model after `change`.
fn error_after(change: impl FnOnce(&mut Model)) -> String {
    let mut model = full();
    change(&mut model);
    match from_bytes(&to_bytes(&model).unwrap()) {
        Err(error @ SavedError::Invalid(_)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

fn one_item(class: u32, set: u32) -> VariableGroups {
    let item = VariableGroup {
        class,
        set,
        bytes: 1,
    };
    VariableGroups::new(4, [(0, item)].into_iter())
}

#[test]
fn positions_that_lead_nowhere_are_named() {
    let five_tiles: TileBytes = [1, 2, 3, 4, 5].into_iter().collect();
    let errors = [
        (
            error_after(|m| m.cycles.as_mut().unwrap().by_operation.clear()),
            "numbers of cycles and operations differ",
        ),
        (
            error_after(|m| {
                m.cycles
                    .as_mut()
                    .unwrap()
                    .by_operation
                    .push(WorkCycles::default())
            }),
            "numbers of cycles and operations differ",
        ),
        (
            error_after(|m| m.cycles.as_mut().unwrap().by_operation[1].later = 1),
            "exchanges or the backward pass take more cycles than there are",
        ),
        (
            error_after(|m| m.cycles.as_mut().unwrap().by_operation[1].exchange = 1),
            "exchanges or the backward pass take more cycles than there are",
        ),
        (
            error_after(|m| m.cycles.as_mut().unwrap().by_cluster[0].operation = 3),
            "part of the cycles 0: it is of no programs",
        ),
        (
            error_after(|m| m.cycles.as_mut().unwrap().by_cluster[0].cluster = 1),
            "part of the cycles 0: it is of no programs",
        ),
        (
            error_after(|m| m.cycles.as_mut().unwrap().by_cluster[0].cycles.later *= 4),
            "part of the cycles 0: exchanges or the backward pass take more cycles than there are",
        ),
        (
            error_after(|m| {
                let parts = &mut m.cycles.as_mut().unwrap().by_cluster;
                parts.push(ClusterCycles {
                    operation: 1,
                    ..parts[0]
                });
            }),
            "parts of the cycles are in no order",
        ),
        (
            error_after(|m| m.cycles.as_mut().unwrap().unexplained.exchange = 18),
            "exchanges or the backward pass take more cycles than there are",
        ),
        (
            error_after(|m| m.operations[0].group = 2),
            "operation 0: there is no operation group 2",
        ),
        (
            error_after(|m| m.programs[0].group = Some(2)),
            "program 0: there is no operation group 2",
        ),
        (
            error_after(|m| m.operations[0].window = Some((0, 9))),
            "operation 0: there is no step 9",
        ),
        (
            error_after(|m| m.operation_groups[0].window = Some((9, 9))),
            "there is no step 9",
        ),
        (
            error_after(|m| m.operation_groups[0].window = Some((2, 9))),
            "there is no step",
        ),
        (
            error_after(|m| m.operation_groups[0].window = Some((2, 1))),
            "ends before it begins",
        ),
        (
            error_after(|m| m.operation_groups[0].code.vertex_types[1].0 = 2),
            "group 0: there is no vertex type 2",
        ),
        (
            error_after(|m| m.operation_groups[0].code.vertex_types.swap(0, 1)),
            "not in order",
        ),
        (
            error_after(|m| m.vertex_code[0] = five_tiles.clone()),
            "beyond the last tile",
        ),
        (
            error_after(|m| m.operation_groups[1].code.control_code = five_tiles.clone()),
            "last tile",
        ),
        (
            error_after(|m| m.recorded.categories[0].bytes = five_tiles.clone()),
            "last tile",
        ),
        (
            error_after(|m| m.recorded.categories[0].overlapped = five_tiles),
            "last tile",
        ),
        (
            error_after(|m| m.recorded.tiles.truncate(3)),
            "recorded tiles",
        ),
        (
            error_after(|m| m.memory_peak.as_mut().unwrap().tile = 4),
            "there is no tile 4",
        ),
        (
            error_after(|m| m.memory_peak.as_mut().unwrap().step = 9),
            "there is no step 9",
        ),
        (
            error_after(|m| m.memory_peak.as_mut().unwrap().variables[0].set = 3),
            "there is no use set 3",
        ),
        (
            error_after(|m| m.variables = one_item(4, 0)),
            "there is no class 4",
        ),
        (
            error_after(|m| m.variables = one_item(0, 3)),
            "there is no use set 3",
        ),
        (error_after(|m| _ = m.use_sets.push(0, 2)), "a later group"),
        (error_after(|m| _ = m.use_sets.push(2, 1)), "a later group"),
        (error_after(|m| m.target = target(0)), "there is no tile"),
        (error_after(|m| m.target.num_ipus = 2), "2 IPUs"),
        (
            error_after(|m| m.classes = LiveClasses::new(vec![false; 4], vec![(0, 1, 10)], 9)),
            "beyond the last step",
        ),
    ];
    for (error, expected) in errors {
        assert!(error.contains(expected), "{error:?} has no {expected:?}");
    }
}

/// Writes a number of 32 bits and one of 64 over each byte, and thus over the length of each list:
/// none may make the reader allocate that much memory.
#[test]
fn lengths_are_not_believed() {
    let contents = contents(&full());
    let lengths = [
        &b"\xff\xff\xff\xff\x0f"[..],
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    ];
    for part in 0..contents.len() {
        for place in 0..contents[part].len() {
            for length in lengths {
                let mut contents = contents.clone();
                contents[part].splice(place..=place, length.iter().copied());
                assert!(refused_or_sound(&file(&contents)), "{part} {place}");
            }
        }
    }
}

#[test]
fn more_steps_than_any_model_has_are_refused() {
    let contents = contents(&full());
    for steps in [u32::MAX, (1 << 22) + 1] {
        let mut model = full();
        model.classes = LiveClasses::new(vec![true; 4], Vec::new(), steps);
        let error = from_bytes(&unchecked(&model, &contents)).unwrap_err();
        let expected = format!("{steps} liveness steps");
        assert!(error.to_string().contains(&expected), "{error}");
    }
}

/// The file with another entry in the table, and a matching checksum.
fn with_entry(file: &[u8], part: usize, value: u32) -> Vec<u8> {
    let mut file = file.to_vec();
    let place = HEADER + part * ENTRY;
    file[place..place + ENTRY].copy_from_slice(&value.to_le_bytes());
    file.truncate(file.len() - CHECKSUM);
    file.extend(checksum(&file));
    file
}

#[test]
fn the_table_of_parts_is_not_believed() {
    let good = to_bytes(&full()).unwrap();
    for part in 0..3 {
        for value in [0, 1, 99, 1 << 20, 1 << 30, u32::MAX] {
            let bad = with_entry(&good, part, value);
            assert!(from_bytes(&bad).is_err(), "{part} {value}");
        }
    }
    // More parts than the file has room for.
    let mut bad = good.clone();
    bad[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = from_bytes(&with_entry(&bad, 0, 1)).unwrap_err();
    assert!(error.to_string().contains("table of parts"), "{error}");
    let error = from_bytes(&with_entry(&good, 0, 1 << 30)).unwrap_err();
    let problem = "it reaches beyond the end of the file";
    assert!(error.to_string().contains(problem), "{error}");
}
