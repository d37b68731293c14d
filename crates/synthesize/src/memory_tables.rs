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
use rusqlite::{Connection, Result};

use super::liveness::{Changes, Classes, Variable};
use super::overhead::{categories, category};
use super::schema::insert;
use super::settings::Settings;

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
pub struct Truth<'a> {
    settings: &'a Settings,
    /// By IPU and step: how much more is live of what is not always live than before.
    deltas: Vec<Vec<i64>>,
    steps: usize,
    pub tiles: Vec<TileRow>,
    /// Per category: non-overlapped and overlapped bytes by tile.
    categories: Vec<[Vec<u64>; 2]>,
}

impl<'a> Truth<'a> {
    pub fn new(settings: &'a Settings, steps: usize) -> Self {
        Self {
            settings,
            deltas: Vec::new(),
            steps,
            tiles: Vec::new(),
            categories: vec![Default::default(); categories().len()],
        }
    }

    /// Adds the next tile, and gives its row.
    pub fn add(
        &mut self,
        classes: &Classes,
        variables: &[Variable],
        gap: impl FnOnce(u64) -> u64,
    ) -> TileRow {
        let (mut changes, mut always) = (Changes::default(), 0);
        for variable in variables {
            let class = variable.class as usize;
            match classes.always[class] {
                true => always += variable.bytes,
                false => changes.add(classes.ranges[class].iter().copied(), variable.bytes),
            }
        }
        let (peak_step, peak) = changes.fullest();
        let tiles_of_ipu = self.settings.tiles as usize;
        if self.tiles.len().is_multiple_of(tiles_of_ipu) {
            self.deltas.push(vec![0; self.steps + 1]);
        }
        let deltas = self.deltas.last_mut().expect("one has just been added");
        for (step, delta) in changes.0 {
            deltas[step as usize] += delta;
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
        let settings = self.settings;
        // Interleaved memory starts after the first third, as on a Mk2 tile.
        let plain_bytes = settings.bytes_per_tile / 3 / 16_384 * 16_384;
        let bounds = [plain_bytes, settings.bytes_per_tile, u64::MAX];
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

fn blocks(classes: &Classes, variables: &[Variable], step: u32) -> Vec<Block> {
    let mut blocks = vec![Block::default(); categories().len()];
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

pub fn write(truth: &Truth, connection: &Connection) -> Result<()> {
    by_tile(truth, connection)?;
    by_category(truth, connection)?;
    by_step(truth, connection)
}

fn by_tile(truth: &Truth, connection: &Connection) -> Result<()> {
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

fn by_category(truth: &Truth, connection: &Connection) -> Result<()> {
    let mut order: Vec<usize> = (0..categories().len()).collect();
    order.sort_unstable_by_key(|&category| &categories()[category]);
    let none = encode_list(&vec![0; truth.tiles.len()]);
    let rows = order.into_iter().map(|category| {
        let columns = truth.categories[category].each_ref();
        let [alone, overlapped] = columns.map(|bytes| encode_list(bytes));
        let name = &categories()[category];
        (name, &none, &none, alone, overlapped, &none, &none)
    });
    insert(connection, "memory_by_category", rows)
}

/// Writes by step, for each IPU and for all of them (none), how much more is live
/// than before. Steps where nothing changes have no row. The rows of a device with
/// one IPU repeat those of the whole.
fn by_step(truth: &Truth, connection: &Connection) -> Result<()> {
    let steps = 0..truth.steps;
    let sum = |step: usize| truth.deltas.iter().map(|deltas| deltas[step]).sum();
    let all: Vec<i64> = steps.map(sum).collect();
    let ipus = truth.deltas.iter().enumerate();
    let ipus = ipus.map(|(ipu, deltas)| (Some(ipu), deltas));
    let rows = ipus.chain([(None, &all)]).flat_map(|(ipu, deltas)| {
        let changes = deltas[..truth.steps].iter().enumerate();
        let changes = changes.filter(|(_, delta)| **delta != 0);
        changes.map(move |(step, delta)| (ipu, step, delta))
    });
    insert(connection, "memory_not_always_live_by_step_and_ipu", rows)
}
