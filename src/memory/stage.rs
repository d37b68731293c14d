//! The memory of given stages, in full (analysis.md, section 7).

use super::liveness::Timeline;
use super::{MemoryModel, Rules};
use crate::model::{EVERYWHERE, VariableGroup};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Bytes by what they hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Parts {
    /// Live variables at the step where they are most.
    pub variables: u64,
    /// Code of vertex types.
    pub vertex_code: u64,
    /// State of vertex instances.
    pub vertex_state: u64,
    /// Code of internal exchanges.
    pub exchange_code: u64,
    /// Control code.
    pub control_code: u64,
    /// What every stage needs, code and variables at the same step; 0 by the
    /// classic rules.
    pub overhead: u64,
    /// Gaps between variables: the stage's part of what the compiler recorded
    /// beyond all variables; 0 by the classic rules.
    pub gaps: u64,
}

impl Parts {
    /// What the parts are called, in the order of [`Parts::bytes`].
    pub const NAMES: [&'static str; 7] = [
        "variables",
        "vertex code",
        "vertex state",
        "exchange code",
        "control code",
        "overhead",
        "gaps",
    ];

    /// The bytes of each part.
    pub fn bytes(&self) -> [u64; 7] {
        [
            self.variables,
            self.vertex_code,
            self.vertex_state,
            self.exchange_code,
            self.control_code,
            self.overhead,
            self.gaps,
        ]
    }

    /// All parts together.
    pub fn total(&self) -> u64 {
        self.bytes().iter().sum()
    }

    /// Bytes by [`CodeKind`](crate::model::CodeKind), without variables.
    fn of_code([vertex_code, vertex_state, exchange_code, control_code]: [u64; 4]) -> Self {
        Self {
            vertex_code,
            vertex_state,
            exchange_code,
            control_code,
            ..Self::default()
        }
    }

    fn add(&mut self, other: &Parts) {
        self.variables += other.variables;
        self.vertex_code += other.vertex_code;
        self.vertex_state += other.vertex_state;
        self.exchange_code += other.exchange_code;
        self.control_code += other.control_code;
        self.overhead += other.overhead;
        self.gaps += other.gaps;
    }
}

/// The memory of one stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageMemory {
    /// By tile: its bytes. Variables are those of the tile's own peak step.
    pub tiles: Vec<Parts>,
    /// By tile: the first step at which its variables are most; `None` when
    /// the stage has no steps.
    pub peak_steps: Vec<Option<u32>>,
}

impl StageMemory {
    /// The fullest tile; the first of several.
    pub fn max_tile(&self) -> usize {
        let fullest = self.tiles.iter().enumerate().rev();
        fullest
            .max_by_key(|(_, parts)| parts.total())
            .map_or(0, |(tile, _)| tile)
    }

    /// Bytes on the fullest tile.
    pub fn max_tile_bytes(&self) -> u64 {
        self.tiles.get(self.max_tile()).map_or(0, Parts::total)
    }

    /// Sums over all tiles.
    pub fn sums(&self) -> Parts {
        let mut sums = Parts::default();
        for parts in &self.tiles {
            sums.add(parts);
        }
        sums
    }
}

/// How many stages times steps or tiles are weighed at once, which bounds the
/// memory of each thread; large models have some 10^6.
const MAX_CELLS: usize = 1 << 23;

