//! Tests that saved models with a valid checksum but invalid contents do no harm.

use super::{
    super::*,
    models::{full, target},
};
use crate::{
    memory::MemoryModel,
    memory::testing::share,
    model::{
        DEFAULT_INPUTS_REGEX, DEFAULT_LAYER_REGEX, DataFlow, Label, LayerOptions, LayerOrder,
        LayerSource, Layering, Placement, PlacementOptions, UseSets, VariableGroup, VariableGroups,
        WorkCycles,
    },
    profile::{LiveClasses, TileBytes},
};
use proptest::prelude::*;
use regex::Regex;

/// Returns the bytes of the file that saves `model`, even if indices in `model` are invalid.
fn unchecked(model: &Model) -> Vec<u8> {
    file_of(&encode(model).unwrap())
}

/// Runs the computations that follow the loading of a model; an invalid index would make them
/// panic.
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
        let cuts = memory.cut_bytes();
        assert!(cuts.len() <= layers);
    }
    for variable in model.memory_peak.iter().flat_map(|found| &found.variables) {
        let bodies = model.use_sets.groups(variable.set);
        assert!(
            bodies
                .into_iter()
                .all(|body| model.operation_groups.len() > body)
        );
    }
}

/// Loads `file` as a saved model. Returns true if loading gives an error, or if the model can be
/// used in computations and does not change when it is saved and loaded again.
fn refused_or_sound(file: &[u8]) -> bool {
    let Ok(model) = from_bytes(file) else {
        return true;
    };
    compute(&model);
    from_bytes(&to_bytes(&model).unwrap()).unwrap() == model
}

#[test]
fn any_changed_byte_is_refused_or_harmless() {
    let content = encode(&full()).unwrap();
    let mut accepted = 0;
    for place in (0..content.len()).step_by(share(4)) {
        for other in [0, 1, 0x80, 0xff, content[place].wrapping_add(1)] {
            let mut content = content.clone();
            content[place] = other;
            let file = file_of(&content);
            assert!(refused_or_sound(&file), "{place} {other}");
            accepted += u32::from(from_bytes(&file).is_ok());
        }
        assert!(from_bytes(&file_of(&content[..place])).is_err());
    }
    assert!(accepted > 20, "some changes make another model: {accepted}");
    let longer = from_bytes(&file_of(&[&content[..], &[0]].concat())).unwrap_err();
    assert!(longer.to_string().contains("1 bytes too many"), "{longer}");
}

proptest! {
    #[test]
    fn random_contents_are_refused_or_harmless(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut content = encode(&full()).unwrap();
        for (place, byte) in changes {
            let place = place.index(content.len());
            content[place] = byte;
        }
        prop_assert!(refused_or_sound(&file_of(&content)));
    }
}

#[test]
fn empty_lists_are_refused_or_harmless() {
    let none = || VariableGroups::new(4, std::iter::empty());
    let changes: [&dyn Fn(&mut Model); 15] = [
        &|model| model.operations.clear(),
        &|model| model.operation_groups.clear(),
        &|model| model.programs.clear(),
        &|model| model.labels.clear(),
        &|model| model.calls.clear(),
        &|model| model.vertex_code.clear(),
        &|model| model.flow = DataFlow::default(),
        &|model| model.recorded.tiles.clear(),
        &|model| model.recorded.categories.clear(),
        &|model| model.cycles = None,
        &|model| model.memory_peak = None,
        &|model| model.variables = none(),
        &|model| model.code_variables = none(),
        &|model| model.use_sets = UseSets::default(),
        &|model| model.classes = LiveClasses::new(Vec::new(), Vec::new(), 0),
    ];
    let mut without_all = full();
    for change in changes {
        let mut model = full();
        change(&mut model);
        assert!(refused_or_sound(&unchecked(&model)));
        change(&mut without_all);
    }
    without_all.labels.push(Label::default());
    without_all.backward_start = None;
    let file = unchecked(&without_all);
    let loaded = from_bytes(&file).map(|_| ());
    assert!(loaded.is_ok() && refused_or_sound(&file), "{loaded:?}");
}

