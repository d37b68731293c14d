//! Tables of a model, its split, a sweep and a plan. Each table has all columns in the order of the
//! CSV form, and a list of the columns that people see. New columns are added at the end, so that
//! programs can keep referring to columns by index.

use super::{BestSplit, Cell, Report, Table, step, table};
use crate::{
    memory::StatePlace,
    wording::{grouped, join},
};
use std::cmp::Reverse;

/// Makes the table of stages: a row for each stage of the split, with the bytes of its fullest tile
/// by kind of contents. The table has no rows if the report has no split.
pub fn stages(report: &Report) -> Table {
    table!("stages", report.stages(), |stage, place|
        let tile = &stage.fullest_tile;
        let cut = report.cuts.get(place);
    {
        => []
        "Stage" Count (.stage),
        "First layer" Layers (Cell::Layer(stage.layer_from.clone())),
        "Last layer" Layers (Cell::Layer(stage.layer_to.clone())),
        "Layers" Layers (.layers),
        "Fits" Text (report.has_verdict().then_some(tile.free >= 0)),
        => [.fullest_tile]
        "Limit" Bytes (.limit),
        "Tile" Count (.tile),
        "Peak memory" Bytes (.bytes),
        "Free" Free (.free),
        => [.fullest_tile.parts]
        "Variables" Bytes (.variables),
        "Vertex code" Bytes (.vertex_code),
        "Vertex state" Bytes (.vertex_state),
        "Exchange code" Bytes (.exchange_code),
        "Control code" Bytes (.control_code),
        "Overhead" Bytes (.overhead),
        "Fragmentation" Bytes (.gaps),
        => []
        "Peak step" Count (.fullest_tile.peak_step),
        "Median tile" Bytes (.tiles.median),
        "95th percentile tile" Bytes (.tiles.percentile_95),
        "All tiles" Bytes (.total),
        "Over the cut after it" Bytes (cut.map(|cut| cut.bytes)),
        "Doubled by that cut" Bytes (cut.map(|cut| cut.duplicated)),
        NotZero "Cycles" Count (stage_cycles(report, place)),
        ForPeople "Of the limit" Share (Cell::Share(tile.bytes, tile.limit)),
        NotZero "Pipeline stages after it" Count (.pipeline?.depth),
        NotZero "Copies" Count (.pipeline?.copies),
        => [.fullest_tile.parts]
        OnePercent "Stash" Bytes (.stash),
        OnePercent "Accumulators" Bytes (.accumulators),
        OnePercent "Transfer buffers" Bytes (.waiting),
        OnePercent "Forwarded tensors" Bytes (.passing),
        NotZeroAnywhere "Optimizer state" Bytes (.state),
        ForPeople "Time" Count (stage_cycles(report, place).map(|cycles| time(cycles, report))),
        => [.fullest_tile.variable_kinds]
        ForPrograms "Weights" Bytes (.weights),
        ForPrograms "Gradients" Bytes (.gradients),
        ForPrograms "Optimizer state variables" Bytes (.optimizer_state),
        ForPrograms "Activations" Bytes (.activations),
        ForPrograms "Other variables" Bytes (.other),
        NotZeroAnywhere "AMP" Text (stage.amp.map(|amp| amp.to_string())),
    })
    .of(
        report,
        "/split/stages",
        "Stage, AMP, Layers, Peak memory, Of the limit, Time, Stash, Accumulators, Transfer \
         buffers, Forwarded tensors, Optimizer state, (Median tile)",
    )
    .with_bars()
}

fn stage_cycles(report: &Report, stage: usize) -> Option<u64> {
    let own = report.execution.as_ref()?.stages.get(stage)?;
    Some(own.micro_batch_cycles.unwrap_or(own.cycles))
}

/// Formats cycles as time in milliseconds, or as the number of cycles if the clock frequency is
/// unknown.
fn time(cycles: u64, report: &Report) -> String {
    match report.provenance.target.clock_hz {
        Some(clock) => format!(
            "{:.3} ms",
            step::nanoseconds(cycles.into(), clock) as f64 / 1e6
        ),
        None => format!("{} cycles", grouped(cycles)),
    }
}

