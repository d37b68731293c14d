//! The pipeline, and what others would need.

use super::Inputs;
use crate::memory::PlacedStage;
use crate::report::{PipelineAlternative, PipelineFacts, StagePipeline};
use crate::search::{Alternative, SearchResult, Solver, free_bytes};

impl Inputs<'_> {
    /// The pipeline that the stages were weighed for; `None` where none could be
    /// asked for.
    pub(super) fn pipeline(&self, found: &SearchResult) -> Option<PipelineFacts> {
        let request = &found.costed.request;
        let knows_pipelines =
            request.solver == Solver::Ilp && self.placement.rules == crate::model::Rules::Full;
        let pipeline = self.memory.pipeline();
        let recording = self.model.recording;
        let now = found
            .memory
            .iter()
            .map(|stage| stage.max_tile_bytes())
            .max();
        let alternatives = found.alternatives.iter();
        knows_pipelines.then(|| PipelineFacts {
            schedule: pipeline.schedule,
            recompute: pipeline.recompute,
            accumulator: pipeline.accumulator,
            state: pipeline.state,
            accumulators: pipeline.accumulators,
            stash: pipeline.stash,
            replicas: pipeline.replicas,
            recorded_state_off_chip: recording.loads_state,
            schedule_by_default: request.pipeline.schedule.is_none(),
            recompute_by_default: request.pipeline.recompute.is_none(),
            framework: recording.framework,
            is_training: self.model.backward_start.is_some(),
            recorded_accumulation: recording.accumulates,
            recorded_recomputation: recording.recomputes,
            without_recomputation: found.without_recomputation,
            alternatives: alternatives
                .map(|own| self.alternative(own, now.unwrap_or(0)))
                .collect(),
        })
    }

    fn alternative(&self, own: &Alternative, now: u64) -> PipelineAlternative {
        let bytes = own.solution.score.peak;
        PipelineAlternative {
            schedule: own.pipeline.schedule,
            recompute: own.pipeline.recompute,
            options: own.pipeline.options_from(self.memory.pipeline()),
            fits: own.fits,
            fullest_tile_bytes: bytes,
            change: free_bytes(bytes, now),
            stages: self.stages_of(&own.solution.plan),
        }
    }

    /// What the pipeline does with a stage.
    pub(super) fn stage_pipeline(
        &self,
        stage: &PlacedStage,
        late_restores: Option<u64>,
    ) -> Option<StagePipeline> {
        let (copies, depth) = self.memory.copies(stage)?;
        Some(StagePipeline {
            depth: u32::try_from(depth).unwrap_or(u32::MAX),
            copies,
            late_restores,
            stashed: Vec::new(),
        })
    }
}
