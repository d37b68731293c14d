//! Defines what the report says about the pipeline that runs the split, and about the best splits
//! in other pipelines.

use super::{BestSplit, Inputs, LiveVariable, sum};
use crate::{
    memory::{Pipeline, PlacedStage, StageMemory, StatePlace},
    model::{Recording, Rules},
    search::{SearchResult, Solver},
};
#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The pipeline that runs the split, which of its properties the search chose, and the best splits
/// in other pipelines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct PipelineFacts {
    /// The pipeline that runs the split. The schedule `none` means no pipeline: each stage then
    /// has the memory that its layers have in the compilation for one IPU.
    #[serde(flatten)]
    pub pipeline: Pipeline,
    /// Whether the search chose where optimizer state is kept, since the user gave no
    /// `--optimizer-state`.
    pub state_by_default: bool,
    /// Bytes of the optimizer state that is kept off the chip or sharded over replicas, over all
    /// tiles of all stages, before it is divided among replicas; `null` if state is neither.
    pub state_bytes: Option<u64>,
    /// Whether the search chose the schedule, since the user gave none.
    pub schedule_by_default: bool,
    /// How often the forward pass of one micro-batch crosses a cut of the split: the highest number
    /// of all cuts, at least 1. The number is above 1 if the layers on both sides of a cut run
    /// several times, as for each token of a text. The IPUs then take turns instead of working at
    /// once.
    pub runs: u32,
    /// Whether the search chose which activations to recompute, since the user gave no
    /// `--recompute`.
    pub recompute_by_default: bool,
    /// How the profile was recorded. Tensors that were loaded from outside the IPUs or gathered
    /// from replicas are in the profile only while they are used. If activations were
    /// recomputed, the profile has only the activations that are kept. If gradients were not
    /// accumulated, the predicted bytes include accumulators for the updated weights.
    pub recording: Recording,
    /// Whether the profile has a backward pass, so that the pipeline trains the model.
    pub is_training: bool,
    /// Bytes on the fullest tile that the report's split would need without recomputation;
    /// `null` if the pipeline recomputes nothing.
    pub without_recomputation: Option<u64>,
    /// The best splits with another schedule, other recomputation, or another place of
    /// optimizer state, in the order in which a user would try these changes; empty if no
    /// change was searched.
    pub alternatives: Vec<BestSplit>,
    /// The best split with several replicas of a smaller pipeline, if the replicas are faster
    /// together than the report's pipeline; `null` if they are not faster, or if the user gave
    /// the number of replicas.
    pub with_replicas: Option<BestSplit>,
    /// Bytes of gradients, over all tiles, that the replicas of `with_replicas` (copies of a
    /// smaller pipeline that work in parallel) would exchange in each step, which the time of the
    /// step leaves out; `null` if `with_replicas` is `null`.
    pub gradient_bytes: Option<u64>,
}

impl PipelineFacts {
    /// Returns options for what the user left open and the search chose, such as
    /// `--schedule=popart`: the schedule, the recomputation, and the place of optimizer state.
    /// Sharded state also needs the number of replicas. Empty if the user chose everything, or if
    /// there is no pipeline.
    pub fn chosen_options(&self) -> Vec<String> {
        let own = &self.pipeline;
        let mut options = Vec::new();
        if !own.is_on() {
            return options;
        }
        if self.schedule_by_default {
            options.push(format!("--schedule={}", own.schedule));
        }
        if self.recompute_by_default {
            options.push(format!("--recompute={}", own.recompute));
        }
        if self.state_by_default {
            options.push(format!("--optimizer-state={}", own.state));
            if own.state.is_sharded() {
                options.push(format!("--replicas={}", own.replicas));
            }
        }
        options
    }

    /// Returns whether the model is trained in a pipeline: the profile has a backward pass, and the
    /// schedule is not `none`.
    pub(super) fn trains(&self) -> bool {
        self.is_training && self.pipeline.is_on()
    }
}

/// The bytes that a pipeline adds to one stage of the split, such as its stash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct StagePipeline {
    /// Number of forward pipeline stages that run after this stage; 0 without a pipeline. If
    /// Out (the operations after the last layer) runs on the first IPU, Out is one of these
    /// stages.
    pub depth: u32,
    /// Number of copies of each stashed activation that the stage keeps, besides the activation
    /// itself.
    pub copies: u64,
    /// Bytes on the stage's fullest tile if the compiler restores stashed tensors as late as
    /// possible; `null` if late restores make no difference, or without a pipeline.
    pub late_restores: Option<u64>,
    /// The largest variables that the stage stashes on its fullest tile, at most 5, the largest
    /// first.
    pub stashed: Vec<LiveVariable>,
    /// The bytes of the stage in the weight update; `null` unless the model is trained, with
    /// optimizer state off the chip or sharded over replicas.
    pub update: Option<StageUpdate>,
}

