//! Splits that are found together with what is chosen for their stages.
//!
//! Two numbers are known of each range of layers: what it recomputes at least, and what it
//! does with a choice that is known to fit. The best split by the first is the best of all
//! where both are the same for its stages: so it is chosen only for stages of such splits.

use super::Chosen;
use super::bounds::TileBound;
use super::chooser::{Chooser, ChosenSplit, LimitedStage, Tried, Unit, beside_out, units};
use crate::memory::{ByDepth, LayerChoice, MemoryModel, PlacedStage, RangeCosts, Recompute};
use crate::model::TooManyPlaces;
use crate::search::SearchError;
use crate::solve::{self, Fitting, Objective, Problem, Score, Solution, StepProof};
use crate::time::StageTimes;
use rayon::prelude::*;
use std::ops::Range;

/// For so many ranges, by how many stages come after them, it is told from tiles what they
/// recompute at least.
const MAX_BOUNDED: usize = 1 << 18;
/// So many stages are tried for a split until all of its stages are chosen for.
const FIRST_TRIED: u64 = 20_000;

/// The costs of all ranges in one pipeline, up to a limit.
pub(in crate::search) struct CostsByChoice<'c> {
    /// Where nothing is recomputed.
    pub(in crate::search) none: &'c RangeCosts,
    /// Where each layer is.
    pub(in crate::search) layer: &'c RangeCosts,
    /// No more than with any choice of layers.
    pub(in crate::search) open: &'c RangeCosts,
}

/// Bytes and recomputed cycles of a range with so many stages after it.
type OfRange<'f> = dyn Fn(&Range<usize>, usize) -> (u64, u128) + 'f;

/// Bytes and cycles of all ranges.
pub(super) struct Side {
    pub(super) costs: RangeCosts,
    pub(super) times: StageTimes,
}

/// The search for splits in one pipeline that chooses.
pub(in crate::search) struct Together<'m, 'a> {
    pub(super) chooser: Chooser<'m, 'a>,
    /// The model where nothing is recomputed.
    none: &'m MemoryModel<'a>,
    /// How many of the tiles told what ranges recompute at least.
    bounded: usize,
    /// The least bytes and recomputation of ranges.
    pub(super) lower: Side,
    /// Their bytes and recomputation with a choice that fits.
    upper: Side,
    limit: u64,
    /// For how many stages it may still be chosen.
    left: usize,
}

/// A split, and what is chosen for it.
pub(in crate::search) struct Found {
    pub(in crate::search) split: Fitting,
    pub(in crate::search) chosen: Chosen,
    /// The bytes on the fullest tile of each stage.
    pub(in crate::search) peaks: Vec<u64>,
}

/// The models whose ranges must be computed beside those of `memory`, where layers are
/// chosen: nothing recomputed, and everything open.
pub(in crate::search) fn none_and_open<'a>(
    memory: &MemoryModel<'a>,
) -> Result<[MemoryModel<'a>; 2], SearchError> {
    let mut pipeline = memory.pipeline();
    pipeline.recompute = Recompute::None;
    Ok([memory.in_pipeline(pipeline)?, open(memory)?])
}

/// The model with everything open.
pub(in crate::search) fn open<'a>(
    memory: &MemoryModel<'a>,
) -> Result<MemoryModel<'a>, TooManyPlaces> {
    memory.choosing(&beside_out(memory, LayerChoice::Open))
}

