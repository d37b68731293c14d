//! The layers that a layer regex matches, one by one, and the largest operations without a layer.

use super::breakdown::places;
use super::fields::table;
use super::table::Table;
use crate::memory::{MemoryModel, Parts};
use crate::model::{Layering, Model, NO_LAYER, Operation, Placement};
use rustc_hash::FxHashSet;

/// Upper bound on operations without a layer in the list.
const MISSED_SHOWN: usize = 10;

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
    table!("modules", layering.outline(model), |row| {
        Name "Module": format!("{}{}", "  ".repeat(row.depth), row.name),
        Count "Operations": row.operations,
        Bytes "Bytes": row.bytes,
        Count "Runs": row.runs,
        Text "Layer": row.layer,
    })
}

/// Makes the table of layers, in order: a layer's operations, its bytes as a stage of its own
/// summed over tiles, and its steps.
fn layers(model: &Model, layering: &Layering, memory: &MemoryModel<'_>, parts: &[Parts]) -> Table {
    let rows = rows(model, layering, parts);
    let name = |operation: usize| &*model.operations[operation].name;
    let alone = memory.single_layers();
    let layers = layering.names.iter().zip(rows).zip(&alone).skip(1);
    table!("list-layers", layers, |((layer, row), memory)| {
        Text "Layer": layer.as_str(),
        Count "Operations": row.operations,
        Bytes "Bytes": memory.sums().total(),
        Count "First step": row.steps.map(|(first, _)| first),
        Count "Last step": row.steps.map(|(_, last)| last),
        Name "First operation": row.first.map(name),
        Name "Largest operation": row.largest.map(|(operation, _)| name(operation)),
    })
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
    missed.truncate(MISSED_SHOWN);
    table!("without-layer", missed, |(index, operation)| {
        Name "Without a layer": &*operation.name,
        Text "Note": layering.notes[index].to_string(),
        Bytes "Bytes": bytes(operation),
        Text "Counts in": places(placement, index),
        Text "By": placement.operations.get(index).map(|place| place.reason.to_string()),
    })
}
