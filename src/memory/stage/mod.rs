//! Computes the complete memory of pipeline stages: for every tile, the first step at which a stage
//! takes the most bytes on it, and these bytes broken down by what they hold, such as variables and
//! code (docs/model.md, "The memory of a stage").
//!
//! This module examines all steps on all tiles. The module `ranges` computes only the highest bytes
//! of a stage on any tile. It is faster, since it skips tiles and steps that cannot exceed the
//! highest bytes so far. The two modules share only the preparation (variables of neighbouring
//! tiles, flows of tensors between layers, weight updates). Tests compare them with each other and
//! with a reference model.

mod parts;
mod peaks;

pub use parts::Parts;

use super::{
    MemoryModel, Rules,
    code::{TileOverhead, by_tile},
    fullest, lanes,
    pipeline::{PHASES, PlacedStage, Recompute},
};
use crate::model::{EVERYWHERE, PlaceSet, meets};
use peaks::{StagePeak, StagesToCompute, Wanted};
use rayon::prelude::*;
use std::ops::Range;

/// The memory that one pipeline stage takes on each tile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StageMemory {
    /// One entry per tile: the bytes of the stage at the step at which it takes the most bytes on
    /// the tile, broken down by what they hold, such as variables and code.
    pub tiles: Vec<Parts>,
    /// One entry per tile: the first step at which the stage takes the most bytes on the tile;
    /// `None` if the stage has no steps.
    pub peak_steps: Vec<Option<u32>>,
    /// One entry per tile: the bytes of transfer buffers (which hold tensors from or for other
    /// stages) and of forwarded tensors, in each phase such as the backward pass (see [`PHASES`]).
    pub(super) transfers: Vec<[u64; PHASES]>,
    /// All bytes of the stage on its fullest tile if stashed tensors (copies kept for the backward
    /// pass) are restored from the stash as late as possible, as the compiler of the pipeline may
    /// do. `None` if the stage has no activations to restore, or if late restores were not
    /// computed.
    pub late_restores: Option<u64>,
    /// One entry per tile: the bytes of the stage in the weight update. Empty if all optimizer
    /// state stays on the chip between updates.
    pub updates: Vec<UpdateOnTile>,
}

/// The bytes of a stage on one tile during the weight update that takes the most bytes on this
/// tile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UpdateOnTile {
    /// All bytes of the stage on the tile in the weight update that takes the most bytes there, if
    /// a landing pad (a buffer into which optimizer state is loaded) holds all state of a weight at
    /// once.
    pub bytes: u64,
    /// The highest bytes of the stage on the tile in any weight update, if a landing pad (a buffer
    /// into which optimizer state is loaded) holds only one tensor of state at a time.
    pub at_least: u64,
    /// The highest bytes of the stage on the tile at any step of the forward and the backward pass.
    pub in_passes: u64,
    /// Bytes that the stage takes during the weight update that takes the most bytes on the tile,
    /// in addition to variables that are always live: loaded optimizer state, the buffers through
    /// which it is loaded, tensors gathered from other replicas, and tensors that the update makes.
    pub taken: u64,
    /// Index of the weight update that takes the most bytes on the tile, for
    /// [`MemoryModel::weights_of_update`]; `None` if no update takes bytes there.
    pub update: Option<u32>,
}

impl StageMemory {
    /// Returns the index of the tile on which the stage takes the most bytes: the first such tile
    /// if there are several, and 0 if there are no tiles.
    pub fn max_tile(&self) -> u32 {
        self.fullest().0
    }

    /// Returns the bytes of the stage on its fullest tile. The stage fits if they are at most the
    /// memory of a tile.
    pub fn max_tile_bytes(&self) -> u64 {
        self.fullest().1
    }

    /// Returns the index of the tile on which the stage takes the most bytes (the first such tile),
    /// and these bytes; both are 0 if there are no tiles.
    fn fullest(&self) -> (u32, u64) {
        fullest(self.tiles.iter().map(Parts::total)).unwrap_or_default()
    }

    /// Returns the first liveness step at which the stage takes the most bytes on its fullest tile;
    /// `None` if the stage has no steps.
    pub fn peak_step(&self) -> Option<u32> {
        *self.peak_steps.get(self.max_tile() as usize)?
    }

