//! The peaks of all ranges of layers in one pipeline, which threads raise tile by tile. Pipelines
//! in which the same variables are live at the same liveness steps are examined together.

use super::{blocks::Blocks, variables::EnteringVariables};
use crate::{
    limits,
    memory::code::{TileOverhead, by_lane},
    memory::entering::GrowingSums,
    memory::lanes::{self, ByLane, Bytes, plus},
    memory::pipeline::{FlowStretch, Flows, PHASES, RangeAdditions, TileFlows},
    memory::update::{RangeUpdates, UpdatePhase},
    memory::uses::NeighbourUses,
    memory::{MemoryModel, RangeCosts},
};
use std::{
    array::from_fn,
    collections::BTreeSet,
    ops::Range,
    sync::OnceLock,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};

/// The maximum number of changes of live bytes that a thread stores for all tiles that it examines
/// side by side, and of sums of such changes. With more, reading them takes so long that examining
/// the tiles one by one is as fast.
const MAX_CELLS: usize = 1 << 21;

/// The number of ranges of layers with the same start whose peaks are allocated together, as soon
/// as the peaks of one of them are needed. In large models, the peaks of most ranges are never
/// needed.
const AT_ONCE: usize = 16;

/// All ranges of layers in one pipeline, each with the highest bytes that it takes on any tile
/// examined so far. All threads share this table.
pub struct PipelineRanges<'a> {
    pub model: &'a MemoryModel<'a>,
    /// The bytes that a stage may take on each tile. If the lower bound of a range of layers
    /// exceeds this limit, longer ranges from the same start are skipped, since they cannot fit
    /// either.
    limit: u64,
    /// One entry per start of ranges of layers: the end (exclusive) of the longest range whose
    /// lower bound is within the limit on all tiles examined so far. Longer ranges are skipped on
    /// all further tiles. So the end may fall from tile to tile, but never rises.
    ends: Vec<AtomicUsize>,
    /// The maximum number of stages of a split; 0 without a pipeline. Each range of layers has
    /// `stages + 1` peaks: the lower bound on its bytes, then its bytes with 0, 1, ... stages after
    /// it.
    stages: usize,
    /// Index of the pipeline's weight update in the list of distinct weight updates of all
    /// pipelines that are examined together. `None` if all optimizer state stays on the chip, so
    /// that the update has no peak of its own, or if the model does not train.
    pub update: Option<usize>,
    /// For each flow (tensors with the same users), the ranges of layers that stash, receive, send
    /// or forward its tensors when they run as a stage. Empty without a pipeline.
    pub stretches: Vec<Vec<FlowStretch>>,
    /// The highest bytes of each range of layers on any tile that has been examined. An entry has
    /// the peaks of several ranges ([`AT_ONCE`]) with the same start and neighbouring last
    /// positions. It is allocated when one of these ranges is first needed. Entries are ordered by
    /// start, then by last position.
    peaks: Vec<OnceLock<Box<[AtomicU64]>>>,
}

/// The bytes that one pipeline adds to the range of layers that is examined at the moment, on up to
/// `N` tiles, by lane (tile).
#[derive(Default)]
pub struct PipelineScratch<const N: usize> {
    pub additions: RangeAdditions<N>,
    range: (usize, usize),
    /// Whether the current range of layers may still fit: the lower bound on its bytes is within
    /// the memory limit on all tiles examined so far.
    pub is_on: bool,
    /// The bytes that the pipeline adds to a range of layers whatever the number of stages after
    /// it: accumulators and optimizer state.
    least: ByLane<u64, N>,
    /// One entry per phase, such as the backward pass (see [`PHASES`]): the bytes of transfer
    /// buffers and forwarded tensors that the pipeline adds to a range of layers.
    pub phases: [ByLane<u64, N>; PHASES],
    /// The bytes that the pipeline adds to the current range of layers in the forward and the
    /// backward pass alike, by lane (tile): accumulators, optimizer state and the stash. There is
    /// one entry per number of stages after the range (0, 1, ...), on which the stash depends.
    columns: Vec<[u64; N]>,
}

