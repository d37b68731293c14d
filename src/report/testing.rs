//! A small report for tests of the forms.

use super::*;
use crate::memory::{Accumulator, Parts, Pipeline, Recompute, Schedule, StatePlace};
use crate::model::{Framework, PassCycles};
use std::ops::Range;

fn parts(variables: u64) -> Parts {
    Parts {
        variables,
        control_code: 24,
        ..Parts::default()
    }
}

fn curve(bytes: u64) -> Curve {
    Curve {
        first_step: 0,
        last_step: 9,
        fixed: 24,
        always_live: bytes / 2,
        peak: Peak {
            step: 3,
            bytes: 24 + bytes,
        },
        steps: vec![0, 3, 5],
        bytes: vec![0, bytes - bytes / 2, 7],
        thinned: false,
    }
}

fn stage(
    stage: u32,
    positions: Range<u32>,
    layers: &[Option<&str>],
    bytes: u64,
    limit: u64,
) -> Stage {
    let names = layers.iter().map(|name| name.map(String::from));
    let layers: Vec<_> = names.collect();
    Stage {
        stage,
        layer_from: layers[0].clone(),
        layer_to: layers[layers.len() - 1].clone(),
        has_out: layers.last() == Some(&Some("Out".into())),
        layers,
        positions,
        total: bytes + 424,
        parts: parts(bytes + 400),
        fullest_tile: FullestTile {
            limit,
            tile: stage,
            bytes: bytes + 24,
            learnt: 0,
            learnt_is_estimate: false,
            free: limit as i64 - bytes as i64 - 24,
            parts: parts(bytes),
            peak_step: Some(3),
            ..FullestTile::default()
        },
        tiles: Fullness {
            median: 400,
            percentile_95: bytes + 24,
            histogram: split::histogram(&[400, bytes + 24], limit),
        },
        all_tiles_curve: Some(curve(bytes + 400)),
        fullest_tile_curve: Some(curve(bytes)),
        pipeline: Some(StagePipeline {
            depth: 1 - stage,
            copies: u64::from(3 * (1 - stage)),
            late_restores: Some(bytes).filter(|_| stage == 0),
            stashed: vec![StashedVariable {
                name: "activation#0".into(),
                bytes: 100,
                layers: vec![Some("0".into()), Some("1".into())],
            }],
            update: None,
            kept: vec![Some("0".into())],
        }),
        peak_variables: Some(variables(stage, bytes)),
    }
}

fn variables(tile: u32, bytes: u64) -> PeakVariables {
    PeakVariables {
        categories: vec![CategorySum {
            name: "variable".into(),
            bytes,
        }],
        tile,
        step: 3,
        count: 2,
        bytes,
        largest: vec![LiveVariable {
            name: "weights#0".into(),
            category: "variable".into(),
            bytes: bytes - 1,
            layers: vec![Some("0".into())],
        }],
    }
}

fn layer(name: Option<&str>, tile: u32, bytes: u64) -> LayerMemory {
    LayerMemory {
        name: name.map(String::from),
        total: bytes * 2,
        parts: parts(bytes * 2 - 24),
        fullest_tile: tile,
        fullest_tile_bytes: bytes,
    }
}

/// Training whose schedule was left to the framework.
fn pipeline() -> PipelineFacts {
    PipelineFacts {
        schedule: Schedule::Popart,
        recompute: Recompute::Stage,
        accumulator: Accumulator::AsWeight,
        schedule_by_default: true,
        recompute_by_default: true,
        framework: Framework::Popart,
        is_training: true,
        recorded_accumulation: false,
        recorded_recomputation: true,
        without_recomputation: Some(1_500_000),
        choice_is_optimal: None,
        alternatives: vec![PipelineAlternative {
            schedule: Schedule::Popart,
            recompute: Recompute::Layer,
            options: "--recompute layer".into(),
            fits: true,
            fullest_tile_bytes: 500_000,
            change: -800_024,
            stages: vec![vec![None, Some("0".into())], vec![Some("1".into())]],
            ..PipelineAlternative::default()
        }],
        ..PipelineFacts::default()
    }
}

