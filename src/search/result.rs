//! The results of searches. A [`Candidate`] is the best split in one pipeline on a number of IPUs.
//! A [`SearchResult`] is the answer to the user's request, with the answers to changed requests
//! (such as one with fewer IPUs) that the report mentions.

use super::{
    advice::{Advice, OverLimit},
    pipeline_costs::PipelineCosts,
    shown_split::ShownSplit,
};
use crate::{
    memory::{Pipeline, RangeCosts},
    solve::{Greedy, Refusal, Solution},
};
use std::{cmp::Ordering, fmt};

/// The best split in one pipeline on a number of IPUs or, if no split fits, the split with the
/// lowest peak.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The pipeline of the split: its schedule, recomputation and place of optimizer state.
    pub pipeline: Pipeline,
    /// Number of IPUs of each replica (copy of the pipeline). The split may have fewer stages.
    pub ipus: usize,
    /// Number of replicas (copies of the pipeline on other IPUs), at least 1.
    pub replicas: usize,
    /// Number of samples in a micro-batch, by which time per sample is computed; 1 if unknown.
    pub samples: usize,
    /// Whether every stage of the split is within its memory limit.
    pub fits: bool,
    /// Whether part of the step time is unknown. This is so if optimizer state is gathered from
    /// replicas, or if it is off the chip and the bandwidth of streaming is unknown.
    pub lacks_time: bool,
    /// The stages of the split, with its score (peak, time and other objectives).
    pub solution: Solution,
    /// One entry per stage: the peak of the stage, which is the bytes on its fullest tile.
    pub peaks: Vec<u64>,
}

impl Candidate {
    /// Makes a candidate of the split `solution`, which was found with the memory and time in
    /// `costs` on `ipus` IPUs per replica. The bytes on the fullest tile of each stage are taken
    /// from `costs`.
    pub(super) fn new(
        costs: &PipelineCosts<'_>,
        ipus: usize,
        fits: bool,
        solution: Solution,
    ) -> Self {
        let (pipeline, step) = (costs.pipeline(), costs.request().options.step);
        let state = pipeline.state;
        Self {
            pipeline,
            ipus,
            replicas: costs.replicas(),
            samples: step.micro_batch.unwrap_or(1) as usize,
            fits,
            lacks_time: state.is_sharded()
                || state.is_off_chip() && step.streaming_bandwidth.is_none(),
            peaks: costs.problem().peaks(&solution.plan).unwrap_or_default(),
            solution,
        }
    }

    /// Returns the number of IPUs that all replicas of the pipeline take together; some of these
    /// IPUs may have no stage.
    pub fn all_ipus(&self) -> usize {
        self.ipus * self.replicas
    }

    /// Returns the peak of the split: the bytes on the fullest tile of any stage.
    pub fn peak_bytes(&self) -> u64 {
        self.solution.score.peak
    }

    /// Compares the peaks of two splits; returns `Less` if the peak of `self` is lower.
    pub fn by_peak(&self, other: &Self) -> Ordering {
        self.peak_bytes().cmp(&other.peak_bytes())
    }

    /// Compares the speed of two candidates: the cycles that all replicas together take per sample.
    /// Returns `Less` if `self` is faster, and `Equal` if the step time of either candidate is
    /// unknown.
    pub fn by_rate(&self, other: &Self) -> Ordering {
        let rate = |own: &Self| Some(own.solution.score.step?.rate(own.replicas * own.samples));
        rate(self)
            .zip(rate(other))
            .map_or(Ordering::Equal, |(mine, theirs)| mine.compare(theirs))
    }
}

