//! The result of a search: the answer to the user's request, and the answers to variants of the
//! request, such as one with fewer IPUs, that the report mentions.

use super::advice::{Advice, OverLimit};
use super::candidate::Candidate;
use super::pipeline_costs::PipelineCosts;
use super::shown_split::ShownSplit;
use crate::memory::{Pipeline, RangeCosts};
use crate::solve::{Greedy, Refusal, Solution};
use std::fmt;

/// The answer to a request, with everything that reports contain about it.
#[derive(Debug)]
pub struct SearchResult<'a> {
    /// The request in the pipeline of the answer, with the memory and time of ranges of layers.
    pub costs: PipelineCosts<'a>,
    /// The best split with its proof, or why none fits.
    pub outcome: Outcome,
    /// The split that reports show, with the memory of its stages.
    pub shown: ShownSplit,
    /// For each profile: the bytes of all ranges that begin near the cuts of the shown split. Empty
    /// unless other splits were requested and `costs` lacks some ranges.
    pub near: Vec<RangeCosts>,
    /// Number of pipelines that the request allows, which were compared to find the answer.
    pub open_pipelines: usize,
    /// If other splits were requested: the best split on each of several numbers of IPUs of a
    /// replica, in ascending order, with the layers and the pipeline of the answer; where no split
    /// fits, the split with the lowest peak. Otherwise empty.
    pub by_ipus: Vec<Candidate>,
    /// The answers to changed requests that the report mentions.
    pub claims: Claims<'a>,
}

impl<'a> SearchResult<'a> {
    /// Creates the result of a search in one pipeline, without answers to changed requests.
    pub fn alone(costs: PipelineCosts<'a>, outcome: Outcome, shown: ShownSplit) -> Self {
        Self {
            costs,
            outcome,
            shown,
            near: Vec::new(),
            open_pipelines: 1,
            by_ipus: Vec::new(),
            claims: Claims::default(),
        }
    }

    /// Returns the number of IPUs over all replicas that the answer may use.
    pub fn all_ipus(&self) -> usize {
        self.costs.ipus * self.costs.replicas()
    }

    /// Returns the fewest IPUs over all replicas on which the layers of the answer fit, with
    /// optimizer state in the same place; `None` if the user gave the split or no split fits.
    pub fn fewest_ipus(&self) -> Option<usize> {
        let Outcome::Best(best) = &self.outcome else {
            return None;
        };
        let fewer = self.claims.fewest.as_ref();
        let own =
            self.costs.memory().framework().supported(best.score.stages) * self.costs.replicas();
        self.costs
            .request()
            .options
            .split
            .then(|| fewer.map_or(own, |claim| claim.best.all_ipus()))
    }
}

/// The best split, or why none fits.
#[derive(Debug)]
pub enum Outcome {
    /// A split is within all limits and obeys all constraints: the best one, with its proof.
    Best(Box<Solution>),
    /// The user gave the split, so none was searched for.
    Given,
    /// No split is within all limits and obeys all constraints.
    Refused(Box<Refused>),
    /// The split that the greedy search of the original tool finds. It is not proven to be the
    /// best, and may not fit.
    Greedy(Greedy),
}

/// The reason why no split fits, and where the memory goes.
#[derive(Debug)]
pub struct Refused {
    /// The reason why no split of these layers fits in the pipeline of the shown split.
    pub refusal: Refusal,
    /// The ranges of positions that exceed the limits and so prove that no split fits, each with
    /// the bytes on its fullest tile.
    pub over_limit: Vec<OverLimit>,
    /// The stage of the shown split that exceeds its limit most; `None` if no stage exceeds its
    /// limit.
    pub most_over: Option<OverLimit>,
    /// Changes of the model that would free memory in the stage `most_over`.
    pub advice: Vec<Advice>,
}

/// One changed option of a request, as on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// The option (such as `--num-ipus`) gets this value.
    Set(&'static str, String),
    /// The option is left out, whatever its values.
    Without(&'static str),
    /// The option is given once more, with this value.
    Add(&'static str, String),
    /// The constraint (an option with its value, as the user typed it) is left out.
    Drop(String),
}

impl fmt::Display for Word {
    /// Writes the option as a user types it; nothing for an option that is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(option, value) | Self::Add(option, value) => write!(f, "{option} {value}"),
            Self::Without(_) | Self::Drop(_) => Ok(()),
        }
    }
}