/// A report with all sections: two stages, the second over the limit.
pub(crate) fn report() -> Report {
    let limit = 638_976;
    let named = |name: &str| Some(name.to_string());
    Report {
        fit: None,
        pipeline: Some(pipeline()),
        proof: Some(proof()),
        refusal: Some(refusal(limit)),
        given: Some(given()),
        constraints: vec!["--cut-after 0".into(), "--pin 1=0".into()],
        tied_weights: vec![TiedWeightFacts {
            weight: "wte".into(),
            bytes: 1024,
            layers: vec![named("0"), named("1")],
            untied: false,
            stages: vec![0, 1],
        }],
        shared_variables: vec![SharedVariables {
            layers: vec![named("0"), named("2")],
            bytes: 2048,
        }],
        format: DocumentFormat::PoplinerReport,
        version: VERSION,
        provenance: provenance(),
        memory: RecordedMemory {
            limit,
            tiles: Some(TileTotals {
                fullest: 1,
                total: vec![600_000, 1_300_000],
                with_gaps: Some(vec![600_100, 1_300_400]),
                always_live: vec![1000, 2000],
                not_always_live: vec![599_000, 1_298_000],
            }),
            categories: vec![CategoryBytes {
                name: "variable".into(),
                all_tiles: 1_800_000,
                fullest_tile: Some(1_200_000),
            }],
            coverage: Some(CoverageFacts {
                tile: 1,
                recorded: 1_300_000,
                layers: 1_000_000,
                assigned: 200_000,
                by_touch: 1000,
                overhead: 100_001,
                rest: -1,
            }),
            tile_map: Some(tile_map()),
        },
        pseudo_layers: PseudoLayers::InAndOut,
        layers: vec![
            layer(None, 0, 100),
            layer(Some("0"), 0, 300_000),
            layer(Some("1"), 1, 200),
            layer(Some("2"), 1, 700_024),
            layer(Some("Out"), 1, 400),
        ],
        estimate: None,
        split: Some(Split {
            fewest_ipus: None,
            limits: Some(vec![limit, limit - 1000]),
            fits: false,
            limit,
            max_stages: 2,
            is_calibrated: false,
            is_given: false,
            stages: vec![
                stage(0, 0..2, &[None, Some("0")], 600_000, limit),
                stage(
                    1,
                    2..5,
                    &[Some("1"), Some("2"), Some("Out")],
                    700_000,
                    limit - 1000,
                ),
            ],
            unplaced: Vec::new(),
            too_large: vec![layer(Some("2"), 1, 700_024)],
        }),
        cuts: vec![Cut {
            duplicated: 2048,
            moves: vec![Move {
                layers: vec![named("1")],
                to_stage: 0,
                fullest_tile_bytes: [600_224, 699_800],
                change: [200, -224],
            }],
            after_stage: 0,
            layer_before: named("0"),
            layer_after: named("1"),
            bytes: 4096,
        }],
        liveness: Some(Liveness {
            steps: 10,
            turn: Some(5),
            all_tiles: curve(1_900_000),
            fullest_tile: 1,
            fullest_tile_curve: curve(1_299_976),
            bands: vec![
                Band {
                    layer: named("0"),
                    from: 0,
                    to: 4,
                },
                Band {
                    layer: named("2"),
                    from: 5,
                    to: 8,
                },
            ],
            peak_variables: Some(variables(1, 1_299_976)),
        }),
        live_steps: Some(live_steps()),
        sweep: Some(sweep(limit)),
        what_if: Some(what_if()),
        step: Some(step()),
        plan: Some(plan()),
        execution: Some(execution()),
        warnings: vec!["only 1 of 9 operations got a layer".into()],
        contradictions: Vec::new(),
    }
}

fn tile_map() -> TileMap {
    TileMap {
        categories: vec![TileCategory {
            name: "variable".into(),
            bytes: vec![600_000, 1_200_000],
            overlapped: vec![0, 300_000],
        }],
        left_out: 1,
        variables: Some(TileVariables {
            most: 10,
            tiles: vec![1, 0],
            kinds: vec![VariableKind {
                name: "weights#0".into(),
                category: "variable".into(),
                always_live: true,
            }],
            largest: vec![vec![(0, 2000)], vec![(0, 1000)]],
        }),
    }
}