impl<'m, 'a> Together<'m, 'a> {
    /// For `memory`, whose stages take `times` where each layer is recomputed, and no more
    /// than `limit` bytes on each tile; `none` is the model with nothing recomputed. Layers of `max_chosen` stages are chosen at most.
    pub(in crate::search) fn new(
        (memory, none): (&'m MemoryModel<'a>, &'m MemoryModel<'a>),
        times: &'m StageTimes,
        costs: CostsByChoice<'_>,
        (limit, max_chosen): (u64, usize),
    ) -> Result<Self, SearchError> {
        let chooser = Chooser::new(memory, Some(times));
        let stages = costs.open.stages().min(costs.open.layers());
        let side = |of: &OfRange<'_>| {
            let rows = (0..costs.open.layers()).map(|start| costs.open.least_from(start).to_vec());
            let rows: Vec<Vec<u64>> = rows.collect();
            let within = |range: Range<usize>, after: usize| {
                let found = of(&range, after);
                if found.0 <= limit {
                    found
                } else {
                    (u64::MAX, 0)
                }
            };
            let lengths = rows.iter().map(Vec::len);
            let known = ByDepth::new(lengths.clone(), stages, within);
            let at = |range: &Range<usize>, after| known.get(range, after).unwrap_or((u64::MAX, 0));
            Side {
                times: times.recomputing(lengths, stages, |range, after| at(&range, after).1),
                costs: RangeCosts::in_pipeline(rows.clone(), stages, |range, after| {
                    at(&range, after).0
                }),
            }
        };
        let fits = |costs: &RangeCosts, range: &Range<usize>, after| {
            costs
                .peak(range.clone(), after)
                .filter(|&peak| peak <= limit)
        };
        let lower = |range: &Range<usize>, after: usize| match (
            fits(costs.none, range, after),
            fits(costs.open, range, after),
        ) {
            (Some(kept), _) => (kept, 0),
            (None, Some(open)) => {
                let units = units(Some(times), chooser.out, range).into_iter();
                (open, units.map(|unit| unit.weight).min().unwrap_or(0))
            }
            (None, None) => (u64::MAX, 0),
        };
        let upper = |range: &Range<usize>, after: usize| match (
            fits(costs.none, range, after),
            fits(costs.layer, range, after),
        ) {
            (Some(kept), _) => (kept, 0),
            (None, Some(layer)) => (layer, times.forward_again(range)),
            (None, None) => (u64::MAX, 0),
        };
        let mut together = Self {
            lower: side(&lower),
            upper: side(&upper),
            chooser,
            none,
            bounded: 0,
            limit,
            left: max_chosen,
        };
        together.bound()?;
        Ok(together)
    }

    /// Raises what ranges recompute at least by tiles that were not looked at before.
    fn bound(&mut self) -> Result<(), TooManyPlaces> {
        let costs = &self.lower.costs;
        let ranges: Vec<Range<usize>> = costs.iter().map(|(range, _)| range).collect();
        let stages = costs.stages();
        if ranges.len().saturating_mul(stages) > MAX_BOUNDED {
            return Ok(());
        }
        for tile in self.bounded..self.chooser.tiles.len() {
            let tile = &self.chooser.tiles[tile];
            let (known, bound) = (&*self, &TileBound::new(self.none, tile, stages)?);
            let raised = ranges.par_iter().flat_map_iter(|range| {
                let units = units(known.chooser.times, known.chooser.out, range);
                let raised = move |after| known.raised((bound, &units), range, after);
                (0..stages).filter_map(raised)
            });
            for (stage, at_least) in raised.collect::<Vec<_>>() {
                self.lower.put(&stage, at_least);
            }
        }
        self.bounded = self.chooser.tiles.len();
        Ok(())
    }

    /// Bytes and recomputation at least of a range that was not chosen for, where a tile tells
    /// more than was known.
    fn raised(
        &self,
        (bound, units): (&TileBound<'_>, &[Unit]),
        range: &Range<usize>,
        after: usize,
    ) -> Option<(PlacedStage, (u64, u128))> {
        let peak = self.lower.costs.peak(range.clone(), after)?;
        let known = self.lower.times.stage(range, after)?.recomputed;
        let positions = range.clone();
        let after = Some(after);
        let limited = (PlacedStage { positions, after }, self.limit);
        if self.chooser.known.contains_key(&limited) {
            return None;
        }
        let recomputed = bound.recomputed(&self.chooser, units, &limited);
        let at_least = match recomputed {
            Some(recomputed) if recomputed <= known => return None,
            // Only that all is recomputed.
            Some(all) if all == self.lower.times.forward_again(range) => {
                let layer = self.upper.costs.peak(range.clone(), after?);
                (layer.unwrap_or(peak), all)
            }
            Some(recomputed) => (peak, recomputed),
            None => (u64::MAX, 0),
        };
        Some((limited.0, at_least))
    }

    /// The best split for `problem`, whose costs and times are not looked at; `None` where
    /// none is known that fits. What `is_wanted` is false for is not checked on all tiles.
    pub(in crate::search) fn best(
        &mut self,
        problem: &Problem<'_>,
        max_tried: u64,
        is_wanted: impl Fn(&Fitting) -> bool,
    ) -> Result<Option<Found>, SearchError> {
        let mut tried = FIRST_TRIED.min(max_tried);
        let mut last: Option<Fitting> = None;
        loop {
            let near = last.as_ref().map(|split| &split.plan);
            let lower = solve::quickest(&self.lower.problem(problem), tried, near)?;
            let Some(lower) = lower.filter(&is_wanted) else {
                return Ok(None);
            };
            last = Some(lower.clone());
            let open = self.open(&lower);
            if !open.is_empty() && self.left > 0 {
                self.choose(&open)?;
                continue;
            }
            let is_best = lower.step.is_none_or(|proof| proof.is_optimal);
            if !is_best && tried < max_tried {
                tried = max_tried;
                continue;
            }
            // Where it was given up for a stage, nothing of it is known to fit.
            let decided = Some(&lower).filter(|_| open.is_empty());
            let decided = decided.and_then(|split| self.known(problem, split.clone(), &lower));
            let is_decided = decided.is_some();
            let split = match decided {
                Some(split) => Some(split),
                None => {
                    let known = self.best_known(problem, max_tried)?;
                    known.and_then(|split| self.known(problem, split, &lower))
                }
            };
            let Some(split) = split.filter(&is_wanted) else {
                return Ok(None);
            };
            let Some(found) = self.verified(split.plan.stages())? else {
                continue;
            };
            let peaks: Vec<u64> = found.peaks().collect();
            let peak = peaks.iter().copied().max().unwrap_or(0);
            let score = Score {
                peak,
                ..split.score
            };
            let is_optimal = found.chosen.is_optimal && is_decided;
            let chosen = Chosen {
                is_optimal,
                ..found.chosen
            };
            return Ok(Some(Found {
                split: Fitting { score, ..split },
                chosen,
                peaks,
            }));
        }
    }

    /// The best of the splits that are known to fit.
    fn best_known(
        &mut self,
        problem: &Problem<'_>,
        max_tried: u64,
    ) -> Result<Option<Fitting>, SearchError> {
        let known = solve::quickest(&self.upper.problem(problem), max_tried, None)?;
        if let Some(known) = &known {
            self.choose(&self.open(known))?;
        }
        Ok(known)
    }

    /// A split with what its stages are known to take, where all take at least what `lower`
    /// does.
    fn known(&self, problem: &Problem<'_>, split: Fitting, lower: &Fitting) -> Option<Fitting> {
        let known = solve::rescored(&self.upper.problem(problem), split)?;
        let step = lower.step.map(|proof| StepProof {
            is_optimal: proof.is_optimal && known.score.step == lower.score.step,
            ..proof
        });
        Some(Fitting { step, ..known })
    }

    /// A split with what is chosen for its stages, on all tiles; `None` where that is something
    /// else than was known.
    fn verified(
        &mut self,
        stages: &[Range<usize>],
    ) -> Result<Option<ChosenSplit<'a>>, TooManyPlaces> {
        let stages = self.stages(stages);
        self.chooser.find(&stages)?;
        if self.take(&stages) {
            return Ok(None);
        }
        let found = self.chooser.verified(&stages)?;
        if found.is_none() {
            self.chooser.find(&stages)?;
            self.take(&stages);
            self.bound()?;
        }
        Ok(found)
    }

    /// The best split with the proofs of both programs, and what is chosen for it; `None` where
    /// none is known.
    pub(in crate::search) fn solution(
        &mut self,
        problem: &Problem<'_>,
    ) -> Result<Option<(Solution, Chosen)>, SearchError> {
        let Some(found) = self.best(problem, solve::MAX_TRIED, |_| true)? else {
            return Ok(None);
        };
        let side = match found.chosen.is_optimal {
            true => &self.lower,
            false => &self.upper,
        };
        let problem = side.problem(problem);
        let known = solve::rescored(&problem, found.split.clone());
        let is_of_all_tiles = known.is_some_and(|known| known.score == found.split.score);
        let solution = solve::proven(&problem, found.split)?;
        let solution = solution.map(|solution| match is_of_all_tiles {
            true => solution,
            false => without_peaks(solution),
        });
        Ok(solution.map(|solution| (solution, found.chosen)))
    }

    fn stages(&self, stages: &[Range<usize>]) -> Vec<LimitedStage> {
        let stages = PlacedStage::of_split(stages).into_iter();
        stages.map(|stage| (stage, self.limit)).collect()
    }

    /// The stages of a split of which it is not known what they recompute at least.
    fn open(&self, split: &Fitting) -> Vec<LimitedStage> {
        let is_open = |limited: &LimitedStage| {
            let stage = &limited.0;
            let (range, after) = (&stage.positions, stage.after.unwrap_or(0));
            let cycles = |side: &Side| side.times.cycles(range, after);
            let is_known = self.upper.costs.peak(range.clone(), after).is_some();
            let is_closed = is_known && cycles(&self.lower) == cycles(&self.upper);
            !is_closed && !self.chooser.known.contains_key(limited)
        };
        let stages = self.stages(split.plan.stages()).into_iter();
        stages.filter(is_open).collect()
    }

    /// Chooses for stages.
    fn choose(&mut self, stages: &[LimitedStage]) -> Result<(), TooManyPlaces> {
        self.left = self.left.saturating_sub(stages.len());
        self.chooser.find(stages)?;
        self.take(stages);
        Ok(())
    }

    /// Takes what is known of stages. Do they recompute something else than was known before?
    fn take(&mut self, stages: &[LimitedStage]) -> bool {
        let mut is_new = false;
        for stage in stages {
            let (at_least, known) = match self.chooser.known.get(stage) {
                Some(Tried::Best(choice)) => (
                    (choice.peak, choice.at_least),
                    (choice.peak, choice.recomputed),
                ),
                Some(Tried::Impossible) => ((u64::MAX, 0), (u64::MAX, 0)),
                // Something that was not tried may fit.
                Some(Tried::GivenUp) | None => continue,
            };
            is_new |= self.lower.put(&stage.0, at_least);
            is_new |= self.upper.put(&stage.0, known);
        }
        is_new
    }
}