/// Applies `change` to a valid model, saves it and loads it again. Returns the error of loading,
/// and panics if there is none or if it does not say that the file is damaged.
fn error_after(change: impl FnOnce(&mut Model)) -> String {
    let mut model = full();
    change(&mut model);
    let error = from_bytes(&to_bytes(&model).unwrap())
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("the file is damaged"), "{error}");
    error
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
fn parts_that_do_not_fit_the_others_are_named() {
    let five_tiles: TileBytes = [1, 2, 3, 4, 5].into_iter().collect();
    let errors = [
        (
            error_after(|m| m.cycles.as_mut().unwrap().by_operation.clear()),
            "cycles:",
        ),
        (
            error_after(|m| {
                m.cycles
                    .as_mut()
                    .unwrap()
                    .by_operation
                    .push(WorkCycles::default())
            }),
            "cycles:",
        ),
        (
            error_after(|m| m.cycles.as_mut().unwrap().by_operation[1].later = 1),
            "cycles:",
        ),
        (
            error_after(|m| m.cycles.as_mut().unwrap().by_operation[1].exchange = 1),
            "cycles:",
        ),
        (
            error_after(|m| {
                let parts = &mut m.cycles.as_mut().unwrap().by_cluster;
                parts.insert((3, 0), WorkCycles::default());
            }),
            "cycles:",
        ),
        (
            error_after(|m| {
                let parts = &mut m.cycles.as_mut().unwrap().by_cluster;
                parts.insert((2, 1), WorkCycles::default());
            }),
            "cycles:",
        ),
        (
            error_after(|m| {
                let parts = &mut m.cycles.as_mut().unwrap().by_cluster;
                parts.values_mut().for_each(|part| part.later *= 4);
            }),
            "cycles:",
        ),
        (
            error_after(|m| m.cycles.as_mut().unwrap().unexplained.exchange = 18),
            "cycles:",
        ),
        (error_after(|m| m.operations[0].group = 2), ": operations:"),
        (error_after(|m| m.programs[0].group = Some(2)), "programs:"),
        (
            error_after(|m| m.operations[0].window = Some((0, 9))),
            ": operations:",
        ),
        (
            error_after(|m| m.operation_groups[0].window = Some((9, 9))),
            "operation groups:",
        ),
        (
            error_after(|m| m.operation_groups[0].window = Some((2, 9))),
            "operation groups:",
        ),
        (
            error_after(|m| m.operation_groups[0].window = Some((2, 1))),
            "operation groups:",
        ),
        (
            error_after(|m| m.operation_groups[0].code.vertex_types[1].0 = 2),
            "operation groups:",
        ),
        (
            error_after(|m| m.operation_groups[0].code.vertex_types.swap(0, 1)),
            "operation groups:",
        ),
        (
            error_after(|m| m.vertex_code[0] = five_tiles.clone()),
            "bytes by tile:",
        ),
        (
            error_after(|m| m.operation_groups[1].code.control_code = five_tiles.clone()),
            "operation groups:",
        ),
        (
            error_after(|m| m.recorded.categories[0].bytes = five_tiles.clone()),
            "bytes by tile:",
        ),
        (
            error_after(|m| m.recorded.categories[0].overlapped = five_tiles),
            "bytes by tile:",
        ),
        (
            error_after(|m| m.recorded.tiles.truncate(3)),
            "recorded tiles:",
        ),
        (
            error_after(|m| m.memory_peak.as_mut().unwrap().tile = 4),
            "peak:",
        ),
        (
            error_after(|m| m.memory_peak.as_mut().unwrap().step = 9),
            "peak:",
        ),
        (
            error_after(|m| m.memory_peak.as_mut().unwrap().variables[0].set = 3),
            "peak:",
        ),
        (
            error_after(|m| m.variables = one_item(4, 0)),
            ": variables:",
        ),
        (
            error_after(|m| m.variables = one_item(0, 3)),
            ": variables:",
        ),
        (error_after(|m| _ = m.use_sets.push(0, 2)), "use sets:"),
        (error_after(|m| _ = m.use_sets.push(2, 1)), "use sets:"),
        (error_after(|m| m.target = target(0)), "target:"),
        (error_after(|m| m.target.num_ipus = 2), "target:"),
        (
            error_after(|m| m.classes = LiveClasses::new(vec![false; 4], vec![(0, 1, 10)], 9)),
            "live ranges:",
        ),
    ];
    for (error, expected) in errors {
        assert!(error.contains(expected), "{error:?} has no {expected:?}");
    }
}

/// Replaces each byte of a saved model, and thus the length of each list, by the largest 32-bit and
/// 64-bit numbers. Loading must refuse the file or give a usable model, and must never allocate
/// memory for a list of this length.
#[test]
fn lengths_are_not_believed() {
    let content = encode(&full()).unwrap();
    let lengths = [
        &b"\xff\xff\xff\xff\x0f"[..],
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    ];
    for place in 0..content.len() {
        for length in lengths {
            let mut content = content.clone();
            content.splice(place..=place, length.iter().copied());
            assert!(refused_or_sound(&file_of(&content)), "{place}");
        }
    }
}

#[test]
fn more_steps_than_any_model_has_are_refused() {
    for steps in [u32::MAX, (1 << 22) + 1] {
        let mut model = full();
        model.classes = LiveClasses::new(vec![true; 4], Vec::new(), steps);
        let error = from_bytes(&unchecked(&model)).unwrap_err();
        let expected = format!("{steps} liveness steps");
        assert!(error.to_string().contains(&expected), "{error}");
    }
}
