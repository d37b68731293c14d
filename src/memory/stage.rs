//! The memory of given stages, in full (analysis.md, section 7).

use super::liveness::Timeline;
use super::pipeline::{Additions, PlacedStage, Recompute, StageFlows, TileFlows};
use super::{MemoryModel, Rules};
use crate::model::{EVERYWHERE, VariableGroup};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Bytes by what they hold. Those that only a pipeline adds are left out of JSON
/// where they are 0.
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
    /// What the backward pass of a pipeline makes again at one time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub recomputed: u64,
    /// Copies for the micro-batches of a pipeline that are under way.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stash: u64,
    /// What sums up gradients over the micro-batches of a pipeline.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub accumulators: u64,
    /// Tensors that wait for another stage.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub waiting: u64,
    /// Tensors on their way to another stage, which this one does not use.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub passing: u64,
}

/// Is it left out of JSON?
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

impl Parts {
    /// What the parts are called, in the order of [`Parts::bytes`].
    pub const NAMES: [&'static str; 12] = [
        "variables",
        "vertex code",
        "vertex state",
        "exchange code",
        "control code",
        "overhead",
        "gaps",
        "recomputed",
        "stash",
        "accumulators",
        "waiting",
        "passing through",
    ];

    /// The bytes of each part.
    pub fn bytes(&self) -> [u64; 12] {
        [
            self.variables,
            self.vertex_code,
            self.vertex_state,
            self.exchange_code,
            self.control_code,
            self.overhead,
            self.gaps,
            self.recomputed,
            self.stash,
            self.accumulators,
            self.waiting,
            self.passing,
        ]
    }

    /// All parts together.
    pub fn total(&self) -> u64 {
        self.bytes().iter().sum()
    }