    /// Returns the bytes of the stage summed over all tiles, broken down by contents such as
    /// variables and code.
    pub fn sums(&self) -> Parts {
        let mut sums = Parts::default();
        for parts in &self.tiles {
            sums.add(parts);
        }
        sums
    }
}

/// Limit in bytes on the buffers for stages that are computed together in one pass over the
/// variables. If the buffers of all stages would exceed it, the stages are computed in several
/// passes.
const AT_ONCE: usize = 1 << 26;

impl MemoryModel<'_> {
    /// Computes a lower bound on the memory of each of `stages`, which holds for any number of
    /// later stages in the split. A stage is a range of positions (In, layers, Out), end exclusive;
    /// stages may overlap. Returns one entry per stage, in the order of `stages`, without
    /// [`StageMemory::late_restores`].
    pub fn stages(&self, stages: &[Range<usize>]) -> Vec<StageMemory> {
        let stages: Vec<_> = stages.iter().cloned().map(PlacedStage::anywhere).collect();
        self.compute(&stages, Wanted::All)
    }

    /// Computes the memory of all stages of a split, including the bytes that the pipeline adds.
    /// `stages` has the positions (In, layers, Out) of each stage, as a range with an exclusive
    /// end. Returns one entry per stage, in the order of `stages`.
    pub fn split(&self, stages: &[Range<usize>]) -> Vec<StageMemory> {
        self.placed_stages(&PlacedStage::of_split(stages))
    }

    /// Returns the bytes of each stage on its fullest tile, in the order of `stages`.
    pub fn peaks(&self, stages: &[PlacedStage]) -> Vec<u64> {
        self.fullest_tiles(stages)
            .into_iter()
            .map(|(_, bytes)| bytes)
            .collect()
    }

    /// Returns one entry per stage, in the order of `stages`: the index of the stage's fullest
    /// tile, and the bytes of the stage on this tile. This method is faster than
    /// [`MemoryModel::placed_stages`], since it does not compute [`StageMemory::late_restores`].
    pub(crate) fn fullest_tiles(&self, stages: &[PlacedStage]) -> Vec<(u32, u64)> {
        let computed = self.compute(stages, Wanted::All);
        computed.iter().map(StageMemory::fullest).collect()
    }

    /// Computes the memory of each of `stages`, including the bytes that the pipeline adds. Also
    /// computes the bytes for the case that stashed tensors (copies kept for the backward pass) are
    /// restored as late as possible ([`StageMemory::late_restores`]). Returns one entry per stage,
    /// in the order of `stages`.
    pub fn placed_stages(&self, stages: &[PlacedStage]) -> Vec<StageMemory> {
        let mut computed = self.compute(stages, Wanted::All);
        // Late restores are computed only for stages that stash tensors. With recomputation, they
        // are computed for no stage, since stages then compute activations again instead of
        // restoring them.
        let has_restores = self.pipeline.recompute == Recompute::None;
        let (keeping, restoring): (Vec<_>, Vec<_>) = stages
            .iter()
            .cloned()
            .zip(&mut computed)
            .filter(|(stage, _)| has_restores && self.has_copies(stage))
            .unzip();
        let late = self.compute(&keeping, Wanted::LateRestores);
        for (computed, late) in restoring.into_iter().zip(late) {
            computed.late_restores = Some(late.max_tile_bytes());
        }
        computed
    }

    /// Returns one entry per position (In, a layer or Out): the memory of the position's own
    /// variables and code, without overhead and without the bytes that a pipeline adds.
    pub fn single_layers(&self) -> Vec<StageMemory> {
        let layers: Vec<_> = (0..self.layers())
            .map(|layer| PlacedStage::anywhere(layer..layer + 1))
            .collect();
        // To get only the bytes of the layers themselves, this copy of the memory model has no
        // pipeline and no separate phase for the weight update. All variables, including optimizer
        // state, are then live at the same steps as in the profile.
        Self {
            flows: None,
            update: None,
            ..self.clone()
        }
        .compute(&layers, Wanted::Layers)
    }

    /// Computes the memory of each of `stages`, in the same order. `wanted` selects which bytes are
    /// included. If the buffers for all stages would be too large, the stages are computed in
    /// several passes over the variables.
    fn compute(&self, stages: &[PlacedStage], wanted: Wanted) -> Vec<StageMemory> {
        let tiles = self.tiles() as usize;
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

    /// Returns the bytes of code on `tile` that every stage needs, whatever its layers, with one
    /// entry per [`CodeKind`](crate::profile::CodeKind). Returns `None` with `--memory-model
    /// classic`, which leaves these bytes out, as the original tool does.
    pub fn overhead_code(&self, tile: u32) -> Option<[u64; 4]> {
        if self.rules == Rules::Classic {
            return None;
        }
        let common = self.code_sums(|set| set == EVERYWHERE)[tile as usize];
        let overhead = &self.overhead[tile as usize];
        Some(lanes::plus(&overhead.capped(common), &overhead.code))
    }

    /// Returns one entry per tile: the bytes of code and vertex state of a stage with the positions
    /// (In, layers, Out) in `range`, end exclusive. The code that every stage needs is included, as
    /// overhead, only if `with_overhead` is true.
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

    /// Returns one entry per tile: the sums of bytes of code, by
    /// [`CodeKind`](crate::profile::CodeKind). Each piece of code has the set of positions (In,
    /// layers, Out) that need it; only code whose set passes the test `is_wanted` is summed.
    fn code_sums(&self, is_wanted: impl Fn(PlaceSet) -> bool) -> Vec<[u64; 4]> {
        by_tile(
            self.code.iter().filter(|item| is_wanted(item.set)),
            &(0..self.tiles()),
        )
    }
}

