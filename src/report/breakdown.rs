//! Tables of operations and layers, of totals, and of the bytes that layers share and send; the
//! layers that a regex matches, one by one, and the largest operations without a layer.

use super::table::table;
use super::{Cell, Table, join};
use crate::memory::{MemoryModel, Parts, StageMemory};
use crate::model::{EVERYWHERE, Layering, Model, NO_LAYER, Operation, Placement, Positions, Rules};
use crate::profile::RecordedTile;
use rustc_hash::FxHashSet;

/// Makes the table of operations, one row for each operation in the model's order. `parts` has the
/// memory of each operation group, by the group's index. By the classic rules ([`Rules`]) an
/// operation without a layer shows 0 bytes of variables. By the full rules a row also has the pass
/// of the operation, the layers, In or Out in which it counts, and why it counts there.
pub fn operations(
    model: &Model,
    layering: &Layering,
    placement: &Placement,
    parts: &[Parts],
) -> Table {
    let is_classic = placement.rules == Rules::Classic;
    let operations = model.operations.iter().enumerate();
    let table = table!("operation-breakdown", operations, |(index, operation)|
        let parts = &parts[operation.group as usize];
        let layer = layering.layers[index];
        let has_no_variables = is_classic && layer == NO_LAYER;
        let placed = placement.operations.get(index);
    {
        Text "Layer": if layer == NO_LAYER { "None" } else { &layering.names[layer as usize] },
        Text "Note": layering.notes[index].to_string(),
        Name "Full name": &*operation.name,
        Bytes "Vertex state": parts.vertex_state,
        Bytes "Vertex code": parts.vertex_code,
        Bytes "Exchange code": parts.exchange_code,
        Bytes "Control code": parts.control_code,
        Bytes "Variables": if has_no_variables { 0 } else { parts.variables },
        Layers "Counts in": places(placement, index),
        Text "By": placed.map(|operation| operation.reason.to_string()),
        Text "Pass": operation.pass.to_string(),
    });
    if is_classic {
        table.without(&["Counts in", "By", "Pass"])
    } else {
        table
    }
}

/// Returns the names of the positions of the layer order (In, the layers, Out) in which an
/// operation counts, with spaces between, or `every stage`. `operation` is an index in the model's
/// operations.
fn places(placement: &Placement, operation: usize) -> String {
    let placed = placement.operations.get(operation);
    if placed.is_some_and(|operation| operation.places == EVERYWHERE) {
        return "every stage".to_string();
    }
    let places = placement.places_of(operation).iter();
    join(
        places.map(|&place| placement.positions.name(place as usize)),
        " ",
    )
}

/// Makes the table of the bytes of layers, by what they hold: a row for each position of the layer
/// order (In, the layers, Out). `memory` has the memory of each as a stage of its own.
pub fn layers(positions: &Positions, memory: &[StageMemory]) -> Table {
    table!("layer-breakdown", memory.iter().enumerate(), |(position, memory)|
        let sums = memory.sums();
    {
        Text "Name": positions.name(position).to_string(),
        Bytes "Vertex state": sums.vertex_state,
        Bytes "Vertex code": sums.vertex_code,
        Bytes "Exchange code": sums.exchange_code,
        Bytes "Control code": sums.control_code,
        Bytes "Variables": sums.variables,
        Text "Total (MB)": megabytes(sums.total()),
    })
}

/// Formats bytes as millions of bytes with three decimals, rounded to the nearest.
fn megabytes(bytes: u64) -> String {
    let thousands = bytes / 1000 + u64::from(bytes % 1000 >= 500);
    format!("{}.{:03}", thousands / 1000, thousands % 1000)
}

/// Makes the table of total bytes: a row for the whole model as one stage, which needs `whole`
/// bytes over all tiles, and a row for each of `tiles` (number, and the bytes that the compiler
/// recorded).
pub fn totals(whole: u64, tiles: &[(u32, RecordedTile)]) -> Table {
    let rows = [None].into_iter().chain(tiles.iter().map(Some));
    table!("memory-totals", rows, |row| {
        Count "Tile": row.map_or("all, as one stage".into(), |(tile, _)| Cell::from(tile)),
        Bytes "Always live": row.map(|(_, recorded)| recorded.always_live),
        Bytes "Not always live": row.map(|(_, recorded)| recorded.not_always_live),
        Bytes "Total": row.map_or(whole, |(_, recorded)| recorded.total),
    })
}

