//! The memory of given stages, in full (analysis.md, section 7).

use super::liveness::Timeline;
use super::neighbours::{self, LiveRanges, NeighbourUses};
use super::pipeline::{Additions, Flows, PlacedStage, Recompute, StageFlows, TileFlows};
use super::{MemoryModel, Rules};
use crate::model::{EVERYWHERE, PlaceSet, VariableGroup};
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

    /// The same, with the bytes on the fullest tile of any stage if the pipeline were
    /// that of `other`, which is the same model beside that. Both take one pass over
    /// the variables.
    pub fn split_beside(
        &self,
        other: &MemoryModel<'_>,
        stages: &[Range<usize>],
    ) -> (Vec<StageMemory>, Option<u64>) {
        let placed = PlacedStage::of_split(stages);
        let weighed = self.weigh_beside(Some(other), &placed, Wanted::All);
        let peaks = weighed.iter().filter_map(|&(_, peak)| peak);
        let highest = peaks.max();
        (
            weighed.into_iter().map(|(memory, _)| memory).collect(),
            highest,
        )
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
        let weighed = self.weigh_beside(None, stages, wanted).into_iter();
        weighed.map(|(memory, _)| memory).collect()
    }

    /// Each stage, with the bytes on its fullest tile in the pipeline of `other`.
    fn weigh_beside(
        &self,
        other: Option<&MemoryModel<'_>>,
        stages: &[PlacedStage],
        wanted: Wanted,
    ) -> Vec<(StageMemory, Option<u64>)> {
        let flows = self.flows.as_ref().map_or(0, |flows| flows.len());
        let longest = (self.model.steps() + 2).max(self.model.target.num_tiles);
        let at_once = (MAX_CELLS / (longest as usize).max(flows)).max(1);
        let parts = stages.chunks(at_once);
        parts
            .flat_map(|part| self.weigh_at_once(other, part, wanted))
            .collect()
    }

    /// What was learnt of a stage, in bytes on each tile.
    fn learnt_of(&self, stage: &PlacedStage) -> i64 {
        let learnt = self.learnt.as_ref();
        learnt.map_or(0, |learnt| learnt.bytes(stage))
    }

    fn weigh_at_once(
        &self,
        other: Option<&MemoryModel<'_>>,
        stages: &[PlacedStage],
        wanted: Wanted,
    ) -> Vec<(StageMemory, Option<u64>)> {
        let ranges: Vec<_> = stages.iter().map(|own| own.positions.clone()).collect();
        let plan = StagesToWeigh {
            stages,
            stages_of: self.stages_of_sets(&ranges),
            windows: ranges.iter().map(|own| self.window(own.clone())).collect(),
            flows: self.stage_flows(stages, wanted),
            second: self.second(other, stages, wanted),
            other: other.map(|other| (other, other.stage_flows(stages, wanted))),
            with_overhead: wanted == Wanted::All && self.rules == Rules::Full,
        };
        let peaks = self.peaks_by_tile(&plan);
        let numbers = (0..stages.len()).into_par_iter();
        numbers
            .map(|stage| self.stage_memory(stage, &plan, &peaks, wanted))
            .collect()
    }

    /// By tile: for each stage where its live variables are most.
    fn peaks_by_tile(&self, plan: &StagesToWeigh<'_>) -> Vec<Vec<StagePeak>> {
        let tiles = self.model.target.num_tiles;
        let at_once = neighbours::at_once(tiles);
        let blocks = (0..tiles.div_ceil(at_once)).into_par_iter();
        let of_block = |scratch: &mut StageScratch, block: u32| -> Vec<Vec<StagePeak>> {
            let first = block * at_once;
            let tiles = first..tiles.min(first + at_once);
            self.prepare(tiles.clone(), plan, scratch);
            let peaks = |tile| self.tile_peaks(tile, plan, scratch);
            tiles.map(peaks).collect()
        };
        let found = blocks.map_init(StageScratch::default, of_block);
        found.flatten_iter().collect()
    }

    /// Looks up what neighbouring tiles have in common.
    fn prepare(&self, tiles: Range<u32>, plan: &StagesToWeigh<'_>, scratch: &mut StageScratch) {
        let StageScratch {
            uses,
            rows,
            live,
            timeline,
            flows: tile_flows,
            ..
        } = scratch;
        uses.gather(self, tiles);
        rows.clear();
        live.clear();
        for (class, set) in uses.all() {
            rows.push(self.row(class, set, plan));
            live.push(self.live_ranges(class));
        }
        timeline.restart(self.model.steps(), live.all(), &plan.windows);
        live.map(|range| timeline.places(range));
        if let Some(flows) = self.flows.as_ref().filter(|_| !plan.flows.is_empty()) {
            tile_flows.prepare(self, flows, uses);
        }
    }

    /// What all variables of a class and user set have in common.
    fn row(&self, class: u32, set: u32, plan: &StagesToWeigh<'_>) -> StageRow {
        let other = plan.other.as_ref().map(|(other, _)| other);
        StageRow {
            class,
            set,
            counted: self.counted(set),
            // A layer by itself has all that it keeps.
            counts: !plan.with_overhead || !self.is_recomputed(class, set),
            second: match plan.second {
                Second::None => false,
                Second::Other => other.is_some_and(|other| !other.is_recomputed(class, set)),
                Second::Late => true,
            },
        }
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

    /// One of the stages, from its peaks by tile; and its bytes on its fullest tile in
    /// the other pipeline.
    fn stage_memory(
        &self,
        stage: usize,
        plan: &StagesToWeigh<'_>,
        peaks: &[Vec<StagePeak>],
        wanted: Wanted,
    ) -> (StageMemory, Option<u64>) {
        let placed = &plan.stages[stage];
        let mut tiles = self.code_of(&placed.positions, plan.with_overhead);
        let (mut late, mut beside) = (0, 0);
        for (tile, (parts, peaks)) in tiles.iter_mut().zip(peaks).enumerate() {
            let peak = &peaks[stage];
            let code = parts.total();
            parts.variables = peak.variables;
            if plan.with_overhead {
                parts.overhead += peak.overhead;
                parts.gaps = self.overhead.gaps(tile, parts.total());
            }
            let second = match plan.second {
                Second::Other => code + peak.second + self.overhead.gaps(tile, code + peak.second),
                Second::None | Second::Late => parts.total(),
            };
            beside = beside.max(second + peak.beside);
            // Gaps are those of the one-IPU compilation.
            parts.add(&Parts::of_additions(peak.additions));
            late = late.max(parts.total() - (peak.variables + peak.overhead) + peak.second);
        }
        let has_late = plan.second == Second::Late && self.keeps_activations(placed);
        let learnt = match wanted {
            Wanted::All => self.learnt_of(placed),
            Wanted::Layers => 0,
        };
        let window = plan.windows[stage];
        let step = |peaks: &Vec<StagePeak>| window.map(|_| peaks[stage].step);
        let with_learnt = |(other, _): &(&MemoryModel<'_>, _)| {
            beside.saturating_add_signed(other.learnt_of(placed))
        };
        let memory = StageMemory {
            late_restores: has_late.then(|| late.saturating_add_signed(learnt)),
            learnt,
            tiles,
            peak_steps: peaks.iter().map(step).collect(),
        };
        (memory, plan.other.as_ref().map(with_learnt))
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
        self.enter_variables(tile, plan, scratch);
        let StageScratch {
            timeline,
            always,
            overhead,
            flows: tile_flows,
            uses,
            ..
        } = scratch;
        let count = plan.stages.len();
        let peak = |(stage, window): (usize, &Option<(u32, u32)>)| {
            let Some(window) = *window else {
                return StagePeak::default();
            };
            let at = |stage: usize| {
                let (bytes, step) = timeline.peak(stage, window);
                (bytes + always[stage], step)
            };
            let mut peak = self.peak(at(stage), overhead);
            if plan.second != Second::None {
                peak.second = at(count + stage).0;
            }
            peak
        };
        let mut peaks: Vec<StagePeak> = plan.windows.iter().enumerate().map(peak).collect();
        if let Some(flows) = self.flows.as_ref().filter(|_| !plan.flows.is_empty()) {
            tile_flows.load(self, flows, uses, tile);
            for (peak, stage) in peaks.iter_mut().zip(&plan.flows) {
                peak.additions = flows.additions(self, stage, tile_flows);
            }
        }
        if let Some((other, of_stage)) = &plan.other
            && let Some(flows) = &other.flows
        {
            for (peak, stage) in peaks.iter_mut().zip(of_stage) {
                let additions = flows.additions(other, stage, tile_flows);
                peak.beside = Parts::of_additions(additions).total();
            }
        }
        peaks
    }

    /// Enters the variables of `tile` into the sums of each stage that has them.
    fn enter_variables(&self, tile: u32, plan: &StagesToWeigh<'_>, scratch: &mut StageScratch) {
        let StageScratch {
            uses,
            rows,
            live,
            timeline,
            always,
            overhead,
            ..
        } = scratch;
        let count = plan.stages.len();
        // Each stage once more, as if its variables counted in another way.
        let sums = if plan.second == Second::None {
            count
        } else {
            2 * count
        };
        timeline.empty(sums);
        always.clear();
        always.resize(sums, 0);
        overhead.clear();
        for (number, bytes) in uses.on_tile(self, tile) {
            let row = &rows[number];
            let mut add = |stage: usize| match live.of(number) {
                None => always[stage] += u64::from(bytes),
                Some(places) => timeline.add(stage, bytes, places),
            };
            if plan.with_overhead && row.counted == EVERYWHERE && row.counts {
                let StageRow { class, set, .. } = *row;
                overhead.push(VariableGroup { class, set, bytes });
                (0..sums).for_each(&mut add);
            }
            for &stage in &plan.stages_of[row.counted.index()] {
                let stage = stage as usize;
                if row.counts {
                    add(stage);
                }
                if row.second && !self.is_kept_late(row, stage, plan) {
                    add(count + stage);
                }
            }
        }
    }

    /// Does a stage that restores late what it keeps not have these variables?
    fn is_kept_late(&self, row: &StageRow, stage: usize, plan: &StagesToWeigh<'_>) -> bool {
        let flows = self.flows.as_ref();
        let flows = flows.filter(|_| plan.second == Second::Late);
        let flow = flows.and_then(|flows| flows.of(row.class, row.set));
        flow.is_some_and(|flow| plan.flows[stage].keeps(flow))
    }

    /// Does the pipeline make activations again layer by layer?
    pub(super) fn recomputes_layers(&self) -> bool {
        let flows = self.flows.as_ref();
        flows.is_some_and(|flows| flows.recomputes_layers())
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
            .filter(|item| !self.is_recomputed(item.class, item.set))
    }

    /// Are variables of a class and user set made again layer by layer?
    pub(super) fn is_recomputed(&self, class: u32, set: u32) -> bool {
        let flows = self.flows.as_ref();
        flows.is_some_and(|flows| flows.is_recomputed(class, set))
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
            second: bytes,
            additions: Additions::default(),
            beside: 0,
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
    /// Layers, without what every stage has.
    Layers,
}

/// In which other way variables count in the same pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Second {
    /// In none.
    None,
    /// As if stages restored late what they keep.
    Late,
    /// As in the other pipeline, which makes other variables again.
    Other,
}

