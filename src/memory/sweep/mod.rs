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
mod variables;

use super::lanes::{Bytes, LANES, add_up};
use super::neighbours::{self, NeighbourUses, Widths};
use super::pipeline::TileFlows;
use super::{MemoryModel, RangeCosts};
use crate::limits;
use crate::model::TooManyPlaces;
use crate::progress::{Progress, Task, Unit};
use blocks::Blocks;
use code::{CodeByTiles, SweepCode};
use pipelines::{PipelineScratch, PipelineSweep};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use variables::SweepVariables;

/// Of this many tiles one tells roughly what all need.
const TILES_FOR_ONE: usize = 64;

/// How many sums by layer and step one thread keeps of tiles that are swept together:
/// more would not be read faster than those of each tile.
const MAX_CELLS: usize = 1 << 21;

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
        let at_once = neighbours::at_once(tiles);
        let order = model.heaviest_first(at_once);
        let task = progress.begin("weighing ranges of layers", Unit::Tiles, tiles.into());
        Self::costs_on((order, at_once), pipelines, stages, &task)
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
    for (number, own) in pipelines.iter().enumerate() {
        if !found.iter().any(|alike| alike[number]) {
            let alike = pipelines.iter().map(|other| own.counts_as(other));
            found.push(alike.collect());
        }
    }
    found
}

type SweepScratches = Widths<SweepScratch<i32, LANES>, SweepScratch<i32, 1>, SweepScratch<i64, 1>>;

/// What is on some tiles. Bytes are by lane.
struct SweepScratch<B, const N: usize> {
    uses: NeighbourUses<N>,
    variables: SweepVariables<N>,
    code: SweepCode<N>,
    flows: TileFlows<N>,
    entered: Entered<B, N>,
    /// By pipeline.
    pipelines: Vec<PipelineScratch<N>>,
}

/// What entered at each layer up to some start.
struct Entered<B, const N: usize> {
    /// Variables that are not live on all steps.
    blocks: Blocks<B, N>,
    /// By layer: variables that are.
    always: Vec<[u64; N]>,
    /// By layer, then by kind.
    code: Vec<[[u64; N]; 4]>,
}

impl<B: Default, const N: usize> Default for SweepScratch<B, N> {
    fn default() -> Self {
        Self {
            uses: NeighbourUses::default(),
            variables: SweepVariables::default(),
            code: SweepCode::default(),
            flows: TileFlows::default(),
            entered: Entered {
                blocks: Blocks::default(),
                always: Vec::new(),
                code: Vec::new(),
            },
            pipelines: Vec::new(),
        }
    }
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
            // What is too much for neighbours together may not be for each of them.
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
            let own = self.pipelines.iter().zip(&mut *pipelines).zip(alike);
            let own = own.filter(|(_, is_alike)| **is_alike);
            let mut own: Vec<_> = own.map(|(own, _)| own).collect();
            let Some((first, _)) = own.first() else {
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
            sweep(&on_tiles, entered, &mut own);
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
        for (own, scratch) in self.pipelines.iter().zip(pipelines) {
            own.load((tile_flows, uses), scratch);
        }
    }
}

/// What some tiles have, by lane.
struct OnTiles<'a, const N: usize> {
    tiles: Range<u32>,
    uses: &'a NeighbourUses<N>,
    variables: &'a SweepVariables<N>,
    code: &'a SweepCode<N>,
}

