//! Which layers of each stage are kept whole, so that the least is recomputed (docs/model.md,
//! "Recomputation").
//!
//! A stage is computed as if all others were recomputed, and first on a few tiles: where
//! what is chosen does not fit on others, these count too, and it is chosen again.

mod branches;
#[cfg(test)]
mod tests;
pub(super) mod together;

use super::{CostedRequest, SearchError, SearchResult, SweepAnswer, free_bytes};
use crate::memory::{LayerChoice, MemoryModel, PlacedStage, Recompute, StageMemory, StageOnTiles};
use crate::model::TooManyPlaces;
use crate::progress::{self, Progress};
use crate::solve::{Problem, Solution};
use crate::time::StageTimes;
use branches::best;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::ops::Range;
use together::{CostsByChoice, Together, none_and_open};

/// In how many ways each stage is computed at most.
const MAX_TRIED: usize = 2_000;
/// For so many stages it is chosen at most until a split is found.
const MAX_CHOSEN: usize = 1_000;
/// So many stages are tried at most for each split on the way to the best.
const MAX_STAGES_TRIED: u64 = 100_000;
/// On so few tiles, stages are computed on all from the start.
const FEW_TILES: usize = 16;
/// On so many they are of more.
const FIRST_TILES: usize = 2;

/// Which layers are kept whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// By position.
    pub kept: Vec<bool>,
    /// Does no other choice that fits recompute less, in any stage?
    pub is_optimal: bool,
}

/// Does `memory` have a pipeline in which layers are chosen?
pub(super) fn is_chosen(memory: &MemoryModel<'_>) -> bool {
    let pipeline = memory.pipeline();
    pipeline.is_on() && memory.is_training() && pipeline.recompute == Recompute::Chosen
}

/// Chooses for the stages of what was `found`: those layers that recompute the least in each
/// stage. Takes what is found of them into `found`, and gives the model that has them; `None`
/// where that does not fit.
pub(super) fn choose<'a>(
    memory: &MemoryModel<'a>,
    found: &mut SearchResult,
) -> Result<Option<MemoryModel<'a>>, SearchError> {
    let mut chooser = Chooser::new(memory, found.costed.times.as_ref());
    let stages = PlacedStage::of_split(&found.stages).into_iter().enumerate();
    let stages = stages.map(|(ipu, stage)| (stage, found.costed.limit_of(ipu)));
    let stages: Vec<LimitedStage> = stages.collect();
    let split = chooser.split(&stages)?;
    if split
        .peaks()
        .zip(&stages)
        .any(|(peak, (_, limit))| peak > *limit)
    {
        return Ok(None);
    }
    let times = found.costed.times.as_ref();
    found.costed.times = times.map(|times| times.keeping(&split.chosen.kept));
    found.memory = split.stages;
    found.too_large.clear();
    found.chosen = Some(split.chosen);
    Ok(Some(split.memory))
}

/// The best split where it is found together with what is chosen for its stages: where the
/// goal is a time, and all IPUs have one limit. `None` for others, and where nothing fits.
pub(super) fn solve_together(
    costed: &CostedRequest,
    memory: &MemoryModel<'_>,
    progress: &Progress,
) -> Result<Option<Solution>, SearchError> {
    if !is_together(costed, memory) {
        return Ok(None);
    }
    with_together(costed, memory, progress, |together| {
        together.solution(&costed.problem(), MAX_STAGES_TRIED)
    })
}

/// Are splits found together with what is chosen for their stages?
fn is_together(costed: &CostedRequest, memory: &MemoryModel<'_>) -> bool {
    let has_one_limit = costed.request.limits.len() == 1;
    is_chosen(memory) && has_one_limit && costed.request.goal.needs_cycles()
}

/// Calls `search` with what is known of all ranges.
fn with_together<T>(
    costed: &CostedRequest,
    memory: &MemoryModel<'_>,
    progress: &Progress,
    search: impl FnOnce(&mut Together<'_, '_>) -> Result<Option<T>, SearchError>,
) -> Result<Option<T>, SearchError> {
    let Some(times) = &costed.times else {
        return Ok(None);
    };
    let limit = costed.request.highest_limit();
    let [none, open] = &none_and_open(memory)?;
    let wanted = [(none, limit), (open, limit)];
    let costs = MemoryModel::costs_in_all(&wanted, costed.ipus, progress)?;
    let _task = progress.begin("choosing what to recompute", progress::Unit::Rows, 0);
    let [none, open] = &costs[..] else {
        return Ok(None);
    };
    let costs = CostsByChoice {
        none,
        layer: &costed.costs,
        open,
    };
    search(&mut Together::new(
        memory,
        times,
        costs,
        (limit, MAX_CHOSEN),
    )?)
}

