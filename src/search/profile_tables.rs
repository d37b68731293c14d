//! Computes and keeps the memory and time of ranges of layers in one profile, in each pipeline, as
//! far as requests need them.
//!
//! The bytes of ranges are computed once for each pipeline, and again if a later request needs
//! ranges with more bytes or splits with more stages. They are first computed only on a few
//! *critical* tiles: the fullest tiles of stages that the search has found. The bytes of a range
//! are therefore lower bounds, until a split is checked on all tiles
//! ([`ProfileTables::needs_more`]).

use super::result::Candidate;
use crate::{
    memory::{MemoryModel, Pipeline, PlacedStage, Recompute},
    model::CyclesByLayer,
    progress::Progress,
    solve::ProfileCosts,
    time::{StageTimes, StepOptions},
};
use anyhow::Result;
use std::{cell::RefCell, collections::HashMap, sync::Arc};

/// Maximum number of costs that are kept in memory at a time, over all pipelines. A cost takes 8
/// bytes, and states the bytes of one range of layers for one number of stages after the range.
const MAX_NUMBERS: usize = 1 << 25;

/// Determines for which ranges of positions (In, layers, Out) the bytes are computed. Other ranges
/// may be left out, to save time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reach {
    /// Ranges of positions that take more than this number of bytes on their fullest tile may be
    /// left out.
    pub bytes: u64,
    /// Maximum number of stages of the splits for which ranges are computed. It matters because a
    /// stage may need more bytes the more stages follow it.
    pub stages: usize,
}

/// A tile is critical if it is the fullest tile of a stage that the search has found. If more than
/// a quarter (1/`TILES_OF_A_CRITICAL_ONE`) of all tiles are critical, ranges are computed on all
/// tiles: one pass over neighbouring tiles takes less time than several passes over single tiles.
const TILES_OF_A_CRITICAL_ONE: usize = 4;

/// Maximum number of positions (In, layers, Out) for which all ranges of one pipeline are computed
/// on all tiles at once. With so few positions, this is faster than computing the ranges on a few
/// tiles and then checking each split that the search finds on all tiles.
pub const FEW_POSITIONS: usize = 64;

/// Value of [`Computed::tiles`] if the bytes of ranges of positions were computed on all tiles, not
/// only on critical ones (fullest tiles of stages).
const ALL_TILES: usize = usize::MAX;

/// The tiles on which a request needs the bytes of ranges of layers.
#[derive(Clone, Copy)]
pub enum Tiles {
    /// Use the bytes of ranges that an earlier request computed, whatever tiles it used. Compute
    /// missing ranges on the critical tiles (the fullest tiles of stages found so far).
    Known,
    /// Use only the critical tiles: the fullest tiles of stages found so far. The bytes of a
    /// range are then lower bounds, since the range may take more on another tile. Use all tiles
    /// instead if this is faster ([`ProfileTables::takes_all_tiles`]).
    Critical,
    /// Use all tiles of the model. The bytes of a range are then exact.
    All,
}

/// The costs of one profile in one pipeline, as far as they are computed: the memory model of the
/// profile in this pipeline, the bytes of ranges, the bytes that flow over cuts, and the times of
/// stages.
pub type KnownCosts<'a> = (Arc<MemoryModel<'a>>, ProfileCosts);

/// The memory and time of ranges of positions (In, layers, Out) in one profile, in each pipeline
/// that the search tries.
#[derive(Debug)]
pub struct ProfileTables<'a> {
    /// The memory model of the profile without a pipeline. The memory model in each pipeline is
    /// made from it.
    pub(super) memory: MemoryModel<'a>,
    /// Entry n is about a cut (split point) after position n: the bytes, over all tiles, of the
    /// variables that are written on one side of the cut and read on the other. The last position
    /// has no entry.
    cut_bytes: Arc<[u64]>,
    /// The cycles of each position (In, layers, Out); `None` if the profile has no cycle counts.
    pub(super) cycles: Option<CyclesByLayer>,
    step: StepOptions,
    /// The critical tiles, in the order in which they were found: first the tile that was recorded
    /// as the fullest, then the fullest tiles of stages in splits.
    critical: RefCell<Vec<u32>>,
    computed: RefCell<Vec<Computed<'a>>>,
}

#[derive(Debug)]
struct Computed<'a> {
    pipeline: Pipeline,
    memory: Arc<MemoryModel<'a>>,
    costs: ProfileCosts,
    reach: Reach,
    /// Number of critical tiles (fullest tiles of stages) on which the ranges in `costs` were
    /// computed: the first ones in [`ProfileTables::critical`]. [`ALL_TILES`] if the ranges were
    /// computed on all tiles of the model.
    tiles: usize,
    /// For each stage that was checked on all tiles: the index of its fullest tile, and the bytes
    /// on that tile.
    fullest: HashMap<PlacedStage, (u32, u64)>,
}