fn provenance() -> Provenance {
    Provenance {
        popliner: "0.0.0".into(),
        arguments: vec!["profile.pop".into(), "--solve".into()],
        files: Files {
            profile: "profile.pop".into(),
            debug: Some("debug.cbor".into()),
            saved_model: false,
        },
        memory_model: "full".into(),
        layer_name_regex: Some(crate::model::DEFAULT_LAYER_REGEX.into()),
        target: TargetFacts {
            architecture: "ipu2".into(),
            tiles: 2,
            bytes_per_tile: 638_976,
            clock_hz: Some(1_330_000_000),
        },
        poplar: Some("3.3.0".into()),
        compiled: Some("2023-05-01 12:00:00".into()),
        options: Some(vec![BuildOption {
            of: "compilation".into(),
            name: "opt.level".into(),
            value: "3".into(),
        }]),
        framework: Some(serde_json::json!({"name": "PopART", "nested": {"list": [1, 2]}})),
        app: None,
    }
}

fn proof() -> Proof {
    Proof {
        objective: "peak".into(),
        optimal: true,
        objectives: vec![ProvenObjective {
            objective: "lowest memory on the fullest tile".into(),
            integer_program: "700024".into(),
            dynamic_program: "700024".into(),
        }],
        bottlenecks: vec![ProvenBottleneck {
            objective: "lowest memory on the fullest tile".into(),
            below: "600024".into(),
            stages_needed: Some(3),
        }],
    }
}

fn refusal(limit: u64) -> Refusal {
    let name = |name: &str| Some(name.to_string());
    let range = |layers: LayerNames, tile, bytes| OverLimit {
        layers,
        tile,
        step: Some(3),
        bytes,
    };
    Refusal {
        reason: RefusalReason::TooFewIpus,
        limit,
        ranges: vec![
            range(vec![None, name("0"), name("1")], 0, limit + 1),
            range(vec![name("1"), name("2")], 1, 700_024),
        ],
        cuts_after: vec![name("0")],
        stages_needed: Some(3),
        smallest_limit: Some(700_024),
        smallest_tile_memory: Some(701_024),
        fewest_ipus: Some(3),
        kept_together: vec!["weight wte (64 bytes) of 0 and 1".into()],
        relaxations: vec![RelaxationFacts {
            constraints: vec!["--pin 1=0".into()],
            weights: vec!["wte".into()],
            stages: vec![
                vec![None, name("0")],
                vec![name("1"), name("2"), name("Out")],
            ],
        }],
        advice: None,
    }
}

fn given() -> GivenSplit {
    GivenSplit {
        broken_constraints: vec!["--pin 1=0".into()],
        best_fits: false,
        best_stages: vec![
            vec![None, Some("0".into()), Some("1".into())],
            vec![Some("2".into()), Some("Out".into())],
        ],
        best_fullest_tile_bytes: 700_024,
        best_cut_bytes: 1024,
        best_slowest_stage_cycles: Some(590),
    }
}

fn sweep(limit: u64) -> Sweep {
    let row = |ipus: u32, bytes: u64| SweepRow {
        ipus,
        fits: bytes <= limit,
        fullest_tile_bytes: bytes,
        free: limit as i64 - bytes as i64,
        cut_bytes: 4096 * u64::from(ipus - 1),
        slowest_stage_cycles: Some(1000 / u64::from(ipus)),
        step_cycles: Some(5000 / u64::from(ipus)),
        stages: vec![vec![None, Some("0".into())]],
        hint: (ipus == 4).then(|| "one machine".into()),
    };
    Sweep {
        limit,
        rows: vec![
            row(1, 1_300_000),
            row(2, 700_024),
            row(3, 500_000),
            row(4, 500_000),
        ],
    }
}

/// The ranges of 5 positions, which need 100,000 bytes each, and 1,000 for each
/// stage after them.
fn what_if() -> WhatIf {
    let bytes_of = |start: u32, end: u32, after: usize| {
        Some(100_000 * u64::from(end - start) + 1000 * after as u64)
    };
    let best = |ipus, ends: &[u32]| BestSplit {
        ipus,
        fits: ipus > 1,
        ends: ends.to_vec(),
    };
    let without_numbers = WhatIf {
        max_stages: 4,
        by_stages_after: true,
        best: vec![best(1, &[5]), best(2, &[3, 5])],
        constraints: vec![CheckedConstraint {
            name: "--pin 1=0".into(),
            rule: crate::solve::Rule::Pin {
                position: 2,
                ipu: 0,
            },
        }],
        arguments: vec!["profile.pop".into()],
        ..WhatIf::default()
    };
    let cut_bytes_of = |at: u32| Some(10 * u64::from(at));
    let all: Vec<u32> = (0..=5).collect();
    let what_if = without_numbers.between(&all, &[5], usize::MAX, bytes_of, cut_bytes_of);
    what_if.unwrap()
}

