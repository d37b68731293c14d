//! Makes a small model with data in every field, so that saving and loading can be tested.

use crate::{
    message::Warning,
    model::{
        CycleSource, DataFlow, FlowEdge, FlowNode, Framework, GroupCode, Label, LayerRegexes,
        MemoryPeak, Model, NO_CALL, NO_NODE, NO_USERS, NamedVariable, Operation, OperationCycles,
        OperationGroup, OwnedKind, OwnedProgram, Pass, ProgramCluster, Recording, TensorKind,
        UseSets, VariableGroup, VariableGroups, WorkCycles,
    },
    profile::{
        BuildInfo, ChosenOption, LiveClasses, Recorded, RecordedCategory, RecordedTile, Target,
        TileBytes,
    },
    witnesses::{Contradiction, Witness, worst},
};

pub fn target(tiles: u32) -> Target {
    Target {
        tiles_per_ipu: tiles,
        num_tiles: tiles,
        bytes_per_tile: 638_976,
        num_ipus: 1,
        num_replicas: 1,
        architecture: "ipu2".into(),
    }
}

/// Returns two contradictions of a profile with itself, or none if `computed` is 0. In the first,
/// `computed` bytes were computed for tile 3, but the profile states 0 bytes. In the second, a
/// table of the profile is empty, although it should have `computed` rows.
pub fn contradictions(computed: u64) -> Vec<Contradiction> {
    let numbers = [[0, 0], [0, 0], [0, 0], [0, computed]];
    let table = "memory_by_tile";
    let of_tile = worst(Witness::OneStage, table, 9, numbers, u64::abs_diff);
    let of_all = (computed > 0).then(|| Contradiction::without_rows(table, computed));
    of_tile.into_iter().chain(of_all).collect()
}

pub fn by_tile(values: &[u32]) -> TileBytes {
    values.iter().copied().collect()
}

/// Returns a model of 4 tiles and 9 liveness steps with data in every field.
pub fn full() -> Model {
    let mut body_sets = UseSets::default();
    let first = body_sets.push(NO_USERS, 0);
    let both = body_sets.push(first, 1);
    body_sets.mark(first, 1, NO_USERS);
    body_sets.mark(both, 0, first);
    let item = |class, set, bytes| VariableGroup { class, set, bytes };
    // Two groups of variables on one tile are live at the same steps and have the same users, but
    // stay apart, since their sum exceeds 32 bits.
    let items = [
        (0, item(0, NO_USERS, 12)),
        (0, item(2, both, u32::MAX)),
        (0, item(2, both, 5)),
        (2, item(1, first, 300)),
        (3, item(1, first, 304)),
        (3, item(2, NO_USERS, 1)),
    ];
    let ranges = vec![(1, 0, 2), (1, 4, 9), (2, 3, 4)];
    Model {
        target: target(4),
        operations: operations(),
        operation_groups: bodies(),
        classes: LiveClasses::new(vec![true, false, false, false], ranges, 9),
        variables: VariableGroups::new(4, items.into_iter()),
        code_variables: VariableGroups::new(4, [(1, item(0, first, 40))].into_iter()),
        recorded_code: [[1, 1, 1, 2], [0; 4], [5, 0, 0, 0], [4, 4, 4, 9]].map(|v| by_tile(&v)),
        use_sets: body_sets,
        labels: vec![Label::default(), weight()],
        calls: vec![7],
        flow: flow(first),
        vertex_code: vec![by_tile(&[8, 8, 0, 9]), TileBytes::default()],
        programs: programs(),
        backward_start: Some(1),
        recording: Recording {
            framework: Framework::Popart,
            accumulates: true,
            recomputes: false,
            has_checkpoints: true,
            loads_state: true,
            gathers_state: false,
        },
        recorded: Recorded {
            tiles: (0..4).map(recorded).collect(),
            categories: vec![RecordedCategory {
                name: "variable".into(),
                bytes: by_tile(&[1, 2, 3, 4]),
                overlapped: by_tile(&[0, 2, 1, 0]),
            }],
        },
        cycles: Some(OperationCycles {
            source: CycleSource::Executed { runs: 3 },
            by_operation: vec![
                work(u64::MAX, u64::MAX, 7),
                work(0, 0, 0),
                work(1 << 40, 1 << 39, 1 << 38),
            ],
            by_cluster: [((2, 0), work(1 << 39, 5, 1 << 38))].into(),
            unexplained: work(17, 16, 0),
            other: 4,
        }),
        made: made(),
        memory_peak: Some(MemoryPeak {
            tile: 3,
            step: 8,
            bytes: 1 << 40,
            variables: vec![NamedVariable {
                name: "weights#0".into(),
                category: "variable".into(),
                bytes: 304,
                set: both,
            }],
        }),
        warnings: ["look out", ""].map(Warning::new).into(),
        contradictions: contradictions(7),
        layer_regexes: LayerRegexes {
            names: Some(r"block(\d+)".into()),
            inputs: None,
        },
    }
}

