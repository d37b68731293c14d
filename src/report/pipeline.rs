//! The pipeline of the stages, and the memory that other pipelines would need.

use super::build::Inputs;
use super::recorded::sum;
use super::{BestSplit, LiveVariable};
use crate::memory::{Pipeline, PlacedStage, StageMemory, StatePlace};
use crate::model::{Recording, Rules};
use crate::search::{Candidate, SearchResult, Solver};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The pipeline, why it was chosen, and the splits that other pipelines would need.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PipelineFacts {
    /// The pipeline. With the schedule `none`, stages are parts of the one-IPU compilation.
    #[serde(flatten)]
    pub pipeline: Pipeline,
    /// Is the place of the state the first one in which the model fits?
    pub state_is_first_fit: bool,
    /// Bytes of the state that is not on the chip, over all tiles of all stages, before it is
    /// divided among replicas; `null` if all state is on the chip.
    pub state_bytes: Option<u64>,
    /// Was the schedule left open, and chosen among the framework's schedules?
    pub schedule_by_default: bool,
    /// Was the recomputation left open, and chosen with the schedule?
    pub recompute_by_default: bool,
    /// How the profile was recorded. Tensors that were loaded or gathered are in it only while they
    /// are used, and with recomputation it has only the activations that are kept. Without gradient
    /// accumulation, accumulators are added for the updated weights.
    pub recording: Recording,
    /// Does the profile have a backward pass?
    pub is_training: bool,
    /// Bytes on the fullest tile of this split without recomputation; `null` if nothing is
    /// recomputed.
    pub without_recomputation: Option<u64>,
    /// The best splits in other pipelines, in the order in which a user would try them; empty if
    /// they were not searched.
    pub alternatives: Vec<BestSplit>,
}

impl PipelineFacts {
    /// Returns the options that request the schedule and the recomputation, if the tool chose them.
    pub fn chosen_options(&self) -> Vec<String> {
        let Pipeline {
            schedule,
            recompute,
            ..
        } = self.pipeline;
        let chosen = |by_default: bool| by_default && self.pipeline.is_on();
        let schedule = chosen(self.schedule_by_default).then(|| format!("--schedule={schedule}"));
        let recompute =
            chosen(self.recompute_by_default).then(|| format!("--recompute={recompute}"));
        schedule.into_iter().chain(recompute).collect()
    }

    /// Does the pipeline train the model?
    pub(super) fn trains(&self) -> bool {
        self.is_training && self.pipeline.is_on()
    }
}

/// A stage of the split in the pipeline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StagePipeline {
    /// Number of forward pipeline stages after the stage.
    pub depth: u32,
    /// Number of additional copies of the stash.
    pub copies: u64,
    /// Bytes on the stage's fullest tile if the compiler restores stashed tensors as late as
    /// possible; `null` if that makes no difference.
    pub late_restores: Option<u64>,
    /// The largest variables that the stage stashes on its fullest tile.
    pub stashed: Vec<LiveVariable>,
    /// The weight update, if optimizer state is not on the chip between updates.
    pub update: Option<StageUpdate>,
}

/// The bytes of a stage during the update of the weight that takes the most, on the tile with the
/// most bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageUpdate {
    /// The tile.
    pub tile: u32,
    /// All bytes on `tile` during the update, with landing pads for all state of the weight.
    pub bytes: u64,
    /// Bytes on `tile` with a pad for one tensor of state at a time, which may be enough for the
    /// compiler.
    pub at_least: u64,
    /// Bytes on the fullest tile in the forward and backward passes, without the state.
    pub in_passes: u64,
    /// The part of `bytes` that only this update needs: loaded state, landing pads, gathered
    /// tensors, and the update's own tensors.
    pub taken: u64,
    /// The updated weights, as far as they have names.
    pub weights: Vec<String>,
    /// Does the update of the weights need more bytes on the fullest tile than the passes? The
    /// stage's peak is then in the update.
    pub decides: bool,
}

impl Inputs<'_> {
    /// Returns the facts about the pipeline; `None` if the solver or the memory model has no
    /// pipelines.
    pub(super) fn pipeline(&self, found: &SearchResult<'_>) -> Option<PipelineFacts> {
        let request = &found.costs.request();
        let knows_pipelines =
            request.options.solver == Solver::Ilp && self.placement.rules == Rules::Full;
        let pipeline = self.memory.pipeline();
        let now = found
            .shown
            .memory
            .iter()
            .map(|stage| stage.max_tile_bytes())
            .max();
        let alternative = |other: &Candidate| {
            let options = other.pipeline.options_from(pipeline);
            self.other_split(found, other, (options, now.unwrap_or(0)))
        };
        let alternatives = found.alternatives.iter();
        knows_pipelines.then(|| PipelineFacts {
            pipeline,
            state_is_first_fit: request.options.pipeline.tries_states && found.shown.fits,
            state_bytes: self.state_bytes(),
            schedule_by_default: request.options.pipeline.schedule.is_none(),
            recompute_by_default: request.options.pipeline.recompute.is_none(),
            recording: self.model.recording,
            is_training: self.model.backward_start.is_some(),
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
        Some(sum(&state))
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