/// Puts what is chosen into the answers of a sweep that fit.
pub(super) fn choose_in_sweep(
    costed: &CostedRequest,
    memory: &MemoryModel<'_>,
    answers: &mut [SweepAnswer],
    progress: &Progress,
) -> Result<(), SearchError> {
    let fitting = answers.iter_mut().filter(|answer| answer.fits);
    if is_together(costed, memory) {
        let found = with_together(costed, memory, progress, |together| {
            for answer in fitting {
                let problem = Problem {
                    ipus: answer.ipus,
                    ..costed.problem()
                };
                if let Some(found) = together.best(&problem, MAX_STAGES_TRIED, |_| true)? {
                    let limit = costed.request.highest_limit();
                    answer.free = free_bytes(limit, found.split.score.peak);
                    answer.solution.plan = found.split.plan;
                    answer.solution.score = found.split.score;
                }
            }
            Ok(Some(()))
        });
        return found.map(drop);
    }
    let mut chooser = Chooser::new(memory, costed.times.as_ref());
    for answer in fitting {
        let stages = PlacedStage::of_split(answer.solution.plan.stages());
        let stages = stages.into_iter().enumerate();
        let stages = stages.map(|(ipu, stage)| (stage, costed.limit_of(ipu)));
        let stages: Vec<LimitedStage> = stages.collect();
        let split = chooser.split(&stages)?;
        let peaks: Vec<u64> = split.peaks().collect();
        let free = peaks.iter().zip(&stages);
        let free = free.map(|(&peak, (_, limit))| free_bytes(*limit, peak));
        answer.free = free.min().unwrap_or(0);
        let times = costed.times.as_ref();
        let times = times.map(|times| times.keeping(&split.chosen.kept));
        answer.solution.score =
            answer
                .solution
                .score
                .with(times.as_ref(), &answer.solution.plan, &peaks);
    }
    Ok(())
}

/// A stage, and the bytes that it may take on each tile.
type LimitedStage = (PlacedStage, u64);

/// The choice for one stage.
#[derive(Debug, Clone)]
struct StageChoice {
    /// By position of the stage.
    kept: Vec<bool>,
    /// Bytes on the fullest of the tiles that were looked at.
    peak: u64,
    /// The recomputation, and the least of any other choice that fits: in cycles or,
    /// without any, in layers.
    recomputed: u128,
    at_least: u128,
}

/// The knowledge of the choices for one stage.
#[derive(Debug, Clone)]
enum Tried {
    /// This one fits.
    Best(StageChoice),
    /// None fits.
    Impossible,
    /// None that was tried fits, though another may.
    GivenUp,
}

impl Tried {
    fn best(&self) -> Option<&StageChoice> {
        match self {
            Self::Best(choice) => Some(choice),
            Self::Impossible | Self::GivenUp => None,
        }
    }
}

/// A split with what is chosen for it.
struct ChosenSplit<'a> {
    memory: MemoryModel<'a>,
    stages: Vec<StageMemory>,
    chosen: Chosen,
}

impl ChosenSplit<'_> {
    /// Bytes on the fullest tile of each stage.
    fn peaks(&self) -> impl Iterator<Item = u64> {
        self.stages.iter().map(StageMemory::max_tile_bytes)
    }
}

/// The bytes of a stage that are freed on one tile by units that are recomputed and not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    /// By unit, at most.
    freed: Vec<u64>,
    /// The bytes that must be freed for the stage to fit.
    needed: u64,
}

/// Chooses the layers to recompute for stages.
struct Chooser<'m, 'a> {
    memory: &'m MemoryModel<'a>,
    times: Option<&'m StageTimes>,
    out: Option<usize>,
    /// The choice for positions of no stage.
    others: Vec<LayerChoice>,
    /// Where stages are computed.
    tiles: Vec<u32>,
    known: FxHashMap<LimitedStage, Tried>,
}

impl<'m, 'a> Chooser<'m, 'a> {
    fn new(memory: &'m MemoryModel<'a>, times: Option<&'m StageTimes>) -> Self {
        let out = memory.out();
        let mut others = vec![LayerChoice::Recomputed; memory.layers()];
        let of_out = others.iter_mut().skip(out.unwrap_or(usize::MAX));
        of_out.for_each(|choice| *choice = LayerChoice::Kept);
        let all = memory.heaviest_tiles(usize::MAX);
        let first = if all.len() <= FEW_TILES {
            FEW_TILES
        } else {
            FIRST_TILES
        };
        Self {
            memory,
            times,
            out,
            others,
            tiles: all.into_iter().take(first).collect(),
            known: FxHashMap::default(),
        }
    }

