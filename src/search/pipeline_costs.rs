//! The data from which the solver finds splits in one pipeline: the search request, and the memory
//! and time of ranges of positions (In, layers, Out).

use super::{
    profile_tables::KnownCosts,
    request::{IpuCount, Question, SearchRequest},
    result::Candidate,
};
use crate::{
    memory::{MemoryModel, Pipeline, RangeCosts},
    progress::Progress,
    solve::{self, Constraint, Problem, ProfileCosts, Solution, SolveError},
    time::StageTimes,
};
use anyhow::Result;
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
};

/// Limit for the number of positions at which stages of alternative splits can start in a model
/// with more than [`PipelineCosts::MAX_TRIED_POSITIONS`] positions. Besides position 0, which does
/// not count, only positions near cuts of the main split (the best one or the user's) are used:
/// fewer than this limit, unless the cuts alone reach it.
const MAX_TRIED_STARTS: usize = 160;

/// The data from which the solver finds splits in one pipeline (schedule, recomputation, place of
/// optimizer state).
#[derive(Debug, Clone)]
pub struct PipelineCosts<'a> {
    /// The search request, with the constraints and other data that all pipelines share.
    pub question: Arc<Question>,
    /// The memory model of each profile (there is at least one), including the bytes that the
    /// pipeline (schedule, recomputation, place of optimizer state, replicas) adds to stages.
    pub memory_by_profile: Vec<Arc<MemoryModel<'a>>>,
    /// Number of IPUs of each replica (copy of the pipeline). If the request leaves it open
    /// ([`IpuCount::UpTo`]), this is the maximum until the search has found the number that the
    /// model needs.
    pub ipus: usize,
    /// One entry per profile, all with the same positions: the bytes and times that were computed
    /// for ranges of positions, and the bytes that flow over cuts.
    pub by_profile: Vec<ProfileCosts>,
}

impl<'a> PipelineCosts<'a> {
    /// Maximum number of positions (400 layers with In and Out) for which the bytes of all ranges
    /// are computed, so that reports can show splits other than the best one. For more positions,
    /// computing them takes longer than finding the best split.
    pub const MAX_TRIED_POSITIONS: usize = 402;

    pub(super) fn new(
        question: &Arc<Question>,
        profiles: impl Iterator<Item = KnownCosts<'a>>,
    ) -> Self {
        let (memory_by_profile, by_profile) = profiles.unzip();
        let mut costs = Self {
            question: Arc::clone(question),
            memory_by_profile,
            ipus: 0,
            by_profile,
        };
        costs.ipus = costs.request().ipus.highest() / costs.replicas().max(1);
        costs
    }

    /// Returns the valid indices into `by_profile`, which has one entry per profile of the model.
    pub fn profiles(&self) -> Range<usize> {
        0..self.by_profile.len()
    }

