//! Makes the tables of `--operation-breakdown`, `--layer-breakdown`, `--memory-totals` and
//! `--list-layers`.

use super::{Cell, Table, table};
use crate::{
    memory::{MemoryModel, Parts, StageMemory},
    model::{EVERYWHERE, Layering, Model, NO_LAYER, Operation, Placement, Positions, Rules},
    profile::RecordedTile,
    wording::join,
};
use rustc_hash::FxHashSet;
use std::cmp::Reverse;

/// Makes the table of `--operation-breakdown`: one row for each operation, in the model's order.
/// `parts` has the memory of each operation group (operations that share code).
///
/// If memory is assigned to layers by the classic rules, which ignore the variables of operations
/// without a layer, the rows of these operations show 0 bytes of variables. If it is assigned by
/// the full rules, each row also has the pass of the operation, the positions (In, layers, Out)
/// that the operation is assigned to, and the rule by which it was assigned.
pub fn operations(
    model: &Model,
    layering: &Layering,
    placement: &Placement,
    parts: &[Parts],
) -> Table {
    let is_classic = placement.rules == Rules::Classic;
    let table = table!("operation-breakdown", model.operations.iter().enumerate(), |(index, operation)|
        let parts = &parts[operation.group as usize];
        let layer = layering.layers[index];
    {
        "Layer" Text (if layer == NO_LAYER { "None" } else { &layering.names[layer as usize] }),
        "Note" Text (layering.notes[index].to_string()),
        "Full name" Name (&*operation.name),
        "Vertex state" Bytes (parts.vertex_state),
        "Vertex code" Bytes (parts.vertex_code),
        "Exchange code" Bytes (parts.exchange_code),
        "Control code" Bytes (parts.control_code),
        "Variables" Bytes (if is_classic && layer == NO_LAYER { 0 } else { parts.variables }),
        "Counts in" Layers (places(placement, index)),
        "By" Text (placement.operations.get(index).map(|placed| placed.reason.to_string())),
        "Pass" Text (operation.pass.to_string()),
    });
    if is_classic {
        table.kept(|column, _| !matches!(&*column.name, "Counts in" | "By" | "Pass"))
    } else {
        table
    }
}

/// Returns the names of the positions (In, the layers, Out) that an operation is assigned to,
/// separated by spaces, or `every stage` for an operation that is needed everywhere. `operation` is
/// an index into the model's operations.
fn places(placement: &Placement, operation: usize) -> String {
    match placement.operations.get(operation) {
        Some(placed) if placed.places == EVERYWHERE => "every stage".to_string(),
        _ => join(
            placement
                .places_of(operation)
                .iter()
                .map(|&place| placement.positions.name(place as usize)),
            " ",
        ),
    }
}

/// Makes the table of the bytes of layers by kind of memory, such as code: one row for each
/// position of the layer order (In, the layers, Out). `memory` has the memory of each position as a
/// stage of its own.
pub fn layers(positions: &Positions, memory: &[StageMemory]) -> Table {
    table!("layer-breakdown", memory.iter().enumerate(), |(position, memory)|
        let sums = memory.sums();
    {
        "Name" Text (positions.name(position).to_string()),
        "Vertex state" Bytes (sums.vertex_state),
        "Vertex code" Bytes (sums.vertex_code),
        "Exchange code" Bytes (sums.exchange_code),
        "Control code" Bytes (sums.control_code),
        "Variables" Bytes (sums.variables),
        "Total (MB)" Text (megabytes(sums.total())),
    })
}

fn megabytes(bytes: u64) -> String {
    let thousands = bytes / 1000 + u64::from(bytes % 1000 >= 500);
    format!("{}.{:03}", thousands / 1000, thousands % 1000)
}

/// Makes the table of `--memory-totals`. The first row has `whole`, the bytes of the whole model as
/// one stage, summed over all tiles. Each other row has the memory that the compiler recorded for
/// one tile. `tiles` has the index and the record of each of these tiles.
pub fn totals(whole: u64, tiles: &[(u32, RecordedTile)]) -> Table {
    table!("memory-totals", [None].into_iter().chain(tiles.iter().map(Some)), |row| {
        "Tile" Count (row.map_or("all, as one stage".into(), |(tile, _)| Cell::from(tile))),
        "Always live" Bytes (row.map(|(_, recorded)| recorded.always_live)),
        "Not always live" Bytes (row.map(|(_, recorded)| recorded.not_always_live)),
        "Total" Bytes (row.map_or(whole, |(_, recorded)| recorded.total)),
    })
}