    /// Chooses for all stages of a split, of which each fits where each layer is recomputed.
    fn split(&mut self, stages: &[LimitedStage]) -> Result<ChosenSplit<'a>, TooManyPlaces> {
        let placed: Vec<PlacedStage> = stages.iter().map(|(stage, _)| stage.clone()).collect();
        loop {
            self.find(stages)?;
            let mut choices = self.others.clone();
            let mut kept = vec![false; choices.len()];
            let mut is_optimal = true;
            for stage in stages {
                let positions = stage.0.positions.clone();
                let Some(choice) = self.known.get(stage).and_then(Tried::best) else {
                    is_optimal = false;
                    continue;
                };
                is_optimal &= choice.recomputed == choice.at_least;
                for (position, &is_kept) in positions.zip(&choice.kept) {
                    kept[position] = is_kept;
                    if is_kept {
                        choices[position] = LayerChoice::Kept;
                    }
                }
            }
            let memory = self.memory.choosing(&choices)?;
            let computed = memory.placed_stages(&placed);
            if !self.takes_more_tiles(stages, &computed) {
                return Ok(ChosenSplit {
                    memory,
                    stages: computed,
                    chosen: Chosen { kept, is_optimal },
                });
            }
        }
    }

    /// Takes the fullest tiles of stages that do not fit, for which it must be chosen again.
    /// Are there any?
    fn takes_more_tiles(&mut self, stages: &[LimitedStage], computed: &[StageMemory]) -> bool {
        let over = stages.iter().zip(computed);
        let over = over.filter(|(stage, computed)| computed.max_tile_bytes() > stage.1);
        let over = over.map(|(stage, computed)| (stage, computed.max_tile() as u32));
        let over: Vec<_> = over.collect();
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
            if self.tiles.contains(&tile) || !is_chosen {
                self.known.insert(stage.clone(), Tried::Impossible);
            }
        }
        self.tiles.extend(over.into_iter().map(|(_, tile)| tile));
        self.tiles.sort_unstable();
        self.tiles.dedup();
        has_more
    }

    /// Chooses for stages that are not known yet.
    fn find(&mut self, stages: &[LimitedStage]) -> Result<(), TooManyPlaces> {
        let unknown = stages
            .par_iter()
            .filter(|stage| !self.known.contains_key(stage));
        let found = unknown.map(|stage| Ok((stage.clone(), self.choice(stage)?)));
        let found: Vec<_> = found.collect::<Result<_, TooManyPlaces>>()?;
        self.known.extend(found);
        Ok(())
    }

    /// The best choice for a stage.
    fn choice(&self, (stage, limit): &LimitedStage) -> Result<Tried, TooManyPlaces> {
        let units = units(self.times, self.out, &stage.positions);
        let mut on_tiles = StageOnTiles::new(self.memory, stage.clone());
        for &tile in &self.tiles {
            on_tiles.add(tile);
        }
        let rows = self.rows(&mut on_tiles, &units, (stage, *limit))?;
        let weights: Vec<u128> = units.iter().map(|unit| unit.weight).collect();
        let mut bytes = |states: &[LayerChoice]| {
            let peaks = on_tiles.peaks(&with(&self.others, &units, states))?;
            Ok(peaks.into_iter().max().unwrap_or(0))
        };
        let best = best(&weights, (*limit, &rows), MAX_TRIED, &mut bytes)?;
        let Some(is_kept) = best.kept else {
            return Ok(match best.is_complete {
                true => Tried::Impossible,
                false => Tried::GivenUp,
            });
        };
        let states = is_kept.iter().copied().map(LayerChoice::keeping);
        let states: Vec<LayerChoice> = states.collect();
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
            peak: bytes(&states)?,
            kept,
            recomputed: all - of_kept,
            at_least: all - of_kept.max(best.untried),
        }))
    }

    /// The bytes that each tile must have freed, and those that units free there.
    fn rows(
        &self,
        on_tiles: &mut StageOnTiles<'_, '_>,
        units: &[Unit],
        (stage, limit): (&PlacedStage, u64),
    ) -> Result<Vec<Row>, TooManyPlaces> {
        let all_kept = vec![LayerChoice::Kept; units.len()];
        let peaks = on_tiles.peaks(&with(&self.others, units, &all_kept))?;
        let start = stage.positions.start;
        let row = |(freed, peak): (Vec<u64>, u64)| {
            let places = |unit: &Unit| unit.positions.start - start..unit.positions.end - start;
            Row {
                freed: units
                    .iter()
                    .map(|unit| freed[places(unit)].iter().sum())
                    .collect(),
                needed: peak.saturating_sub(limit),
            }
        };
        let rows = on_tiles.freed().into_iter().zip(peaks).map(row);
        Ok(rows.filter(|row| row.needed > 0).collect())
    }
}

/// The choice for all positions, with the states of these units.
fn with(others: &[LayerChoice], units: &[Unit], states: &[LayerChoice]) -> Vec<LayerChoice> {
    let mut choices = others.to_vec();
    for (unit, &state) in units.iter().zip(states) {
        choices[unit.positions.clone()].fill(state);
    }
    choices
}

/// Positions that are kept or recomputed together.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unit {
    positions: Range<usize>,
    /// The saving where it is kept: cycles or, without any, layers.
    weight: u128,
}

/// The units of a stage: In with the first layer, and each other layer. Out is always kept.
/// From the last one on, since what a later layer keeps is free again when earlier ones run
/// their backward pass.
fn units(times: Option<&StageTimes>, out: Option<usize>, stage: &Range<usize>) -> Vec<Unit> {
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
