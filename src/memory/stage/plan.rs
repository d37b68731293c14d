//! Which stages are computed together, and how their variables count.

use super::meets;
use crate::memory::pipeline::{Flows, PHASES, PlacedStage, Recompute, StageFlows};
use crate::memory::{MemoryModel, Rules};
use crate::model::{EVERYWHERE, PlaceSet};
use std::ops::Range;

/// What is computed of stages.
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

/// Which stages are computed, and how.
pub(super) struct StagesToCompute<'a> {
    pub(super) stages: &'a [PlacedStage],
    pub(super) wanted: Wanted,
    /// By set of places: the stages that have one of them.
    stages_of: Vec<Vec<u32>>,
    /// How many steps there are.
    pub(super) steps: u32,
    /// The steps of each phase.
    pub(super) phases: [Range<u32>; PHASES],
    /// By sum of variables: the steps that count; none where a stage has none.
    windows: Vec<Range<u32>>,
    /// The first step of each sum that has one, with the sum, by step.
    pub(super) starts: Vec<(u32, usize)>,
    pub(super) with_overhead: bool,
    /// By stage; empty where a pipeline adds nothing.
    pub(super) flows: Vec<StageFlows>,
    pub(super) second: Second,
    /// The other pipeline, with the same.
    pub(super) other: Option<(&'a MemoryModel<'a>, Vec<StageFlows>)>,
}

/// How the variables of one use count, at some steps.
#[derive(Clone, Copy)]
pub(super) struct StageRow {
    /// The row of the use.
    pub(super) of_use: u32,
    counted: PlaceSet,
    /// Do stages count them that have their places?
    counts: bool,
    /// The same in the second way, but for what a stage keeps.
    second: bool,
    /// The flow of which a stage that restores late what it keeps has nothing in the
    /// second way, if it keeps that.
    kept_late: Option<u32>,
}

impl<'a> StagesToCompute<'a> {
    pub(super) fn new(
        memory: &MemoryModel<'_>,
        other: Option<&'a MemoryModel<'a>>,
        stages: &'a [PlacedStage],
        wanted: Wanted,
    ) -> Self {
        let ranges: Vec<_> = stages.iter().map(|own| own.positions.clone()).collect();
        let window = |own: &Range<usize>| {
            let window = memory.window(own.clone());
            window.map_or(0..0, |(first, last)| first..last + 1)
        };
        let second = memory.second(other, stages, wanted);
        let ways = if second == Second::None { 1 } else { 2 };
        let windows = vec![ranges.iter().map(window).collect::<Vec<_>>(); ways].concat();
        let sums = windows.iter().enumerate();
        let sums = sums.filter(|(_, window)| !window.is_empty());
        let mut starts: Vec<_> = sums.map(|(sum, window)| (window.start, sum)).collect();
        starts.sort_unstable();
        Self {
            stages,
            wanted,
            // That which runs layers again knows the sets of the other.
            stages_of: match other.filter(|other| other.recomputes_layers()) {
                Some(other) => other.stages_of_sets(&ranges),
                None => memory.stages_of_sets(&ranges),
            },
            steps: memory.model.steps(),
            phases: memory.phases(),
            windows,
            starts,
            flows: memory.stage_flows(stages, wanted),
            second,
            other: other.map(|other| (other, other.stage_flows(stages, wanted))),
            with_overhead: wanted == Wanted::All && memory.rules == Rules::Full,
        }
    }

    /// Has a stage steps?
    pub(super) fn has_steps(&self, stage: usize) -> bool {
        !self.windows[stage].is_empty()
    }

    /// Are there steps of a phase? There is always one phase.
    pub(super) fn has(&self, phase: usize) -> bool {
        !self.phases[phase].is_empty() || (phase == 0 && self.steps == 0)
    }

    /// How many sums of variables there are: of each stage, and once more where they
    /// count in another way.
    pub(super) fn sums(&self) -> usize {
        self.windows.len()
    }

    /// By sum: the first step that counts.
    pub(super) fn firsts(&self) -> impl Iterator<Item = u32> {
        self.windows.iter().map(|window| window.start)
    }

    /// Does a step count for a sum?
    pub(super) fn is_looked_at(&self, sum: usize, step: u32) -> bool {
        self.windows[sum].contains(&step)
    }

    /// Calls `visit` with each sum that has the variables, and with `None` if every stage
    /// has them.
    #[inline]
    pub(super) fn each_sum(&self, row: &StageRow, mut visit: impl FnMut(Option<usize>)) {
        if self.with_overhead && row.counted == EVERYWHERE && row.counts {
            visit(None);
        }
        for &stage in &self.stages_of[row.counted.index()] {
            let stage = stage as usize;
            if row.counts {
                visit(Some(stage));
            }
            if row.second
                && !row
                    .kept_late
                    .is_some_and(|flow| self.flows[stage].keeps(flow))
            {
                visit(Some(self.stages.len() + stage));
            }
        }
    }

    /// Calls `visit` with how the variables of a use count, and when they are live. More
    /// than once where they are live at other steps in some stages, or in the other
    /// pipeline.
    pub(super) fn each_row<'b>(
        &'b self,
        memory: &'b MemoryModel<'_>,
        (of_use, number): (u32, u32),
        mut visit: impl FnMut(StageRow, Option<&'b [(u32, u32)]>),
    ) {
        // A layer by itself has its state.
        if self.wanted == Wanted::All && memory.is_away(number) {
            return;
        }
        let flows = memory.flows.as_ref();
        let late = flows.filter(|_| self.second == Second::Late);
        let row = StageRow {
            of_use,
            counted: memory.uses.known(number).counted,
            counts: true,
            second: self.second != Second::None,
            kept_late: late.and_then(|flows| flows.of(number)),
        };
        let other = self.other.as_ref().filter(|_| row.second);
        // A layer by itself has all that it keeps.
        let own = memory.again(number).filter(|_| self.with_overhead);
        let other = other.and_then(|(other, _)| other.again(number));
        let as_recorded = StageRow {
            counts: own.is_none(),
            second: row.second && other.is_none(),
            ..row
        };
        if as_recorded.counts || as_recorded.second {
            visit(as_recorded, memory.live_ranges(number));
        }
        for (again, counts) in [(own, true), (other, false)] {
            let Some(again) = again else { continue };
            let (places, more) = &again.more;
            for (counted, live) in [(row.counted, &again.always), (*places, more)] {
                let second = row.second && !counts;
                let row = StageRow {
                    counted,
                    counts,
                    second,
                    ..row
                };
                visit(row, Some(live));
            }
        }
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

    /// The other way of counting variables in which stages are computed too.
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