/// Pipelines, each with what it adds.
type InPipelines<'a, 'b, const N: usize> = [(&'a PipelineSweep<'b>, &'a mut PipelineScratch<N>)];

/// Goes through all starts, and from each as far as the range fits in any of the
/// pipelines, which need the same without what they add.
fn sweep<B: Bytes, const N: usize>(
    on_tiles: &OnTiles<'_, N>,
    entered: &mut Entered<B, N>,
    pipelines: &mut InPipelines<'_, '_, N>,
) {
    let layers = pipelines[0].0.model.layers();
    entered.restart(on_tiles, layers);
    for start in 0..layers {
        entered.enter(start, on_tiles);
        for (own, scratch) in pipelines.iter_mut() {
            own.begin(start, scratch);
        }
        ranges_from(start, on_tiles, entered, pipelines);
    }
}

impl<B: Bytes, const N: usize> Entered<B, N> {
    /// Begins anew, with what every range has.
    fn restart(&mut self, on_tiles: &OnTiles<'_, N>, layers: usize) {
        self.blocks.restart(on_tiles.variables.places, layers);
        for &what in &on_tiles.variables.everywhere {
            let bytes = on_tiles.uses.bytes(what.row as usize);
            self.blocks.enter_all(what, bytes);
        }
        self.always.clear();
        self.always.resize(layers, [0; N]);
        self.code.clear();
        self.code.resize(layers, [[0; N]; 4]);
    }

    /// Enters what counts from `start` on.
    fn enter(&mut self, start: usize, on_tiles: &OnTiles<'_, N>) {
        let OnTiles {
            uses,
            variables,
            code,
            ..
        } = on_tiles;
        for (layer, what) in variables.moving.from(start) {
            let bytes = uses.bytes(what.row as usize);
            self.blocks.enter(layer, what, bytes);
        }
        for (layer, row) in variables.always.from(start) {
            let bytes = uses.bytes(row as usize).map(u64::from);
            add_up(&mut self.always[layer], &bytes);
        }
        for (layer, (kind, number)) in code.entries.from(start) {
            add_up(&mut self.code[layer][kind], code.bytes(number));
        }
        self.blocks.begin(start);
    }
}

/// All ranges from `start`, with what enters at each layer.
fn ranges_from<B: Bytes, const N: usize>(
    start: usize,
    on_tiles: &OnTiles<'_, N>,
    entered: &mut Entered<B, N>,
    pipelines: &mut InPipelines<'_, '_, N>,
) {
    let model = pipelines[0].0.model;
    let variables = on_tiles.variables;
    let tiles = || on_tiles.tiles.clone();
    let mut window: Option<(usize, usize)> = None;
    let (mut code, mut fixed) = (on_tiles.code.everywhere, variables.always_everywhere);
    for last in start..model.layers() {
        let mut known = None;
        for (pipeline, scratch) in pipelines.iter_mut() {
            known = lowest(known, pipeline.add(start..last + 1, scratch));
        }
        // No pipeline has this range.
        let Some(known) = known else { break };
        for (sums, own) in code.iter_mut().zip(&entered.code[last]) {
            add_up(sums, own);
        }
        add_up(&mut fixed, &entered.always[last]);
        window = variables.widened(window, model.layer_window(last));
        entered.blocks.add(last);
        let code_bytes = model.overhead.code_on(tiles(), &code);
        let mut totals = code_bytes;
        if let Some(window) = window {
            add_up(&mut totals, &fixed);
            for (pipeline, scratch) in pipelines.iter_mut() {
                pipeline.take_update((start, last), (tiles(), &totals), scratch);
            }
            let known = model.overhead.without_gaps_on(tiles(), &known);
            let left = std::array::from_fn(|lane| known[lane].saturating_sub(totals[lane]));
            let highest = entered.blocks.highest(window, left.map(B::at_most));
            add_up(&mut totals, &highest.map(B::sum));
        }
        let without_gaps = totals;
        model.overhead.add_gaps_on(tiles(), &mut totals);
        // Only more than is known changes anything; of 0 it is not told whether it does.
        let changes = |(&total, &known): (&u64, &u64)| total > known || known == 0;
        if totals.iter().zip(&known).any(changes) {
            for (pipeline, scratch) in pipelines.iter_mut() {
                pipeline.take(start, last, &totals, scratch);
            }
            if pipelines.iter().any(|(own, _)| own.has_phases()) {
                let gaps = std::array::from_fn(|lane| totals[lane] - without_gaps[lane]);
                let mut beside = code_bytes;
                add_up(&mut beside, &fixed);
                add_up(&mut beside, &gaps);
                phases(start..last + 1, on_tiles, &beside, entered, pipelines);
            }
        }
    }
}

/// Takes what a range needs in each phase: its live variables, and `beside` by lane what
/// there is in all of them.
fn phases<B: Bytes, const N: usize>(
    range: Range<usize>,
    on_tiles: &OnTiles<'_, N>,
    beside: &[u64; N],
    entered: &mut Entered<B, N>,
    pipelines: &mut InPipelines<'_, '_, N>,
) {
    let range = (range.start, range.end - 1);
    for (phase, window) in on_tiles.variables.phases.iter().enumerate() {
        // Without any step there is one phase, in which nothing is live.
        let is_only = phase == 0 && on_tiles.variables.places == 0;
        if window.0 == window.1 && !is_only {
            continue;
        }
        let mut known = [u64::MAX; N];
        for (own, scratch) in pipelines.iter() {
            let own = own.known_in(range, phase, scratch);
            known = std::array::from_fn(|lane| known[lane].min(own[lane]));
        }
        let left = std::array::from_fn(|lane| known[lane].saturating_sub(beside[lane]));
        let mut totals = *beside;
        if !is_only {
            let highest = entered.blocks.highest(*window, left.map(B::at_most));
            add_up(&mut totals, &highest.map(B::sum));
        }
        for (own, scratch) in pipelines.iter_mut() {
            own.take_in(range, phase, &totals, scratch);
        }
    }
}

/// What is known of a range in all pipelines that have it.
fn lowest<const N: usize>(known: Option<[u64; N]>, own: Option<[u64; N]>) -> Option<[u64; N]> {
    match (known, own) {
        (Some(known), Some(own)) => Some(std::array::from_fn(|lane| known[lane].min(own[lane]))),
        (known, own) => known.or(own),
    }
}
