//! The highest bytes of live variables of each stage on each tile, computed step by step for all
//! stages and a few neighbouring tiles at a time.

use crate::memory::lanes::{self, LANES};
use crate::memory::pipeline::{Flows, PHASES, PlacedStage, StageRoles, TileFlows};
use crate::memory::update::{TileUpdates, Updating};
use crate::memory::uses::{self, NeighbourUses};
use crate::memory::{MemoryModel, Parts, Rules};
use crate::model::{EVERYWHERE, PlaceSet, meets};
use rayon::prelude::*;
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
    /// The flows (sets of tensors with the same users) of the model if stages restore late
    /// ([`Wanted::LateRestores`]); otherwise `None`.
    restored_late: Option<&'a Flows>,
    /// One entry per set of positions: the indices into `stages` of the stages that have any of
    /// these positions. The entry of [`EVERYWHERE`] is empty.
    stages_of: Vec<Vec<usize>>,
    /// One entry per stage: the half-open range of steps in which its highest live bytes are looked
    /// for; `0..0` if the stage has no steps.
    pub windows: Vec<Range<u32>>,
    /// The first steps of all stages that have steps.
    starts: BTreeSet<u32>,
    /// Whether overhead and fragmentation are part of the memory.
    pub with_overhead: bool,
    /// If a pipeline adds bytes, one entry per stage: what the stage does with the flows (sets of
    /// tensors with the same users) of the model; `None` if the number of stages after it is open.
    /// Otherwise an empty list.
    roles: Vec<Option<StageRoles>>,
}

/// The stages in which the variables with one equivalence class and one use set are live during a
/// given set of steps.
#[derive(Clone, Copy)]
struct StageRow {
    /// Index into the rows of [`NeighbourUses`](crate::memory::uses::NeighbourUses): the row of the
    /// variables.
    of_use: u32,
    /// The condition for a stage to have the variables: it must have any position of the set, and
    /// also the further position (`None` if no further position is required).
    part: (PlaceSet, Option<u32>),
    /// If stages restore late ([`Wanted::LateRestores`]), the index of the flow to which the
    /// variables belong: stages that keep this flow for their backward pass are left out. Otherwise
    /// `None`.
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
            stages
                .iter()
                .enumerate()
                .filter(|(_, stage)| meets(places, &stage.positions))
                .map(|(number, _)| number)
                .collect()
        };
        let flows = memory.flows.iter();
        Self {
            memory,
            stages,
            restored_late: memory
                .flows
                .as_ref()
                .filter(|_| wanted == Wanted::LateRestores),
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
    fn each_stage(&self, row: &StageRow, mut visit: impl FnMut(usize)) {
        let (counted, with) = row.part;
        if self.with_overhead && counted == EVERYWHERE {
            visit(self.stages.len());
        }
        for &stage in &self.stages_of[counted.index()] {
            let keeps = |flow| {
                let roles = self.roles[stage].as_ref();
                roles.is_some_and(|roles| roles.by_flow[flow as usize].kept)
            };
            let has = |position| self.stages[stage].positions.contains(&(position as usize));
            if !row.kept_late.is_some_and(keeps) && with.is_none_or(has) {
                visit(stage);
            }
        }
    }
}

/// The highest bytes of one stage on one tile in each phase.
#[derive(Clone, Copy)]
pub(super) struct StagePeak {
    /// One entry per phase (see [`PHASES`]): the highest bytes of the stage, and the first step
    /// with these bytes. Included are the stage's live variables (variables that every stage has
    /// count as overhead) and the bytes that the pipeline adds, but not code and fragmentation.
    pub phases: [(Parts, u32); PHASES],
    /// The bytes of the stage in the weight update; `None` if the update is not a phase of its own.
    pub update: Option<Updating>,
}

/// The buffers of one thread for up to [`LANES`] neighbouring tiles, with one lane for each tile.
#[derive(Default)]
struct StageScratch {
    uses: NeighbourUses<LANES>,
    /// The variables that are not live at every step, and the stages that have them. The variables
    /// of one use (one class and use set) may have several rows, if they are live at different
    /// steps in different stages.
    rows: Vec<StageRow>,
    /// The live ranges of `rows`, as triples: the first step, the end (exclusive), and the index
    /// into `rows`.
    live: Vec<(u32, u32, u32)>,
    changes: LiveChanges,
    /// For each stage: its live bytes at the current step, and its highest live bytes so far in
    /// each phase.
    sums: LiveSums,
    /// One entry per stage: the bytes of the stage's own variables that are live at every step. One
    /// more entry at the end has the bytes of such variables that every stage has.
    always: Vec<[u64; LANES]>,
    flows: TileFlows<LANES>,
    updates: TileUpdates<LANES>,
}

