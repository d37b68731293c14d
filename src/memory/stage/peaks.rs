//! The highest bytes of live variables of each stage on each tile, computed step by step for
//! neighbouring tiles side by side and for all stages side_by_side.

use super::stages_to_compute::{StageRow, StagesToCompute};
use crate::memory::lanes::{self, LANES};
use crate::memory::pipeline::{PHASES, TileFlows};
use crate::memory::update::{TileUpdates, Updating};
use crate::memory::uses::{self, NeighbourUses};
use crate::memory::{MemoryModel, Parts};
use rayon::prelude::*;
use std::ops::Range;

/// The highest bytes of one stage on one tile in each phase.
#[derive(Clone, Copy, Default)]
pub(super) struct StagePeak {
    /// For each phase (see [`PHASES`]): the highest bytes of the stage's live variables (those that
    /// every stage has are overhead) and the bytes that the pipeline adds, without code and
    /// fragmentation; and the first step that has them.
    pub phases: [(Parts, u32); PHASES],
    /// The bytes of the stage in the weight update, if that is a phase of its own.
    pub update: Option<Updating>,
}

/// Bytes by lane (tile).
type ByTile = [u64; LANES];

/// The buffers of one thread for up to [`LANES`] neighbouring tiles.
#[derive(Default)]
struct StageScratch {
    uses: NeighbourUses<LANES>,
    /// How stages count the variables that are not live at every step. The variables of one use may
    /// have several rows, if they are live at different steps in different stages.
    rows: Vec<StageRow>,
    /// The steps at which `rows` begin or cease to be live, in ascending order: triples of a step,
    /// whether the row begins there, and the index of the row. So what ends comes before what
    /// begins.
    changes: Vec<(u32, bool, u32)>,
    sums: LiveSums,
    /// For each stage: the bytes of its variables that are live at every step, without those that
    /// every stage has.
    always: Vec<ByTile>,
    /// The bytes of the variables that are live at every step and that every stage has.
    always_common: ByTile,
    flows: TileFlows<LANES>,
    updates: TileUpdates<LANES>,
}

/// The live bytes of some stages at the current step, and the highest so far in each phase. Stages
/// are numbered in the order in which they are computed.
#[derive(Default)]
struct LiveSums {
    /// For each stage: its live bytes at the current step, without variables that every stage has.
    live: Vec<ByTile>,
    /// The live bytes, at the current step, of the variables that every stage has.
    common: ByTile,
    /// The number of the current phase (see [`PHASES`]).
    phase: usize,
    /// For each stage and phase: the highest live bytes of the steps so far.
    highest: Vec<[Highest; PHASES]>,
}

/// The highest live bytes of a stage in a phase.
#[derive(Clone, Copy, Default)]
struct Highest {
    /// The live bytes of the stage, including those of variables that every stage has.
    bytes: ByTile,
    /// The part of `bytes` that belongs to variables which every stage has.
    common: ByTile,
    /// The first step of the phase at which the stage has `bytes` live bytes, by lane.
    step: [u32; LANES],
}

impl LiveSums {
    /// Starts in the first phase without live bytes. `firsts` has the first step of each stage.
    fn restart(&mut self, firsts: impl Iterator<Item = u32>) {
        self.highest.clear();
        self.highest.extend(firsts.map(|first| {
            [Highest {
                step: [first; LANES],
                ..Highest::default()
            }; PHASES]
        }));
        self.live.clear();
        self.live.resize(self.highest.len(), ByTile::default());
        (self.common, self.phase) = Default::default();
    }

    /// Returns the live bytes, at the current step, of the stage with the number `stage` (without
    /// the variables that every stage has); for `None`, those of the variables that every stage
    /// has. The caller changes them.
    #[inline]
    fn of(&mut self, stage: Option<usize>) -> &mut ByTile {
        stage.map_or(&mut self.common, |stage| &mut self.live[stage])
    }

    /// Compares the live bytes of a stage at `step`, the current one, with the highest so far in
    /// the phase, and keeps the higher ones with their step. `stage` is the number of the stage.
    #[inline]
    fn raise_highest(&mut self, stage: usize, step: u32) {
        let highest = &mut self.highest[stage][self.phase];
        let all = lanes::plus(&self.live[stage], &self.common);
        for (lane, &bytes) in all.iter().enumerate() {
            if bytes > highest.bytes[lane] {
                highest.bytes[lane] = bytes;
                highest.common[lane] = self.common[lane];
                highest.step[lane] = step;
            }
        }
    }

    /// Begins the next phase, whose first step is `step`.
    fn begin_phase(&mut self, step: u32) {
        self.phase += 1;
        for highest in &mut self.highest {
            highest[self.phase].step = [step; LANES];
        }
    }
}

