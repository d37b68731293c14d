//! The model in one pipeline, with the bytes of its ranges of layers.

use super::error::SearchError;
use super::few_tiles::PeakOnFewTiles;
use super::request::{IpuCount, SearchRequest, Solver, of_ties};
use crate::memory::{MemoryModel, Pipeline, PlacedStage, RangeCosts};
use crate::model::{Framework, Placement};
use crate::progress::Progress;
use crate::solve::{self, Constraint, Goal, Limits, Problem};
use crate::time::StageTimes;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Number of stages that are considered if more IPUs are needed, unless there are more IPUs than
/// that.
const MOST_STAGES: usize = 64;

/// Upper bound on positions of models whose ranges are all computed for other splits (400 layers
/// with In and Out). For more positions, that takes longer than the answer itself.
const MAX_TRIED_POSITIONS: usize = 402;

/// Upper bound on positions at which ranges begin that are computed for other splits of models with
/// more than [`MAX_TRIED_POSITIONS`].
const MAX_TRIED_STARTS: usize = 160;

/// A request, with the data that are the same in all pipelines.
#[derive(Debug)]
pub struct Question {
    /// The request.
    pub request: SearchRequest,
    /// Constraints of the request and of weights that several positions use.
    pub constraints: Vec<Constraint>,
    /// Bytes over a cut after each position but the last.
    pub cut_bytes: Vec<u64>,
    /// Does the request need the costs of all ranges for the answer?
    needs_all_ranges: bool,
    /// Are all ranges computed for other splits, with the best splits for other numbers of IPUs?
    pub(super) tries_all_ranges: bool,
}

/// The model in one pipeline, with the bytes of its ranges: all data for the solver.
#[derive(Debug)]
pub struct PipelineCosts<'a> {
    /// The request.
    pub question: Arc<Question>,
    /// The model in the pipeline.
    pub memory: MemoryModel<'a>,
    /// Number of IPUs of the answer; with [`IpuCount::UpTo`], the number that the model needs.
    pub ipus: usize,
    /// Bytes on the fullest tile of every range of positions that was computed.
    pub ranges: RangeCosts,
    /// `ranges` has at least the ranges that need no more bytes than this. It exceeds the limits if
    /// the request needs all ranges, or if nothing fits: then `ranges` has the ranges of the best
    /// split, and of that split with a layer moved over a cut.
    pub up_to: u64,
    /// Maximum number of stages for which `ranges` were computed.
    pub(super) stages: usize,
    /// Times of stages and steps in the pipeline; `None` if the profile has no cycles.
    pub times: Option<StageTimes>,
    /// The peak of the best split on a few tiles; `None` if there is no split whatever the limit, or
    /// if it was not computed.
    pub(super) on_few_tiles: Option<PeakOnFewTiles>,
}

impl Question {
    fn new(memory: &MemoryModel<'_>, placement: &Placement, request: SearchRequest) -> Self {
        let mut constraints = request.constraints.clone();
        if request.options.solver == Solver::Ilp {
            constraints.extend(of_ties(placement));
        }
        let open = memory
            .pipeline()
            .open(request.options.pipeline, memory.is_training());
        let sweeps_one = request.options.sweep && open.len() == 1;
        Self {
            constraints,
            cut_bytes: memory.cut_bytes(),
            needs_all_ranges: sweeps_one || request.options.moves || request.given.is_some(),
            tries_all_ranges: request.options.what_if && memory.layers() <= MAX_TRIED_POSITIONS,
            request,
        }
    }
}

/// Times of stages in the pipeline of `memory`; `None` if the profile has no cycles.
fn stage_times(
    memory: &MemoryModel<'_>,
    placement: &Placement,
    request: &SearchRequest,
) -> Result<Option<StageTimes>, SearchError> {
    let Some(cycles) = &request.cycles else {
        return Ok(None);
    };
    let times = StageTimes::new(
        cycles,
        &placement.positions,
        (memory.pipeline(), memory.is_training()),
        memory.cut_bytes_by_pass(),
        request.options.step,
    );
    Ok(Some(match memory.is_training() {
        true => times.streaming(&memory.streamed_state()?),
        false => times,
    }))
}

impl<'a> PipelineCosts<'a> {
    /// A request in the pipeline of `memory`, whose costs are still to be computed.
    pub(super) fn new(
        memory: &MemoryModel<'a>,
        placement: &Placement,
        request: SearchRequest,
    ) -> Result<Self, SearchError> {
        let question = Question::new(memory, placement, request);
        let times = stage_times(memory, placement, &question.request)?;
        let ipus = question.request.ipus.highest();
        Ok(Self::without_ranges(
            question.into(),
            ipus,
            (memory.clone(), times),
        ))
    }

    /// The same request for another model, without costs.
    fn with(&self, memory: MemoryModel<'a>, times: Option<StageTimes>) -> Self {
        Self::without_ranges(Arc::clone(&self.question), self.ipus, (memory, times))
    }

