//! The least recomputation of a range that fits, as one tile tells it.

use super::branches::{Row, SortedRow};
use super::chooser::{Chooser, Unit};
use crate::memory::{FreedOnTile, LayerChoice, MemoryModel, PlacedStage, RangeCosts};
use crate::model::TooManyPlaces;

/// One tile.
pub(super) struct TileBound<'c> {
    tile: &'c FreedOnTile,
    /// The costs of ranges where nothing is recomputed.
    kept: RangeCosts,
}

impl<'c> TileBound<'c> {
    /// A tile of a model that recomputes nothing, in at most so many stages.
    pub(super) fn new(
        none: &MemoryModel<'_>,
        tile: &'c FreedOnTile,
        stages: usize,
    ) -> Result<Self, TooManyPlaces> {
        let kept = none.costs_on_tile(tile.tile, stages)?;
        Ok(Self { tile, kept })
    }

    /// The least recomputation of a stage with these units within a limit; `None` where it never fits.
    pub(super) fn recomputed(
        &self,
        chooser: &Chooser<'_, '_>,
        units: &[Unit],
        (stage, limit): &(PlacedStage, u64),
    ) -> Option<u128> {
        let (range, after) = (stage.positions.clone(), stage.after.unwrap_or(0));
        let peak = self.kept.peak(range, after).unwrap_or(0);
        let needed = peak.saturating_sub(*limit);
        if needed == 0 {
            return Some(0);
        }
        let weights: Vec<u128> = units.iter().map(|unit| unit.weight).collect();
        let row = Row {
            freed: chooser.freed(self.tile, units, stage),
            needed,
        };
        let open = vec![LayerChoice::Open; units.len()];
        let kept = SortedRow::new(&row, &weights).room(&open, 0)?;
        Some(weights.iter().sum::<u128>() - kept)
    }
}
