//! Finds the best split of a model with given layers in one of several pipelines.
//!
//! The command answers many requests about one model: the user's request, and changed requests that
//! a report mentions. The requests differ in limits, IPUs and constraints. The memory and time of a
//! range of layers in a pipeline are the same for all of them, so they share the tables of these
//! costs (`profile_tables.rs`).
//!
//! Few tiles decide which split is the best, so the search first computes ranges of layers only on
//! some *critical* tiles. The best split on these tiles is no worse than the best split on all
//! tiles, and if no split fits on these tiles, no split fits at all. If the stages of the split
//! that was found need no more bytes on any other tile, this split is the best one. Otherwise the
//! fullest tiles of its stages become critical, and the search begins again.

use super::{
    pipeline_costs::PipelineCosts,
    profile_tables::{FEW_POSITIONS, ProfileTables, Reach, Tiles},
    request::Question,
    result::Candidate,
};
use crate::{
    memory::{MemoryModel, Pipeline, PlacedStage},
    progress::Progress,
    solve::{self, Constraint, Plan, Problem, Rule, Score, Solution},
};
use anyhow::Result;
use rayon::prelude::*;
use std::{
    cell::OnceCell,
    cmp::Ordering,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

#[cfg(test)]
mod tests;

/// A model with given layers, with the memory and time of ranges of layers computed so far.
#[derive(Debug)]
pub struct Space<'a> {
    /// One entry per profile of the model: tables of the memory and time of ranges of layers in
    /// each pipeline that the search tries. All profiles have the same positions (In, layers, Out),
    /// and there is at least one profile.
    profiles: Vec<ProfileTables<'a>>,
    progress: Progress,
    has_state: OnceCell<bool>,
}

impl<'a> Space<'a> {
    /// Prepares searches for the best split of a model. `profiles` has one entry per profile of the
    /// model: its tables of the memory and time of ranges of layers. There must be at least one
    /// profile, and all must have the same positions (In, layers, Out). `progress` shows the user
    /// how far these tables are computed.
    pub fn new(profiles: Vec<ProfileTables<'a>>, progress: Progress) -> Self {
        Self {
            profiles,
            progress,
            has_state: OnceCell::new(),
        }
    }

    /// Returns whether the model is trained with optimizer state, which could be kept off the chip.
    pub fn has_state(&self) -> bool {
        let has_bytes = |state: Vec<u64>| state.iter().any(|&bytes| bytes > 0);
        *self
            .has_state
            .get_or_init(|| has_bytes(self.memory().streamed_state()))
    }

    /// Returns whether all profiles have cycle counts, without which splits cannot be compared by
    /// time.
    pub fn has_cycles(&self) -> bool {
        self.profiles.iter().all(|own| own.cycles.is_some())
    }

