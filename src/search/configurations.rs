//! Whole configurations: number of IPUs, pipeline and split. Of those that fit, the ones for which
//! no other is better in IPUs, time and memory.

#[cfg(test)]
mod tests;

use super::alternatives::{OtherPipeline, in_each};
use super::swept::{TRIED_IPUS, peaks, taken};
use super::{CostedRequest, Outcome, SearchError, SearchResult};
use crate::memory::{MemoryModel, Pipeline, StatePlace};
use crate::model::Framework;
use crate::progress::Progress;
use crate::solve::{self, Effort, Fitting, Goal, Limits, Problem};
use crate::time::StageTimes;

/// A configuration that fits.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The split, with one stage for each IPU that is not left empty.
    pub split: Fitting,
    /// IPUs of one replica, in a number that the framework supports.
    pub ipus: usize,
    /// Times of stages in that pipeline; `None` if the profile has no cycles.
    pub times: Option<StageTimes>,
    /// Number of replicas for which there are IPUs.
    pub replicas: usize,
    /// Bytes on the fullest tile of each stage.
    pub peaks: Vec<u64>,
}

/// Configurations that fit: first the answer `found`, then by time, or without cycles by number of
/// IPUs. Configurations with the optimizer state in another place than the answer come last.
/// `memory` is in the usual pipeline of the model.
///
/// # Errors
/// As for a search.
pub(super) fn front(
    (found, pipeline): (&SearchResult, Pipeline),
    memory: &MemoryModel<'_>,
    progress: &Progress,
) -> Result<Front, SearchError> {
    let costed = &found.costed;
    let answer = answer(found, pipeline, memory.framework());
    let ipus = costed.ipus;
    let numbers = numbers(memory.framework(), ipus);
    let pipelines = pipelines(costed, memory, (&numbers, ipus))?;
    let effort = Effort::for_each_of(pipelines.len() * stage_counts(&numbers).count());
    let limit = costed.request.highest_limit();
    let wanted = pipelines.iter().map(|&pipeline| (pipeline, limit));
    let wanted: Vec<_> = wanted.collect();
    let task = ("trying configurations", progress);
    let of_pipeline =
        |other: &mut OtherPipeline<'_>| of_costs(costed, other, (&numbers, ipus), effort);
    let found = in_each(costed, memory, (&wanted, ipus), task, of_pipeline)?;
    let found = found.into_iter().flatten();
    // Configurations whose time is not completely known cannot be compared with the others.
    let lacks_time =
        |plan: &Configuration| plan.lacks_time(costed.request.step.streaming_bandwidth);
    let (lacking, known): (Vec<_>, Vec<_>) = found.partition(lacks_time);
    let is_asked = |plan: &Configuration| plan.pipeline.state == pipeline.state;
    let (asked, elsewhere): (Vec<_>, Vec<_>) = best_of(known).into_iter().partition(is_asked);
    let others = asked.into_iter().chain(elsewhere).chain(best_of(lacking));
    let is_beaten = |other: &Configuration| {
        !lacks_time(other) && answer.iter().any(|answer| answer.is_no_worse_than(other))
    };
    let others: Vec<Configuration> = others.filter(|other| !is_beaten(other)).collect();
    let is_sharded = costed
        .request
        .pipeline
        .state
        .is_some_and(StatePlace::is_sharded);
    let has_answer = answer.is_some() || is_sharded && !others.is_empty();
    let configurations = answer.into_iter().chain(others).collect();
    Ok(Front {
        has_answer,
        configurations,
        ipus,
        numbers,
        pipelines,
    })
}

/// The best split of a search in `pipeline` as a configuration; `None` if nothing fits or a split
/// was given.
fn answer(found: &SearchResult, pipeline: Pipeline, framework: Framework) -> Option<Configuration> {
    let costed = &found.costed;
    let (Outcome::Best(best), None) = (&found.outcome, &costed.request.given) else {
        return None;
    };
    // A plan shards state over as many replicas as the IPUs allow, which the search does not know.
    if costed
        .request
        .pipeline
        .state
        .is_some_and(|asked| asked != pipeline.state)
    {
        return None;
    }
    let split = Fitting {
        plan: best.plan.clone(),
        score: best.score,
        step: best.step,
    };
    let of_replica = taken(best.score.stages, framework);
    Some(Configuration {
        pipeline,
        ipus: of_replica,
        replicas: (costed.ipus / of_replica).max(1),
        times: costed.times.clone(),
        peaks: peaks(&costed.problem(), &split.plan),
        split,
    })
}

/// Numbers of stages that are possible in the pipeline of `memory`. Sharded state needs exactly the
/// replicas for which there are IPUs.
fn possible(memory: &MemoryModel<'_>, (numbers, ipus): (&[usize], usize)) -> Vec<usize> {
    let pipeline = memory.pipeline();
    let replicas = |stages: usize| (ipus / of_replica(memory, stages)) as u64;
    let is_possible =
        |stages: &usize| !pipeline.state.is_sharded() || replicas(*stages) == pipeline.replicas;
    stage_counts(numbers).filter(is_possible).collect()
}

/// Numbers of stages that are tried on these numbers of IPUs.
fn stage_counts(numbers: &[usize]) -> impl Iterator<Item = usize> {
    let most = numbers.last().copied().unwrap_or(0);
    (1..=most).filter(|stages| *stages <= TRIED_IPUS || numbers.contains(stages))
}