/// Upper bound on the rows of the table of the largest operations without a layer.
const MISSED_SHOWN: usize = 10;

/// Makes three tables: the layers, the modules of the model from the outermost ones down to its
/// layers, and the largest operations without a layer.
pub fn layer_list(
    model: &Model,
    layering: &Layering,
    placement: &Placement,
    memory: &MemoryModel<'_>,
) -> [Table; 3] {
    let parts = memory.operation_groups();
    [
        listed_layers(model, layering, memory, &parts),
        // Each row is a module that is a layer or contains layers. The name is indented by the
        // number of modules around the module.
        table!("modules", layering.tree(model).outline(), |row| {
            "Module" Name (format!("{}{}", "  ".repeat(row.depth), row.name)),
            "Operations" Count (row.operations),
            "Bytes" Bytes (row.bytes),
            "Runs" Count (row.runs),
            "Layer" Text (row.layer),
        }),
        without_layer(model, layering, placement, &parts),
    ]
}

/// Makes the table of layers, in order. A row shows the operations of a layer, the bytes of the
/// layer as a stage of its own, and the first and last liveness step of the operations, both
/// inclusive. The steps leave out operations whose code is shared with other layers. `parts` has
/// the memory of each operation group (operations that share code).
fn listed_layers(
    model: &Model,
    layering: &Layering,
    memory: &MemoryModel<'_>,
    parts: &[Parts],
) -> Table {
    let mut operations = vec![Vec::new(); layering.len()];
    for (operation, &layer) in model.operations.iter().zip(&layering.layers) {
        operations[layer as usize].push(operation);
    }
    let is_shared = shared_groups(model, layering);
    let name = |operation: &&Operation| operation.name.to_string();
    let layers = (layering.names.iter().zip(operations))
        .zip(memory.single_layers())
        .skip(1);
    table!("list-layers", layers, |((layer, own), memory)|
        let windows = own
            .iter()
            .map(|operation| operation.group as usize)
            .filter(|&group| !is_shared[group])
            .filter_map(|group| model.operation_groups[group].window);
    {
        "Layer" Text (layer.as_str()),
        "Operations" Count (own.len()),
        "Bytes" Bytes (memory.sums().total()),
        "First step" Count (windows.clone().map(|(first, _)| first).min()),
        "Last step" Count (windows.map(|(_, last)| last).max()),
        "First operation" Name (own.first().map(name)),
        "Largest operation" Name (own.iter().rev().max_by_key(|operation| parts[operation.group as usize].total()).map(name)),
    })
}

/// Returns one entry per operation group (operations that share code): whether its operations
/// belong to several layers. Having no layer ([`NO_LAYER`]) counts as one more layer.
fn shared_groups(model: &Model, layering: &Layering) -> Vec<bool> {
    let mut layer_of = vec![None; model.operation_groups.len()];
    let mut shared = vec![false; model.operation_groups.len()];
    for (operation, &layer) in model.operations.iter().zip(&layering.layers) {
        let group = operation.group as usize;
        shared[group] |= *layer_of[group].get_or_insert(layer) != layer;
    }
    shared
}

/// Makes the table of the largest operations without a layer: at most 10, the largest first, and
/// one per operation group, since the operations of a group share their memory. A row also shows
/// the positions (In, layers, Out) that the operation is assigned to.
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
    missed.sort_by_key(|(_, operation)| Reverse(bytes(operation)));
    missed.truncate(MISSED_SHOWN);
    table!("without-layer", missed, |(index, operation)| {
        "Without a layer" Name (&*operation.name),
        "Note" Text (layering.notes[index].to_string()),
        "Bytes" Bytes (bytes(operation)),
        "Counts in" Text (places(placement, index)),
        "By" Text (placement.operations.get(index).map(|place| place.reason.to_string())),
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