    /// Returns the data from which the memory of any range of layers follows, by the main profile
    /// (index 0) and without what a pipeline adds.
    pub fn memory(&self) -> &MemoryModel<'a> {
        &self.profiles[0].memory
    }

    /// Returns the best split by the goal of `question` that fits in one of `pipelines`; `None` if
    /// none fits.
    pub fn best(
        &self,
        question: &Arc<Question>,
        pipelines: &[Pipeline],
    ) -> Result<Option<Candidate>> {
        self.first(
            question,
            pipelines,
            question.reach_of_limits(),
            |costs| costs.best(),
            |one, other| question.compare(one, other),
        )
    }

    /// Returns the smallest number of stages of any split that fits in one of `pipelines`, if a
    /// replica may have up to `stages` IPUs; `None` if no split fits.
    pub fn fewest_stages(
        &self,
        question: &Arc<Question>,
        pipelines: &[Pipeline],
        stages: usize,
    ) -> Result<Option<usize>> {
        let reach = Reach {
            stages: stages.next_power_of_two(),
            ..question.reach_of_limits()
        };
        let fewest = self.first(
            question,
            pipelines,
            reach,
            |costs| costs.on_fewest(stages),
            |one, other| one.ipus.cmp(&other.ipus),
        )?;
        Ok(fewest.map(|fewest| fewest.ipus))
    }

    /// Calls `find` for each of `pipelines` with the memory and time of ranges of layers in this
    /// pipeline, and returns the best split found: the one that `compare` orders first.
    ///
    /// At first, `find` gets lower bounds on the bytes of ranges, computed on few tiles. If the
    /// best split takes more bytes when it is checked on all tiles, `find` is called again with
    /// bytes from more tiles. Otherwise the split is the best, provided that `find` never returns a
    /// better split for higher bytes.
    fn first(
        &self,
        question: &Arc<Question>,
        pipelines: &[Pipeline],
        reach: Reach,
        find: impl Fn(PipelineCosts<'a>) -> Result<Option<Candidate>> + Sync,
        compare: impl Fn(&Candidate, &Candidate) -> Ordering,
    ) -> Result<Option<Candidate>> {
        let (mut open, mut tiles) = (pipelines.to_vec(), Tiles::Known);
        loop {
            let found = self.in_each(question, &open, reach, tiles, &find)?;
            let (fitting, found): (Vec<Pipeline>, Vec<Candidate>) = open
                .iter()
                .zip(found)
                .filter_map(|(&pipeline, found)| Some((pipeline, found?)))
                .unzip();
            open = fitting;
            match found.into_iter().min_by(&compare) {
                Some(first) if self.needs_more(&first, open.len())? => tiles = Tiles::Critical,
                first => return Ok(first),
            }
        }
    }

    /// Returns the split with the lowest peak in any of `pipelines`, whatever the memory limits. If
    /// `below` is given, only splits with a peak of fewer than `below` bytes count. Returns `None`
    /// if no such split obeys the constraints.
    ///
    /// The search computes only ranges of layers that take up to some number of bytes on their
    /// fullest tile, and doubles this number until no larger range can be part of a better split.
    pub fn lowest(
        &self,
        question: &Arc<Question>,
        pipelines: &[Pipeline],
        below: Option<u64>,
    ) -> Result<Option<Candidate>> {
        let limits = question.reach_of_limits();
        let (_, recorded) = self.memory().recorded_fullest_tile().unwrap_or_default();
        let share = recorded / question.request.ipus.highest().max(1) as u64;
        let highest = below.map_or(u64::MAX, |below| below.saturating_sub(1));
        let mut reach = Reach {
            bytes: limits.bytes.max(share + share / 4).min(highest),
            ..limits
        };
        loop {
            let has_all = AtomicBool::new(true);
            let find = |costs: PipelineCosts<'a>| {
                let is_complete = costs.has_all();
                has_all.fetch_and(is_complete, Relaxed);
                // Only ranges of layers with up to `reach.bytes` bytes on their fullest tile are
                // certain to be computed. If any range is missing, ignore splits with a peak above
                // `reach.bytes`, since a split with a missing range may have a lower peak.
                let most = if is_complete { highest } else { reach.bytes };
                Ok(costs.lowest()?.filter(|own| own.peak_bytes() <= most))
            };
            let lowest = self.first(question, pipelines, reach, find, Candidate::by_peak)?;
            // If ranges of layers are missing, and every split found has a peak above
            // `reach.bytes`, the best split may have a missing range. So search again with ranges
            // of up to twice the bytes.
            let is_done = reach.bytes >= highest || has_all.into_inner();
            if is_done
                || lowest
                    .as_ref()
                    .is_some_and(|own| own.peak_bytes() <= reach.bytes)
            {
                return Ok(lowest);
            }
            reach.bytes = reach.bytes.saturating_mul(2).clamp(1, highest);
        }
    }

    /// Returns the user's split `plan` in the fastest of `pipelines` in which it fits; if it fits
    /// in none of them, in the pipeline in which its peak is lowest.
    pub fn given(
        &self,
        question: &Arc<Question>,
        plan: &Plan,
        pipelines: &[Pipeline],
    ) -> Result<Option<Candidate>> {
        let mut tried: Vec<Candidate> = Vec::new();
        for &pipeline in pipelines {
            let costs = self.in_pipeline(question, pipeline, None)?;
            let plan = &self.with_profiles(&costs, plan)?;
            let placed = PlacedStage::of_split(plan.stages());
            let peaks =
                costs.in_own_profiles(plan.profiles(), |memory| Ok(memory.peaks(&placed)))?;
            let Some(score) = Score::of_peaks(&costs.problem(), plan, &peaks) else {
                continue;
            };
            let fits = costs.are_within_limits(&peaks);
            let solution = Solution::unproven(plan.clone(), score);
            tried.push(Candidate {
                pipeline,
                peaks,
                ..Candidate::new(&costs, costs.ipus, fits, solution)
            });
        }
        Ok(tried.into_iter().min_by(|one, other| {
            let by_rate = if one.fits {
                one.by_rate(other)
            } else {
                Ordering::Equal
            };
            other
                .fits
                .cmp(&one.fits)
                .then(by_rate)
                .then(one.by_peak(other))
        }))
    }

    /// Chooses for each stage of the user's split `plan` the profile from which the stage takes its
    /// memory and time, and returns the split with these profiles. A model may have several
    /// profiles, compiled with different options. The choice makes the split as good as possible by
    /// the user's goal, in the pipeline of `costs`.
    fn with_profiles(&self, costs: &PipelineCosts<'a>, plan: &Plan) -> Result<Plan> {
        if costs.profiles().len() == 1 {
            return Ok(plan.clone());
        }
        let (stages, placed) = (plan.stages().len(), PlacedStage::of_split(plan.stages()));
        let memories = costs.memory_by_profile.iter();
        let reach = Reach {
            bytes: memories
                .flat_map(|memory| memory.peaks(&placed))
                .max()
                .unwrap_or(0),
            stages: costs.ipus.max(stages),
        };
        let costs = self.in_pipeline(&costs.question, costs.pipeline(), Some(reach))?;
        // Require every cut of `plan`. With at most `stages` stages, no other cut is possible, so
        // the solver only chooses the profiles from which the stages take their costs.
        let constraints: Vec<_> = plan
            .cuts()
            .map(|position| Constraint::option(Rule::CutBefore { position }, "--splits"))
            .collect();
        let problem = Problem {
            constraints: &constraints,
            ..costs.problem_on(stages)
        };
        let mut found = None;
        if stages <= costs.ipus {
            found = solve::unproven(&problem)?;
        }
        if found.is_none() {
            found = solve::unproven(&problem.at_any_limit())?;
        }
        Ok(found.map_or_else(|| plan.clone(), |found| found.plan))
    }

    /// Returns whether any stage of `found`, a split found by its bytes on a few tiles, needs more
    /// bytes when all tiles are computed. If so, makes the fullest tile of each such stage
    /// critical, so that later searches include it.
    fn needs_more(&self, found: &Candidate, pipelines: usize) -> Result<bool> {
        let mut needs_more = false;
        for (own, tables) in self.profiles.iter().enumerate() {
            needs_more |= tables.needs_more(found, own, pipelines)?;
        }
        Ok(needs_more)
    }

    /// Computes the memory of ranges of layers on all tiles in advance if the model has few layers.
    /// This saves time if many requests follow that differ little from `question`.
    pub fn prepare(&self, question: &Arc<Question>, pipelines: &[Pipeline]) -> Result<()> {
        if self.memory().layers() <= FEW_POSITIONS {
            let reach = question.reach_of_limits();
            self.in_each(question, pipelines, reach, Tiles::All, |_| Ok(()))?;
        }
        Ok(())
    }

    /// Returns the memory and time of ranges of layers in `pipeline`. With `reach`, all ranges up
    /// to its maximum bytes and maximum number of stages are computed on all tiles. Without
    /// `reach`, the result has only the ranges that were computed before.
    pub fn in_pipeline(
        &self,
        question: &Arc<Question>,
        pipeline: Pipeline,
        reach: Option<Reach>,
    ) -> Result<PipelineCosts<'a>> {
        let tiles = reach.map_or(Tiles::Known, |_| Tiles::All);
        let costs = self.in_each(question, &[pipeline], reach.unwrap_or_default(), tiles, Ok)?;
        Ok(costs.into_iter().next().expect("the costs in one pipeline"))
    }

    /// Calls `of` for each of `pipelines` with the memory and time of ranges of layers in this
    /// pipeline, and returns the results in the same order. Ranges are computed up to the maximum
    /// bytes and maximum number of stages in `reach`, on the tiles that `tiles` selects.
    fn in_each<R: Send>(
        &self,
        question: &Arc<Question>,
        pipelines: &[Pipeline],
        reach: Reach,
        tiles: Tiles,
        of: impl Fn(PipelineCosts<'a>) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        let mut results = Vec::new();
        for some in pipelines.chunks(self.profiles[0].at_once(reach)) {
            let by_profile = self
                .profiles
                .iter()
                .map(|tables| tables.in_each(some, reach, tiles, &self.progress))
                .collect::<Result<Vec<_>>>()?;
            let costs = Vec::from_iter((0..some.len()).map(|place| {
                PipelineCosts::new(
                    question,
                    by_profile.iter().map(|costs| costs[place].clone()),
                )
            }));
            let task = self
                .progress
                .begin("choosing the pipeline", costs.len() as u64);
            let found = costs.into_par_iter().map(|costs| {
                task.add(1);
                of(costs)
            });
            results.append(&mut found.collect::<Result<_>>()?);
        }
        Ok(results)
    }
}
