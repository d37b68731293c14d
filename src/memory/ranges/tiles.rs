//! Examines all ranges of layers on some tiles, in all pipelines in which the same variables are
//! live at the same steps.

use super::blocks::Blocks;
use super::pipelines::InPipeline;
use super::variables::EnteringVariables;
use crate::memory::entering::GrowingSums;
use crate::memory::lanes::{self, Bytes};
use crate::memory::overhead::{TileOverhead, add_fragmentation};
use crate::memory::pipeline::TileFlows;
use crate::memory::update::{RangeUpdates, UpdatePhase};
use crate::memory::uses::NeighbourUses;

/// The buffers of one thread for up to `N` neighbouring tiles: the uses on the tiles, and the bytes
/// that ranges from the current start gain at each position, by kind of memory.
#[derive(Default)]
pub(super) struct TileScratch<B, const N: usize> {
    pub uses: NeighbourUses<N>,
    pub variables: EnteringVariables<N>,
    pub flows: TileFlows<N>,
    /// Bytes of the variables that are not live at every step, at each step at which a peak is
    /// possible.
    blocks: Blocks<B, N>,
    /// Bytes of the variables that are live at every step.
    pub always: GrowingSums<N, 1>,
    /// Bytes of code and vertex state. The kind of each sum is its
    /// [`CodeKind`](crate::profile::CodeKind).
    pub code: GrowingSums<N, 4>,
    /// One entry per distinct weight update: its bytes.
    /// [`PipelineRanges::update`](super::pipelines::PipelineRanges::update) is an index into this
    /// list.
    pub updates: Vec<RangeUpdates<N>>,
}

/// State of the examination of all ranges on some neighbouring tiles, in pipelines in which the
/// same variables are live at the same steps.
pub(super) struct Examination<'a, B, const N: usize> {
    pub tiles: &'a [TileOverhead],
    /// The bytes on the tiles, which must have been loaded except `blocks`.
    pub scratch: &'a mut TileScratch<B, N>,
    /// The weight updates of `pipelines`, each with its index into [`TileScratch::updates`].
    pub updates: Vec<(usize, &'a UpdatePhase)>,
    /// The pipelines, at least one, with the bytes that each adds on the tiles.
    pub pipelines: Vec<InPipeline<'a, N>>,
}

impl<B: Bytes, const N: usize> Examination<'_, B, N> {
    /// Raises the peaks of all ranges, in each pipeline, to the bytes on these tiles if those are
    /// higher. As soon as a range fits in no pipeline, longer ranges from the same start are
    /// skipped.
    pub fn run(&mut self) {
        let layers = self.pipelines[0].ranges.model.layers();
        let places = self.scratch.variables.places;
        self.scratch.blocks.restart(places, layers);
        for start in 0..layers {
            self.begin(start);
            self.ranges_from(start);
        }
    }

    /// Adds the bytes that ranges gain only if they begin at the position `start` or later, and
    /// starts an empty range at this position.
    fn begin(&mut self, start: usize) {
        let scratch = &mut *self.scratch;
        for (layer, stretch) in scratch.variables.moving.from(start) {
            let bytes = scratch.uses.bytes(stretch.row);
            scratch.blocks.enter(layer, stretch, bytes);
        }
        scratch.always.begin(start);
        scratch.code.begin(start);
        scratch.blocks.begin(start);
        for &(number, _) in &self.updates {
            scratch.updates[number].begin(start);
        }
        for pipeline in &mut self.pipelines {
            pipeline.begin(start, &scratch.flows);
        }
    }

    /// Raises the peaks of all ranges that begin at the position `start` to the bytes on these
    /// tiles if those are higher. The ranges grow by one position at a time.
    fn ranges_from(&mut self, start: usize) {
        let model = self.pipelines[0].ranges.model;
        let tiles = self.tiles;
        let mut window: Option<(usize, usize)> = None;
        for last in start..model.layers() {
            let scratch = &mut *self.scratch;
            for &(number, phase) in &self.updates {
                scratch.updates[number].add(phase, last);
            }
            let updates = &scratch.updates;
            let mut known = [u64::MAX; N];
            for pipeline in &mut self.pipelines {
                lanes::lower(&mut known, &pipeline.add(start..last + 1, tiles, updates));
            }
            if !self.pipelines.iter().any(|own| own.scratch.is_on) {
                break;
            }
            scratch.code.add(last);
            scratch.always.add(last);
            let [fixed] = *scratch.always.sums;
            window = scratch.variables.widened(window, model.layer_window(last));
            scratch.blocks.add(last);
            let mut beside = [0; N];
            for (lane, tile) in tiles.iter().enumerate() {
                let code = std::array::from_fn(|kind| scratch.code.sums[kind][lane]);
                beside[lane] = tile.capped(code).iter().chain(&tile.code).sum();
            }
            let mut totals = beside;
            if let Some(window) = window {
                lanes::add(&mut totals, &fixed);
                for pipeline in &mut self.pipelines {
                    pipeline.raise_in_update((tiles, &totals), updates);
                }
                let mut left = known;
                for (lane, tile) in tiles.iter().enumerate() {
                    let without = tile.without_fragmentation(left[lane]);
                    left[lane] = without.saturating_sub(totals[lane]);
                }
                let highest = scratch.blocks.highest(window, left.map(B::at_most));
                lanes::add(&mut totals, &highest.map(B::sum));
            }
            let without_fragmentation = totals;
            add_fragmentation(tiles, &mut totals);
            // A total changes a peak only if it exceeds `known`. If `known` is 0, the peak may not
            // have been set yet.
            if totals
                .iter()
                .zip(&known)
                .any(|(&total, &known)| total > known || known == 0)
            {
                for pipeline in &mut self.pipelines {
                    pipeline.raise_least(&totals);
                }
                if model.flows.is_some() {
                    lanes::add(&mut beside, &fixed);
                    lanes::add(&mut beside, &totals);
                    lanes::subtract(&mut beside, &without_fragmentation);
                    self.raise_phases(&beside);
                }
            }
        }
    }

    /// Raises the peaks of the current range, in each phase, to the live bytes in the phase plus
    /// `beside` if that is higher. `beside` has the bytes that are the same in every phase, such as
    /// code, by lane (tile).
    fn raise_phases(&mut self, beside: &[u64; N]) {
        for (phase, window) in self.scratch.variables.phases.iter().enumerate() {
            // A model without steps has only the first phase, and no variable is live in it.
            let is_only = phase == 0 && self.scratch.variables.places == 0;
            if window.0 == window.1 && !is_only {
                continue;
            }
            let pipelines = || self.pipelines.iter().filter(|own| own.scratch.is_on);
            let mut known = [u64::MAX; N];
            for pipeline in pipelines() {
                let lowest = pipeline.lowest_column(&pipeline.scratch.phases[phase]);
                lanes::lower(&mut known, &lowest);
            }
            let mut totals = *beside;
            if !is_only {
                let left = std::array::from_fn(|lane| known[lane].saturating_sub(beside[lane]));
                let highest = self.scratch.blocks.highest(*window, left.map(B::at_most));
                lanes::add(&mut totals, &highest.map(B::sum));
            }
            for pipeline in pipelines() {
                pipeline.raise_columns(&lanes::plus(&totals, &pipeline.scratch.phases[phase]));
            }
        }
    }
}
