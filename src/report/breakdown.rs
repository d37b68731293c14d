//! The breakdowns of operations and layers, and the totals, as tables.

use super::Table;
use crate::memory::{Parts, StageMemory};
use crate::model::{
    EVERYWHERE, Layering, Model, NO_LAYER, Operation, OperationPlace, Placement, Positions,
};
use crate::profile::RecordedTile;

/// The name that the pseudo-layer has in tables.
const NO_NAME: &str = "None";

/// The names of all layers as tables show them.
pub fn layer_names(positions: &Positions) -> Vec<String> {
    let names = 0..positions.len();
    names
        .map(|place| positions.name(place).to_string())
        .collect()
}

/// One row for each operation, in order, by the classic rules. `bodies` is the
/// memory of each body; an operation without a layer shows no variables.
pub fn operations(model: &Model, layering: &Layering, bodies: &[Parts]) -> Table {
    let mut table = Table::new("operation-breakdown", &OPERATION_COLUMNS);
    for (index, operation) in model.operations.iter().enumerate() {
        let mut parts = bodies[operation.group as usize];
        if layering.layers[index] == NO_LAYER {
            parts.variables = 0;
        }
        table
            .rows
            .push(operation_row(operation, layering, index, &parts));
    }
    table
}

/// The same by the full rules, with the layer that each operation counts in.
pub fn assigned(
    model: &Model,
    layering: &Layering,
    placement: &Placement,
    bodies: &[Parts],
) -> Table {
    let mut table = Table::new("operation-breakdown", &OPERATION_COLUMNS);
    table.header.push("Counts in".to_string());
    table.header.push("By".to_string());
    for (index, operation) in model.operations.iter().enumerate() {
        let parts = &bodies[operation.group as usize];
        let mut row = operation_row(operation, layering, index, parts);
        let OperationPlace { places, reason } = placement.operations[index];
        row.push(match places {
            EVERYWHERE => "every stage".to_string(),
            _ => names_of(placement, index),
        });
        row.push(reason.to_string());
        table.rows.push(row);
    }
    table
}

/// The names of the positions that an operation counts in.
fn names_of(placement: &Placement, operation: usize) -> String {
    let places = placement.places_of(operation).iter();
    let names = places.map(|&place| placement.positions.name(place as usize).to_string());
    names.collect::<Vec<_>>().join(" ")
}

const OPERATION_COLUMNS: [&str; 8] = [
    "Layer",
    "Note",
    "Full name",
    "Vertex state",
    "Vertex code",
    "Exchange code",
    "Control code",
    "Variables",
];

fn operation_row(
    operation: &Operation,
    layering: &Layering,
    index: usize,
    parts: &Parts,
) -> Vec<String> {
    let layer = match layering.layers[index] {
        NO_LAYER => NO_NAME,
        layer => &layering.names[layer as usize],
    };
    let note = layering.notes[index].to_string();
    let mut row = vec![layer.to_string(), note, operation.name.to_string()];
    row.extend(cells(parts));
    row
}

/// One row for each layer, the pseudo-layer first.
pub fn layers(positions: &Positions, memory: &[StageMemory]) -> Table {
    let mut table = Table::new(
        "layer-breakdown",
        &[
            "Name",
            "Vertex state",
            "Vertex code",
            "Exchange code",
            "Control code",
            "Variables",
            "Total (MB)",
        ],
    );
    for (name, memory) in layer_names(positions).into_iter().zip(memory) {
        let sums = memory.sums();
        let mut row = vec![name];
        row.extend(cells(&sums));
        row.push(megabytes(sums.total()));
        table.rows.push(row);
    }
    table
}

fn cells(parts: &Parts) -> [String; 5] {
    [
        parts.vertex_state,
        parts.vertex_code,
        parts.exchange_code,
        parts.control_code,
        parts.variables,
    ]
    .map(|bytes| bytes.to_string())
}

/// Millions of bytes with three decimals, rounded to the nearest.
fn megabytes(bytes: u64) -> String {
    let thousands = bytes / 1000 + u64::from(bytes % 1000 >= 500);
    format!("{}.{:03}", thousands / 1000, thousands % 1000)
}

/// The whole model as one stage, then tiles as the compiler recorded them.
pub fn totals(whole: u64, tiles: &[(u32, RecordedTile)]) -> Table {
    let header = ["Tile", "Always live", "Not always live", "Total"];
    let mut table = Table::new("memory-totals", &header);
    let whole = ["all, as one stage", "", "", &whole.to_string()].map(String::from);
    table.rows.push(whole.to_vec());
    for (tile, recorded) in tiles {
        let cells = [
            u64::from(*tile),
            recorded.always_live,
            recorded.not_always_live,
            recorded.total,
        ];
        table.rows.push(cells.map(|cell| cell.to_string()).to_vec());
    }
    table
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
