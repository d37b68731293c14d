//! Chooses schedule and recomputation if the request leaves them open.
//!
//! Each pipeline of the framework is searched separately. The answer is in the pipeline whose split
//! is best by the goal of the request, or has the lowest peak if none fits.

use super::alternatives::{OtherPipeline, in_each};
use super::rough::{self, Rough};
use super::swept::taken;
use super::{CostedRequest, IpuCount, Outcome, SearchError, SearchRequest, SearchResult};
use super::{SweepAnswer, configurations, search_with};
use crate::memory::{MemoryModel, Pipeline, PlacedStage};
use crate::model::{Framework, Placement};
use crate::progress::Progress;
use crate::solve::{self, Plan, Score, Solution};
use crate::time::StepTime;
use std::cmp::Ordering;

/// Answers `request` in the best of the pipelines that it leaves open; `memory` is in the usual
/// one. Returns the model in the pipeline of the answer too.
///
/// # Errors
/// As [`search_with`](super::search_with).
pub(super) fn search_open<'a>(
    memory: &MemoryModel<'a>,
    placement: &Placement,
    request: SearchRequest,
    progress: &Progress,
) -> Result<(MemoryModel<'a>, SearchResult), SearchError> {
    let pipelines = memory
        .pipeline()
        .open(request.pipeline, memory.is_training());
    let (chosen, mut found) = if pipelines.len() == 1 {
        let found = search_with(memory, placement, request, progress)?;
        (memory.clone(), found)
    } else {
        Open::new(memory, placement, request, pipelines)?.answer(placement, progress)?
    };
    if found.costed.request.plan {
        found.plan = Some(configurations::front(
            (&found, chosen.pipeline()),
            memory,
            progress,
        )?);
    }
    Ok((chosen, found))
}

/// A request that leaves its pipeline open.
struct Open<'m, 'a> {
    memory: &'m MemoryModel<'a>,
    costed: CostedRequest,
    pipelines: Vec<(Pipeline, Option<Rough>)>,
}

/// The pipeline in which a request is answered.
struct Chosen {
    pipeline: Pipeline,
    /// Smallest number of stages that fit in any of the pipelines.
    fewest: Option<usize>,
    /// If more IPUs are needed: the smallest sufficient number, and the best split on them.
    on_more_ipus: Option<(usize, Box<Solution>)>,
}

/// The best split of one pipeline.
struct Best {
    pipeline: Pipeline,
    /// Smallest number of stages that fit.
    fewest: usize,
    /// Number of IPUs of the split.
    ipus: usize,
    score: Score,
}

/// A given split in one pipeline.
struct Judged {
    pipeline: Pipeline,
    /// Does any stage exceed its limit?
    is_over: bool,
    /// Bytes on the fullest tile of any stage.
    peak: u64,
    step: Option<StepTime>,
}

impl Judged {
    /// Orders splits that fit before all others; then those that fit by speed, the others by peak.
    fn compare(&self, other: &Self) -> Ordering {
        let by_speed = match (self.is_over || other.is_over, self.step, other.step) {
            (false, Some(step), Some(theirs)) => step.by_rate(&theirs),
            _ => Ordering::Equal,
        };
        let by_fit = self.is_over.cmp(&other.is_over);
        by_fit.then(by_speed).then(self.peak.cmp(&other.peak))
    }
}

/// Result of one pipeline in which nothing fits.
struct Refused {
    pipeline: Pipeline,
    /// Bytes of a tile that would be enough.
    lowest_peak: Option<u64>,
    fewest: Option<usize>,
    /// The smallest sufficient number of IPUs, and the best split on them.
    on_more_ipus: Option<(usize, Box<Solution>)>,
}

impl<'m, 'a> Open<'m, 'a> {
    fn new(
        memory: &'m MemoryModel<'a>,
        placement: &Placement,
        request: SearchRequest,
        pipelines: Vec<Pipeline>,
    ) -> Result<Self, SearchError> {
        let costed = CostedRequest::new(memory, placement, request)?;
        let rough = |pipeline| {
            let memory = memory.in_pipeline(pipeline)?;
            Ok((pipeline, rough::peak(&memory, &costed)?))
        };
        let pipelines = pipelines.into_iter().map(rough);
        let pipelines = pipelines.collect::<Result<Vec<_>, SearchError>>()?;
        Ok(Self {
            memory,
            costed,
            pipelines,
        })
    }

