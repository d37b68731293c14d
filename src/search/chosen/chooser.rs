//! The choice for the stages of a split.

use super::Chosen;
use super::branches::{Row, best};
use crate::memory::{
    FreedOnTile, GatheredTiles, LayerChoice, MemoryModel, PlacedStage, StageMemory, StageOnTiles,
};
use crate::model::TooManyPlaces;
use crate::time::StageTimes;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::OnceLock;

/// In how many ways each stage is computed at most.
pub(super) const MAX_TRIED: usize = 2_000;
/// On so few tiles, stages are computed on all from the start.
const FEW_TILES: usize = 16;
/// On so many they are of more.
const FIRST_TILES: usize = 2;

/// A stage, and the bytes that it may take on each tile.
pub(super) type LimitedStage = (PlacedStage, u64);

/// The choice for one stage.
#[derive(Debug, Clone)]
pub(super) struct StageChoice {
    /// By position of the stage.
    pub(super) kept: Vec<bool>,
    /// Bytes on the fullest of the tiles that were looked at.
    pub(super) peak: u64,
    /// The recomputation, and the least of any other choice that fits: in cycles or,
    /// without any, in layers.
    pub(super) recomputed: u128,
    pub(super) at_least: u128,
    /// How many tiles were looked at; `usize::MAX` for all.
    tiles: usize,
}

/// The knowledge of the choices for one stage.
#[derive(Debug, Clone)]
pub(super) enum Tried {
    /// This one fits.
    Best(StageChoice),
    /// None fits.
    Impossible,
    /// None that was tried fits, though another may.
    GivenUp,
}

impl Tried {
    pub(super) fn best(&self) -> Option<&StageChoice> {
        match self {
            Self::Best(choice) => Some(choice),
            Self::Impossible | Self::GivenUp => None,
        }
    }
}

/// A split with what is chosen for it.
pub(super) struct ChosenSplit<'a> {
    pub(super) memory: MemoryModel<'a>,
    pub(super) stages: Vec<StageMemory>,
    pub(super) chosen: Chosen,
}

impl ChosenSplit<'_> {
    /// Bytes on the fullest tile of each stage.
    pub(super) fn peaks(&self) -> impl Iterator<Item = u64> {
        self.stages.iter().map(StageMemory::max_tile_bytes)
    }
}

/// Chooses the layers to recompute for stages.
pub(super) struct Chooser<'m, 'a> {
    pub(super) memory: &'m MemoryModel<'a>,
    pub(super) times: Option<&'m StageTimes>,
    pub(super) out: Option<usize>,
    /// The choice for positions of no stage.
    pub(super) others: Vec<LayerChoice>,
    /// Where stages are computed.
    pub(super) tiles: Vec<FreedOnTile>,
    /// What these have, once it is needed.
    gathered: OnceLock<GatheredTiles>,
    /// Where splits are looked at before they are on all tiles.
    heaviest: Vec<u32>,
    pub(super) known: FxHashMap<LimitedStage, Tried>,
}

impl<'m, 'a> Chooser<'m, 'a> {
    pub(super) fn new(memory: &'m MemoryModel<'a>, times: Option<&'m StageTimes>) -> Self {
        let out = memory.out();
        let all = memory.heaviest_tiles(usize::MAX);
        let first = if all.len() <= FEW_TILES {
            FEW_TILES
        } else {
            FIRST_TILES
        };
        let few = MemoryModel::few_of(all.len());
        let new = |&tile: &u32| FreedOnTile::new(memory, tile);
        Self {
            memory,
            times,
            out,
            others: beside_out(memory, LayerChoice::Recomputed),
            tiles: all.iter().take(first).map(new).collect(),
            gathered: OnceLock::new(),
            heaviest: all.into_iter().take(few).collect(),
            known: FxHashMap::default(),
        }
    }