/// Returns `limit - bytes`, the bytes that stay free on a tile. The result is negative if the limit
/// is exceeded, and clamped to the range of `i64`.
pub fn free_bytes(limit: u64, bytes: u64) -> i64 {
    (i128::from(limit) - i128::from(bytes)).clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// The answer to the user's request (the best split, or why none fits), with all data that reports
/// show about this answer.
#[derive(Debug)]
pub struct SearchResult<'a> {
    /// The user's request, and the memory and time of ranges of positions (In, layers, Out) with
    /// the pipeline settings (schedule, recomputation, place of optimizer state) of the shown
    /// split.
    pub costs: PipelineCosts<'a>,
    /// The outcome of the search, such as the best split with its proof, or the reason why no split
    /// fits.
    pub outcome: Outcome,
    /// The split that reports show, with the memory of its stages.
    pub shown: ShownSplit,
    /// One entry per profile: the bytes of the ranges of positions that start near the cuts of the
    /// shown split, from which reports show other splits. Empty if the model has so few positions
    /// that all ranges are computed, or if other splits were not requested.
    pub near: Vec<RangeCosts>,
    /// Number of combinations of pipeline settings (schedule, recomputation, place of optimizer
    /// state) that the search compared to find the best split.
    pub open_pipelines: usize,
    /// The best split on each of several numbers of IPUs of a replica, in ascending order of IPUs,
    /// with the same layers and pipeline as the shown split. Where no split fits, the entry is the
    /// split with the lowest peak. The list is empty unless other splits were requested.
    pub by_ipus: Vec<Candidate>,
    /// Statements of the report about changed copies of the user's request (such as one with fewer
    /// IPUs), each with the best split for the changed request.
    pub claims: Claims<'a>,
}

impl<'a> SearchResult<'a> {
    /// Makes the result of a search in a single pipeline, without any splits for other numbers of
    /// IPUs or for changed requests.
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

    /// Returns the number of IPUs for the shown split over all replicas; some may stay empty.
    pub fn all_ipus(&self) -> usize {
        self.costs.ipus * self.costs.replicas()
    }

    /// Returns the smallest number of IPUs, summed over all replicas, on which a split fits that
    /// has the same layers and the same place of optimizer state as the best split. Returns `None`
    /// if the user gave the split or no split fits.
    pub fn fewest_ipus(&self) -> Option<usize> {
        let framework = self.costs.memory().framework();
        match (&self.outcome, &self.claims.fewest) {
            (Outcome::Best(_), Some(claim)) => Some(claim.best.all_ipus()),
            (Outcome::Best(best), None) => {
                Some(framework.supported(best.score.stages) * self.costs.replicas())
            }
            _ => None,
        }
    }
}

/// The outcome of a search: the split that was found or given, or the reason why no split fits.
#[derive(Debug)]
pub enum Outcome {
    /// The best of the splits that are within all limits and obey all constraints, with the proof
    /// that it is the best.
    Best(Box<Solution>),
    /// The user gave the split, so the search only evaluated it.
    Given,
    /// No split is within all limits and obeys all constraints; the field has the reason.
    Refused(Box<Refused>),
    /// The split that the greedy search finds (`--solver greedy`), as the Python tool that PopLiner
    /// replaces did. It is not proven to be the best, and it may not fit.
    Greedy(Greedy),
}

/// The reason why no split fits, with the layers that take too much memory and ways to reduce it.
#[derive(Debug)]
pub struct Refused {
    /// The reason why no split is within the limits and obeys the constraints, for the layers and
    /// the pipeline of the split that the report shows.
    pub refusal: Refusal,
    /// The ranges of positions that exceed the limits, each with the bytes on its fullest tile.
    /// These ranges prove that no split fits.
    pub over_limit: Vec<OverLimit>,
    /// The stage of the shown split that exceeds its limit most; `None` if no stage exceeds its
    /// limit.
    pub most_over: Option<OverLimit>,
    /// Changes to the model that would free memory in the stage that exceeds its limit most
    /// (`most_over`).
    pub advice: Vec<Advice>,
}

/// One change of the user's command line, such as another value of an option. One or more of them
/// make a changed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// Set an option to a value. Fields: the name of the option, such as `--num-ipus`, and the
    /// value.
    Set(&'static str, String),
    /// Leave out an option that the user gave, with all its values. The field is the name of the
    /// option.
    Without(&'static str),
    /// Add a value to an option, beside all values that the user gave to it. Fields: the name of
    /// the option, such as `--untie`, and the value to add.
    Add(&'static str, String),
    /// Leave out one constraint of the user. The field is the option that causes it, with its
    /// value, as the user typed it.
    Drop(String),
}

impl fmt::Display for Word {
    /// Writes an option and its value as a user types them, such as `--num-ipus 4`. Writes nothing
    /// if the change removes an option or a constraint ([`Word::Without`], [`Word::Drop`]).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(option, value) | Self::Add(option, value) => write!(f, "{option} {value}"),
            Self::Without(_) | Self::Drop(_) => Ok(()),
        }
    }
}

