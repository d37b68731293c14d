//! Writes down the pass of each operation and the cycles of each place, from the plan itself and
//! not from the rows: what the analysis has to find again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::Context as _;
use serde::Serialize;

use super::cycles;
use super::model::Phase;
use super::places::Places;
use super::plan::Plan;

#[derive(Serialize)]
struct Planted {
    /// Cycles by position, if the profile has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles: Option<PlantedCycles>,
    /// By context of an operation that the framework made: `forward`, `backward`
    /// or `update`.
    passes: BTreeMap<u32, &'static str>,
}

/// Cycles of compute sets and exchanges.
#[derive(Serialize)]
struct PlantedCycles {
    /// `executed` or `estimated`.
    source: &'static str,
    runs: usize,
    /// By position (In, the layers, Out); those of several places in equal parts.
    positions: Vec<u64>,
    /// Those that the compiler made for no operation or for every IPU.
    nowhere: u64,
}

/// Writes what was planted of `plan` as JSON.
pub fn write(plan: &Plan, path: &Path) -> anyhow::Result<()> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    let planted = Planted {
        cycles: cycles_by_position(plan),
        passes: passes(plan),
    };
    serde_json::to_writer(BufWriter::new(file), &planted)
        .with_context(|| format!("cannot write {}", path.display()))
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
    let mut add = |owner: Option<(usize, Places)>, cycles: u64| {
        let places = owner.map(|(_, places)| places);
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
            cycles::by_owner(plan, Some(branch), true, &mut add);
        }
        (sums.source, sums.runs) = ("executed", cycles::RUNS.len());
    } else if !plan.settings.no_cycle_estimates {
        cycles::by_owner(plan, None, false, &mut add);
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
