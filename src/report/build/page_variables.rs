//! Single variables that only a page shows, with one look at the profile for the names
//! of all: that goes over all its variables.

use super::peaks::Peaks;
use crate::memory::MemoryModel;
use crate::model::{Model, Positions, ProfileLookup};
use crate::profile::ProfileError;
use crate::report::{LiveSteps, TileVariables};

/// Variables that are live at chosen steps, and those on each tile.
#[derive(Debug, Default)]
pub struct PageVariables {
    /// `None` without steps.
    pub(super) live_steps: Option<LiveSteps>,
    /// `None` where no tile was recorded.
    pub(super) of_tiles: Option<TileVariables>,
}

impl PageVariables {
    /// Finds both.
    ///
    /// # Errors
    /// When the profile cannot be read again, or is not what it was.
    pub fn find(
        lookup: &ProfileLookup,
        model: &Model,
        memory: &MemoryModel<'_>,
        positions: &Positions,
        peaks: &Peaks,
    ) -> Result<Self, ProfileError> {
        let whole = peaks.whole(model, memory, positions);
        let tiles = TileVariables::tiles(model);
        let stages = peaks.tiles_of_stages();
        let at_steps = whole.and_then(|whole| Some((whole.chosen(lookup, stages, &tiles)?, whole)));
        let on_tiles = TileVariables::find(lookup, &tiles);
        let listed = at_steps.iter().flat_map(|(chosen, _)| chosen.listed());
        let mut names = lookup
            .names(listed.chain(on_tiles.iter().flatten()))?
            .into_iter();
        let live_steps =
            at_steps.map(|(chosen, whole)| whole.live_steps(lookup, &chosen, &mut names));
        let has_tiles = !tiles.is_empty();
        let of_tiles = TileVariables::named(lookup, &model.classes, tiles, &on_tiles, names);
        Ok(Self {
            live_steps,
            of_tiles: Some(of_tiles).filter(|_| has_tiles),
        })
    }
}
