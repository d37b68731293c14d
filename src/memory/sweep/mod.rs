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
mod tile;

use super::pipeline::{Patterns, RangeAdditions, TileFlows};
use super::{MemoryModel, RangeCosts};
use crate::limits;
use crate::model::TooManyPlaces;
use crate::progress::{Progress, Task, Unit};
use blocks::Blocks;
use code::CodeByTile;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tile::Tile;

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
        let stages = stages.min(self.layers()).min(self.most_stages()).max(1);
        let Some(learnt) = &self.learnt else {
            return self.predicted_costs(limit, stages, progress);
        };
        // Where stages needed less, a range over the limit may fit.
        let costs = self.predicted_costs(learnt.predicted(limit), stages, progress)?;
        Ok(costs.learning(learnt, stages))
    }

    /// The same without what was learnt.
    fn predicted_costs(
        &self,
        limit: u64,
        stages: usize,
        progress: &Progress,
    ) -> Result<RangeCosts, TooManyPlaces> {
        let layers = self.layers();
        let stages = self.flows.as_ref().map_or(0, |_| stages);
        let patterns = |flows| Patterns::new(flows, layers as u32);
        let tiles = u64::from(self.model.variables.tiles());
        let task = progress.begin("weighing ranges of layers", Unit::Tiles, tiles);
        let shared = RangeSweep {
            model: self,
            limit,
            code: CodeByTile::new(self),
            order: self.heaviest_first(),
            next: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            ends: (0..layers).map(|_| AtomicUsize::new(layers)).collect(),
            stages,
            patterns: self.flows.as_ref().map(patterns),
            peaks: (0..layers * layers * (stages + 1))
                .map(|_| AtomicU64::new(0))
                .collect(),
        };
        rayon::broadcast(|_| shared.work(&task));
        if shared.failed.load(Ordering::Relaxed) {
            return Err(TooManyPlaces);
        }
        Ok(shared.into_costs())
    }

    /// All tiles by what the compiler recorded of them. The costs are the same
    /// in any order, so it does not matter whether that is right.
    fn heaviest_first(&self) -> Vec<u32> {
        let recorded = &self.model.recorded.tiles;
        let bytes = |tile: u32| recorded.get(tile as usize).map_or(0, |own| own.total);
        let mut order: Vec<u32> = (0..self.model.variables.tiles()).collect();
        order.sort_by_key(|&tile| Reverse(bytes(tile)));
        order
    }
}

/// What all threads share.
struct RangeSweep<'a> {
    model: &'a MemoryModel<'a>,
    limit: u64,
    code: CodeByTile,
    order: Vec<u32>,
    /// How many tiles of `order` are taken.
    next: AtomicUsize,
    /// Was there a tile with too much on it?
    failed: AtomicBool,
    /// By start: the end (exclusive) of the longest range that fits, as far as
    /// is known.
    ends: Vec<AtomicUsize>,
    /// In a pipeline: how many stages a split has at most; else 0.
    stages: usize,
    patterns: Option<Patterns>,
    /// By first and last layer: the highest bytes on any tile so far that the
    /// range needs at least, and with 0, 1, ... stages after it.
    peaks: Vec<AtomicU64>,
}

/// What a thread uses again for each tile, for the pipeline.
#[derive(Default)]
struct PipelineScratch {
    flows: TileFlows,
    additions: RangeAdditions,
    /// By number of stages after a range: what is added.
    columns: Vec<u64>,
}