pub fn option_of(name: &str, value: &str) -> ChosenOption {
    ChosenOption {
        name: name.into(),
        value: value.into(),
    }
}

fn made() -> BuildInfo {
    BuildInfo {
        poplar: Some("3.3.0 (de1f8de2a7)".into()),
        time: Some(String::new()),
        device: Some("IPU".into()),
        clock_hertz: Some(1_850_000_000),
        compilation_options: vec![option_of("a.b", "true"), option_of("", "")],
        target_options: vec![option_of("GatewayMode", "1")],
    }
}

fn weight() -> Label {
    Label {
        name: "weights#".into(),
        tensor: "encoder.layer.1.weight".into(),
        kind: TensorKind::Variable,
        element_bytes: Some(2),
    }
}

fn operations() -> Vec<Operation> {
    let operation = |body, name: &str, inputs: &str, is_tensor| Operation {
        group: body,
        name: name.into(),
        inputs: inputs.into(),
        is_tensor,
        is_anonymous: false,
        is_backward: !is_tensor,
        is_update: is_tensor,
        pass: Pass::Both,
        is_nested: body == 1,
        window: Some((0, body)),
        call: if body == 1 { 0 } else { NO_CALL },
    };
    vec![
        operation(1, "layer1/MatMul,\"ü\"\n", "a/layer1/b", false),
        operation(0, "", "", true),
        operation(0, "layer2/Add", "", false),
    ]
}

fn bodies() -> Vec<OperationGroup> {
    let code = GroupCode {
        vertex_types: vec![(0, by_tile(&[1, 1, 0, 1])), (1, by_tile(&[0, 0, 1, 0]))],
        vertex_state: by_tile(&[0, 20, 20, u32::MAX]),
        vertex_memory: by_tile(&[0, 24, 24, 6]),
        exchange_code: by_tile(&[7, 0, 7, 7]),
        control_code: by_tile(&[4, 4, 4, 4]),
        own_control_code: by_tile(&[28, 4, 4, 4]),
    };
    let cluster = ProgramCluster {
        sets: [1, 2].into(),
        code: code.clone(),
    };
    let body = |uid, window, code| OperationGroup {
        uid,
        window,
        code,
        host_copies: vec![0, 1],
        clusters: Vec::new(),
    };
    let first = body(u64::MAX, Some((2, 8)), code);
    vec![
        OperationGroup {
            clusters: vec![cluster],
            ..first
        },
        body(3, None, GroupCode::default()),
    ]
}

fn programs() -> Vec<OwnedProgram> {
    let program = |id, kind, name: &str, bytes, body| OwnedProgram {
        id,
        kind,
        name: name.into(),
        bytes,
        group: body,
    };
    vec![
        program(1 << 40, OwnedKind::OnTileExecute, "cs", 500, Some(1)),
        program(0, OwnedKind::DoExchange, "", u64::MAX, None),
    ]
}

fn recorded(tile: u64) -> RecordedTile {
    RecordedTile {
        total: 600_000 + tile,
        with_gaps: tile.is_multiple_of(2).then_some(u64::MAX - tile),
        always_live: u64::MAX - tile,
        not_always_live: 3,
        regions: None,
    }
}

/// Returns a data flow with a tensor that passes between nodes (runs of consecutive liveness
/// steps), a tensor that enters the model from outside, and a weight that two nodes use.
fn flow(weight: u32) -> DataFlow {
    let node = |first, operations: &[u32]| FlowNode {
        first,
        operations: operations.into(),
    };
    let edge = |from, to: &[u32], bytes| FlowEdge {
        from,
        to: to.into(),
        bytes,
    };
    DataFlow {
        nodes: vec![node(0, &[0]), node(1, &[1, 2]), node(4, &[])],
        edges: vec![edge(0, &[1, 2], 9), edge(NO_NODE, &[1], 1 << 40)],
        parameters: vec![(weight, [0, 1].into())],
    }
}

fn work(all: u64, exchange: u64, later: u64) -> WorkCycles {
    WorkCycles {
        all,
        exchange,
        later,
    }
}
