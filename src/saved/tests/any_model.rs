//! Strategy for small random models.

use super::models::{by_tile, contradictions, option_of, target, version};
use crate::message::Warning;
use crate::model::{
    CycleSource, Flow, FlowEdge, FlowNode, GroupCode, Label, MemoryPeak, Model, NO_CALL, NO_NODE,
    NamedVariable, Operation, OperationCycles, OperationGroup, OwnedKind, OwnedProgram, Pass,
    ProgramCluster, Recording, TensorKind, UseSets, VariableGroup, VariableGroups, WorkCycles,
};
use crate::profile::{
    BuildInfo, FormatVersion, LiveClasses, Recorded, RecordedCategory, RecordedTile, TileBytes,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// Sizes of the parts of a random model.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    tiles: u32,
    steps: u32,
    bodies: u32,
    classes: u32,
    vertex_types: u32,
}

/// Any small model.
pub(super) fn any_model() -> impl Strategy<Value = Model> {
    let sizes = (1..6u32, 0..8u32, 0..5u32, 0..6u32, 0..4u32);
    sizes.prop_flat_map(|(tiles, steps, bodies, classes, vertex_types)| {
        let sizes = Sizes {
            tiles,
            steps,
            bodies,
            classes,
            vertex_types,
        };
        any_sets(bodies).prop_flat_map(move |sets| any_model_of(sizes, sets))
    })
}

fn any_model_of(sizes: Sizes, body_sets: UseSets) -> impl Strategy<Value = Model> {
    let sets = body_sets.len() as u32;
    let parts = (
        any_list(sizes.bodies, any_operation),
        vec(any_body(sizes, sets), sizes.bodies as usize),
        any_classes(sizes),
        any_items(sizes, sets),
        vec(any_tile_bytes(sizes.tiles), sizes.vertex_types as usize),
        vec(any_program(sizes.bodies), 0..4),
        any_recorded(sizes.tiles),
        any_items(sizes, sets),
        proptest::array::uniform4(any_tile_bytes(sizes.tiles)),
        option::of(any_bottleneck(sizes, sets)),
        (
            vec(".{0,9}".prop_map(Warning::new), 0..3),
            any_origin(),
            vec(any_label(), 1..4),
            (vec(any::<u32>(), 0..3), any_flow(sets)),
        ),
    );
    // There are as many cycles as operations.
    let parts = parts.prop_flat_map(|parts| {
        let cycles = option::of(any_cycles(parts.0.len()));
        (Just(parts), cycles)
    });
    parts.prop_map(move |(parts, cycles)| Model {
        contradictions: contradictions(parts.10.0.len() as u64),
        target: target(sizes.tiles),
        operations: parts.0,
        operation_groups: parts.1,
        classes: parts.2,
        variables: parts.3,
        use_sets: body_sets.clone(),
        vertex_code: parts.4,
        programs: parts.5,
        backward_start: None,
        recording: Recording::default(),
        recorded: parts.6,
        code_variables: parts.7,
        recorded_code: parts.8,
        memory_peak: parts.9,
        labels: parts.10.2,
        calls: parts.10.3.0,
        flow: parts.10.3.1,
        warnings: parts.10.0,
        version: parts.10.1.0,
        made: parts.10.1.1,
        cycles,
    })
}

fn any_cycles(operations: usize) -> impl Strategy<Value = OperationCycles> {
    let source = prop_oneof![
        Just(CycleSource::Estimated),
        any::<u64>().prop_map(|runs| CycleSource::Executed { runs }),
    ];
    // Cycles of exchanges, and all cycles.
    let sum = || (any::<u64>(), any::<u64>()).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let sums = (vec(sum(), operations), sum(), any::<u64>());
    (source, sums).prop_map(|(source, (operations, unexplained, other))| {
        let sum = |(exchange, all)| WorkCycles {
            all,
            exchange,
            later: exchange,
        };
        OperationCycles {
            source,
            by_operation: operations.into_iter().map(sum).collect(),
            by_cluster: Vec::new(),
            unexplained: sum(unexplained),
            other,
        }
    })
}

