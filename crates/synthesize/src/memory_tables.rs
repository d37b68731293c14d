//! The record of memory in the profile, computed from the variables that were
//! written.
//!
//! The rule: on each tile, what is always live has addresses of its own; the
//! rest shares the bytes that its fullest step needs. So `total` is the always
//! live bytes plus the most that is live of the rest at any step, and the gap
//! that is planted. In
//! `memory_by_category` a category has its always-live bytes as
//! *non-overlapped* and all others, live together or not, as *overlapped*. Addresses are
//! given out category by category, from the bottom: plain memory first, then
//! interleaved, and what does not fit on the tile is *overflowed*.

use crate::encoding::encode_list;
use rusqlite::Connection;

use super::liveness::{Classes, Variable};
use super::overhead::{CATEGORIES, category};
use super::plan::Plan;
use super::schema::insert;

const INTERLEAVED: usize = 0;
const PLAIN: usize = 1;
const OVERFLOWED: usize = 2;

#[derive(Debug, Clone, Copy, Default)]
pub struct TileRow {
    /// Bytes {interleaved, not interleaved, overflowed}.
    pub regions: [u64; 3],
    /// `regions`, each with the bytes of gaps that alignment leaves.
    pub with_gaps: [u64; 3],
    pub always: u64,
    /// Most bytes of the rest at any step.
    pub peak: u64,
    /// The first of these steps.
    pub peak_step: u32,
    /// Bytes at used addresses that no variable explains.
    pub gap: u64,
}

impl TileRow {
    pub fn total(&self) -> u64 {
        self.always + self.peak + self.gap
    }
}

#[derive(Debug)]
pub struct Truth {
    /// Per step: how much more is live of what is not always live than before.
    pub deltas: Vec<i64>,
    pub tiles: Vec<TileRow>,
    /// Per category: non-overlapped and overlapped bytes by tile.
    categories: Vec<[Vec<u64>; 2]>,
    plain_bytes: u64,
    tile_bytes: u64,
}

impl Truth {
    pub fn new(steps: usize, plain_bytes: u64, tile_bytes: u64) -> Self {
        Self {
            deltas: vec![0; steps + 1],
            tiles: Vec::new(),
            categories: vec![Default::default(); CATEGORIES.len()],
            plain_bytes,
            tile_bytes,
        }
    }

    /// Adds the next tile, and gives its row.
    pub fn add(
        &mut self,
        classes: &Classes,
        variables: &[Variable],
        gap: impl FnOnce(u64) -> u64,
    ) -> TileRow {
        let mut deltas = vec![0i64; self.deltas.len()];
        let mut always = 0;
        for variable in variables {
            if classes.always[variable.class as usize] {
                always += variable.bytes;
                continue;
            }
            for &(from, to) in &classes.ranges[variable.class as usize] {
                deltas[from as usize] += variable.bytes as i64;
                deltas[to as usize] -= variable.bytes as i64;
            }
        }
        let (peak_step, peak) = fullest(&deltas);
        for (sum, delta) in self.deltas.iter_mut().zip(&deltas) {
            *sum += delta;
        }
        let mut row = TileRow {
            always,
            peak,
            peak_step,
            gap: gap(always + peak),
            ..TileRow::default()
        };
        let mut blocks = blocks(classes, variables, peak_step);
        // As if it stood between variables.
        blocks[category::VARIABLE].at_peak += row.gap;
        self.place(&mut row, &blocks);
        self.tiles.push(row);
        row
    }

    fn place(&mut self, row: &mut TileRow, blocks: &[Block]) {
        let bounds = [self.plain_bytes, self.tile_bytes, u64::MAX];
        let mut at = 0;
        for (block, sums) in blocks.iter().zip(&mut self.categories) {
            for mut left in [block.always, block.at_peak] {
                for (bound, region) in bounds.into_iter().zip([PLAIN, INTERLEAVED, OVERFLOWED]) {
                    let part = left.min(bound.saturating_sub(at));
                    at += part;
                    left -= part;
                    row.regions[region] += part;
                    row.with_gaps[region] += part.next_multiple_of(8);
                }
            }
            sums[0].push(block.always);
            sums[1].push(block.sharing);
        }
    }
}

/// Bytes of one category on one tile.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// Of always-live variables, which have addresses of their own.
    always: u64,
    /// Live of the others at the fullest step.
    at_peak: u64,
    sharing: u64,
}

/// The first of the steps with most bytes, and those bytes.
fn fullest(deltas: &[i64]) -> (u32, u64) {
    let (mut live, mut best, mut at) = (0i64, 0i64, 0);
    for (step, delta) in deltas.iter().enumerate() {
        live += delta;
        if live > best {
            (best, at) = (live, step as u32);
        }
    }
    (at, best as u64)
}

fn blocks(classes: &Classes, variables: &[Variable], step: u32) -> Vec<Block> {
    let mut blocks = vec![Block::default(); CATEGORIES.len()];
    for variable in variables {
        let class = variable.class as usize;
        let live = |&(from, to): &(u32, u32)| from <= step && step < to;
        let block = &mut blocks[variable.category];
        if classes.always[class] {
            block.always += variable.bytes;
            continue;
        }
        block.sharing += variable.bytes;
        if classes.ranges[class].iter().any(live) {
            block.at_peak += variable.bytes;
        }
    }
    blocks
}

pub fn write(plan: &Plan, truth: &Truth, connection: &Connection) -> rusqlite::Result<()> {
    by_tile(truth, connection)?;
    by_category(truth, connection)?;
    let deltas = &truth.deltas[..plan.tree.steps.len()];
    by_step(&[(Some(0), deltas), (None, deltas)], connection)
}

pub fn by_tile(truth: &Truth, connection: &Connection) -> rusqlite::Result<()> {
    let row = |(tile, row): (usize, &TileRow)| {
        let [interleaved, plain, overflowed] = row.regions;
        (
            tile,
            interleaved,
            plain,
            overflowed,
            row.with_gaps[OVERFLOWED],
            row.total(),
            row.with_gaps.iter().sum::<u64>(),
            row.always,
            row.peak,
        )
    };
    let tiles = truth.tiles.iter().enumerate();
    let table = "memory_by_tile (tile, interleaved, non_interleaved, overflowed,
                 overflowed_including_gaps, total, total_including_gaps, always_live_bytes,
                 not_always_live_max_bytes)";
    insert(connection, table, tiles.map(row))
}

pub fn by_category(truth: &Truth, connection: &Connection) -> rusqlite::Result<()> {
    let mut order: Vec<usize> = (0..CATEGORIES.len()).collect();
    order.sort_unstable_by_key(|&category| CATEGORIES[category]);
    let none = encode_list(&vec![0; truth.tiles.len()]);
    let rows = order.into_iter().map(|category| {
        let columns = truth.categories[category].each_ref();
        let [alone, overlapped] = columns.map(|bytes| encode_list(bytes));
        let name = CATEGORIES[category];
        (name, &none, &none, alone, overlapped, &none, &none)
    });
    insert(connection, "memory_by_category", rows)
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
