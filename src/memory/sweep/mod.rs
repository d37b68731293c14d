//! The peak of every range of layers that can fit.
//!
//! Rebuilding each range from its operations is hundreds of times too slow.
//! Instead, tile by tile:
//!
//! * A variable that the layers l1 < l2 < ... use enters a growing range once.
//!   For the consecutive uses (p, n) it enters at layer n of every range that
//!   starts after p, so uses are sorted by n, and by p the starts from which
//!   they count.
//! * A peak can lie only on few steps of a tile: where something ends to be
//!   live after something began, and at the ends of layers' windows.
//!   All ranges are kept as places in the list of these steps (`tile`).
//! * For each layer, what enters there is kept as the changes from place to
//!   place. They are summed up over blocks of places, which bounds the live
//!   bytes of a range in each block; only blocks where the bound is above the
//!   peak that other tiles and blocks have shown are summed place by place
//!   (`blocks`).
//! * What every stage needs is where the sums begin: by the full rules, the
//!   variables that no operation uses and the code that none explains. Code of
//!   each kind is bounded by what the profile has of it on the tile.
//! * In a pipeline, each number of stages after a range is a column of its own, with
//!   what the pipeline adds on the tile (`RangeAdditions`). A tile is looked at
//!   where it can raise any of them.
//! * The first layer at which any tile passes the limit ends the range for all
//!   tiles. The heaviest tiles go first, so that ranges end early and peaks
//!   are high early.

mod blocks;
mod code;
mod peaks;
mod shape;
mod tile;

use super::neighbours::{self, NeighbourUses};
use super::pipeline::{Patterns, RangeAdditions, TileFlows};
use super::{MemoryModel, RangeCosts};
use crate::limits;
use crate::model::TooManyPlaces;
use crate::progress::{Progress, Task, Unit};
use blocks::Blocks;
use code::CodeByTile;
use peaks::RangePeakTable;
use shape::Shape;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tile::Tile;

/// Of this many tiles one tells roughly what all need.
const TILES_FOR_ONE: usize = 64;

impl MemoryModel<'_> {
    /// The bytes on the fullest tile of every contiguous range of layers that
    /// needs at most `limit` bytes on each tile, and in a pipeline, or with what was
    /// learnt, what it needs with each number of stages after it.
    ///
    /// # Errors
    /// When there is more on one tile than on any real one.
    pub fn range_costs(&self, limit: u64) -> Result<RangeCosts, TooManyPlaces> {
        self.range_costs_with(limit, self.layers(), &Progress::new())
    }

    /// How many stages [`MemoryModel::range_costs`] knows the costs of at most:
    /// all, or in a pipeline and with what was learnt as many as there is room for.
    pub fn most_stages(&self) -> usize {
        match (&self.flows, &self.learnt) {
            (None, None) => usize::MAX,
            _ => (limits::RANGE_COSTS / self.layers().pow(2).max(1)).max(2) - 1,
        }
    }

    /// The same for a pipeline of at most `stages` stages, counting tiles.
    ///
    /// # Errors
    /// As [`MemoryModel::range_costs`].
    pub(crate) fn range_costs_with(
        &self,
        limit: u64,
        stages: usize,
        progress: &Progress,
    ) -> Result<RangeCosts, TooManyPlaces> {
        let costs = Self::costs_in_all(&[(self, limit)], stages, progress)?;
        Ok(costs.into_iter().next().unwrap_or_default())
    }

    /// The same for one model in several pipelines, each with its limit, in one pass
    /// over the tiles.
    ///
    /// # Errors
    /// As [`MemoryModel::range_costs`].
    pub(crate) fn costs_in_all(
        pipelines: &[(&Self, u64)],
        stages: usize,
        progress: &Progress,
    ) -> Result<Vec<RangeCosts>, TooManyPlaces> {
        let Some((model, _)) = pipelines.first() else {
            return Ok(Vec::new());
        };
        let tiles = model.model.variables.tiles();
        let order = model.heaviest_first(neighbours::at_once(tiles));
        let task = progress.begin("weighing ranges of layers", Unit::Tiles, tiles.into());
        Self::costs_on(order, pipelines, stages, &task)
    }

    /// What ranges need on a few of the tiles, which all together need no less: the
    /// heaviest ones.
    ///
    /// # Errors
    /// As [`MemoryModel::range_costs`].
    pub(crate) fn costs_on_few_tiles(
        &self,
        limit: u64,
        stages: usize,
    ) -> Result<RangeCosts, TooManyPlaces> {
        let mut order = self.heaviest_first(1);
        order.truncate(order.len().div_ceil(TILES_FOR_ONE));
        let task = Progress::new().begin("weighing some tiles", Unit::Tiles, 0);
        let costs = Self::costs_on(order, &[(self, limit)], stages, &task)?;
        Ok(costs.into_iter().next().unwrap_or_default())
    }

    /// The costs on the tiles of `order`, in each of these pipelines.
    fn costs_on(
        order: Vec<Range<u32>>,
        pipelines: &[(&Self, u64)],
        stages: usize,
        task: &Task,
    ) -> Result<Vec<RangeCosts>, TooManyPlaces> {
        let sweep = |&(model, limit)| PipelineSweep::new(model, limit, stages);
        let pipelines: Vec<_> = pipelines.iter().map(sweep).collect();
        let model = pipelines[0].model;
        let sweep = RangeSweep {
            model,
            code: CodeByTile::new(model),
            order,
            next: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            pipelines,
        };
        rayon::broadcast(|_| sweep.work(task));
        if sweep.failed.load(Ordering::Relaxed) {
            return Err(TooManyPlaces);
        }
        let costs = sweep.pipelines.into_iter().map(PipelineSweep::into_costs);
        Ok(costs.collect())
    }

    /// All tiles by what the compiler recorded of them, `at_once` neighbours together.
    /// The costs are the same in any order, so it does not matter whether that is
    /// right.
    fn heaviest_first(&self, at_once: u32) -> Vec<Range<u32>> {
        let tiles = self.model.variables.tiles();
        let starts = (0..tiles).step_by(at_once as usize);
        let mut order: Vec<_> = starts.map(|at| at..tiles.min(at + at_once)).collect();
        let heaviest = |own: &Range<u32>| own.clone().map(|tile| self.recorded_on(tile)).max();
        order.sort_by_cached_key(|own| Reverse(heaviest(own)));
        order
    }

    /// Bytes that the compiler recorded of a tile.
    fn recorded_on(&self, tile: u32) -> u64 {
        let own = self.model.recorded.tiles.get(tile as usize);
        own.map_or(0, |own| own.total)
    }
}