/// Of two variables, one of which is live at one of three steps.
fn live_steps() -> LiveSteps {
    let named = |name: &str| Some(name.to_string());
    let (always, moving) = (649_988, 649_988);
    let zeros = || vec![0; 3];
    let at = |bytes: u64| vec![0, bytes, 0];
    let layer = |(name, bytes)| LayerAtSteps { name, bytes };
    let category = |(name, bytes): (&str, _)| CategoryAtSteps {
        name: name.into(),
        bytes,
    };
    let variable = |name: &str, category: &str, layers: &[&str], live| VariableAtSteps {
        name: name.into(),
        category: category.into(),
        bytes: always,
        layers: layers.iter().map(|name| named(name)).collect(),
        is_always_live: live == (0, 5),
        live: vec![live],
    };
    LiveSteps {
        tile: 1,
        steps: vec![0, 3, 5],
        programs: ["OnTileExecute fwd", "DoExchange", "DoExchange"]
            .map(String::from)
            .into(),
        operations: vec![named("0/MatMul"), None, named("0/MatMul")],
        counts: vec![1, 2, 1],
        bytes: vec![always, always + moving, always],
        not_always_live: at(950_000),
        categories: vec![
            category(("variable", vec![always; 3])),
            category(("message", at(moving))),
        ],
        layers: [
            (None, zeros()),
            (named("0"), vec![always, always + moving, always]),
            (named("1"), at(moving)),
            (named("2"), zeros()),
            (named("Out"), zeros()),
        ]
        .map(layer)
        .into(),
        in_every_stage: zeros(),
        variables: vec![
            variable("weights#0", "variable", &["0"], (0, 5)),
            variable("activations#1", "message", &["0", "1"], (3, 3)),
        ],
        always_live: always,
        others: vec![TileAtSteps {
            tile: 0,
            counts: vec![1; 3],
            bytes: vec![always; 3],
            always_live: always,
            variables: vec![variable("weights#0", "variable", &["0"], (0, 5))],
        }],
    }
}

fn plan() -> PlanFacts {
    let row = |ipus: u32, cycles| PlanRow {
        fullest_stage: 0,
        slowest_stage: Some(1),
        ipus,
        replicas: 4 / ipus,
        schedule: Schedule::Popart,
        recompute: Recompute::Stage,
        state: StatePlace::OnChip,
        streamed_bytes: None,
        lacks_time: false,
        fullest_tile_bytes: 400_000 / u64::from(ipus),
        limit: 638_976,
        free: 38_976,
        cycles: Some(cycles),
        micro_batches: Some(7),
        milliseconds: Some(1.5),
        efficiency: Some(0.75),
        samples_per_second: None,
        is_within: true,
        is_shortest: true,
        stages: vec![vec![None, Some("0".into())], vec![Some("Out".into())]],
        ends: vec![2, 5],
        command: "popliner profile.pop --num-ipus=2".into(),
    };
    PlanFacts {
        max_ipus: 4,
        ipus_tried: vec![1, 2, 4],
        pipelines_tried: vec![Pipeline {
            schedule: Schedule::Popart,
            recompute: Recompute::Stage,
            ..Pipeline::default()
        }],
        rows: vec![row(2, 1000), row(1, 3000)],
    }
}

fn step() -> StepFacts {
    StepFacts {
        micro_batches: 3,
        micro_batches_by_default: true,
        micro_batch: Some(8),
        replicas: 2,
        cycles: 3000,
        steady_cycles: 590,
        ramp_cycles: 830,
        update_cycles: 100,
        copy_cycles: Some(300),
        streamed_bytes: None,
        streaming_is_counted: None,
        slowest_stage: 1,
        efficiency: 0.59,
        milliseconds: Some(0.003),
        samples_per_second: Some(16_000_000.0),
        max_milliseconds: Some(0.002),
        is_within: false,
        at_least_cycles: Some(2900),
    }
}

