//! The pipeline of the stages, and the splits that other pipelines would need.

use super::Inputs;
use crate::memory::{PlacedStage, StageMemory, StatePlace};
use crate::report::step;
use crate::report::{OtherSplit, PipelineAlternative, PipelineFacts, StagePipeline, StageUpdate};
use crate::search::{Candidate, SearchResult, Solver, free_bytes};
use crate::time::narrow;

impl Inputs<'_> {
    /// Returns the facts about the pipeline; `None` if the solver or the memory model has no
    /// pipelines.
    pub(super) fn pipeline(&self, found: &SearchResult<'_>) -> Option<PipelineFacts> {
        let request = &found.costs.request();
        let knows_pipelines =
            request.solver == Solver::Ilp && self.placement.rules == crate::model::Rules::Full;
        let pipeline = self.memory.pipeline();
        let recording = self.model.recording;
        let now = found
            .shown
            .memory
            .iter()
            .map(|stage| stage.max_tile_bytes())
            .max();
        let alternative = |other: &Candidate| PipelineAlternative {
            schedule: other.pipeline.schedule,
            recompute: other.pipeline.recompute,
            state: other.pipeline.state,
            split: OtherSplit {
                options: other.pipeline.options_from(pipeline),
                ..self.other_split(found, other, now.unwrap_or(0))
            },
        };
        let alternatives = found.alternatives.iter();
        knows_pipelines.then(|| PipelineFacts {
            schedule: pipeline.schedule,
            recompute: pipeline.recompute,
            accumulator: pipeline.accumulator,
            state: pipeline.state,
            replicas: pipeline.replicas,
            state_is_first_fit: request.pipeline.tries_states && found.shown.fits,
            state_bytes: self.state_bytes(),
            recorded_state_off_chip: recording.loads_state,
            recorded_state_sharded: recording.gathers_state,
            schedule_by_default: request.pipeline.schedule.is_none(),
            recompute_by_default: request.pipeline.recompute.is_none(),
            framework: recording.framework,
            is_training: self.model.backward_start.is_some(),
            recorded_accumulation: recording.accumulates,
            recorded_recomputation: recording.recomputes,
            without_recomputation: found.without_recomputation,
            alternatives: alternatives.map(alternative).collect(),
        })
    }

    /// Returns the bytes of optimizer state kept off the chip; `None` if state is on the chip.
    fn state_bytes(&self) -> Option<u64> {
        if self.memory.pipeline().state == StatePlace::OnChip {
            return None;
        }
        let state = self.memory.streamed_state().ok()?;
        Some(state.into_iter().fold(0, u64::saturating_add))
    }

    /// Returns the memory of a stage during the weight update.
    fn stage_update(&self, memory: &StageMemory) -> Option<StageUpdate> {
        let tiles = memory.updates.iter().enumerate().rev();
        let (tile, fullest) = tiles.max_by_key(|(_, tile)| tile.bytes)?;
        let in_passes = memory.updates.iter().map(|update| update.in_passes).max();
        let in_passes = in_passes.unwrap_or(0);
        let weights = fullest.update.into_iter();
        let weights = weights.flat_map(|update| self.memory.weights_of_update(update));
        Some(StageUpdate {
            tile: tile as u32,
            bytes: fullest.bytes,
            at_least: fullest.at_least,
            in_passes,
            taken: fullest.taken,
            weights: weights.map(str::to_string).collect(),
            decides: fullest.bytes > in_passes,
        })
    }

    /// Describes the best split with changed options. `now` is the peak in bytes without the
    /// change.
    pub(super) fn other_split(
        &self,
        found: &SearchResult<'_>,
        other: &Candidate,
        now: u64,
    ) -> OtherSplit {
        let score = &other.solution.score;
        let step = score.step;
        let milliseconds = step::milliseconds(step, &found.costs);
        let bandwidth = found.costs.request().step.streaming_bandwidth;
        let streamed = step.map(|step| narrow(step.streamed));
        OtherSplit {
            options: String::new(),
            fits: other.fits,
            fullest_tile_bytes: score.peak,
            change: free_bytes(score.peak, now),
            stages: self.stages_of(&other.solution.plan),
            milliseconds,
            micro_batches: step
                .filter(|_| milliseconds.is_some())
                .map(|step| step.micro_batches),
            streamed_bytes: streamed.filter(|&bytes| bytes > 0 && bandwidth.is_none()),
        }
    }

    /// Returns the depth, copies and update of a stage in the pipeline; `None` if it keeps nothing.
    pub(super) fn stage_pipeline(
        &self,
        stage: &PlacedStage,
        memory: &StageMemory,
    ) -> Option<StagePipeline> {
        let update = self.stage_update(memory);
        let copies = self.memory.copies(stage);
        let (copies, depth) = copies.or_else(|| update.as_ref().map(|_| (0, 0)))?;
        Some(StagePipeline {
            depth: u32::try_from(depth).unwrap_or(u32::MAX),
            copies,
            late_restores: memory.late_restores,
            stashed: Vec::new(),
            update,
        })
    }
}
