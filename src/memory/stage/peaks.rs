//! The highest bytes of live variables of each stage on each tile, computed step by step for all
//! stages and a few neighbouring tiles at a time.

use super::live_sums::{LiveChanges, LiveSums};
use super::stages_to_compute::{StageRow, StagesToCompute};
use crate::memory::lanes::{self, ByLane, Bytes, LANES};
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

/// The buffers of one thread: for neighbouring tiles side by side with sums of 32 bits, and for a
/// single tile whose sums need 64 bits.
type StageScratches = (StageScratch<i32, LANES>, StageScratch<u64, 1>);

/// Buffers for up to `N` neighbouring tiles, with bytes by lane (tile) and live sums of type `B`.
#[derive(Default)]
pub(super) struct StageScratch<B, const N: usize> {
    uses: NeighbourUses<N>,
    /// How stages count the variables that are not live at every step. The variables of one use may
    /// have several rows, if they are live at different steps in different stages.
    rows: Vec<StageRow>,
    /// Live ranges of `rows`: triples of the first step, the end (exclusive) and the index of the
    /// row.
    live: Vec<(u32, u32, u32)>,
    changes: LiveChanges,
    /// For each stage: its live bytes at the current step, and the highest so far.
    sums: LiveSums<B, N>,
    /// For each stage: the bytes of its variables that are live at every step, without those that
    /// every stage has.
    always: Vec<[u64; N]>,
    /// The bytes of the variables that are live at every step and that every stage has.
    always_common: ByLane<u64, N>,
    flows: TileFlows<N>,
    updates: TileUpdates<N>,
}

impl MemoryModel<'_> {
    /// Computes for each tile, and then for each stage of `plan`, the highest bytes in each phase.
    pub(super) fn peaks_by_tile(&self, plan: &StagesToCompute<'_>) -> Vec<Vec<StagePeak>> {
        let groups: Vec<_> = uses::groups(self.model.target.num_tiles).collect();
        groups
            .into_par_iter()
            .map_init(StageScratches::default, |(side_by_side, wide), tiles| {
                self.peaks_on(tiles.clone(), plan, side_by_side)
                    .unwrap_or_else(|| {
                        tiles
                            .filter_map(|tile| self.peaks_on(tile..tile + 1, plan, wide))
                            .flatten()
                            .collect()
                    })
            })
            .flatten_iter()
            .collect()
    }

    /// Computes for each of `tiles`, at most `N` side by side, and then for each stage of `plan`, the
    /// highest bytes in each phase. `None` if sums of type `B` may overflow.
    fn peaks_on<B: Bytes, const N: usize>(
        &self,
        tiles: Range<u32>,
        plan: &StagesToCompute<'_>,
        scratch: &mut StageScratch<B, N>,
    ) -> Option<Vec<Vec<StagePeak>>> {
        scratch.uses.gather(self, tiles.clone());
        if scratch.uses.most() > B::HIGHEST {
            return None;
        }
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
        Some(peaks)
    }

    /// Writes the peaks of the stage with the number `stage` into `peaks`, which has for each lane
    /// (tile) the peaks of all stages.
    fn take_peaks<B: Bytes, const N: usize>(
        &self,
        stage: usize,
        plan: &StagesToCompute<'_>,
        scratch: &StageScratch<B, N>,
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
    fn prepare<B: Bytes, const N: usize>(
        &self,
        plan: &StagesToCompute<'_>,
        scratch: &mut StageScratch<B, N>,
    ) {
        let StageScratch {
            uses,
            rows,
            live,
            changes,
            always,
            always_common,
            ..
        } = scratch;
        rows.clear();
        live.clear();
        always.clear();
        always.resize(plan.stages.len(), [0; N]);
        *always_common = ByLane::default();
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
                live.extend(ranges.iter().map(|&(from, to)| (from, to, number)));
            });
        }
        changes.load(plan.steps, live);
    }
}

impl<B: Bytes, const N: usize> StageScratch<B, N> {
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
        for step in 0..plan.steps {
            let mut raises_all = plan.starts.contains(&step);
            while phases.next_if(|next| next.start == step).is_some() {
                sums.begin_phase(step);
                raises_all = true;
            }
            for &row in changes.ends(step) {
                let row = &rows[row as usize];
                let bytes = uses.bytes(row.of_use).map(B::change);
                plan.each_stage(row, |stage| lanes::subtract(sums.of(stage), &bytes));
            }
            for &row in changes.begins(step) {
                let row = &rows[row as usize];
                let bytes = uses.bytes(row.of_use).map(B::change);
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
        let common = highest.common[lane].sum();
        parts.variables = highest.bytes[lane].sum() - common + self.always[stage][lane];
        parts.overhead = common + self.always_common[lane];
        *step = highest.step[lane];
    }
}
