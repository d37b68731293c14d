//! The result of a search, with the estimate that it rests on if it is for another micro-batch than
//! the profile's.

use super::advice::AdviceFor;
use super::candidate::Candidate;
use super::error::SearchError;
use super::open_pipelines::Offer;
use super::pipeline_costs::PipelineCosts;
use super::plan::Front;
use super::request::{IpuCount, SearchRequest};
use super::shown_split::ShownSplit;
use crate::memory::{MemoryModel, MicroBatchScale, RangeCosts, StageMemory};
use crate::solve::{self, Greedy, Infeasible, Solution};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The answer to a [`SearchRequest`]: the best split, or why none fits, and
/// the costs that the answer rests on.
#[derive(Debug)]
pub struct SearchResult<'a> {
    /// The request in the pipeline of the answer, with its costs.
    pub costs: PipelineCosts<'a>,
    /// The answer of the solver.
    pub answer: Answer,
    /// The split to show.
    pub shown: ShownSplit,
    /// Costs of all ranges that begin near its cuts, if other splits were requested and `costs` does
    /// not have all ranges.
    pub near: Option<RangeCosts>,
    /// Bytes on the fullest tile of the split without recomputation; `None` if its pipeline has
    /// none.
    pub without_recomputation: Option<u64>,
    /// Best splits in other pipelines, if nothing fits or moves were requested.
    pub alternatives: Vec<Candidate>,
    /// The best split on each number of IPUs, in ascending order, pipeline after pipeline: in all
    /// open pipelines if a sweep was requested, or else in the pipeline of the answer if other splits
    /// are to be tried.
    pub sweep: Vec<Candidate>,
    /// Number of pipelines that the request leaves open, which were compared for the answer.
    pub open_pipelines: usize,
    /// The best whole configurations, if requested.
    pub plan: Option<Front>,
    /// The estimate that the answer rests on, if it is for another micro-batch than that of the
    /// profile.
    pub estimate: Option<Estimate>,
}

/// The answer of a solver.
#[derive(Debug)]
pub enum Answer {
    /// The best split, which fits.
    Best {
        /// The best split, or the split that was requested, with its stages.
        solution: Box<Solution>,
        /// Smallest sufficient number of IPUs that the framework supports; `None` if a split was
        /// given, or none was requested.
        fewest_ipus: Option<usize>,
    },
    /// Nothing fits.
    Refused(Box<Refused>),
    /// The split of the original tool's search, which proves nothing.
    Greedy(Greedy),
}

/// Why nothing fits, and what would help.
#[derive(Debug)]
pub struct Refused {
    /// The reasons, with the smallest sufficient number of IPUs in any open pipeline.
    pub infeasible: Infeasible,
    /// Ranges of the certificate, with their memory.
    pub over_limit: Vec<(Range<usize>, StageMemory)>,
    /// The best split on the smallest sufficient number of IPUs that the framework supports; `None`
    /// if no number is sufficient.
    pub on_more_ipus: Option<Candidate>,
    /// Changes that would free memory; `None` if no split was requested.
    pub advice: Option<AdviceFor>,
}

/// Smallest sufficient number of IPUs that the framework supports, if `best` fits.
fn fewest_ipus(
    costs: &PipelineCosts<'_>,
    best: &Solution,
    of_all: Option<Offer>,
) -> Result<Option<usize>, SearchError> {
    let fewest = match (of_all, costs.request().ipus) {
        (Some(all), _) => all.fewest,
        (None, IpuCount::UpTo(_)) => return Ok(Some(costs.ipus)),
        (None, _) if best.score.stages == 1 => Some(1),
        (None, _) => solve::fewest_stages(&costs.problem())?,
    };
    Ok(fewest.map(|stages| costs.supported(stages)))
}

impl Answer {
    /// The answer with the best split.
    pub(super) fn of_best(
        costs: &PipelineCosts<'_>,
        solution: Solution,
        of_all: Option<Offer>,
    ) -> Result<Self, SearchError> {
        let request = costs.request();
        Ok(Self::Best {
            fewest_ipus: match request.options.split && request.given.is_none() {
                true => fewest_ipus(costs, &solution, of_all)?,
                false => None,
            },
            solution: Box::new(solution),
        })
    }

    /// The answer if nothing fits, still without advice.
    pub(super) fn refused(
        costs: &PipelineCosts<'_>,
        mut infeasible: Infeasible,
        of_all: Option<Offer>,
    ) -> Result<Self, SearchError> {
        let on_more_ipus = match of_all {
            Some(all) => {
                infeasible.fewest = all.fewest;
                all.on_more_ipus
            }
            None => costs.on_more_ipus(infeasible.fewest)?,
        };
        let ranges = infeasible.certificate.ranges.clone();
        let memory = costs.memory.stages(&ranges);
        Ok(Self::Refused(Box::new(Refused {
            over_limit: ranges.into_iter().zip(memory).collect(),
            on_more_ipus,
            advice: None,
            infeasible,
        })))
    }

    /// The best split, or the split with the lowest peak if none fits; `None` for a greedy search.
    pub fn best(&self) -> Option<&Solution> {
        match self {
            Answer::Best { solution, .. } => Some(solution),
            Answer::Refused(refused) => refused.infeasible.lowest_peak.as_ref(),
            Answer::Greedy(_) => None,
        }
    }

    /// The stages of the split to show; empty if there is none, or none was requested.
    pub(super) fn shown(&self, request: &SearchRequest) -> Vec<Range<usize>> {
        let stages = match (&request.given, self) {
            _ if !request.options.split => None,
            (Some(plan), _) => Some(plan.stages()),
            (None, Answer::Greedy(greedy)) => Some(&greedy.stages[..]),
            (None, _) => self.best().map(|best| best.plan.stages()),
        };
        stages.unwrap_or_default().to_vec()
    }
}