fn any_origin() -> impl Strategy<Value = (FormatVersion, BuildInfo)> {
    let facts = vec(option::of(".{0,9}"), 3);
    let options = || vec((".{0,9}", ".{0,9}"), 0..3);
    let numbers = (any::<u64>(), any::<u64>(), option::of(any::<u64>()));
    (numbers, facts, options(), options()).prop_map(|(numbers, mut facts, compilation, target)| {
        let options = |all: Vec<(String, String)>| {
            all.iter()
                .map(|(name, value)| option_of(name, value))
                .collect()
        };
        let made = BuildInfo {
            poplar: facts.pop().unwrap(),
            time: facts.pop().unwrap(),
            device: facts.pop().unwrap(),
            clock_hertz: numbers.2,
            compilation_options: options(compilation),
            target_options: options(target),
        };
        (version(numbers.0, numbers.1), made)
    })
}

/// A list whose entries refer to one of `bodies`; empty if there is none.
fn any_list<T: std::fmt::Debug, S: Strategy<Value = T>>(
    bodies: u32,
    entry: impl Fn(u32) -> S,
) -> impl Strategy<Value = Vec<T>> {
    let max_length = if bodies == 0 { 0 } else { 6 };
    vec(entry(bodies), 0..=max_length)
}

fn any_operation(bodies: u32) -> impl Strategy<Value = Operation> {
    let facts = any::<[bool; 5]>();
    let parts = (0..bodies.max(1), ".{0,9}", "[a-z/]{0,9}", facts);
    parts.prop_map(|(body, name, inputs, facts)| Operation {
        group: body,
        name: name.into(),
        inputs: inputs.into(),
        is_tensor: facts[0],
        is_anonymous: facts[1],
        is_backward: facts[2],
        is_update: facts[3],
        pass: if facts[4] {
            Pass::Update
        } else {
            Pass::Forward
        },
        is_nested: facts[4],
        window: None,
        call: NO_CALL,
    })
}

fn any_label() -> impl Strategy<Value = Label> {
    (".{0,9}", ".{0,9}", 0..TensorKind::ALL.len()).prop_map(|(name, tensor, kind)| Label {
        name: name.into(),
        tensor: tensor.into(),
        kind: TensorKind::ALL[kind],
        element_bytes: u8::try_from(kind).ok().filter(|&bytes| bytes > 0),
    })
}

fn any_flow(sets: u32) -> impl Strategy<Value = Flow> {
    let node = any::<u32>().prop_map(|first| FlowNode {
        first,
        operations: [].into(),
    });
    (vec(node, 3), 0..3u32, 0..sets, any::<u64>()).prop_map(|(nodes, from, set, bytes)| {
        let edge = |from| FlowEdge {
            from,
            to: [2].into(),
            bytes,
        };
        let edges = [from, NO_NODE].into_iter().filter(|&from| from != 2);
        Flow {
            nodes,
            edges: edges.map(edge).collect(),
            parameters: vec![(set, [0, from.max(1)].into())],
        }
    })
}

fn any_bytes() -> impl Strategy<Value = u32> {
    prop_oneof![3 => 0..3u32, 1 => any::<u32>()]
}

fn any_tile_bytes(tiles: u32) -> impl Strategy<Value = TileBytes> {
    vec(any_bytes(), tiles as usize).prop_map(|values| by_tile(&values))
}

fn any_body(sizes: Sizes, sets: u32) -> impl Strategy<Value = OperationGroup> {
    let window = (0..sizes.steps.max(1), 0..sizes.steps.max(1));
    let clusters = vec(
        (
            proptest::collection::btree_set(0..sets, 0..3),
            any_code(sizes),
        ),
        0..3,
    );
    let parts = (any::<u64>(), option::of(window), any_code(sizes), clusters);
    parts.prop_map(move |(uid, window, code, clusters)| {
        let window = window.filter(|_| sizes.steps > 0);
        let cluster = |(sets, code): (std::collections::BTreeSet<u32>, GroupCode)| ProgramCluster {
            sets: sets.into_iter().collect(),
            code,
        };
        OperationGroup {
            uid,
            window: window.map(|(a, b)| (a.min(b), a.max(b))),
            code,
            host_copies: Vec::new(),
            clusters: clusters.into_iter().map(cluster).collect(),
        }
    })
}

