//! The result of a search; if it is for another micro-batch than the profile's, with the estimate
//! that it rests on.

use super::advice::{AdviceFor, OverLimit};
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

/// The answer to a [`SearchRequest`]: the best split, or why none fits, with the costs of ranges
/// that it was found in.
#[derive(Debug)]
pub struct SearchResult<'a> {
    /// The request in the pipeline of the answer, with the costs of ranges in it.
    pub costs: PipelineCosts<'a>,
    /// The answer of the solver: the best split, or why none fits.
    pub answer: Answer,
    /// The split that reports show, with the memory of its stages.
    pub shown: ShownSplit,
    /// Costs of all ranges that begin near the cuts of the shown split. `None` unless other splits
    /// were requested and `costs` lacks some ranges.
    pub near: Option<RangeCosts>,
    /// Bytes on the fullest tile of the shown split if its pipeline did not recompute; `None` if
    /// the pipeline does not recompute anyway.
    pub without_recomputation: Option<u64>,
    /// The best split in each other pipeline that was tried besides that of the answer; only if
    /// nothing fits or moves of cuts were requested, otherwise empty.
    pub alternatives: Vec<Candidate>,
    /// The best split on each number of IPUs, or the one with the lowest peak where none fits;
    /// pipeline after pipeline, each ascending by number. In all open pipelines if a sweep was
    /// requested; in the pipeline of the answer if other splits are to be tried; otherwise empty.
    pub sweep: Vec<Candidate>,
    /// Number of pipelines that the request leaves open, which were compared to find the answer.
    pub open_pipelines: usize,
    /// The best configurations (IPUs, pipeline and split); `None` unless requested.
    pub plan: Option<Front>,
    /// The micro-batch of the profile and the one to which bytes and cycles are converted; `None`
    /// if the answer is for the micro-batch of the profile.
    pub estimate: Option<Estimate>,
}

/// The answer of the solver: the best split, or why none fits.
#[derive(Debug)]
pub enum Answer {
    /// A split fits in all limits and constraints.
    Best {
        /// The best split or, if the user gave one, that split.
        solution: Box<Solution>,
        /// Smallest number of IPUs that the framework supports and on which the model fits; `None`
        /// if the user gave a split, or if no split was requested.
        fewest_ipus: Option<usize>,
    },
    /// No split fits in all limits and constraints.
    Refused(Box<Refused>),
    /// The split that the search of the original tool finds. It is neither proven to be the best
    /// nor to fit.
    Greedy(Greedy),
}

/// Why no split fits, and which changes would help.
#[derive(Debug)]
pub struct Refused {
    /// The proof that no split fits, with the smallest number of stages that would fit in any open
    /// pipeline.
    pub infeasible: Infeasible,
    /// The ranges of positions that the proof names because they exceed the limits, each with the
    /// bytes on its fullest tile.
    pub over_limit: Vec<OverLimit>,
    /// The best split on the smallest number of IPUs that the framework supports and on which the
    /// model fits; `None` if it fits on no number.
    pub on_more_ipus: Option<Candidate>,
    /// Changes that would free memory; `None` if no split was requested, or if no stage exceeds its
    /// limit.
    pub advice: Option<AdviceFor>,
}

/// Returns the smallest number of IPUs that the framework supports and on which the model fits.
/// `best` is the split that fits, found with `costs`; `of_all` has the best results of all open
/// pipelines, `None` if they were not compared.
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
    /// Builds the answer with `solution`, the split that fits. `of_all` is as for [`fewest_ipus`].
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

    /// Builds the answer for a request that no split fits, as `infeasible` proves; the advice is
    /// added later. `of_all` has the best results of all open pipelines, `None` if they were not
    /// compared.
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
        let over_limit = ranges.into_iter().zip(&memory);
        let over_limit = over_limit.map(|(range, memory)| OverLimit::new(costs, range, memory));
        Ok(Self::Refused(Box::new(Refused {
            over_limit: over_limit.collect(),
            on_more_ipus,
            advice: None,
            infeasible,
        })))
    }

    /// Returns the best split, or the split with the lowest peak if none fits; `None` for the
    /// greedy search.
    pub fn best(&self) -> Option<&Solution> {
        match self {
            Answer::Best { solution, .. } => Some(solution),
            Answer::Refused(refused) => refused.infeasible.lowest_peak.as_ref(),
            Answer::Greedy(_) => None,
        }
    }

    /// Returns the stages of the split that reports show for `request`, as ranges of positions;
    /// empty if there is no split, or if none was requested.
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
    /// Returns the best split, or the split with the lowest peak if none fits; `None` for the
    /// greedy search.
    pub(crate) fn best(&self) -> Option<Candidate> {
        let fits = matches!(self.answer, Answer::Best { .. });
        let best = self.answer.best()?.clone();
        Some(Candidate::new(&self.costs, self.costs.ipus, fits, best))
    }

    /// Returns, for each number of IPUs of the sweep (ascending), the best candidate over all
    /// pipelines by the goal; the first of equal ones.
    pub(crate) fn best_by_ipus(&self) -> Vec<&Candidate> {
        let goal = self.costs.request().goal;
        let mut all: Vec<&Candidate> = self.sweep.iter().collect();
        // Of equal candidates, the one of the first pipeline stays first.
        all.sort_by(|one, other| one.compare(other, goal));
        all.dedup_by_key(|candidate| candidate.ipus);
        all
    }

    /// Returns the positions that exceed the limit wherever the other cuts are, ascending: those
    /// that exceed it as stages of their own and, if the split leaves an IPU unused, those that are
    /// a whole stage of the shown split and exceed the limit of its IPU.
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

/// The search for the largest micro-batch tries at most this number of samples.
const MAX_SAMPLES: u64 = 1 << 20;

/// All bytes and cycles of stages are estimates for another micro-batch than the profile's. Only a
/// compilation can confirm them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EstimateFacts")]
pub struct Estimate {
    /// Number of samples in a micro-batch of the profile.
    pub recorded_micro_batch: u64,
    /// Number of samples in the micro-batch for which bytes and cycles are estimated.
    pub micro_batch: u64,
    /// Largest number of samples in a micro-batch, at most 1,048,576, with which the given split
    /// fits by the same estimate; without a given split, any split on as many IPUs. `null` if not
    /// even one sample fits.
    pub largest_micro_batch: Option<u64>,
}

impl Estimate {
    /// Finds the largest micro-batch that fits, for an answer that was computed with `costs`.
    /// `scale` has the micro-batch of the profile and that of the answer; `memory` is the model
    /// with the micro-batch of the profile.
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

    /// Returns the micro-batch of the profile and that of the answer.
    pub fn scale(self) -> MicroBatchScale {
        MicroBatchScale {
            recorded: self.recorded_micro_batch,
            wanted: self.micro_batch,
        }
    }
}

/// Returns the largest number from 1 to [`MAX_SAMPLES`] for which `fits` is true, beginning the
/// search at `start`; `None` if it is false for 1. If `fits` is true for a number, it must be true
/// for all smaller ones.
fn largest<E>(start: u64, fits: impl Fn(u64) -> Result<bool, E>) -> Result<Option<u64>, E> {
    // The largest number known to fit, and a larger one that is not.
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
