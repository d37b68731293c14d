//! The highest bytes of live variables of each stage on each tile, computed step by step for all
//! stages and a few neighbouring tiles at a time.

use crate::{
    memory::lanes::{self, LANES},
    memory::pipeline::{Flows, PHASES, PlacedStage, StageRoles, TileFlows},
    memory::update::{TileUpdates, Updating},
    memory::uses::{self, NeighbourUses},
    memory::{MemoryModel, Parts},
    model::{EVERYWHERE, PlaceSet, ascending, meets},
};
use rayon::prelude::*;
use std::ops::Range;

/// Selects which bytes of pipeline stages are computed, such as all bytes or only those of single
/// layers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// All bytes that the stages take in a split, including overhead and the bytes that a pipeline
    /// adds.
    All,
    /// Only the bytes of the variables and the code that the stages' own layers use, without
    /// overhead (bytes that every stage needs).
    Layers,
    /// All bytes that the stages take in a split if they restore stashed tensors as late as
    /// possible. Tensors that a stage keeps for its backward pass are then only in its stash until
    /// it needs them, so its live bytes do not include them.
    LateRestores,
}

/// Pipeline stages whose memory is computed together, in one pass over the variables.
pub struct StagesToCompute<'a> {
    pub memory: &'a MemoryModel<'a>,
    pub stages: &'a [PlacedStage],
    /// The flows of the model (groups of tensors that the same layers use), which determine what
    /// each stage stashes. Only set if stages restore stashed tensors as late as possible
    /// ([`Wanted::LateRestores`]).
    restored_late: Option<&'a Flows>,
    /// One entry per set of positions (In, layers, Out): the stages that have any of these
    /// positions, as indices into `stages`. The entry of [`EVERYWHERE`] is empty: bytes that every
    /// stage has are summed separately, once for all stages.
    stages_of: Vec<Vec<usize>>,
    /// One entry per stage: the half-open range of liveness steps in which its highest live bytes
    /// are searched for; `0..0` if the stage has no steps.
    pub windows: Vec<Range<u32>>,
    /// The first liveness steps of the stages (0 for a stage without steps), ascending and without
    /// duplicates. A stage may have its peak at its first step, although no variable begins to be
    /// live there.
    starts: Box<[u32]>,
    pub with_overhead: bool,
    /// One entry per stage: whether it stashes, receives or sends the tensors of each flow (tensors
    /// that the same layers use). `None` for a stage with an unknown number of stages after it: its
    /// computed bytes leave out the tensors of flows, and so are a lower bound. The list is empty
    /// without a pipeline.
    roles: Vec<Option<StageRoles>>,
}

/// Variables that are live at the same steps and used by the same operations, and the stages in
/// which they are live.
struct StageRow {
    of_use: u32,
    /// Selects the stages in which the variables are live: those that contain at least one position
    /// (In, a layer or Out) of the [`PlaceSet`]. If the `Option` has a position, the stage must
    /// also contain that position.
    part: (PlaceSet, Option<u32>),
    /// If stages restore stashed tensors as late as possible: the index of the variables' flow
    /// (tensors that the same layers use). In a stage that keeps this flow for its backward pass,
    /// the variables are then only in the stash, so they do not count as live. `None` if no stage
    /// leaves the variables out for this reason.
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
        let stages_of = |places: &[u32]| {
            stages
                .iter()
                .enumerate()
                .filter(|(_, stage)| meets(places, &stage.positions))
                .map(|(number, _)| number)
                .collect()
        };
        Self {
            memory,
            stages,
            restored_late: memory
                .flows
                .as_ref()
                .filter(|_| wanted == Wanted::LateRestores),
            stages_of: memory.sets.iter().map(stages_of).collect(),
            starts: ascending(windows.iter().map(|window| window.start)),
            windows,
            roles: memory
                .flows
                .iter()
                .flat_map(|flows| {
                    stages.iter().map(|PlacedStage { positions, after }| {
                        after.map(|_| flows.stage_roles(flows.places_of(positions)))
                    })
                })
                .collect(),
            with_overhead: wanted != Wanted::Layers,
        }
    }

    /// Calls `visit` with the index of each stage in which the variables of `row` are live.
    /// Variables that every stage has are overhead: for them, `visit` is called once, with the
    /// number of stages instead of an index, or not at all if overhead is left out.
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