    /// Chooses for all stages of a split. Of one for which nothing that was tried fits, each
    /// layer is recomputed.
    pub(super) fn split(
        &mut self,
        stages: &[LimitedStage],
    ) -> Result<ChosenSplit<'a>, TooManyPlaces> {
        loop {
            self.find(stages)?;
            if let Some(found) = self.verified(stages)? {
                return Ok(found);
            }
        }
    }

    /// A split with what is known of all its stages, on all tiles; `None` where more tiles
    /// count now, and it must be chosen again.
    pub(super) fn verified(
        &mut self,
        stages: &[LimitedStage],
    ) -> Result<Option<ChosenSplit<'a>>, TooManyPlaces> {
        let mut kept = vec![false; self.others.len()];
        let mut is_optimal = true;
        for stage in stages {
            let Some(choice) = self.known.get(stage).and_then(Tried::best) else {
                is_optimal = false;
                continue;
            };
            is_optimal &= choice.recomputed == choice.at_least;
            kept[stage.0.positions.clone()].copy_from_slice(&choice.kept);
        }
        let memory = self.keeping(&kept)?;
        let placed: Vec<PlacedStage> = stages.iter().map(|(stage, _)| stage.clone()).collect();
        // What does not fit mostly does not on one of the heaviest tiles.
        let heaviest = memory.fullest_of(&placed, &self.heaviest);
        if self.takes_more_tiles(stages, &heaviest) {
            return Ok(None);
        }
        let split = ChosenSplit {
            stages: memory.placed_stages(&placed),
            memory,
            chosen: Chosen { kept, is_optimal },
        };
        let fullest = split.stages.iter().map(|stage| stage.max_tile() as u32);
        let computed: Vec<(u32, u64)> = fullest.zip(split.peaks()).collect();
        let has_more = self.takes_more_tiles(stages, &computed);
        for (stage, (_, bytes)) in stages.iter().zip(&computed) {
            if let Some(Tried::Best(choice)) = self.known.get_mut(stage)
                && *bytes <= stage.1
            {
                choice.tiles = usize::MAX;
            }
        }
        Ok((!has_more).then_some(split))
    }

    /// The model where this is kept.
    pub(super) fn keeping(&self, kept: &[bool]) -> Result<MemoryModel<'a>, TooManyPlaces> {
        self.memory.choosing(&self.choices(0, kept))
    }

    /// The choice for all positions where of these, from the first one on, some are kept.
    fn choices(&self, first: usize, kept: &[bool]) -> Vec<LayerChoice> {
        let mut choices = self.others.clone();
        let kept = choices[first..].iter_mut().zip(kept);
        let kept = kept.filter(|(_, is_kept)| **is_kept);
        kept.for_each(|(choice, _)| *choice = LayerChoice::Kept);
        choices
    }

    /// Takes the fullest tiles of stages that do not fit, for which it must be chosen again.
    /// Are there any?
    fn takes_more_tiles(&mut self, stages: &[LimitedStage], computed: &[(u32, u64)]) -> bool {
        let over = stages.iter().zip(computed);
        let over = over.filter(|(stage, (_, bytes))| *bytes > stage.1);
        let over: Vec<_> = over.map(|(stage, (tile, _))| (stage, *tile)).collect();
        let mut has_more = false;
        for &(stage, tile) in &over {
            let is_chosen = match self.known.remove(stage) {
                Some(Tried::GivenUp) => {
                    self.known.insert(stage.clone(), Tried::GivenUp);
                    continue;
                }
                before => matches!(before, Some(Tried::Best(_))),
            };
            has_more |= is_chosen;
            // Where the tile was looked at, other stages have what was not counted.
            if self.looks_at(tile) || !is_chosen {
                self.known.insert(stage.clone(), Tried::Impossible);
            }
        }
        for (_, tile) in over {
            if !self.looks_at(tile) {
                self.tiles.push(FreedOnTile::new(self.memory, tile));
                self.gathered = OnceLock::new();
            }
        }
        has_more
    }

    fn looks_at(&self, tile: u32) -> bool {
        self.tiles.iter().any(|known| known.tile == tile)
    }

    /// Chooses for stages that are not known yet, or for which more tiles count now.
    pub(super) fn find(&mut self, stages: &[LimitedStage]) -> Result<(), TooManyPlaces> {
        let is_known = |stage: &LimitedStage| match self.known.get(stage) {
            Some(Tried::Best(choice)) => choice.tiles >= self.tiles.len(),
            other => other.is_some(),
        };
        let unknown = stages.par_iter().filter(|stage| !is_known(stage));
        let found = unknown.map(|stage| {
            let known = self.known.get(stage).and_then(Tried::best);
            let known = known.map(|choice| self.still_best(stage, choice));
            let found = match known.transpose()?.flatten() {
                Some(choice) => Tried::Best(choice),
                None => self.choice(stage)?,
            };
            Ok((stage.clone(), found))
        });
        let found: Vec<_> = found.collect::<Result<_, TooManyPlaces>>()?;
        self.known.extend(found);
        Ok(())
    }

    /// The best choice for a stage on fewer tiles, if it fits on those that count now too.
    fn still_best(
        &self,
        (stage, limit): &LimitedStage,
        choice: &StageChoice,
    ) -> Result<Option<StageChoice>, TooManyPlaces> {
        let kept = self.choices(stage.positions.start, &choice.kept);
        let mut on_tiles = StageOnTiles::new(self.memory, stage.clone(), self.gathered());
        let peak = on_tiles.peaks(&kept)?.into_iter().max().unwrap_or(0);
        Ok((peak <= *limit).then(|| StageChoice {
            peak,
            tiles: self.tiles.len(),
            ..choice.clone()
        }))
    }

    /// What the tiles have that count now.
    fn gathered(&self) -> &GatheredTiles {
        self.gathered.get_or_init(|| {
            let tiles: Vec<u32> = self.tiles.iter().map(|tile| tile.tile).collect();
            GatheredTiles::new(self.memory, &tiles)
        })
    }

    /// The best choice for a stage.
    pub(super) fn choice(&self, (stage, limit): &LimitedStage) -> Result<Tried, TooManyPlaces> {
        let units = units(self.times, self.out, &stage.positions);
        let mut on_tiles = StageOnTiles::new(self.memory, stage.clone(), self.gathered());
        let rows = self.rows(&mut on_tiles, &units, (stage, *limit))?;
        let weights: Vec<u128> = units.iter().map(|unit| unit.weight).collect();
        let bytes = |states: &[LayerChoice]| {
            let peaks = on_tiles.peaks(&with(&self.others, &units, states))?;
            Ok(peaks.into_iter().max().unwrap_or(0))
        };
        let best = best(&weights, (*limit, &rows), MAX_TRIED, bytes)?;
        let Some((is_kept, peak)) = best.kept else {
            return Ok(match best.is_complete {
                true => Tried::Impossible,
                false => Tried::GivenUp,
            });
        };
        let mut kept = vec![false; stage.positions.len()];
        for (unit, &is_kept) in units.iter().zip(&is_kept) {
            let first = unit.positions.start - stage.positions.start;
            kept[first..first + unit.positions.len()].fill(is_kept);
        }
        let of_kept = weights
            .iter()
            .zip(&is_kept)
            .filter(|(_, is_kept)| **is_kept);
        let of_kept: u128 = of_kept.map(|(weight, _)| weight).sum();
        let all: u128 = weights.iter().sum();
        Ok(Tried::Best(StageChoice {
            peak,
            kept,
            recomputed: all - of_kept,
            at_least: all - of_kept.max(best.untried),
            tiles: self.tiles.len(),
        }))
    }

    /// The bytes that each tile must have freed, and those that units free there.
    fn rows(
        &self,
        on_tiles: &mut StageOnTiles<'_>,
        units: &[Unit],
        (stage, limit): (&PlacedStage, u64),
    ) -> Result<Vec<Row>, TooManyPlaces> {
        let all_kept = vec![LayerChoice::Kept; units.len()];
        let peaks = on_tiles.peaks(&with(&self.others, units, &all_kept))?;
        let tiles = self.tiles.iter().zip(peaks);
        let rows = tiles.map(|(tile, peak)| Row {
            freed: self.freed(tile, units, stage),
            needed: peak.saturating_sub(limit),
        });
        Ok(rows.filter(|row| row.needed > 0).collect())
    }

    /// By unit of a stage, what it frees at most on a tile where it is recomputed.
    pub(super) fn freed(
        &self,
        tile: &FreedOnTile,
        units: &[Unit],
        stage: &PlacedStage,
    ) -> Vec<u64> {
        let copies = self.memory.copies(stage);
        let copies = copies.map_or(0, |(copies, _)| copies);
        let of_position = |position| tile.bytes(self.memory, position, copies);
        let units = units.iter();
        let of_units = units.map(|unit| unit.positions.clone().map(of_position).sum());
        of_units.collect()
    }
}

