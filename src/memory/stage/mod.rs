//! Computes the memory of stages in full (docs/model.md, "The memory of a stage").
//!
//! This module does not reuse `ranges`, which only gives the highest bytes of any tile and skips
//! all tiles, blocks and steps whose bounds are lower. A stage needs the first peak step of each
//! tile, and the bytes at that step by their contents. Without its bounds, `ranges` would be the
//! loop over steps of this module, and would also have to keep steps and the bytes of each stage.
//! So both modules only share the preparation (uses of neighbours, lanes, flows, updates), and
//! tests compare them with each other and with a reference model.

mod live_sums;
mod parts;
mod peaks;
mod stages_to_compute;

pub use parts::Parts;

use super::code::by_tile;
use super::lanes;
use super::overhead::TileOverhead;
use super::pipeline::{PHASES, PlacedStage, Recompute};
use super::{MemoryModel, Rules};
use crate::model::{EVERYWHERE, PlaceSet, meets};
use peaks::StagePeak;
use rayon::prelude::*;
use stages_to_compute::{StagesToCompute, Wanted};
use std::ops::Range;

/// The memory that one stage takes on each tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageMemory {
    /// For each tile: its bytes at the step at which it takes the most, broken down by contents.
    pub tiles: Vec<Parts>,
    /// For each tile: the first step at which it takes the most bytes; `None` if the stage has no
    /// steps.
    pub peak_steps: Vec<Option<u32>>,
    /// For each tile and phase (see [`PHASES`]): the sum of the bytes of transfer buffers and
    /// forwarded tensors.
    pub(super) transfers: Vec<[u64; PHASES]>,
    /// All bytes on the fullest tile if the pipeline restores stashed tensors as late as it can, as
    /// its compiler may do. `None` if the stage has no copies of activations to restore, or if late
    /// restores were not computed.
    pub late_restores: Option<u64>,
    /// For each tile: its bytes in the weight update; empty if all optimizer state stays on the
    /// chip between updates.
    pub updates: Vec<UpdateOnTile>,
}

/// The bytes of a stage on one tile, in that weight update which takes the most bytes on the tile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UpdateOnTile {
    /// All bytes of the stage on the tile during this update, if there is a landing pad (a buffer
    /// into which state is loaded) for all optimizer state of the weight at once.
    pub bytes: u64,
    /// Like `bytes`, with a landing pad for only one tensor of state at a time.
    pub at_least: u64,
    /// All bytes of the stage on the tile in the forward and backward pass, at their peak.
    pub in_passes: u64,
    /// The part of `bytes` that the update adds to always-live bytes: loaded state, landing pads,
    /// gathered tensors, and tensors that the update makes.
    pub taken: u64,
    /// The number of the weight update, for [`MemoryModel::weights_of_update`]; `None` if no update
    /// takes bytes on the tile.
    pub update: Option<u32>,
}

impl StageMemory {
    /// Returns the highest bytes of the stage on the tile with this number; 0 if there is no such
    /// tile.
    pub fn tile_bytes(&self, tile: usize) -> u64 {
        self.tiles.get(tile).map_or(0, Parts::total)
    }

    /// Returns the number of the tile with the most bytes; the first of several, and 0 without
    /// tiles.
    pub fn max_tile(&self) -> usize {
        self.tiles
            .iter()
            .enumerate()
            .rev()
            .max_by_key(|(_, parts)| parts.total())
            .map_or(0, |(tile, _)| tile)
    }

    /// Returns the bytes on the fullest tile.
    pub fn max_tile_bytes(&self) -> u64 {
        self.tile_bytes(self.max_tile())
    }

    /// Returns the first step at which the fullest tile takes the most bytes; `None` if the stage
    /// has no steps.
    pub fn peak_step(&self) -> Option<u32> {
        self.peak_steps.get(self.max_tile()).copied().flatten()
    }

    /// Returns the bytes of the stage summed over all tiles, broken down by contents.
    pub fn sums(&self) -> Parts {
        let mut sums = Parts::default();
        for parts in &self.tiles {
            sums.add(parts);
        }
        sums
    }
}

/// Maximum bytes of the buffers of stages that are computed in one pass over the variables. Each
/// stage has buffers for its peak on each tile and its role in each flow (tensors with the same
/// users).
const AT_ONCE: usize = 1 << 26;