/// The bytes of a stage at the moment of the weight update that needs the most memory: on the tile
/// with the most bytes, while the stage updates the weights that need the most bytes there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
pub struct StageUpdate {
    /// The tile of the stage that has the most bytes during the weight update.
    pub tile: u32,
    /// All bytes on `tile` during the weight update, if all optimizer state of the weights that are
    /// being updated is loaded at once into landing pads (buffers for loaded tensors).
    pub bytes: u64,
    /// All bytes on `tile` during the update, if only one tensor of optimizer state is loaded
    /// at a time into a landing pad (a buffer for a loaded tensor). The compiler may need only
    /// these bytes.
    pub at_least: u64,
    /// Bytes on the fullest tile of the stage in the forward and backward passes, for
    /// comparison with the update.
    pub in_passes: u64,
    /// The part of `bytes` that only the update needs: loaded optimizer state, landing pads
    /// (buffers for loaded tensors), gathered tensors, and tensors that the update makes.
    pub taken: u64,
    /// The names of the weights whose update needs the most bytes on `tile`; weights without a
    /// name are left out.
    pub weights: Vec<String>,
    /// Whether the update needs more bytes than the forward and backward passes, each on its
    /// fullest tile. If so, the stage's peak is in the update.
    pub decides: bool,
}

impl Inputs<'_> {
    /// Returns what the report says about the pipeline; `None` with the greedy solver and with the
    /// classic memory model, which have no pipelines.
    pub(super) fn pipeline(&self, search: &SearchResult<'_>) -> Option<PipelineFacts> {
        let (options, claims) = (&search.costs.request().options, &search.claims);
        let knows_pipelines = options.solver == Solver::Ilp && self.placement.rules == Rules::Full;
        let changed = |claim| self.changed(claim);
        let with_replicas = claims.with_replicas.as_ref();
        knows_pipelines.then(|| PipelineFacts {
            pipeline: self.memory.pipeline(),
            state_by_default: options.pipeline.state.is_none(),
            state_bytes: match self.memory.pipeline().state {
                StatePlace::OnChip => None,
                _ => Some(sum(self.memory.streamed_state())),
            },
            schedule_by_default: options.pipeline.schedule.is_none(),
            runs: self.runs(),
            recompute_by_default: options.pipeline.recompute.is_none(),
            recording: self.model.recording,
            is_training: self.model.backward_start.is_some(),
            without_recomputation: search.shown.without_recomputation,
            alternatives: claims.with_options.iter().map(changed).collect(),
            gradient_bytes: with_replicas.map(|_| self.memory.gradient_bytes()),
            with_replicas: with_replicas.map(changed),
        })
    }

    /// Returns how often the forward pass of a micro-batch crosses a cut of the split: the highest
    /// number of all cuts, at least 1. The number is above 1 if the layers on both sides of a cut
    /// run several times, as for each token of a text. The IPUs then take turns instead of working
    /// at once.
    fn runs(&self) -> u32 {
        let stages = self.stages().iter();
        (self.placement.repeats.iter())
            .filter(|repeat| {
                stages
                    .clone()
                    .any(|stage| repeat.is_cut_before(stage.start))
            })
            .map(|repeat| repeat.runs as u32)
            .max()
            .unwrap_or(1)
    }

    /// Returns the bytes of a stage in the weight update, taken from `memory`; `None` unless the
    /// model is trained, with optimizer state off the chip or sharded over replicas.
    fn stage_update(&self, memory: &StageMemory) -> Option<StageUpdate> {
        let updates = memory.updates.iter();
        let (tile, fullest) =
            (updates.clone().enumerate().rev()).max_by_key(|(_, tile)| tile.bytes)?;
        let in_passes = updates.map(|update| update.in_passes).max()?;
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

    /// Returns what the pipeline adds to a stage: the copies of the tensors that it stashes
    /// (`stashed`), and the memory of the weight update. Returns `None` if there is no pipeline and
    /// optimizer state is neither off the chip nor sharded over replicas.
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