impl StagesToCompute<'_> {
    /// Returns one entry per tile, with one [`StagePeak`] per stage: the peak bytes in each phase.
    pub fn peaks_by_tile(&self) -> Vec<Vec<StagePeak>> {
        let groups: Vec<_> = uses::groups(self.memory.model.target.num_tiles).collect();
        groups
            .into_par_iter()
            .map_init(StageScratch::default, |scratch, tiles| {
                self.peaks_on(tiles, scratch)
            })
            .flatten_iter()
            .collect()
    }

    /// Returns one entry per tile, with one [`StagePeak`] per stage: the peak bytes in each phase.
    /// `tiles` has at most [`LANES`] tiles, which are computed side by side.
    fn peaks_on(&self, tiles: Range<u32>, scratch: &mut StageScratch) -> Vec<Vec<StagePeak>> {
        let memory = self.memory;
        scratch.uses.gather(memory, tiles.clone());
        if let Some(flows) = &memory.flows {
            scratch.flows.load(memory, flows, &scratch.uses);
        }
        if let Some(phase) = &memory.update {
            scratch.updates.load(memory, phase, &scratch.uses);
        }
        self.prepare(scratch);
        self.step_through(scratch);
        let mut peaks = vec![Vec::new(); tiles.len()];
        for stage in 0..self.stages.len() {
            for (peaks, peak) in peaks.iter_mut().zip(self.peaks_of(stage, scratch)) {
                peaks.push(peak);
            }
        }
        peaks
    }

    /// Returns one entry per lane (tile): the peak of the stage with index `stage`.
    fn peaks_of(&self, stage: usize, scratch: &StageScratch) -> [StagePeak; LANES] {
        let (memory, placed) = (self.memory, &self.stages[stage]);
        let additions = memory.flows.as_ref().map(|flows| {
            let of_stage = (placed, self.roles[stage].as_ref());
            flows.additions(memory, of_stage, &scratch.flows)
        });
        let updating = memory.update.as_ref();
        let updating =
            updating.map(|phase| scratch.updates.in_stage(memory, phase, &placed.positions));
        let has_steps = u64::from(!self.windows[stage].is_empty());
        std::array::from_fn(|lane| {
            let updating = updating.map(|updating| updating[lane]);
            let [always, always_common] =
                [stage, self.stages.len()].map(|stage| scratch.always[stage][lane]);
            let in_phase = |phase: usize| {
                let Highest {
                    bytes,
                    common,
                    step,
                } = scratch.sums.highest[stage][phase][lane];
                let parts = Parts {
                    variables: bytes - common + has_steps * always,
                    overhead: common + has_steps * always_common,
                    state: updating.map_or(0, |updating| updating.shares),
                    ..additions.map_or_else(Parts::default, |added| added[lane][phase])
                };
                (parts, step)
            };
            StagePeak {
                phases: std::array::from_fn(in_phase),
                update: updating.map(|updating| Updating {
                    variables: always + updating.variables,
                    overhead: always_common + updating.overhead,
                    ..updating
                }),
            }
        })
    }

    /// Prepares the variables of the tiles whose uses are in `scratch`. Sums up, for each stage,
    /// the bytes of the variables that are live at every step. Lists the steps at which all other
    /// variables begin and cease to be live.
    fn prepare(&self, scratch: &mut StageScratch) {
        let StageScratch {
            uses,
            rows,
            live,
            changes,
            always,
            ..
        } = scratch;
        rows.clear();
        live.clear();
        always.clear();
        always.resize(self.stages.len() + 1, [0; LANES]);
        for (of_use, &(number, bytes)) in (0u32..).zip(&uses.rows) {
            let kept_late = self.restored_late.and_then(|flows| flows.of(number));
            self.memory.each_life(number, |part, ranges| {
                let row = StageRow {
                    of_use,
                    part,
                    kept_late,
                };
                let Some(ranges) = ranges else {
                    let bytes = bytes.map(u64::from);
                    return self.each_stage(&row, |stage| lanes::add(&mut always[stage], &bytes));
                };
                let number = rows.len() as u32;
                rows.push(row);
                live.extend(ranges.iter().map(|&(from, to)| (from, to, number)));
            });
        }
        changes.load(self.memory.model.steps(), live);
    }

    /// Goes through all steps and finds the highest live bytes of each stage in each phase. The
    /// live bytes are compared with the highest so far only where they may be higher: where a
    /// variable begins to be live, and at the first step of a stage or phase.
    fn step_through(&self, scratch: &mut StageScratch) {
        let StageScratch {
            uses,
            rows,
            changes,
            sums,
            ..
        } = scratch;
        let phases = &self.memory.phases;
        let in_phases = |start: u32| phases.each_ref().map(|phase| start.max(phase.start));
        sums.restart(self.windows.iter().map(|window| in_phases(window.start)));
        for (phase, steps) in phases.iter().enumerate() {
            for step in steps.clone() {
                let raise = |sums: &mut LiveSums, stage: usize| {
                    if self.windows[stage].contains(&step) {
                        sums.raise_highest(stage, phase, step);
                    }
                };
                let mut raises_all = step == steps.start || self.starts.contains(&step);
                let [ends, begins] = changes.at(step);
                for &row in ends {
                    let row = &rows[row as usize];
                    let bytes = uses.bytes(row.of_use).map(u64::from);
                    self.each_stage(row, |stage| lanes::subtract(&mut sums.live[stage], &bytes));
                }
                for &row in begins {
                    let row = &rows[row as usize];
                    let bytes = uses.bytes(row.of_use).map(u64::from);
                    self.each_stage(row, |stage| {
                        lanes::add(&mut sums.live[stage], &bytes);
                        if stage == self.stages.len() {
                            raises_all = true;
                        } else {
                            raise(sums, stage);
                        }
                    });
                }
                if raises_all {
                    (0..self.stages.len()).for_each(|stage| raise(sums, stage));
                }
            }
        }
    }
}