/// A solution without the proofs of peaks, which are those of the tiles that were looked at.
fn without_peaks(mut solution: Solution) -> Solution {
    let is_of_peaks = |objective| matches!(objective, Objective::Peak | Objective::Squares);
    let (proofs, bottlenecks) = (&mut solution.proofs, &mut solution.bottlenecks);
    proofs.retain(|proof| !is_of_peaks(proof.objective));
    bottlenecks.retain(|proof| !is_of_peaks(proof.objective));
    solution
}

impl Side {
    fn problem<'p>(&'p self, problem: &Problem<'p>) -> Problem<'p> {
        Problem {
            costs: &self.costs,
            times: Some(&self.times),
            ..*problem
        }
    }

    /// Puts bytes and recomputed cycles in place of those of a stage. Are the cycles others, or
    /// does it fit no more?
    fn put(&mut self, stage: &PlacedStage, (peak, recomputed): (u64, u128)) -> bool {
        let (range, after) = (&stage.positions, stage.after.unwrap_or(0));
        let known = |side: &Self| {
            side.costs.peak(range.clone(), after)?;
            side.times.cycles(range, after)
        };
        let before = known(self);
        // On a few tiles it is less than what is known to be needed.
        let least = self.costs.peak(range.clone(), after).unwrap_or(0);
        self.costs.put(range, after, peak.max(least));
        self.times.recompute(range, after, recomputed);
        before != known(self)
    }
}