/// What all threads share.
struct RangeSweep<'a> {
    /// The model, in any of the pipelines.
    model: &'a MemoryModel<'a>,
    code: CodeByTile,
    /// Tiles that a thread takes together.
    order: Vec<Range<u32>>,
    /// How many of `order` are taken.
    next: AtomicUsize,
    /// Was there a tile with too much on it?
    failed: AtomicBool,
    pipelines: Vec<PipelineSweep<'a>>,
}

/// What is known of one pipeline, by all threads.
struct PipelineSweep<'a> {
    model: &'a MemoryModel<'a>,
    /// Longer ranges than those that need at most this are not looked at.
    limit: u64,
    /// By start: the end (exclusive) of the longest range that fits, as far as
    /// is known.
    ends: Vec<AtomicUsize>,
    /// How many stages a split has at most.
    stages: usize,
    patterns: Option<Patterns>,
    /// The highest bytes on any tile so far that each range needs at least, and in a
    /// pipeline with 0, 1, ... stages after it.
    peaks: RangePeakTable,
}

/// What a thread uses again for each tile.
#[derive(Default)]
struct Scratch {
    uses: NeighbourUses,
    /// Where layers are not made again, and where they are.
    shapes: [Shape; 2],
    tile: Tile,
    narrow: Blocks<u32>,
    wide: Blocks<u64>,
    flows: TileFlows,
    /// By pipeline.
    pipelines: Vec<PipelineScratch>,
}

/// The same for one pipeline, and what it adds to the range that grows.
#[derive(Default)]
struct PipelineScratch {
    additions: RangeAdditions,
    /// Does the range fit so far?
    is_on: bool,
    /// What is added at least.
    least: u64,
    /// By number of stages after the range: what is added beside that.
    columns: Vec<u64>,
}

