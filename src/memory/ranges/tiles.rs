//! Examines all ranges of layers on some tiles, in all pipelines in which the same variables count.

use super::blocks::Blocks;
use super::pipelines::InPipeline;
use super::variables::EnteringVariables;
use crate::memory::code::EnteringCode;
use crate::memory::entering::GrowingSums;
use crate::memory::lanes::{self, Bytes};
use crate::memory::pipeline::TileFlows;
use crate::memory::update::{RangeUpdates, UpdatePhase};
use crate::memory::uses::NeighbourUses;
use std::ops::Range;

/// The bytes on up to `N` tiles that ranges from the current start gain at each position, by
/// what has them.
#[derive(Default)]
pub(super) struct Entered<B, const N: usize> {
    /// Bytes of the variables that are not live at every step, at each step at which a peak is
    /// possible.
    pub blocks: Blocks<B, N>,
    /// Bytes of the variables that are live at every step.
    pub always: GrowingSums<N, 1>,
    /// Bytes of code and vertex state, by [`CodeKind`](crate::profile::CodeKind).
    pub code: EnteringCode<N>,
    /// Bytes of each weight update, as
    /// [`PipelineRanges::update`](super::pipelines::PipelineRanges::update) numbers them.
    pub updates: Vec<RangeUpdates<N>>,
}

/// The variables on some neighbouring tiles, in the forms that examining ranges needs.
pub(super) struct OnTiles<'a, const N: usize> {
    pub tiles: Range<u32>,
    pub uses: &'a NeighbourUses<N>,
    pub variables: &'a EnteringVariables<N>,
    pub flows: &'a TileFlows<N>,
    /// The weight updates of the pipelines that are examined, with their numbers.
    pub updates: Vec<(usize, &'a UpdatePhase)>,
}

/// Raises the peaks of all ranges, in each of `pipelines`, to their bytes on `on_tiles`; longer
/// ranges are skipped once a range fits in none of them. In all these pipelines the same variables
/// count at the same steps. `entered` is a buffer, except for `always`, `code` and `updates`, which
/// must be loaded.
pub(super) fn examine<B: Bytes, const N: usize>(
    on_tiles: &OnTiles<'_, N>,
    entered: &mut Entered<B, N>,
    pipelines: &mut [InPipeline<'_, N>],
) {
    let layers = pipelines[0].ranges.model.layers();
    entered.restart(on_tiles, layers);
    for start in 0..layers {
        entered.enter(start, on_tiles);
        for pipeline in &mut *pipelines {
            pipeline.begin(start, on_tiles.flows);
        }
        ranges_from(start, on_tiles, entered, pipelines);
    }
}

impl<B: Bytes, const N: usize> Entered<B, N> {
    /// Prepares `blocks` for the variables of `on_tiles` and `layers` positions, and adds to it the
    /// variables that every range has.
    fn restart(&mut self, on_tiles: &OnTiles<'_, N>, layers: usize) {
        self.blocks.restart(on_tiles.variables.places, layers);
        for &stretch in &on_tiles.variables.everywhere {
            let bytes = on_tiles.uses.bytes(stretch.row);
            self.blocks.enter(layers, stretch, bytes);
        }
    }

    /// Adds the bytes that ranges gain if they start at the position `start` or later, and starts
    /// an empty range there.
    fn enter(&mut self, start: usize, on_tiles: &OnTiles<'_, N>) {
        for (layer, stretch) in on_tiles.variables.moving.from(start) {
            self.blocks
                .enter(layer, stretch, on_tiles.uses.bytes(stretch.row));
        }
        self.always.begin(start);
        self.code.begin(start);
        self.blocks.begin(start);
        for &(number, _) in &on_tiles.updates {
            self.updates[number].begin(start);
        }
    }
}

/// Raises the peaks of the ranges from the position `start`, which grow by one position at a time,
/// in each of `pipelines`, to their bytes on `on_tiles`.
fn ranges_from<B: Bytes, const N: usize>(
    start: usize,
    on_tiles: &OnTiles<'_, N>,
    entered: &mut Entered<B, N>,
    pipelines: &mut [InPipeline<'_, N>],
) {
    let model = pipelines[0].ranges.model;
    let variables = on_tiles.variables;
    let tiles = || on_tiles.tiles.clone();
    let mut window: Option<(usize, usize)> = None;
    for last in start..model.layers() {
        for &(number, phase) in &on_tiles.updates {
            entered.updates[number].add(phase, last);
        }
        let updates = &entered.updates;
        let mut known = [u64::MAX; N];
        for pipeline in &mut *pipelines {
            lanes::lower(&mut known, &pipeline.add(start..last + 1, tiles(), updates));
        }
        if !pipelines.iter().any(InPipeline::is_on) {
            break;
        }
        entered.code.add(last);
        entered.always.add(last);
        let [fixed] = *entered.always.sums;
        window = variables.widened(window, model.layer_window(last));
        entered.blocks.add(last);
        let code_bytes = model.overhead.code_on(tiles(), &entered.code.sums);
        let mut totals = code_bytes;
        if let Some(window) = window {
            lanes::add(&mut totals, &fixed);
            for pipeline in &mut *pipelines {
                pipeline.raise_in_update((tiles(), &totals), updates);
            }
            let known = model.overhead.without_fragmentation_on(tiles(), &known);
            let left = std::array::from_fn(|lane| known[lane].saturating_sub(totals[lane]));
            let highest = entered.blocks.highest(window, left.map(B::at_most));
            lanes::add(&mut totals, &highest.map(B::sum));
        }
        let without_fragmentation = totals;
        model.overhead.add_fragmentation_on(tiles(), &mut totals);
        // Only a total above the peak so far changes it; a peak of 0 may not have been set.
        if totals
            .iter()
            .zip(&known)
            .any(|(&total, &known)| total > known || known == 0)
        {
            for pipeline in &mut *pipelines {
                pipeline.raise_least(&totals);
            }
            if model.flows.is_some() {
                let gaps = std::array::from_fn(|lane| totals[lane] - without_fragmentation[lane]);
                let mut beside = code_bytes;
                lanes::add(&mut beside, &fixed);
                lanes::add(&mut beside, &gaps);
                raise_phases(on_tiles, &beside, entered, pipelines);
            }
        }
    }
}

/// Raises the peaks of the current range in each phase to its live bytes plus `beside`: its bytes by
/// lane (tile) that are the same in every phase, such as code.
fn raise_phases<B: Bytes, const N: usize>(
    on_tiles: &OnTiles<'_, N>,
    beside: &[u64; N],
    entered: &mut Entered<B, N>,
    pipelines: &[InPipeline<'_, N>],
) {
    for (phase, window) in on_tiles.variables.phases.iter().enumerate() {
        // Without steps there is only one phase, in which nothing is live.
        let is_only = phase == 0 && on_tiles.variables.places == 0;
        if window.0 == window.1 && !is_only {
            continue;
        }
        let mut known = [u64::MAX; N];
        for pipeline in pipelines {
            lanes::lower(&mut known, &pipeline.threshold_in_phase(phase));
        }
        let left = std::array::from_fn(|lane| known[lane].saturating_sub(beside[lane]));
        let mut totals = *beside;
        if !is_only {
            let highest = entered.blocks.highest(*window, left.map(B::at_most));
            lanes::add(&mut totals, &highest.map(B::sum));
        }
        for pipeline in pipelines {
            pipeline.raise_in_phase(phase, &totals);
        }
    }
}