    /// What a pipeline adds to the layers themselves.
    pub fn of_pipeline(&self) -> u64 {
        self.recomputed + self.stash + self.accumulators + self.waiting + self.passing
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

    fn of_additions(additions: Additions) -> Self {
        let Additions {
            recomputed,
            stash,
            accumulators,
            waiting,
            passing,
        } = additions;
        Self {
            recomputed,
            stash,
            accumulators,
            waiting,
            passing,
            ..Self::default()
        }
    }

    /// Adds each part of `other`.
    pub fn add(&mut self, other: &Parts) {
        self.variables += other.variables;
        self.vertex_code += other.vertex_code;
        self.vertex_state += other.vertex_state;
        self.exchange_code += other.exchange_code;
        self.control_code += other.control_code;
        self.overhead += other.overhead;
        self.gaps += other.gaps;
        self.recomputed += other.recomputed;
        self.stash += other.stash;
        self.accumulators += other.accumulators;
        self.waiting += other.waiting;
        self.passing += other.passing;
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
    /// Bytes on the fullest tile when the pipeline restores what it stashed as late
    /// as it can, which its compiler is free to do; `None` where that makes no
    /// difference. With what was learnt.
    pub late_restores: Option<u64>,
    /// What was learnt that the stage needs beyond `tiles`, in bytes on each tile;
    /// below 0 where it needs less.
    pub learnt: i64,
}

impl StageMemory {
    /// Bytes on a tile, with what was learnt; 0 on one that is not there.
    pub fn tile_bytes(&self, tile: usize) -> u64 {
        let predicted = self.tiles.get(tile);
        predicted.map_or(0, |parts| parts.total().saturating_add_signed(self.learnt))
    }

    /// The fullest tile; the first of several.
    pub fn max_tile(&self) -> usize {
        let fullest = self.tiles.iter().enumerate().rev();
        fullest
            .max_by_key(|(_, parts)| parts.total())
            .map_or(0, |(tile, _)| tile)
    }

    /// Bytes on the fullest tile, with what was learnt.
    pub fn max_tile_bytes(&self) -> u64 {
        self.tile_bytes(self.max_tile())
    }

    /// The first step at which the variables of the fullest tile are most; `None`
    /// when the stage has no steps.
    pub fn peak_step(&self) -> Option<u32> {
        self.peak_steps.get(self.max_tile()).copied().flatten()
    }

    /// Sums over all tiles, without what was learnt, which is known of the fullest
    /// tile alone.
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
    /// What each of `stages`, ranges of layer positions (end exclusive) which need
    /// not be apart, takes at least, whatever stages come after it.
    pub fn stages(&self, stages: &[Range<usize>]) -> Vec<StageMemory> {
        let alone = stages.iter().cloned().map(PlacedStage::alone);
        self.weigh(&alone.collect::<Vec<_>>(), Wanted::All)
    }

    /// The memory of all stages of a split, in their order, with what the pipeline
    /// adds.
    pub fn split(&self, stages: &[Range<usize>]) -> Vec<StageMemory> {
        self.weigh(&PlacedStage::of_split(stages), Wanted::All)
    }

    /// Bytes on the fullest tile of any stage of a split.
    pub fn peak_of_split(&self, stages: &[Range<usize>]) -> Option<u64> {
        let stages = self.weigh(&PlacedStage::of_split(stages), Wanted::Peaks);
        stages.iter().map(|stage| stage.max_tile_bytes()).max()
    }

    /// The memory of each of `stages`.
    pub fn placed_stages(&self, stages: &[PlacedStage]) -> Vec<StageMemory> {
        self.weigh(stages, Wanted::All)
    }

    /// The memory of each single layer, without the overhead that comes with
    /// every stage.
    pub fn single_layers(&self) -> Vec<StageMemory> {
        let alone = |layer| PlacedStage::alone(layer..layer + 1);
        let layers: Vec<_> = (0..self.layers()).map(alone).collect();
        self.weigh(&layers, Wanted::Layers)
    }

    fn weigh(&self, stages: &[PlacedStage], wanted: Wanted) -> Vec<StageMemory> {
        let flows = self.flows.as_ref().map_or(0, |flows| flows.len());
        let longest = (self.model.steps() + 2).max(self.model.target.num_tiles);
        let at_once = (MAX_CELLS / (longest as usize).max(flows)).max(1);
        let parts = stages.chunks(at_once);
        parts
            .flat_map(|part| self.weigh_at_once(part, wanted))
            .collect()
    }

    /// What was learnt of a stage, in bytes on each tile.
    fn learnt_of(&self, stage: &PlacedStage) -> i64 {
        let learnt = self.learnt.as_ref();
        learnt.map_or(0, |learnt| learnt.bytes(stage))
    }

    fn weigh_at_once(&self, stages: &[PlacedStage], wanted: Wanted) -> Vec<StageMemory> {
        let tiles = self.model.target.num_tiles;
        let ranges: Vec<_> = stages.iter().map(|own| own.positions.clone()).collect();
        let windows: Vec<_> = ranges.iter().map(|s| self.window(s.clone())).collect();
        let with_overhead = wanted != Wanted::Layers && self.rules == Rules::Full;
        let plan = StagesToWeigh {
            stages,
            stages_of: self.stages_of_sets(&ranges),
            windows: &windows,
            flows: match &self.flows {
                Some(flows) if with_overhead => {
                    let stages = stages.iter().cloned();
                    stages.map(|stage| flows.in_stage(stage)).collect()
                }
                _ => Vec::new(),
            },
            with_late: wanted == Wanted::All
                && with_overhead
                && stages.iter().any(|stage| self.keeps_activations(stage)),
            with_overhead,
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
                // Gaps are those of the one-IPU compilation.
                parts.add(&Parts::of_additions(peaks[stage].additions));
            }
            let step = |peaks: &Vec<StagePeak>| windows[stage].map(|_| peaks[stage].step);
            let late = parts.iter().zip(&peaks).map(|(parts, peaks)| {
                let StagePeak {
                    variables,
                    overhead,
                    late,
                    ..
                } = peaks[stage];
                parts.total() - (variables + overhead) + late
            });
            let learnt = match wanted {
                Wanted::All | Wanted::Peaks => self.learnt_of(&stages[stage]),
                Wanted::Layers => 0,
            };
            let late = late
                .max()
                .filter(|_| plan.with_late && self.keeps_activations(&stages[stage]));
            StageMemory {
                late_restores: late.map(|bytes| bytes.saturating_add_signed(learnt)),
                learnt,
                tiles: parts,
                peak_steps: peaks.iter().map(step).collect(),
            }
        };
        ranges.par_iter().enumerate().map(stage).collect()
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
        let StageScratch {
            timeline,
            overhead,
            flows: tile_flows,
        } = scratch;
        let classes = &self.model.classes;
        // Each stage once more, as if it restored what it keeps late.
        let count = plan.stages.len();
        let windows = plan.windows.repeat(if plan.with_late { 2 } else { 1 });
        timeline.restart(classes, self.variables(tile), &windows);
        overhead.clear();
        // A layer by itself has all that it keeps.
        let is_all = |item: &&VariableGroup| !plan.with_overhead || !self.is_recomputed(item);
        for item in self.variables(tile).filter(is_all) {
            let ranges = classes.ranges(item.class);
            let set = self.counted(item.set);
            let flow = self.flows.as_ref().filter(|_| plan.with_late);
            let flow = flow.and_then(|flows| flows.of(self.model, item));
            if plan.with_overhead && set == EVERYWHERE {
                overhead.push(*item);
                for stage in 0..windows.len() {
                    timeline.add(stage, item.bytes, ranges);
                }
            }
            for &stage in &plan.stages_of[set.index()] {
                let stage = stage as usize;
                timeline.add(stage, item.bytes, ranges);
                if plan.with_late && !flow.is_some_and(|flow| plan.flows[stage].keeps(flow)) {
                    timeline.add(count + stage, item.bytes, ranges);
                }
            }
        }
        let peak = |(stage, window): (usize, &Option<(u32, u32)>)| match *window {
            Some(window) => self.peak(timeline.peak(stage, window), overhead),
            None => StagePeak::default(),
        };
        let mut peaks: Vec<StagePeak> = plan.windows.iter().enumerate().map(peak).collect();
        for (stage, peak) in peaks.iter_mut().enumerate() {
            let late = windows.get(count + stage).copied().flatten();
            let late = late.map(|window| timeline.peak(count + stage, window).0);
            peak.late = late.unwrap_or(peak.variables + peak.overhead);
        }
        if let Some(flows) = self.flows.as_ref().filter(|_| !plan.flows.is_empty()) {
            tile_flows.load(self, flows, tile);
            for (peak, stage) in peaks.iter_mut().zip(&plan.flows) {
                peak.additions = flows.additions(self, stage, tile_flows);
            }
        }
        peaks
    }

    /// Does a stage keep copies of activations that it restores?
    fn keeps_activations(&self, stage: &PlacedStage) -> bool {
        let flows = self.flows.as_ref().zip(stage.after);
        flows.is_some_and(|(flows, after)| {
            flows.pipeline().recompute == Recompute::None
                && flows.copies(flows.depth(&stage.positions, after)) > 0
        })
    }

    /// The variables on `tile` that are live in all layers of a stage at once.
    pub(super) fn moving_or_always(&self, tile: u32) -> impl Iterator<Item = &VariableGroup> {
        self.variables(tile)
            .filter(|item| !self.is_recomputed(item))
    }

    /// Is a variable made again layer by layer?
    pub(super) fn is_recomputed(&self, item: &VariableGroup) -> bool {
        let flows = self.flows.as_ref();
        flows.is_some_and(|flows| flows.is_recomputed(self.model, item))
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
            late: bytes,
            additions: Additions::default(),
        }
    }