impl MemoryModel<'_> {
    /// Computes for each of `stages` (ranges of positions, end exclusive, which may overlap) the
    /// least memory that it takes anywhere in a split. The results are in the order of `stages`;
    /// late restores are not computed.
    pub fn stages(&self, stages: &[Range<usize>]) -> Vec<StageMemory> {
        let stages = stages.iter().cloned().map(PlacedStage::anywhere);
        self.compute(&stages.collect::<Vec<_>>(), Wanted::All)
    }

    /// Computes the memory of all stages of a split (ranges of positions, end exclusive), in their
    /// order, including the bytes that the pipeline adds.
    pub fn split(&self, stages: &[Range<usize>]) -> Vec<StageMemory> {
        self.placed_stages(&PlacedStage::of_split(stages))
    }

    /// Computes the bytes on the fullest tile of each of `stages`, in their order.
    pub fn peaks(&self, stages: &[PlacedStage]) -> Vec<u64> {
        self.fullest_tiles(stages)
            .into_iter()
            .map(|(_, bytes)| bytes)
            .collect()
    }

    /// Computes the fullest tile of each of `stages`, in their order, and its bytes. Faster than
    /// [`MemoryModel::placed_stages`], since late restores are not computed.
    pub(crate) fn fullest_tiles(&self, stages: &[PlacedStage]) -> Vec<(u32, u64)> {
        self.compute(stages, Wanted::All)
            .iter()
            .map(|stage| (stage.max_tile() as u32, stage.max_tile_bytes()))
            .collect()
    }

    /// Computes the memory of each of `stages`, in their order, including the bytes that the
    /// pipeline adds, and with late restores.
    pub fn placed_stages(&self, stages: &[PlacedStage]) -> Vec<StageMemory> {
        let mut computed = self.compute(stages, Wanted::All);
        self.add_late_restores(stages, &mut computed);
        computed
    }

    /// Computes for each position the memory of its own variables and code, without overhead and
    /// without additions of a pipeline.
    pub fn single_layers(&self) -> Vec<StageMemory> {
        let layers: Vec<_> = (0..self.layers())
            .map(|layer| PlacedStage::anywhere(layer..layer + 1))
            .collect();
        // Without flows and update phase, variables are live as in the profile, also all optimizer
        // state.
        let alone = Self {
            flows: None,
            update: None,
            ..self.clone()
        };
        alone.compute(&layers, Wanted::Layers)
    }

    /// Computes the memory of `stages`, in their order; `wanted` selects the bytes. The computation
    /// takes several passes over the variables if there are so many stages that buffers would
    /// become too large.
    fn compute(&self, stages: &[PlacedStage], wanted: Wanted) -> Vec<StageMemory> {
        let tiles = self.model.target.num_tiles as usize;
        let flows = self.flows.as_ref().map_or(0, |flows| flows.list.len());
        let of_stage = (tiles * size_of::<StagePeak>()).max(flows * size_of::<u64>());
        stages
            .chunks((AT_ONCE / of_stage.max(1)).max(1))
            .flat_map(|part| {
                let plan = StagesToCompute::new(self, part, wanted);
                let peaks = plan.peaks_by_tile();
                (0..part.len())
                    .into_par_iter()
                    .map(|stage| plan.stage_memory(stage, &peaks))
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    /// Sets [`StageMemory::late_restores`] in `computed`, the memory of each of `stages`, for the
    /// stages that keep copies of activations.
    fn add_late_restores(&self, stages: &[PlacedStage], computed: &mut [StageMemory]) {
        let (keeping, computed): (Vec<_>, Vec<_>) = stages
            .iter()
            .zip(computed)
            .filter(|(stage, _)| self.has_copies(stage))
            .map(|(stage, computed)| (stage.clone(), computed))
            .unzip();
        // With recomputation, stages restore no activations.
        if keeping.is_empty() || self.pipeline.recompute != Recompute::None {
            return;
        }
        let late = self.compute(&keeping, Wanted::LateRestores);
        for (computed, late) in computed.into_iter().zip(late) {
            computed.late_restores = Some(late.max_tile_bytes());
        }
    }

    /// Returns the bytes of code on `tile` that every stage needs whatever its positions, by
    /// [`CodeKind`](crate::profile::CodeKind) as an index; `None` in the classic memory model.
    pub fn overhead_code(&self, tile: usize) -> Option<[u64; 4]> {
        if self.rules == Rules::Classic {
            return None;
        }
        let common = self.code_sums(|set| set == EVERYWHERE)[tile];
        let overhead = &self.overhead[tile];
        Some(lanes::plus(&overhead.capped(common), &overhead.code))
    }

    /// Returns for each tile the code and vertex state of a stage with the positions `range` (end
    /// exclusive). If `with_overhead`, the code that every stage has is included, as overhead.
    pub(crate) fn code_of(&self, range: &Range<usize>, with_overhead: bool) -> Vec<Parts> {
        let layered = self.code_sums(|set| meets(self.sets.places(set), range));
        let common = self.code_sums(|set| set == EVERYWHERE && with_overhead);
        layered
            .into_iter()
            .zip(common)
            .zip(&*self.overhead)
            .map(|((layered, common), overhead)| {
                let both = overhead.capped(lanes::plus(&layered, &common));
                let common = overhead.capped(common);
                let mut parts =
                    Parts::of_code(std::array::from_fn(|kind| both[kind] - common[kind]));
                if with_overhead {
                    parts.overhead = common.iter().chain(&overhead.code).sum();
                }
                parts
            })
            .collect()
    }

    /// Returns for each tile, by [`CodeKind`](crate::profile::CodeKind) as an index, the bytes of
    /// the code that is needed by sets of positions for which `is_wanted` is true.
    fn code_sums(&self, is_wanted: impl Fn(PlaceSet) -> bool) -> Vec<[u64; 4]> {
        by_tile(
            self.code.iter().filter(|item| is_wanted(item.set)),
            &(0..self.model.target.num_tiles),
        )
    }
}

impl StagesToCompute<'_> {
    /// Assembles the memory of the stage with the index `stage` from its code and from `peaks`,
    /// which has the peaks of all stages for each tile.
    fn stage_memory(&self, stage: usize, peaks: &[Vec<StagePeak>]) -> StageMemory {
        let memory = self.memory;
        let code = memory.code_of(&self.stages[stage].positions, self.with_overhead);
        let (tiles, steps, updates): (_, Vec<_>, Vec<_>) = code
            .into_iter()
            .zip(&*memory.overhead)
            .zip(peaks)
            .map(|(code, peaks)| self.on_tile(code, &peaks[stage]))
            .collect();
        let has_steps = !self.windows[stage].is_empty();
        let steps = steps.into_iter().map(|step| has_steps.then_some(step));
        let transfers = |peaks: &Vec<StagePeak>| {
            let phases = &peaks[stage].phases;
            phases.map(|(parts, _)| parts.waiting + parts.passing)
        };
        StageMemory {
            late_restores: None,
            tiles,
            updates: updates.into_iter().flatten().collect(),
            peak_steps: steps.collect(),
            transfers: peaks.iter().map(transfers).collect(),
        }
    }

    /// Computes the bytes of a stage on one tile from its `code` and its `peak` there. Returns the
    /// bytes when they are highest (in the first phase with the highest bytes, or in the update if
    /// the update takes more) and the step of this peak; and the bytes in the update if that is a
    /// phase of its own.
    fn on_tile(
        &self,
        (code, overhead): (Parts, &TileOverhead),
        peak: &StagePeak,
    ) -> (Parts, u32, Option<UpdateOnTile>) {
        let shares = peak.update.map_or(0, |update| update.shares);
        let of_shares = overhead.fragmentation_of_shares(shares);
        // Fragmentation is in proportion to the bytes of code plus `bytes`.
        let with_code = |mut parts: Parts, bytes: u64| {
            parts.add(&code);
            if self.with_overhead {
                parts.gaps = overhead.fragmentation_of(code.total() + bytes) + of_shares;
            }
            parts
        };
        let live = |(parts, _): &(Parts, u32)| parts.variables + parts.overhead;
        let most_live = peak.phases.iter().map(live).max().unwrap_or(0);
        let all_steps = self.memory.model.steps();
        let (in_passes, step) = peak
            .phases
            .into_iter()
            .zip(&self.memory.phases)
            .enumerate()
            // In a model without steps, the first phase is looked at as if it had steps.
            .filter(|&(phase, (_, steps))| !steps.is_empty() || (phase == 0 && all_steps == 0))
            .map(|(_, ((parts, step), _))| (with_code(parts, most_live), step))
            .rev()
            .max_by_key(|(parts, _)| parts.total())
            .unwrap_or_default();
        let Some(update) = &peak.update else {
            return (in_passes, step, None);
        };
        let always = update.variables + update.overhead;
        // The last phase is after both passes, so that transfer buffers are empty.
        let [.., (after, _)] = peak.phases;
        let with = |taken: u64| {
            let parts = Parts {
                variables: update.variables,
                overhead: update.overhead,
                state: after.state + taken,
                ..after
            };
            with_code(parts, always + taken)
        };
        let in_update = with(update.taken);
        let on_tile = UpdateOnTile {
            bytes: in_update.total(),
            at_least: with(update.taken_at_least).total(),
            in_passes: in_passes.total(),
            taken: update.taken,
            update: update.update.map(|(number, _)| number),
        };
        if on_tile.bytes <= on_tile.in_passes {
            return (in_passes, step, Some(on_tile));
        }
        let step = update.update.map_or(step, |(_, step)| step);
        (in_update, step, Some(on_tile))
    }
}