    /// A question about a model on at most `ipus` IPUs, before any costs are computed.
    fn without_ranges(
        question: Arc<Question>,
        ipus: usize,
        (memory, times): (MemoryModel<'a>, Option<StageTimes>),
    ) -> Self {
        Self {
            question,
            memory,
            ipus,
            ranges: RangeCosts::default(),
            up_to: 0,
            stages: 0,
            times,
            on_few_tiles: None,
        }
    }

    /// The same request in another pipeline, without costs.
    pub(super) fn in_pipeline(&self, pipeline: Pipeline) -> Result<Self, SearchError> {
        let times = self.times.as_ref();
        let times = times.map(|times| times.in_pipeline(pipeline));
        Ok(self.with(self.memory.in_pipeline(pipeline)?, times))
    }

    /// The same pipeline, without costs.
    pub(super) fn without_costs(&self) -> Self {
        Self {
            on_few_tiles: self.on_few_tiles,
            ..self.with(self.memory.clone(), self.times.clone())
        }
    }

    /// The request.
    pub fn request(&self) -> &SearchRequest {
        &self.question.request
    }

    /// The pipeline.
    pub fn pipeline(&self) -> Pipeline {
        self.memory.pipeline()
    }

    /// Does training keep optimizer state, which could be off the chip?
    pub(super) fn has_state(&self) -> Result<bool, SearchError> {
        let memory = &self.memory;
        Ok(memory.is_training() && memory.streamed_state()?.iter().any(|&bytes| bytes > 0))
    }

    /// Number of positions of the layer order, even if no costs are computed.
    pub(super) fn positions(&self) -> usize {
        self.question.cut_bytes.len() + 1
    }

    /// Number of stages for which costs are computed if more IPUs are considered.
    pub(super) fn more_stages(&self) -> usize {
        self.request().ipus.highest().max(MOST_STAGES)
    }

    /// Smallest number of IPUs that the framework supports and that is at least `stages`.
    pub(super) fn supported(&self, stages: usize) -> usize {
        match self.memory.framework() {
            Framework::Poptorch => stages.next_power_of_two(),
            _ => stages,
        }
    }

    /// Problem for the solver.
    pub fn problem(&self) -> Problem<'_> {
        self.problem_on(self.ipus)
    }