/// IPUs of a replica with `stages` stages.
fn of_replica(memory: &MemoryModel<'_>, stages: usize) -> usize {
    taken(stages, memory.framework())
}

/// Configurations of one pipeline.
fn of_costs(
    costed: &CostedRequest,
    other: &OtherPipeline<'_>,
    (numbers, ipus): (&[usize], usize),
    effort: Effort,
) -> Result<Vec<Configuration>, SearchError> {
    let (pipeline, memory) = (other.pipeline(), other.wanted().0);
    let problem = Problem {
        ipus: ipus.min(costed.positions()),
        limits: Limits::new(&costed.request.limits).first(ipus),
        goal: match other.times() {
            Some(_) => Goal::Time,
            None => Goal::Peak,
        },
        ..other.problem(costed)
    };
    let numbers = possible(memory, (numbers, ipus));
    let splits = solve::fitting(&problem, &numbers, effort)?.into_iter();
    let configuration = |split: Fitting| {
        let of_replica = of_replica(memory, split.plan.stages().len());
        Configuration {
            pipeline,
            ipus: of_replica,
            replicas: ipus / of_replica,
            times: other.times().cloned(),
            peaks: peaks(&problem, &split.plan),
            split,
        }
    };
    Ok(splits.map(configuration).collect())
}

/// The best configurations, and everything that was tried to find them.
#[derive(Debug, Clone)]
pub struct Front {
    /// The configurations, the best first.
    pub configurations: Vec<Configuration>,
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

/// Pipelines of the framework that keep to the options of the request.
///
/// # Errors
/// If layers share variables in more ways than in any real model.
fn pipelines(
    costed: &CostedRequest,
    memory: &MemoryModel<'_>,
    (numbers, ipus): (&[usize], usize),
) -> Result<Vec<Pipeline>, SearchError> {
    let first = memory.pipeline();
    let all = first.possible(costed.request.pipeline, memory.is_training());
    let states = states(costed, memory, (numbers, ipus))?;
    let mut distinct: Vec<Pipeline> = Vec::new();
    for &(state, replicas) in &states {
        for pipeline in all.iter().map(|plain| plain.with_state(state, replicas)) {
            if !distinct.contains(&pipeline) {
                distinct.push(pipeline);
            }
        }
    }
    Ok(distinct)
}

/// Possible places of the optimizer state, with the number of replicas.
fn states(
    costed: &CostedRequest,
    memory: &MemoryModel<'_>,
    (numbers, ipus): (&[usize], usize),
) -> Result<Vec<(StatePlace, u64)>, SearchError> {
    let asked = costed.request.pipeline;
    let all = [
        StatePlace::OnChip,
        StatePlace::OffChip,
        StatePlace::Sharded,
        StatePlace::ShardedOffChip,
    ];
    let has_state = memory.is_training() && memory.streamed_state()?.iter().any(|&bytes| bytes > 0);
    let is_wanted = |state: &StatePlace| match asked.state {
        Some(wanted) => *state == wanted,
        None => has_state || *state == StatePlace::OnChip,
    };
    let mut replicas: Vec<u64> = numbers.iter().map(|&count| (ipus / count) as u64).collect();
    replicas.dedup();
    replicas.retain(|&number| number > 1);
    let mut found = Vec::new();
    for state in all.into_iter().filter(is_wanted) {
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
fn best_of(mut all: Vec<Configuration>) -> Vec<Configuration> {
    all.sort_by(|a, b| a.by_speed(b));
    let mut kept: Vec<Configuration> = Vec::new();
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
fn leave_few(kept: &mut Vec<Configuration>, ipus: usize) {
    let of_number = kept.iter().filter(|found| found.ipus == ipus);
    let lowest = of_number.map(|found| found.split.score.peak).min();
    let mut count = 0;
    kept.retain(|found| {
        if found.ipus != ipus {
            return true;
        }
        count += 1;
        count < Effort::MAX_SPLITS || Some(found.split.score.peak) == lowest
    });
}

impl Configuration {
    /// Does its step lack time that is unknown: for state that is loaded from off the chip without
    /// a known bandwidth, or gathered from replicas?
    pub fn lacks_time(&self, streaming_bandwidth: Option<u64>) -> bool {
        let state = self.pipeline.state;
        state.is_sharded() || state.is_off_chip() && streaming_bandwidth.is_none()
    }

    /// Orders configurations by cycles of a micro-batch, then by IPUs, then by peak.
    fn by_speed(&self, other: &Self) -> std::cmp::Ordering {
        self.by_rate(other)
            .then(self.ipus.cmp(&other.ipus))
            .then(self.split.score.peak.cmp(&other.split.score.peak))
    }

    fn by_rate(&self, other: &Self) -> std::cmp::Ordering {
        match (self.split.score.step, other.split.score.step) {
            (Some(step), Some(theirs)) => step.by_rate(&theirs),
            _ => std::cmp::Ordering::Equal,
        }
    }

    /// Does it have at most as many IPUs, at most as many cycles of a micro-batch, and no higher
    /// peak?
    fn is_no_worse_than(&self, other: &Self) -> bool {
        self.ipus <= other.ipus
            && self.by_rate(other).is_le()
            && self.split.score.peak <= other.split.score.peak
    }
}
