//! The layers that a layer regex matches, one by one, and the largest operations without a layer.

use super::table::{Column, Kind, Table, cells};
use crate::memory::{MemoryModel, Parts};
use crate::model::{Layering, Model, NO_LAYER, Operation, Placement};
use rustc_hash::FxHashSet;

/// Upper bound on operations without a layer in the list.
const MISSED_SHOWN: usize = 10;

const LAYERS: [Column; 7] = [
    Column::text("Layer"),
    Column::new("Operations", Kind::Count, ""),
    Column::new("Bytes", Kind::Bytes, ""),
    Column::new("First step", Kind::Count, ""),
    Column::new("Last step", Kind::Count, ""),
    Column::new("First operation", Kind::Name, ""),
    Column::new("Largest operation", Kind::Name, ""),
];

const MODULES: [Column; 5] = [
    Column::new("Module", Kind::Name, ""),
    Column::new("Operations", Kind::Count, ""),
    Column::new("Bytes", Kind::Bytes, ""),
    Column::new("Runs", Kind::Count, ""),
    Column::text("Layer"),
];

/// The operations, steps and bytes of one layer.
#[derive(Default)]
struct LayerRow {
    operations: usize,
    /// First and last step, both inclusive, of the layer's operations. Operation groups that other
    /// layers also run are ignored.
    steps: Option<(u32, u32)>,
    first: Option<usize>,
    /// The index and the bytes of the largest operation.
    largest: Option<(usize, u64)>,
}

/// Returns three tables: the layers, the modules of the model down to its layers, and the largest
/// operations without a layer.
pub fn layer_list(
    model: &Model,
    layering: &Layering,
    placement: &Placement,
    memory: &MemoryModel<'_>,
) -> [Table; 3] {
    let parts = memory.operation_groups();
    [
        layers(model, layering, memory, &parts),
        modules(model, layering),
        without_layer(model, layering, placement, &parts),
    ]
}

/// Makes the table of modules: one row for each module that is a layer or contains layers, indented
/// by depth.
fn modules(model: &Model, layering: &Layering) -> Table {
    let mut table = Table::new("modules", &MODULES);
    for row in layering.outline(model) {
        let indent = "  ".repeat(row.depth);
        let cells = cells![
            format!("{indent}{}", row.name),
            row.operations,
            row.bytes,
            row.runs,
            row.layer,
        ];
        table.row("", cells);
    }
    table
}

/// Makes the table of layers, in order: a layer's operations, its bytes as a stage of its own
/// summed over tiles, and its steps.
fn layers(model: &Model, layering: &Layering, memory: &MemoryModel<'_>, parts: &[Parts]) -> Table {
    let rows = rows(model, layering, parts);
    let name = |operation: usize| &*model.operations[operation].name;
    let alone = memory.single_layers();
    let mut table = Table::new("list-layers", &LAYERS);
    let layers = layering.names.iter().zip(rows).zip(&alone).skip(1);
    for ((layer, row), memory) in layers {
        let cells = cells![
            layer.as_str(),
            row.operations,
            memory.sums().total(),
            row.steps.map(|(first, _)| first),
            row.steps.map(|(_, last)| last),
            row.first.map(name),
            row.largest.map(|(operation, _)| name(operation)),
        ];
        table.row("", cells);
    }
    table
}

/// Collects the row of each layer, without names.
fn rows(model: &Model, layering: &Layering, parts: &[Parts]) -> Vec<LayerRow> {
    let shared = shared_groups(model, layering);
    let mut rows: Vec<LayerRow> = Vec::new();
    rows.resize_with(layering.len(), LayerRow::default);
    for (index, operation) in model.operations.iter().enumerate() {
        let row = &mut rows[layering.layers[index] as usize];
        let group = operation.group as usize;
        let bytes = parts[group].total();
        row.operations += 1;
        row.first = row.first.or(Some(index));
        if row.largest.is_none_or(|(_, largest)| largest < bytes) {
            row.largest = Some((index, bytes));
        }
        let window = model.operation_groups[group].window;
        if let Some((first, last)) = window.filter(|_| !shared[group]) {
            let (from, to) = row.steps.unwrap_or((first, last));
            row.steps = Some((from.min(first), to.max(last)));
        }
    }
    rows
}

/// For each operation group, do several layers run it?
fn shared_groups(model: &Model, layering: &Layering) -> Vec<bool> {
    let mut layer_of = vec![None; model.operation_groups.len()];
    let mut shared = vec![false; model.operation_groups.len()];
    for (operation, &layer) in model.operations.iter().zip(&layering.layers) {
        let group = operation.group as usize;
        shared[group] |= *layer_of[group].get_or_insert(layer) != layer;
    }
    shared
}

const MISSED: [Column; 5] = [
    Column::new("Without a layer", Kind::Name, ""),
    Column::text("Note"),
    Column::new("Bytes", Kind::Bytes, ""),
    Column::text("Counts in"),
    Column::text("By"),
];

/// Makes the table of the largest operations without a layer, one for each operation group, with
/// the positions that they are assigned to.
fn without_layer(
    model: &Model,
    layering: &Layering,
    placement: &Placement,
    parts: &[Parts],
) -> Table {
    let bytes = |operation: &Operation| parts[operation.group as usize].total();
    let mut seen = FxHashSet::default();
    let operations = model.operations.iter().enumerate();
    let mut missed: Vec<_> = operations
        .filter(|&(index, operation)| layering.layers[index] == NO_LAYER && !operation.is_tensor)
        .filter(|(_, operation)| seen.insert(operation.group) && bytes(operation) > 0)
        .collect();
    missed.sort_by_key(|(_, operation)| std::cmp::Reverse(bytes(operation)));
    let mut table = Table::new("without-layer", &MISSED);
    for (index, operation) in missed.into_iter().take(MISSED_SHOWN) {
        let note = layering.notes[index].to_string();
        let place = placement.operations.get(index);
        let cells = cells![
            &*operation.name,
            note,
            bytes(operation),
            super::breakdown::places(placement, index),
            place.map(|place| place.reason.to_string()),
        ];
        table.row("", cells);
    }
    table
}