/// Makes the table of layers: a row for each position of the layer order (In, the layers, Out),
/// with the memory that the position needs as a stage of its own.
pub fn layers(report: &Report) -> Table {
    table!("layers", &report.layers, |layer, place| {
        => []
        "Layer" Layers (Cell::Layer(layer.name.clone())),
        "All tiles" Bytes (.total),
        => [.parts]
        "Variables" Bytes (.variables),
        "Vertex code" Bytes (.vertex_code),
        "Vertex state" Bytes (.vertex_state),
        "Exchange code" Bytes (.exchange_code),
        "Control code" Bytes (.control_code),
        "Overhead" Bytes (.overhead),
        "Fragmentation" Bytes (.gaps),
        => []
        "Tile" Count (.fullest_tile),
        "Peak memory" Bytes (.fullest_tile_bytes),
        "Cycles" Count (report.execution.as_ref().and_then(|own| Some(own.layers.get(place)?.cycles))),
        ForPeople "Of the limit" Share (Cell::Share(layer.fullest_tile_bytes, report.memory.limit)),
        "Stage" Count (report.stages().iter().position(|stage| stage.positions.contains(&(place as u32)))),
    })
    .of(
        report,
        "/layers",
        "Layer, Peak memory, Of the limit, All tiles",
    )
}

/// Maximum number of rows in the table of the largest layers.
const LARGEST: usize = 5;

/// Makes the table of the layers that need the most bytes on their fullest tile, in descending
/// order of these bytes, with at most 5 rows.
pub fn largest_layers(report: &Report) -> Table {
    let table = layers(report);
    let mut layers: Vec<_> = (table.rows.into_iter().zip(&report.layers))
        .filter(|(_, layer)| layer.total > 0)
        .collect();
    layers.sort_by_key(|(_, layer)| Reverse(layer.fullest_tile_bytes));
    Table {
        rows: (layers.into_iter().take(LARGEST).map(|(row, _)| row)).collect(),
        ..table
    }
}

/// Makes the table of cuts: a row for each boundary between two stages, with the bytes that cross
/// the boundary.
pub fn cuts(report: &Report) -> Table {
    table!("cuts", &report.cuts, |cut| {
        "Cut" Text (format!("IPU {} to {}", i64::from(cut.stage) - 1, cut.stage)),
        "Before the layer" Layers (Cell::Layer(cut.layer_from.clone())),
        "Over it" Bytes (.bytes),
        "Doubled by it" Bytes (.duplicated),
    })
    .of(report, "/cuts", "Cut, Before the layer, Over it")
}

/// Makes the table of a sweep: a row for each number of IPUs, with the best split or, if no split
/// fits, the split that needs the least memory. The table has no rows if the report has no sweep.
pub fn sweep_table(report: &Report) -> Table {
    let rows = report.sweep.iter().flat_map(|sweep| &sweep.rows);
    let has_pipelines = report
        .sweep
        .as_ref()
        .is_some_and(|sweep| sweep.compares_pipelines);
    table!("sweep", rows, |row|
        let step = row.step.as_ref();
        let of_micro_batch = step.map(|step| step.cycles.div_ceil(step.micro_batches.max(1)));
    {
        "IPUs" Count (.ipus),
        "Fits" Text (report.has_verdict().then_some(row.fits)),
        "Peak memory" Bytes (.fullest_tile_bytes),
        "Free" Free (.free),
        "Over all cuts" Bytes (.cut_bytes),
        "Cycles of the slowest stage" Count (.slowest_stage_cycles),
        "Stages" Count (row.stages.len()),
        "Layers of each stage" Layers (.stages),
        "Note" Text (.hint),
        ForPeople "Of the limit" Share (Cell::Share(row.fullest_tile_bytes, report.memory.limit)),
        "Cycles of a step" Count (.step?.cycles),
        ForPeople "Step" Count (step.map(|step| time(step.cycles, report))),
        NotZeroAnywhere "Schedule" Text (has_pipelines.then(|| row.schedule.to_string())),
        NotZeroAnywhere "Recompute" Text (has_pipelines.then(|| row.recompute.to_string())),
        NotZeroAnywhere "Micro-batches" Count (.step?.micro_batches),
        NotZeroAnywhere "State" Text (elsewhere(row)),
        ForPeople "Micro-batch" Count (of_micro_batch.map(|cycles| time(cycles, report))),
        NotZeroAnywhere "AMP" Text (amps(row)),
    })
    .of(
        report,
        "/sweep/rows",
        "IPUs, Fits, State, AMP, Peak memory, Of the limit, (Over all cuts), (Step), Micro-batch, \
         Layers of each stage, Schedule, Recompute, (Micro-batches), (Note)",
    )
}

