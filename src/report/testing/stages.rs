//! Stages, layers and the variables at their peaks.

use super::*;

pub(super) fn parts(variables: u64) -> Parts {
    Parts {
        variables,
        control_code: 24,
        ..Parts::default()
    }
}

pub(super) fn curve(bytes: u64) -> Curve {
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

pub(super) fn stage(
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

pub(super) fn variables(tile: u32, bytes: u64) -> PeakVariables {
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

pub(super) fn layer(name: Option<&str>, tile: u32, bytes: u64) -> LayerMemory {
    LayerMemory {
        name: name.map(String::from),
        total: bytes * 2,
        parts: parts(bytes * 2 - 24),
        fullest_tile: tile,
        fullest_tile_bytes: bytes,
        module: None,
    }
}
