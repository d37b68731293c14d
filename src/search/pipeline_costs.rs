//! The request for a model in one pipeline, with the bytes of its ranges of positions (In, layers,
//! Out).

use super::error::SearchError;
use super::few_tiles::PeakOnFewTiles;
use super::request::{IpuCount, SearchRequest, Solver, of_ties};
use crate::memory::{MemoryModel, Pipeline, RangeCosts};
use crate::model::{Framework, Placement};
use crate::progress::Progress;
use crate::solve::{self, Constraint, Limits, Problem};
use crate::time::StageTimes;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// If more IPUs than requested are considered, costs are computed for up to this number of stages.
const MOST_STAGES: usize = 64;

/// Maximum number of positions of models for which all ranges are computed to show other splits
/// (400 layers with In and Out). For more positions, this takes longer than the answer itself.
const MAX_TRIED_POSITIONS: usize = 402;

/// In models with more than [`MAX_TRIED_POSITIONS`], other splits are shown from the ranges that
/// begin at fewer than this number of positions.
const MAX_TRIED_STARTS: usize = 160;

/// A request for a model, with all data that do not depend on the pipeline.
#[derive(Debug)]
pub struct Question {
    /// The request: number of IPUs, limits, goal, constraints and options.
    pub request: SearchRequest,
    /// Constraints of the request, and one for each weight that several positions use.
    pub constraints: Vec<Constraint>,
    /// For each position from 1 on: bytes of the variables that flow across a cut before it, in
    /// either direction.
    pub cut_bytes: Vec<u64>,
    /// Whether the answer needs all ranges: for a sweep of one pipeline, moves, or a given split.
    needs_all_ranges: bool,
    /// Whether the costs of all ranges are computed, to show other splits and the best splits on
    /// other numbers of IPUs.
    pub(super) tries_all_ranges: bool,
}

/// The request for a model in one pipeline, with all data that the solver needs.
#[derive(Debug)]
pub struct PipelineCosts<'a> {
    /// The request, with the data that do not depend on the pipeline.
    pub question: Arc<Question>,
    /// The memory model, set to this pipeline.
    pub memory: MemoryModel<'a>,
    /// Number of IPUs of the answer. With [`IpuCount::UpTo`], the maximum until the number that the
    /// model needs is found.
    pub ipus: usize,
    /// Bytes on the fullest tile of each range of positions whose costs are computed.
    pub ranges: RangeCosts,
    /// Bytes up to which costs are computed: `ranges` has all ranges with at most these bytes. More
    /// than the limits if the request needs all ranges, or if nothing fits: then `ranges` has the
    /// ranges of the best split, and of this split with a layer moved over a cut.
    pub up_to: u64,
    /// Maximum number of stages of the splits for which `ranges` are computed: a stage may need
    /// more bytes the more stages come after it.
    pub(super) stages: usize,
    /// Times of stages and steps in this pipeline; `None` if the profile has no cycles.
    pub times: Option<StageTimes>,
    /// The lowest peak of any split on a few tiles; `None` if no split keeps the constraints, or
    /// before [`try_few_tiles`](Self::try_few_tiles).
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

/// Builds the times of stages in the pipeline of `memory`; `None` if the profile has no cycles.
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
    if !memory.is_training() {
        return Ok(Some(times));
    }
    Ok(Some(times.streaming(&memory.streamed_state()?)))
}

impl<'a> PipelineCosts<'a> {
    /// Builds the request in the pipeline of `memory`, before its costs are computed.
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

    /// Returns the request with another `memory` and `times`, before its costs are computed.
    fn with(&self, memory: MemoryModel<'a>, times: Option<StageTimes>) -> Self {
        Self::without_ranges(Arc::clone(&self.question), self.ipus, (memory, times))
    }

    /// Builds a request for at most `ipus` IPUs, before its costs are computed.
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

    /// Returns the request in another pipeline, before its costs are computed.
    pub(super) fn in_pipeline(&self, pipeline: Pipeline) -> Result<Self, SearchError> {
        let times = self.times.as_ref();
        let times = times.map(|times| times.in_pipeline(pipeline));
        Ok(self.with(self.memory.in_pipeline(pipeline)?, times))
    }

    /// Returns the request in this pipeline, without the costs of ranges.
    pub(super) fn without_costs(&self) -> Self {
        Self {
            on_few_tiles: self.on_few_tiles,
            ..self.with(self.memory.clone(), self.times.clone())
        }
    }

    /// Returns the request: number of IPUs, limits, goal, constraints and options.
    pub fn request(&self) -> &SearchRequest {
        &self.question.request
    }

    /// Returns the pipeline (schedule, recomputation, place of optimizer state, replicas).
    pub fn pipeline(&self) -> Pipeline {
        self.memory.pipeline()
    }

    /// Returns whether training has optimizer state, which could be kept off the chip.
    pub(super) fn has_state(&self) -> Result<bool, SearchError> {
        let memory = &self.memory;
        Ok(memory.is_training() && memory.streamed_state()?.iter().any(|&bytes| bytes > 0))
    }

    /// Returns the number of positions (In, layers, Out), even if no costs are computed.
    pub(super) fn positions(&self) -> usize {
        self.question.cut_bytes.len() + 1
    }

    /// Returns the most stages for which costs are computed if more IPUs than requested are tried.
    pub(super) fn more_stages(&self) -> usize {
        self.request().ipus.highest().max(MOST_STAGES)
    }

