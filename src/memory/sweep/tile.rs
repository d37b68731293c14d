//! One tile, in the form that the sweep needs.

use super::shape::Shape;
use crate::limits;
use crate::memory::MemoryModel;
use crate::memory::neighbours::NeighbourUses;
use crate::model::{EVERYWHERE, NOWHERE, TooManyPlaces};

/// Bytes that enter ranges at `layer`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LayerEntry<What> {
    pub(super) layer: u32,
    pub(super) what: What,
}

/// Entries by the first start from which they count: one more than the last
/// layer before theirs that has the same.
type ByStart<What> = Vec<Vec<LayerEntry<What>>>;

/// A stretch of the list of steps, and the bytes live there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) bytes: u32,
}

/// One tile; its memory is used again for the next.
#[derive(Debug, Default)]
pub(super) struct Tile {
    pub(super) number: usize,
    /// All bytes of variables that a stage may have.
    pub(super) variable_bytes: u64,
    /// Variables that are not live on all steps.
    pub(super) moving: ByStart<Stretch>,
    /// Variables that are.
    pub(super) always: ByStart<u64>,
    /// Kinds of code and their bytes.
    pub(super) code: ByStart<(usize, u64)>,
    /// Variables that every stage has: live on some steps, and on all.
    pub(super) everywhere: Vec<Stretch>,
    pub(super) always_everywhere: u64,
    /// Code that every stage has, by kind.
    pub(super) code_everywhere: [u64; 4],
}

impl Tile {
    /// Takes tile `tile`, one of those that `shape` is of, with its code as (code item,
    /// bytes).
    ///
    /// # Errors
    /// When there is more on it than on any real tile.
    pub(super) fn load(
        &mut self,
        model: &MemoryModel<'_>,
        (uses, shape): (&NeighbourUses, &Shape),
        tile: u32,
        code: &[(u32, u64)],
    ) -> Result<(), TooManyPlaces> {
        self.number = tile as usize;
        self.variable_bytes = 0;
        self.always_everywhere = 0;
        self.code_everywhere = [0; 4];
        self.everywhere.clear();
        clear(&mut self.moving, model.layers());
        clear(&mut self.always, model.layers());
        clear(&mut self.code, model.layers());
        self.enter_variables(model, (uses, shape), tile)?;
        let mut left = limits::ENTRIES;
        for &(number, bytes) in code {
            let item = &model.code[number as usize];
            if item.set == EVERYWHERE {
                self.code_everywhere[item.kind as usize] += bytes;
            }
            let layers = model.sets.places(item.set);
            left = left.checked_sub(layers.len()).ok_or(TooManyPlaces)?;
            enter(layers, &mut self.code, (item.kind as usize, bytes));
        }
        Ok(())
    }

    /// Enters the variables that a stage can have.
    fn enter_variables(
        &mut self,
        model: &MemoryModel<'_>,
        (uses, shape): (&NeighbourUses, &Shape),
        tile: u32,
    ) -> Result<(), TooManyPlaces> {
        let mut left = limits::ENTRIES;
        for (number, bytes) in uses.on_tile(model, tile) {
            let counted = shape.counted(number);
            if counted == NOWHERE {
                continue;
            }
            let is_everywhere = counted == EVERYWHERE;
            let layers = model.sets.places(counted);
            self.variable_bytes += u64::from(bytes);
            let Some(stretches) = shape.stretches(number) else {
                let what = u64::from(bytes);
                self.always_everywhere += if is_everywhere { what } else { 0 };
                left = left.checked_sub(layers.len()).ok_or(TooManyPlaces)?;
                enter(layers, &mut self.always, what);
                continue;
            };
            for &(from, to) in stretches {
                left = left.checked_sub(layers.len().max(1)).ok_or(TooManyPlaces)?;
                if from == to {
                    continue;
                }
                let what = Stretch { from, to, bytes };
                if is_everywhere {
                    self.everywhere.push(what);
                }
                enter(layers, &mut self.moving, what);
            }
        }
        Ok(())
    }
}

fn clear<What>(entries: &mut ByStart<What>, layers: usize) {
    entries.resize_with(layers, Vec::new);
    entries.iter_mut().for_each(Vec::clear);
}

/// Enters what all of `layers` have: at each of them, into the ranges that
/// start after the one before it.
fn enter<What: Copy>(layers: &[u32], entries: &mut ByStart<What>, what: What) {
    let mut start = 0;
    for &layer in layers {
        entries[start].push(LayerEntry { layer, what });
        start = layer as usize + 1;
    }
}
