//! The pipeline that runs the split, and the memory that the model would need in other pipelines.

use super::{BestSplit, Inputs, LiveVariable, sum};
use crate::memory::{Pipeline, PlacedStage, StageMemory, StatePlace};
use crate::model::{Recording, Rules};
use crate::search::SearchResult;
use crate::search::Solver;
use serde::{Deserialize, Serialize};

/// The pipeline that runs the split, why it was chosen, and the best splits in other pipelines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PipelineFacts {
    /// The pipeline that runs the split. With the schedule `none` there is no pipeline: a stage has
    /// the memory of its layers in the one-IPU compilation.
    #[serde(flatten)]
    pub pipeline: Pipeline,
    /// Whether the user left the place of optimizer state open, so that it was chosen
    /// automatically.
    pub state_by_default: bool,
    /// Bytes of the optimizer state that is not kept on the chip, over all tiles of all stages,
    /// before the state is divided among replicas; `null` if all state is on the chip.
    pub state_bytes: Option<u64>,
    /// Whether the user left the schedule open, so that it was chosen automatically.
    pub schedule_by_default: bool,
    /// How often the layers on both sides of a cut run in the forward pass of a micro-batch: 1, or
    /// the highest number of runs at any cut. Above 1, the IPUs take turns.
    pub runs: u32,
    /// Whether the user left the recomputation open, so that it was chosen automatically.
    pub recompute_by_default: bool,
    /// How the profile was recorded. Tensors that were loaded from outside the IPUs or gathered
    /// from replicas are in the profile only while they are used. If activations were recomputed,
    /// the profile has only the activations that are kept. If gradients were not accumulated, the
    /// predicted bytes include accumulators for the updated weights.
    pub recording: Recording,
    /// Whether the profile has a backward pass.
    pub is_training: bool,
    /// Bytes on the fullest tile that the report's split would need without recomputation; `null`
    /// if the pipeline recomputes nothing.
    pub without_recomputation: Option<u64>,
    /// The best splits with another schedule, other recomputation or optimizer state elsewhere, in
    /// the order in which a user would try them; empty if none was searched.
    pub alternatives: Vec<BestSplit>,
    /// The best split with several replicas of a smaller pipeline, if they are faster than the
    /// report's pipeline; `null` if they are not, or if the user gave the number of replicas.
    pub with_replicas: Option<BestSplit>,
    /// Bytes of gradients, over all tiles, that the replicas of `with_replicas` exchange in each
    /// step; `null` if `with_replicas` is.
    pub gradient_bytes: Option<u64>,
}

impl PipelineFacts {
    /// Returns the options that explicitly request what was chosen automatically of the schedule,
    /// the recomputation and the place of optimizer state, such as `--schedule=popart`. Empty if
    /// the user chose all of these, or if there is no pipeline.
    pub fn chosen_options(&self) -> Vec<String> {
        let own = &self.pipeline;
        let schedule = format!("--schedule={}", own.schedule);
        let recompute = format!("--recompute={}", own.recompute);
        let state = format!("--optimizer-state={}", own.state);
        let replicas = format!("--replicas={}", own.replicas);
        let is_sharded = self.state_by_default && own.state.is_sharded();
        [
            (self.schedule_by_default, schedule),
            (self.recompute_by_default, recompute),
            (self.state_by_default, state),
            (is_sharded, replicas),
        ]
        .into_iter()
        .filter_map(|(is_chosen, option)| (is_chosen && own.is_on()).then_some(option))
        .collect()
    }

    /// Returns true if the model is trained in a pipeline: the profile has a backward pass, and the
    /// schedule is not `none`.
    pub(super) fn trains(&self) -> bool {
        self.is_training && self.pipeline.is_on()
    }
}

/// The bytes that a pipeline adds to one stage of the split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StagePipeline {
    /// Number of forward pipeline stages that run after this stage, including Out if it runs on the
    /// first IPU. 0 without a pipeline.
    pub depth: u32,
    /// Number of copies of each stashed tensor that the stage keeps in addition to the tensor.
    pub copies: u64,
    /// Bytes on the stage's fullest tile if the compiler restores stashed tensors as late as
    /// possible; `null` if late restores make no difference, or without a pipeline.
    pub late_restores: Option<u64>,
    /// The largest variables that the stage stashes on its fullest tile, at most 5, the largest
    /// first.
    pub stashed: Vec<LiveVariable>,
    /// The bytes of the stage in the weight update; `null` if optimizer state stays on the chip.
    pub update: Option<StageUpdate>,
}