impl<'a> ProfileTables<'a> {
    /// Makes the tables of one profile, in which no ranges of positions are computed yet. `memory`
    /// is the memory model of the profile, without the bytes that a pipeline adds to stages.
    /// `cycles` has the cycles of the positions (In, layers, Out). `step` has the other numbers
    /// that the time of a step depends on, such as the number of micro-batches.
    pub fn new(memory: MemoryModel<'a>, cycles: Option<CyclesByLayer>, step: StepOptions) -> Self {
        let fullest = memory.recorded_fullest_tile().map(|(tile, _)| tile);
        Self {
            cut_bytes: memory.cut_bytes().into(),
            memory,
            cycles,
            step,
            critical: RefCell::new(fullest.into_iter().collect()),
            computed: RefCell::default(),
        }
    }

    /// Checks on all tiles whether the stages of the split `found` need more bytes than `found`
    /// states; returns whether any stage does. The bytes in `found` may be too low, since they were
    /// computed only on critical tiles (the fullest tiles of stages found so far). The fullest tile
    /// of each stage that needs more bytes becomes critical, too. Stages that take their costs from
    /// other profiles are not checked; the index of this profile is `own`.
    ///
    /// The check is skipped, with the result true, if the caller should rather search again on all
    /// tiles ([`ProfileTables::takes_all_tiles`]). `pipelines` is the number of pipelines that it
    /// would search in.
    pub(super) fn needs_more(
        &self,
        found: &Candidate,
        own: usize,
        pipelines: usize,
    ) -> Result<bool> {
        let index = self.index_of(found.pipeline)?;
        let one = &mut self.computed.borrow_mut()[index];
        let plan = &found.solution.plan;
        let placed = PlacedStage::of_split(plan.stages()).into_iter();
        let mut stages: Vec<_> = placed.zip(&found.peaks).zip(plan.profiles()).collect();
        stages.retain(|&(_, &profile)| profile == own);
        if one.tiles == ALL_TILES || stages.is_empty() {
            return Ok(false);
        }
        if self.takes_all_tiles(pipelines) {
            return Ok(true);
        }
        let new: Vec<_> = stages
            .iter()
            .map(|((stage, _), _)| stage.clone())
            .filter(|stage| !one.fullest.contains_key(stage))
            .collect();
        let of_new = one.memory.fullest_tiles(&new);
        one.fullest.extend(new.into_iter().zip(of_new));
        let mut critical = self.critical.borrow_mut();
        let mut needs_more = false;
        for ((stage, assumed), _) in stages {
            let (tile, bytes) = one.fullest[&stage];
            if bytes > *assumed {
                needs_more = true;
                if !critical.contains(&tile) {
                    critical.push(tile);
                }
            }
        }
        Ok(needs_more)
    }

    /// Returns whether to compute the ranges of `pipelines` pipelines on all tiles at once, rather
    /// than first on critical tiles (the fullest tiles of stages). This takes less time in two
    /// cases: if many tiles are critical, or for one pipeline with few positions.
    fn takes_all_tiles(&self, pipelines: usize) -> bool {
        let critical = self.critical.borrow().len();
        critical * TILES_OF_A_CRITICAL_ONE > self.memory.tiles() as usize
            || pipelines == 1 && self.memory.layers() <= FEW_POSITIONS
    }

    /// Returns the number of pipelines for which the bytes of ranges of positions are computed
    /// together, in a single pass over the tiles, with at most `MAX_NUMBERS` table entries in
    /// memory. The result is at least 1, even if one pipeline has more entries.
    pub(super) fn at_once(&self, reach: Reach) -> usize {
        let positions = self.memory.layers();
        let numbers = positions * positions / 2 * (reach.stages.min(positions) + 1);
        (MAX_NUMBERS / numbers.max(1)).max(1)
    }

