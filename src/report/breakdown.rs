//! Tables of operations and layers, of totals, and of the bytes that layers share and send.

use super::cell::Cell;
use super::fields::table;
use super::table::Table;
use crate::memory::{Parts, StageMemory};
use crate::model::{EVERYWHERE, Layering, Model, NO_LAYER, Placement, Positions, Rules};
use crate::profile::RecordedTile;

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
    match is_classic {
        true => table.without("Counts in").without("By").without("Pass"),
        false => table,
    }
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

/// Makes the table of layers: one row for each position of the layer order.
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

/// Formats bytes as millions with three decimals, rounded to the nearest.
fn megabytes(bytes: u64) -> String {
    let thousands = bytes / 1000 + u64::from(bytes % 1000 >= 500);
    format!("{}.{:03}", thousands / 1000, thousands % 1000)
}

/// Makes the table of totals: the whole model as one stage, then tiles as the compiler recorded
/// them.
pub fn totals(whole: u64, tiles: &[(u32, RecordedTile)]) -> Table {
    let tiles = tiles.iter().map(|(tile, recorded)| (Some(tile), *recorded));
    let all = RecordedTile {
        total: whole,
        ..RecordedTile::default()
    };
    let rows = [(None, all)].into_iter().chain(tiles);
    table!("memory-totals", rows, |(tile, recorded)| {
        Count "Tile": tile.map_or("all, as one stage".into(), Cell::from),
        Bytes "Always live": tile.map(|_| recorded.always_live),
        Bytes "Not always live": tile.map(|_| recorded.not_always_live),
        Bytes "Total": recorded.total,
    })
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