/// The bytes of a stage during the weight update, on the tile with the most bytes, while it updates
/// the weights that need the most bytes there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StageUpdate {
    /// The tile of the stage that has the most bytes during the update.
    pub tile: u32,
    /// All bytes on `tile` during the update, with landing pads, which are buffers for loaded
    /// tensors, for all optimizer state of the weights.
    pub bytes: u64,
    /// All bytes on `tile` during the update, with a landing pad (a buffer for a loaded tensor) for
    /// only one tensor of optimizer state at a time, which may be enough for the compiler.
    pub at_least: u64,
    /// Bytes on the fullest tile of the stage in the forward and backward passes.
    pub in_passes: u64,
    /// The part of `bytes` that only the update needs: loaded state, landing pads, gathered
    /// tensors, and tensors that the update makes.
    pub taken: u64,
    /// The names of the updated weights; a weight without a name is left out.
    pub weights: Vec<String>,
    /// Whether the update needs more bytes than the forward and backward passes, each on its
    /// fullest tile. The stage's peak is then in the update.
    pub decides: bool,
}

impl Inputs<'_> {
    /// Returns the facts about the pipeline that the report contains; `None` for the greedy solver
    /// and for the classic memory model, which have no pipelines.
    pub(super) fn pipeline(&self, search: &SearchResult<'_>) -> Option<PipelineFacts> {
        let (options, claims) = (&search.costs.request().options, &search.claims);
        let knows_pipelines = options.solver == Solver::Ilp && self.placement.rules == Rules::Full;
        let changed = |claim| self.changed(claim, search);
        let with_replicas = claims.with_replicas.as_ref();
        knows_pipelines.then(|| PipelineFacts {
            pipeline: self.memory.pipeline(),
            state_by_default: options.pipeline.state.is_none(),
            state_bytes: match self.memory.pipeline().state {
                StatePlace::OnChip => None,
                _ => self.memory.streamed_state().ok().map(|bytes| sum(&bytes)),
            },
            schedule_by_default: options.pipeline.schedule.is_none(),
            runs: self.runs(search),
            recompute_by_default: options.pipeline.recompute.is_none(),
            recording: self.model.recording,
            is_training: self.model.backward_start.is_some(),
            without_recomputation: search.shown.without_recomputation,
            alternatives: claims.with_options.iter().map(changed).collect(),
            gradient_bytes: with_replicas.and_then(|_| self.memory.gradient_bytes().ok()),
            with_replicas: with_replicas.map(changed),
        })
    }

    /// Returns how often, in one forward pass, the layers on both sides of a cut of the split run:
    /// the highest number of any cut, or 1 if no cut separates layers that run several times.
    fn runs(&self, search: &SearchResult<'_>) -> u32 {
        let starts = || search.shown.stages.iter().map(|stage| stage.start);
        let cut = self
            .placement
            .repeats
            .iter()
            .filter(|repeat| starts().any(|start| repeat.is_cut_before(start)));
        cut.map(|repeat| repeat.runs as u32).max().unwrap_or(1)
    }

    /// Returns the bytes of a stage in the weight update, which are part of `memory`; `None` if
    /// optimizer state is on the chip.
    fn stage_update(&self, memory: &StageMemory) -> Option<StageUpdate> {
        let (tile, fullest) = memory
            .updates
            .iter()
            .enumerate()
            .rev()
            .max_by_key(|(_, tile)| tile.bytes)?;
        let in_passes = memory.updates.iter().map(|update| update.in_passes).max()?;
        Some(StageUpdate {
            tile: tile as u32,
            bytes: fullest.bytes,
            at_least: fullest.at_least,
            in_passes,
            taken: fullest.taken,
            weights: fullest
                .update
                .into_iter()
                .flat_map(|update| self.memory.weights_of_update(update))
                .map(str::to_string)
                .collect(),
            decides: fullest.bytes > in_passes,
        })
    }

    /// Returns what the pipeline adds to a stage: its copies of stashed tensors, and its weight
    /// update. `stashed` has the variables that the stage stashes. `None` if there is no pipeline
    /// and optimizer state is on the chip.
    pub(super) fn stage_pipeline(
        &self,
        stage: &PlacedStage,
        memory: &StageMemory,
        stashed: Vec<LiveVariable>,
    ) -> Option<StagePipeline> {
        let update = self.stage_update(memory);
        let (copies, depth) = self
            .memory
            .copies(stage)
            .or_else(|| update.as_ref().map(|_| (0, 0)))?;
        Some(StagePipeline {
            depth: depth as u32,
            copies,
            late_restores: memory.late_restores,
            stashed,
            update,
        })
    }
}
