//! The stages that are computed together, and the variables that each of them counts.

use crate::memory::pipeline::{Flows, PlacedStage, StageFlows};
use crate::memory::update::UpdatePhase;
use crate::memory::{MemoryModel, Rules};
use crate::model::{EVERYWHERE, PlaceSet, VariableUse, meets};
use std::collections::BTreeSet;
use std::ops::Range;

/// Which bytes of stages are computed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Every byte that the stages take in a split, including overhead and what a pipeline adds.
    All,
    /// Only the variables and code of the stages' own positions, without overhead and without what
    /// a pipeline adds. It is used for single layers.
    Layers,
    /// Like [`Wanted::All`], as if stages restored their stashed tensors as late as possible:
    /// tensors that are kept for the backward pass do not count as live.
    LateRestores,
}

/// Some stages whose memory is computed together, in one pass over the variables.
pub(super) struct StagesToCompute<'a> {
    pub memory: &'a MemoryModel<'a>,
    pub stages: &'a [PlacedStage],
    wanted: Wanted,
    /// For each set of positions, by its index: the numbers (in `stages`) of the stages that have
    /// any of these positions. The list of [`EVERYWHERE`] is empty.
    stages_of: Vec<Vec<u32>>,
    /// For each stage: the half-open steps at which its bytes count; from 0 to 0 if there are none.
    pub windows: Vec<Range<u32>>,
    /// The first step of each stage that has steps.
    pub starts: BTreeSet<u32>,
    /// Whether overhead and fragmentation are part of the memory.
    pub with_overhead: bool,
    /// If a pipeline adds bytes: the flows (tensors with the same users), and what each stage does
    /// with them (`None` if the number of stages after it is open); otherwise `None`.
    pub flows: Option<(&'a Flows, Vec<Option<StageFlows>>)>,
    /// The weight update, if it is a phase of its own; otherwise `None`.
    pub update: Option<&'a UpdatePhase>,
}

/// Which stages count the variables of one use (one class and use set) at some steps.
#[derive(Clone, Copy)]
pub(super) struct StageRow {
    /// The row of the variables in [`NeighbourUses`](crate::memory::uses::NeighbourUses).
    pub of_use: u32,
    /// The positions that count the variables: a stage with any of them has their bytes.
    counted: PlaceSet,
    /// A position that a stage must also have to count the variables; `None` for no such condition.
    with: Option<u32>,
    /// The number of the flow that the variables belong to, if stages restore late
    /// ([`Wanted::LateRestores`]): a stage that keeps this flow for its backward pass does not
    /// count them. Otherwise `None`.
    kept_late: Option<u32>,
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
        let is_whole = wanted != Wanted::Layers;
        let flows = memory
            .flows
            .as_ref()
            .filter(|_| is_whole && memory.rules == Rules::Full);
        Self {
            memory,
            stages,
            wanted,
            stages_of: memory.sets.iter().map(stages_of).collect(),
            starts: starts.map(|window| window.start).collect(),
            windows,
            flows: flows.map(|flows| {
                let of_stages = stages.iter().map(|stage| flows.in_stage(stage));
                (flows, of_stages.collect())
            }),
            update: memory.update.as_deref().filter(|_| is_whole),
            with_overhead: is_whole && memory.rules == Rules::Full,
        }
    }

    /// Calls `visit` with the number of each stage that counts the variables of `row`; only once,
    /// with `None`, if every stage counts them as overhead.
    #[inline]
    pub fn each_stage(&self, row: &StageRow, mut visit: impl FnMut(Option<usize>)) {
        if self.with_overhead && row.counted == EVERYWHERE {
            visit(None);
        }
        for &stage in &self.stages_of[row.counted.index()] {
            let stage = stage as usize;
            let keeps = |flow| {
                self.flows
                    .as_ref()
                    .and_then(|(_, of_stages)| of_stages[stage].as_ref())
                    .is_some_and(|roles| roles.keeps(flow))
            };
            if !row.kept_late.is_some_and(keeps)
                && row.with.is_none_or(|position| {
                    self.stages[stage].positions.contains(&(position as usize))
                })
            {
                visit(Some(stage));
            }
        }
    }

    /// Visits the variables of a use with the row `of_use` (in
    /// [`NeighbourUses`](crate::memory::uses::NeighbourUses)) and the number `number` (in
    /// [`CountedUses`](crate::memory::uses::CountedUses)). A call gets which stages count the
    /// variables, and the half-open steps at which they are live there (`None` for all steps).
    /// There are several calls if stages have the variables live at different steps, none if no
    /// stage has them.
    pub fn each_row(
        &self,
        (of_use, number): (u32, u32),
        mut visit: impl FnMut(StageRow, Option<&'a [(u32, u32)]>),
    ) {
        let memory = self.memory;
        let flows = memory.flows.as_ref();
        let flows = flows.filter(|_| self.wanted == Wanted::LateRestores);
        let kept_late = flows.and_then(|flows| flows.of(number));
        let mut row = |(counted, with), live| {
            let row = StageRow {
                of_use,
                counted,
                with,
                kept_late,
            };
            visit(row, live);
        };
        if self.wanted == Wanted::Layers {
            // A single layer has its optimizer state, and everything that it keeps.
            let &VariableUse { class, set, .. } = memory.uses.of(number);
            return row((memory.counted(set), None), memory.live_ranges(class));
        }
        memory.each_life(number, row);
    }
}