/// The highest bytes of one pipeline stage on one tile, in each phase such as the backward pass.
pub struct StagePeak {
    /// One entry per phase, such as the backward pass (see [`PHASES`]): the highest bytes of the
    /// stage, and the first liveness step with these bytes. They are the bytes of live variables
    /// and the bytes that the pipeline adds, without code and fragmentation. Live variables that
    /// every stage has are in [`Parts::overhead`], all others in [`Parts::variables`].
    pub phases: [(Parts, u32); PHASES],
    /// The bytes of the stage in the weight update; `None` if all optimizer state stays on the
    /// chip, so that the update has no peak of its own.
    pub update: Option<Updating>,
}

/// The buffers of one thread, in which the peaks of stages on up to [`LANES`] neighbouring tiles
/// are computed, one lane for each tile.
#[derive(Default)]
struct StageScratch {
    uses: NeighbourUses<LANES>,
    /// The variables that are not live at every step, each with the stages in which it is live. A
    /// variable that is live at different steps in different stages has several entries.
    rows: Vec<StageRow>,
    /// The live ranges of variables on neighbouring tiles, as triples: the first liveness step, the
    /// end (exclusive), and the index of the variables in the field `rows`.
    live: Vec<(u32, u32, u32)>,
    changes: LiveChanges,
    sums: LiveSums,
    /// One entry per stage: the bytes of the always-live variables of the stage's own layers. One
    /// more entry at the end has the bytes of always-live variables that every stage has.
    always: Vec<[u64; LANES]>,
    flows: TileFlows<LANES>,
    updates: TileUpdates<LANES>,
}

