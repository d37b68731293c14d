//! Other pipelines that a user could choose (`--recompute`, `--schedule`, `--optimizer-state`).

use super::{Candidate, PipelineCosts, SearchError};
use crate::memory::{Pipeline, PlacedStage, Recompute, StatePlace};
use crate::progress::Progress;
use std::ops::Range;

impl PipelineCosts<'_> {
    /// The other pipelines, still without costs, with the limits up to which costs must be computed
    /// to find the best split of each.
    pub(super) fn others(&self) -> Result<Vec<Self>, SearchError> {
        let (pipeline, asked) = (self.pipeline(), self.request().pipeline);
        let states = self.other_states()?.into_iter();
        let states = states.map(|state| pipeline.with_state(state, asked.replicas));
        // If nothing fits, the pipelines that the request leaves open were all tried already.
        let open = pipeline.open(asked, self.memory.is_training());
        let is_untried = |other: &Pipeline| self.request().moves || !open.contains(other);
        let pipelines = pipeline.alternatives().into_iter().filter(is_untried);
        let others = states.chain(pipelines).map(|pipeline| {
            let mut other = self.in_pipeline(pipeline)?;
            other.estimate()?;
            other.up_to = other.limit_of_best();
            Ok(other)
        });
        others.collect()
    }

    /// Other places for the optimizer state: none if it is not on the chip, or if all places were
    /// tried.
    pub(super) fn other_states(&self) -> Result<Vec<StatePlace>, SearchError> {
        let (pipeline, asked) = (self.pipeline(), self.request().pipeline);
        let is_on_chip = pipeline.state == StatePlace::OnChip;
        if !is_on_chip || asked.tries_states || !self.memory.is_training() || !pipeline.is_on() {
            return Ok(Vec::new());
        }
        if self
            .memory
            .streamed_state()?
            .iter()
            .all(|&bytes| bytes == 0)
        {
            return Ok(Vec::new());
        }
        Ok(match asked.replicas {
            0 | 1 => vec![StatePlace::OffChip],
            _ => vec![StatePlace::Sharded, StatePlace::OffChip],
        })
    }

    /// Bytes on the fullest tile of these stages without recomputation; `None` if the pipeline has
    /// none.
    pub(super) fn peak_without_recomputation(
        &self,
        stages: &[Range<usize>],
    ) -> Result<Option<u64>, SearchError> {
        let plain = Pipeline {
            recompute: Recompute::None,
            ..self.pipeline()
        };
        if plain == self.pipeline() {
            return Ok(None);
        }
        let plain = self.memory.in_pipeline(plain)?;
        let peaks = plain.peaks(&PlacedStage::of_split(stages));
        Ok(peaks.into_iter().max())
    }
}

/// Best splits in each of `others`, whose costs must be computed. If nothing fits in the pipeline
/// `now`, a pipeline is skipped if one that fits differs from `now` in the same options.
pub(super) fn best_of(
    others: Vec<PipelineCosts<'_>>,
    (now, is_refused): (Pipeline, bool),
    progress: &Progress,
) -> Result<Vec<Candidate>, SearchError> {
    let mut found: Vec<Candidate> = Vec::new();
    let changed = |other: Pipeline| (other.state != now.state, other.schedule != now.schedule);
    for mut other in others {
        let mut fitting = found.iter().filter(|before| is_refused && before.fits);
        if fitting.any(|before| changed(before.pipeline) == changed(other.pipeline())) {
            continue;
        }
        found.extend(other.best(progress)?);
    }
    Ok(found)
}
