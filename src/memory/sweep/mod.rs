//! The peak of every range of layers that can fit.
//!
//! Rebuilding each range from its operations is hundreds of times too slow.
//! Instead, some neighbouring tiles at a time, side by side:
//!
//! * A variable that the layers l1 < l2 < ... use enters a growing range once.
//!   For the consecutive uses (p, n) it enters at layer n of every range that
//!   starts after p, so uses are sorted by n, and by p the starts from which
//!   they count.
//! * A peak can lie only on few steps of a tile: where something ends to be
//!   live after something began, and at the ends of layers' windows.
//!   All ranges are kept as places in the list of these steps (`variables`).
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
mod entries;
mod peaks;
mod pipelines;
mod tiles;
mod variables;

use super::lanes::{Bytes, LANES};
use super::neighbours::{self, NeighbourUses, Widths};
use super::pipeline::TileFlows;
use super::{MemoryModel, RangeCosts};
use crate::limits;
use crate::model::TooManyPlaces;
use crate::progress::{Progress, Task, Unit};
use code::{CodeByTiles, SweepCode};
use pipelines::{PipelineScratch, PipelineSweep};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tiles::{Entered, OnTiles, sweep};
use variables::SweepVariables;

/// Of this many tiles one tells roughly what all need.
const TILES_FOR_ONE: usize = 64;

/// How many sums by layer and step one thread keeps of tiles that are swept together:
/// more would not be read faster than those of each tile.
const MAX_CELLS: usize = 1 << 21;

impl MemoryModel<'_> {
    /// The bytes on the fullest tile of every contiguous range of layers that
    /// needs at most `limit` bytes on each tile, and in a pipeline what it needs with
    /// each number of stages after it.
    ///
    /// # Errors
    /// When there is more on one tile than on any real one.
    pub fn range_costs(&self, limit: u64) -> Result<RangeCosts, TooManyPlaces> {
        self.range_costs_with(limit, self.layers(), &Progress::new())
    }

    /// How many stages [`MemoryModel::range_costs`] knows the costs of at most:
    /// all, or in a pipeline as many as there is room for.
    pub fn most_stages(&self) -> usize {
        match &self.flows {
            None => usize::MAX,
            Some(_) => (limits::RANGE_COSTS / self.layers().pow(2).max(1)).max(2) - 1,
        }
    }

    /// [`MemoryModel::range_costs`] for a pipeline of at most `stages` stages, counting tiles.
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

    /// [`MemoryModel::range_costs`] for one model in several pipelines, each with its limit, in one
    /// pass over the tiles.
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
        let at_once = neighbours::at_once(tiles);
        let order = model.heaviest_first(at_once);
        let task = progress.begin("computing ranges of layers", Unit::Tiles, tiles.into());
        Self::costs_on((order, at_once), pipelines, stages, &task)
    }

    /// Bytes of ranges on a few of the tiles, than which all together need no less: the
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
        let task = Progress::new().begin("computing some tiles", Unit::Tiles, 0);
        // All tiles have the same list of code, which takes no time to make.
        let tiles = self.model.variables.tiles();
        let costs = Self::costs_on((order, tiles), &[(self, limit)], stages, &task)?;
        Ok(costs.into_iter().next().unwrap_or_default())
    }

    /// The costs on the tiles of `order` in each of these pipelines. Code is sought among
    /// that of `at_once` neighbours.
    fn costs_on(
        (order, at_once): (Vec<Range<u32>>, u32),
        pipelines: &[(&Self, u64)],
        stages: usize,
        task: &Task,
    ) -> Result<Vec<RangeCosts>, TooManyPlaces> {
        let sweep = |&(model, limit)| PipelineSweep::new(model, limit, stages);
        let pipelines: Vec<_> = pipelines.iter().map(sweep).collect();
        let model = pipelines[0].model;
        let sweep = RangeSweep {
            model,
            code: CodeByTiles::new(model, at_once),
            order,
            next: AtomicUsize::new(0),
            are_apart: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            alike: alike(&pipelines),
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
        let heaviest = |tiles: &Range<u32>| tiles.clone().map(|tile| self.recorded_on(tile)).max();
        order.sort_by_cached_key(|tiles| Reverse(heaviest(tiles)));
        order
    }

    /// Bytes that the compiler recorded of a tile.
    fn recorded_on(&self, tile: u32) -> u64 {
        let recorded = self.model.recorded.tiles.get(tile as usize);
        recorded.map_or(0, |bytes| bytes.total)
    }
}