/// A statement of a report about a changed copy of the user's request: the changed options, and the
/// best split with them.
#[derive(Debug, Clone)]
pub struct Claim<'a> {
    /// The options in which the changed request differs from the user's request.
    pub change: Vec<Word>,
    /// The memory and time of ranges of layers for the changed request, in the pipeline of the
    /// split `best`.
    pub costs: PipelineCosts<'a>,
    /// The best split with the changed options or, if none fits, the split with the lowest peak.
    pub best: Candidate,
}

impl Claim<'_> {
    /// Returns the memory of a tile in bytes that the changed request sets; `None` if the request
    /// does not change this memory.
    pub fn memory(&self) -> Option<u64> {
        self.change.iter().find_map(|word| match word {
            Word::Set("--mem-per-tile", bytes) => bytes.parse().ok(),
            _ => None,
        })
    }

    /// Returns which of the user's constraints are given up in this changed request so that a split
    /// fits, each as the option that the user typed, and the names of the shared weights that may
    /// now be on several IPUs.
    pub fn given_up(&self) -> (Vec<String>, Vec<String>) {
        let (mut constraints, mut weights) = (Vec::new(), Vec::new());
        for word in &self.change {
            match word {
                Word::Drop(constraint) => constraints.push(constraint.clone()),
                Word::Add(_, weight) => weights.push(weight.clone()),
                Word::Set(..) | Word::Without(_) => {}
            }
        }
        (constraints, weights)
    }
}

/// The best splits for changed copies of the user's request (such as one with fewer IPUs) that the
/// report mentions. A field is empty or `None` if its split was not requested or does not exist.
#[derive(Debug, Default)]
pub struct Claims<'a> {
    /// If a split fits, and the same layers also fit on fewer IPUs, with optimizer state in the
    /// same place: the best split on the fewest IPUs.
    pub fewest: Option<Claim<'a>>,
    /// If no split fits on the user's number of IPUs: the best split on the smallest higher number
    /// of IPUs on which a split fits.
    pub on_more_ipus: Option<Claim<'a>>,
    /// If no split fits: the highest number of IPUs on which a split was sought; `None` if each IPU
    /// has a separate limit.
    pub ipus_tried: Option<usize>,
    /// If no split fits in the user's tile memory: the smallest tile memory in which a split fits,
    /// and the best split in this memory.
    pub with_memory: Option<Claim<'a>>,
    /// The best splits with other schedules, recomputations and places of optimizer state, in the
    /// order in which a user would try them.
    pub with_options: Vec<Claim<'a>>,
    /// If no split fits: the best splits that fit without some constraints or tied weights (shared
    /// by several layers). Their changes are the constraints to leave out and the weights to untie.
    pub relaxed: Vec<Claim<'a>>,
    /// If the user gave the split: the best split, for comparison with the given split.
    pub without_given: Option<Claim<'a>>,
    /// The split that results if a framework gets only the number of blocks (numbered layers) on
    /// each IPU of the best split, and decides itself where all other layers run. `None` if this is
    /// the best split again.
    pub by_counts: Option<Claim<'a>>,
    /// If replicas of a smaller pipeline process more samples in a second than the best split: the
    /// fastest split with such replicas.
    pub with_replicas: Option<Claim<'a>>,
    /// If the model was recorded with several micro-batch sizes: the best split for each size, in
    /// ascending order of size.
    pub sizes: Vec<Claim<'a>>,
    /// If `--sweep` was requested: the best split on each number of IPUs.
    pub sweep: Vec<Claim<'a>>,
    /// If a plan was requested (`--plan`): the configurations that fit.
    pub plan: Option<Front<'a>>,
}

/// The configurations (split, pipeline, number of IPUs) of a plan (`--plan`) that fit, and what was
/// tried to find them.
#[derive(Debug, Clone, Default)]
pub struct Front<'a> {
    /// The configurations: first that of the best split for the user's request, then the fastest
    /// configurations (or, without cycle counts, the configurations on the fewest IPUs). Each
    /// configuration differs from the one before it in the number of IPUs, or by at least 5 % in
    /// time or memory.
    pub rows: Vec<Claim<'a>>,
    /// Numbers of IPUs that the plan tried, in ascending order.
    pub ipus: Vec<usize>,
    /// The pipelines (schedule, recomputation, place of optimizer state, replicas) that the plan
    /// tried.
    pub pipelines: Vec<Pipeline>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_bytes_keep_their_sign() {
        assert_eq!(free_bytes(5, 7), -2);
        assert_eq!(free_bytes(u64::MAX, 0), i64::MAX);
        assert_eq!(free_bytes(0, u64::MAX), i64::MIN);
    }
}
