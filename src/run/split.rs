//! From range costs to a split and its verdict.

use super::usage;
use crate::cli::{Options, Solver};
use crate::memory::{MemoryModel, RangeCosts};
use crate::messages::Messages;
use crate::model::{Layering, Model};
use crate::progress::{Progress, Unit};
use crate::report::{Layer, Memory, Split, Stage, layer_name};
use crate::solve::{Problem, greedy, solve};
use anyhow::Result;
use std::ops::Range;
use std::time::Instant;

/// Finds a split with the solver of `options`, whether it fits or not.
pub(super) fn split(
    options: &Options,
    model: &Model,
    layering: &Layering,
    memory: &MemoryModel<'_>,
    messages: Messages,
) -> Result<Split> {
    let start = Instant::now();
    let limit = limit(options, model)?;
    let costs = messages.while_showing(|progress| memory.range_costs_with(limit, progress));
    messages.detail(format_args!("range costs in {:.2?}", start.elapsed()));
    let stages = match options.solver {
        Solver::Ilp => messages.while_showing(|progress| {
            best_stages(memory, costs, options.num_ipus, limit, progress)
        })?,
        Solver::Greedy => greedy_stages(&costs, options.num_ipus, limit, messages),
    };
    messages.detail(format_args!("solved after {:.2?}", start.elapsed()));
    Ok(judged(
        memory,
        &layering.names,
        &stages,
        options.num_ipus,
        limit,
    ))
}

/// What a stage may take of each tile.
pub(super) fn limit(options: &Options, model: &Model) -> Result<u64> {
    let memory = options.mem_per_tile.unwrap_or(model.target.bytes_per_tile);
    let reserve = options.reserve.of(memory);
    let limit = memory.checked_sub(reserve).filter(|&limit| limit > 0);
    let nothing = || {
        usage(format!(
            "--reserve: {reserve} bytes leave nothing of {memory}"
        ))
    };
    limit.ok_or_else(nothing)
}

/// The stages of the best plan within the limit; without one, of the best
/// plan at all. The pseudo-layer goes with the first layer (section 6).
fn best_stages(
    memory: &MemoryModel<'_>,
    mut costs: RangeCosts,
    max_stages: usize,
    mut limit: u64,
    progress: &Progress,
) -> Result<Vec<Range<usize>>> {
    let cut_bytes = memory.between().cut_bytes();
    loop {
        let problem = Problem {
            costs: &costs.first_two_joined(),
            cut_bytes: &cut_bytes[1..],
            max_stages,
        };
        let solving = progress.begin("solving", Unit::Rows, 0);
        let solution = solve(&problem)?;
        drop(solving);
        if let Some(solution) = solution {
            let stages = solution.plan.stages().iter();
            return Ok(stages.map(with_pseudo_layer).collect());
        }
        // With no limit, all layers in one stage are a plan.
        limit = limit.saturating_mul(2);
        costs = memory.range_costs_with(limit, progress);
    }
}

/// From positions where the first two are joined to those of the layer order.
fn with_pseudo_layer(stage: &Range<usize>) -> Range<usize> {
    let start = if stage.start == 0 { 0 } else { stage.start + 1 };
    start..stage.end + 1
}

/// The stages of the original's search, with a word on what it settled on.
fn greedy_stages(
    costs: &RangeCosts,
    max_stages: usize,
    limit: u64,
    messages: Messages,
) -> Vec<Range<usize>> {
    let found = greedy(costs, limit, max_stages, 2);
    messages.summary(format_args!(
        "greedy: {} at {} of the memory of a tile and at least {} layers in a stage",
        if found.fits { "settled" } else { "gave up" },
        found.proportion,
        found.min_layers
    ));
    found.stages
}

fn judged(
    memory: &MemoryModel<'_>,
    names: &[String],
    stages: &[Range<usize>],
    max_stages: usize,
    limit: u64,
) -> Split {
    let weighed = memory.stages(stages);
    let stages = stages.iter().zip(&weighed);
    let stages: Vec<Stage> = stages
        .map(|(range, memory)| Stage::new(names, range, memory))
        .collect();
    let placed: usize = stages.iter().map(|stage| stage.layers.len()).sum();
    let mut split = Split {
        limit,
        max_stages,
        stages,
        unplaced: (placed..names.len())
            .map(|layer| layer_name(names, layer))
            .collect(),
        too_large: Vec::new(),
    };
    if !split.fits() {
        split.too_large = too_large(memory, names, limit);
    }
    split
}

/// The layers that are over the limit by themselves. The pseudo-layer never
/// stands alone, so it comes with the first layer.
fn too_large(memory: &MemoryModel<'_>, names: &[String], limit: u64) -> Vec<Layer> {
    let first = (0..names.len().min(2), 1);
    let others = (2..names.len()).map(|layer| (layer..layer + 1, layer));
    let (ranges, layers): (Vec<_>, Vec<_>) = [first].into_iter().chain(others).unzip();
    let weighed = layers.into_iter().zip(memory.stages(&ranges));
    weighed
        .filter(|(_, stage)| stage.max_tile_bytes() > limit)
        .map(|(layer, stage)| Layer {
            name: layer_name(names, layer),
            mem: Memory::of(&stage),
            max_tile: stage.max_tile(),
        })
        .collect()
}