    /// Returns the memory model of the main profile (index 0), including the bytes that the
    /// pipeline adds to stages.
    pub fn memory(&self) -> &MemoryModel<'a> {
        &self.memory_by_profile[0]
    }

    /// Returns the times of stages in the main profile (index 0), or `None` if this profile has no
    /// cycle counts.
    pub fn times(&self) -> Option<&StageTimes> {
        self.by_profile[0].times.as_deref()
    }

    /// Returns a copy of these costs in which all stages take their memory and times from the
    /// profile with index `profile`. A model has several profiles if it was compiled with several
    /// available memory proportions.
    pub fn in_profile(&self, profile: usize) -> Self {
        let count = self.by_profile.len();
        Self {
            memory_by_profile: vec![Arc::clone(&self.memory_by_profile[profile]); count],
            by_profile: vec![self.by_profile[profile].clone(); count],
            ..self.clone()
        }
    }

    /// Returns the available memory proportion with which the profile with index `profile` was
    /// compiled, or `None` if it is unknown.
    pub fn proportion(&self, profile: usize) -> Option<f64> {
        self.request().options.proportions.get(profile).copied()
    }

    /// Computes one value per stage of a split, such as its bytes, each in the profile from which
    /// the stage takes its costs. `profiles` has the index of this profile for each stage. `of`
    /// computes the values of all stages in one profile.
    pub(super) fn in_own_profiles<T>(
        &self,
        profiles: &[usize],
        of: impl Fn(&MemoryModel<'a>) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        let mut own = BTreeMap::new();
        for profile in self.profiles().filter(|profile| profiles.contains(profile)) {
            let all = of(&self.memory_by_profile[profile])?
                .into_iter()
                .enumerate();
            own.extend(all.filter(|(stage, _)| profiles[*stage] == profile));
        }
        Ok(own.into_values().collect())
    }

    /// Returns the search request: number of IPUs, limits, goal, constraints and options.
    pub fn request(&self) -> &SearchRequest {
        &self.question.request
    }

    /// Returns the pipeline (schedule, recomputation, place of optimizer state, replicas) for which
    /// the memory and time of ranges were computed.
    pub fn pipeline(&self) -> Pipeline {
        self.memory().pipeline()
    }

    /// Returns the number of replicas of the model in this pipeline: the number of replicas that
    /// share optimizer state or, if none share it, the number in the request.
    pub fn replicas(&self) -> usize {
        self.request().options.replicas_in(self.pipeline())
    }

    /// Returns the constraints on splits in this pipeline:
    ///
    /// - those of the user
    /// - for each weight that several positions share: these positions are in one stage, except in
    ///   the greedy search
    /// - for each series of layers that a micro-batch runs through several times: these layers are
    ///   in one stage, unless the stages run one after the other on one micro-batch at a time, and
    ///   keep the same tensors as the one-IPU compilation
    pub fn constraints(&self) -> &[Constraint] {
        if self.pipeline().takes_turns(self.memory().is_training()) {
            &self.request().constraints
        } else {
            &self.question.side_by_side
        }
    }

    /// Builds the problem for the solver (costs of ranges, limits, constraints and goal), for the
    /// IPUs of one replica.
    pub fn problem(&self) -> Problem<'_> {
        self.problem_on(self.ipus)
    }

    pub(super) fn problem_on(&self, ipus: usize) -> Problem<'_> {
        let request = self.request();
        Problem {
            by_profile: &self.by_profile,
            ipus,
            limits: &request.limits[..ipus.max(1).min(request.limits.len())],
            constraints: self.constraints(),
            goal: request.goal,
        }
    }

    /// Returns the memory limit of the IPU with index `ipu`: the bytes that a stage may take on
    /// each tile.
    pub fn limit_of(&self, ipu: usize) -> u64 {
        let request = self.request();
        *request.limits.get(ipu).unwrap_or(&request.highest_limit())
    }

    /// Returns whether each stage is within the memory limit of its IPU. `peaks` has one entry per
    /// stage, the bytes on its fullest tile.
    pub(super) fn are_within_limits(&self, peaks: &[u64]) -> bool {
        (0..peaks.len()).all(|ipu| peaks[ipu] <= self.limit_of(ipu))
    }

    /// Returns whether the bytes of all ranges of positions are computed, including ranges over the
    /// memory limits, so that splits over the limits can be compared, too.
    pub fn has_all(&self) -> bool {
        self.by_profile
            .iter()
            .all(|own| own.ranges.least(0..own.ranges.layers()).is_some())
    }

    /// Finds the best split that fits, with the dynamic program only, so the result is not proven
    /// to be the best. Returns `None` if no split fits.
    pub(super) fn best(&self) -> Result<Option<Candidate>> {
        let ipus = match self.request().ipus {
            IpuCount::Exactly(_) => Some(self.ipus),
            IpuCount::UpTo(_) => self
                .fewest(self.ipus)?
                .map(|fewest| self.memory().framework().supported(fewest).min(self.ipus)),
        };
        self.best_on(ipus)
    }

    /// Finds the smallest number of IPUs per replica, at most `stages`, on which a split fits.
    /// Returns the best split on this number of IPUs, even if the framework does not support the
    /// number. Returns `None` if no split fits.
    pub(super) fn on_fewest(&self, stages: usize) -> Result<Option<Candidate>> {
        let fewest = self.fewest(stages)?;
        self.best_on(fewest.filter(|&fewest| fewest <= stages))
    }

    fn fewest(&self, ipus: usize) -> Result<Option<usize>> {
        obedient(solve::fewest_stages(&self.problem_on(ipus)))
    }

    fn best_on(&self, ipus: Option<usize>) -> Result<Option<Candidate>> {
        let Some(ipus) = ipus else { return Ok(None) };
        let best = obedient(solve::unproven(&self.problem_on(ipus)))?;
        Ok(best.map(|best| Candidate::new(self, ipus, true, best)))
    }

    /// Proves that `best`, a split that fits, is the best split in this pipeline on its number of
    /// IPUs.
    ///
    /// # Errors
    /// If the integer program and the dynamic program disagree.
    pub fn prove(&self, best: &Candidate) -> Result<Solution> {
        solve::solve(&self.problem_on(best.ipus))?.ok_or_else(|| {
            SolveError::Internal("a second search missed the split of the first".to_owned()).into()
        })
    }

    /// Finds the split with the lowest peak, even if it exceeds the memory limits. Large ranges of
    /// positions whose bytes were not computed cannot be stages of this split.
    pub(super) fn lowest(&self) -> Result<Option<Candidate>> {
        let lowest = obedient(solve::unproven(&self.problem().at_any_limit()))?;
        Ok(lowest.map(|lowest| Candidate::new(self, self.ipus, false, lowest)))
    }

    /// Returns one entry per profile: the bytes of all ranges of positions that begin at position 0
    /// or near a cut between `stages`. Reports use these bytes to show other splits of models with
    /// more than [`PipelineCosts::MAX_TRIED_POSITIONS`] positions.
    pub fn near(&self, stages: &[Range<usize>], progress: &Progress) -> Result<Vec<RangeCosts>> {
        let cuts: BTreeSet<u32> = stages
            .iter()
            .skip(1)
            .map(|stage| stage.start as u32)
            .collect();
        let inner: Vec<u32> = (1..self.memory().layers() as u32).collect();
        let fits = |count| count < MAX_TRIED_STARTS;
        let starts = near_cuts(&inner, &cuts, MAX_TRIED_STARTS as u32 / 2, fits)
            .unwrap_or_else(|| cuts.into_iter().collect())
            .into_iter()
            .map(|at| at as usize)
            .chain([0])
            .collect();
        let stages = self.ipus.max(stages.len());
        self.memory_by_profile
            .iter()
            .map(|memory| Ok(memory.costs_from(&starts, stages, progress)?))
            .collect()
    }
}

