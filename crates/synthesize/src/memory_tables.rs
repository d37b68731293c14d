//! The recorded truth about memory.

use crate::encoding::encode_list;
use rusqlite::{Connection, params};

use super::overhead::CATEGORIES;
use super::plan::Plan;
use super::truth::{COLUMNS, Truth};

/// Writes `memory_by_tile`, `memory_by_category` and the liveness by step.
pub fn write(plan: &Plan, truth: &Truth, connection: &Connection) -> rusqlite::Result<()> {
    by_tile(truth, connection)?;
    by_category(truth, connection)?;
    let deltas = &truth.deltas[..plan.tree.steps.len()];
    by_step(&[(Some(0), deltas), (None, deltas)], connection)
}

/// Writes what each tile holds.
pub fn by_tile(truth: &Truth, connection: &Connection) -> rusqlite::Result<()> {
    let mut insert = connection.prepare(
        "INSERT INTO memory_by_tile VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    for (tile, row) in truth.tiles.iter().enumerate() {
        let [interleaved, plain, overflowed] = row.regions;
        let [interleaved_gaps, plain_gaps, overflowed_gaps] = row.with_gaps;
        insert.execute(params![
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
        ])?;
    }
    let mut fullest: Vec<usize> = (0..truth.tiles.len()).collect();
    fullest.sort_by_key(|&tile| std::cmp::Reverse(truth.tiles[tile].total()));
    let mut insert = connection.prepare("INSERT INTO memory_liveness_tiles VALUES (?1, ?2)")?;
    for (position, tile) in fullest.iter().take(2).enumerate() {
        insert.execute(params![position, tile])?;
    }
    Ok(())
}

/// Writes what each category has on each tile.
pub fn by_category(truth: &Truth, connection: &Connection) -> rusqlite::Result<()> {
    let mut insert = connection.prepare(&format!(
        "INSERT INTO memory_by_category (category_id, {}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        COLUMNS.join(", ")
    ))?;
    let mut order: Vec<usize> = (0..CATEGORIES.len()).collect();
    order.sort_unstable_by_key(|&category| CATEGORIES[category]);
    for category in order {
        let [a, b, c, d, e, f] = truth.categories[category]
            .each_ref()
            .map(|v| encode_list(v));
        insert.execute(params![CATEGORIES[category], a, b, c, d, e, f])?;
    }
    Ok(())
}

/// Writes by step, for each IPU and for all of them (none), how much more is live
/// than before. Steps where nothing changes have no row. The rows of a device with
/// one IPU repeat those of the whole.
pub fn by_step(ipus: &[(Option<u32>, &[i64])], connection: &Connection) -> rusqlite::Result<()> {
    let mut insert = connection
        .prepare("INSERT INTO memory_not_always_live_by_step_and_ipu VALUES (?1, ?2, ?3)")?;
    for (ipu, deltas) in ipus {
        for (step, delta) in deltas.iter().enumerate() {
            if *delta != 0 {
                insert.execute(params![ipu, step, delta])?;
            }
        }
    }
    Ok(())
}
