//! Computes the peak of every range of layers that can fit: the bytes on its fullest tile.
//!
//! Computing each range from its operations is hundreds of times too slow. Instead, ranges grow
//! layer by layer from each first layer, on several neighbouring tiles side by side:
//!
//! * A range has the bytes of a variable once, however many of its layers use the variable. So a
//!   growing range gains the bytes at the first layer that uses the variable. If the layers p and n
//!   use the variable, but no layer between them, then a range gains the bytes at layer n only if
//!   it starts after p. So the bytes are stored for layer n with p + 1, the first such start.
//! * A tile can only have its peak at few steps: where a variable ceases to be live after another
//!   began, and at the first and the last step of each layer and phase. In this module, such a step
//!   is called a *place* and is identified by its index in the list of these steps. Live ranges of
//!   variables are stored as places (`variables`).
//! * For each layer, the bytes that a range gains there are stored as changes from place to place.
//!   Sums over blocks of places give an upper bound on the live bytes of a range in each block.
//!   Only blocks whose bound exceeds the peak so far are summed place by place (`blocks`).
//! * Sums begin with the bytes of every stage: in the full memory model, variables that no
//!   operation uses, and code that belongs to no operation. Code of each kind is limited to its
//!   recorded bytes on the tile.
//! * In a pipeline, a range has a separate peak for each number of stages after it, since the bytes
//!   that the pipeline adds on the tile depend on this number (`RangeAdditions`). A tile is
//!   examined if it can raise any of these peaks.
//! * If a range exceeds the limit on any tile, longer ranges from its start are skipped on all
//!   further tiles. The heaviest tiles come first, so that ranges end early and peaks are high
//!   early.

mod blocks;
mod pipelines;
mod variables;