/// Returns the solver's result `found`, but turns one error into `None`: that no split obeys the
/// constraints on the number of IPUs that was tried. More IPUs may allow a split: a layer can be
/// pinned to the fourth of four IPUs, but not to the fourth of two.
fn obedient<T>(found: Result<Option<T>, SolveError>) -> Result<Option<T>> {
    match found {
        Err(SolveError::Contradiction(_)) => Ok(None),
        found => Ok(found?),
    }
}

/// Returns each of `positions` that is at most d positions away from one of `cuts`. The distance d
/// is the largest one, up to `farthest`, for which `fits` accepts the number of positions returned.
/// Returns `None` if `fits` does not even accept d = 0, for which only cuts are returned.
pub fn near_cuts(
    positions: &[u32],
    cuts: &BTreeSet<u32>,
    farthest: u32,
    fits: impl Fn(usize) -> bool,
) -> Option<Vec<u32>> {
    let within = |distance: u32| -> Vec<u32> {
        let is_near = |at: &u32| {
            let around = at.saturating_sub(distance)..=at.saturating_add(distance);
            cuts.range(around).next().is_some()
        };
        positions.iter().copied().filter(is_near).collect()
    };
    let mut near = (0..=farthest).rev().map(within);
    near.find(|near| fits(near.len()))
}
