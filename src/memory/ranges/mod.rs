//! The peak of every range of layers that can fit.
//!
//! Rebuilding each range from its operations is hundreds of times too slow. Instead, neighbouring
//! tiles are examined side by side:
//!
//! * A variable that the layers l1 < l2 < ... use enters a growing range once. For two consecutive
//!   users (p, n) it enters at layer n of every range that starts after p; so entries are kept by
//!   the first start from which they count, p + 1.
//! * A peak can lie at few steps of a tile only: where a variable ceases to be live after another
//!   began, and at the ends of layers' windows. Live ranges are kept as places in the list of these
//!   steps (`variables`).
//! * For each layer, the bytes that enter there are kept as changes from place to place. Sums over
//!   blocks of places bound the live bytes of a range in each block; only blocks whose bound
//!   exceeds the peak of the tiles and blocks so far are summed place by place (`blocks`).
//! * Sums begin with the bytes of every stage: by the full rules, variables that no operation uses,
//!   and code that none explains. Code of each kind is bounded by its recorded bytes on the tile.
//! * In a pipeline, each number of stages after a range has a column, with the bytes that the
//!   pipeline adds on the tile (`RangeAdditions`). A tile is examined where it can raise any
//!   column.
//! * The first layer at which any tile exceeds the limit ends the range for all tiles. The heaviest
//!   tiles go first, so that ranges end early and peaks are high early.

mod blocks;
mod code;
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
use pipelines::{PipelineRanges, PipelineScratch};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tiles::{Entered, OnTiles, examine};
use variables::EnteringVariables;

/// One tile out of this many gives a rough estimate of the costs.
const TILES_FOR_ONE: usize = 64;

/// Maximum number of sums by layer and place of tiles that are examined together by one thread: with
/// more, reading them takes as long as examining each tile by itself.
const MAX_CELLS: usize = 1 << 21;

/// The table of the only pipeline.
fn of_one(costs: Vec<RangeCosts>) -> RangeCosts {
    costs.into_iter().next().unwrap_or_default()
}

impl MemoryModel<'_> {
    /// The bytes on the fullest tile of every contiguous range of layers that needs at most `limit`
    /// bytes on each tile; in a pipeline, also for each number of stages after the range.
    ///
    /// # Errors
    /// When one tile has more variables or code than any real tile.
    pub fn range_costs(&self, limit: u64) -> Result<RangeCosts, TooManyPlaces> {
        let costs = Self::costs_in_all(&[(self, limit)], self.layers(), &Progress::new())?;
        Ok(of_one(costs))
    }

    /// Maximum number of stages that [`MemoryModel::range_costs`] covers: all, or in a pipeline as
    /// many as the table has room for.
    pub fn most_stages(&self) -> usize {
        match &self.flows {
            None => usize::MAX,
            Some(_) => (limits::RANGE_COSTS / self.layers().pow(2).max(1)).max(2) - 1,
        }
    }

    /// [`MemoryModel::range_costs`] for one model in several pipelines of at most `stages` stages,
    /// each with its limit, in one pass over the tiles; counts tiles in `progress`.
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
        let task = progress.begin("computing ranges of layers", Unit::Tiles, tiles.into());
        let ranges = |&pipeline| PipelineRanges::new(pipeline, stages, &|_| true);
        let pipelines = pipelines.iter().map(ranges).collect();
        Self::costs_on(model.in_groups(), pipelines, &task)
    }

    /// The bytes on the fullest tile of every range that begins at one of `starts`, without a limit. The table
    /// has no ranges from other starts.
    ///
    /// # Errors
    /// As [`MemoryModel::range_costs`].
    pub(crate) fn costs_from(
        &self,
        starts: &BTreeSet<usize>,
        stages: usize,
        progress: &Progress,
    ) -> Result<RangeCosts, TooManyPlaces> {
        let tiles = self.model.variables.tiles();
        let task = progress.begin("computing other splits", Unit::Tiles, tiles.into());
        let is_wanted = |start| starts.contains(&start);
        let ranges = PipelineRanges::new((self, u64::MAX), stages, &is_wanted);
        let costs = Self::costs_on(self.in_groups(), vec![ranges], &task)?;
        Ok(of_one(costs))
    }

    /// Costs of ranges on the heaviest tiles only: lower bounds on the costs on all tiles.
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
        let ranges = PipelineRanges::new((self, limit), stages, &|_| true);
        let costs = Self::costs_on(order, vec![ranges], &task)?;
        Ok(of_one(costs))
    }

    /// The costs on the tiles of `order` in each pipeline.
    fn costs_on(
        order: Vec<Range<u32>>,
        pipelines: Vec<PipelineRanges<'_>>,
        task: &Task,
    ) -> Result<Vec<RangeCosts>, TooManyPlaces> {
        let model = pipelines[0].model;
        let pass = RangePass {
            model,
            order,
            next: AtomicUsize::new(0),
            are_apart: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            alike: alike(&pipelines),
            pipelines,
        };
        rayon::broadcast(|_| pass.work(task));
        if pass.failed.load(Ordering::Relaxed) {
            return Err(TooManyPlaces);
        }
        let costs = pass.pipelines.into_iter().map(PipelineRanges::into_costs);
        Ok(costs.collect())
    }

    /// All tiles in groups of neighbours, heaviest first.
    fn in_groups(&self) -> Vec<Range<u32>> {
        self.heaviest_first(neighbours::at_once(self.model.variables.tiles()))
    }

    /// Groups of `at_once` neighbouring tiles, from the most recorded bytes on. Costs do not depend
    /// on the order, so the recorded bytes need not be right.
    fn heaviest_first(&self, at_once: u32) -> Vec<Range<u32>> {
        let tiles = self.model.variables.tiles();
        let starts = (0..tiles).step_by(at_once as usize);
        let mut order: Vec<_> = starts.map(|at| at..tiles.min(at + at_once)).collect();
        let recorded = |tile: u32| self.model.recorded.tiles.get(tile as usize);
        let total = |tile: u32| recorded(tile).map_or(0, |bytes| bytes.total);
        let heaviest = |tiles: &Range<u32>| tiles.clone().map(total).max();
        order.sort_by_cached_key(|tiles| Reverse(heaviest(tiles)));
        order
    }
}

