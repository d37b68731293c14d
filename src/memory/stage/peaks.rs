//! The highest bytes of live variables of each stage on each tile, computed step by step for all
//! stages and a few neighbouring tiles at a time.

use super::live_sums::{LiveChanges, LiveSums};
use super::stages_to_compute::{StageRow, StagesToCompute, Wanted};
use crate::memory::Parts;
use crate::memory::lanes::{self, Bytes, LANES};
use crate::memory::pipeline::{PHASES, TileFlows};
use crate::memory::update::{TileUpdates, Updating};
use crate::memory::uses::{self, NeighbourUses};
use rayon::prelude::*;
use std::ops::Range;

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

/// The buffers of one thread: one for neighbouring tiles side by side, with sums of 32 bits, and
/// one for a single tile whose sums need 64 bits.
type StageScratches = (StageScratch<i32, LANES>, StageScratch<u64, 1>);

/// Buffers for up to `N` neighbouring tiles, with one lane for each tile. Sums of live bytes have
/// the type `B`.
#[derive(Default)]
pub(super) struct StageScratch<B, const N: usize> {
    uses: NeighbourUses<N>,
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
    sums: LiveSums<B, N>,
    /// One entry per stage: the bytes of the stage's own variables that are live at every step. One
    /// more entry at the end has the bytes of such variables that every stage has.
    always: Vec<[u64; N]>,
    flows: TileFlows<N>,
    updates: TileUpdates<N>,
}

impl StagesToCompute<'_> {
    /// Returns one entry per tile, with one [`StagePeak`] per stage: the peak bytes in each phase.
    pub fn peaks_by_tile(&self) -> Vec<Vec<StagePeak>> {
        let groups: Vec<_> = uses::groups(self.memory.model.target.num_tiles).collect();
        groups
            .into_par_iter()
            .map_init(StageScratches::default, |(side_by_side, wide), tiles| {
                self.peaks_on(tiles.clone(), side_by_side)
                    .unwrap_or_else(|| {
                        tiles
                            .filter_map(|tile| self.peaks_on(tile..tile + 1, wide))
                            .flatten()
                            .collect()
                    })
            })
            .flatten_iter()
            .collect()
    }

    /// Returns one entry per tile, with one [`StagePeak`] per stage: the peak bytes in each phase.
    /// `tiles` has at most `N` tiles, which are computed side by side. Returns `None` if sums of
    /// type `B` may overflow.
    fn peaks_on<B: Bytes, const N: usize>(
        &self,
        tiles: Range<u32>,
        scratch: &mut StageScratch<B, N>,
    ) -> Option<Vec<Vec<StagePeak>>> {
        let memory = self.memory;
        scratch.uses.gather(memory, tiles.clone());
        if scratch.uses.most() > B::HIGHEST {
            return None;
        }
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
        Some(peaks)
    }

    /// Returns one entry per lane (tile): the peak of the stage with index `stage`.
    fn peaks_of<B: Bytes, const N: usize>(
        &self,
        stage: usize,
        scratch: &StageScratch<B, N>,
    ) -> [StagePeak; N] {
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
                let highest = &scratch.sums.highest[stage][phase];
                let common = highest.common[lane].sum();
                let parts = Parts {
                    variables: highest.bytes[lane].sum() - common + has_steps * always,
                    overhead: common + has_steps * always_common,
                    state: updating.map_or(0, |updating| updating.shares),
                    ..additions.map_or_else(Parts::default, |added| added[lane][phase])
                };
                (parts, highest.step[lane])
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
    fn prepare<B: Bytes, const N: usize>(&self, scratch: &mut StageScratch<B, N>) {
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
        always.resize(self.stages.len() + 1, [0; N]);
        let flows = self.memory.flows.as_ref();
        let flows = flows.filter(|_| self.wanted == Wanted::LateRestores);
        for (of_use, &(number, bytes)) in (0u32..).zip(&uses.rows) {
            let kept_late = flows.and_then(|flows| flows.of(number));
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
    fn step_through<B: Bytes, const N: usize>(&self, scratch: &mut StageScratch<B, N>) {
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
            sums.phase = phase;
            for step in steps.clone() {
                let raise = |sums: &mut LiveSums<B, N>, stage: usize| {
                    if self.windows[stage].contains(&step) {
                        sums.raise_highest(stage, step);
                    }
                };
                let mut raises_all = step == steps.start || self.starts.contains(&step);
                for &row in changes.ends(step) {
                    let row = &rows[row as usize];
                    let bytes = uses.bytes(row.of_use).map(B::change);
                    self.each_stage(row, |stage| lanes::subtract(&mut sums.live[stage], &bytes));
                }
                for &row in changes.begins(step) {
                    let row = &rows[row as usize];
                    let bytes = uses.bytes(row.of_use).map(B::change);
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
