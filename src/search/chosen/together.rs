//! Splits that are found together with what is chosen for their stages.
//!
//! Two numbers are known of each range of layers: what it recomputes at least, and what it
//! does with a choice that is known to fit. The best split by the first is the best of all
//! where both are the same for its stages: so it is chosen only for stages of such splits.

use super::branches::SortedRow;
use super::{Chooser, Chosen, LimitedStage, Row, Tried, units};
use crate::memory::{ByDepth, Freed, LayerChoice, MemoryModel, PlacedStage, RangeCosts, Recompute};
use crate::model::TooManyPlaces;
use crate::search::SearchError;
use crate::search::alternatives::in_other;
use crate::solve::{self, Fitting, Objective, Problem, Score, Solution, StepProof};
use crate::time::StageTimes;
use std::ops::Range;

/// For so many ranges, by how many stages come after them, it is told from tiles what they
/// recompute at least.
const MAX_BOUNDED: usize = 1 << 18;

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
    chooser: Chooser<'m, 'a>,
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
    let mut open = vec![LayerChoice::Open; memory.layers()];
    let of_out = open.iter_mut().skip(memory.out().unwrap_or(usize::MAX));
    of_out.for_each(|choice| *choice = LayerChoice::Kept);
    Ok([in_other(memory, pipeline)?, memory.choosing(&open)?])
}

impl<'m, 'a> Together<'m, 'a> {
    /// For `memory`, whose stages take `times` where each layer is recomputed, and no more
    /// than `limit` bytes on each tile. Layers of `max_chosen` stages are chosen at most.
    pub(in crate::search) fn new(
        memory: &'m MemoryModel<'a>,
        times: &'m StageTimes,
        costs: CostsByChoice<'_>,
        (limit, max_chosen): (u64, usize),
    ) -> Result<Self, SearchError> {
        let chooser = Chooser::new(memory, Some(times));
        let stages = costs.open.stages().min(costs.open.layers());
        let bounds = Bounds::new(&chooser, (limit, stages), costs.open)?;
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
        let lower = |range: &Range<usize>, after: usize| {
            match (
                fits(costs.none, range, after),
                fits(costs.open, range, after),
            ) {
                (Some(kept), _) => (kept, 0),
                (None, Some(open)) => match bounds.recomputed(&chooser, range, after) {
                    // Only that all is recomputed.
                    Some(all) if all == times.forward_again(range) => {
                        (fits(costs.layer, range, after).unwrap_or(open), all)
                    }
                    Some(recomputed) => (open, recomputed),
                    None => (u64::MAX, 0),
                },
                (None, None) => (u64::MAX, 0),
            }
        };
        let upper = |range: &Range<usize>, after: usize| match (
            fits(costs.none, range, after),
            fits(costs.layer, range, after),
        ) {
            (Some(kept), _) => (kept, 0),
            (None, Some(layer)) => (layer, times.forward_again(range)),
            (None, None) => (u64::MAX, 0),
        };
        Ok(Self {
            lower: side(&lower),
            upper: side(&upper),
            chooser,
            limit,
            left: max_chosen,
        })
    }

