//! The tables that several forms show, each with all its columns: a form takes
//! those that it has room for. New columns come last, so that programs may count.

use super::table::{Cell, Column, Kind, Table, cells};
use super::{LayerMemory, Report, Stage, Sweep, SweepRow};
use crate::memory::Parts;
use crate::model::PseudoLayers;

/// The columns of the first parts of memory, in the order of [`Parts::bytes`].
const PARTS: [Column; 7] = [
    Column::new("Variables", Kind::Bytes, "/parts/variables"),
    Column::new("Vertex code", Kind::Bytes, "/parts/vertex_code"),
    Column::new("Vertex state", Kind::Bytes, "/parts/vertex_state"),
    Column::new("Exchange code", Kind::Bytes, "/parts/exchange_code"),
    Column::new("Control code", Kind::Bytes, "/parts/control_code"),
    Column::new("Overhead", Kind::Bytes, "/parts/overhead"),
    Column::new("Gaps", Kind::Bytes, "/parts/gaps"),
];

/// Those of the other parts, which a pipeline adds.
const PIPELINE_PARTS: [Column; 5] = [
    Column::new("Recomputed", Kind::Bytes, "/parts/recomputed"),
    Column::new("Stash", Kind::Bytes, "/parts/stash"),
    Column::new("Accumulators", Kind::Bytes, "/parts/accumulators"),
    Column::new("Waiting", Kind::Bytes, "/parts/waiting"),
    Column::new("Passing through", Kind::Bytes, "/parts/passing"),
];

/// What a pipeline adds, what was learnt, and cycles: shown to people where they are not
/// 0 everywhere.
pub(super) const ADDED: [&str; 9] = [
    "Pipeline stages after it",
    "Copies",
    "Recomputed",
    "Stash",
    "Accumulators",
    "Waiting",
    "Passing through",
    LEARNT,
    "Cycles",
];

/// The bytes that were learnt: shown to programs too where they are not 0
/// everywhere.
pub(super) const LEARNT: &str = "Learnt";

/// Before the parts.
const STAGES: [Column; 9] = [
    Column::new("Stage", Kind::Count, ""),
    Column::new("First layer", Kind::Layers, ""),
    Column::new("Last layer", Kind::Layers, ""),
    Column::new("Layers", Kind::Layers, ""),
    Column::text("Fits"),
    Column::new("Limit", Kind::Bytes, "/limit"),
    Column::new("Fullest tile", Kind::Count, "/tile"),
    Column::new("Bytes there", Kind::Bytes, "/bytes"),
    Column::new("Free there", Kind::Free, "/free"),
];

/// After the parts.
const MORE_OF_STAGES: [Column; 10] = [
    Column::new("Peak step", Kind::Count, "/peak_step"),
    Column::new("Median tile", Kind::Bytes, ""),
    Column::new("95th percentile tile", Kind::Bytes, ""),
    Column::new("All tiles", Kind::Bytes, ""),
    Column::new("Over the cut after it", Kind::Bytes, ""),
    Column::new("Doubled by that cut", Kind::Bytes, ""),
    Column::new("Cycles", Kind::Count, ""),
    Column::new("Of the limit", Kind::Share, ""),
    Column::new("Pipeline stages after it", Kind::Count, ""),
    Column::new("Copies", Kind::Count, ""),
];

/// A row for each stage; its parts are those on its fullest tile. No rows without
/// a split.
pub fn stages(report: &Report) -> Table {
    let learnt = [Column::new(LEARNT, Kind::Change, "")];
    let columns = [
        &STAGES[..],
        &PARTS,
        &MORE_OF_STAGES,
        &PIPELINE_PARTS,
        &learnt,
    ]
    .concat();
    let mut table = Table::of_layers("stages", &columns, report.pseudo_layers);
    for stage in report.split.iter().flat_map(|split| &split.stages) {
        let at = format!("/split/stages/{}/fullest_tile", stage.stage);
        table.row(at, stage_cells(stage, report));
    }
    table
}

fn stage_cells(stage: &Stage, report: &Report) -> Vec<Cell> {
    let full = &stage.fullest_tile;
    let mut cuts = report.cuts.iter();
    let cut = cuts.find(|cut| cut.after_stage == stage.stage);
    let mut cycles = report.execution.iter().flat_map(|own| &own.stages);
    let cycles = cycles.find(|own| own.stage == stage.stage);
    let mut cells = cells![
        stage.stage,
        Cell::Layer(stage.layer_from.clone()),
        Cell::Layer(stage.layer_to.clone()),
        Cell::Layers(stage.layers.clone()),
        !full.is_over(),
        full.limit,
        full.tile,
        full.bytes,
        full.free,
    ];
    let (of_layers, of_pipeline) = parts(&full.parts);
    cells.extend(of_layers);
    cells.extend(cells![
        full.peak_step,
        stage.tiles.median,
        stage.tiles.percentile_95,
        stage.total,
        cut.map(|cut| cut.bytes),
        cut.map(|cut| cut.duplicated),
        cycles.map(|own| own.micro_batch_cycles.unwrap_or(own.cycles)),
        Cell::Share(full.bytes, full.limit),
        stage.pipeline.as_ref().map(|own| own.depth),
        stage.pipeline.as_ref().map(|own| own.copies),
    ]);
    cells.extend(of_pipeline);
    cells.extend(cells![full.learnt]);
    cells
}