/// The answer to a changed request, with the changes.
#[derive(Debug, Clone)]
pub struct Claim<'a> {
    /// The options that differ from the user's request.
    pub change: Vec<Word>,
    /// The changed request in the pipeline of its answer.
    pub costs: PipelineCosts<'a>,
    /// The answer: the best split or, if none fits, the split with the lowest peak.
    pub best: Candidate,
}

impl Claim<'_> {
    /// Returns the memory of a tile in bytes that the change sets; `None` if the change does not
    /// set it.
    pub fn memory(&self) -> Option<u64> {
        self.change.iter().find_map(|word| match word {
            Word::Set("--mem-per-tile", bytes) => bytes.parse().ok(),
            _ => None,
        })
    }
}

/// A split that fits if some constraints are left out or some shared weights are untied.
#[derive(Debug, Clone)]
pub struct Relaxed<'a> {
    /// The constraints that must be left out, as the options that the user typed. All other
    /// constraints could stay.
    pub constraints: Vec<String>,
    /// The names of the shared weights that must be untied.
    pub weights: Vec<String>,
    /// The answer without these constraints and ties.
    pub claim: Claim<'a>,
}

/// The answers to changed requests; a field is empty if its answer was not requested or does not
/// exist.
#[derive(Debug, Default)]
pub struct Claims<'a> {
    /// If a split fits: the answer on the fewest IPUs on which the same layers fit with their
    /// optimizer state in the same place, if these are fewer than the original answer uses.
    pub fewest: Option<Claim<'a>>,
    /// If no split fits: the answer on the fewest IPUs on which the model fits.
    pub on_more_ipus: Option<Claim<'a>>,
    /// If no split fits: the highest number of IPUs that was tried; `None` if each IPU has a
    /// separate limit.
    pub ipus_tried: Option<usize>,
    /// If no split fits: the answer with the lowest memory of a tile with which the model fits.
    pub with_memory: Option<Claim<'a>>,
    /// The answers with other schedules, recomputations and places of optimizer state, in the order
    /// in which a user would try them.
    pub with_options: Vec<Claim<'a>>,
    /// If no split fits: the answers that fit without some constraints or tied weights.
    pub relaxed: Vec<Relaxed<'a>>,
    /// If the user gave the split: the best split to compare it with.
    pub without_given: Option<Claim<'a>>,
    /// If the answer cannot be described by the number of blocks on each IPU: the split that these
    /// numbers result in.
    pub by_counts: Option<Claim<'a>>,
    /// If replicas of a smaller pipeline process more samples in a second: the fastest such answer.
    pub with_replicas: Option<Claim<'a>>,
    /// If the model was recorded with several micro-batch sizes: the answer with each size, in
    /// ascending order.
    pub sizes: Vec<OfSize<'a>>,
    /// The best split on each number of IPUs (`--sweep`).
    pub sweep: Vec<Claim<'a>>,
    /// The configurations that fit (`--plan`).
    pub plan: Option<Front<'a>>,
}

/// The answer with one micro-batch size.
#[derive(Debug, Clone)]
pub struct OfSize<'a> {
    /// Number of samples in a micro-batch.
    pub samples: u64,
    /// Path of the profile with this micro-batch size, escaped for a message.
    pub profile: String,
    /// The answer to the request with this micro-batch size only.
    pub claim: Claim<'a>,
}

/// The configurations of a plan (`--plan`) that fit, and what was tried to find them.
#[derive(Debug, Clone)]
pub struct Front<'a> {
    /// The configurations: the answer to the user's request first, then the fastest (without cycle
    /// counts, those on the fewest IPUs). Each differs from the one before it in IPUs, or by 5 % in
    /// time or memory.
    pub rows: Vec<Claim<'a>>,
    /// Numbers of IPUs that were tried, in ascending order.
    pub ipus: Vec<usize>,
    /// The pipelines (schedule, recomputation, place of optimizer state, replicas) that were tried.
    pub pipelines: Vec<Pipeline>,
}
