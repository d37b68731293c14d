//! A small report for tests of all output forms.

mod answers;
mod compiled;

pub(crate) use compiled::compiled;

use super::*;
use crate::{
    memory::{Parts, Pipeline, Recompute, Schedule, VariableKinds},
    message::Warning,
    model::{Framework, PassCycles, PseudoLayers, Recording},
};
use answers::*;
use std::ops::Range;

impl Table {
    /// Returns the text of the cells in each row of the table, as programs read them in CSV.
    pub(super) fn plain_rows(&self) -> Vec<Vec<String>> {
        let order = self.pseudo_layers;
        self.rows
            .iter()
            .map(|row| row.cells.iter().map(|cell| cell.plain(order)).collect())
            .collect()
    }
}

/// Makes the pipeline of a training run with the framework's default schedule.
fn pipeline() -> PipelineFacts {
    PipelineFacts {
        pipeline: Pipeline {
            schedule: Schedule::Popart,
            recompute: Recompute::Stage,
            ..Pipeline::default()
        },
        schedule_by_default: true,
        recompute_by_default: true,
        recording: Recording {
            framework: Framework::Popart,
            recomputes: true,
            ..Recording::default()
        },
        is_training: true,
        without_recomputation: Some(1_500_000),
        alternatives: vec![BestSplit {
            schedule: Schedule::Popart,
            recompute: Recompute::Layer,
            options: "--recompute layer".into(),
            fits: true,
            fullest_tile_bytes: 500_000,
            change: -800_024,
            stages: vec![vec![None, Some("0".into())], vec![Some("1".into())]],
            ..BestSplit::default()
        }],
        ..PipelineFacts::default()
    }
}

/// Makes a report with all sections: two stages, of which the second one exceeds its limit.
pub(crate) fn report() -> Report {
    let limit = 638_976;
    let named = |name: &str| Some(name.to_string());
    Report {
        fit: None,
        pipeline: Some(pipeline()),
        proof: Some(proof()),
        refusal: Some(refusal(limit)),
        given: Some(given()),
        constraints: vec!["--cut-before 1".into(), "--pin 1=0".into()],
        tied_weights: vec![WeightTie {
            weight: "wte".into(),
            bytes: 1024,
            layers: vec![named("0"), named("1")],
            stages: vec![0, 1],
            ..WeightTie::default()
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
        split: Some(Split {
            fewest_ipus: None,
            limits: Some(vec![limit, limit - 1000]),
            fits: false,
            limit,
            max_stages: 2,
            replicas: 1,
            is_given: false,
            starts: vec!["1".to_owned()],
            by_counts: None,
            modules: Vec::new(),
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
            stage: 1,
            layer_from: named("1"),
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
        sizes: Vec::new(),
        sweep: Some(sweep(limit)),
        what_if: Some(what_if()),
        step: Some(step()),
        plan: Some(plan()),
        execution: Some(execution()),
        warnings: vec![Warning::new("only 1 of 9 operations got a layer")],
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

/// Makes test data for an HTML page that draws three liveness steps. On the fullest tile, one
/// variable is always live, and another is live at a single step.
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
        variable: LiveVariable {
            name: name.into(),
            category: category.into(),
            bytes: always,
            layers: layers.iter().map(|name| named(name)).collect(),
        },
        is_always_live: live == (0, 5),
        live: vec![live],
    };
    let tile = |tile, at: &dyn Fn(u64) -> Vec<u64>| TileAtSteps {
        tile,
        counts: at(1).iter().map(|&count| count + 1).collect(),
        bytes: at(moving).iter().map(|&bytes| always + bytes).collect(),
        always_live: always,
        categories: vec![
            category(("variable", vec![always; 3])),
            category(("message", at(moving))),
        ],
        layers: [
            (None, zeros()),
            (
                named("0"),
                at(moving).iter().map(|&bytes| always + bytes).collect(),
            ),
            (named("1"), at(moving)),
            (named("2"), zeros()),
            (named("Out"), zeros()),
        ]
        .map(layer)
        .into(),
        variables: vec![variable("weights#0", "variable", &["0"], (0, 5))],
    };
    let mut fullest = tile(1, &at);
    let activations = variable("activations#1", "message", &["0", "1"], (3, 3));
    fullest.variables.push(activations);
    LiveSteps {
        steps: vec![0, 3, 5],
        programs: ["OnTileExecute fwd", "DoExchange", "DoExchange"]
            .map(String::from)
            .into(),
        operations: vec![named("0/MatMul"), None, named("0/MatMul")],
        not_always_live: at(950_000),
        fullest,
        others: vec![tile(0, &|_| zeros())],
    }
}

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
        amp: None,
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
            free: limit as i64 - bytes as i64 - 24,
            parts: parts(bytes),
            variable_kinds: VariableKinds {
                weights: bytes,
                ..VariableKinds::default()
            },
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
            stashed: vec![LiveVariable {
                name: "activation#0".into(),
                category: "variable".into(),
                bytes: 100,
                layers: vec![Some("0".into()), Some("1".into())],
            }],
            update: None,
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
        count: 3,
        bytes,
        largest: vec![VariableSum {
            variable: LiveVariable {
                name: "weights#".into(),
                category: "variable".into(),
                bytes: bytes - 1,
                layers: vec![Some("0".into())],
            },
            count: 2,
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
        module: None,
    }
}