    fn framework(&self) -> Framework {
        self.memory.framework()
    }

    fn answer(
        mut self,
        placement: &Placement,
        progress: &Progress,
    ) -> Result<(MemoryModel<'a>, SearchResult), SearchError> {
        let chosen = self.choose(progress)?;
        let memory = self.memory.in_pipeline(chosen.pipeline)?;
        let request = SearchRequest {
            sweep: false,
            ..self.costed.request.clone()
        };
        let mut found = search_with(&memory, placement, request, progress)?;
        chosen.complete(&mut found, self.framework());
        if self.costed.request.sweep {
            self.costed.ipus = found.costed.ipus;
            found.sweep_of_all = Some(self.sweep(progress)?);
            found.costed.request.sweep = true;
        }
        Ok((memory, found))
    }

    fn choose(&self, progress: &Progress) -> Result<Chosen, SearchError> {
        if let Some(plan) = &self.costed.request.given {
            return self.choose_for(plan);
        }
        match self.best(progress)? {
            Some(best) => Ok(best),
            None => self.closest(progress),
        }
    }

    /// The pipeline in which the given split is fastest, among those in which it fits; or has the
    /// lowest peak if it fits in none.
    fn choose_for(&self, plan: &Plan) -> Result<Chosen, SearchError> {
        let judged = self
            .pipelines
            .iter()
            .map(|&(pipeline, _)| self.judge(plan, pipeline));
        let judged = judged.collect::<Result<Vec<_>, _>>()?;
        let best = judged.iter().min_by(|one, other| one.compare(other));
        Ok(Chosen {
            pipeline: best.map_or(self.memory.pipeline(), |best| best.pipeline),
            fewest: None,
            on_more_ipus: None,
        })
    }

    fn judge(&self, plan: &Plan, pipeline: Pipeline) -> Result<Judged, SearchError> {
        let memory = self.memory.in_pipeline(pipeline)?;
        let peaks = memory.peaks(&PlacedStage::of_split(plan.stages()));
        let mut stages = peaks.iter().enumerate();
        let times = self.costed.times.as_ref();
        Ok(Judged {
            pipeline,
            is_over: stages.any(|(ipu, &bytes)| bytes > self.costed.limit_of(ipu)),
            step: times.and_then(|times| times.in_pipeline(pipeline).step(plan.stages())),
            peak: peaks.into_iter().max().unwrap_or(0),
        })
    }

    /// The pipeline with the best split that fits; `None` if none fits.
    fn best(&self, progress: &Progress) -> Result<Option<Chosen>, SearchError> {
        let limit = self.costed.request.highest_limit();
        let wanted = self.pipelines.iter();
        let wanted =
            wanted.filter(|(_, rough)| rough.as_ref().is_some_and(|rough| rough.fits(limit)));
        let wanted: Vec<_> = wanted.map(|&(pipeline, _)| (pipeline, limit)).collect();
        let stages = self.costed.request.ipus.highest();
        let found = self.in_each(&wanted, stages, progress, |other| self.best_of(other))?;
        let found: Vec<Best> = found.into_iter().flatten().collect();
        let fewest = found.iter().map(|best| best.fewest).min();
        let goal = self.costed.request.goal;
        let best = found.into_iter().min_by(|a, b| {
            let by_ipus = a.ipus.cmp(&b.ipus);
            by_ipus.then_with(|| a.score.compare(&b.score, goal))
        });
        Ok(best.map(|best| Chosen {
            pipeline: best.pipeline,
            fewest,
            on_more_ipus: None,
        }))
    }

    fn best_of(&self, other: &mut OtherPipeline<'_>) -> Result<Option<Best>, SearchError> {
        let problem = other.problem(&self.costed);
        let Some(fewest) = solve::fewest_stages(&problem)? else {
            return Ok(None);
        };
        let ipus = match self.costed.request.ipus {
            IpuCount::Exactly(ipus) => ipus,
            IpuCount::UpTo(most) => taken(fewest, self.framework()).min(most),
        };
        let best = solve::unproven(&problem.with_ipus(ipus))?;
        Ok(best.map(|(_, score)| Best {
            pipeline: other.pipeline(),
            fewest,
            ipus,
            score,
        }))
    }

