//! Best splits in other pipelines (`--recompute`, `--schedule`).

use super::{CostedRequest, SearchError, rough};
use crate::memory::{MemoryModel, Pipeline, RangeCosts, Recompute, StatePlace};
use crate::progress::{Progress, Unit};
use crate::solve::{self, Problem, Solution};
use crate::time::StageTimes;
use rayon::prelude::*;

/// Maximum number of range costs that are stored at a time, of 8 bytes each.
const MAX_NUMBERS: usize = 1 << 25;

/// The best split of the same model in another pipeline.
#[derive(Debug)]
pub struct Alternative {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// Does the split fit? Otherwise it is the split with the lowest peak.
    pub fits: bool,
    /// The best split.
    pub solution: Solution,
}

/// The model in another pipeline that a user could choose.
pub(super) struct OtherPipeline<'a> {
    memory: MemoryModel<'a>,
    /// Costs of ranges that need more bytes than this are not computed.
    limit: u64,
    costs: RangeCosts,
    /// Times of stages in this pipeline; `None` if the profile has no cycles.
    times: Option<StageTimes>,
}

impl<'a> OtherPipeline<'a> {
    /// The model in `pipeline`. Costs will be computed for ranges that need at most `limit` bytes.
    pub(super) fn new(
        costed: &CostedRequest,
        memory: &MemoryModel<'a>,
        pipeline: Pipeline,
        limit: u64,
    ) -> Result<Self, SearchError> {
        let times = costed.times.as_ref();
        Ok(Self {
            memory: memory.in_pipeline(pipeline)?,
            limit,
            costs: RangeCosts::default(),
            times: times.map(|times| times.in_pipeline(pipeline)),
        })
    }

    pub(super) fn pipeline(&self) -> Pipeline {
        self.memory.pipeline()
    }

    /// Problem for the solver in this pipeline, with the costs computed so far.
    pub(super) fn problem<'p>(&'p self, costed: &'p CostedRequest) -> Problem<'p> {
        Problem {
            costs: &self.costs,
            times: self.times.as_ref(),
            ..costed.problem()
        }
    }

    /// Times of stages in this pipeline; `None` if the profile has no cycles.
    pub(super) fn times(&self) -> Option<&StageTimes> {
        self.times.as_ref()
    }

    /// Model and limit for which costs are to be computed.
    pub(super) fn wanted(&self) -> (&MemoryModel<'a>, u64) {
        (&self.memory, self.limit)
    }

    /// Stores the computed costs.
    pub(super) fn take(&mut self, costs: RangeCosts) {
        self.costs = costs;
    }

    /// The best split, and whether it fits. Raises the limit and computes more costs until they
    /// suffice.
    pub(super) fn solve(
        &mut self,
        costed: &CostedRequest,
        progress: &Progress,
    ) -> Result<Option<(bool, Solution)>, SearchError> {
        loop {
            let problem = self.problem(costed);
            if let Some(best) = solve::solve(&problem)? {
                return Ok(Some((true, best)));
            }
            let best = solve::best_effort(&problem)?;
            let is_best = |best: &Solution| best.score.peak <= self.limit;
            if best.as_ref().is_some_and(is_best) || rough::has_all(&self.costs) {
                return Ok(best.map(|best| (false, best)));
            }
            self.limit = self.limit.saturating_mul(2);
            compute_costs(std::slice::from_mut(self), costed.more_stages(), progress)?;
        }
    }
}