use super::{
    MemoryModel, RangeCosts, code,
    lanes::{Bytes, LANES},
    update::{TileUpdates, UpdatePhase},
    uses,
};
use crate::{model::TooManyPlaces, progress::Progress};
use pipelines::{Examination, InPipeline, PipelineRanges, PipelineScratch, TileScratch};
use rayon::prelude::*;
use std::{
    cmp::Reverse,
    collections::BTreeSet,
    iter,
    ops::Range,
    sync::Arc,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

impl MemoryModel<'_> {
    /// Computes a table of ranges of consecutive positions (In, layers, Out), with the bytes of
    /// each range on its fullest tile. In a pipeline, it has the bytes for each number of stages
    /// after the range. A range is left out if the lower bound on its bytes exceeds `limit` on any
    /// tile.
    ///
    /// # Errors
    /// If one tile has more variables or code than any real tile.
    pub fn range_costs(&self, limit: u64) -> Result<RangeCosts, TooManyPlaces> {
        Self::costs_in_all((&[(self, limit)], self.layers()), None, &Progress::new())
            .map(|mut costs| costs.pop().unwrap_or_default())
    }

    /// Computes the table of [`MemoryModel::range_costs`] for several pipelines of one model, each
    /// with a limit in bytes on each tile, in one pass over the tiles. Splits have at most `stages`
    /// stages. If `tiles` is not `None`, only these tiles are examined, so the true bytes of a
    /// range may be higher. There must be at least one pipeline.
    ///
    /// # Errors
    /// The error of [`MemoryModel::range_costs`].
    pub(crate) fn costs_in_all(
        (pipelines, stages): (&[(&Self, u64)], usize),
        tiles: Option<&[u32]>,
        progress: &Progress,
    ) -> Result<Vec<RangeCosts>, TooManyPlaces> {
        let ranges = pipelines
            .iter()
            .map(|&pipeline| PipelineRanges::new(pipeline, stages, None))
            .collect();
        Self::costs_on(tiles, ranges, (progress, "computing ranges of layers"))
    }

    /// Computes the table of [`MemoryModel::range_costs`] without a limit, for splits of at most
    /// `stages` stages and only for the ranges that begin at one of the positions `starts`.
    ///
    /// # Errors
    /// The error of [`MemoryModel::range_costs`].
    pub(crate) fn costs_from(
        &self,
        starts: &BTreeSet<usize>,
        stages: usize,
        progress: &Progress,
    ) -> Result<RangeCosts, TooManyPlaces> {
        let ranges = PipelineRanges::new((self, u64::MAX), stages, Some(starts));
        Self::costs_on(None, vec![ranges], (progress, "computing other splits"))
            .map(|mut costs| costs.pop().unwrap_or_default())
    }

    /// Computes the table of range costs of each of `pipelines` (at least one), in the same order.
    /// Only `tiles` are examined, or all tiles if `tiles` is `None`. `progress` advances by one for
    /// each tile that a thread is done with, under the name `name`.
    ///
    /// # Errors
    /// If one tile has more variables or code than any real tile.
    fn costs_on(
        tiles: Option<&[u32]>,
        mut pipelines: Vec<PipelineRanges<'_>>,
        (progress, name): (&Progress, &'static str),
    ) -> Result<Vec<RangeCosts>, TooManyPlaces> {
        let first = pipelines[0].model;
        let threads = rayon::current_num_threads();
        let single = |tiles: &[u32]| tiles.iter().map(|&tile| tile..tile + 1).collect();
        let (order, together) = match tiles {
            // If there are few tiles, threads share the work on each tile: at most one thread for
            // each position at which ranges start.
            Some(tiles) if tiles.len() < 2 * threads => {
                (single(tiles), threads.min(first.layers()))
            }
            Some(tiles) => (single(tiles), 1),
            None => (first.in_groups(), 1),
        };
        let unclaimed = || Arc::from_iter(pipelines.iter().map(|_| AtomicUsize::new(0)));
        let order: Vec<_> = order
            .into_iter()
            .flat_map(|tiles| iter::repeat_n((tiles, unclaimed()), together))
            .collect();
        let count = order.iter().map(|(tiles, _)| tiles.len()).sum::<usize>();
        let task = progress.begin(name, count as u64);
        // Flows (tensors with the same users) are the same in all pipelines. So they are loaded
        // once, from the first memory model that has flows.
        let pass = RangePass {
            model: pipelines
                .iter()
                .map(|own| own.model)
                .find(|model| model.flows.is_some())
                .unwrap_or(first),
            are_apart: AtomicBool::new(false),
            alike: (0..pipelines.len())
                .map(|own| {
                    let counts_alike = |&other: &usize| pipelines[own].counts_as(&pipelines[other]);
                    (0..own).find(counts_alike).unwrap_or(own)
                })
                .collect(),
            updates: number_updates(&mut pipelines),
            pipelines,
        };
        // Each thread takes the next group of tiles, heaviest first, so that the peaks of ranges of
        // layers are high early and light tiles that cannot raise them can be skipped.
        order.into_iter().par_bridge().try_for_each_init(
            RangeScratches::default,
            |scratches, (tiles, claimed)| {
                pass.neighbours(tiles.clone(), &claimed, scratches)?;
                task.add(tiles.len() as u64);
                Ok(())
            },
        )?;
        Ok(pass
            .pipelines
            .into_iter()
            .map(PipelineRanges::into_costs)
            .collect())
    }

    /// Returns groups of neighbouring tiles, ordered by the recorded bytes of the fullest tile in
    /// the group, highest first. The order only saves time, so wrong recorded bytes do no harm.
    fn in_groups(&self) -> Vec<Range<u32>> {
        let mut order: Vec<_> = uses::groups(self.tiles()).collect();
        let tiles = &self.model.recorded.tiles;
        let total = |tile: u32| tiles.get(tile as usize).map_or(0, |bytes| bytes.total);
        order.sort_by_cached_key(|tiles| Reverse(tiles.clone().map(total).max()));
        order
    }
}

/// One pass over the tiles, which computes the bytes of ranges of layers in several pipelines. All
/// threads share this value.
struct RangePass<'a> {
    /// The memory model of the first pipeline that has flows (tensors with the same users), or of
    /// the first pipeline if none has. Data that is the same in all pipelines, such as flows, is
    /// read from it.
    model: &'a MemoryModel<'a>,
    /// Whether tiles are examined one by one instead of several side by side. This is set as soon
    /// as a group of tiles has too many variables to be examined side by side: most other groups
    /// probably have too many as well.
    are_apart: AtomicBool,
    pipelines: Vec<PipelineRanges<'a>>,
    /// One entry per pipeline: the index of the first pipeline in which the same variables are live
    /// at the same steps. Pipelines with the same entry are examined together, since sums of live
    /// bytes take most of the time.
    alike: Vec<usize>,
    updates: Vec<&'a UpdatePhase>,
}

/// Collects the distinct weight updates of all pipelines, and gives each pipeline the index of its
/// update in this list. The updates of two pipelines differ only if the place of optimizer state or
/// the number of replicas differs.
fn number_updates<'a>(pipelines: &mut [PipelineRanges<'a>]) -> Vec<&'a UpdatePhase> {
    let mut updates: Vec<&UpdatePhase> = Vec::new();
    for pipeline in pipelines {
        if let Some(own) = pipeline.model.update.as_deref() {
            let known = updates.iter().position(|update| update.is_like(own));
            pipeline.update = Some(known.unwrap_or_else(|| {
                updates.push(own);
                updates.len() - 1
            }));
        }
    }
    updates
}

/// The buffers of one thread that computes the bytes of ranges of layers. There are buffers for
/// neighbouring tiles side by side, for a single tile with 32-bit sums, and for a single tile that
/// needs 64-bit sums. They are reused for each group of tiles.
#[derive(Default)]
struct RangeScratches {
    side_by_side: RangeScratch<i32, LANES>,
    single: RangeScratch<i32, 1>,
    wide: RangeScratch<u64, 1>,
}

/// The buffers of one thread that computes the bytes of ranges of layers on up to `N` neighbouring
/// tiles, with one lane for each tile. Sums of live bytes have the type `B`.
#[derive(Default)]
struct RangeScratch<B, const N: usize> {
    tiles: TileScratch<B, N>,
    updates: TileUpdates<N>,
    pipelines: Vec<PipelineScratch<N>>,
}

