//! One stage on a few tiles, which is computed again and again with other choices of layers.
//!
//! Variables and code of the tiles are gathered once, and of these what counts in the stage.

use super::Parts;
use super::peaks::StageScratch;
use super::plan::{StagesToCompute, Wanted};
use crate::memory::pipeline::{LayerChoice, PlacedStage};
use crate::memory::{MemoryModel, Rules};
use crate::model::TooManyPlaces;

/// A stage on some tiles.
pub(crate) struct StageOnTiles<'m, 'a> {
    memory: &'m MemoryModel<'a>,
    stage: [PlacedStage; 1],
    tiles: Vec<OnTile>,
    /// The uses that count there, ascending.
    numbers: Vec<u32>,
}

/// The variables and code of one tile.
struct OnTile {
    tile: usize,
    code: Parts,
    /// By position.
    freed: Vec<Freed>,
    /// Of what counts in the stage.
    scratch: StageScratch<i64, 1>,
}

impl<'m, 'a> StageOnTiles<'m, 'a> {
    /// The stage on no tile yet.
    pub(crate) fn new(memory: &'m MemoryModel<'a>, stage: PlacedStage) -> Self {
        Self {
            memory,
            stage: [stage],
            tiles: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// Takes one more tile. Was it not there yet?
    pub(crate) fn add(&mut self, tile: u32) -> bool {
        if self.tiles.iter().any(|known| known.tile == tile as usize) {
            return false;
        }
        let (memory, only) = (self.memory, tile..tile + 1);
        let plan = StagesToCompute::new(memory, &self.stage, Wanted::All);
        let mut scratch = StageScratch::default();
        scratch.uses.gather(memory, only.clone());
        memory.load_additions(&plan, &mut scratch);
        let freed = memory.freed_by_position(memory.numbered_on_tile(tile));
        let positions = &self.stage[0].positions;
        let flows = memory.flows.as_ref();
        let is_used = |number| flows.is_some_and(|flows| flows.is_used(number, positions));
        let counted = |number| plan.counts(memory.uses.known(number).counted);
        scratch
            .uses
            .retain(|number| counted(number) || is_used(number));
        self.numbers.extend_from_slice(scratch.uses.numbers());
        self.numbers.sort_unstable();
        self.numbers.dedup();
        let is_full = memory.rules == Rules::Full;
        let code = memory.code_on(only, positions, is_full);
        self.tiles.push(OnTile {
            tile: tile as usize,
            code: code.first().copied().unwrap_or_default(),
            freed,
            scratch,
        });
        true
    }

    /// By tile, then by position of the stage: what it frees at most where that is recomputed,
    /// and not kept.
    pub(crate) fn freed(&self) -> Vec<Vec<u64>> {
        let positions = &self.stage[0].positions;
        let copies = self.memory.copies(&self.stage[0]);
        let copies = copies.map_or(0, |(copies, _)| copies);
        let of_tile = |on: &OnTile| {
            let freed = on.freed[positions.clone()].iter();
            freed
                .map(|freed| self.memory.freed_on(on.tile, freed, copies))
                .collect()
        };
        self.tiles.iter().map(of_tile).collect()
    }

    /// By tile, its bytes where this is chosen for each position.
    ///
    /// # Errors
    /// When layers share variables in more ways than those of any real model.
    pub(crate) fn peaks(&mut self, choices: &[LayerChoice]) -> Result<Vec<u64>, TooManyPlaces> {
        let memory = self.memory.choosing_for(choices, Some(&self.numbers))?;
        let plan = StagesToCompute::new(&memory, &self.stage, Wanted::All);
        let correction = memory.correction_of(&self.stage[0]);
        let bytes = |on: &mut OnTile| {
            let peaks = memory.peaks_of_loaded(&plan, &mut on.scratch, 1);
            let found = memory.on_tile((on.tile, on.code), &peaks[0][0], &plan);
            found.parts.total().saturating_add_signed(correction)
        };
        Ok(self.tiles.iter_mut().map(bytes).collect())
    }
}

/// The maximum that a stage frees where a position is recomputed, and not kept.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Freed {
    /// Bytes that it makes for the backward pass, with the copies that are stashed of them.
    made: u64,
    /// Bytes that it uses in the backward pass and does not run again from: copies are stashed of them.
    used: u64,
}

impl MemoryModel<'_> {
    /// By position, what is freed of these bytes of uses.
    pub(crate) fn freed_by_position(&self, uses: impl Iterator<Item = (u32, u64)>) -> Vec<Freed> {
        let mut freed = vec![Freed::default(); self.layers()];
        let Some(flows) = &self.flows else {
            return freed;
        };
        for (number, bytes) in uses {
            let (maker, users) = flows.kept(number);
            if let Some(of_maker) = maker.and_then(|maker| freed.get_mut(maker as usize)) {
                of_maker.made += bytes;
            }
            for user in users {
                if let Some(of_user) = freed.get_mut(user as usize) {
                    of_user.used += bytes;
                }
            }
        }
        freed
    }

    /// The bytes on a tile of a stage that stashes so many more copies, with the fragmentation that
    /// comes with them.
    pub(crate) fn freed_on(&self, tile: usize, freed: &Freed, copies: u64) -> u64 {
        let bytes = (copies + 1) * freed.made + copies * freed.used;
        match bytes {
            0 => 0,
            // Fragmentation is rounded up.
            _ => bytes + self.overhead.fragmentation(tile, freed.made) + 1,
        }
    }
}
