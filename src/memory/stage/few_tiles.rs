//! One stage on a few tiles, which is computed again and again with other choices of layers.
//!
//! Variables and code of the tiles are gathered once, and of these what counts in the stage.

use super::Parts;
use super::peaks::{StagePeak, StageScratch};
use super::plan::{StagesToCompute, Wanted};
use crate::memory::lanes::LANES;
use crate::memory::pipeline::{LayerChoice, PlacedStage, UsesInStage};
use crate::memory::{MemoryModel, Rules};
use crate::model::TooManyPlaces;
use rayon::prelude::*;
use std::ops::Range;

/// A stage on some tiles.
pub(crate) struct StageOnTiles<'a> {
    /// With what was chosen last.
    memory: MemoryModel<'a>,
    stage: [PlacedStage; 1],
    tiles: Vec<TilesInLanes>,
    /// The uses that count there, ascending.
    numbers: Vec<u32>,
    /// By set of places, as in [`StagesToCompute`].
    stages_of: Vec<Vec<u32>>,
}

/// The variables and code of as many tiles as have a lane.
struct TilesInLanes {
    /// By lane, with the code.
    tiles: Vec<(usize, Parts)>,
    /// Of what counts in the stage.
    scratch: StageScratch<i64, LANES>,
}

/// What some tiles have, whatever the stage is and whatever is chosen.
pub(crate) struct GatheredTiles(Vec<(Vec<u32>, StageScratch<i64, LANES>)>);

impl GatheredTiles {
    /// What these tiles of `memory` have.
    pub(crate) fn new(memory: &MemoryModel<'_>, tiles: &[u32]) -> Self {
        let in_lanes = |tiles: &[u32]| (tiles.to_vec(), memory.loaded(tiles));
        Self(tiles.chunks(LANES).map(in_lanes).collect())
    }
}

impl<'a> StageOnTiles<'a> {
    /// A stage on these tiles.
    pub(crate) fn new(memory: &MemoryModel<'a>, stage: PlacedStage, on: &GatheredTiles) -> Self {
        let stage = [stage];
        let plan = StagesToCompute::new(memory, &stage, Wanted::All);
        let tiles = on.0.iter();
        let tiles = tiles.map(|(tiles, all)| TilesInLanes::new(memory, &plan, (tiles, all)));
        let tiles: Vec<TilesInLanes> = tiles.collect();
        let numbers = tiles.iter().flat_map(|tiles| tiles.scratch.uses.numbers());
        let mut numbers: Vec<u32> = numbers.copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        Self {
            memory: memory.clone(),
            stages_of: plan.stages_of,
            stage,
            tiles,
            numbers,
        }
    }

    /// By tile, its bytes where this is chosen for each position.
    ///
    /// # Errors
    /// When layers share variables in more ways than those of any real model.
    pub(crate) fn peaks(&mut self, choices: &[LayerChoice]) -> Result<Vec<u64>, TooManyPlaces> {
        let only = UsesInStage {
            positions: &self.stage[0].positions,
            numbers: &self.numbers,
        };
        self.memory.choose(choices, Some(only))?;
        let memory = &self.memory;
        let stages_of = std::mem::take(&mut self.stages_of);
        let plan = StagesToCompute::knowing(memory, &self.stage, Wanted::All, stages_of);
        let bytes = |in_lanes: &mut TilesInLanes| {
            let TilesInLanes { tiles, scratch } = in_lanes;
            let peaks = memory.peaks_of_loaded(&plan, scratch, tiles.len());
            let found = tiles.iter().zip(peaks).map(|(&tile, peaks)| {
                let found = memory.on_tile(tile, &peaks[0], &plan);
                found.parts.total()
            });
            found.collect::<Vec<u64>>()
        };
        let bytes = self.tiles.iter_mut().flat_map(bytes).collect();
        self.stages_of = plan.stages_of;
        Ok(bytes)
    }
}

impl TilesInLanes {
    /// The tiles that have a lane, with what counts in the stage.
    fn new(
        memory: &MemoryModel<'_>,
        plan: &StagesToCompute<'_>,
        (tiles, all): (&[u32], &StageScratch<i64, LANES>),
    ) -> Self {
        let positions = &plan.stages[0].positions;
        let flows = memory.flows.as_ref();
        let is_used = |number| flows.is_some_and(|flows| flows.is_used(number, positions));
        let counted = |number| plan.counts(memory.uses.known(number).counted);
        let counts = |number| counted(number) || is_used(number);
        let with_code = |&tile: &u32| (tile as usize, memory.code_on_tile(tile, positions));
        Self {
            tiles: tiles.iter().map(with_code).collect(),
            scratch: all.of_uses(counts),
        }
    }
}