impl RangePass<'_> {
    /// Raises the peak of each range of layers to the bytes of the range on a group of neighbouring
    /// tiles, if these bytes are higher. The tiles are examined side by side, or one by one if they
    /// have too many variables. `claimed` has one counter per pipeline: each thread that examines
    /// these tiles takes the next position from it, and examines the ranges of layers that begin
    /// there.
    ///
    /// # Errors
    /// If one tile has more variables or code than any real tile.
    fn neighbours(
        &self,
        tiles: Range<u32>,
        claimed: &[AtomicUsize],
        scratches: &mut RangeScratches,
    ) -> Result<(), TooManyPlaces> {
        if tiles.len() > 1 && !self.are_apart.load(Relaxed) {
            // A group of tiles can be too large to be examined side by side, although each tile by
            // itself has few enough variables and bytes.
            if self.tiles(tiles.clone(), claimed, &mut scratches.side_by_side) == Ok(true) {
                return Ok(());
            }
            self.are_apart.store(true, Relaxed);
        }
        for tile in tiles.clone() {
            if tiles.len() > 1 {
                claimed.iter().for_each(|start| start.store(0, Relaxed));
            }
            if !self.tiles(tile..tile + 1, claimed, &mut scratches.single)? {
                self.tiles(tile..tile + 1, claimed, &mut scratches.wide)?;
            }
        }
        Ok(())
    }

    /// Raises the peak of each range of layers, in each pipeline, to the bytes of the range on
    /// `tiles` (at most `N` tiles), if these are higher. Returns false, and leaves the peaks
    /// incomplete, if sums of bytes may overflow the type `B`, or if the sums for all tiles at once
    /// would take too much memory. The caller then tries single tiles or a wider type.
    ///
    /// `claimed` has one counter per pipeline: each thread that examines these tiles takes the next
    /// position from it, and examines the ranges of layers that begin there.
    ///
    /// # Errors
    /// If the tiles have more variables or code than any real tile.
    fn tiles<B: Bytes, const N: usize>(
        &self,
        tiles: Range<u32>,
        claimed: &[AtomicUsize],
        scratch: &mut RangeScratch<B, N>,
    ) -> Result<bool, TooManyPlaces> {
        scratch.tiles.uses.gather(self.model, tiles.clone());
        self.load_additions(scratch)?;
        let (on_tiles, pipelines) = (&mut scratch.tiles, &mut scratch.pipelines);
        code::load(self.model, &tiles, &mut on_tiles.code)?;
        for (first, claimed) in claimed.iter().enumerate() {
            let paired: Vec<_> = self
                .pipelines
                .iter()
                .zip(&mut *pipelines)
                .zip(&self.alike)
                .filter(|(_, alike)| **alike == first)
                .map(|((ranges, scratch), _)| InPipeline { ranges, scratch })
                .collect();
            let Some(InPipeline { ranges, .. }) = paired.first() else {
                continue;
            };
            let model = ranges.model;
            let variables = &mut on_tiles.variables;
            variables.load(model, &on_tiles.uses, &mut on_tiles.always)?;
            if variables.most > B::HIGHEST {
                return Ok(false);
            }
            let is_in = |number| paired.iter().any(|own| own.ranges.update == Some(number));
            let updates = self.updates.iter().copied().enumerate();
            let mut examination = Examination {
                tiles: &model.overhead[tiles.start as usize..tiles.end as usize],
                scratch: on_tiles,
                updates: updates.filter(|&(number, _)| is_in(number)).collect(),
                pipelines: paired,
                claimed,
            };
            if !examination.run() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Loads the sizes of the tensors from which two kinds of bytes of a range of layers on the
    /// tiles in `scratch` are computed: those that a pipeline adds, such as the stash, and those of
    /// weight updates.
    ///
    /// # Errors
    /// If the tiles have more variables than any real tile.
    fn load_additions<B: Bytes, const N: usize>(
        &self,
        scratch: &mut RangeScratch<B, N>,
    ) -> Result<(), TooManyPlaces> {
        let TileScratch {
            uses,
            flows,
            updates,
            ..
        } = &mut scratch.tiles;
        if let Some(own) = &self.model.flows {
            flows.load(self.model, own, uses);
        }
        updates.resize_with(self.updates.len(), Default::default);
        for (phase, update) in self.updates.iter().zip(updates) {
            scratch.updates.load(self.model, phase, uses);
            update.load(self.model, phase, &scratch.updates)?;
        }
        let pipelines = &mut scratch.pipelines;
        pipelines.resize_with(self.pipelines.len(), Default::default);
        for (pipeline, own) in self.pipelines.iter().zip(pipelines) {
            if let Some(own_flows) = &pipeline.model.flows {
                let stretches = (own_flows, &*pipeline.stretches);
                own.additions.load(pipeline.model, stretches, flows)?;
            }
        }
        Ok(())
    }
}