/// Computes the costs of `others` for at most `stages` stages, in one pass over the tiles.
pub(super) fn compute_costs(
    others: &mut [OtherPipeline<'_>],
    stages: usize,
    progress: &Progress,
) -> Result<(), SearchError> {
    let pipelines: Vec<_> = others.iter().map(OtherPipeline::wanted).collect();
    let costs = MemoryModel::costs_in_all(&pipelines, stages, progress)?;
    for (other, costs) in others.iter_mut().zip(costs) {
        other.take(costs);
    }
    Ok(())
}

/// Results of `of` for the model in each pipeline of `wanted`, with the costs of ranges up to the
/// bytes given there, for at most `stages` stages. Each pass over the tiles serves as many
/// pipelines as memory allows.
pub(super) fn in_each<'a, R: Send>(
    costed: &CostedRequest,
    memory: &MemoryModel<'a>,
    (wanted, stages): (&[(Pipeline, u64)], usize),
    (task, progress): (&'static str, &Progress),
    of: impl Fn(&mut OtherPipeline<'a>) -> Result<R, SearchError> + Sync,
) -> Result<Vec<R>, SearchError> {
    let mut found = Vec::new();
    for some in wanted.chunks(at_once(costed, stages)) {
        let mut others: Vec<OtherPipeline<'a>> = Vec::new();
        for &(pipeline, limit) in some {
            // Live ranges depend only on recomputation, so a model with the same recomputation is
            // reused.
            let is_like =
                |other: &&OtherPipeline<'_>| other.pipeline().recompute == pipeline.recompute;
            let like = others.iter().find(is_like);
            let like = like.map_or(memory, |other| other.wanted().0);
            others.push(OtherPipeline::new(costed, like, pipeline, limit)?);
        }
        compute_costs(&mut others, stages, progress)?;
        let task = progress.begin(task, Unit::Rows, some.len() as u64);
        let of_each = others.par_iter_mut().map(|other| {
            task.add(1);
            of(other)
        });
        found.extend(of_each.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(found)
}

/// Number of pipelines that memory allows to compute in one pass over the tiles, for at most
/// `stages` stages each. The ranges within the limit are estimated from the pipeline whose costs
/// were computed, if there is one.
fn at_once(costed: &CostedRequest, stages: usize) -> usize {
    let positions = costed.positions();
    let ranges = match costed.costs.iter().count() {
        0 => positions.saturating_mul(positions),
        // With the state off the chip or sharded, longer ranges fit.
        ranges => ranges.saturating_mul(2),
    };
    let numbers = ranges.saturating_mul(stages.min(positions) + 1);
    (MAX_NUMBERS / numbers.max(1)).max(1)
}

/// Best splits in each of `others`, whose costs must be computed. If nothing fits in the current
/// pipeline `now`, a pipeline is skipped if one that fits differs from `now` in the same options.
pub(super) fn find(
    others: Vec<OtherPipeline<'_>>,
    costed: &CostedRequest,
    (now, is_refused): (Pipeline, bool),
    progress: &Progress,
) -> Result<Vec<Alternative>, SearchError> {
    let mut found: Vec<Alternative> = Vec::new();
    let knob = |other: Pipeline| (other.state != now.state, other.schedule != now.schedule);
    for mut other in others {
        let fitting = found.iter().filter(|before| is_refused && before.fits);
        let mut fitting = fitting.map(|before| knob(before.pipeline));
        if fitting.any(|before| before == knob(other.pipeline())) {
            continue;
        }
        let solution = other.solve(costed, progress)?;
        found.extend(solution.map(|(fits, solution)| Alternative {
            pipeline: other.memory.pipeline(),
            fits,
            solution,
        }));
    }
    Ok(found)
}

/// The other pipelines, with the limits up to which costs must be computed to find the best split
/// of each.
pub(super) fn others<'a>(
    costed: &CostedRequest,
    memory: &MemoryModel<'a>,
) -> Result<Vec<OtherPipeline<'a>>, SearchError> {
    let limit = costed.request.highest_limit();
    let other = |pipeline| {
        let mut other = OtherPipeline::new(costed, memory, pipeline, u64::MAX)?;
        if let Some(rough) = rough::peak(&other.memory, costed)? {
            other.limit = rough.limit_of_best(limit);
        }
        Ok(other)
    };
    let pipeline = memory.pipeline();
    let states = other_states(costed, memory)?.into_iter();
    let states = states.map(|state| pipeline.with_state(state, costed.request.pipeline.replicas));
    // If nothing fits, the pipelines that the request leaves open were all tried already.
    let open = pipeline.open(costed.request.pipeline, memory.is_training());
    let is_news = |other: &Pipeline| costed.request.moves || !open.contains(other);
    let pipelines = pipeline.alternatives().into_iter().filter(is_news);
    states.chain(pipelines).map(other).collect()
}

/// Other places for the optimizer state: none if it is not on the chip, or if all places were
/// tried.
pub(super) fn other_states(
    costed: &CostedRequest,
    memory: &MemoryModel<'_>,
) -> Result<Vec<StatePlace>, SearchError> {
    let asked = costed.request.pipeline;
    let is_on_chip = memory.pipeline().state == StatePlace::OnChip;
    if !is_on_chip || asked.tries_states || !memory.is_training() || !memory.pipeline().is_on() {
        return Ok(Vec::new());
    }
    if memory.streamed_state()?.iter().all(|&bytes| bytes == 0) {
        return Ok(Vec::new());
    }
    Ok(match asked.replicas {
        0 | 1 => vec![StatePlace::OffChip],
        _ => vec![StatePlace::Sharded, StatePlace::OffChip],
    })
}

/// The model without recomputation; `None` if its pipeline has none.
pub(super) fn without_recomputation<'a>(
    memory: &MemoryModel<'a>,
) -> Result<Option<MemoryModel<'a>>, SearchError> {
    let pipeline = memory.pipeline();
    let plain = Pipeline {
        recompute: Recompute::None,
        ..pipeline
    };
    let is_again = pipeline.recompute != Recompute::None;
    Ok(is_again.then(|| memory.in_pipeline(plain)).transpose()?)
}