    /// The best split for `problem`, whose costs and times are not looked at; `None` where
    /// none is known that fits. What `is_wanted` is false for is not checked on all tiles.
    pub(in crate::search) fn best(
        &mut self,
        problem: &Problem<'_>,
        max_tried: u64,
        is_wanted: impl Fn(&Fitting) -> bool,
    ) -> Result<Option<Found>, SearchError> {
        loop {
            let lower = solve::quickest(&self.lower.problem(problem), max_tried)?;
            let Some(lower) = lower.filter(&is_wanted) else {
                return Ok(None);
            };
            let open = self.open(&lower);
            if !open.is_empty() && self.left > 0 {
                self.choose(&open)?;
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
            let stages = self.stages(split.plan.stages());
            let found = self.chooser.split(&stages)?;
            if self.take(&stages) {
                continue;
            }
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
        let known = solve::quickest(&self.upper.problem(problem), max_tried)?;
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

    /// The best split with the proofs of both programs; `None` where none is known.
    pub(in crate::search) fn solution(
        &mut self,
        problem: &Problem<'_>,
        max_tried: u64,
    ) -> Result<Option<Solution>, SearchError> {
        loop {
            let Some(found) = self.best(problem, max_tried, |_| true)? else {
                return Ok(None);
            };
            let side = match found.chosen.is_optimal {
                true => &self.lower,
                false => &self.upper,
            };
            let Some(solution) = solve::solve(&side.problem(problem))? else {
                return Ok(None);
            };
            let stages = self.stages(solution.plan.stages());
            let split = self.chooser.split(&stages)?;
            if self.take(&stages) {
                continue;
            }
            let step = match found.chosen.is_optimal {
                true => solution.step,
                false => found.split.step,
            };
            let peak = split.peaks().max().unwrap_or(0);
            return Ok(Some(Solution {
                step,
                ..on_all_tiles(solution, peak)
            }));
        }
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

/// A solution with the peak of all tiles. Where that of those that were looked at is less, it
/// proves nothing of peaks.
fn on_all_tiles(mut solution: Solution, peak: u64) -> Solution {
    if peak != solution.score.peak {
        let is_of_peaks = |objective| matches!(objective, Objective::Peak | Objective::Squares);
        solution
            .proofs
            .retain(|proof| !is_of_peaks(proof.objective));
        solution
            .bottlenecks
            .retain(|proof| !is_of_peaks(proof.objective));
        solution.score.peak = peak;
    }
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
        self.costs.put(range, after, peak);
        self.times.recompute(range, after, recomputed);
        before != known(self)
    }
}

/// The numbers that bound the recomputation of ranges from below.
struct Bounds {
    limit: u64,
    tiles: Vec<TileBound>,
}

/// One tile.
struct TileBound {
    tile: usize,
    /// The costs of ranges where nothing is recomputed.
    kept: RangeCosts,
    /// By position.
    freed: Vec<Freed>,
}

impl Bounds {
    fn new(
        chooser: &Chooser<'_, '_>,
        (limit, stages): (u64, usize),
        open: &RangeCosts,
    ) -> Result<Self, SearchError> {
        let memory = chooser.memory;
        let [none, _] = none_and_open(memory)?;
        let count = open.iter().count().saturating_mul(stages);
        let tiles = if count <= MAX_BOUNDED {
            &chooser.tiles[..]
        } else {
            &[]
        };
        let bound = |&tile: &u32| {
            Ok(TileBound {
                tile: tile as usize,
                kept: none.costs_on_tile(tile, stages)?,
                freed: memory.freed_by_position(memory.numbered_on_tile(tile)),
            })
        };
        let tiles = tiles
            .iter()
            .map(bound)
            .collect::<Result<_, TooManyPlaces>>()?;
        Ok(Self { limit, tiles })
    }

    /// The least recomputation of a range that does not fit where nothing is recomputed;
    /// `None` where it never fits.
    fn recomputed(
        &self,
        chooser: &Chooser<'_, '_>,
        range: &Range<usize>,
        after: usize,
    ) -> Option<u128> {
        let units = units(chooser.times, chooser.out, range);
        let weights: Vec<u128> = units.iter().map(|unit| unit.weight).collect();
        let stage = PlacedStage {
            positions: range.clone(),
            after: Some(after),
        };
        let copies = chooser
            .memory
            .copies(&stage)
            .map_or(0, |(copies, _)| copies);
        let all: u128 = weights.iter().sum();
        let mut kept = all - weights.iter().min()?;
        let open = vec![LayerChoice::Open; units.len()];
        for bound in &self.tiles {
            let peak = bound.kept.peak(range.clone(), after).unwrap_or(0);
            let needed = peak.saturating_sub(self.limit);
            if needed > 0 {
                let freed = |position: usize| {
                    chooser
                        .memory
                        .freed_on(bound.tile, &bound.freed[position], copies)
                };
                let row = Row {
                    freed: units
                        .iter()
                        .map(|unit| unit.positions.clone().map(freed).sum())
                        .collect(),
                    needed,
                };
                kept = kept.min(SortedRow::new(&row, &weights).room(&open, 0)?);
            }
        }
        Some(all - kept)
    }
}