impl StagesToCompute<'_> {
    /// Returns one list per tile, with one entry per stage: the highest bytes of the stage on the
    /// tile in each phase, such as the backward pass.
    pub fn peaks_by_tile(&self) -> Vec<Vec<StagePeak>> {
        uses::groups(self.memory.tiles())
            .collect::<Vec<_>>()
            .into_par_iter()
            .map_init(StageScratch::default, |scratch, tiles| {
                self.peaks_on(tiles, scratch)
            })
            .flatten_iter()
            .collect()
    }

    /// Returns one list per tile of `tiles`, with one entry per stage: the highest bytes of the
    /// stage on the tile in each phase, such as the backward pass. `tiles` has at most [`LANES`]
    /// tiles, which are computed side by side.
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
        let mut peaks: Vec<_> = tiles
            .map(|_| Vec::with_capacity(self.stages.len()))
            .collect();
        for stage in 0..self.stages.len() {
            for (peaks, peak) in peaks.iter_mut().zip(self.peaks_of(stage, scratch)) {
                peaks.push(peak);
            }
        }
        peaks
    }

    fn peaks_of(&self, stage: usize, scratch: &StageScratch) -> [StagePeak; LANES] {
        let (memory, placed) = (self.memory, &self.stages[stage]);
        let additions = memory.flows.as_ref().map(|flows| {
            flows.additions(memory, (placed, self.roles[stage].as_ref()), &scratch.flows)
        });
        let updating = memory
            .update
            .as_ref()
            .map(|phase| scratch.updates.in_stage(memory, phase, &placed.positions));
        let has_steps = u64::from(!self.windows[stage].is_empty());
        std::array::from_fn(|lane| {
            let updating = updating.map(|updating| updating[lane]);
            let [always, always_common] =
                [stage, self.stages.len()].map(|stage| scratch.always[stage][lane]);
            let in_phase = |phase: usize| {
                let highest = &scratch.sums.highest[stage][phase];
                let common = highest.common[lane];
                let parts = Parts {
                    variables: highest.bytes[lane] - common + has_steps * always,
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

    /// Sums up, for each stage, the bytes of the variables that are live at every step, and lists
    /// the liveness steps at which all other variables begin and cease to be live.
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

    /// Goes through all liveness steps and finds the highest live bytes of each stage in each
    /// phase. The live bytes are compared with the highest so far only where they may be higher:
    /// where a variable begins to be live, and at the first step of a stage or phase.
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
                let mut raises_all =
                    step == steps.start || self.starts.binary_search(&step).is_ok();
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

/// The live bytes of each stage at the current liveness step, and its highest live bytes in each
/// phase (such as the backward pass) up to this step. All are by lane (tile).
#[derive(Default)]
struct LiveSums {
    /// One entry per stage: its live bytes at the current liveness step. Variables that every stage
    /// has are summed only once, in one more entry at the end.
    live: Vec<[u64; LANES]>,
    highest: Vec<[Highest; PHASES]>,
}

/// The highest live bytes of a stage in a phase, such as the backward pass, by lane (tile).
struct Highest {
    bytes: [u64; LANES],
    /// The part of the highest live bytes that belongs to variables which every stage has. It is
    /// reported as overhead.
    common: [u64; LANES],
    /// The first liveness step in the phase at which the stage has its highest live bytes.
    step: [u32; LANES],
}

impl LiveSums {
    fn restart(&mut self, firsts: impl Iterator<Item = [u32; PHASES]>) {
        let highest = |first| Highest {
            bytes: [0; LANES],
            common: [0; LANES],
            step: [first; LANES],
        };
        self.highest.clear();
        self.highest
            .extend(firsts.map(|firsts| firsts.map(highest)));
        self.live.clear();
        self.live.resize(self.highest.len() + 1, [0; LANES]);
    }

    /// Raises the highest live bytes of a stage in `phase` to its live bytes at the current step,
    /// `step`, if these are higher, and keeps the step with them.
    #[inline]
    fn raise_highest(&mut self, stage: usize, phase: usize, step: u32) {
        let common = self.live[self.highest.len()];
        let all = lanes::plus(&self.live[stage], &common);
        let highest = &mut self.highest[stage][phase];
        for (lane, bytes) in all.into_iter().enumerate() {
            if bytes > highest.bytes[lane] {
                highest.bytes[lane] = bytes;
                highest.common[lane] = common[lane];
                highest.step[lane] = step;
            }
        }
    }
}

/// For each liveness step, the variables that begin or cease to be live at the step, as indices
/// into [`StageScratch::rows`]. The buffers are reused for further tiles.
#[derive(Default)]
struct LiveChanges {
    /// The index in the field `rows` at which each list of variables starts; a list ends where the
    /// next one starts. Liveness step n has two lists:
    /// - list 2n: the variables that are live until just before step n
    /// - list 2n + 1: the variables that begin to be live at step n
    starts: Vec<u32>,
    /// The variables that cease or begin to be live, as indices into [`StageScratch::rows`], in the
    /// order of steps. For each step, the variables that cease to be live come first.
    rows: Vec<u32>,
}

impl LiveChanges {
    /// Lists the variables that begin or cease to be live at each step. `live` has the half-open
    /// live ranges of variables as triples: the first step, the end, and the index of the variables
    /// in [`StageScratch::rows`]. No end may exceed `steps`, the number of steps.
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
            // The lists of variables are filled one variable at a time: `starts[place + 1]` is
            // where the next variable of the list with the index `place` goes in `rows`. Once the
            // list is full, it is where the next list starts.
            let next = &mut self.starts[place + 1];
            self.rows[*next as usize] = row;
            *next += 1;
        }
    }

    /// Returns the variables that cease to be live before `step`, and those that begin to be live
    /// at `step`, as indices into [`StageScratch::rows`].
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
