//! Tables of operations and layers, of totals, and of the bytes that layers share and send.

use super::table::{Cell, Column, Kind, Table, cells};
use crate::memory::{Parts, StageMemory};
use crate::model::{EVERYWHERE, Layering, Model, NO_LAYER, Placement, Positions, Rules};
use crate::profile::RecordedTile;

/// Name in tables for operations without a layer.
const NO_NAME: &str = "None";

const OPERATIONS: [Column; 11] = [
    Column::text("Layer"),
    Column::text("Note"),
    Column::new("Full name", Kind::Name, ""),
    Column::new("Vertex state", Kind::Bytes, ""),
    Column::new("Vertex code", Kind::Bytes, ""),
    Column::new("Exchange code", Kind::Bytes, ""),
    Column::new("Control code", Kind::Bytes, ""),
    Column::new("Variables", Kind::Bytes, ""),
    Column::new("Counts in", Kind::Layers, ""),
    Column::text("By"),
    Column::text("Pass"),
];

/// Makes the table of operations: one row each, in order. `parts` has the memory of each operation
/// group. By the classic rules an operation without a layer shows no variables; by the full rules
/// each row also has the positions that the operation is assigned to, and the rule.
pub fn operations(
    model: &Model,
    layering: &Layering,
    placement: &Placement,
    parts: &[Parts],
) -> Table {
    let is_classic = placement.rules == Rules::Classic;
    let mut table = Table::new("operation-breakdown", &OPERATIONS);
    for (index, operation) in model.operations.iter().enumerate() {
        let mut parts = parts[operation.group as usize];
        let layer = layering.layers[index];
        if is_classic && layer == NO_LAYER {
            parts.variables = 0;
        }
        let name = match layer {
            NO_LAYER => NO_NAME,
            layer => &layering.names[layer as usize],
        };
        let note = layering.notes[index].to_string();
        let mut cells = cells![name, note, &*operation.name];
        cells.extend(part_cells(&parts));
        cells.extend(cells![
            places(placement, index),
            placement
                .operations
                .get(index)
                .map(|operation| operation.reason.to_string()),
            operation.pass.to_string(),
        ]);
        table.row("", cells);
    }
    if is_classic {
        table = table.without("Counts in").without("By").without("Pass");
    }
    table
}

/// Returns the names of the positions that an operation is assigned to, with spaces between.
pub(super) fn places(placement: &Placement, operation: usize) -> String {
    if placement
        .operations
        .get(operation)
        .is_some_and(|operation| operation.places == EVERYWHERE)
    {
        return "every stage".to_string();
    }
    let places = placement.places_of(operation).iter();
    let names = places.map(|&place| placement.positions.name(place as usize).to_string());
    names.collect::<Vec<_>>().join(" ")
}

const LAYERS: [Column; 7] = [
    Column::text("Name"),
    Column::new("Vertex state", Kind::Bytes, ""),
    Column::new("Vertex code", Kind::Bytes, ""),
    Column::new("Exchange code", Kind::Bytes, ""),
    Column::new("Control code", Kind::Bytes, ""),
    Column::new("Variables", Kind::Bytes, ""),
    Column::text("Total (MB)"),
];

/// Makes the table of layers: one row for each position of the layer order.
pub fn layers(positions: &Positions, memory: &[StageMemory]) -> Table {
    let mut table = Table::new("layer-breakdown", &LAYERS);
    for (position, memory) in memory.iter().enumerate() {
        let sums = memory.sums();
        let mut cells = cells![positions.name(position).to_string()];
        cells.extend(part_cells(&sums));
        cells.push(megabytes(sums.total()).into());
        table.row("", cells);
    }
    table
}

fn part_cells(parts: &Parts) -> [Cell; 5] {
    [
        parts.vertex_state,
        parts.vertex_code,
        parts.exchange_code,
        parts.control_code,
        parts.variables,
    ]
    .map(Cell::from)
}

/// Formats bytes as millions with three decimals, rounded to the nearest.
fn megabytes(bytes: u64) -> String {
    let thousands = bytes / 1000 + u64::from(bytes % 1000 >= 500);
    format!("{}.{:03}", thousands / 1000, thousands % 1000)
}

const TOTALS: [Column; 4] = [
    Column::new("Tile", Kind::Count, ""),
    Column::new("Always live", Kind::Bytes, ""),
    Column::new("Not always live", Kind::Bytes, ""),
    Column::new("Total", Kind::Bytes, ""),
];

/// Makes the table of totals: the whole model as one stage, then tiles as the compiler recorded
/// them.
pub fn totals(whole: u64, tiles: &[(u32, RecordedTile)]) -> Table {
    let mut table = Table::new("memory-totals", &TOTALS);
    let first = cells!["all, as one stage", Cell::Empty, Cell::Empty, whole];
    table.row("", first);
    for (tile, recorded) in tiles {
        let RecordedTile {
            always_live,
            not_always_live,
            total,
            ..
        } = *recorded;
        table.row("", cells![*tile, always_live, not_always_live, total]);
    }
    table
}

/// Makes the matrix of bytes of the variables that both positions of a pair use.
pub fn affinity(positions: &Positions, cells: &[Vec<u64>]) -> Table {
    Table::matrix("memory-affinity", &positions.names(), cells)
}

/// Makes the matrix of bytes of the variables that the row's position produces and the column's
/// position consumes.
pub fn communication(positions: &Positions, cells: &[Vec<u64>]) -> Table {
    Table::matrix("interlayer-communication", &positions.names(), cells)
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