/// This choice for all positions but Out, which is always kept.
pub(super) fn beside_out(memory: &MemoryModel<'_>, choice: LayerChoice) -> Vec<LayerChoice> {
    let mut choices = vec![choice; memory.layers()];
    let of_out = choices.iter_mut().skip(memory.out().unwrap_or(usize::MAX));
    of_out.for_each(|choice| *choice = LayerChoice::Kept);
    choices
}

/// The choice for all positions, with the states of these units.
pub(super) fn with(
    others: &[LayerChoice],
    units: &[Unit],
    states: &[LayerChoice],
) -> Vec<LayerChoice> {
    let mut choices = others.to_vec();
    for (unit, &state) in units.iter().zip(states) {
        choices[unit.positions.clone()].fill(state);
    }
    choices
}

/// Positions that are kept or recomputed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) positions: Range<usize>,
    /// The saving where it is kept: cycles or, without any, layers.
    pub(super) weight: u128,
}

/// The units of a stage: In with the first layer, and each other layer. Out is always kept.
/// From the last one on, since what a later layer keeps is free again when earlier ones run
/// their backward pass.
pub(super) fn units(
    times: Option<&StageTimes>,
    out: Option<usize>,
    stage: &Range<usize>,
) -> Vec<Unit> {
    let with_in = stage.start == 0 && stage.len() > 1 && out != Some(1);
    let first = stage.start..stage.start + if with_in { 2 } else { 1 };
    let others = (first.end..stage.end).map(|position| position..position + 1);
    let units = [first].into_iter().chain(others);
    let units = units.filter(|positions| Some(positions.start) != out);
    let units = units.map(|positions| Unit {
        weight: times.map_or(1, |times| times.forward_again(&positions)),
        positions,
    });
    let mut units: Vec<Unit> = units.collect();
    units.reverse();
    units
}