fn execution() -> Execution {
    let layer = |name: Option<&str>, cycles, exchange| LayerCycles {
        name: name.map(String::from),
        cycles,
        milliseconds: None,
        exchange: Some(exchange),
        passes: Some(PassCycles {
            forward: cycles - cycles / 4,
            backward: cycles / 4,
            ..PassCycles::default()
        }),
    };
    let stage = |stage, cycles, exchange| StageCycles {
        stage,
        cycles,
        micro_batch_cycles: Some(cycles + cycles / 2),
        micro_batch_milliseconds: None,
        exchange: Some(exchange),
        passes: Some(PassCycles {
            forward: cycles / 2,
            recomputed: cycles - cycles / 2,
            ..PassCycles::default()
        }),
    };
    Execution {
        source: ExecutionSource::CompileTimeEstimates,
        total: Some(1033),
        layers: vec![
            layer(None, 10, 10),
            layer(Some("0"), 400, 100),
            layer(Some("1"), 0, 0),
            layer(Some("2"), 580, 0),
            layer(Some("Out"), 10, 4),
        ],
        stages: vec![stage(0, 410, 110), stage(1, 590, 4)],
        unplaced: Some(30),
        unplaced_exchange: Some(20),
        other: Some(3),
    }
}

/// The report with every text of it replaced, but for those of few values.
pub(super) fn hostile(name: &str) -> Report {
    let mut value = serde_json::to_value(report()).unwrap();
    replace(&mut value, name);
    value["format"] = "popliner-report".into();
    value["pseudo_layers"] = "in-and-out".into();
    value["execution"]["source"] = "executed-steps".into();
    value["what_if"]["constraints"][0]["rule"] = "pin".into();
    value["refusal"]["reason"] = "too-few-ipus".into();
    let pipelines = [
        "/pipeline",
        "/pipeline/alternatives/0",
        "/plan/pipelines_tried/0",
        "/plan/rows/0",
        "/plan/rows/1",
    ];
    for pipeline in pipelines {
        let pipeline = value.pointer_mut(pipeline).unwrap();
        pipeline["schedule"] = "popart".into();
        pipeline["recompute"] = "stage".into();
        pipeline["state"] = "on-chip".into();
    }
    value["plan"]["pipelines_tried"][0]["accumulators"] = "on-chip".into();
    value["plan"]["pipelines_tried"][0]["stash"] = "on-chip".into();
    value["pipeline"]["accumulator"] = "as-weight".into();
    value["plan"]["pipelines_tried"][0]["accumulator"] = "as-weight".into();
    value["pipeline"]["framework"] = "popart".into();
    serde_json::from_value(value).unwrap()
}

fn replace(value: &mut serde_json::Value, name: &str) {
    use serde_json::Value;
    match value {
        Value::String(text) => *text = name.into(),
        Value::Array(list) => list.iter_mut().for_each(|value| replace(value, name)),
        Value::Object(fields) => fields.values_mut().for_each(|value| replace(value, name)),
        _ => {}
    }
}

/// Tiles of each IPU of [`compiled`].
const TILES: u32 = 4;

/// Bytes that tiles of [`compiled`] may take, by IPU.
const LIMITS: [u64; 3] = [638_976, 630_000, 620_000];

/// Bytes in use on each tile of [`compiled`].
const TOTALS: [u64; 12] = [
    400_000, 600_500, 500_000, 300_000, // IPU 0
    610_000, 450_000, 640_500, 620_000, // IPU 1
    100_000, 350_000, 200_000, 550_400, // IPU 2
];

/// The fullest tile of each IPU.
const FULLEST: [u32; 3] = [1, 6, 11];

/// By what they hold, in the order of [`TileParts::bytes`].
const RECORDED: [[u64; 10]; 3] = [
    [
        300_000, 90_000, 50_000, 60_000, 30_000, 40_000, 20_000, 6_000, 4_000, 500,
    ],
    [
        310_100, 95_200, 52_300, 65_400, 31_500, 47_600, 22_700, 7_800, 5_900, 2_000,
    ],
    [
        260_010, 10_020, 41_030, 70_040, 32_050, 61_060, 34_070, 27_080, 13_090, 1_950,
    ],
];