impl RangeSweep<'_> {
    /// Takes tiles until none is left.
    fn work(&self, task: &Task) {
        let mut scratch = Scratch::default();
        let pipelines = self.pipelines.len();
        scratch.pipelines.resize_with(pipelines, Default::default);
        let mut code = Vec::new();
        while let Some(tiles) = self.order.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let tiles = tiles.clone();
            // What is too much for neighbours together may not be for each of them.
            let all = self.tiles(tiles.clone(), &mut code, &mut scratch);
            let done = all.or_else(|_| {
                tiles
                    .clone()
                    .try_for_each(|tile| self.tiles(tile..tile + 1, &mut code, &mut scratch))
            });
            if done.is_err() {
                self.failed.store(true, Ordering::Relaxed);
            }
            if self.failed.load(Ordering::Relaxed) {
                return;
            }
            task.add(u64::from(tiles.end - tiles.start));
        }
    }

    /// Sweeps neighbouring tiles.
    fn tiles(
        &self,
        tiles: Range<u32>,
        code: &mut Vec<(u32, u64)>,
        scratch: &mut Scratch,
    ) -> Result<(), TooManyPlaces> {
        scratch.uses.gather(self.model, tiles.clone());
        if let Some(flows) = &self.model.flows {
            let uses = &scratch.uses;
            scratch.flows.prepare(self.model, flows, uses);
        }
        for (is_again, shape) in [false, true].into_iter().zip(&mut scratch.shapes) {
            if let Some(own) = self.recomputing(is_again) {
                shape.load(own.model, &scratch.uses)?;
            }
        }
        for number in tiles {
            let code = self.code.on(self.model, number, code);
            self.tile(number, code, scratch)?;
        }
        Ok(())
    }

    /// The first of the pipelines in which layers are made again, or of the others.
    fn recomputing(&self, is_again: bool) -> Option<&PipelineSweep<'_>> {
        let mut pipelines = self.pipelines.iter();
        pipelines.find(|own| own.recomputes_layers() == is_again)
    }

    /// Sweeps one tile: once for all pipelines where the same variables count, which
    /// are fewer where layers are made again.
    fn tile(
        &self,
        number: u32,
        code: &[(u32, u64)],
        scratch: &mut Scratch,
    ) -> Result<(), TooManyPlaces> {
        self.load_additions(number, scratch);
        let Scratch {
            uses,
            shapes,
            tile,
            narrow,
            wide,
            pipelines,
            ..
        } = scratch;
        for (is_again, shape) in [false, true].into_iter().zip(shapes) {
            let Some(first) = self.recomputing(is_again) else {
                continue;
            };
            tile.load(first.model, (uses, shape), number, code)?;
            let own = self.pipelines.iter().zip(&mut *pipelines);
            let mut own: Vec<_> = own
                .filter(|(own, _)| own.recomputes_layers() == is_again)
                .collect();
            // 32 bits hold what a tile has, but not what a file may claim.
            if tile.variable_bytes <= u64::from(u32::MAX) {
                sweep((tile, shape), narrow, &mut own);
            } else {
                sweep((tile, shape), wide, &mut own);
            }
        }
        Ok(())
    }

    /// Takes what each pipeline adds on a tile.
    fn load_additions(&self, number: u32, scratch: &mut Scratch) {
        if let Some(flows) = &self.model.flows {
            let uses = &scratch.uses;
            scratch.flows.load(self.model, flows, uses, number);
        }
        for (own, scratch_of) in self.pipelines.iter().zip(&mut scratch.pipelines) {
            if let (Some(flows), Some(patterns)) = (&own.model.flows, &own.patterns) {
                let additions = &mut scratch_of.additions;
                additions.load(own.model, flows, patterns, &scratch.flows);
            }
        }
    }
}