/// Shared by all threads.
struct RangeSweep<'a> {
    /// The model, in any of the pipelines.
    model: &'a MemoryModel<'a>,
    code: CodeByTiles,
    /// Tiles that a thread takes together.
    order: Vec<Range<u32>>,
    /// How many of `order` are taken.
    next: AtomicUsize,
    /// Were neighbours too much to be swept together? Then others mostly are too.
    are_apart: AtomicBool,
    /// Was there a tile with too much on it?
    failed: AtomicBool,
    pipelines: Vec<PipelineSweep<'a>>,
    /// Which of these are swept together: a list for each time, by pipeline.
    alike: Vec<Vec<bool>>,
}

/// Which pipelines are swept together: those where the same variables count.
fn alike(pipelines: &[PipelineSweep<'_>]) -> Vec<Vec<bool>> {
    let mut found: Vec<Vec<bool>> = Vec::new();
    for (number, pipeline) in pipelines.iter().enumerate() {
        if !found.iter().any(|alike| alike[number]) {
            let alike = pipelines.iter().map(|other| pipeline.counts_as(other));
            found.push(alike.collect());
        }
    }
    found
}

type SweepScratches = Widths<SweepScratch<i32, LANES>, SweepScratch<i32, 1>, SweepScratch<i64, 1>>;

/// Sums of some tiles. Bytes are by lane.
#[derive(Default)]
struct SweepScratch<B, const N: usize> {
    uses: NeighbourUses<N>,
    variables: SweepVariables<N>,
    code: SweepCode<N>,
    flows: TileFlows<N>,
    entered: Entered<B, N>,
    /// By pipeline.
    pipelines: Vec<PipelineScratch<N>>,
}

impl RangeSweep<'_> {
    /// Takes tiles until none is left.
    fn work(&self, task: &Task) {
        let mut scratches = SweepScratches::default();
        while let Some(tiles) = self.order.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            if self.neighbours(tiles.clone(), &mut scratches).is_err() {
                self.failed.store(true, Ordering::Relaxed);
            }
            if self.failed.load(Ordering::Relaxed) {
                return;
            }
            task.add(u64::from(tiles.end - tiles.start));
        }
    }

    /// Sweeps neighbouring tiles: together if they can be, else each of them.
    fn neighbours(
        &self,
        tiles: Range<u32>,
        scratches: &mut SweepScratches,
    ) -> Result<(), TooManyPlaces> {
        let Widths {
            together,
            single,
            wide,
        } = scratches;
        if tiles.len() > 1 && !self.are_apart.load(Ordering::Relaxed) {
            // Too much for neighbours together may not be too much for each of them.
            if matches!(self.tiles(tiles.clone(), together), Ok(true)) {
                return Ok(());
            }
            self.are_apart.store(true, Ordering::Relaxed);
        }
        for tile in tiles {
            if !self.tiles(tile..tile + 1, single)? {
                self.tiles(tile..tile + 1, wide)?;
            }
        }
        Ok(())
    }

    /// Sweeps tiles in lanes: once for all pipelines where the same variables count,
    /// which are fewer where layers are recomputed. Returns whether it did: not if sums
    /// of `B` do not hold what is there, or `N` lanes of them are too many.
    fn tiles<B: Bytes, const N: usize>(
        &self,
        tiles: Range<u32>,
        scratch: &mut SweepScratch<B, N>,
    ) -> Result<bool, TooManyPlaces> {
        scratch.uses.gather(self.model, tiles.clone());
        self.load_additions(scratch);
        let SweepScratch {
            uses,
            variables,
            code,
            entered,
            pipelines,
            ..
        } = scratch;
        code.load(self.model, &self.code, tiles.clone())?;
        for alike in &self.alike {
            let paired = self.pipelines.iter().zip(&mut *pipelines).zip(alike);
            let paired = paired.filter(|(_, is_alike)| **is_alike);
            let mut paired: Vec<_> = paired.map(|(pair, _)| pair).collect();
            let Some((first, _)) = paired.first() else {
                continue;
            };
            variables.load(first.model, uses)?;
            let cells = variables.places.saturating_mul(first.model.layers());
            if variables.most > B::HIGHEST || (N > 1 && cells > MAX_CELLS / N) {
                return Ok(false);
            }
            let on_tiles = OnTiles {
                tiles: tiles.clone(),
                uses,
                variables,
                code,
            };
            sweep(&on_tiles, entered, &mut paired);
        }
        Ok(true)
    }

    /// Takes what each pipeline adds on some tiles.
    fn load_additions<B: Bytes, const N: usize>(&self, scratch: &mut SweepScratch<B, N>) {
        let SweepScratch {
            uses,
            flows: tile_flows,
            pipelines,
            ..
        } = scratch;
        pipelines.resize_with(self.pipelines.len(), Default::default);
        if let Some(flows) = &self.model.flows {
            tile_flows.load(self.model, flows, uses);
        }
        for (pipeline, scratch) in self.pipelines.iter().zip(pipelines) {
            pipeline.load((tile_flows, uses), scratch);
        }
    }
}
