//! Bytes of the whole model in one stage, tile by tile; they do not depend on layers.

use super::lanes::{self, Bytes, LANES};
use super::neighbours::{self, NeighbourUses};
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
    /// By step, the change of the live bytes. There are so many variables that sorting their
    /// changes, as for [`super::step_sums::StepSums`], takes longer.
    changes: Vec<[i64; LANES]>,
}

impl Scratch {
    /// By lane, the bytes of [`live_at_peak`].
    fn peaks(&mut self, model: &Model, tiles: Range<u32>) -> [u64; LANES] {
        let Self { uses, changes } = self;
        uses.gather_data(&model.variables, tiles);
        changes.clear();
        changes.resize(model.steps() as usize + 1, [0; LANES]);
        for (number, bytes) in uses.with_bytes() {
            let bytes = bytes.map(i64::from);
            let class = model.variables.uses()[number as usize].class;
            for &(from, to) in model.classes.ranges(class) {
                lanes::add(&mut changes[from as usize], &bytes);
                lanes::subtract(&mut changes[to as usize], &bytes);
            }
        }
        let (mut live, mut highest) = ([0; LANES], [0; LANES]);
        for change in changes {
            lanes::add(&mut live, change);
            lanes::raise(&mut highest, &live);
        }
        highest.map(Bytes::sum)
    }
}
