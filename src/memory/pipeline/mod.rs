//! Memory that a pipeline adds to its layers (docs/model.md, "Pipelines").
//!
//! The profile is of one IPU, which runs each micro-batch through the whole model before the next
//! one. The stages of a pipeline work on several at once, so each keeps a stash of tensors
//! ([`Flow::part_of`](flows::Flow::part_of) says which), in more copies the more stages come after
//! it ([`Schedule::copies`]). The added bytes are summed stage by stage (`additions`) and
//! for all ranges of layers at once (`ranges`).

mod additions;
mod flows;
mod patterns;
mod ranges;
mod settings;
#[cfg(test)]
pub(super) mod tests;
mod transfer_buffers;
mod warnings;

pub use settings::{Accumulator, Pipeline, PipelineOptions, Recompute, Schedule, StatePlace};

pub(super) use additions::{Additions, StageFlows, TileFlows};
pub(super) use flows::Flows;
pub(super) use patterns::Patterns;
pub(super) use ranges::RangeAdditions;
pub(super) use transfer_buffers::PHASES;

use std::ops::Range;

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
