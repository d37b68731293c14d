//! Writes down where everything was planted, from the plan itself and not from
//! the rows: what a model of memory has to find again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use super::cycles;
use super::model::Phase;
use super::operation_truth::{Home, OperationTruth};
use super::place_truth::PlaceTruth;
use super::places::Places;
use super::plan::Plan;

#[derive(Serialize)]
struct Planted {
    tiles: u32,
    /// Cycles by position, if the profile has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles: Option<PlantedCycles>,
    /// By context of an operation that the framework made: `forward`, `backward`
    /// or `update`.
    passes: BTreeMap<u32, &'static str>,
    places: PlantedPlaces,
}

/// Positions are the places in their order: before the layers, each layer, after
/// the layers.
#[derive(Serialize)]
struct PlantedPlaces {
    /// Each contiguous range, if there are no more than [`MAX_POSITIONS`].
    ranges: Vec<PlaceRange>,
    /// Weights that several places share, with their positions.
    ties: Vec<(String, Vec<u32>)>,
    operations: Vec<PlacedOperation>,
}

#[derive(Serialize)]
struct PlacedOperation {
    context: u32,
    name: String,
    /// `places`, `global` (its parts are where the weights are), or `every_ipu`.
    home: &'static str,
    positions: Vec<u32>,
    bytes: u64,
}

/// Ranges are a square of the positions, and each is summed by itself.
const MAX_POSITIONS: u32 = 64;

/// Memory of the positions `from..=to` on an IPU of their own, by tile.
#[derive(Serialize)]
struct PlaceRange {
    from: u32,
    to: u32,
    bytes: Vec<u64>,
}

/// Cycles of compute sets and exchanges.
#[derive(Serialize)]
struct PlantedCycles {
    /// `executed` or `estimated`.
    source: &'static str,
    runs: usize,
    /// By position; those of several places in equal parts.
    positions: Vec<u64>,
    /// Those that the compiler made for no operation or for every IPU.
    nowhere: u64,
}

/// Writes what was planted of `plan` as JSON.
pub fn write(plan: &Plan, path: &Path) -> anyhow::Result<()> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    let planted = Planted {
        tiles: plan.settings.tiles,
        cycles: cycles_by_position(plan),
        passes: passes(plan),
        places: places(plan),
    };
    serde_json::to_writer(BufWriter::new(file), &planted)
        .with_context(|| format!("cannot write {}", path.display()))
}

fn places(plan: &Plan) -> PlantedPlaces {
    let truth = PlaceTruth::new(plan);
    let layers = truth.layers();
    let last = layers + 1;
    let ranges = (0..=last).flat_map(|from| (from..=last).map(move |to| (from, to)));
    let ranges = ranges.filter(|_| layers + 2 <= MAX_POSITIONS);
    let ranges = ranges.map(|(from, to)| PlaceRange {
        from,
        to,
        bytes: truth.bytes(Places::positions(layers, from..=to)),
    });
    let ties = truth.ties().iter();
    let operations = truth.operations().iter();
    PlantedPlaces {
        ranges: ranges.collect(),
        ties: ties
            .map(|(name, tied)| (name.clone(), tied.in_order(layers)))
            .collect(),
        operations: operations.map(|op| placed(op, layers)).collect(),
    }
}

fn placed(operation: &OperationTruth, layers: u32) -> PlacedOperation {
    let (home, places) = match operation.home {
        Home::Places(places) => ("places", places),
        Home::Global(places) => ("global", places),
        Home::EveryIpu => ("every_ipu", Places::EVERY),
    };
    PlacedOperation {
        context: operation.context,
        name: operation.name.clone(),
        home,
        positions: places.in_order(layers),
        bytes: operation.bytes,
    }
}

/// Follows the programs as they are executed: measured cycles of all runs, or
/// the estimates of one run of each branch.
fn cycles_by_position(plan: &Plan) -> Option<PlantedCycles> {
    let mut sums = PlantedCycles {
        source: "estimated",
        runs: 1,
        positions: vec![0; plan.settings.layers as usize + 2],
        nowhere: 0,
    };
    let mut add = |program, call, cycles: u64| {
        let places = cycles::owner(plan, program, call).map(|(_, places)| places);
        let places = places.filter(|&places| places != Places::EVERY);
        let positions = places.map_or(Vec::new(), |places| places.in_order(plan.settings.layers));
        let part = cycles.checked_div(positions.len() as u64).unwrap_or(0);
        sums.nowhere += cycles - part * positions.len() as u64;
        for position in positions {
            sums.positions[position as usize] += part;
        }
    };
    if plan.settings.execution {
        for branch in cycles::RUNS {
            cycles::run(plan, Some(branch), &mut |program, call| {
                add(program, call, cycles::of_program(plan, program, true));
            });
        }
        (sums.source, sums.runs) = ("executed", cycles::RUNS.len());
    } else if !plan.settings.no_cycle_estimates {
        cycles::run(plan, None, &mut |program, call| {
            add(program, call, cycles::of_program(plan, program, false));
        });
    } else {
        return None;
    }
    Some(sums)
}

fn passes(plan: &Plan) -> BTreeMap<u32, &'static str> {
    let ops = plan.model.ops.iter().zip(&plan.contexts.ops);
    let passes = ops.filter_map(|(op, contexts)| {
        let pass = match op.phase {
            Phase::Embedding | Phase::Forward | Phase::Head => "forward",
            Phase::Backward => "backward",
            Phase::Optimiser => "update",
            Phase::Compiler => return None,
        };
        Some((contexts.op, pass))
    });
    passes.collect()
}
