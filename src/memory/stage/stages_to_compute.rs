//! The stages whose memory is computed together, and the variables that each of them has.

use crate::memory::pipeline::{PlacedStage, StageFlows};
use crate::memory::{MemoryModel, Rules};
use crate::model::{EVERYWHERE, PlaceSet, meets};
use std::collections::BTreeSet;
use std::ops::Range;

/// Selects which bytes of the stages are computed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Every byte that the stages take in a split, including overhead and what a pipeline adds.
    All,
    /// Only the variables and code of the stages' own positions, without overhead. Used for single
    /// layers.
    Layers,
    /// The bytes of [`Wanted::All`] if stages restored their stashed tensors as late as possible: a
    /// tensor that a stage keeps for its backward pass is not live while it is only kept.
    LateRestores,
}

/// Some stages whose memory is computed together, in one pass over the variables.
pub(super) struct StagesToCompute<'a> {
    pub memory: &'a MemoryModel<'a>,
    pub stages: &'a [PlacedStage],
    pub wanted: Wanted,
    /// One entry per set of positions: the indices into `stages` of the stages that have any of
    /// these positions. The entry of [`EVERYWHERE`] is empty.
    stages_of: Vec<Vec<u32>>,
    /// One entry per stage: the half-open range of steps in which its highest live bytes are looked
    /// for; `0..0` if the stage has no steps.
    pub windows: Vec<Range<u32>>,
    /// The first steps of all stages that have steps.
    pub starts: BTreeSet<u32>,
    /// Whether overhead and fragmentation are part of the memory.
    pub with_overhead: bool,
    /// If a pipeline adds bytes, one entry per stage: what the stage does with the flows (sets of
    /// tensors with the same users) of the model; `None` if the number of stages after it is open.
    /// Otherwise an empty list.
    pub roles: Vec<Option<StageFlows>>,
}

/// The stages in which the variables with one equivalence class and one use set are live during a
/// given set of steps.
#[derive(Clone, Copy)]
pub(super) struct StageRow {
    /// Index into the rows of [`NeighbourUses`](crate::memory::uses::NeighbourUses): the row of the
    /// variables.
    pub of_use: u32,
    /// The condition for a stage to have the variables: it must have any position of the set, and
    /// also the further position (`None` if no further position is required).
    pub part: (PlaceSet, Option<u32>),
    /// If stages restore late ([`Wanted::LateRestores`]), the index of the flow to which the
    /// variables belong: stages that keep this flow for their backward pass are left out. Otherwise
    /// `None`.
    pub kept_late: Option<u32>,
}

impl<'a> StagesToCompute<'a> {
    pub fn new(memory: &'a MemoryModel<'a>, stages: &'a [PlacedStage], wanted: Wanted) -> Self {
        let window = |stage: &PlacedStage| {
            memory
                .window(stage.positions.clone())
                .map_or(0..0, |(first, last)| first..last + 1)
        };
        let windows: Vec<_> = stages.iter().map(window).collect();
        let starts = windows.iter().filter(|window| !window.is_empty());
        let stages_of = |places: &[u32]| {
            (0u32..)
                .zip(stages)
                .filter(|(_, stage)| meets(places, &stage.positions))
                .map(|(number, _)| number)
                .collect()
        };
        let flows = memory.flows.iter();
        Self {
            memory,
            stages,
            wanted,
            stages_of: memory.sets.iter().map(stages_of).collect(),
            starts: starts.map(|window| window.start).collect(),
            windows,
            roles: flows
                .flat_map(|flows| stages.iter().map(|stage| flows.in_stage(stage)))
                .collect(),
            with_overhead: wanted != Wanted::Layers && memory.rules == Rules::Full,
        }
    }

    /// Calls `visit` with the index of each stage that has the variables of `row`. If every stage
    /// has them as overhead, calls `visit` only once, with the number of stages in place of an
    /// index.
    #[inline]
    pub fn each_stage(&self, row: &StageRow, mut visit: impl FnMut(usize)) {
        let (counted, with) = row.part;
        if self.with_overhead && counted == EVERYWHERE {
            visit(self.stages.len());
        }
        for &stage in &self.stages_of[counted.index()] {
            let stage = stage as usize;
            let roles = || self.roles[stage].as_ref();
            let keeps = |flow| roles().is_some_and(|roles| roles.keeps(flow));
            let has = |position| self.stages[stage].positions.contains(&(position as usize));
            if !row.kept_late.is_some_and(keeps) && with.is_none_or(has) {
                visit(stage);
            }
        }
    }
}