    /// Problem for the solver on another number of IPUs.
    pub(super) fn problem_on(&self, ipus: usize) -> Problem<'_> {
        let request = self.request();
        Problem {
            costs: &self.ranges,
            cut_bytes: &self.question.cut_bytes,
            times: self.times.as_ref(),
            ipus,
            limits: Limits::new(&request.limits).first(ipus),
            constraints: &self.question.constraints,
            goal: request.goal,
        }
    }

    /// Were costs computed beyond all limits?
    pub fn goes_beyond_limits(&self) -> bool {
        self.up_to > self.request().highest_limit()
    }

    /// Maximum bytes on each tile of the stage on this IPU.
    pub fn limit_of(&self, ipu: usize) -> u64 {
        let limits = Limits::new(&self.request().limits);
        limits.of(ipu).unwrap_or(limits.highest())
    }

    /// Is each stage within the limit of its IPU? `peaks` has their bytes on the fullest tile.
    pub(super) fn are_within_limits(&self, peaks: &[u64]) -> bool {
        let mut peaks = peaks.iter().enumerate();
        peaks.all(|(ipu, &bytes)| bytes <= self.limit_of(ipu))
    }

    /// Maximum bytes of ranges, and maximum number of stages, that the answer needs.
    fn reach(&self, is_refused: bool) -> (u64, usize) {
        let (request, needs_all) = (self.request(), self.question.needs_all_ranges);
        let tries_all = self.question.tries_all_ranges;
        let highest = request.highest_limit();
        let limit = if needs_all || tries_all {
            u64::MAX
        } else if is_refused {
            let peak = self.on_few_tiles;
            peak.map_or(u64::MAX, |peak| peak.limit_beyond(highest))
        } else {
            highest
        };
        let stages = if needs_all || is_refused {
            self.more_stages()
        } else if tries_all {
            self.swept().last().copied().unwrap_or(0)
        } else {
            request.ipus.highest()
        };
        (limit, stages)
    }

    /// Computes the peak of the best split on a few tiles.
    pub(super) fn try_few_tiles(&mut self) -> Result<(), SearchError> {
        let limit = self.request().highest_limit();
        self.on_few_tiles = PeakOnFewTiles::new(&self.memory, &self.problem(), limit)?;
        Ok(())
    }

    /// Do a few tiles show that nothing fits?
    pub(super) fn cannot_fit(&self) -> bool {
        let request = self.request();
        let fits = |peak: PeakOnFewTiles| peak.fits(request.highest_limit());
        request.options.solver == Solver::Ilp && !self.on_few_tiles.is_some_and(fits)
    }

    /// Limit for ranges that include those of the best split, whether it fits or not.
    pub(super) fn limit_of_best(&self) -> u64 {
        let limit = self.request().highest_limit();
        let peak = self.on_few_tiles;
        peak.map_or(u64::MAX, |peak| peak.limit_of_best().max(limit))
    }

    /// Computes the costs that the answer needs, and those of `others` in the same pass over the
    /// tiles.
    pub(super) fn compute_with(
        &mut self,
        is_refused: bool,
        others: &mut [Self],
        progress: &Progress,
    ) -> Result<(), SearchError> {
        let (limit, stages) = self.reach(is_refused);
        let mut all: Vec<&mut Self> = others.iter_mut().collect();
        if self.up_to < limit || self.stages < stages {
            self.up_to = self.up_to.max(limit);
            all.insert(0, self);
        }
        compute_costs(&mut all, stages, progress)
    }

    /// Costs of all ranges from positions near the cuts of `stages`, if other splits are requested
    /// and not all ranges are computed for them.
    pub(super) fn near(
        &self,
        stages: &[Range<usize>],
        progress: &Progress,
    ) -> Result<Option<RangeCosts>, SearchError> {
        if !self.request().options.what_if || self.question.tries_all_ranges || stages.is_empty() {
            return Ok(None);
        }
        let cuts: BTreeSet<u32> = stages[1..].iter().map(|stage| stage.start as u32).collect();
        let inner: Vec<u32> = (1..self.positions() as u32).collect();
        let fits = |count| count < MAX_TRIED_STARTS;
        let near = near_cuts(&inner, &cuts, MAX_TRIED_STARTS as u32 / 2, fits);
        let near = near.unwrap_or_else(|| cuts.into_iter().collect());
        let starts = near.into_iter().map(|at| at as usize).chain([0]).collect();
        let stages = self.ipus.max(stages.len());
        Ok(Some(self.memory.costs_from(&starts, stages, progress)?))
    }

    /// Sets the number of IPUs to the number that the model needs, if the request asks for that.
    pub(super) fn count_ipus(&mut self) -> Result<(), SearchError> {
        if let IpuCount::UpTo(most) = self.request().ipus {
            let fewest = solve::fewest_stages(&self.problem())?;
            self.ipus = fewest.map_or(most, |stages| self.supported(stages).min(most));
        }
        Ok(())
    }

    /// Does the given split of the request, or else any split on its IPUs, fit in another model?
    pub(super) fn fits_in(&self, memory: MemoryModel<'a>) -> Result<bool, SearchError> {
        if let Some(plan) = &self.request().given {
            let peaks = memory.peaks(&PlacedStage::of_split(plan.stages()));
            return Ok(self.are_within_limits(&peaks));
        }
        let mut other = self.with(memory, None);
        other.up_to = self.request().highest_limit();
        compute_costs(&mut [&mut other], self.ipus, &Progress::new())?;
        Ok(solve::fits(&Problem {
            goal: Goal::Peak,
            ..other.problem()
        })?)
    }

    /// Single positions that exceed the highest limit.
    pub(super) fn positions_over_limit(&self) -> Vec<Range<usize>> {
        let highest = self.request().highest_limit();
        let alone = (0..self.ranges.layers()).map(|position| position..position + 1);
        let is_over = |range: &Range<usize>| {
            let peak = self.ranges.least(range.clone());
            peak.is_none_or(|peak| peak > highest)
        };
        alone.filter(is_over).collect()
    }
}

/// Finds the positions around cuts, among the ascending `positions`. Their distance from a cut is
/// the largest, up to `farthest`, at which `fits` accepts their number; `None` if it does not even
/// accept the cuts.
pub(crate) fn near_cuts(
    positions: &[u32],
    cuts: &BTreeSet<u32>,
    farthest: u32,
    fits: impl Fn(usize) -> bool,
) -> Option<Vec<u32>> {
    let around = |distance: u32| -> Vec<u32> {
        let is_near = |&&at: &&u32| {
            let around = at.saturating_sub(distance)..=at.saturating_add(distance);
            cuts.range(around).next().is_some()
        };
        positions.iter().filter(is_near).copied().collect()
    };
    let mut by_distance = (0..=farthest).rev().map(around);
    by_distance.find(|near| fits(near.len()))
}

/// Computes the costs of `all` pipelines up to the limit of each, for at most `stages` stages, in
/// one pass over the tiles.
pub(super) fn compute_costs(
    all: &mut [&mut PipelineCosts<'_>],
    stages: usize,
    progress: &Progress,
) -> Result<(), SearchError> {
    let pipelines: Vec<_> = all.iter().map(|one| (&one.memory, one.up_to)).collect();
    let costs = MemoryModel::costs_in_all(&pipelines, stages, progress)?;
    for (one, ranges) in all.iter_mut().zip(costs) {
        (one.ranges, one.stages) = (ranges, stages);
    }
    Ok(())
}