impl<'a> PipelineRanges<'a> {
    /// Makes the table, still without peaks, for ranges of layers in one pipeline and splits of at
    /// most `stages` stages. Only ranges that start at one of `starts` are included, or all ranges
    /// if `starts` is `None`. `limit` is the memory limit of each tile in bytes.
    pub fn new(
        (model, limit): (&'a MemoryModel<'a>, u64),
        stages: usize,
        starts: Option<&BTreeSet<usize>>,
    ) -> Self {
        let layers = model.layers();
        let end = |start| match starts {
            Some(starts) if !starts.contains(&start) => start,
            _ => layers,
        };
        let flows = model.flows.as_ref();
        // In a pipeline, the more layers there are, the fewer stages are allowed, so that the table
        // of bytes does not become too large.
        let most = (limits::RANGE_COSTS / layers.pow(2).max(1)).max(2) - 1;
        Self {
            model,
            limit,
            ends: (0..layers).map(end).map(AtomicUsize::new).collect(),
            stages: flows.map_or(0, |_| stages.min(layers).min(most).max(1)),
            update: None,
            stretches: flows.map_or(Vec::new(), |flows| flows.stretches(layers as u32)),
            peaks: (0..layers * layers.div_ceil(AT_ONCE))
                .map(|_| OnceLock::new())
                .collect(),
        }
    }

    /// Returns whether the same variables are live at the same liveness steps in the pipelines
    /// `self` and `other`. Ranges of layers can then be examined for both together. The bytes that
    /// the pipelines add, such as the stash, may differ.
    pub fn counts_as(&self, other: &Self) -> bool {
        let (model, other) = (self.model, other.model);
        let mut numbers = 0..model.model.variables.uses().len() as u32;
        let recomputes = |own: &MemoryModel<'_>| own.flows.as_ref().map(Flows::recomputes_layers);
        recomputes(model) == recomputes(other)
            && numbers.all(|number| model.is_away(number) == other.is_away(number))
    }

    fn peaks(&self, start: usize, last: usize) -> &[AtomicU64] {
        let part = start * self.model.layers().div_ceil(AT_ONCE) + last / AT_ONCE;
        let columns = self.stages + 1;
        let zeros = || (0..AT_ONCE * columns).map(|_| AtomicU64::new(0));
        &self.peaks[part].get_or_init(|| zeros().collect())[last % AT_ONCE * columns..][..columns]
    }

    /// Returns how many numbers of later stages (0, 1, ...) are possible for a range of positions
    /// (In, layers, Out) that ends at `end` (exclusive). Each later stage needs at least one of the
    /// positions after the range, and a split has at most `self.stages` stages.
    fn depths(&self, end: usize) -> usize {
        self.stages.min(self.model.layers() - end + 1)
    }

    /// Returns the table of the bytes of ranges of layers. It has all ranges whose bytes have a
    /// lower bound within the limit.
    pub fn into_costs(self) -> RangeCosts {
        let numbers = |start: usize, last: usize| {
            let depths = self.depths(last + 1);
            let peaks = self.peaks(start, last).iter().enumerate();
            peaks.map(move |(column, peak)| {
                if column <= depths {
                    peak.load(Relaxed)
                } else {
                    u64::MAX
                }
            })
        };
        let rows = self.ends.iter().enumerate().map(|(start, end)| {
            (start..end.load(Relaxed))
                .flat_map(|last| numbers(start, last))
                .collect()
        });
        RangeCosts::in_pipeline(rows.collect(), self.stages)
    }
}

/// One of several pipelines that are examined together, and the bytes that it adds to the range of
/// layers that is examined at the moment.
pub struct InPipeline<'a, const N: usize> {
    pub ranges: &'a PipelineRanges<'a>,
    pub scratch: &'a mut PipelineScratch<N>,
}