/// The live bytes of some stages at the current step, and their highest live bytes so far in each
/// phase, by lane (tile). Each list has one entry per stage, in the order in which the stages were
/// given.
#[derive(Default)]
struct LiveSums {
    /// One entry per stage: its live bytes at the current step, without the variables that every
    /// stage has. One more entry at the end has the live bytes of the variables that every stage
    /// has.
    live: Vec<[u64; LANES]>,
    /// One entry per stage, with one entry per phase and lane (tile): the highest live bytes so far.
    highest: Vec<[[Highest; LANES]; PHASES]>,
}

/// The highest live bytes of a stage on a tile in a phase.
#[derive(Clone, Copy)]
struct Highest {
    /// The live bytes of the stage, including the bytes of variables that every stage has.
    bytes: u64,
    /// The part of `bytes` that belongs to variables which every stage has.
    common: u64,
    /// The first step of the phase at which the live bytes of the stage are `bytes`.
    step: u32,
}

impl LiveSums {
    /// Removes all live bytes. `firsts` has one entry per stage: the first step of the stage in
    /// each phase.
    fn restart(&mut self, firsts: impl Iterator<Item = [u32; PHASES]>) {
        let highest = |step| {
            [Highest {
                bytes: 0,
                common: 0,
                step,
            }; LANES]
        };
        self.highest.clear();
        self.highest
            .extend(firsts.map(|firsts| firsts.map(highest)));
        self.live.clear();
        self.live.resize(self.highest.len() + 1, [0; LANES]);
    }

    /// Updates the highest live bytes of the stage with the index `stage` in `phase`: they
    /// become its live bytes at the current step, `step`, if these are higher. The step is kept
    /// with them.
    #[inline]
    fn raise_highest(&mut self, stage: usize, phase: usize, step: u32) {
        let common = self.live[self.highest.len()];
        let all = lanes::plus(&self.live[stage], &common);
        let highest = &mut self.highest[stage][phase];
        for (highest, (bytes, common)) in highest.iter_mut().zip(all.into_iter().zip(common)) {
            if bytes > highest.bytes {
                *highest = Highest {
                    bytes,
                    common,
                    step,
                };
            }
        }
    }
}

/// For each step, the *rows* that begin to be live or cease to be live at the step, as numbers. The
/// user of this type defines what a row is. The same buffers are used for one group of tiles after
/// the other.
#[derive(Default)]
struct LiveChanges {
    /// The starts of lists in `rows`, as indices into it. Each step has two lists: the rows that
    /// cease to be live before the step, then the rows that begin to be live at the step. Two more
    /// entries at the end are the end of the last list.
    starts: Vec<u32>,
    /// The indices of the rows of the first list, then of the second, and so on.
    rows: Vec<u32>,
}

impl LiveChanges {
    /// Replaces the lists by those for `live`, which has the half-open live ranges of rows as
    /// triples: the first step, the end and the number of the row. `steps` is the number of steps;
    /// no end may exceed it.
    fn load(&mut self, steps: u32, live: &[(u32, u32, u32)]) {
        self.starts.clear();
        self.starts.resize(2 * (steps as usize + 1) + 2, 0);
        let changes = || {
            live.iter()
                .flat_map(|&(from, to, row)| [(2 * from as usize + 1, row), (2 * to as usize, row)])
        };
        for (place, _) in changes() {
            self.starts[place + 2] += 1;
        }
        let mut end = 0;
        for start in &mut self.starts {
            end += *start;
            *start = end;
        }
        self.rows.resize(end as usize, 0);
        for (place, row) in changes() {
            // Each list is filled from its start, which then is the start of the next list.
            let next = &mut self.starts[place + 1];
            self.rows[*next as usize] = row;
            *next += 1;
        }
    }

    /// Returns the numbers of the rows that are live at the step before `step` but not at `step`,
    /// and of the rows that are live at `step` but not at the step before it.
    fn at(&self, step: u32) -> [&[u32]; 2] {
        [0, 1].map(|kind| {
            let list = 2 * step as usize + kind;
            &self.rows[self.starts[list] as usize..self.starts[list + 1] as usize]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_comes_before_what_begins() {
        let mut changes = LiveChanges::default();
        changes.load(4, &[(0, 2, 0), (3, 4, 0), (2, 4, 2)]);
        let ends: Vec<_> = (0..=4).map(|step| changes.at(step)[0]).collect();
        let begins: Vec<_> = (0..=4).map(|step| changes.at(step)[1]).collect();
        assert_eq!(ends, [&[][..], &[], &[0], &[], &[0, 2]]);
        assert_eq!(begins, [&[0][..], &[], &[2], &[0], &[]]);
    }
}
