//! The stages whose memory is computed together, and the variables that each of them has.

use crate::memory::pipeline::{PlacedStage, StageFlows};
use crate::memory::{MemoryModel, Rules};
use crate::model::{EVERYWHERE, PlaceSet, meets};
use std::collections::BTreeSet;
use std::ops::Range;

/// The bytes of stages that are computed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Every byte that the stages take in a split, including overhead and what a pipeline adds.
    All,
    /// Only the variables and code of the stages' own positions, without overhead. It is used for
    /// single layers.
    Layers,
    /// Like [`Wanted::All`], as if stages restored their stashed tensors as late as possible:
    /// tensors that are kept for the backward pass are not live in the meantime.
    LateRestores,
}

/// Some stages whose memory is computed together, in one pass over the variables.
pub(super) struct StagesToCompute<'a> {
    pub memory: &'a MemoryModel<'a>,
    pub stages: &'a [PlacedStage],
    pub wanted: Wanted,
    /// For each set of positions, by its index: the indices into `stages` of the stages that have
    /// any of these positions. The list of [`EVERYWHERE`] is empty.
    stages_of: Vec<Vec<u32>>,
    /// For each stage: the half-open steps at which its live bytes are looked at; from 0 to 0 if
    /// there are none.
    pub windows: Vec<Range<u32>>,
    /// The first step of each stage that has steps.
    pub starts: BTreeSet<u32>,
    /// Whether overhead and fragmentation are part of the memory.
    pub with_overhead: bool,
    /// If a pipeline adds bytes: what each stage does with the flows (tensors with the same users)
    /// of the model (`None` if the number of stages after it is open). Otherwise empty.
    pub roles: Vec<Option<StageFlows>>,
}

/// The stages that have the variables of one use (one class and use set) at some steps.
#[derive(Clone, Copy)]
pub(super) struct StageRow {
    /// The index of the row of the variables in
    /// [`NeighbourUses`](crate::memory::uses::NeighbourUses).
    pub of_use: u32,
    /// The set of positions of which a stage must have any to have the variables' bytes, and a
    /// position that the stage must also have; `None` for no such condition.
    pub part: (PlaceSet, Option<u32>),
    /// The number of the flow that the variables belong to, if stages restore late
    /// ([`Wanted::LateRestores`]): a stage that keeps this flow for its backward pass is left out.
    /// Otherwise `None`.
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

    /// Calls `visit` with the index of each stage that has the variables of `row`; or once, with
    /// the number of stages in place of an index, if every stage has them as overhead.
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
