//! The result of a search.

use super::advice::{AdviceFor, OverLimit};
use super::candidate::Candidate;
use super::error::SearchError;
use super::open_pipelines::Offer;
use super::pipeline_costs::PipelineCosts;
use super::plan::Front;
use super::request::{IpuCount, SearchRequest};
use super::shown_split::ShownSplit;
use crate::memory::{RangeCosts, StageMemory};
use crate::solve::{self, Greedy, Infeasible, Solution};
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
