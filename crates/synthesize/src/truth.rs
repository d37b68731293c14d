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

use super::liveness::{Classes, Variable};
use super::overhead::{CATEGORIES, category};

/// Columns of `memory_by_category`: {interleaved, not interleaved, overflowed}
/// x {non-overlapped, overlapped}.
pub const COLUMNS: [&str; 6] = [
    "interleaved_non_overlapped",
    "interleaved_overlapped",
    "non_interleaved_non_overlapped",
    "non_interleaved_overlapped",
    "overflowed_non_overlapped",
    "overflowed_overlapped",
];

const INTERLEAVED: usize = 0;
const PLAIN: usize = 1;
const OVERFLOWED: usize = 2;

/// A row of `memory_by_tile`.
#[derive(Debug, Clone, Copy, Default)]
pub struct TileRow {
    /// Bytes {interleaved, not interleaved, overflowed}.
    pub regions: [u64; 3],
    /// Those bytes with the gaps that alignment leaves.
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
    /// Bytes at used addresses.
    pub fn total(&self) -> u64 {
        self.always + self.peak + self.gap
    }
}

/// Sums over all tiles.
#[derive(Debug)]
pub struct Truth {
    /// Per step: how much more is live of what is not always live than before.
    pub deltas: Vec<i64>,
    /// Per tile.
    pub tiles: Vec<TileRow>,
    /// Per category and column: bytes by tile.
    pub categories: Vec<[Vec<u64>; 6]>,
    plain_bytes: u64,
    tile_bytes: u64,
}

impl Truth {
    /// No tile yet.
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
        let mut blocks = by_category(classes, variables, peak_step);
        // As if it stood between variables.
        blocks[category::VARIABLE].at_peak += row.gap;
        self.place(&mut row, &blocks);
        self.tiles.push(row);
        row
    }

    /// Gives out addresses block by block.
    fn place(&mut self, row: &mut TileRow, blocks: &[Block]) {
        let bounds = [self.plain_bytes, self.tile_bytes, u64::MAX];
        let mut at = 0;
        for (block, sums) in blocks.iter().zip(&mut self.categories) {
            let mut columns = [0; 6];
            let begin = at + block.always;
            let parts = [(block.always, true), (block.at_peak, false)];
            for (mut left, is_alone) in parts {
                for (bound, region) in bounds.into_iter().zip([PLAIN, INTERLEAVED, OVERFLOWED]) {
                    let part = left.min(bound.saturating_sub(at));
                    at += part;
                    left -= part;
                    row.regions[region] += part;
                    row.with_gaps[region] += part.next_multiple_of(8);
                    columns[2 * region] += if is_alone { part } else { 0 };
                }
            }
            let bounds = bounds.iter().zip([PLAIN, INTERLEAVED, OVERFLOWED]);
            let region = bounds
                .filter(|&(&bound, _)| begin < bound)
                .map(|bound| bound.1)
                .next();
            columns[2 * region.unwrap_or(OVERFLOWED) + 1] = block.sharing;
            for (column, bytes) in sums.iter_mut().zip(columns) {
                column.push(bytes);
            }
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
    /// All others.
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

fn by_category(classes: &Classes, variables: &[Variable], step: u32) -> Vec<Block> {
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
