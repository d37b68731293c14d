//! The recorded truth about memory.

use std::cmp::Reverse;

use crate::encoding::encode_list;
use rusqlite::Connection;

use super::overhead::CATEGORIES;
use super::plan::Plan;
use super::schema::insert;
use super::truth::{COLUMNS, TileRow, Truth};

/// Writes `memory_by_tile`, `memory_by_category` and the liveness by step.
pub fn write(plan: &Plan, truth: &Truth, connection: &Connection) -> rusqlite::Result<()> {
    by_tile(truth, connection)?;
    by_category(truth, connection)?;
    let deltas = &truth.deltas[..plan.tree.steps.len()];
    by_step(&[(Some(0), deltas), (None, deltas)], connection)
}

/// Writes what each tile holds.
pub fn by_tile(truth: &Truth, connection: &Connection) -> rusqlite::Result<()> {
    let row = |(tile, row): (usize, &TileRow)| {
        let [interleaved, plain, overflowed] = row.regions;
        let [interleaved_gaps, plain_gaps, overflowed_gaps] = row.with_gaps;
        (
            tile,
            interleaved,
            interleaved_gaps,
            plain,
            plain_gaps,
            overflowed,
            overflowed_gaps,
            row.total(),
            row.with_gaps.iter().sum::<u64>(),
            row.always,
            row.peak,
        )
    };
    let tiles = truth.tiles.iter().enumerate();
    insert(connection, "memory_by_tile", tiles.map(row))?;
    let mut fullest: Vec<usize> = (0..truth.tiles.len()).collect();
    fullest.sort_by_key(|&tile| Reverse(truth.tiles[tile].total()));
    let fullest = fullest.into_iter().take(2).enumerate();
    insert(connection, "memory_liveness_tiles", fullest)
}

/// Writes what each category has on each tile.
pub fn by_category(truth: &Truth, connection: &Connection) -> rusqlite::Result<()> {
    let mut order: Vec<usize> = (0..CATEGORIES.len()).collect();
    order.sort_unstable_by_key(|&category| CATEGORIES[category]);
    let rows = order.into_iter().map(|category| {
        let columns = truth.categories[category].each_ref();
        let [a, b, c, d, e, f] = columns.map(|bytes| encode_list(bytes));
        (CATEGORIES[category], a, b, c, d, e, f)
    });
    let columns = COLUMNS.join(", ");
    let table = format!("memory_by_category (category_id, {columns})");
    insert(connection, &table, rows)
}

/// Writes by step, for each IPU and for all of them (none), how much more is live
/// than before. Steps where nothing changes have no row. The rows of a device with
/// one IPU repeat those of the whole.
pub fn by_step(ipus: &[(Option<u32>, &[i64])], connection: &Connection) -> rusqlite::Result<()> {
    let rows = ipus.iter().flat_map(|(ipu, deltas)| {
        let changes = deltas.iter().enumerate();
        let changes = changes.filter(|(_, delta)| **delta != 0);
        changes.map(move |(step, delta)| (ipu, step, delta))
    });
    insert(connection, "memory_not_always_live_by_step_and_ipu", rows)
}