impl RangeSweep<'_> {
    /// Takes tiles until none is left.
    fn work(&self, task: &Task) {
        let mut tile = Tile::default();
        let mut code = Vec::new();
        let mut pipeline = PipelineScratch::default();
        let (mut narrow, mut wide) = (Blocks::<u32>::default(), Blocks::<u64>::default());
        while let Some(&number) = self.order.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let code = self.code.on(self.model, number, &mut code);
            if tile.load(self.model, number, code).is_err() {
                self.failed.store(true, Ordering::Relaxed);
            }
            if self.failed.load(Ordering::Relaxed) {
                break;
            }
            if let (Some(flows), Some(patterns)) = (&self.model.flows, &self.patterns) {
                pipeline.flows.load(self.model, flows, number);
                let additions = &mut pipeline.additions;
                additions.load(self.model, flows, patterns, &pipeline.flows);
            }
            // 32 bits hold what a tile has, but not what a file may claim.
            if tile.variable_bytes <= u64::from(u32::MAX) {
                self.sweep(&tile, &mut narrow, &mut pipeline);
            } else {
                self.sweep(&tile, &mut wide, &mut pipeline);
            }
            task.add(1);
        }
    }

    /// Goes through all starts, and from each as far as the range fits.
    fn sweep<B: Bytes>(&self, tile: &Tile, blocks: &mut Blocks<B>, pipeline: &mut PipelineScratch) {
        let layers = self.model.layers();
        blocks.restart(tile, layers);
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
            if self.stages > 0 {
                pipeline.additions.begin(start);
            }
            self.ranges_from(start, tile, (&always, &code), blocks, pipeline);
        }
    }

    /// All ranges from `start`, with what enters at each layer.
    fn ranges_from<B: Bytes>(
        &self,
        start: usize,
        tile: &Tile,
        (always, code): (&[u64], &[[u64; 4]]),
        blocks: &mut Blocks<B>,
        pipeline: &mut PipelineScratch,
    ) {
        let overhead = &self.model.overhead;
        let mut window: Option<(usize, usize)> = None;
        let (mut own, mut fixed) = (tile.code_everywhere, tile.always_everywhere);
        for last in start..self.model.layers() {
            if last >= self.ends[start].load(Ordering::Relaxed) {
                break;
            }
            for (sum, code) in own.iter_mut().zip(code[last]) {
                *sum += code;
            }
            fixed += always[last];
            window = tile.widened(window, self.model.layer_window(last));
            blocks.add(last);
            let peaks = self.peaks(start, last);
            let least = self.add_columns(start..last + 1, pipeline);
            let code: u64 = overhead.capped(tile.number, own).iter().sum();
            let mut total = overhead.fixed(tile.number) + code;
            if let Some(window) = window {
                total += fixed;
                let known = lowest_known(peaks, least, &pipeline.columns);
                let known = overhead.without_gaps(tile.number, known);
                total += blocks.highest(window, known.saturating_sub(total));
            }
            total += overhead.gaps(tile.number, total) + least;
            peaks[0].fetch_max(total, Ordering::Relaxed);
            for (peak, beside) in peaks[1..].iter().zip(&pipeline.columns) {
                peak.fetch_max(total + beside, Ordering::Relaxed);
            }
            if total > self.limit {
                self.ends[start].fetch_min(last, Ordering::Relaxed);
                break;
            }
        }
    }

    /// What is known of the range from `start` to `last`: at least, and by the
    /// number of stages after it.
    fn peaks(&self, start: usize, last: usize) -> &[AtomicU64] {
        let columns = self.stages + 1;
        &self.peaks[(start * self.model.layers() + last) * columns..][..columns]
    }

    /// Adds the last position of `range` to what the pipeline adds. Returns what
    /// that is at least; the columns have what comes beside it.
    fn add_columns(&self, range: Range<usize>, pipeline: &mut PipelineScratch) -> u64 {
        let Some(flows) = &self.model.flows else {
            return 0;
        };
        let PipelineScratch {
            additions, columns, ..
        } = pipeline;
        additions.add(flows, range.end - 1);
        let is_whole = range.len() == self.model.layers();
        let is_last = range.end == self.model.layers();
        // Only the last stage has none after it.
        let stages = if is_last { 1 } else { self.stages };
        columns.clear();
        columns.extend((0..stages).map(|after| {
            let depth = flows.depth(&range, after);
            additions.beside(flows, depth, is_whole)
        }));
        additions.least()
    }

    /// The table of all ranges that fit.
    fn into_costs(self) -> RangeCosts {
        let layers = self.model.layers();
        let load = |start: usize, last: usize, column: usize| {
            self.peaks(start, last)[column].load(Ordering::Relaxed)
        };
        let row = |start: usize| {
            let end = self.ends[start].load(Ordering::Relaxed).max(start);
            (start..end).map(|last| load(start, last, 0)).collect()
        };
        let least = (0..layers).map(row).collect();
        if self.stages == 0 {
            return RangeCosts::new(least);
        }
        RangeCosts::in_pipeline(least, self.stages, |range, after| {
            load(range.start, range.end - 1, after + 1)
        })
    }
}

/// The number of bytes that a tile needs at least so that it changes anything of
/// what is known of a range, without what a pipeline adds to it.
fn lowest_known(peaks: &[AtomicU64], least: u64, columns: &[u64]) -> u64 {
    let known = |(peak, added): (&AtomicU64, u64)| {
        let known = peak.load(Ordering::Relaxed);
        known.saturating_sub(least + added)
    };
    let added = [0].into_iter().chain(columns.iter().copied());
    peaks.iter().zip(added).map(known).min().unwrap_or(0)
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