/// Makes the table of the recorded sizes of a micro-batch: a row for each size with its best split.
pub fn sizes(report: &Report) -> Table {
    table!("sizes", &report.sizes, |size| {
        "Samples" Count (.step?.micro_batch),
        "Fits" Text (.fits),
        "IPUs" Count (.ipus),
        "Peak memory" Bytes (.fullest_tile_bytes),
        "Free" Free (.free),
        "Micro-batches" Count (.step?.micro_batches),
        "Samples a second" Count (size.number(|step| step.samples_per_second, 1)),
    })
    .of(
        report,
        "/sizes",
        "Samples, Fits, IPUs, Peak memory, (Micro-batches), Samples a second",
    )
}

/// Makes the table of a plan: a row for each configuration that fits, in the plan's order. The
/// table has no rows if the report has no plan.
pub fn plan_table(report: &Report) -> Table {
    let rows = report.plan.iter().flat_map(|plan| &plan.rows);
    let has_sizes = !report.sizes.is_empty();
    table!("plan", rows, |row|
        let step = row.step.as_ref();
        let of_micro_batch = row.number(|step| Some(step.milliseconds? / step.micro_batches.max(1) as f64), 3);
    {
        "IPUs" Count (.ipus),
        "Replicas" Count (.replicas),
        "Schedule" Text (row.schedule.to_string()),
        "Recompute" Text (row.recompute.to_string()),
        "Peak memory" Bytes (.fullest_tile_bytes),
        "Of the limit" Share (Cell::Share(row.bytes_of_fullest_stage(), row.limit)),
        "Micro-batches" Count (.step?.micro_batches),
        "Cycles of a step" Count (.step?.cycles),
        "Step (ms)" Count (row.number(|step| step.milliseconds, 3)),
        "Efficiency" Count (row.number(|step| Some(step.efficiency), 3)),
        "Samples a second" Count (row.number(|step| step.samples_per_second, 1)),
        "Layers of each stage" Layers (.stages),
        "Command" Text (.command),
        ForPrograms "Optimizer state" Text (row.state.to_string()),
        "Streamed" Bytes (step.and_then(|step| step.streamed_bytes)),
        ForPeople "Micro-batch" Count (of_micro_batch.clone().map(|time| time + " ms")),
        ForPeople "State" Text (elsewhere(row)),
        NotZeroAnywhere "Samples" Count (step.filter(|_| has_sizes).and_then(|step| step.micro_batch)),
        ForPrograms "Micro-batch (ms)" Count (of_micro_batch),
        NotZeroAnywhere "AMP" Text (amps(row)),
    })
    .of(
        report,
        "/plan/rows",
        "IPUs, Samples, State, AMP, Schedule, Recompute, Peak memory, Micro-batch, Of the limit, \
         (Replicas), (Micro-batches), (Cycles of a step), (Step (ms)), (Efficiency), (Samples a \
         second), Layers of each stage, Streamed",
    )
}

/// Returns the available memory proportions of a split's stages as text; `None` unless the user
/// gave profiles of several proportions (`--amp`).
fn amps(row: &BestSplit) -> Option<String> {
    (!row.amps.is_empty()).then(|| join(&row.amps, " "))
}

/// Returns where a split keeps its optimizer state and, if replicas share the state, the number of
/// replicas. Returns `None` if each IPU has all of its state on the chip, as usual.
fn elsewhere(row: &BestSplit) -> Option<String> {
    match row.state {
        StatePlace::OnChip => None,
        state if state.is_sharded() => Some(format!("{state}, {} replicas", row.replicas)),
        state => Some(state.to_string()),
    }
}
