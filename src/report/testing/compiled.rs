//! A report on a compilation for several IPUs, for tests.

use super::*;

/// Number of tiles of each IPU in the compilation that tests use.
const TILES: u32 = 4;

/// Memory limit of each tile in bytes, for each IPU of the compilation that tests use.
const LIMITS: [u64; 3] = [638_976, 630_000, 620_000];

/// Bytes in use on each tile of the compilation that tests use.
const TOTALS: [u64; 12] = [
    400_000, 600_500, 500_000, 300_000, // IPU 0
    610_000, 450_000, 640_500, 620_000, // IPU 1
    100_000, 350_000, 200_000, 550_400, // IPU 2
];

/// The fullest tile of each IPU in the compilation that tests use.
const FULLEST: [u32; 3] = [1, 6, 11];

/// Recorded bytes on the fullest tile of each IPU in the test compilation, by kind of contents such
/// as variables or code, in the order of [`TileParts::named`].
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

/// Makes a report on a compilation with all sections: three IPUs, the second one over its limit,
/// and a prediction with the same cuts. The bytes of a tile are the sum over its kinds of contents.
pub(crate) fn compiled() -> Report {
    let ipus: Vec<IpuFit> = (0..3).map(compiled_ipu).collect();
    let mut provenance = provenance();
    provenance.arguments = ["profile.pop", "--fit", "--compare", "predicted.json"]
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
            comparison: Some(compared(&ipus)),
            ipus,
        }),
        warnings: report().warnings,
        version: VERSION,
        provenance,
        memory,
        ..Report::default()
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

/// Makes the recorded bytes of three categories of variables: one that all IPUs have, one that only
/// the last IPU has, and one that no IPU has.
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

/// Makes the comparison of the recorded IPUs (`ipus`) with their prediction. Predicted and recorded
/// bytes differ in variables, stash and code.
fn compared(ipus: &[IpuFit]) -> FitComparison {
    let mut predicted = RECORDED;
    predicted[0][0] -= 1_000;
    predicted[0][1] -= 2_000;
    predicted[1][1] += 3_800;
    predicted[1][5] -= 7_500;
    predicted[2][3] += 1_500;
    let totals = [1_790_100, 2_333_300, 1_199_000];
    let stage = |ipu: &IpuFit| {
        let place = ipu.ipu as usize;
        let (tile, parts) = (&ipu.fullest_tile, tile_parts(predicted[place]));
        let predicted = parts.total();
        StageComparison {
            stage: ipu.ipu,
            ipu: ipu.ipu,
            layers: ipu.layers.clone().unwrap_or_default(),
            predicted,
            recorded: tile.bytes,
            difference: tile.bytes as i64 - predicted as i64,
            reserve: tile.bytes.saturating_sub(predicted),
            free: tile.free,
            predicted_parts: parts,
            recorded_parts: tile.parts,
            predicted_total: totals[place],
            recorded_total: ipu.total,
            total_difference: ipu.total as i64 - totals[place] as i64,
        }
    };
    FitComparison {
        profile: "one-ipu/profile.pop".into(),
        matched_by: MatchedBy::Layers,
        predicted_fits: true,
        predicted_stages: 3,
        cut_elsewhere: None,
        reserve: Some(3_700),
        stages: ipus.iter().map(stage).collect(),
    }
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
    let comparison = fit.comparison.unwrap();
    let reserves = comparison.stages.iter().map(|stage| stage.reserve);
    assert_eq!(comparison.reserve, reserves.max());
    for stage in comparison.stages {
        assert_eq!(stage.predicted_parts.total(), stage.predicted);
        assert_eq!(stage.recorded_parts.total(), stage.recorded);
    }
    let all: u64 = fit.ipus.iter().map(|ipu| ipu.total).sum();
    assert_eq!(all, tiles.total.iter().sum::<u64>());
}
