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
//! * The first layer at which any tile passes the limit ends the range for all
//!   tiles. The heaviest tiles go first, so that ranges end early and peaks
//!   are high early.

mod blocks;
mod code;
mod tile;

use super::{MemoryModel, RangeCosts};
use crate::model::TooManyPlaces;
use crate::progress::{Progress, Task, Unit};
use blocks::Blocks;
use code::CodeByTile;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tile::Tile;

impl MemoryModel<'_> {
    /// The bytes on the fullest tile of every contiguous range of layers that
    /// needs at most `limit` bytes on each tile.
    ///
    /// # Errors
    /// When there is more on one tile than on any real one.
    pub fn range_costs(&self, limit: u64) -> Result<RangeCosts, TooManyPlaces> {
        self.range_costs_with(limit, &Progress::new())
    }

    /// The same, counting tiles.
    ///
    /// # Errors
    /// As [`MemoryModel::range_costs`].
    pub(crate) fn range_costs_with(
        &self,
        limit: u64,
        progress: &Progress,
    ) -> Result<RangeCosts, TooManyPlaces> {
        let layers = self.layers();
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
            peaks: (0..layers * layers).map(|_| AtomicU64::new(0)).collect(),
        };
        rayon::broadcast(|_| shared.work(&task));
        if shared.failed.load(Ordering::Relaxed) {
            return Err(TooManyPlaces);
        }
        let row = |from: usize| {
            let end = shared.ends[from].load(Ordering::Relaxed).max(from);
            let peaks = &shared.peaks[from * layers..][from..end];
            peaks
                .iter()
                .map(|peak| peak.load(Ordering::Relaxed))
                .collect()
        };
        Ok(RangeCosts::new((0..layers).map(row).collect()))
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
    /// By first and last layer: the highest bytes on any tile so far.
    peaks: Vec<AtomicU64>,
}

impl RangeSweep<'_> {
    /// Takes tiles until none is left.
    fn work(&self, task: &Task) {
        let mut tile = Tile::default();
        let mut code = Vec::new();
        let (mut narrow, mut wide) = (Blocks::<u32>::default(), Blocks::<u64>::default());
        while let Some(&number) = self.order.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let code = self.code.on(self.model, number, &mut code);
            if tile.load(self.model, number, code).is_err() {
                self.failed.store(true, Ordering::Relaxed);
            }
            if self.failed.load(Ordering::Relaxed) {
                break;
            }
            // 32 bits hold what a tile has, but not what a file may claim.
            if tile.variable_bytes <= u64::from(u32::MAX) {
                self.sweep(&tile, &mut narrow);
            } else {
                self.sweep(&tile, &mut wide);
            }
            task.add(1);
        }
    }

    /// Goes through all starts, and from each as far as the range fits.
    fn sweep<B: Bytes>(&self, tile: &Tile, blocks: &mut Blocks<B>) {
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
            self.ranges_from(start, tile, (&always, &code), blocks);
        }
    }

    /// All ranges from `start`, with what enters at each layer.
    fn ranges_from<B: Bytes>(
        &self,
        start: usize,
        tile: &Tile,
        (always, code): (&[u64], &[[u64; 4]]),
        blocks: &mut Blocks<B>,
    ) {
        let overhead = &self.model.overhead;
        let peaks = &self.peaks[start * self.model.layers()..];
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
            let code: u64 = overhead.capped(tile.number, own).iter().sum();
            let mut total = overhead.fixed(tile.number) + code;
            if let Some(window) = window {
                total += fixed;
                let known = peaks[last].load(Ordering::Relaxed);
                let known = overhead.without_gaps(tile.number, known);
                total += blocks.highest(window, known.saturating_sub(total));
            }
            total += overhead.gaps(tile.number, total);
            peaks[last].fetch_max(total, Ordering::Relaxed);
            if total > self.limit {
                self.ends[start].fetch_min(last, Ordering::Relaxed);
                break;
            }
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