/// State that all threads share.
struct RangePass<'a> {
    /// The model in one of the pipelines.
    model: &'a MemoryModel<'a>,
    /// Groups of tiles; a thread takes one at a time.
    order: Vec<Range<u32>>,
    /// Number of groups that were taken.
    next: AtomicUsize,
    /// Was a group too large to be examined together? Then most others are too.
    are_apart: AtomicBool,
    /// Did a tile have too many variables or too much code?
    failed: AtomicBool,
    pipelines: Vec<PipelineRanges<'a>>,
    /// Sets of pipelines that are examined together; each has a flag by pipeline.
    alike: Vec<Vec<bool>>,
}

/// Sets of pipelines in which the same variables count, so that they are examined together.
fn alike(pipelines: &[PipelineRanges<'_>]) -> Vec<Vec<bool>> {
    let mut found: Vec<Vec<bool>> = Vec::new();
    for (number, pipeline) in pipelines.iter().enumerate() {
        if !found.iter().any(|alike| alike[number]) {
            let alike = pipelines.iter().map(|other| pipeline.counts_as(other));
            found.push(alike.collect());
        }
    }
    found
}

type RangeScratches = Widths<RangeScratch<i32, LANES>, RangeScratch<i32, 1>, RangeScratch<u64, 1>>;

/// Buffers for some tiles. Bytes are by lane.
#[derive(Default)]
struct RangeScratch<B, const N: usize> {
    uses: NeighbourUses<N>,
    variables: EnteringVariables<N>,
    flows: TileFlows<N>,
    entered: Entered<B, N>,
    /// By pipeline.
    pipelines: Vec<PipelineScratch<N>>,
}

impl RangePass<'_> {
    /// Takes groups of tiles until none is left.
    fn work(&self, task: &Task) {
        let mut scratches = RangeScratches::default();
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

    /// Examines a group of neighbouring tiles: together if possible, else one by one.
    fn neighbours(
        &self,
        tiles: Range<u32>,
        scratches: &mut RangeScratches,
    ) -> Result<(), TooManyPlaces> {
        let Widths {
            together,
            single,
            wide,
        } = scratches;
        if tiles.len() > 1 && !self.are_apart.load(Ordering::Relaxed) {
            // What is too much for the group may not be too much for each tile.
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

    /// Examines tiles in lanes: once for each set of pipelines in which the same variables count.
    /// Returns whether it did: not if sums of `B` may overflow, or if `N` lanes have too many sums.
    fn tiles<B: Bytes, const N: usize>(
        &self,
        tiles: Range<u32>,
        scratch: &mut RangeScratch<B, N>,
    ) -> Result<bool, TooManyPlaces> {
        scratch.uses.gather(self.model, tiles.clone());
        self.load_additions(scratch)?;
        let RangeScratch {
            uses,
            variables,
            flows,
            entered,
            pipelines,
        } = scratch;
        code::load(self.model, &tiles, &mut entered.code)?;
        for alike in &self.alike {
            let paired = self.pipelines.iter().zip(&mut *pipelines).zip(alike);
            let paired = paired.filter(|(_, is_alike)| **is_alike);
            let mut paired: Vec<_> = paired.map(|(pair, _)| pair).collect();
            let Some((first, _)) = paired.first() else {
                continue;
            };
            variables.load(first.model, uses, &mut entered.always)?;
            let cells = variables.places.saturating_mul(first.model.layers());
            if variables.most > B::HIGHEST || (N > 1 && cells > MAX_CELLS / N) {
                return Ok(false);
            }
            let on_tiles = OnTiles {
                tiles: tiles.clone(),
                uses,
                variables,
                flows,
            };
            examine(&on_tiles, entered, &mut paired);
        }
        Ok(true)
    }

    /// Loads what each pipeline adds on some tiles.
    fn load_additions<B: Bytes, const N: usize>(
        &self,
        scratch: &mut RangeScratch<B, N>,
    ) -> Result<(), TooManyPlaces> {
        let RangeScratch {
            uses,
            flows: tile_flows,
            pipelines,
            ..
        } = scratch;
        pipelines.resize_with(self.pipelines.len(), Default::default);
        if let Some(flows) = &self.model.flows {
            tile_flows.load(self.model, flows, uses);
        }
        let mut pipelines = self.pipelines.iter().zip(pipelines);
        pipelines.try_for_each(|(pipeline, scratch)| pipeline.load((tile_flows, uses), scratch))
    }
}