/// Goes through all starts, and from each as far as the range fits in any of the
/// pipelines, which need the same without what they add.
fn sweep<B: Bytes>(
    (tile, shape): (&Tile, &Shape),
    blocks: &mut Blocks<B>,
    pipelines: &mut [(&PipelineSweep<'_>, &mut PipelineScratch)],
) {
    let layers = pipelines[0].0.model.layers();
    blocks.restart(tile, shape.places, layers);
    let (mut always, mut code) = (vec![0; layers], vec![[0; 4]; layers]);
    for start in 0..layers {
        for entry in &tile.moving[start] {
            blocks.enter(entry.layer as usize, entry.what);
        }
        for entry in &tile.always[start] {
            always[entry.layer as usize] += entry.what;
        }
        for entry in &tile.code[start] {
            let (kind, bytes) = entry.what;
            code[entry.layer as usize][kind] += bytes;
        }
        blocks.begin(start);
        for (own, scratch) in pipelines.iter_mut() {
            own.begin(start, scratch);
        }
        ranges_from(start, (tile, shape), (&always, &code), blocks, pipelines);
    }
}

/// All ranges from `start`, with what enters at each layer.
fn ranges_from<B: Bytes>(
    start: usize,
    (tile, shape): (&Tile, &Shape),
    (always, code): (&[u64], &[[u64; 4]]),
    blocks: &mut Blocks<B>,
    pipelines: &mut [(&PipelineSweep<'_>, &mut PipelineScratch)],
) {
    let model = pipelines[0].0.model;
    let overhead = &model.overhead;
    let mut window: Option<(usize, usize)> = None;
    let (mut own, mut fixed) = (tile.code_everywhere, tile.always_everywhere);
    for last in start..model.layers() {
        let mut known = None;
        for (pipeline, scratch) in pipelines.iter_mut() {
            let own = pipeline.add(start..last + 1, scratch);
            known = known.into_iter().chain(own).min();
        }
        // No pipeline has this range.
        let Some(known) = known else { break };
        for (sum, code) in own.iter_mut().zip(code[last]) {
            *sum += code;
        }
        fixed += always[last];
        window = shape.widened(window, model.layer_window(last));
        blocks.add(last);
        let code: u64 = overhead.capped(tile.number, own).iter().sum();
        let mut total = overhead.fixed(tile.number) + code;
        if let Some(window) = window {
            total += fixed;
            let known = overhead.without_gaps(tile.number, known);
            total += blocks.highest(window, known.saturating_sub(total));
        }
        total += overhead.gaps(tile.number, total);
        for (pipeline, scratch) in pipelines.iter_mut() {
            pipeline.take(start, last, total, scratch);
        }
    }
}

impl<'a> PipelineSweep<'a> {
    fn new(model: &'a MemoryModel<'a>, limit: u64, stages: usize) -> Self {
        let layers = model.layers();
        let stages = stages.min(layers).min(model.most_stages()).max(1);
        let columns = model.flows.as_ref().map_or(0, |_| stages);
        let patterns = |flows| Patterns::new(flows, layers as u32);
        let learnt = model.learnt.as_ref();
        Self {
            model,
            // Where stages needed less, a range over the limit may fit.
            limit: learnt.map_or(limit, |learnt| learnt.predicted(limit)),
            ends: (0..layers).map(|_| AtomicUsize::new(layers)).collect(),
            stages,
            patterns: model.flows.as_ref().map(patterns),
            peaks: RangePeakTable::new(layers, columns + 1),
        }
    }

    fn recomputes_layers(&self) -> bool {
        let flows = self.model.flows.as_ref();
        flows.is_some_and(|flows| flows.recomputes_layers())
    }

    /// Begins with an empty range before the position `start`.
    fn begin(&self, start: usize, scratch: &mut PipelineScratch) {
        scratch.is_on = true;
        scratch.least = 0;
        if self.patterns.is_some() {
            scratch.additions.begin(start);
        }
    }

    /// Adds the last position of `range`, which had all before it. Returns the bytes
    /// that a tile has at least, without what the pipeline adds, where it changes
    /// anything of what is known; `None` if the range does not fit.
    fn add(&self, range: Range<usize>, scratch: &mut PipelineScratch) -> Option<u64> {
        let (start, last) = (range.start, range.end - 1);
        scratch.is_on &= last < self.ends[start].load(Ordering::Relaxed);
        if !scratch.is_on {
            return None;
        }
        if let Some(flows) = &self.model.flows {
            let PipelineScratch {
                additions, columns, ..
            } = scratch;
            additions.add(flows, last);
            let is_whole = range.len() == self.model.layers();
            let is_last = range.end == self.model.layers();
            // Only the last stage has none after it.
            let stages = if is_last { 1 } else { self.stages };
            columns.clear();
            columns.extend((0..stages).map(|after| {
                let depth = flows.depth(&range, after);
                additions.beside(flows, depth, is_whole)
            }));
            scratch.least = additions.least();
        }
        let peaks = self.peaks.of(start, last);
        Some(peaks.lowest(scratch.least, &scratch.columns))
    }

    /// Takes what a tile needs of a range without what the pipeline adds.
    fn take(&self, start: usize, last: usize, bytes: u64, scratch: &mut PipelineScratch) {
        if !scratch.is_on {
            return;
        }
        let least = bytes + scratch.least;
        self.peaks.of(start, last).raise(least, &scratch.columns);
        if least > self.limit {
            self.ends[start].fetch_min(last, Ordering::Relaxed);
            scratch.is_on = false;
        }
    }

    /// The table of all ranges that fit.
    fn into_costs(self) -> RangeCosts {
        let row = |start: usize| {
            let end = self.ends[start].load(Ordering::Relaxed).max(start);
            let ranges = (start..end).map(|last| self.peaks.of(start, last).get(0));
            ranges.collect()
        };
        let least = (0..self.ends.len()).map(row).collect();
        let costs = match &self.patterns {
            None => RangeCosts::new(least),
            Some(_) => RangeCosts::in_pipeline(least, self.stages, |range, after| {
                self.peaks.of(range.start, range.end - 1).get(after + 1)
            }),
        };
        match &self.model.learnt {
            Some(learnt) => costs.learning(learnt, self.stages),
            None => costs,
        }
    }
}

/// A sum of bytes: 32 bits where they hold all of a tile. Changes are added
/// modulo its size, so that a fall is an addition too.
trait Bytes: Copy + Default + Ord + From<u32> + Into<u64> {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
}

impl Bytes for u32 {
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
}

impl Bytes for u64 {
    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn minus(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
}