impl<const N: usize> InPipeline<'_, N> {
    /// Starts an empty range of layers at the position `start`. `tiles` has the bytes of flows
    /// (tensors with the same users) on the tiles that are examined.
    pub fn begin(&mut self, start: usize, tiles: &TileFlows<N>) {
        self.scratch.is_on = true;
        if self.ranges.stages > 0 {
            self.scratch.additions.begin(start, tiles);
        }
    }

    /// Extends the current range of layers to `range`. Returns for each lane (tile) the bytes that
    /// the range must exceed on the tile to raise any of its peaks, not counting the bytes that the
    /// pipeline adds. They are [`u64::MAX`] if the range exceeds the memory limit on an earlier
    /// tile, so that its peaks are no longer needed.
    pub fn add(
        &mut self,
        range: &Range<usize>,
        tiles: &[TileOverhead],
        updates: &[RangeUpdates<N>],
    ) -> [u64; N] {
        let (ranges, scratch) = (self.ranges, &mut *self.scratch);
        let last = range.end - 1;
        scratch.range = (range.start, last);
        scratch.is_on &= last < ranges.ends[range.start].load(Relaxed);
        if !scratch.is_on {
            return [u64::MAX; N];
        }
        *scratch.least = ranges
            .update
            .map_or([0; N], |update| updates[update].always(tiles));
        if let Some(flows) = &ranges.model.flows {
            let additions = &mut scratch.additions;
            additions.add(flows, range);
            scratch.phases = additions.beside(flows, range).map(ByLane);
            lanes::add(&mut scratch.least, &additions.accumulators.sums[0]);
            scratch.columns.clear();
            for after in 0..ranges.depths(range.end) {
                let copies = additions.copies(flows, flows.depth(range, after));
                scratch.columns.push(plus(&scratch.least, &copies));
            }
        }
        let mut added = [0; N];
        for bytes in &scratch.phases {
            lanes::raise(&mut added, bytes);
        }
        let lowest = self.lowest_column(&added);
        let first = self.peaks()[0].load(Relaxed);
        from_fn(|lane| lowest[lane].min(first.saturating_sub(self.scratch.least[lane])))
    }

    fn peaks(&self) -> &[AtomicU64] {
        let (start, last) = self.scratch.range;
        self.ranges.peaks(start, last)
    }

    /// Returns for each lane (tile) the bytes that the variables and code of the current range of
    /// layers must exceed on the tile to raise any of its peaks (one for each number of later
    /// stages). The bytes that the pipeline adds are subtracted from the peaks: the stash,
    /// accumulators and optimizer state, and `beside`, such as the transfer buffers of one phase.
    pub fn lowest_column(&self, beside: &[u64; N]) -> [u64; N] {
        let mut lowest = [u64::MAX; N];
        for (peak, column) in self.peaks()[1..].iter().zip(&self.scratch.columns) {
            let (peak, added) = (peak.load(Relaxed), plus(beside, column));
            lanes::lower(&mut lowest, &added.map(|added| peak.saturating_sub(added)));
        }
        lowest
    }

    /// Raises the peaks of the current range of layers, one for each number of later stages, to the
    /// range's bytes on the fullest lane (tile). These are `bytes` plus the bytes that the pipeline
    /// adds in every phase, such as the stash. `bytes` has one number per lane.
    pub fn raise_columns(&self, bytes: &[u64; N]) {
        for (peak, column) in self.peaks()[1..].iter().zip(&self.scratch.columns) {
            raise(peak, &plus(bytes, column));
        }
    }

    /// Raises the lower bound on the bytes of the current range of layers, if the range takes more
    /// bytes on the fullest lane (tile). `bytes` has its variables and code by lane; the bytes that
    /// the pipeline adds for any number of later stages, such as accumulators, are added to them.
    /// If the bound then exceeds the memory limit, the table leaves out this range and longer
    /// ranges with the same start.
    pub fn raise_least(&mut self, bytes: &[u64; N]) {
        if !self.scratch.is_on {
            return;
        }
        let least = plus(&self.scratch.least, bytes);
        raise(&self.peaks()[0], &least);
        if lanes::highest(&least) > self.ranges.limit {
            let (start, last) = self.scratch.range;
            self.ranges.ends[start].fetch_min(last, Relaxed);
            self.scratch.is_on = false;
        }
    }

    /// Raises the peaks of the current range of layers to its bytes during the weight update, if
    /// these are higher. Does nothing if all optimizer state stays on the chip: the live bytes at
    /// the profile's steps then include the update. `fixed` has the bytes of code and always-live
    /// variables by lane (tile).
    pub fn raise_in_update(
        &mut self,
        (tiles, fixed): (&[TileOverhead], &[u64; N]),
        updates: &[RangeUpdates<N>],
    ) {
        if let Some(update) = self.ranges.update.filter(|_| self.scratch.is_on) {
            let bytes = plus(fixed, &updates[update].taken());
            let bytes = by_lane(tiles, |lane, tile| {
                bytes[lane] + tile.fragmentation_of(bytes[lane])
            });
            self.raise_columns(&bytes);
            self.raise_least(&bytes);
        }
    }
}

