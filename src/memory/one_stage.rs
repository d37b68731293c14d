//! Bytes of the whole model in one stage, tile by tile; they do not depend on layers.

use super::lanes::{self, Bytes, LANES};
use super::neighbours::{self, LiveRanges, NeighbourUses};
use super::stage::LiveChanges;
use crate::model::Model;
use rayon::prelude::*;
use std::ops::Range;

/// By tile: bytes of all code, and of the live variables at the tile's fullest step. Depends
/// neither on layers nor on options.
pub(crate) fn of_one_stage(model: &Model) -> Vec<u64> {
    let mut taken = live_at_peak(model);
    for bytes in &model.recorded_code {
        bytes.change(&mut taken, u64::saturating_add);
    }
    taken
}

/// By tile: bytes of the live variables at the tile's fullest step.
fn live_at_peak(model: &Model) -> Vec<u64> {
    let tiles = model.target.num_tiles.min(model.variables.tiles());
    let at_once = neighbours::at_once(tiles);
    let firsts = (0..tiles.div_ceil(at_once)).into_par_iter();
    let of_neighbours = |scratch: &mut Scratch, number: u32| {
        let first = number * at_once;
        let neighbours = first..tiles.min(first + at_once);
        let peaks = scratch.peaks(model, neighbours.clone());
        peaks.into_iter().take(neighbours.len())
    };
    let found = firsts.map_init(Scratch::default, of_neighbours);
    found.flatten_iter().collect()
}

/// Sums of some neighbouring tiles; reused for the next.
#[derive(Default)]
struct Scratch {
    uses: NeighbourUses<LANES>,
    live: LiveRanges,
    changes: LiveChanges,
}

impl Scratch {
    /// By lane, the bytes of [`live_at_peak`].
    fn peaks(&mut self, model: &Model, tiles: Range<u32>) -> [u64; LANES] {
        let Self {
            uses,
            live,
            changes,
        } = self;
        uses.gather_data(&model.variables, tiles);
        live.clear();
        let mut always = [0; LANES];
        for (number, bytes) in uses.with_bytes() {
            let class = model.variables.uses()[number as usize].class;
            let ranges = model.classes.ranges(class);
            if model.classes.is_always_live(class) && !ranges.is_empty() {
                lanes::add_up(&mut always, &bytes.map(u64::from));
                live.push(None);
            } else {
                live.push(Some(ranges));
            }
        }
        changes.load(model.steps(), live);
        let (mut now, mut highest) = ([0i64; LANES], [0i64; LANES]);
        for step in 0..model.steps() {
            let bytes = |&row: &u32| uses.bytes(row as usize).map(i64::change);
            for row in changes.ends(step) {
                lanes::subtract(&mut now, &bytes(row));
            }
            for row in changes.begins(step) {
                lanes::add(&mut now, &bytes(row));
            }
            lanes::raise(&mut highest, &now);
        }
        std::array::from_fn(|lane| always[lane] + highest[lane].sum())
    }
}