impl MemoryModel<'_> {
    /// Computes for each tile, and then for each stage of `plan`, the highest bytes in each phase.
    pub(super) fn peaks_by_tile(&self, plan: &StagesToCompute<'_>) -> Vec<Vec<StagePeak>> {
        let groups: Vec<_> = uses::groups(self.model.target.num_tiles).collect();
        groups
            .into_par_iter()
            .map_init(StageScratch::default, |scratch, tiles| {
                self.peaks_on(tiles, plan, scratch)
            })
            .flatten_iter()
            .collect()
    }

    /// Computes for each of `tiles`, at most [`LANES`] side by side, and then for each stage of
    /// `plan`, the highest bytes in each phase.
    fn peaks_on(
        &self,
        tiles: Range<u32>,
        plan: &StagesToCompute<'_>,
        scratch: &mut StageScratch,
    ) -> Vec<Vec<StagePeak>> {
        scratch.uses.gather(self, tiles.clone());
        if let Some((flows, _)) = &plan.flows {
            scratch.flows.load(self, flows, &scratch.uses);
        }
        if let Some(phase) = plan.update {
            scratch.updates.load(self, phase, &scratch.uses);
        }
        self.prepare(plan, scratch);
        scratch.step_through(plan);
        let mut peaks = vec![vec![StagePeak::default(); plan.stages.len()]; tiles.len()];
        for stage in 0..plan.stages.len() {
            self.take_peaks(stage, plan, scratch, &mut peaks);
        }
        peaks
    }

    /// Writes the peaks of the stage with the number `stage` into `peaks`, which has for each lane
    /// (tile) the peaks of all stages.
    fn take_peaks(
        &self,
        stage: usize,
        plan: &StagesToCompute<'_>,
        scratch: &StageScratch,
        peaks: &mut [Vec<StagePeak>],
    ) {
        let placed = &plan.stages[stage];
        let additions = plan.flows.as_ref().map(|(flows, of_stages)| {
            let of_stage = (placed, of_stages[stage].as_ref());
            flows.additions(self, of_stage, &scratch.flows)
        });
        let updating = |phase| scratch.updates.in_stage(self, phase, &placed.positions);
        let updating = plan.update.map(updating);
        for (lane, peaks) in peaks.iter_mut().enumerate() {
            let peak = &mut peaks[stage];
            let additions = additions.map_or_else(Default::default, |of_lanes| of_lanes[lane]);
            peak.phases = additions.map(|added| (added, 0));
            if plan.has_steps(stage) {
                for (phase, peak) in peak.phases.iter_mut().enumerate() {
                    scratch.take_phase((stage, phase, lane), peak);
                }
            }
            if let Some(updating) = updating.map(|updating| updating[lane]) {
                for (parts, _) in &mut peak.phases {
                    parts.state = updating.shares;
                }
                peak.update = Some(Updating {
                    variables: scratch.always[stage][lane] + updating.variables,
                    overhead: scratch.always_common[lane] + updating.overhead,
                    ..updating
                });
            }
        }
    }

    /// Prepares the variables of the tiles whose uses are in `scratch`: adds up those that are live
    /// at every step for each stage of `plan`, and lists the steps at which all others begin and
    /// cease to be live.
    fn prepare(&self, plan: &StagesToCompute<'_>, scratch: &mut StageScratch) {
        let StageScratch {
            uses,
            rows,
            changes,
            always,
            always_common,
            ..
        } = scratch;
        rows.clear();
        changes.clear();
        always.clear();
        always.resize(plan.stages.len(), ByTile::default());
        *always_common = ByTile::default();
        for (of_use, &(number, bytes)) in (0u32..).zip(&uses.rows) {
            plan.each_row(self, (of_use, number), |row, ranges| {
                let Some(ranges) = ranges else {
                    let bytes = bytes.map(u64::from);
                    return plan.each_stage(&row, |stage| match stage {
                        None => lanes::add(always_common, &bytes),
                        Some(stage) => lanes::add(&mut always[stage], &bytes),
                    });
                };
                let number = rows.len() as u32;
                rows.push(row);
                let ends = |&(from, to): &(u32, u32)| [(from, true, number), (to, false, number)];
                changes.extend(ranges.iter().flat_map(ends));
            });
        }
        changes.sort_unstable();
    }
}

impl StageScratch {
    /// Goes through all steps and finds the highest live bytes of each stage of `plan` in each
    /// phase. Sums are only compared where they can be highest: where a variable begins to be live,
    /// and at the first step of a stage or phase.
    fn step_through(&mut self, plan: &StagesToCompute<'_>) {
        let Self {
            uses,
            rows,
            changes,
            sums,
            ..
        } = self;
        sums.restart(plan.windows.iter().map(|window| window.start));
        let mut phases = plan.phases.iter().skip(1).peekable();
        let mut changes = changes.iter().peekable();
        for step in 0..plan.steps {
            let mut raises_all = plan.starts.contains(&step);
            while phases.next_if(|next| next.start == step).is_some() {
                sums.begin_phase(step);
                raises_all = true;
            }
            while let Some(&(.., row)) = changes.next_if(|next| (next.0, next.1) == (step, false)) {
                let row = &rows[row as usize];
                let bytes = uses.bytes(row.of_use).map(u64::from);
                plan.each_stage(row, |stage| lanes::subtract(sums.of(stage), &bytes));
            }
            while let Some(&(.., row)) = changes.next_if(|next| next.0 == step) {
                let row = &rows[row as usize];
                let bytes = uses.bytes(row.of_use).map(u64::from);
                plan.each_stage(row, |stage| {
                    lanes::add(sums.of(stage), &bytes);
                    match stage {
                        None => raises_all = true,
                        Some(stage) if plan.is_examined(stage, step) => {
                            sums.raise_highest(stage, step)
                        }
                        Some(_) => {}
                    }
                });
            }
            if raises_all {
                (0..plan.stages.len())
                    .filter(|&sum| plan.is_examined(sum, step))
                    .for_each(|sum| sums.raise_highest(sum, step));
            }
        }
    }

    /// Writes the highest live bytes of the stage with the number `stage` in the phase with the
    /// number `phase`, on the tile in `lane`, and their step into `parts` and `step`.
    fn take_phase(
        &self,
        (stage, phase, lane): (usize, usize, usize),
        (parts, step): &mut (Parts, u32),
    ) {
        let highest = &self.sums.highest[stage][phase];
        let common = highest.common[lane];
        parts.variables = highest.bytes[lane] - common + self.always[stage][lane];
        parts.overhead = common + self.always_common[lane];
        *step = highest.step[lane];
    }
}