    /// The pipeline that comes closest to fitting, if none fits.
    fn closest(&self, progress: &Progress) -> Result<Chosen, SearchError> {
        let limit = self.costed.request.highest_limit();
        let needed = |(pipeline, rough): &(Pipeline, Option<Rough>)| {
            let needed = rough.as_ref();
            (
                *pipeline,
                needed.map_or(u64::MAX, |rough| rough.limit_of_best(limit)),
            )
        };
        let wanted: Vec<_> = self.pipelines.iter().map(needed).collect();
        let stages = self.costed.more_stages();
        let refused = |other: &mut OtherPipeline<'_>| self.refused(other, progress);
        let found = self.in_each(&wanted, stages, progress, refused)?;
        let closest = found
            .iter()
            .min_by_key(|refused| refused.lowest_peak.unwrap_or(u64::MAX));
        let pipeline = closest.map_or(self.memory.pipeline(), |refused| refused.pipeline);
        let fewest = found.iter().filter_map(|refused| refused.fewest).min();
        let goal = self.costed.request.goal;
        let on_more = found
            .into_iter()
            .filter_map(|refused| refused.on_more_ipus)
            .min_by(|(ipus, best), (others, other)| {
                let by_ipus = ipus.cmp(others);
                by_ipus.then_with(|| best.score.compare(&other.score, goal))
            });
        Ok(Chosen {
            pipeline,
            fewest,
            on_more_ipus: on_more,
        })
    }

    fn refused(
        &self,
        other: &mut OtherPipeline<'_>,
        progress: &Progress,
    ) -> Result<Refused, SearchError> {
        let lowest = other.solve(&self.costed, progress)?;
        let problem = other.problem(&self.costed);
        let fewest = solve::fewest_stages(&problem)?;
        let on_more_ipus = match fewest.map(|fewest| taken(fewest, self.framework())) {
            Some(ipus) => {
                let best = solve::solve(&problem.with_ipus(ipus))?;
                best.map(|best| (ipus, Box::new(best)))
            }
            None => None,
        };
        Ok(Refused {
            pipeline: other.pipeline(),
            lowest_peak: lowest.map(|(_, best)| best.score.peak),
            fewest,
            on_more_ipus,
        })
    }

    /// The best split of all pipelines for each number of IPUs; if none fits, the split with the
    /// lowest peak.
    fn sweep(&self, progress: &Progress) -> Result<Vec<SweepAnswer>, SearchError> {
        let numbers = self.costed.swept();
        let stages = numbers.last().copied().unwrap_or(0);
        let all = self
            .pipelines
            .iter()
            .map(|&(pipeline, _)| (pipeline, u64::MAX));
        let all: Vec<_> = all.collect();
        let rows = self.in_each(&all, stages, progress, |other| {
            self.costed
                .sweep_of(&other.problem(&self.costed), other.pipeline())
        })?;
        let mut best: Vec<SweepAnswer> = Vec::new();
        for answer in rows.into_iter().flatten() {
            match best.iter_mut().find(|other| other.ipus == answer.ipus) {
                None => best.push(answer),
                Some(other) if answer.is_better_than(other, self.costed.request.goal) => {
                    *other = answer;
                }
                Some(_) => {}
            }
        }
        best.sort_by_key(|answer| answer.ipus);
        Ok(best)
    }

    /// Results of `of` for each pipeline of `wanted`, with the costs of ranges up to the bytes
    /// given there, for at most `stages` stages.
    fn in_each<R: Send>(
        &self,
        wanted: &[(Pipeline, u64)],
        stages: usize,
        progress: &Progress,
        of: impl Fn(&mut OtherPipeline<'a>) -> Result<R, SearchError> + Sync,
    ) -> Result<Vec<R>, SearchError> {
        let task = ("choosing the pipeline", progress);
        in_each(&self.costed, self.memory, (wanted, stages), task, of)
    }
}

impl Chosen {
    /// Adds the results over all pipelines to the answer in one of them.
    fn complete(self, found: &mut SearchResult, framework: Framework) {
        match &mut found.outcome {
            Outcome::Infeasible(infeasible) if found.costed.request.given.is_none() => {
                infeasible.fewest = self.fewest;
                found.on_more_ipus = self.on_more_ipus;
            }
            _ => {}
        }
        if found.fewest_ipus.is_some() {
            found.fewest_ipus = self.fewest.map(|fewest| taken(fewest, framework));
        }
    }
}