impl StagesToCompute<'_> {
    fn stage_memory(&self, stage: usize, peaks: &[Vec<StagePeak>]) -> StageMemory {
        let memory = self.memory;
        let code = memory.code_of(&self.stages[stage].positions, self.with_overhead);
        let has_steps = !self.windows[stage].is_empty();
        let mut found = StageMemory::default();
        for ((code, overhead), peaks) in code.into_iter().zip(&*memory.overhead).zip(peaks) {
            let peak = &peaks[stage];
            let (parts, step, update) = self.on_tile((code, overhead), peak);
            found.tiles.push(parts);
            found.peak_steps.push(has_steps.then_some(step));
            found
                .transfers
                .push(peak.phases.map(|(parts, _)| parts.waiting + parts.passing));
            found.updates.extend(update);
        }
        found
    }

    /// Computes the memory of a stage on one tile from the bytes of its code and the peaks of its
    /// live bytes there. Returns the highest bytes in any phase or in the weight update, the step
    /// at which the stage takes them and, if the update can have a peak of its own, the bytes in
    /// the update.
    fn on_tile(
        &self,
        (code, overhead): (Parts, &TileOverhead),
        peak: &StagePeak,
    ) -> (Parts, u32, Option<UpdateOnTile>) {
        let of_shares = peak
            .update
            .map_or(0, |update| overhead.fragmentation_of_shares(update.shares));
        // Adds code and fragmentation to `parts`, the bytes of the stage on the tile in one phase,
        // such as the backward pass. Fragmentation is in proportion to the bytes of code plus
        // `bytes`, the stage's live bytes.
        let with_code = |mut parts: Parts, bytes: u64| {
            parts.add(&code);
            if self.with_overhead {
                parts.gaps = overhead.fragmentation_of(code.total() + bytes) + of_shares;
            }
            parts
        };
        let live = peak.phases.map(|(own, _)| own.variables + own.overhead);
        let most_live = live.into_iter().max().unwrap_or(0);
        let (in_passes, step) = peak
            .phases
            .into_iter()
            .zip(&self.memory.phases)
            .enumerate()
            // A model without liveness steps still has code. For the code to be counted, the first
            // phase (the forward pass) is then kept although it has no steps.
            .filter(|&(phase, (_, steps))| {
                !steps.is_empty() || (phase == 0 && self.memory.model.steps() == 0)
            })
            .map(|(_, ((parts, step), _))| (with_code(parts, most_live), step))
            .rev()
            .max_by_key(|(parts, _)| parts.total())
            .unwrap_or_default();
        let Some(update) = &peak.update else {
            return (in_passes, step, None);
        };
        let always = update.variables + update.overhead;
        // After the forward and the backward pass, transfer buffers are empty, so the weight update
        // needs none.
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