impl MemoryModel<'_> {
    /// Of each stage the fullest of some tiles, the first of several, with its bytes.
    pub(crate) fn fullest_of(&self, stages: &[PlacedStage], tiles: &[u32]) -> Vec<(u32, u64)> {
        let plan = StagesToCompute::new(self, stages, Wanted::All);
        let in_lanes = |tiles: &[u32]| {
            let mut scratch = self.loaded(tiles);
            let peaks = self.peaks_of_loaded(&plan, &mut scratch, tiles.len());
            let by_tile = tiles.iter().copied().zip(peaks);
            by_tile.collect::<Vec<_>>()
        };
        let peaks: Vec<_> = tiles.par_chunks(LANES).flat_map_iter(in_lanes).collect();
        let fullest = |(number, stage): (usize, &PlacedStage)| {
            let bytes = |(tile, peaks): &(u32, Vec<StagePeak>)| {
                let code = self.code_on_tile(*tile, &stage.positions);
                let found = self.on_tile((*tile as usize, code), &peaks[number], &plan);
                (*tile, found.parts.total())
            };
            let found = peaks
                .iter()
                .map(bytes)
                .rev()
                .max_by_key(|(_, bytes)| *bytes);
            found.unwrap_or_default()
        };
        stages.iter().enumerate().map(fullest).collect()
    }

    /// As many tiles as have a lane, with everything that they have.
    fn loaded(&self, tiles: &[u32]) -> StageScratch<i64, LANES> {
        let mut scratch = StageScratch::default();
        scratch.uses.gather(self, tiles.iter().copied());
        self.load_additions(Wanted::All, &mut scratch);
        scratch
    }

    /// The code of a stage with these positions on one tile.
    fn code_on_tile(&self, tile: u32, positions: &Range<usize>) -> Parts {
        let code = self.code_on(tile..tile + 1, positions, self.rules == Rules::Full);
        code.first().copied().unwrap_or_default()
    }
}

/// The maximum that a stage frees where a position is recomputed, and not kept.
#[derive(Debug, Clone, Copy, Default)]
struct Freed {
    /// Bytes that it makes for the backward pass, with the copies that are stashed of them.
    made: u64,
    /// Bytes that it uses in the backward pass and does not run again from: copies are stashed of them.
    used: u64,
}

/// What positions free on one tile.
#[derive(Debug, Clone)]
pub(crate) struct FreedOnTile {
    pub(crate) tile: u32,
    of_positions: Vec<Freed>,
}

impl FreedOnTile {
    /// What the positions of `memory` free on a tile.
    pub(crate) fn new(memory: &MemoryModel<'_>, tile: u32) -> Self {
        let mut of_positions = vec![Freed::default(); memory.layers()];
        let flows = memory.flows.iter();
        let uses = flows.flat_map(|flows| {
            let uses = memory.uses.numbered_on_tile(tile);
            uses.map(move |(number, bytes)| (flows.kept(number), bytes))
        });
        for ((maker, users), bytes) in uses {
            if let Some(of_maker) = maker.and_then(|maker| of_positions.get_mut(maker as usize)) {
                of_maker.made += bytes;
            }
            for user in users {
                if let Some(of_user) = of_positions.get_mut(user as usize) {
                    of_user.used += bytes;
                }
            }
        }
        Self { tile, of_positions }
    }

    /// The bytes that a position of a stage frees at most which stashes so many more copies, with
    /// the fragmentation that comes with them.
    pub(crate) fn bytes(&self, memory: &MemoryModel<'_>, position: usize, copies: u64) -> u64 {
        let freed = self.of_positions[position];
        let bytes = (copies + 1) * freed.made + copies * freed.used;
        match bytes {
            0 => 0,
            // Fragmentation is rounded up.
            _ => {
                bytes
                    + memory
                        .overhead
                        .fragmentation(self.tile as usize, freed.made)
                    + 1
            }
        }
    }
}
