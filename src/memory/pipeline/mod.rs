//! Memory that a pipeline adds to its layers (docs/model.md, "Pipelines").
//!
//! The profile is of one IPU, which runs each micro-batch through the whole model before the next
//! one. The stages of a pipeline work on several at once, so each keeps a stash of tensors
//! ([`Flow::part_of`](flows::Flow::part_of) says which), in more copies the more stages come after
//! it ([`Schedule::copies`]). The added bytes are summed stage by stage (`additions`) and
//! for all ranges of layers at once (`ranges`).

mod additions;
mod choice;
mod flows;
mod patterns;
mod ranges;
#[cfg(test)]
pub(super) mod tests;
mod transfer_buffers;
mod warnings;

pub use choice::PipelineOptions;

pub(super) use additions::{Additions, StageFlows};
pub(super) use flows::{Flows, TileFlows};
pub(super) use patterns::Patterns;
pub(super) use ranges::RangeAdditions;
pub(super) use transfer_buffers::PHASES;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;

/// The order in which stages work on micro-batches.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Schedule {
    /// No pipeline: nothing is added to the one-IPU compilation.
    #[default]
    None,
    /// The pipeline of PopART and PopTorch.
    Popart,
    /// TensorFlow's default: groups of forward passes and of backward passes.
    TfGrouped,
    /// TensorFlow's interleaved schedule: forward and backward passes alternate.
    TfInterleaved,
    /// One stage after the other.
    Sequential,
}

impl Schedule {
    /// Number of additional copies of a stashed tensor that a training pipeline keeps in a stage
    /// with `depth` forward pipeline stages after it (docs/model.md, "Pipelines").
    pub fn copies(self, depth: usize) -> u64 {
        let depth = depth as u64;
        match self {
            _ if depth == 0 => 0,
            Schedule::Popart => 2 * depth + 1,
            Schedule::TfGrouped => 2 * depth,
            Schedule::TfInterleaved => depth,
            Schedule::None | Schedule::Sequential => 0,
        }
    }

    /// The fewest micro-batches over which the schedule accumulates gradients, with `stages`
    /// forward pipeline stages (docs/model.md, "Pipelines").
    pub fn least_accumulation(self, stages: usize) -> usize {
        match self {
            Schedule::None => 1,
            Schedule::Popart => (2 * stages).saturating_sub(1).max(1),
            Schedule::TfGrouped => 2 * stages,
            Schedule::TfInterleaved | Schedule::Sequential => stages,
        }
    }

    /// Number of micro-batches in a step where the schedule needs `least` and the user wants
    /// `wanted`: TensorFlow's pipelines take multiples of `least`.
    pub fn accumulation(self, least: u64, wanted: u64) -> u64 {
        let least = least.max(1);
        match self {
            Schedule::TfGrouped | Schedule::TfInterleaved => {
                wanted.div_ceil(least).saturating_mul(least)
            }
            Schedule::None | Schedule::Popart | Schedule::Sequential => wanted.max(least),
        }
    }
}

/// The activations that a training pipeline recomputes in the backward pass.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Recompute {
    /// Nothing: every tensor that the backward pass needs is kept.
    #[default]
    None,
    /// Each stage, from its inputs.
    Stage,
    /// Each layer, from its inputs.
    Layer,
}

/// The type of the elements of accumulators.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Accumulator {
    /// The type of the weight's elements.
    #[default]
    AsWeight,
    /// 16 bits for each element.
    Float16,
    /// 32 bits for each element.
    Float32,
}

impl Accumulator {
    /// Bytes of an accumulator for a weight of `bytes` bytes, whose elements take `element` bytes
    /// each; `bytes` where the size of an element is unknown.
    pub(super) fn bytes(self, bytes: u64, element: Option<u8>) -> u64 {
        let width = match self {
            Accumulator::AsWeight => None,
            Accumulator::Float16 => Some(2),
            Accumulator::Float32 => Some(4),
        };
        match (width, element) {
            (Some(width), Some(element)) if element > 0 => {
                bytes.saturating_mul(width).div_ceil(u64::from(element))
            }
            _ => bytes,
        }
    }
}

/// The place of optimizer state between two updates.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum StatePlace {
    /// On the chip, beside the weights.
    #[default]
    OnChip,
    /// In memory outside the IPUs.
    OffChip,
    /// Sharded: each replica keeps a share on the chip.
    Sharded,
    /// Sharded off the chip: each replica keeps a share outside the IPUs.
    ShardedOffChip,
}

macro_rules! shown_as_option {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            /// As the option takes it.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.to_possible_value() {
                    Some(value) => f.write_str(value.get_name()),
                    None => Ok(()),
                }
            }
        }
    )*};
}
shown_as_option!(Schedule, Recompute, Accumulator, StatePlace);

/// The pipeline that stages are part of. The default is no pipeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pipeline {
    /// The order in which stages work on micro-batches.
    pub schedule: Schedule,
    /// The activations that are recomputed.
    pub recompute: Recompute,
    /// The type of the elements of accumulators.
    pub accumulator: Accumulator,
    /// The place of optimizer state.
    pub state: StatePlace,
    /// Number of replicas if state is not on the chip; otherwise 0.
    pub replicas: u64,
}

impl Pipeline {
    /// Is there a pipeline at all?
    pub fn is_on(self) -> bool {
        self.schedule != Schedule::None
    }

    /// The settings that take effect: without a pipeline, only the place of the state.
    pub(super) fn in_effect(self) -> Self {
        match self.is_on() {
            true => self,
            false => Self {
                state: self.state,
                replicas: self.replicas,
                ..Self::default()
            },
        }
    }
}

/// A range of positions (end exclusive) as a stage of a split.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PlacedStage {
    /// The positions.
    pub positions: Range<usize>,
    /// Number of stages after this one; `None` for the least bytes of any stage with these
    /// positions, wherever it is in a split.
    pub after: Option<usize>,
}

impl PlacedStage {
    /// The stages of a split, each with the number of stages after it.
    pub fn of_split(stages: &[Range<usize>]) -> Vec<Self> {
        let after = (0..stages.len()).rev();
        let stages = stages.iter().cloned().zip(after);
        stages
            .map(|(positions, after)| Self {
                positions,
                after: Some(after),
            })
            .collect()
    }

    /// Positions without a place in a split.
    pub fn alone(positions: Range<usize>) -> Self {
        Self {
            positions,
            after: None,
        }
    }
}
