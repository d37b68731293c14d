//! Which stages are weighed together, and how their variables count.

use super::meets;
use crate::memory::pipeline::{Flows, PlacedStage, Recompute, StageFlows};
use crate::memory::{MemoryModel, Rules};
use crate::model::{EVERYWHERE, PlaceSet};
use std::ops::Range;

/// What is weighed of stages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Everything.
    All,
    /// Layers, without what every stage has.
    Layers,
}

/// In which other way variables count in the same pass.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Second {
    /// In none.
    None,
    /// As if stages restored late what they keep.
    Late,
    /// As in the other pipeline, which makes other variables again.
    Other,
}

/// Which stages are weighed, and how.
pub(super) struct StagesToWeigh<'a> {
    pub(super) stages: &'a [PlacedStage],
    pub(super) wanted: Wanted,
    /// By set of places: the stages that have one of them.
    pub(super) stages_of: Vec<Vec<u32>>,
    pub(super) windows: Vec<Option<(u32, u32)>>,
    pub(super) with_overhead: bool,
    /// By stage; empty where a pipeline adds nothing.
    pub(super) flows: Vec<StageFlows>,
    pub(super) second: Second,
    /// The other pipeline, with the same.
    pub(super) other: Option<(&'a MemoryModel<'a>, Vec<StageFlows>)>,
}

/// What variables of one class and user set have in common.
pub(super) struct StageRow {
    pub(super) counted: PlaceSet,
    /// Do stages count them that have their places?
    pub(super) counts: bool,
    /// The same in the second way, but for what a stage keeps.
    pub(super) second: bool,
    /// The flow of which a stage that restores late what it keeps has nothing in the
    /// second way, if it keeps that.
    kept_late: Option<u32>,
}

impl<'a> StagesToWeigh<'a> {
    pub(super) fn new(
        memory: &MemoryModel<'_>,
        other: Option<&'a MemoryModel<'a>>,
        stages: &'a [PlacedStage],
        wanted: Wanted,
    ) -> Self {
        let ranges: Vec<_> = stages.iter().map(|own| own.positions.clone()).collect();
        let windows = ranges.iter().map(|own| memory.window(own.clone()));
        Self {
            stages,
            wanted,
            stages_of: memory.stages_of_sets(&ranges),
            windows: windows.collect(),
            flows: memory.stage_flows(stages, wanted),
            second: memory.second(other, stages, wanted),
            other: other.map(|other| (other, other.stage_flows(stages, wanted))),
            with_overhead: wanted == Wanted::All && memory.rules == Rules::Full,
        }
    }

    /// How many sums of variables there are: of each stage, once more where they count
    /// in another way, and of what every stage has.
    pub(super) fn sums(&self) -> usize {
        self.common() + 1
    }

    /// The number of the sum that every stage has.
    pub(super) fn common(&self) -> usize {
        match self.second {
            Second::None => self.stages.len(),
            Second::Late | Second::Other => 2 * self.stages.len(),
        }
    }

    /// How variables of a class and user set count.
    pub(super) fn row(&self, memory: &MemoryModel<'_>, class: u32, set: u32) -> StageRow {
        let other = self.other.as_ref().map(|(other, _)| other);
        let flows = memory.flows.as_ref();
        let flows = flows.filter(|_| self.second == Second::Late);
        StageRow {
            counted: memory.counted(set),
            // A layer by itself has all that it keeps.
            counts: !self.with_overhead || !memory.is_recomputed(class, set),
            second: match self.second {
                Second::None => false,
                Second::Other => other.is_some_and(|other| !other.is_recomputed(class, set)),
                Second::Late => true,
            },
            kept_late: flows.and_then(|flows| flows.of(class, set)),
        }
    }

    /// Are the variables in every stage?
    pub(super) fn is_common(&self, row: &StageRow) -> bool {
        self.with_overhead && row.counted == EVERYWHERE && row.counts
    }

    /// Does a stage have the variables in the second way, if it has their places?
    pub(super) fn is_in_second(&self, row: &StageRow, stage: usize) -> bool {
        row.second
            && !row
                .kept_late
                .is_some_and(|flow| self.flows[stage].keeps(flow))
    }
}

impl MemoryModel<'_> {
    /// By set of places: the stages that have one of them. What is in every
    /// stage is not told here.
    pub(in crate::memory) fn stages_of_sets(&self, stages: &[Range<usize>]) -> Vec<Vec<u32>> {
        let of_set = |places: &[u32]| {
            let numbered = (0u32..).zip(stages);
            let met = numbered.filter(|(_, stage)| meets(places, stage));
            met.map(|(number, _)| number).collect()
        };
        self.sets.iter().map(of_set).collect()
    }

    /// What each stage does with each flow; empty where a pipeline adds nothing.
    fn stage_flows(&self, stages: &[PlacedStage], wanted: Wanted) -> Vec<StageFlows> {
        let flows = self.flows.as_ref();
        let flows = flows.filter(|_| wanted == Wanted::All && self.rules == Rules::Full);
        let in_stage = |flows: &Flows| {
            let stages = stages.iter().cloned();
            stages.map(|stage| flows.in_stage(stage)).collect()
        };
        flows.map_or(Vec::new(), in_stage)
    }

    /// In which other way variables count that stages are weighed in too.
    fn second(
        &self,
        other: Option<&MemoryModel<'_>>,
        stages: &[PlacedStage],
        wanted: Wanted,
    ) -> Second {
        if wanted == Wanted::Layers || self.rules == Rules::Classic {
            return Second::None;
        }
        if other.is_some_and(|other| other.recomputes_layers() != self.recomputes_layers()) {
            return Second::Other;
        }
        if stages.iter().any(|stage| self.keeps_activations(stage)) {
            return Second::Late;
        }
        Second::None
    }

    /// Does a stage keep copies of activations that it restores?
    pub(super) fn keeps_activations(&self, stage: &PlacedStage) -> bool {
        let flows = self.flows.as_ref().zip(stage.after);
        flows.is_some_and(|(flows, after)| {
            flows.pipeline().recompute == Recompute::None
                && flows.copies(flows.depth(&stage.positions, after)) > 0
        })
    }
}