impl SearchResult<'_> {
    /// The best split, or the split with the lowest peak if none fits; `None` for a greedy search.
    pub(crate) fn best(&self) -> Option<Candidate> {
        let fits = matches!(self.answer, Answer::Best { .. });
        let best = self.answer.best()?.clone();
        Some(Candidate::new(&self.costs, self.costs.ipus, fits, best))
    }

    /// The best candidate of all pipelines on each number of IPUs of the sweep, ascending.
    pub(crate) fn best_by_ipus(&self) -> Vec<&Candidate> {
        let goal = self.costs.request().goal;
        let mut all: Vec<&Candidate> = self.sweep.iter().collect();
        // Of equals, the one of the first pipeline stays the first.
        all.sort_by(|one, other| one.compare(other, goal));
        all.dedup_by_key(|candidate| candidate.ipus);
        all
    }

    /// Positions for which other cuts do not help, ascending: they exceed the limit as stages of
    /// their own, or, if an IPU is left, are a stage of the best split that exceeds its limit.
    pub(crate) fn positions_over_limit(&self) -> Vec<usize> {
        let by_themselves = self.costs.positions_over_limit().into_iter();
        let ShownSplit { stages, memory, .. } = &self.shown;
        let is_over = |(ipu, (stage, memory)): &(usize, (&Range<usize>, &StageMemory))| {
            stage.len() == 1 && memory.max_tile_bytes() > self.costs.limit_of(*ipu)
        };
        let is_ipu_left = stages.len() < self.costs.ipus;
        let stages = stages.iter().zip(memory).enumerate();
        let stages = stages.filter(|stage| is_ipu_left && is_over(stage));
        let stages = stages.map(|(_, (stage, _))| stage.clone());
        let mut positions: Vec<usize> = by_themselves
            .chain(stages)
            .map(|range| range.start)
            .collect();
        positions.sort_unstable();
        positions.dedup();
        positions
    }
}

/// Upper bound on the samples of a micro-batch that are tried.
const MAX_SAMPLES: u64 = 1 << 20;

/// All bytes and cycles of stages are estimates for another micro-batch than the profile's. Only a
/// compilation can confirm them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EstimateFacts")]
pub struct Estimate {
    /// The samples of a micro-batch of the profile.
    pub recorded_micro_batch: u64,
    /// The samples that the numbers are estimated for.
    pub micro_batch: u64,
    /// The most samples, up to 1,048,576, with which the given split, or any split on as many IPUs
    /// in this pipeline, fits by the same estimate; `null` if not even one sample fits.
    pub largest_micro_batch: Option<u64>,
}

impl Estimate {
    /// Estimate for an answer that was computed with `costs`; `memory` has the recorded micro-batch.
    pub(super) fn new<'a>(
        scale: MicroBatchScale,
        memory: &MemoryModel<'a>,
        costs: &PipelineCosts<'a>,
    ) -> Result<Self, SearchError> {
        let answered = costs.pipeline();
        let usual = memory.pipeline();
        let usual = usual.with_state(answered.state, answered.replicas);
        let open = usual.open(costs.request().options.pipeline, memory.is_training());
        let open = open.into_iter().map(|other| memory.in_pipeline(other));
        let open = open.collect::<Result<Vec<_>, _>>()?;
        let fits = |samples: u64| -> Result<bool, SearchError> {
            let scale = MicroBatchScale {
                wanted: samples,
                ..scale
            };
            for memory in &open {
                if costs.fits_in(memory.at_micro_batch(scale))? {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        Ok(Self {
            recorded_micro_batch: scale.recorded,
            micro_batch: scale.wanted,
            largest_micro_batch: largest(scale.wanted, fits)?,
        })
    }

    /// Ratio of the micro-batch of the answer to the one of the profile.
    pub fn scale(self) -> MicroBatchScale {
        MicroBatchScale {
            recorded: self.recorded_micro_batch,
            wanted: self.micro_batch,
        }
    }
}

/// Largest number for which `fits` holds, found from `start` on. `fits` must hold for all smaller
/// numbers too.
fn largest<E>(start: u64, fits: impl Fn(u64) -> Result<bool, E>) -> Result<Option<u64>, E> {
    // The largest known number that fits, and a larger one that does not.
    let (mut fitting, mut beyond) = (0, start.clamp(1, MAX_SAMPLES));
    while fits(beyond)? {
        fitting = beyond;
        if beyond == MAX_SAMPLES {
            return Ok(Some(fitting));
        }
        beyond = beyond.saturating_mul(2).min(MAX_SAMPLES);
    }
    while beyond - fitting > 1 {
        let middle = fitting + (beyond - fitting) / 2;
        match fits(middle)? {
            true => fitting = middle,
            false => beyond = middle,
        }
    }
    Ok(Some(fitting).filter(|&count| count > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_that_fits_is_found_from_anywhere() {
        for start in [1, 2, 3, 7, 50, u64::MAX] {
            for most in [0, 1, 2, 6, 7, 100, MAX_SAMPLES - 1, MAX_SAMPLES, u64::MAX] {
                let found = largest(start, |count| Ok::<_, ()>(count <= most));
                let expected = Some(most.min(MAX_SAMPLES)).filter(|&count| count > 0);
                assert_eq!(found, Ok(expected), "{start} {most}");
            }
        }
        assert_eq!(largest(4, |_| Err::<bool, _>("no")), Err("no"));
    }
}
