//! The memory that a pipeline adds to the memory of layers (docs/model.md, "Pipelines").
//!
//! The profile is of a compilation for one IPU, which runs each micro-batch through the whole model
//! before the next one. The stages of a pipeline work on several micro-batches at once, so each
//! stage keeps a stash: copies of the tensors from which it runs the backward passes later.
//! [`Flow::role_of`](flows::Flow::role_of) decides which tensors these are. The number of copies
//! grows with the number of later stages ([`Schedule::copies`]). Module `additions` sums up the
//! added bytes of one stage, and `ranges` those of all ranges of layers at once.

mod additions;
mod flows;
mod ranges;
mod settings;
#[cfg(test)]
pub(super) mod tests;
mod warnings;

pub use settings::{Accumulator, Pipeline, PipelineOptions, Recompute, Schedule, StatePlace};

pub(super) use additions::{PHASES, StageRoles, TileFlows};
pub(super) use flows::Flows;
pub(super) use ranges::{FlowStretch, RangeAdditions};

use std::ops::Range;

/// A pipeline stage: a range of positions in the layer order, and the number of stages after it.
/// The positions are In (the operations before the first layer), the layers, and Out (the
/// operations after the last layer).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PlacedStage {
    /// The positions (In, layers, Out) of the layer order, end exclusive, whose operations the
    /// stage runs.
    pub positions: Range<usize>,
    /// The number of stages of the split that follow this stage. With `None`, the number is open,
    /// and the computed bytes of the stage are a lower bound for any number of later stages.
    pub after: Option<usize>,
}

impl PlacedStage {
    /// Returns the stages of a split, each with the number of stages after it. `stages` are the
    /// ranges of positions of the stages (ends exclusive), in order.
    pub fn of_split(stages: &[Range<usize>]) -> Vec<Self> {
        (0..stages.len())
            .rev()
            .zip(stages)
            .map(|(after, positions)| Self {
                positions: positions.clone(),
                after: Some(after),
            })
            .collect()
    }

    /// Returns a stage with the positions `positions` (end exclusive), for which the number of
    /// later stages in a split is left open.
    pub fn anywhere(positions: Range<usize>) -> Self {
        Self {
            positions,
            after: None,
        }
    }
}
