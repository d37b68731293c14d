//! The costs of the ranges of one choice of layers in every pipeline, and the best split of each.
//!
//! A run answers many requests about one model: the user's own, and changed ones for what is said
//! beside it. They differ in limits, IPUs, constraints and open pipelines, which do not change the
//! costs of ranges. So [`Space`] computes costs once for each pipeline, and again only if a request
//! needs ranges with more bytes or splits with more stages.
//!
//! Few tiles decide which split is the best. So ranges are first computed on some *critical* tiles:
//! the best split by these costs is no worse than the best one, and if nothing fits by them, nothing
//! fits. If the stages of the split need no more bytes on any tile than on the critical ones, it is
//! the best one. Otherwise the fullest tiles of its stages become critical, and the search begins
//! again in those pipelines in which anything fits so far.

use super::candidate::Candidate;
use super::error::SearchError;
use super::pipeline_costs::{PipelineCosts, Question};
use super::request::{IpuCount, SearchRequest};
use crate::memory::{MemoryModel, Pipeline, PlacedStage, RangeCosts};
use crate::model::{CyclesByLayer, Placement};
use crate::progress::Progress;
use crate::solve::{self, Plan, Solution, SolveError};
use crate::time::{StageTimes, StepOptions};
use rayon::prelude::*;
use std::cell::{OnceCell, RefCell};
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Maximum number of range costs (8 bytes each: one range with one number of later stages) that are
/// kept at a time, over all pipelines.
const MAX_NUMBERS: usize = 1 << 25;

/// The ranges of layers for which costs are computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reach {
    /// Upper bound on the bytes on the fullest tile of a range.
    pub bytes: u64,
    /// Upper bound on the stages of a split: a stage may need more bytes the more stages come after
    /// it.
    pub stages: usize,
}

impl Reach {
    fn covers(self, other: Self) -> bool {
        self.bytes >= other.bytes && self.stages >= other.stages
    }

    fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.max(other.bytes),
            stages: self.stages.max(other.stages),
        }
    }
}

/// If more than one in this number of tiles is critical, ranges are computed on all tiles: one pass
/// over neighbouring tiles takes less time than several over single ones.
const TILES_OF_A_CRITICAL_ONE: usize = 4;

/// With at most this number of positions, ranges on all tiles are computed in about the same time as
/// the stages of one split.
const FEW_POSITIONS: usize = 32;

/// The number of critical tiles in [`Computed::tiles`] if costs are those of all tiles.
const ALL_TILES: usize = usize::MAX;

/// A model with one choice of layers, and what was computed about it so far.
#[derive(Debug)]
pub struct Space<'a> {
    /// The memory model without a pipeline.
    memory: MemoryModel<'a>,
    placement: &'a Placement,
    /// Cycles by position (In, layers, Out); `None` if the profile has none.
    cycles: Option<CyclesByLayer>,
    step: StepOptions,
    cut_bytes: Arc<[u64]>,
    has_state: OnceCell<bool>,
    /// The critical tiles, in the order in which they were found.
    critical: RefCell<Vec<u32>>,
    computed: RefCell<Vec<Computed<'a>>>,
    solved: RefCell<Vec<Solved>>,
}

/// The costs of ranges in one pipeline.
#[derive(Debug)]
struct Computed<'a> {
    pipeline: Pipeline,
    memory: Arc<MemoryModel<'a>>,
    times: Option<Arc<StageTimes>>,
    ranges: Arc<RangeCosts>,
    reach: Reach,
    /// The number of critical tiles, the first ones, on which `ranges` was computed; [`ALL_TILES`]
    /// for all tiles of the model.
    tiles: usize,
    /// The fullest tile of stages, and its bytes.
    fullest: HashMap<PlacedStage, (u32, u64)>,
}

/// The best split that fits in one of some pipelines, for one request.
#[derive(Debug)]
struct Solved {
    pipelines: Vec<Pipeline>,
    question: Arc<Question>,
    best: Option<Candidate>,
}