fn raise<const N: usize>(peak: &AtomicU64, bytes: &[u64; N]) {
    let highest = lanes::highest(bytes);
    // All threads share the peak of a range of layers. Most tiles do not raise it, so it is read
    // first: reading takes much less time than writing.
    if peak.load(Relaxed) < highest {
        peak.fetch_max(highest, Relaxed);
    }
}

/// The buffers in which one thread computes the bytes of ranges of layers on up to `N` neighbouring
/// tiles: the variables on the tiles and, by kind of memory, the bytes that a range gains with each
/// layer.
#[derive(Default)]
pub struct TileScratch<B, const N: usize> {
    pub uses: NeighbourUses<N>,
    pub variables: EnteringVariables<N>,
    pub flows: TileFlows<N>,
    /// The live bytes of a range of layers at each liveness step at which a peak is possible,
    /// without the variables that are live at every step.
    blocks: Blocks<B, N>,
    pub always: GrowingSums<N, 1>,
    pub code: GrowingSums<N, 4>,
    /// The bytes of each distinct weight update. Pipelines that keep optimizer state in the same
    /// place with the same number of replicas have the same update.
    pub updates: Vec<RangeUpdates<N>>,
}

/// Computes the bytes of all ranges of layers on some neighbouring tiles, in pipelines in which the
/// same variables are live at the same steps.
pub struct Examination<'a, B, const N: usize> {
    pub tiles: &'a [TileOverhead],
    pub scratch: &'a mut TileScratch<B, N>,
    pub updates: Vec<(usize, &'a UpdatePhase)>,
    pub pipelines: Vec<InPipeline<'a, N>>,
    /// A counter that all threads which examine the same tiles share. A thread takes the next
    /// position from it, and examines all ranges of layers that begin there.
    pub claimed: &'a AtomicUsize,
}

