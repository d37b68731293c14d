//! Finds the configurations (number of IPUs, pipeline and split) that fit and that no other one
//! beats in IPUs, time and memory at once.

#[cfg(test)]
mod tests;

use super::candidate::{Candidate, by_rate};
use super::error::SearchError;
use super::open_pipelines::{OpenPipelines, TRIED_IPUS, in_each};
use super::pipeline_costs::PipelineCosts;
use crate::memory::{Pipeline, StatePlace};
use crate::model::Framework;
use crate::progress::Progress;
use crate::solve::{self, Effort, Goal, Problem, Solution};
use clap::ValueEnum;
use std::cmp::Ordering;

/// The best configurations (number of IPUs, pipeline and split) of a plan, and what was tried to
/// find them.
#[derive(Debug, Clone)]
pub struct Front {
    /// The configurations that fit: the answer of the search first, then the fastest. Their `ipus`
    /// are those of one replica, a number that the framework supports; it may exceed the number of
    /// stages.
    pub configurations: Vec<Candidate>,
    /// Whether the first configuration is recommended: it is the answer of the search, or the
    /// fastest one with sharded state if the user asked for that.
    pub has_answer: bool,
    /// Maximum number of IPUs, over all replicas of a configuration with sharded state.
    pub ipus: usize,
    /// Numbers of IPUs of a replica that were tried, ascending.
    pub numbers: Vec<usize>,
    /// The pipelines (schedule, recomputation, place of optimizer state, replicas) that were tried.
    pub pipelines: Vec<Pipeline>,
}

/// Finds the configurations that fit and that no other one beats in IPUs, time and memory at once.
/// `answer`, which was computed with `costs`, comes first if a plan can include it. The others
/// follow, the fastest first (without cycles, those on the fewest IPUs); those with the optimizer
/// state in another place than that of `costs` come last.
///
/// # Errors
/// As for [`search`](super::search).
pub(super) fn front(
    open: &OpenPipelines<'_>,
    (costs, answer): (&PipelineCosts<'_>, Option<&Solution>),
    progress: &Progress,
) -> Result<Front, SearchError> {
    let answer = answer.and_then(|answer| configuration_of(costs, answer));
    let (request, ipus) = (costs.request(), costs.ipus);
    let (state, asked) = (costs.pipeline().state, request.options.pipeline.state);
    let numbers = numbers(costs.memory.framework(), ipus);
    let pipelines = pipelines(open, costs, &numbers)?;
    let found = fitting_configurations(open, costs, (&pipelines, &numbers), progress)?.into_iter();
    // Configurations whose time is partly unknown cannot be compared with the others.
    let lacks_time = |found: &Candidate| found.lacks_time(request.options.step.streaming_bandwidth);
    let (lacking, known): (Vec<_>, Vec<_>) = found.partition(lacks_time);
    let in_state = undominated(known).into_iter();
    let (there, elsewhere): (Vec<_>, Vec<_>) =
        in_state.partition(|found| found.pipeline.state == state);
    let others = there
        .into_iter()
        .chain(elsewhere)
        .chain(undominated(lacking));
    let is_beaten = |other: &Candidate| {
        !lacks_time(other) && answer.iter().any(|answer| answer.is_no_worse_than(other))
    };
    let others: Vec<Candidate> = others.filter(|other| !is_beaten(other)).collect();
    let is_sharded = asked.is_some_and(StatePlace::is_sharded);
    Ok(Front {
        has_answer: answer.is_some() || is_sharded && !others.is_empty(),
        configurations: answer.into_iter().chain(others).collect(),
        ipus,
        numbers,
        pipelines,
    })
}

/// Returns the best split of the search, found with `costs`, as a configuration of a plan. `None`
/// if the user gave the split, or if its optimizer state is in another place than requested: a plan
/// shards it over as many replicas as the IPUs allow, which a search cannot do.
fn configuration_of(costs: &PipelineCosts<'_>, best: &Solution) -> Option<Candidate> {
    let (request, state) = (costs.request(), costs.pipeline().state);
    let asked = request.options.pipeline.state;
    if request.given.is_some() || asked.is_some_and(|asked| asked != state) {
        return None;
    }
    let ipus = costs.supported(best.score.stages);
    Some(Candidate::new(costs, ipus, true, best.clone()))
}

/// Finds the configurations that fit, in the order of `pipelines`. `numbers` are the numbers of
/// IPUs of a replica to try. `answered` is the request in the pipeline of the answer, for the limit
/// and the number of IPUs; `open` makes the requests in other pipelines.
fn fitting_configurations(
    open: &OpenPipelines<'_>,
    answered: &PipelineCosts<'_>,
    (pipelines, numbers): (&[Pipeline], &[usize]),
    progress: &Progress,
) -> Result<Vec<Candidate>, SearchError> {
    let effort = Effort::for_each_of(pipelines.len() * stage_counts(numbers).count());
    let (ipus, up_to) = (answered.ipus, answered.request().highest_limit());
    let pipelines = pipelines.iter().map(|&pipeline| {
        let costs = open.in_pipeline(pipeline)?;
        Ok(PipelineCosts { up_to, ..costs })
    });
    let task = ("trying configurations", progress);
    let of_each = in_each(pipelines, (answered.at_once(ipus), ipus), task, |costs| {
        costs.configurations(numbers, ipus, effort)
    })?;
    Ok(of_each.into_iter().flatten().collect())
}

impl PipelineCosts<'_> {
    /// Finds the configurations of this pipeline that fit on at most `ipus` IPUs over all replicas,
    /// with one of the numbers of stages that belong to `numbers` ([`stage_counts`]). `effort`
    /// bounds the splits that are tried for each number.
    fn configurations(
        &self,
        numbers: &[usize],
        ipus: usize,
        effort: Effort,
    ) -> Result<Vec<Candidate>, SearchError> {
        let problem = Problem {
            ipus: ipus.min(self.positions()),
            goal: match self.times {
                Some(_) => Goal::Time,
                None => Goal::Peak,
            },
            ..self.problem_on(ipus)
        };
        let state = self.pipeline();
        // Sharded state needs exactly the number of replicas for which there are IPUs.
        let replicas = |stages: usize| (ipus / self.supported(stages)) as u64;
        let is_possible =
            |&stages: &usize| !state.state.is_sharded() || replicas(stages) == state.replicas;
        let counts: Vec<usize> = stage_counts(numbers).filter(is_possible).collect();
        let splits = solve::fitting(&problem, &counts, effort)?.into_iter();
        let configuration = |split: Solution| {
            let ipus = self.supported(split.score.stages);
            Candidate::new(self, ipus, true, split)
        };
        Ok(splits.map(configuration).collect())
    }
}

