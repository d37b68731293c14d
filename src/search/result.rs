//! The result of a search: the answer to the request, and the answers to changed requests that are
//! said beside it.

use super::advice::{Advice, OverLimit};
use super::candidate::Candidate;
use super::pipeline_costs::PipelineCosts;
use super::shown_split::ShownSplit;
use crate::memory::{Pipeline, RangeCosts};
use crate::solve::{Greedy, Refusal, Solution};
use std::fmt;

/// The answer to a request, with everything that reports say about it.
#[derive(Debug)]
pub struct SearchResult<'a> {
    /// The request in the pipeline of the answer, with the costs of ranges in it.
    pub costs: PipelineCosts<'a>,
    /// The best split with its proof, or why none fits.
    pub outcome: Outcome,
    /// The split that reports show, with the memory of its stages.
    pub shown: ShownSplit,
    /// By profile: costs of all ranges that begin near the cuts of the shown split. Empty unless other
    /// splits were requested and `costs` lacks some ranges.
    pub near: Vec<RangeCosts>,
    /// Number of pipelines that the request leaves open, which were compared to find the answer.
    pub open_pipelines: usize,
    /// If other splits were requested: the best split on each of several numbers of IPUs of a
    /// replica, ascending, with the same layers in the same pipeline; where none fits, the split
    /// with the lowest peak. Otherwise empty.
    pub by_ipus: Vec<Candidate>,
    /// The answers to changed requests.
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

    /// Returns the number of IPUs of all replicas that the answer may use.
    pub fn all_ipus(&self) -> usize {
        self.costs.ipus * self.costs.replicas()
    }

    /// Returns the fewest IPUs of all replicas on which the layers of the answer fit, with optimizer
    /// state in the same place; `None` if the user gave the split or none fits.
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
    /// A split fits in all limits and constraints: the best one, proven.
    Best(Box<Solution>),
    /// The user gave the split.
    Given,
    /// No split fits in all limits and constraints.
    Refused(Box<Refused>),
    /// The split that the search of the original tool finds. It is neither proven to be the best
    /// nor to fit.
    Greedy(Greedy),
}

/// Why no split fits, and what takes the memory.
#[derive(Debug)]
pub struct Refused {
    /// The reason why no split of these layers fits in the shown pipeline.
    pub refusal: Refusal,
    /// The ranges of positions that the proof names because they exceed the limits, each with the
    /// bytes on its fullest tile.
    pub over_limit: Vec<OverLimit>,
    /// The stage that exceeds its limit most; `None` if no stage exceeds its limit.
    pub most_over: Option<OverLimit>,
    /// Changes of the model that would free memory in that stage.
    pub advice: Vec<Advice>,
}

/// One change of a request, in the words of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// The option (such as `--num-ipus`) gets this value.
    Set(&'static str, String),
    /// The option is left out, whatever its values.
    Without(&'static str),
    /// The option is given once more, with this value.
    Add(&'static str, String),
    /// The constraint, as the user typed it, is left out.
    Drop(String),
}

impl fmt::Display for Word {
    /// Writes the word as a user types it; nothing for what is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(option, value) | Self::Add(option, value) => write!(f, "{option} {value}"),
            Self::Without(_) | Self::Drop(_) => Ok(()),
        }
    }
}

/// The answer to a changed request.
#[derive(Debug, Clone)]
pub struct Claim<'a> {
    /// What was changed in the request of the run.
    pub change: Vec<Word>,
    /// The changed request in the pipeline of its answer.
    pub costs: PipelineCosts<'a>,
    /// Its answer: the best split or, if none fits, the one with the lowest peak.
    pub best: Candidate,
}

impl Claim<'_> {
    /// Returns the memory of a tile in bytes that the changed request gives; `None` if it gives
    /// none.
    pub fn memory(&self) -> Option<u64> {
        self.change.iter().find_map(|word| match word {
            Word::Set("--mem-per-tile", bytes) => bytes.parse().ok(),
            _ => None,
        })
    }
}

/// A request without some constraints or ties, which a split fits.
#[derive(Debug, Clone)]
pub struct Relaxed<'a> {
    /// The constraints that were left out, as the options that the user typed. All others could
    /// stay.
    pub constraints: Vec<String>,
    /// The names of the weights that were untied.
    pub weights: Vec<String>,
    /// The answer without them.
    pub claim: Claim<'a>,
}

/// The answers to changed requests; each is empty if it was not asked for or has no answer.
#[derive(Debug, Default)]
pub struct Claims<'a> {
    /// If a split fits: the fewest IPUs on which the same layers fit with their optimizer state in
    /// the same place, if these are fewer than the answer has.
    pub fewest: Option<Claim<'a>>,
    /// If none fits: the fewest IPUs on which the model fits.
    pub on_more_ipus: Option<Claim<'a>>,
    /// If none fits: the highest number of IPUs that was tried; `None` if each IPU has a limit of
    /// its own.
    pub ipus_tried: Option<usize>,
    /// If none fits: the lowest memory of a tile with which the model fits.
    pub with_memory: Option<Claim<'a>>,
    /// Other schedules, recomputations and places of optimizer state, in the order in which a user
    /// would try them.
    pub with_options: Vec<Claim<'a>>,
    /// If none fits: what fits without some constraints or ties.
    pub relaxed: Vec<Relaxed<'a>>,
    /// If the user gave the split: the best one.
    pub without_given: Option<Claim<'a>>,
    /// If stages of the answer begin where no number of blocks does: the split that these numbers
    /// make.
    pub by_counts: Option<Claim<'a>>,
    /// If replicas of a smaller pipeline process more samples in a second: the fastest of these.
    pub with_replicas: Option<Claim<'a>>,
    /// If the model was recorded with several sizes of a micro-batch: the answer with each of them,
    /// ascending.
    pub sizes: Vec<OfSize<'a>>,
    /// The best split for each number of IPUs (`--sweep`).
    pub sweep: Vec<Claim<'a>>,
    /// The configurations that fit (`--plan`).
    pub plan: Option<Front<'a>>,
}

/// The answer with one size of a micro-batch.
#[derive(Debug, Clone)]
pub struct OfSize<'a> {
    /// Samples of a micro-batch.
    pub samples: u64,
    /// Path of the profile with this size, escaped for a message.
    pub profile: String,
    /// The answer to the request with this size alone.
    pub claim: Claim<'a>,
}

/// The configurations of a plan that fit, and what was tried to find them.
#[derive(Debug, Clone)]
pub struct Front<'a> {
    /// The configurations: the answer of the run first, then the fastest (without cycles, those on
    /// the fewest IPUs). Each differs from the one before it in IPUs, or by 5 % in time or memory.
    pub rows: Vec<Claim<'a>>,
    /// Numbers of IPUs that were tried, ascending.
    pub ipus: Vec<usize>,
    /// The pipelines (schedule, recomputation, place of optimizer state, replicas) that were tried.
    pub pipelines: Vec<Pipeline>,
}