/// Which stages are weighed, and how.
struct StagesToWeigh<'a> {
    stages: &'a [PlacedStage],
    /// By set of places: the stages that have one of them.
    stages_of: Vec<Vec<u32>>,
    windows: Vec<Option<(u32, u32)>>,
    with_overhead: bool,
    /// By stage; empty where a pipeline adds nothing.
    flows: Vec<StageFlows>,
    second: Second,
    /// The other pipeline, with the same.
    other: Option<(&'a MemoryModel<'a>, Vec<StageFlows>)>,
}

/// The step of one stage and tile at which most is live: the first of several.
#[derive(Debug, Clone, Copy, Default)]
struct StagePeak {
    /// Bytes of the stage's own variables.
    variables: u64,
    /// Bytes of variables that every stage has.
    overhead: u64,
    step: u32,
    /// Bytes of both when variables count in the second way; else the same.
    second: u64,
    /// What the pipeline adds.
    additions: Additions,
    /// All that the other pipeline adds.
    beside: u64,
}

/// What variables of one class and user set have in common.
struct StageRow {
    class: u32,
    set: u32,
    counted: PlaceSet,
    /// Do stages count them that have their places?
    counts: bool,
    /// The same in the second way, but for what a stage keeps.
    second: bool,
}

/// What one thread uses again for each tile.
#[derive(Default)]
struct StageScratch {
    uses: NeighbourUses,
    /// By number in `uses`.
    rows: Vec<StageRow>,
    /// The same: first as steps, then as places of `timeline`.
    live: LiveRanges,
    timeline: Timeline,
    /// By stage, and once more in the second way: bytes live on every step.
    always: Vec<u64>,
    overhead: Vec<VariableGroup>,
    flows: TileFlows,
}