impl MemoryModel<'_> {
    /// The memory of each of `stages`, ranges of layer positions (end
    /// exclusive), which need not be apart.
    pub fn stages(&self, stages: &[Range<usize>]) -> Vec<StageMemory> {
        self.weigh(stages, true)
    }

    /// The memory of each single layer, without the overhead that comes with
    /// every stage.
    pub fn single_layers(&self) -> Vec<StageMemory> {
        let layers: Vec<_> = (0..self.layers()).map(|layer| layer..layer + 1).collect();
        self.weigh(&layers, false)
    }

    fn weigh(&self, stages: &[Range<usize>], with_overhead: bool) -> Vec<StageMemory> {
        let longest = (self.model.steps() + 2).max(self.model.target.num_tiles);
        let at_once = (MAX_CELLS / longest as usize).max(1);
        let parts = stages.chunks(at_once);
        parts
            .flat_map(|part| self.weigh_at_once(part, with_overhead))
            .collect()
    }

    fn weigh_at_once(&self, stages: &[Range<usize>], with_overhead: bool) -> Vec<StageMemory> {
        let tiles = self.model.target.num_tiles;
        let windows: Vec<_> = stages.iter().map(|s| self.window(s.clone())).collect();
        let plan = StagesToWeigh {
            stages_of: self.stages_of_sets(stages),
            windows: &windows,
            with_overhead: with_overhead && self.rules == Rules::Full,
        };
        let peaks: Vec<Vec<StagePeak>> = (0..tiles)
            .into_par_iter()
            .map_init(StageScratch::default, |scratch, tile| {
                self.tile_peaks(tile, &plan, scratch)
            })
            .collect();
        let stage = |(stage, range): (usize, &Range<usize>)| {
            let mut parts = self.code_of(range, plan.with_overhead);
            for (tile, (parts, peaks)) in parts.iter_mut().zip(&peaks).enumerate() {
                parts.variables = peaks[stage].variables;
                if plan.with_overhead {
                    parts.overhead += peaks[stage].overhead;
                    parts.gaps = self.overhead.gaps(tile, parts.total());
                }
            }
            let step = |peaks: &Vec<StagePeak>| windows[stage].map(|_| peaks[stage].step);
            StageMemory {
                tiles: parts,
                peak_steps: peaks.iter().map(step).collect(),
            }
        };
        stages.par_iter().enumerate().map(stage).collect()
    }

    /// By set of places: the stages that have one of them. What is in every
    /// stage is not told here.
    pub(super) fn stages_of_sets(&self, stages: &[Range<usize>]) -> Vec<Vec<u32>> {
        let of_set = |places: &[u32]| {
            let numbered = (0u32..).zip(stages);
            let met = numbered.filter(|(_, stage)| meets(places, stage));
            met.map(|(number, _)| number).collect()
        };
        self.sets.iter().map(of_set).collect()
    }

    /// For each stage where its live variables are most on `tile`.
    fn tile_peaks(
        &self,
        tile: u32,
        plan: &StagesToWeigh<'_>,
        scratch: &mut StageScratch,
    ) -> Vec<StagePeak> {
        let StageScratch { timeline, overhead } = scratch;
        let classes = &self.model.classes;
        timeline.restart(classes, self.variables(tile), plan.windows);
        overhead.clear();
        for item in self.variables(tile) {
            let ranges = classes.ranges(item.class);
            let set = self.counted(item.set);
            if plan.with_overhead && set == EVERYWHERE {
                overhead.push(*item);
                for stage in 0..plan.windows.len() {
                    timeline.add(stage, item.bytes, ranges);
                }
            }
            for &stage in &plan.stages_of[set.index()] {
                timeline.add(stage as usize, item.bytes, ranges);
            }
        }
        let peak = |(stage, window): (usize, &Option<(u32, u32)>)| match *window {
            Some(window) => self.peak(timeline.peak(stage, window), overhead),
            None => StagePeak::default(),
        };
        plan.windows.iter().enumerate().map(peak).collect()
    }

    /// How much of the highest sum is overhead.
    fn peak(&self, (bytes, step): (u64, u32), overhead: &[VariableGroup]) -> StagePeak {
        let live = |item: &&VariableGroup| self.model.classes.is_live(item.class, step);
        let overhead = overhead.iter().filter(live);
        let overhead = overhead.map(|item| u64::from(item.bytes)).sum();
        StagePeak {
            variables: bytes - overhead,
            overhead,
            step,
        }
    }

    /// Code and vertex state by tile of a range of positions, and with it that
    /// which every stage has, as overhead.
    pub(super) fn code_of(&self, range: &Range<usize>, with_overhead: bool) -> Vec<Parts> {
        let tiles = self.model.target.num_tiles as usize;
        let mut own = vec![[0u64; 4]; tiles];
        let mut common = vec![[0u64; 4]; tiles];
        for item in &self.code {
            let sums = if item.set == EVERYWHERE && with_overhead {
                &mut common
            } else if meets(self.sets.places(item.set), range) {
                &mut own
            } else {
                continue;
            };
            for sum in &item.bytes {
                for tile in &mut sums[sum.from as usize..sum.to as usize] {
                    tile[item.kind as usize] += sum.bytes;
                }
            }
        }
        let tiles = own.into_iter().zip(common).enumerate();
        let parts = |(tile, (own, common)): (usize, ([u64; 4], [u64; 4]))| {
            let both = std::array::from_fn(|kind| own[kind] + common[kind]);
            let both = self.overhead.capped(tile, both);
            let common = self.overhead.capped(tile, common);
            let mut parts = Parts::of_code(std::array::from_fn(|kind| both[kind] - common[kind]));
            if with_overhead {
                parts.overhead = common.iter().sum::<u64>() + self.overhead.fixed(tile);
            }
            parts
        };
        tiles.map(parts).collect()
    }
}

/// Has a range of positions one of these places?
pub(super) fn meets(places: &[u32], range: &Range<usize>) -> bool {
    places
        .iter()
        .any(|&place| range.contains(&(place as usize)))
}

/// Which stages are weighed, and how.
struct StagesToWeigh<'a> {
    /// By set of places: the stages that have one of them.
    stages_of: Vec<Vec<u32>>,
    windows: &'a [Option<(u32, u32)>],
    with_overhead: bool,
}

/// The step of one stage and tile at which most is live: the first of several.
#[derive(Debug, Clone, Copy, Default)]
struct StagePeak {
    /// Bytes of the stage's own variables.
    variables: u64,
    /// Bytes of variables that every stage has.
    overhead: u64,
    step: u32,
}

/// What one thread uses again for each tile.
#[derive(Default)]
struct StageScratch {
    timeline: Timeline,
    overhead: Vec<VariableGroup>,
}