/// A report on a compilation with all that it can have: three IPUs, the second over
/// its limit, beside a prediction with the same cuts. All parts add up.
pub(crate) fn compiled() -> Report {
    let ipus: Vec<IpuFit> = (0..3).map(compiled_ipu).collect();
    let mut provenance = provenance();
    provenance.arguments = ["profile.pop", "--fit", "--against", "predicted.json"]
        .map(String::from)
        .to_vec();
    provenance.target.tiles = 3 * TILES;
    let memory = compiled_memory(&ipus);
    Report {
        fit: Some(Fit {
            fits: false,
            limit: LIMITS[0],
            limits: Some(LIMITS.to_vec()),
            tiles_per_ipu: TILES,
            replicas: 2,
            listed_replicas: 1,
            variables: Some(1234),
            has_names: true,
            steps: Some(10),
            against: Some(compared(&ipus)),
            ipus,
        }),
        warnings: report().warnings,
        ..Report::of_memory(memory, provenance)
    }
}

fn tile_parts(bytes: [u64; 10]) -> TileParts {
    let [variables, stash, accumulators, code @ .., gaps] = bytes;
    TileParts {
        variables,
        stash,
        accumulators,
        vertex_code: code[0],
        vertex_state: code[1],
        exchange_code: code[2],
        control_code: code[3],
        host_exchange_code: code[4],
        global_exchange_code: code[5],
        gaps,
    }
}

fn with_gaps(tile: u32) -> u64 {
    TOTALS[tile as usize] + 300 + 10 * u64::from(tile)
}

fn always_live(tile: u32) -> u64 {
    50_000 + 11 * u64::from(tile)
}

fn compiled_ipu(ipu: u32) -> IpuFit {
    let place = ipu as usize;
    let totals = &TOTALS[place * TILES as usize..][..TILES as usize];
    let layers = [
        vec![Some("0".to_string()), Some("1".to_string())],
        vec![Some("2".to_string())],
        vec![Some("3".to_string())],
    ];
    let fullest_tile = compiled_tile(ipu);
    let offset = u64::from(ipu);
    IpuFit {
        ipu,
        fits: fullest_tile.free >= 0,
        layers: Some(layers[place].clone()),
        total: totals.iter().sum(),
        tiles_over: u32::from(fullest_tile.free < 0),
        overflowed: fullest_tile.overflowed,
        tiles: Fullness::of(totals.iter().copied(), LIMITS[place]),
        categories: compiled_categories(ipu),
        named: Some(NamedBytes {
            stashed: 700_001 + offset,
            restored: 600_011 + offset,
            accumulators: 500_021 + offset,
            received: 400_031 + offset,
        }),
        curve: Some(compiled_curve(ipu)),
        cycles: Some(90_000_000 - 7_000_000 * offset),
        fullest_tile,
    }
}

fn compiled_tile(ipu: u32) -> RecordedTileFacts {
    let (place, tile) = (ipu as usize, FULLEST[ipu as usize]);
    let bytes = TOTALS[tile as usize];
    RecordedTileFacts {
        tile,
        tile_of_ipu: tile % TILES,
        bytes,
        limit: LIMITS[place],
        free: LIMITS[place] as i64 - bytes as i64,
        with_gaps: Some(with_gaps(tile)),
        overflowed: with_gaps(tile).saturating_sub(638_976),
        always_live: always_live(tile),
        not_always_live: bytes - always_live(tile),
        peak_step: Some(3 + ipu),
        parts: tile_parts(RECORDED[place]),
    }
}

/// A category that all IPUs have, one that the last has alone, and one that none has.
fn compiled_categories(ipu: u32) -> Vec<CategoryBytes> {
    let parts = tile_parts(RECORDED[ipu as usize]);
    let category = |name: &str, all_tiles, fullest_tile| CategoryBytes {
        name: name.into(),
        all_tiles,
        fullest_tile: Some(fullest_tile),
    };
    let code = if ipu == 2 { parts.vertex_code } else { 0 };
    vec![
        category("variable", 3 * parts.variables, parts.variables),
        category("vertexCode", 2 * code, code),
        category("instrumentationResults", 0, 0),
    ]
}

fn compiled_curve(ipu: u32) -> Curve {
    let always_live = (ipu * TILES..(ipu + 1) * TILES).map(always_live).sum();
    let highest = 1_300_000 - 100_000 * u64::from(ipu);
    Curve {
        first_step: 0,
        last_step: 9,
        fixed: 0,
        always_live,
        peak: Peak {
            step: 3 + ipu,
            bytes: always_live + highest,
        },
        steps: vec![0, 3 + ipu, 7],
        bytes: vec![1000, highest, 77],
        thinned: false,
    }
}

