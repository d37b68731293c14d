//! The least recomputation of a range that fits, as one tile tells it.

use super::branches::{Row, SortedRow};
use super::chooser::{Chooser, units};
use crate::memory::{Freed, LayerChoice, MemoryModel, PlacedStage, RangeCosts};
use crate::model::TooManyPlaces;

/// One tile.
pub(super) struct TileBound {
    tile: usize,
    /// The costs of ranges where nothing is recomputed.
    kept: RangeCosts,
    /// By position.
    freed: Vec<Freed>,
}

impl TileBound {
    /// A tile of a model that recomputes nothing, in at most so many stages.
    pub(super) fn new(
        none: &MemoryModel<'_>,
        chooser: &Chooser<'_, '_>,
        (tile, stages): (u32, usize),
    ) -> Result<Self, TooManyPlaces> {
        let memory = chooser.memory;
        Ok(Self {
            tile: tile as usize,
            kept: none.costs_on_tile(tile, stages)?,
            freed: memory.freed_by_position(memory.numbered_on_tile(tile)),
        })
    }

    /// The least recomputation of a stage within a limit; `None` where it never fits.
    pub(super) fn recomputed(
        &self,
        chooser: &Chooser<'_, '_>,
        (stage, limit): &(PlacedStage, u64),
    ) -> Option<u128> {
        let (range, after) = (stage.positions.clone(), stage.after.unwrap_or(0));
        let peak = self.kept.peak(range, after).unwrap_or(0);
        let needed = peak.saturating_sub(*limit);
        if needed == 0 {
            return Some(0);
        }
        let units = units(chooser.times, chooser.out, &stage.positions);
        let weights: Vec<u128> = units.iter().map(|unit| unit.weight).collect();
        let copies = chooser.memory.copies(stage);
        let copies = copies.map_or(0, |(copies, _)| copies);
        let freed = |position: usize| {
            let freed = &self.freed[position];
            chooser.memory.freed_on(self.tile, freed, copies)
        };
        let freed = units
            .iter()
            .map(|unit| unit.positions.clone().map(freed).sum());
        let row = Row {
            freed: freed.collect(),
            needed,
        };
        let open = vec![LayerChoice::Open; units.len()];
        let kept = SortedRow::new(&row, &weights).room(&open, 0)?;
        Some(weights.iter().sum::<u128>() - kept)
    }
}