    /// Returns the smallest number of IPUs that the framework supports and that is at least
    /// `stages`: with PopTorch a power of 2.
    pub(super) fn supported(&self, stages: usize) -> usize {
        match self.memory.framework() {
            Framework::Poptorch => stages.next_power_of_two(),
            _ => stages,
        }
    }

    /// Builds the problem for the solver (costs, limits, constraints and goal) on the number of
    /// IPUs of the answer.
    pub fn problem(&self) -> Problem<'_> {
        self.problem_on(self.ipus)
    }

    /// Builds the problem for the solver (costs, limits, constraints and goal) on `ipus` IPUs.
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

    /// Returns whether costs are computed for ranges that exceed all limits.
    pub fn goes_beyond_limits(&self) -> bool {
        self.up_to > self.request().highest_limit()
    }

    /// Returns the maximum bytes of the stage on IPU `ipu` (from 0) on each tile.
    pub fn limit_of(&self, ipu: usize) -> u64 {
        let limits = Limits::new(&self.request().limits);
        limits.of(ipu).unwrap_or(limits.highest())
    }

    /// Returns whether each stage is within the limit of its IPU. `peaks` has the bytes on the
    /// fullest tile of each stage.
    pub(super) fn are_within_limits(&self, peaks: &[u64]) -> bool {
        let mut peaks = peaks.iter().enumerate();
        peaks.all(|(ipu, &bytes)| bytes <= self.limit_of(ipu))
    }

    /// Returns the number of bytes up to which the answer needs the costs of ranges. `is_refused`
    /// says whether nothing fits.
    fn needed_bytes(&self, is_refused: bool) -> u64 {
        let highest = self.request().highest_limit();
        if self.question.needs_all_ranges || self.question.tries_all_ranges {
            u64::MAX
        } else if is_refused {
            let peak = self.on_few_tiles;
            peak.map_or(u64::MAX, |peak| peak.limit_beyond(highest))
        } else {
            highest
        }
    }

    /// Returns the number of stages for which the answer needs the costs of ranges. `is_refused`
    /// says whether nothing fits.
    fn needed_stages(&self, is_refused: bool) -> usize {
        if self.question.needs_all_ranges || is_refused {
            self.more_stages()
        } else if self.question.tries_all_ranges {
            self.swept_ipus().last().copied().unwrap_or(0)
        } else {
            self.request().ipus.highest()
        }
    }

    /// Finds the lowest peak of any split on a few tiles, and stores it in `on_few_tiles`.
    pub(super) fn try_few_tiles(&mut self) -> Result<(), SearchError> {
        let limit = self.request().highest_limit();
        self.on_few_tiles = PeakOnFewTiles::new(&self.memory, &self.problem(), limit)?;
        Ok(())
    }

    /// Returns whether the peak on a few tiles proves that nothing fits (not for the greedy
    /// solver).
    pub(super) fn cannot_fit(&self) -> bool {
        let request = self.request();
        let fits = |peak: PeakOnFewTiles| peak.fits(request.highest_limit());
        request.options.solver == Solver::Ilp && !self.on_few_tiles.is_some_and(fits)
    }

    /// Returns the number of bytes up to which ranges should be computed so that those of the best
    /// split are among them, whether it fits or not.
    pub(super) fn limit_of_best(&self) -> u64 {
        let limit = self.request().highest_limit();
        let peak = self.on_few_tiles;
        peak.map_or(u64::MAX, |peak| peak.limit_of_best().max(limit))
    }

    /// Computes the costs that the answer needs (more of them if nothing fits, `is_refused`), and
    /// in the same pass over the tiles the costs of `others`, each up to its own `up_to`.
    pub(super) fn compute_with(
        &mut self,
        is_refused: bool,
        others: &mut [Self],
        progress: &Progress,
    ) -> Result<(), SearchError> {
        let (limit, stages) = (
            self.needed_bytes(is_refused),
            self.needed_stages(is_refused),
        );
        let mut all: Vec<&mut Self> = others.iter_mut().collect();
        if self.up_to < limit || self.stages < stages {
            self.up_to = self.up_to.max(limit);
            all.insert(0, self);
        }
        compute_costs(&mut all, stages, progress)
    }

    /// Computes the costs of all ranges that begin near the cuts of `stages`, to show other splits.
    /// `None` if that is not requested, `ranges` has all anyway, or `stages` is empty.
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

    /// With [`IpuCount::UpTo`], sets `ipus` to the smallest supported number on which the model
    /// fits, or to the maximum if it fits on none. Otherwise changes nothing.
    pub(super) fn count_ipus(&mut self) -> Result<(), SearchError> {
        if let IpuCount::UpTo(most) = self.request().ipus {
            let fewest = solve::fewest_stages(&self.problem())?;
            self.ipus = fewest.map_or(most, |stages| self.supported(stages).min(most));
        }
        Ok(())
    }

    /// Returns the positions that exceed the highest limit as stages of their own, each as a range.
    pub(super) fn positions_over_limit(&self) -> Vec<Range<usize>> {
        let highest = self.request().highest_limit();
        let single = (0..self.ranges.layers()).map(|position| position..position + 1);
        let is_over = |range: &Range<usize>| {
            let peak = self.ranges.least(range.clone());
            peak.is_none_or(|peak| peak > highest)
        };
        single.filter(is_over).collect()
    }
}

/// Returns the items of `positions` (ascending) whose distance from one of `cuts` is at most d, for
/// the largest d up to `farthest` at which `fits` accepts the number of items; `None` if it does
/// not even accept d = 0.
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

/// Computes the `ranges` of each pipeline in `all` in one pass over the tiles: those with at most
/// `up_to` bytes of that pipeline, for at most `stages` stages.
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