/// The parts of the layers themselves, and those that a pipeline adds.
fn parts(parts: &Parts) -> (Vec<Cell>, Vec<Cell>) {
    let mut of_layers: Vec<Cell> = parts.bytes().map(Cell::from).into();
    let of_pipeline = of_layers.split_off(PARTS.len());
    (of_layers, of_pipeline)
}

/// Before the parts.
const LAYERS: [Column; 2] = [
    Column::new("Layer", Kind::Layers, ""),
    Column::new("All tiles", Kind::Bytes, "/total"),
];

/// After the parts.
const MORE_OF_LAYERS: [Column; 5] = [
    Column::new("Fullest tile", Kind::Count, "/fullest_tile"),
    Column::new("Bytes there", Kind::Bytes, "/fullest_tile_bytes"),
    Column::new("Cycles", Kind::Count, ""),
    Column::new("Of the limit", Kind::Share, ""),
    Column::new("Stage", Kind::Count, ""),
];

/// A row for each position of the layer order as if it stood alone.
pub(super) fn layers(report: &Report) -> Table {
    let columns = [&LAYERS[..], &PARTS, &MORE_OF_LAYERS].concat();
    let mut table = Table::of_layers("layers", &columns, report.pseudo_layers);
    let cycles = report.execution.as_ref().map(|own| &own.layers);
    for (place, layer) in report.layers.iter().enumerate() {
        let LayerMemory { parts: own, .. } = layer;
        let cycles = cycles.and_then(|cycles| cycles.get(place));
        let mut cells = cells![Cell::Layer(layer.name.clone()), layer.total];
        cells.extend(parts(own).0);
        cells.extend(cells![
            layer.fullest_tile,
            layer.fullest_tile_bytes,
            cycles.map(|own| own.cycles),
            Cell::Share(layer.fullest_tile_bytes, report.memory.limit),
            report.stage_of(place),
        ]);
        table.row(format!("/layers/{place}"), cells);
    }
    table
}

const SWEEP: [Column; 11] = [
    Column::new("IPUs", Kind::Count, "/ipus"),
    Column::text("Fits"),
    Column::new("Fullest tile", Kind::Bytes, "/fullest_tile_bytes"),
    Column::new("Free there", Kind::Free, "/free"),
    Column::new("Over all cuts", Kind::Bytes, "/cut_bytes"),
    Column::new(
        "Cycles of the slowest stage",
        Kind::Count,
        "/slowest_stage_cycles",
    ),
    Column::new("Stages", Kind::Count, ""),
    Column::new("Layers of each stage", Kind::Layers, ""),
    Column::text("Note"),
    Column::new("Of the limit", Kind::Share, ""),
    Column::new("Cycles of a step", Kind::Count, "/step_cycles"),
];

/// One row for each number of IPUs. Where none fits, the row is about the split
/// that would need the least.
pub fn sweep(sweep: &Sweep, pseudo_layers: PseudoLayers) -> Table {
    let mut table = Table::of_layers("sweep", &SWEEP, pseudo_layers);
    for (place, row) in sweep.rows.iter().enumerate() {
        let SweepRow { stages, hint, .. } = row;
        let cells = cells![
            row.ipus,
            row.fits,
            row.fullest_tile_bytes,
            row.free,
            row.cut_bytes,
            row.slowest_stage_cycles,
            stages.len(),
            Cell::Stages(stages.clone()),
            hint.clone(),
            Cell::Share(row.fullest_tile_bytes, sweep.limit),
            row.step_cycles,
        ];
        table.row(format!("/sweep/rows/{place}"), cells);
    }
    table
}

const CUTS: [Column; 4] = [
    Column::text("Cut"),
    Column::text("Between the layers"),
    Column::new("Over it", Kind::Bytes, "/bytes"),
    Column::new("Doubled by it", Kind::Bytes, "/duplicated"),
];

/// A row for each cut.
pub(super) fn cuts(report: &Report) -> Table {
    let mut table = Table::new("cuts", &CUTS);
    for (place, cut) in report.cuts.iter().enumerate() {
        let sides = [&cut.layer_before, &cut.layer_after];
        let [before, after] = sides.map(|side| report.pseudo_layers.shown(side));
        let cells = cells![
            over(cut.after_stage),
            format!("{before} and {after}"),
            cut.bytes,
            cut.duplicated,
        ];
        table.row(format!("/cuts/{place}"), cells);
    }
    table
}

/// The cut after a stage.
pub(super) fn over(stage: u32) -> String {
    format!("IPU {stage} to {}", u64::from(stage) + 1)
}

impl Report {
    /// The stage that a position of the layer order is in.
    pub(super) fn stage_of(&self, position: usize) -> Option<u32> {
        let mut stages = self.split.iter().flat_map(|split| &split.stages);
        let position = u32::try_from(position).ok()?;
        let stage = stages.find(|stage| stage.positions.contains(&position))?;
        Some(stage.stage)
    }
}