/// Iterates over the numbers of stages to try, ascending, if `numbers` of IPUs (ascending) are
/// tried: all up to [`TRIED_IPUS`], beyond it only those in `numbers`.
fn stage_counts(numbers: &[usize]) -> impl Iterator<Item = usize> {
    let most = numbers.last().copied().unwrap_or(0);
    (1..=most).filter(|stages| *stages <= TRIED_IPUS || numbers.contains(stages))
}

/// Returns the pipelines to try: all of the framework that agree with the options of the request,
/// with each place of the optimizer state ([`states`] for `numbers` of IPUs). `answered` is the
/// request in the pipeline of the answer.
///
/// # Errors
/// If variables are shared by more distinct sets of layers than in any real model.
fn pipelines(
    open: &OpenPipelines<'_>,
    answered: &PipelineCosts<'_>,
    numbers: &[usize],
) -> Result<Vec<Pipeline>, SearchError> {
    let usual = &open.usual().memory;
    let asked = answered.request().options.pipeline;
    let all = usual.pipeline().possible(asked, usual.is_training());
    let states = states(open.usual(), numbers, answered.ipus)?.into_iter();
    let in_state = |(state, replicas)| {
        let all = all.iter();
        all.map(move |pipeline| pipeline.with_state(state, replicas))
    };
    Ok(states.flat_map(in_state).collect())
}

