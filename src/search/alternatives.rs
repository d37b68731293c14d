//! What other pipelines would need (`--recompute`, `--schedule`).

use super::{MOST_STAGES, SearchError, WeighedRequest};
use crate::memory::{Learnt, MemoryModel, Pipeline, Recompute};
use crate::progress::Progress;
use crate::solve::{self, Problem, Solution};
use std::ops::Range;

/// The best split of the same model in another pipeline.
#[derive(Debug)]
pub struct Alternative {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// Does the split fit? Else it is the one that needs the least.
    pub fits: bool,
    /// The split.
    pub solution: Solution,
}

/// Answers `weighed` in each of the other pipelines that a user would try.
pub(super) fn find(
    weighed: &WeighedRequest,
    memory: &MemoryModel<'_>,
    progress: &Progress,
) -> Result<Vec<Alternative>, SearchError> {
    let mut found = Vec::new();
    for pipeline in memory.pipeline().alternatives() {
        let other = in_other(memory, pipeline)?;
        let stages = weighed.ipus.max(MOST_STAGES);
        let costs = &other.range_costs_with(u64::MAX, stages, progress)?;
        let problem = Problem {
            costs,
            ..weighed.problem()
        };
        let best = solve::solve(&problem)?;
        let fits = best.is_some();
        let solution = match best {
            Some(best) => Some(best),
            None => solve::best_effort(&problem)?,
        };
        found.extend(solution.map(|solution| Alternative {
            pipeline,
            fits,
            solution,
        }));
    }
    Ok(found)
}

/// Bytes on the fullest tile of any of these stages if nothing were computed
/// again; `None` where nothing is.
pub(super) fn without_recomputation(
    memory: &MemoryModel<'_>,
    stages: &[Range<usize>],
) -> Result<Option<u64>, SearchError> {
    let pipeline = memory.pipeline();
    if pipeline.recompute == Recompute::None || stages.is_empty() {
        return Ok(None);
    }
    let plain = in_other(
        memory,
        Pipeline {
            recompute: Recompute::None,
            ..pipeline
        },
    )?;
    Ok(plain.peak_of_split(stages))
}

/// The same model in another pipeline, of which no stage was compiled.
fn in_other<'a>(
    memory: &MemoryModel<'a>,
    pipeline: Pipeline,
) -> Result<MemoryModel<'a>, SearchError> {
    let carried = memory.learnt().map(Learnt::carried);
    Ok(memory.in_pipeline(pipeline)?.learning(carried))
}
