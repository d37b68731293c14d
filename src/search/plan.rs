//! Whole configurations: number of IPUs, pipeline and split. Of those that fit, the ones for which
//! no other is better in IPUs, time and memory.

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

/// The best configurations, and everything that was tried to find them.
#[derive(Debug, Clone)]
pub struct Front {
    /// The configurations, the best first. A split has a stage for each IPU that is not left empty;
    /// `ipus` is the number of IPUs of a replica that the framework supports.
    pub configurations: Vec<Candidate>,
    /// Is the first one recommended: the answer of the search, or the fastest one with the sharded
    /// state that was requested?
    pub has_answer: bool,
    /// Number of IPUs.
    pub ipus: usize,
    /// Numbers of IPUs that were tried, ascending.
    pub numbers: Vec<usize>,
    /// Pipelines that were tried.
    pub pipelines: Vec<Pipeline>,
}

/// Configurations that fit: first the answer, if it fits, which was computed with `costs`; then by time, or
/// without cycles by number of IPUs. Configurations with the optimizer state in another place than
/// the answer come last.
///
/// # Errors
/// As for a search.
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
    let found = all(open, costs, (&pipelines, &numbers), progress)?.into_iter();
    // Configurations whose time is not completely known cannot be compared with the others.
    let lacks_time = |found: &Candidate| found.lacks_time(request.options.step.streaming_bandwidth);
    let (lacking, known): (Vec<_>, Vec<_>) = found.partition(lacks_time);
    let in_state = best_of(known).into_iter();
    let (there, elsewhere): (Vec<_>, Vec<_>) =
        in_state.partition(|found| found.pipeline.state == state);
    let others = there.into_iter().chain(elsewhere).chain(best_of(lacking));
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

/// The best split as a configuration; `None` if a split was given, or if the state is in another
/// place than requested: a plan shards it over as many replicas as the IPUs allow, which the search
/// does not know.
fn configuration_of(costs: &PipelineCosts<'_>, best: &Solution) -> Option<Candidate> {
    let (request, state) = (costs.request(), costs.pipeline().state);
    let asked = request.options.pipeline.state;
    if request.given.is_some() || asked.is_some_and(|asked| asked != state) {
        return None;
    }
    let ipus = costs.supported(best.score.stages);
    Some(Candidate::new(costs, ipus, true, best.clone()))
}

/// All configurations that fit in `pipelines`, in the order of these.
fn all(
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
    /// Configurations of the pipeline on at most `ipus` IPUs.
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
        // Sharded state needs exactly the replicas for which there are IPUs.
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

/// Numbers of stages that are tried on these numbers of IPUs.
fn stage_counts(numbers: &[usize]) -> impl Iterator<Item = usize> {
    let most = numbers.last().copied().unwrap_or(0);
    (1..=most).filter(|stages| *stages <= TRIED_IPUS || numbers.contains(stages))
}

/// Pipelines of the framework that keep to the options of the request.
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

/// The places of the optimizer state that are tried, each with the number of replicas it needs:
/// sharded state with every number of replicas that `ipus` IPUs allow for `numbers` stages, others
/// with the requested number. `usual` is the pipeline that the request means.
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

/// Numbers of IPUs that are tried: all up to those of a POD16, then powers of 2 and `most`.
/// PopTorch only supports powers of 2.
fn numbers(framework: Framework, most: usize) -> Vec<usize> {
    let is_allowed = |&ipus: &usize| match framework {
        Framework::Poptorch => ipus.is_power_of_two(),
        _ => ipus <= TRIED_IPUS || ipus.is_power_of_two() || ipus == most,
    };
    (1..=most).filter(is_allowed).collect()
}

/// Configurations that no other one dominates, with few for each number of IPUs (see
/// [`leave_few`]).
fn best_of(mut all: Vec<Candidate>) -> Vec<Candidate> {
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

/// Of the configurations on `ipus` IPUs, leaves some of the fastest, and the ones with the lowest
/// peak.
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
    /// Does its step lack time that is unknown: for state that is loaded from off the chip without
    /// a known bandwidth, or gathered from replicas?
    pub fn lacks_time(&self, streaming_bandwidth: Option<u64>) -> bool {
        let state = self.pipeline.state;
        state.is_sharded() || state.is_off_chip() && streaming_bandwidth.is_none()
    }

    /// Orders configurations by cycles of a micro-batch, then by IPUs, then by peak.
    fn by_speed(&self, other: &Self) -> Ordering {
        self.by_rate(other)
            .then(self.ipus.cmp(&other.ipus))
            .then(self.solution.score.peak.cmp(&other.solution.score.peak))
    }

    fn by_rate(&self, other: &Self) -> Ordering {
        by_rate(self.solution.score.step, other.solution.score.step)
    }

    /// Does it have at most as many IPUs, at most as many cycles of a micro-batch, and no higher
    /// peak?
    fn is_no_worse_than(&self, other: &Self) -> bool {
        self.ipus <= other.ipus
            && self.by_rate(other).is_le()
            && self.solution.score.peak <= other.solution.score.peak
    }
}