impl Solved {
    /// Returns the answer to `question` in one of `pipelines`, if it follows from this one: the
    /// request is the same but for fewer pipelines, not without that of the best split, or fewer
    /// IPUs, without those that the best split leaves empty.
    fn answer(&self, question: &Question, pipelines: &[Pipeline]) -> Option<Option<Candidate>> {
        let best = self.best.as_ref();
        let has_all = pipelines.iter().all(|one| self.pipelines.contains(one))
            && best.is_none_or(|best| pipelines.contains(&best.pipeline));
        if !has_all || !self.question.is_alike(question) {
            return None;
        }
        let (IpuCount::Exactly(mine), IpuCount::Exactly(asked)) =
            (self.question.request.ipus, question.request.ipus)
        else {
            let is_same = self.question.request.ipus == question.request.ipus;
            return is_same.then(|| self.best.clone());
        };
        match &self.best {
            _ if asked > mine => None,
            None => Some(None),
            Some(best) => {
                let ipus = asked / best.replicas;
                let is_enough = best.solution.score.stages <= ipus;
                is_enough.then(|| {
                    Some(Candidate {
                        ipus,
                        ..best.clone()
                    })
                })
            }
        }
    }
}

impl<'a> Space<'a> {
    /// Prepares the model of `memory`, which has no pipeline. `step` has the numbers beside the
    /// cycles of layers that times depend on.
    pub fn new(
        memory: MemoryModel<'a>,
        placement: &'a Placement,
        cycles: Option<CyclesByLayer>,
        step: StepOptions,
    ) -> Self {
        let fullest = memory.recorded_fullest_tile().map(|(tile, _)| tile);
        Self {
            cut_bytes: memory.cut_bytes().into(),
            memory,
            placement,
            cycles,
            step,
            has_state: OnceCell::new(),
            critical: RefCell::new(fullest.into_iter().collect()),
            computed: RefCell::default(),
            solved: RefCell::default(),
        }
    }

    /// Returns the cycles by position (In, layers, Out); `None` if the profile has none.
    pub fn cycles(&self) -> Option<&CyclesByLayer> {
        self.cycles.as_ref()
    }