    /// Returns the memory and time of ranges of positions, one entry for each of `pipelines`.
    /// Computes ranges of up to `reach.bytes` bytes, for splits into up to `reach.stages` stages,
    /// on the tiles that `tiles` selects. If an earlier request computed more ranges, or used more
    /// tiles, returns these results.
    pub(super) fn in_each(
        &self,
        pipelines: &[Pipeline],
        reach: Reach,
        tiles: Tiles,
        progress: &Progress,
    ) -> Result<Vec<KnownCosts<'a>>> {
        let indices = pipelines
            .iter()
            .map(|&pipeline| self.index_of(pipeline))
            .collect::<Result<Vec<_>>>()?;
        self.compute(&indices, reach, tiles, progress)?;
        let computed = self.computed.borrow();
        Ok(indices
            .iter()
            .map(|&index| {
                let Computed { memory, costs, .. } = &computed[index];
                (Arc::clone(memory), costs.clone())
            })
            .collect())
    }

    /// Computes the bytes of ranges that take up to `reach.bytes` bytes, for splits into up to
    /// `reach.stages` stages, on the tiles that `tiles` selects. Does so for the pipelines at
    /// `indices` in [`ProfileTables::computed`], except those for which an earlier request computed
    /// all these ranges on enough tiles.
    fn compute(
        &self,
        indices: &[usize],
        reach: Reach,
        tiles: Tiles,
        progress: &Progress,
    ) -> Result<()> {
        let critical = self.critical.borrow();
        let least = match tiles {
            Tiles::Known => 0,
            Tiles::Critical if self.takes_all_tiles(indices.len()) => ALL_TILES,
            Tiles::Critical => critical.len(),
            Tiles::All => ALL_TILES,
        };
        let mut computed = self.computed.borrow_mut();
        let is_lacking = |&index: &usize| {
            let one = &computed[index];
            one.reach.bytes < reach.bytes || one.reach.stages < reach.stages || one.tiles < least
        };
        let lacking: Vec<usize> = indices.iter().copied().filter(is_lacking).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let reach = lacking.iter().fold(reach, |reach, &index| Reach {
            bytes: reach.bytes.max(computed[index].reach.bytes),
            stages: reach.stages.max(computed[index].reach.stages),
        });
        let tiles = least.max(critical.len());
        // Returns the number of critical tiles (the fullest tiles of stages) for which the stored
        // bytes of a pipeline's ranges can be reused, so that only tiles found later are examined.
        // Returns 0 if no bytes can be reused, since further ranges (`reach`) or exact bytes on all
        // tiles are needed now.
        let kept = |one: &Computed<'_>| {
            if one.reach == reach && tiles < ALL_TILES {
                one.tiles
            } else {
                0
            }
        };
        let known = lacking.iter().map(|&index| kept(&computed[index])).min();
        let added = critical.get(known.unwrap_or(0)..tiles);
        let models: Vec<_> = lacking
            .iter()
            .map(|&index| (&*computed[index].memory, reach.bytes))
            .collect();
        let costs = MemoryModel::costs_in_all((&models, reach.stages), added, progress)?;
        for (index, ranges) in lacking.into_iter().zip(costs) {
            let one = &mut computed[index];
            if kept(one) > 0 {
                Arc::make_mut(&mut one.costs.ranges).raise_to(&ranges);
            } else {
                one.costs.ranges = ranges.into();
            }
            (one.reach, one.tiles) = (reach, tiles);
        }
        drop_others(&mut computed, indices);
        Ok(())
    }

    fn index_of(&self, pipeline: Pipeline) -> Result<usize> {
        let mut computed = self.computed.borrow_mut();
        if let Some(index) = computed.iter().position(|one| one.pipeline == pipeline) {
            return Ok(index);
        }
        // To reuse the liveness of variables, start from the memory model of a pipeline that agrees
        // with the new one on whether each layer is recomputed, if there is one. No other setting
        // of a pipeline changes the steps at which variables are live.
        let is_layered = |own: Pipeline| own.recompute == Recompute::Layer;
        let memory = computed
            .iter()
            .find(|one| is_layered(one.pipeline) == is_layered(pipeline))
            .or(computed.first())
            .map_or(&self.memory, |like| &*like.memory)
            .in_pipeline(pipeline)?;
        let times = match computed.first() {
            Some(one) => one
                .costs
                .times
                .as_ref()
                .map(|times| times.in_pipeline(pipeline)),
            None => self.times(&memory),
        };
        computed.push(Computed {
            pipeline,
            memory: Arc::new(memory),
            costs: ProfileCosts {
                ranges: Arc::default(),
                cut_bytes: Arc::clone(&self.cut_bytes),
                times: times.map(Arc::new),
            },
            reach: Reach::default(),
            tiles: 0,
            fullest: HashMap::new(),
        });
        Ok(computed.len() - 1)
    }

    /// Returns the times of stages in the pipeline of the memory model `memory`; `None` if the
    /// profile has no cycle counts.
    fn times(&self, memory: &MemoryModel<'a>) -> Option<StageTimes> {
        Some(
            StageTimes::new(
                self.cycles.as_ref()?,
                memory.positions(),
                (memory.pipeline(), memory.is_training()),
                memory.cut_bytes_by_pass(),
                self.step,
            )
            .streaming(&memory.streamed_state()),
        )
    }
}

/// Limits the memory for stored costs of ranges: if there are more than [`MAX_NUMBERS`] for all
/// pipelines in `computed` together, drops those of all pipelines except the ones at `indices`,
/// which are in use. Dropped costs are computed again when a request needs them.
fn drop_others(computed: &mut [Computed<'_>], indices: &[usize]) {
    let numbers = |one: &Computed<'_>| one.costs.ranges.iter().count() * (one.reach.stages + 1);
    let is_full = computed.iter().map(numbers).sum::<usize>() > MAX_NUMBERS;
    for (index, one) in computed.iter_mut().enumerate() {
        if is_full && !indices.contains(&index) {
            one.costs.ranges = Arc::default();
            (one.reach, one.tiles) = (Reach::default(), 0);
        }
    }
}