/// Returns the places of the optimizer state to try, each with its number of replicas. Sharded
/// state has one entry for each number of replicas, at least 2, that fill `ipus` IPUs with one of
/// `numbers` IPUs each; other places have the requested number. `usual` is the request in the usual
/// pipeline.
fn states(
    usual: &PipelineCosts<'_>,
    numbers: &[usize],
    ipus: usize,
) -> Result<Vec<(StatePlace, u64)>, SearchError> {
    let (asked, has_state) = (usual.request().options.pipeline, usual.has_state()?);
    let is_possible = |state: StatePlace| match asked.state {
        Some(asked) => state == asked,
        None => has_state || state == StatePlace::OnChip,
    };
    let mut replicas: Vec<u64> = numbers.iter().map(|&count| (ipus / count) as u64).collect();
    replicas.dedup();
    replicas.retain(|&number| number > 1);
    let mut found = Vec::new();
    let all = StatePlace::value_variants().iter().copied();
    for state in all.filter(|&state| is_possible(state)) {
        match state.is_sharded() {
            true => found.extend(replicas.iter().map(|&number| (state, number))),
            false => found.push((state, asked.replicas)),
        }
    }
    Ok(found)
}

/// Returns the numbers of IPUs to try, ascending: all up to [`TRIED_IPUS`], then powers of 2, and
/// `most`, which none exceeds. With PopTorch, only powers of 2.
fn numbers(framework: Framework, most: usize) -> Vec<usize> {
    let is_allowed = |&ipus: &usize| match framework {
        Framework::Poptorch => ipus.is_power_of_two(),
        _ => ipus <= TRIED_IPUS || ipus.is_power_of_two() || ipus == most,
    };
    (1..=most).filter(is_allowed).collect()
}

/// Returns the configurations that no other one beats in IPUs, time and memory at once, the fastest
/// first, with few for each number of IPUs ([`leave_few`]).
fn undominated(mut all: Vec<Candidate>) -> Vec<Candidate> {
    all.sort_by(|a, b| a.by_speed(b));
    let mut kept: Vec<Candidate> = Vec::new();
    for found in all {
        if !kept.iter().any(|other| other.is_no_worse_than(&found)) {
            kept.push(found);
        }
    }
    let mut numbers: Vec<usize> = kept.iter().map(|found| found.ipus).collect();
    numbers.sort_unstable();
    numbers.dedup();
    for ipus in numbers {
        leave_few(&mut kept, ipus);
    }
    kept
}

/// Removes from `kept` (the fastest first) configurations on `ipus` IPUs, except the fastest
/// [`Effort::MAX_SPLITS`] - 1 and those with the lowest peak.
fn leave_few(kept: &mut Vec<Candidate>, ipus: usize) {
    let of_number = kept.iter().filter(|found| found.ipus == ipus);
    let lowest = of_number.map(|found| found.solution.score.peak).min();
    let mut count = 0;
    kept.retain(|found| {
        if found.ipus != ipus {
            return true;
        }
        count += 1;
        count < Effort::MAX_SPLITS || Some(found.solution.score.peak) == lowest
    });
}

impl Candidate {
    /// Returns whether a part of the step time of this configuration is unknown: optimizer state is
    /// gathered from replicas, or is off the chip and `streaming_bandwidth` (bytes per second) is
    /// `None`.
    pub fn lacks_time(&self, streaming_bandwidth: Option<u64>) -> bool {
        let state = self.pipeline.state;
        state.is_sharded() || state.is_off_chip() && streaming_bandwidth.is_none()
    }

    /// Compares configurations by cycles per micro-batch, then by IPUs, then by peak, the lowest
    /// first.
    fn by_speed(&self, other: &Self) -> Ordering {
        self.by_rate(other)
            .then(self.ipus.cmp(&other.ipus))
            .then(self.solution.score.peak.cmp(&other.solution.score.peak))
    }

    fn by_rate(&self, other: &Self) -> Ordering {
        by_rate(self.solution.score.step, other.solution.score.step)
    }

    /// Returns whether this configuration has at most as many IPUs, takes at most as many cycles
    /// per micro-batch, and has no higher peak than `other`.
    fn is_no_worse_than(&self, other: &Self) -> bool {
        self.ipus <= other.ipus
            && self.by_rate(other).is_le()
            && self.solution.score.peak <= other.solution.score.peak
    }
}