    /// Returns the memory model without a pipeline.
    pub fn memory(&self) -> &MemoryModel<'a> {
        &self.memory
    }

    /// Returns whether training has optimizer state, which could be kept off the chip.
    pub fn has_state(&self) -> Result<bool, SearchError> {
        if let Some(&known) = self.has_state.get() {
            return Ok(known);
        }
        let streamed = self.memory.streamed_state()?;
        let found = self.memory.is_training() && streamed.iter().any(|&bytes| bytes > 0);
        Ok(*self.has_state.get_or_init(|| found))
    }

    /// Returns `request` with everything about these layers that the solver needs.
    pub fn question(&self, request: SearchRequest) -> Arc<Question> {
        Arc::new(Question::new(
            request,
            self.placement,
            Arc::clone(&self.cut_bytes),
        ))
    }

    /// Returns the best split by the goal of `question` that fits in one of `pipelines`; `None` if
    /// none fits.
    pub fn best(
        &self,
        question: &Arc<Question>,
        pipelines: &[Pipeline],
        progress: &Progress,
    ) -> Result<Option<Candidate>, SearchError> {
        let known = self
            .solved
            .borrow()
            .iter()
            .find_map(|solved| solved.answer(question, pipelines));
        if let Some(known) = known {
            return Ok(known);
        }
        let reach = question.reach_of_limits();
        let by_goal = |one: &Candidate, other: &Candidate| question.compare(one, other);
        let find = |costs: PipelineCosts<'a>| costs.best();
        let best = self.first(question, (pipelines, reach), progress, (find, by_goal))?;
        self.solved.borrow_mut().push(Solved {
            pipelines: pipelines.to_vec(),
            question: Arc::clone(question),
            best: best.clone(),
        });
        Ok(best)
    }

    /// Returns the smallest number of stages of a split that fits in one of `pipelines`, on any
    /// number of IPUs up to `stages` (those of one replica); `None` if none fits.
    pub fn fewest_stages(
        &self,
        question: &Arc<Question>,
        (pipelines, stages): (&[Pipeline], usize),
        progress: &Progress,
    ) -> Result<Option<usize>, SearchError> {
        let reach = Reach {
            stages: stages.next_power_of_two(),
            ..question.reach_of_limits()
        };
        let by_stages = |one: &Candidate, other: &Candidate| one.ipus.cmp(&other.ipus);
        let find = |costs: PipelineCosts<'a>| costs.on_fewest(stages);
        let fewest = self.first(question, (pipelines, reach), progress, (find, by_stages))?;
        Ok(fewest.map(|fewest| fewest.ipus))
    }

    /// Returns the first of the splits that `find` finds in each of `pipelines`, in the order of
    /// `compare`; `None` if it finds none. What it finds must not become better with higher costs.
    fn first(
        &self,
        question: &Arc<Question>,
        (pipelines, reach): (&[Pipeline], Reach),
        progress: &Progress,
        (find, compare): (
            impl Fn(PipelineCosts<'a>) -> Result<Option<Candidate>, SearchError> + Sync,
            impl Fn(&Candidate, &Candidate) -> Ordering,
        ),
    ) -> Result<Option<Candidate>, SearchError> {
        let (mut open, mut tiles) = (pipelines.to_vec(), 0);
        loop {
            let found = self.in_each(question, (&open, reach, tiles), progress, &find)?;
            let (fitting, found): (Vec<Pipeline>, Vec<Candidate>) = open
                .iter()
                .zip(found)
                .filter_map(|(&pipeline, found)| Some((pipeline, found?)))
                .unzip();
            open = fitting;
            match found.into_iter().min_by(&compare) {
                Some(first) if self.more_bytes(&first)?.is_some() => tiles = self.critical(),
                first => return Ok(first),
            }
        }
    }

    /// Returns the split with the lowest peak in any of `pipelines`, whatever the limits; `None` if
    /// no split keeps the constraints. Doubles the bytes up to which ranges are computed until no
    /// other range could be part of a better split. With `below`, only a peak below that number of
    /// bytes is searched for.
    pub fn lowest(
        &self,
        question: &Arc<Question>,
        (pipelines, below): (&[Pipeline], Option<u64>),
        progress: &Progress,
    ) -> Result<Option<Candidate>, SearchError> {
        let limits = question.reach_of_limits();
        let recorded = self.memory.recorded_fullest_tile();
        let recorded = recorded.map_or(0, |(_, bytes)| bytes);
        let share = recorded / question.ipus_of_replica(1).max(1) as u64;
        let mut highest = below.map_or(u64::MAX, |below| below.saturating_sub(1));
        let (mut open, mut tiles) = (pipelines.to_vec(), 0);
        let mut reach = Reach {
            bytes: limits.bytes.max(share + share / 4).min(highest),
            ..limits
        };
        loop {
            let find = |costs: PipelineCosts<'a>| Ok((costs.lowest()?, costs.has_all()));
            let found = self.in_each(question, (&open, reach, tiles), progress, find)?;
            let is_done = reach.bytes >= highest || found.iter().all(|(_, has_all)| *has_all);
            let lowest = found
                .iter()
                .filter_map(|(lowest, _)| lowest.as_ref())
                .filter(|lowest| lowest.peak_bytes() <= highest)
                .min_by_key(|lowest| lowest.peak_bytes());
            let is_lowest = |lowest: &Candidate| is_done || lowest.peak_bytes() <= reach.bytes;
            match lowest {
                Some(lowest) if is_lowest(lowest) => {
                    let Some(bytes) = self.more_bytes(lowest)? else {
                        return Ok(Some(lowest.clone()));
                    };
                    // No split of a pipeline needs less than is known so far.
                    highest = highest.min(bytes);
                    tiles = self.critical();
                    let is_over = |one: &Candidate| is_lowest(one) && one.peak_bytes() > highest;
                    open = open
                        .into_iter()
                        .zip(&found)
                        .filter(|(_, (lowest, _))| !lowest.as_ref().is_some_and(is_over))
                        .map(|(pipeline, _)| pipeline)
                        .collect();
                }
                None if is_done => return Ok(None),
                _ => reach.bytes = reach.bytes.saturating_mul(2).clamp(1, highest),
            }
        }
    }

    /// Returns the bytes on the fullest tile of `found`, if any of its stages needs more bytes than
    /// `found` says; the fullest tiles of these stages become critical.
    fn more_bytes(&self, found: &Candidate) -> Result<Option<u64>, SearchError> {
        let index = self.index_of(found.pipeline)?;
        let one = &mut self.computed.borrow_mut()[index];
        if one.tiles == ALL_TILES {
            return Ok(None);
        }
        let stages = PlacedStage::of_split(found.solution.plan.stages());
        let is_new = |stage: &&PlacedStage| !one.fullest.contains_key(stage);
        let new: Vec<PlacedStage> = stages.iter().filter(is_new).cloned().collect();
        let of_new = one.memory.fullest_tiles(&new);
        one.fullest.extend(new.into_iter().zip(of_new));
        let fullest = stages.iter().map(|stage| one.fullest[stage]);
        let more: BTreeSet<u32> = fullest
            .clone()
            .zip(&found.peaks)
            .filter(|((_, bytes), known)| bytes > known)
            .map(|((tile, _), _)| tile)
            .collect();
        let highest = fullest.map(|(_, bytes)| bytes).max();
        let mut critical = self.critical.borrow_mut();
        let new: Vec<u32> = more
            .iter()
            .copied()
            .filter(|tile| !critical.contains(tile))
            .collect();
        critical.extend(new);
        Ok(highest.filter(|_| !more.is_empty()))
    }

    /// Returns `plan`, a split of the user, in the pipeline of `pipelines` in which it fits and is
    /// the fastest; if it fits in none, in the one with the lowest peak.
    pub fn given(
        &self,
        question: &Arc<Question>,
        (plan, pipelines): (&Plan, &[Pipeline]),
    ) -> Result<Option<Candidate>, SearchError> {
        let mut best: Option<Candidate> = None;
        for &pipeline in pipelines {
            let costs = self.known_costs(question, pipeline)?;
            let peaks = costs.memory.peaks(&PlacedStage::of_split(plan.stages()));
            let Some(score) = costs.score(plan, &peaks) else {
                continue;
            };
            let found = Candidate {
                pipeline,
                ipus: costs.ipus,
                replicas: costs.replicas(),
                fits: costs.are_within_limits(&peaks),
                solution: Solution::unproven(plan.clone(), score),
                peaks,
            };
            if best.as_ref().is_none_or(|best| {
                let by_fit = best.fits.cmp(&found.fits);
                let by_peak = found.peak_bytes().cmp(&best.peak_bytes());
                let by_goal = match found.fits {
                    true => found.by_rate(best),
                    false => Ordering::Equal,
                };
                by_fit.then(by_goal).then(by_peak).is_lt()
            }) {
                best = Some(found);
            }
        }
        Ok(best)
    }

    /// Proves that `best`, which fits, is the best split of its pipeline on its IPUs.
    ///
    /// # Errors
    /// If the integer program and the dynamic program differ.
    pub fn prove(
        &self,
        costs: &PipelineCosts<'a>,
        best: &Candidate,
    ) -> Result<Solution, SearchError> {
        solve::solve(&costs.problem_on(best.ipus))?.ok_or_else(|| {
            SolveError::Internal("a second search missed the split of the first".to_owned()).into()
        })
    }

    /// Returns the request of `question` in `pipeline`, with the costs of ranges that are known.
    pub fn known_costs(
        &self,
        question: &Arc<Question>,
        pipeline: Pipeline,
    ) -> Result<PipelineCosts<'a>, SearchError> {
        let index = self.index_of(pipeline)?;
        Ok(self.computed.borrow()[index].costs(question))
    }

    /// Prepares for many requests about splits in `pipelines` like `question`, whose ranges are then
    /// computed on all tiles if that saves time.
    pub fn prepare(
        &self,
        question: &Question,
        pipelines: &[Pipeline],
        progress: &Progress,
    ) -> Result<(), SearchError> {
        let reach = question.reach_of_limits();
        if self.memory.layers() <= FEW_POSITIONS {
            for some in pipelines.chunks(self.at_once(reach)) {
                self.compute(some, (reach, ALL_TILES), progress)?;
            }
        }
        Ok(())
    }

    /// Returns the costs of ranges on all tiles in `pipeline`, at least as far as `reach`.
    pub fn costs(
        &self,
        question: &Arc<Question>,
        (pipeline, reach): (Pipeline, Reach),
        progress: &Progress,
    ) -> Result<PipelineCosts<'a>, SearchError> {
        let index = self.compute(&[pipeline], (reach, ALL_TILES), progress)?;
        Ok(self.computed.borrow()[index[0]].costs(question))
    }

    /// Returns the results of `of` in each of `pipelines`, in order, with the costs of ranges at least
    /// on the first `tiles` critical tiles and as far as `reach`.
    fn in_each<R: Send>(
        &self,
        question: &Arc<Question>,
        (pipelines, reach, tiles): (&[Pipeline], Reach, usize),
        progress: &Progress,
        of: impl Fn(PipelineCosts<'a>) -> Result<R, SearchError> + Sync,
    ) -> Result<Vec<R>, SearchError> {
        let mut results = Vec::new();
        for some in pipelines.chunks(self.at_once(reach)) {
            let indices = self.compute(some, (reach, tiles), progress)?;
            let costs: Vec<_> = {
                let computed = self.computed.borrow();
                indices
                    .iter()
                    .map(|&index| computed[index].costs(question))
                    .collect()
            };
            let task = progress.begin("choosing the pipeline", costs.len() as u64);
            let found = costs.into_par_iter().map(|costs| {
                task.add(1);
                of(costs)
            });
            results.extend(found.collect::<Result<Vec<R>, _>>()?);
        }
        Ok(results)
    }

    /// Returns how many pipelines may be computed in one pass over the tiles; at least 1.
    fn at_once(&self, reach: Reach) -> usize {
        let positions = self.memory.layers();
        let numbers = positions * positions / 2 * (reach.stages.min(positions) + 1);
        (MAX_NUMBERS / numbers.max(1)).max(1)
    }

    /// Returns the number of critical tiles; [`ALL_TILES`] if there are too many.
    fn critical(&self) -> usize {
        let critical = self.critical.borrow().len();
        let is_many = critical * TILES_OF_A_CRITICAL_ONE > self.memory.tiles() as usize;
        if is_many { ALL_TILES } else { critical }
    }

    /// Computes the costs of ranges on all critical tiles, in those of `pipelines` that lack them as
    /// far as `reach` or on the first `tiles` of these. Returns the index of each pipeline in `computed`.
    fn compute(
        &self,
        pipelines: &[Pipeline],
        (reach, least): (Reach, usize),
        progress: &Progress,
    ) -> Result<Vec<usize>, SearchError> {
        let indices = pipelines
            .iter()
            .map(|&pipeline| self.index_of(pipeline))
            .collect::<Result<Vec<_>, _>>()?;
        let mut computed = self.computed.borrow_mut();
        let lacking: Vec<usize> = indices
            .iter()
            .copied()
            .filter(|&index| !computed[index].reach.covers(reach) || computed[index].tiles < least)
            .collect();
        if lacking.is_empty() {
            return Ok(indices);
        }
        let reach = lacking
            .iter()
            .fold(reach, |reach, &index| reach.and(computed[index].reach));
        let tiles = least.max(self.critical());
        // A table with this reach keeps the peaks of the tiles that it covers; only the tiles after
        // them are computed.
        let is_kept = |one: &Computed<'_>| one.reach == reach && tiles < ALL_TILES;
        let known = |&index: &usize| match is_kept(&computed[index]) {
            true => computed[index].tiles,
            false => 0,
        };
        let known = lacking.iter().map(known).min().unwrap_or(0);
        let critical = self.critical.borrow();
        let added = critical.get(known..tiles);
        let models: Vec<_> = lacking
            .iter()
            .map(|&index| (&*computed[index].memory, reach.bytes))
            .collect();
        let costs = MemoryModel::costs_in_all((&models, reach.stages), added, progress)?;
        for (index, ranges) in lacking.into_iter().zip(costs) {
            let one = &mut computed[index];
            match is_kept(one) && one.tiles > 0 {
                true => Arc::make_mut(&mut one.ranges).raise_to(&ranges),
                false => one.ranges = ranges.into(),
            }
            (one.reach, one.tiles) = (reach, tiles);
        }
        drop_others(&mut computed, &indices);
        Ok(indices)
    }

    /// Returns the index in `computed` of `pipeline`, which is added without costs if it is new.
    fn index_of(&self, pipeline: Pipeline) -> Result<usize, SearchError> {
        let mut computed = self.computed.borrow_mut();
        let known = computed.iter().position(|known| known.pipeline == pipeline);
        if let Some(index) = known {
            return Ok(index);
        }
        // Live ranges only depend on recomputation, so a model that has them is changed.
        let like = computed
            .iter()
            .find(|known| known.pipeline.recompute == pipeline.recompute);
        let memory = like
            .map_or(&self.memory, |like| &*like.memory)
            .in_pipeline(pipeline)?;
        let times = match computed.first() {
            Some(first) => first
                .times
                .as_ref()
                .map(|times| times.in_pipeline(pipeline)),
            None => self.times(&memory)?,
        };
        let (memory, times) = (memory.into(), times.map(Arc::new));
        computed.push(Computed {
            pipeline,
            memory,
            times,
            ranges: Arc::default(),
            reach: Reach::default(),
            tiles: 0,
            fullest: HashMap::new(),
        });
        Ok(computed.len() - 1)
    }

    /// Builds the times of stages in the pipeline of `memory`; `None` if the profile has no cycles.
    fn times(&self, memory: &MemoryModel<'a>) -> Result<Option<StageTimes>, SearchError> {
        let Some(cycles) = &self.cycles else {
            return Ok(None);
        };
        let times = StageTimes::new(
            cycles,
            &self.placement.positions,
            (memory.pipeline(), memory.is_training()),
            memory.cut_bytes_by_pass(),
            self.step,
        );
        if !memory.is_training() {
            return Ok(Some(times));
        }
        Ok(Some(times.streaming(&memory.streamed_state()?)))
    }
}

impl<'a> Computed<'a> {
    fn costs(&self, question: &Arc<Question>) -> PipelineCosts<'a> {
        PipelineCosts::new(
            Arc::clone(question),
            (Arc::clone(&self.memory), self.times.clone()),
            Arc::clone(&self.ranges),
        )
    }
}

/// Drops the costs of all pipelines but those at `indices` if more than [`MAX_NUMBERS`] are kept.
fn drop_others(computed: &mut [Computed<'_>], indices: &[usize]) {
    if computed
        .iter()
        .map(|one| one.ranges.iter().count() * (one.reach.stages + 1))
        .sum::<usize>()
        <= MAX_NUMBERS
    {
        return;
    }
    for (index, one) in computed.iter_mut().enumerate() {
        if !indices.contains(&index) {
            one.ranges = Arc::default();
            (one.reach, one.tiles) = (Reach::default(), 0);
        }
    }
}