impl<B: Bytes, const N: usize> Examination<'_, B, N> {
    /// Raises the peak of each range of layers, in each pipeline, to the bytes of the range on the
    /// examined tiles, if these bytes are higher. Several threads may share this work: all ranges
    /// with the same start are examined by one thread. As soon as a range fits in no pipeline,
    /// longer ranges with the same start are skipped. Returns false, and leaves the peaks
    /// incomplete, if the sums of live bytes on all these tiles would take too much memory.
    pub fn run(&mut self) -> bool {
        let layers = self.pipelines[0].ranges.model.layers();
        let places = self.scratch.variables.places;
        if N > 1 && Blocks::<B, N>::sums(places, layers) > MAX_CELLS / N {
            return false;
        }
        self.scratch.blocks.restart(places, layers);
        let claim = || self.claimed.fetch_add(1, Relaxed);
        let mut own = claim();
        for start in 0..layers {
            if own >= layers {
                break;
            }
            if !self.begin(start) {
                return false;
            }
            if start == own {
                self.ranges_from(start);
                own = claim();
            }
        }
        true
    }

    /// Starts an empty range of layers at the position `start`. Returns false if the sums of live
    /// bytes would take too much memory.
    fn begin(&mut self, start: usize) -> bool {
        let scratch = &mut *self.scratch;
        for (layer, stretch) in scratch.variables.moving.from(start) {
            let bytes = scratch.uses.bytes(stretch.row);
            scratch.blocks.enter(layer, stretch, bytes);
            if N > 1 && scratch.blocks.cells() > MAX_CELLS / N {
                return false;
            }
        }
        scratch.always.begin(start);
        scratch.code.begin(start);
        scratch.blocks.begin(start);
        for &(number, _) in &self.updates {
            scratch.updates[number].begin(start);
        }
        for pipeline in &mut self.pipelines {
            pipeline.begin(start, &scratch.flows);
        }
        true
    }

    fn ranges_from(&mut self, start: usize) {
        let model = self.pipelines[0].ranges.model;
        let tiles = self.tiles;
        let mut window: Option<(usize, usize)> = None;
        for last in start..model.layers() {
            let range = start..last + 1;
            let scratch = &mut *self.scratch;
            for &(number, phase) in &self.updates {
                scratch.updates[number].add(phase, &range);
            }
            let updates = &scratch.updates;
            let mut known = [u64::MAX; N];
            for pipeline in &mut self.pipelines {
                lanes::lower(&mut known, &pipeline.add(&range, tiles, updates));
            }
            if !self.pipelines.iter().any(|own| own.scratch.is_on) {
                break;
            }
            scratch.code.add(last);
            scratch.always.add(last);
            let [fixed] = *scratch.always.sums;
            window = scratch.variables.widened(window, model.layer_window(last));
            scratch.blocks.add(last);
            let mut beside = by_lane(tiles, |lane, tile| {
                let code = from_fn(|kind| scratch.code.sums[kind][lane]);
                tile.capped(code).iter().chain(&tile.code).sum()
            });
            let mut totals = beside;
            if let Some(window) = window {
                lanes::add(&mut totals, &fixed);
                for pipeline in &mut self.pipelines {
                    pipeline.raise_in_update((tiles, &totals), updates);
                }
                let left = by_lane(tiles, |lane, tile| {
                    tile.without_fragmentation(known[lane])
                        .saturating_sub(totals[lane])
                });
                lanes::add(&mut totals, &scratch.blocks.highest(window, left));
            }
            let fragmentation = by_lane(tiles, |lane, tile| tile.fragmentation_of(totals[lane]));
            let totals = plus(&totals, &fragmentation);
            // `known` has, by lane (tile), the bytes that the range of layers must exceed to raise
            // a peak: the peak minus the bytes that the pipeline adds, or 0 if these are more. With
            // 0, even a range without variables and code may raise a peak.
            if totals
                .iter()
                .zip(&known)
                .any(|(&total, &known)| total > known || known == 0)
            {
                for pipeline in &mut self.pipelines {
                    pipeline.raise_least(&totals);
                }
                if model.flows.is_some() {
                    lanes::add(&mut beside, &fixed);
                    lanes::add(&mut beside, &fragmentation);
                    self.raise_phases(&beside);
                }
            }
        }
    }

    /// Raises the peaks of the current range of layers to the range's bytes in each phase, such as
    /// the backward pass, if they are higher. `beside` has the bytes that are the same in every
    /// phase, such as code, by lane (tile).
    fn raise_phases(&mut self, beside: &[u64; N]) {
        for (phase, window) in self.scratch.variables.phases.iter().enumerate() {
            // Phases without steps are skipped. If the model has no liveness steps at all, the
            // first phase is examined nevertheless, for the bytes of code and those that the
            // pipeline adds.
            let is_only = phase == 0 && self.scratch.variables.places == 0;
            if window.0 == window.1 && !is_only {
                continue;
            }
            let pipelines = || self.pipelines.iter().filter(|own| own.scratch.is_on);
            let mut known = [u64::MAX; N];
            for pipeline in pipelines() {
                lanes::lower(
                    &mut known,
                    &pipeline.lowest_column(&pipeline.scratch.phases[phase]),
                );
            }
            let mut totals = *beside;
            if !is_only {
                let left = from_fn(|lane| known[lane].saturating_sub(beside[lane]));
                lanes::add(&mut totals, &self.scratch.blocks.highest(*window, left));
            }
            for pipeline in pipelines() {
                pipeline.raise_columns(&plus(&totals, &pipeline.scratch.phases[phase]));
            }
        }
    }
}
