//! The costs of the ranges of one choice of layers in every pipeline, and the best split of each.
//!
//! A run answers many requests about one model: the user's own, and changed ones for what is said
//! beside it. They differ in limits, IPUs, constraints and open pipelines, which do not change the
//! costs of ranges. So [`Space`] computes costs once for each pipeline, and again only if a request
//! needs ranges with more bytes or splits with more stages.

use super::candidate::Candidate;
use super::error::SearchError;
use super::pipeline_costs::{PipelineCosts, Question, obedient};
use super::request::{IpuCount, SearchRequest};
use crate::memory::{MemoryModel, Pipeline, PlacedStage, RangeCosts};
use crate::model::{CyclesByLayer, Placement};
use crate::progress::Progress;
use crate::solve::{self, Plan, Solution, SolveError};
use crate::time::{StageTimes, StepOptions};
use rayon::prelude::*;
use std::cell::{OnceCell, RefCell};
use std::cmp::Ordering;
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
    computed: RefCell<Vec<Computed<'a>>>,
    solved: RefCell<Vec<Solved>>,
}

/// The costs of ranges in one pipeline.
#[derive(Debug, Clone)]
struct Computed<'a> {
    pipeline: Pipeline,
    memory: Arc<MemoryModel<'a>>,
    times: Option<Arc<StageTimes>>,
    ranges: Arc<RangeCosts>,
    reach: Reach,
}

/// The best split that fits in one pipeline, for one request.
#[derive(Debug)]
struct Solved {
    pipeline: Pipeline,
    question: Arc<Question>,
    best: Option<Candidate>,
}

impl Solved {
    /// Returns the answer to `question` in `pipeline`, if it follows from this one: the request is
    /// the same but for fewer IPUs, and the best split leaves the missing ones empty.
    fn answer(&self, question: &Question, pipeline: Pipeline) -> Option<Option<Candidate>> {
        if self.pipeline != pipeline || !self.question.is_alike(question) {
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
        Self {
            cut_bytes: memory.cut_bytes().into(),
            memory,
            placement,
            cycles,
            step,
            has_state: OnceCell::new(),
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
        let known = |pipeline: &Pipeline| {
            let solved = self.solved.borrow();
            solved
                .iter()
                .find_map(|solved| solved.answer(question, *pipeline))
        };
        let unknown: Vec<Pipeline> = pipelines
            .iter()
            .copied()
            .filter(|pipeline| known(pipeline).is_none())
            .collect();
        let reach = question.reach_of_limits();
        let found = self.in_each(question, &unknown, reach, progress, |costs| costs.best())?;
        self.solved
            .borrow_mut()
            .extend(unknown.iter().zip(found).map(|(&pipeline, best)| Solved {
                pipeline,
                question: Arc::clone(question),
                best,
            }));
        Ok(pipelines
            .iter()
            .filter_map(|pipeline| known(pipeline)?)
            .min_by(|one, other| question.compare(one, other)))
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
        let share = self.memory.recorded_peak() / question.ipus_of_replica(1).max(1) as u64;
        let highest = below.map_or(u64::MAX, |below| below.saturating_sub(1));
        let mut reach = Reach {
            bytes: limits.bytes.max(share + share / 4).min(highest),
            ..limits
        };
        loop {
            let found = self.in_each(question, pipelines, reach, progress, |costs| {
                Ok((costs.lowest()?, costs.has_all()))
            })?;
            let has_all = found.iter().all(|(_, has_all)| *has_all);
            let lowest = found
                .into_iter()
                .filter_map(|(lowest, _)| lowest)
                .min_by_key(Candidate::peak_bytes)
                .filter(|lowest| lowest.peak_bytes() <= highest);
            let is_lowest = |lowest: &Candidate| lowest.peak_bytes() <= reach.bytes;
            let is_done = has_all || reach.bytes >= highest;
            if is_done || lowest.as_ref().is_some_and(is_lowest) {
                return Ok(lowest);
            }
            reach.bytes = reach.bytes.saturating_mul(2).clamp(1, highest);
        }
    }

    /// Returns the smallest number of stages of a split that fits in each of `pipelines`, on any
    /// number of IPUs up to `stages` (those of one replica); `None` where none fits.
    pub fn fewest_stages(
        &self,
        question: &Arc<Question>,
        pipelines: &[Pipeline],
        stages: usize,
        progress: &Progress,
    ) -> Result<Vec<Option<usize>>, SearchError> {
        let reach = Reach {
            stages,
            ..question.reach_of_limits()
        };
        self.in_each(question, pipelines, reach, progress, |costs| {
            let fewest = obedient(solve::fewest_stages(&costs.problem_on(stages)))?;
            Ok(fewest.filter(|&fewest| fewest <= stages))
        })
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
            let costs = self.without_costs(pipeline)?.costs(question);
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

    /// Returns the costs of ranges in `pipeline`, at least as far as `reach`.
    pub fn costs(
        &self,
        question: &Arc<Question>,
        (pipeline, reach): (Pipeline, Reach),
        progress: &Progress,
    ) -> Result<PipelineCosts<'a>, SearchError> {
        let index = self.compute(&[pipeline], reach, progress)?;
        Ok(self.computed.borrow()[index[0]].costs(question))
    }

    /// Returns the results of `of` in each of `pipelines`, in order, with the costs of ranges at
    /// least as far as `reach`.
    fn in_each<R: Send>(
        &self,
        question: &Arc<Question>,
        pipelines: &[Pipeline],
        reach: Reach,
        progress: &Progress,
        of: impl Fn(PipelineCosts<'a>) -> Result<R, SearchError> + Sync,
    ) -> Result<Vec<R>, SearchError> {
        let mut results = Vec::new();
        for some in pipelines.chunks(self.at_once(reach)) {
            let indices = self.compute(some, reach, progress)?;
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

    /// Computes the costs of ranges as far as `reach` in those of `pipelines` that lack them, in
    /// one pass over the tiles. Returns the index of each pipeline in `computed`.
    fn compute(
        &self,
        pipelines: &[Pipeline],
        reach: Reach,
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
            .filter(|&index| !computed[index].reach.covers(reach))
            .collect();
        if lacking.is_empty() {
            return Ok(indices);
        }
        let reach = lacking
            .iter()
            .fold(reach, |reach, &index| reach.and(computed[index].reach));
        let models: Vec<_> = lacking
            .iter()
            .map(|&index| (&*computed[index].memory, reach.bytes))
            .collect();
        let costs = MemoryModel::costs_in_all(&models, reach.stages, progress)?;
        for (index, ranges) in lacking.into_iter().zip(costs) {
            computed[index].ranges = ranges.into();
            computed[index].reach = reach;
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
        });
        Ok(computed.len() - 1)
    }

    fn without_costs(&self, pipeline: Pipeline) -> Result<Computed<'a>, SearchError> {
        let index = self.index_of(pipeline)?;
        Ok(self.computed.borrow()[index].clone())
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
            one.reach = Reach::default();
        }
    }
}