/// Upper bound on rows in the table of operations without a layer.
const MISSED_SHOWN: usize = 10;

/// The operations of one layer, as a row of the list of layers shows them.
#[derive(Clone, Default)]
struct LayerRow {
    operations: usize,
    /// First and last liveness step, both inclusive, of the layer's operations; `None` if none has
    /// steps. Operations of an operation group that also has operations of other layers are
    /// ignored.
    steps: Option<(u32, u32)>,
    first: Option<usize>,
    /// The index of the layer's operation with the most bytes over all tiles, and these bytes;
    /// `None` before the first operation is counted.
    largest: Option<(usize, u64)>,
}

/// Makes three tables: the layers, the modules of the model from the outermost ones down to its
/// layers, and the largest operations without a layer.
pub fn layer_list(
    model: &Model,
    layering: &Layering,
    placement: &Placement,
    memory: &MemoryModel<'_>,
) -> [Table; 3] {
    let parts = memory.operation_groups();
    // One row for each module that is a layer or contains layers, indented by its depth in the
    // model.
    let modules = table!("modules",layering.tree(model).outline(), |row| {
        Name "Module": format!("{}{}", "  ".repeat(row.depth), row.name),
        Count "Operations": row.operations,
        Bytes "Bytes": row.bytes,
        Count "Runs": row.runs,
        Text "Layer": row.layer,
    });
    [
        listed_layers(model, layering, memory, &parts),
        modules,
        without_layer(model, layering, placement, &parts),
    ]
}

/// Makes the table of layers, in order: the operations of each layer, its bytes as a stage of its
/// own summed over tiles, and its first and last step ([`LayerRow::steps`]). `parts` has the memory
/// of each operation group, by the group's index.
fn listed_layers(
    model: &Model,
    layering: &Layering,
    memory: &MemoryModel<'_>,
    parts: &[Parts],
) -> Table {
    let name = |operation: usize| &*model.operations[operation].name;
    let layers = layering
        .names
        .iter()
        .zip(rows(model, layering, parts))
        .zip(memory.single_layers())
        .skip(1);
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

/// Collects the operations, the steps and the largest operation of each layer, by the layer's index
/// in `layering`. `parts` has the memory of each operation group, by the group's index.
fn rows(model: &Model, layering: &Layering, parts: &[Parts]) -> Vec<LayerRow> {
    let shared = shared_groups(model, layering);
    let mut rows = vec![LayerRow::default(); layering.len()];
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

/// Returns, by the index of each operation group, whether its operations belong to several layers.
/// No layer ([`NO_LAYER`]) counts as a layer here.
fn shared_groups(model: &Model, layering: &Layering) -> Vec<bool> {
    let mut layer_of = vec![None; model.operation_groups.len()];
    let mut shared = vec![false; model.operation_groups.len()];
    for (operation, &layer) in model.operations.iter().zip(&layering.layers) {
        let group = operation.group as usize;
        shared[group] |= *layer_of[group].get_or_insert(layer) != layer;
    }
    shared
}

/// Makes the table of at most 10 operations without a layer, the largest first, one for each
/// operation group, with the layers, In or Out in which they count. `parts` has the memory of each
/// operation group, by the group's index.
fn without_layer(
    model: &Model,
    layering: &Layering,
    placement: &Placement,
    parts: &[Parts],
) -> Table {
    let bytes = |operation: &Operation| parts[operation.group as usize].total();
    let mut seen = FxHashSet::default();
    let mut missed: Vec<_> = model
        .operations
        .iter()
        .enumerate()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn megabytes_are_rounded_to_the_nearest_thousand_bytes() {
        let cases = [
            (0, "0.000"),
            (499, "0.000"),
            (500, "0.001"),
            (1_234_567, "1.235"),
        ];
        for (bytes, text) in cases {
            assert_eq!(megabytes(bytes), text);
        }
    }
}