    /// By [`CodeKind`](crate::model::CodeKind): the code on `tile` that every stage
    /// has as overhead; `None` by the classic rules.
    pub fn overhead_code(&self, tile: usize) -> Option<[u64; 4]> {
        if self.rules == Rules::Classic {
            return None;
        }
        let mut common = [0u64; 4];
        for item in self.code.iter().filter(|item| item.set == EVERYWHERE) {
            let here = |sum: &&super::code::TileSum| (sum.from..sum.to).contains(&(tile as u32));
            common[item.kind as usize] += item.bytes.iter().find(here).map_or(0, |sum| sum.bytes);
        }
        let common = self.overhead.capped(tile, common);
        let fixed = self.overhead.code(tile);
        Some(std::array::from_fn(|kind| common[kind] + fixed[kind]))
    }

    /// Code and vertex state by tile of a range of positions, and with it that
    /// which every stage has, as overhead.
    pub(super) fn code_of(&self, range: &Range<usize>, with_overhead: bool) -> Vec<Parts> {
        let tiles = self.model.target.num_tiles as usize;
        let mut own = vec![[0u64; 4]; tiles];
        let mut common = vec![[0u64; 4]; tiles];
        for item in &*self.code {
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

/// What is weighed of stages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Everything.
    All,
    /// The same, but not what they take if they restored late what they keep.
    Peaks,
    /// Layers, without what every stage has.
    Layers,
}

/// Which stages are weighed, and how.
struct StagesToWeigh<'a> {
    stages: &'a [PlacedStage],
    /// By set of places: the stages that have one of them.
    stages_of: Vec<Vec<u32>>,
    windows: &'a [Option<(u32, u32)>],
    with_overhead: bool,
    /// Is it also weighed as if stages restored late what they keep?
    with_late: bool,
    /// By stage; empty where a pipeline adds nothing.
    flows: Vec<StageFlows>,
}

/// The step of one stage and tile at which most is live: the first of several.
#[derive(Debug, Clone, Copy, Default)]
struct StagePeak {
    /// Bytes of the stage's own variables.
    variables: u64,
    /// Bytes of variables that every stage has.
    overhead: u64,
    step: u32,
    /// Bytes of both when what the pipeline keeps is restored late.
    late: u64,
    /// What the pipeline adds.
    additions: Additions,
}

/// What one thread uses again for each tile.
#[derive(Default)]
struct StageScratch {
    timeline: Timeline,
    overhead: Vec<VariableGroup>,
    flows: TileFlows,
}