fn any_code(sizes: Sizes) -> impl Strategy<Value = GroupCode> {
    let types = vec(
        option::of(any_tile_bytes(sizes.tiles)),
        sizes.vertex_types as usize,
    );
    let code = vec(any_tile_bytes(sizes.tiles), 4);
    (types, code).prop_map(|(types, mut code)| {
        let types = (0..).zip(types).filter_map(|(n, tiles)| Some((n, tiles?)));
        GroupCode {
            vertex_types: types.collect(),
            vertex_state: code.pop().unwrap(),
            vertex_memory: code.pop().unwrap(),
            exchange_code: code.pop().unwrap(),
            control_code: code.pop().unwrap(),
        }
    })
}

fn any_classes(sizes: Sizes) -> impl Strategy<Value = LiveClasses> {
    let range = (0..sizes.classes.max(1), 0..=sizes.steps, 0..=sizes.steps);
    let always = vec(any::<bool>(), sizes.classes as usize);
    (always, vec(range, 0..9)).prop_map(move |(always, mut ranges)| {
        ranges.retain(|range| range.1 < range.2);
        LiveClasses::new(always, ranges, sizes.steps)
    })
}

fn any_sets(bodies: u32) -> impl Strategy<Value = UseSets> {
    vec((any::<prop::sample::Index>(), 0..bodies.max(1)), 0..9).prop_map(move |nodes| {
        let mut sets = UseSets::default();
        for (smaller, body) in nodes {
            let smaller = smaller.index(sets.len()) as u32;
            let last = sets.groups(smaller).next();
            if body < bodies && last.is_none_or(|last| last < body) {
                sets.push(smaller, body);
            }
        }
        sets
    })
}

fn any_items(sizes: Sizes, sets: u32) -> impl Strategy<Value = VariableGroups> {
    let max_length = if sizes.classes == 0 { 0 } else { 12 };
    let item = (
        0..sizes.tiles as u16,
        0..sizes.classes.max(1),
        0..sets,
        any_bytes(),
    );
    vec(item, 0..=max_length).prop_map(move |items| {
        let items = items.iter().map(|&(tile, class, set, bytes)| {
            let item = VariableGroup { class, set, bytes };
            (tile, item)
        });
        VariableGroups::new(sizes.tiles, items)
    })
}

fn any_program(bodies: u32) -> impl Strategy<Value = OwnedProgram> {
    let body = option::of(0..bodies.max(1));
    let parts = (any::<u64>(), any::<bool>(), ".{0,9}", any::<u64>(), body);
    parts.prop_map(move |(id, is_exchange, name, bytes, body)| OwnedProgram {
        id,
        kind: if is_exchange {
            OwnedKind::DoExchange
        } else {
            OwnedKind::OnTileExecute
        },
        name: name.into(),
        bytes,
        group: body.filter(|_| bodies > 0),
    })
}

fn any_recorded(tiles: u32) -> impl Strategy<Value = Recorded> {
    let tile = (any::<u64>(), any::<u64>(), any::<u64>());
    let tile = (tile, option::of(any::<u64>()));
    let tile = tile.prop_map(
        |((total, always_live, not_always_live), with_gaps)| RecordedTile {
            total,
            with_gaps,
            always_live,
            not_always_live,
        },
    );
    let all_tiles = option::of(vec(tile, tiles as usize));
    let bytes = || any_tile_bytes(tiles);
    let category = ("[a-z]{0,5}", bytes(), bytes());
    let category = category.prop_map(|(name, bytes, overlapped)| RecordedCategory {
        name,
        bytes,
        overlapped,
    });
    let categories = vec(category, 0..3);
    (all_tiles, categories).prop_map(|(tiles, categories)| Recorded {
        tiles: tiles.unwrap_or_default(),
        categories,
    })
}

fn any_bottleneck(sizes: Sizes, sets: u32) -> impl Strategy<Value = MemoryPeak> {
    let variable = (".{0,9}", "[a-z]{0,5}", any_bytes(), 0..sets);
    let variable = variable.prop_map(|(name, category, bytes, set)| NamedVariable {
        name: name.into(),
        category: category.into(),
        bytes,
        set,
    });
    let place = (0..sizes.tiles, 0..sizes.steps.max(1), any::<u64>());
    (place, vec(variable, 0..4)).prop_map(|((tile, step, bytes), variables)| MemoryPeak {
        tile,
        step,
        bytes,
        variables,
    })
}