fn compiled_memory(ipus: &[IpuFit]) -> RecordedMemory {
    let category = |place: usize| CategoryBytes {
        name: ipus[0].categories[place].name.clone(),
        all_tiles: ipus.iter().map(|ipu| ipu.categories[place].all_tiles).sum(),
        fullest_tile: ipus[1].categories[place].fullest_tile,
    };
    let tiles = 0..TOTALS.len() as u32;
    let others = |tile: u32| TOTALS[tile as usize] - always_live(tile);
    RecordedMemory {
        limit: LIMITS[0],
        tiles: Some(TileTotals {
            fullest: FULLEST[1],
            total: TOTALS.to_vec(),
            with_gaps: Some(tiles.clone().map(with_gaps).collect()),
            always_live: tiles.clone().map(always_live).collect(),
            not_always_live: tiles.map(others).collect(),
        }),
        tile_map: Some(TileMap {
            categories: vec![TileCategory {
                name: ipus[0].categories[0].name.clone(),
                bytes: TOTALS.map(|total| total / 2).to_vec(),
                overlapped: Vec::new(),
            }],
            ..TileMap::default()
        }),
        categories: (0..3).map(category).collect(),
        coverage: None,
    }
}

/// The prediction for [`compiled`]: a stash, code and what was learnt are off.
fn compared(ipus: &[IpuFit]) -> Against {
    let mut predicted = RECORDED;
    predicted[0][0] -= 1_000;
    predicted[0][1] -= 2_000;
    predicted[1][1] += 3_800;
    predicted[1][5] -= 7_500;
    predicted[2][3] += 1_500;
    let learnt = [1_000, 0, -200];
    let totals = [1_790_100, 2_333_300, 1_199_000];
    let stage = |ipu: &IpuFit| {
        let place = ipu.ipu as usize;
        let (tile, parts) = (&ipu.fullest_tile, tile_parts(predicted[place]));
        let predicted = parts.total().saturating_add_signed(learnt[place]);
        StageAgainst {
            stage: ipu.ipu,
            ipu: ipu.ipu,
            layers: ipu.layers.clone().unwrap_or_default(),
            predicted,
            learnt: learnt[place],
            recorded: tile.bytes,
            difference: tile.bytes as i64 - predicted as i64,
            free: tile.free,
            predicted_parts: parts,
            recorded_parts: tile.parts,
            predicted_total: totals[place],
            recorded_total: ipu.total,
            total_difference: ipu.total as i64 - totals[place] as i64,
        }
    };
    Against {
        profile: "one-ipu/profile.pop".into(),
        matched_by: MatchedBy::Layers,
        predicted_fits: true,
        predicted_stages: 3,
        cut_elsewhere: None,
        stages: ipus.iter().map(stage).collect(),
    }
}

/// [`compiled`] with every text of it replaced, but for those of few values.
pub(super) fn hostile_compiled(name: &str) -> Report {
    let mut value = serde_json::to_value(compiled()).unwrap();
    replace(&mut value, name);
    value["format"] = "popliner-report".into();
    value["pseudo_layers"] = "in-and-out".into();
    value["fit"]["against"]["matched_by"] = "layers".into();
    serde_json::from_value(value).unwrap()
}

#[test]
fn all_that_was_compiled_adds_up() {
    let report = compiled();
    let fit = report.fit.unwrap();
    let tiles = report.memory.tiles.unwrap();
    for ipu in &fit.ipus {
        let tile = &ipu.fullest_tile;
        assert_eq!(tile.parts.total(), tile.bytes, "IPU {}", ipu.ipu);
        assert_eq!(tiles.total[tile.tile as usize], tile.bytes);
        assert_eq!(ipu.overflowed > 0, !ipu.fits);
    }
    for stage in fit.against.unwrap().stages {
        let predicted = stage.predicted_parts.total();
        assert_eq!(
            predicted.saturating_add_signed(stage.learnt),
            stage.predicted
        );
        assert_eq!(stage.recorded_parts.total(), stage.recorded);
    }
    let all: u64 = fit.ipus.iter().map(|ipu| ipu.total).sum();
    assert_eq!(all, tiles.total.iter().sum::<u64>());
}
