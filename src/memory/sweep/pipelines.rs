//! The ranges of layers in one pipeline.

use super::peaks::RangePeakTable;
use crate::memory::lanes::{self, ByLane, plus};
use crate::memory::neighbours::NeighbourUses;
use crate::memory::pipeline::{PHASES, Patterns, RangeAdditions, TileFlows};
use crate::memory::update::{RangeUpdates, TileUpdates};
use crate::memory::{MemoryModel, RangeCosts};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One pipeline, as all threads know it.
pub(super) struct PipelineSweep<'a> {
    pub(super) model: &'a MemoryModel<'a>,
    /// Longer ranges than those that need at most this are not looked at.
    limit: u64,
    /// By start: the end (exclusive) of the longest range that fits, as far as
    /// is known.
    ends: Vec<AtomicUsize>,
    /// How many stages a split has at most.
    stages: usize,
    patterns: Option<Patterns>,
    /// The highest bytes on any tile so far that each range needs at least, and in a
    /// pipeline with 0, 1, ... stages after it.
    peaks: RangePeakTable,
}

/// Bytes that a pipeline adds to the range that grows, by lane.
#[derive(Default)]
pub(super) struct PipelineScratch<const N: usize> {
    additions: RangeAdditions<N>,
    /// Does the range fit so far?
    is_on: bool,
    /// The bytes that are added at least.
    least: ByLane<u64, N>,
    /// By phase: what is added beside that and the copies.
    phases: [ByLane<u64, N>; PHASES],
    /// By number of stages after the range: all copies of what it stashes.
    copies: Vec<[u64; N]>,
    tile_updates: TileUpdates<N>,
    updates: RangeUpdates<N>,
}

impl<const N: usize> PipelineScratch<N> {
    /// What is added beside the least and the copies, in the phase where it is the most.
    fn in_any_phase(&self) -> [u64; N] {
        let mut highest = [0; N];
        self.phases
            .iter()
            .for_each(|bytes| lanes::raise(&mut highest, bytes));
        highest
    }
}

impl<'a> PipelineSweep<'a> {
    pub(super) fn new(model: &'a MemoryModel<'a>, limit: u64, stages: usize) -> Self {
        let layers = model.layers();
        let stages = stages.min(layers).min(model.most_stages()).max(1);
        let columns = model.flows.as_ref().map_or(0, |_| stages);
        let patterns = |flows| Patterns::new(flows, layers as u32);
        Self {
            model,
            limit,
            ends: (0..layers).map(|_| AtomicUsize::new(layers)).collect(),
            stages,
            patterns: model.flows.as_ref().map(patterns),
            peaks: RangePeakTable::new(layers, columns + 1),
        }
    }

    /// Do the same variables count in the passes, at the same steps?
    pub(super) fn counts_as(&self, other: &Self) -> bool {
        let (model, other) = (self.model, other.model);
        model.flows.is_some() == other.flows.is_some()
            && model.recomputes_layers() == other.recomputes_layers()
            && model.is_away_as(other)
    }

    /// Takes what is added on some tiles with these flows.
    pub(super) fn load<const N: usize>(
        &self,
        (tiles, uses): (&TileFlows<N>, &NeighbourUses<N>),
        scratch: &mut PipelineScratch<N>,
    ) {
        if let Some(phase) = &self.model.update {
            let PipelineScratch {
                tile_updates,
                updates,
                ..
            } = scratch;
            tile_updates.load(self.model, phase, uses);
            updates.load(self.model, phase, tile_updates);
        }
        if let (Some(flows), Some(patterns)) = (&self.model.flows, &self.patterns) {
            scratch.additions.load(self.model, flows, patterns, tiles);
        }
    }

    /// Begins with an empty range before the position `start`.
    pub(super) fn begin<const N: usize>(&self, start: usize, scratch: &mut PipelineScratch<N>) {
        scratch.is_on = true;
        scratch.least = ByLane::default();
        if self.patterns.is_some() {
            scratch.additions.begin(start);
        }
        if self.model.update.is_some() {
            scratch.updates.begin(start);
        }
    }

    /// Adds the last position of `range`, which had all before it. Returns by lane the
    /// bytes that one of `tiles` has at least, without what the pipeline adds, where it changes
    /// anything of what is known; `None` if the range does not fit.
    pub(super) fn add<const N: usize>(
        &self,
        range: Range<usize>,
        tiles: Range<u32>,
        scratch: &mut PipelineScratch<N>,
    ) -> Option<[u64; N]> {
        let (start, last) = (range.start, range.end - 1);
        scratch.is_on &= last < self.ends[start].load(Ordering::Relaxed);
        if !scratch.is_on {
            return None;
        }
        scratch.least = ByLane::default();
        if let Some(phase) = &self.model.update {
            scratch.updates.add(phase, last);
            *scratch.least = scratch.updates.always(&self.model.overhead, tiles);
        }
        if let Some(flows) = &self.model.flows {
            let additions = &mut scratch.additions;
            additions.add(last);
            scratch.phases = additions.beside(flows).map(ByLane);
            let depths = (0..self.depths(range.end)).map(|after| flows.depth(&range, after));
            scratch.copies.clear();
            let copies = depths.map(|depth| additions.copies(flows, depth));
            scratch.copies.extend(copies);
            lanes::add_up(&mut scratch.least, &additions.least());
        }
        let peaks = self.peaks.of(start, last);
        let added = plus(&scratch.least, &scratch.in_any_phase());
        let lowest = peaks.lowest_column(&added, &scratch.copies);
        let first = peaks.beside(&scratch.least);
        Some(std::array::from_fn(|lane| lowest[lane].min(first[lane])))
    }

    /// For how many numbers of stages after a range that ends at `end` its bytes are
    /// computed: each of these has a position at least.
    fn depths(&self, end: usize) -> usize {
        self.stages.min(self.model.layers() - end + 1)
    }

    /// Takes by lane what tiles need at least of a range without what the pipeline adds.
    pub(super) fn take<const N: usize>(
        &self,
        start: usize,
        last: usize,
        bytes: &[u64; N],
        scratch: &mut PipelineScratch<N>,
    ) {
        if !scratch.is_on {
            return;
        }
        let least = plus(&scratch.least, bytes);
        let peaks = self.peaks.of(start, last);
        peaks.raise(&least);
        if !self.has_phases() {
            peaks.raise_columns(&plus(&least, &scratch.in_any_phase()), &scratch.copies);
        }
        self.stop_beyond_limit((start, last), &least, scratch);
    }

    /// Takes by lane what tiles need of a range in the update, whose code and whose
    /// variables that are live on every step are `fixed`.
    pub(super) fn take_update<const N: usize>(
        &self,
        (start, last): (usize, usize),
        (tiles, fixed): (Range<u32>, &[u64; N]),
        scratch: &mut PipelineScratch<N>,
    ) {
        if !scratch.is_on || self.model.update.is_none() {
            return;
        }
        let mut least = *fixed;
        lanes::add_up(&mut least, scratch.updates.holes());
        lanes::add_up(&mut least, scratch.updates.taken());
        self.model.overhead.add_fragmentation_on(tiles, &mut least);
        lanes::add_up(&mut least, &scratch.least);
        let peaks = self.peaks.of(start, last);
        peaks.raise(&least);
        peaks.raise_columns(&least, &scratch.copies);
        self.stop_beyond_limit((start, last), &least, scratch);
    }

    /// Ends the range if a tile needs too much of it at least.
    fn stop_beyond_limit<const N: usize>(
        &self,
        (start, last): (usize, usize),
        least: &[u64; N],
        scratch: &mut PipelineScratch<N>,
    ) {
        if lanes::highest(least) > self.limit {
            self.ends[start].fetch_min(last, Ordering::Relaxed);
            scratch.is_on = false;
        }
    }

    /// Is more added in one phase than in another?
    pub(super) fn has_phases(&self) -> bool {
        let flows = self.model.flows.as_ref();
        flows.is_some_and(|flows| flows.has_phases())
    }

    /// By lane the bytes that a tile has at least in a phase, without what the pipeline
    /// adds, where it changes anything of what is known.
    pub(super) fn known_in<const N: usize>(
        &self,
        (start, last): (usize, usize),
        phase: usize,
        scratch: &PipelineScratch<N>,
    ) -> [u64; N] {
        match scratch.is_on && self.has_phases() {
            true => {
                let peaks = self.peaks.of(start, last);
                let added = plus(&scratch.least, &scratch.phases[phase]);
                peaks.lowest_column(&added, &scratch.copies)
            }
            false => [u64::MAX; N],
        }
    }

    /// Takes by lane what tiles need in a phase, without what the pipeline adds.
    pub(super) fn take_in<const N: usize>(
        &self,
        (start, last): (usize, usize),
        phase: usize,
        bytes: &[u64; N],
        scratch: &PipelineScratch<N>,
    ) {
        if scratch.is_on && self.has_phases() {
            let least = plus(&plus(&scratch.least, bytes), &scratch.phases[phase]);
            self.peaks
                .of(start, last)
                .raise_columns(&least, &scratch.copies);
        }
    }

    /// The table of all ranges that fit.
    pub(super) fn into_costs(self) -> RangeCosts {
        let row = |start: usize| {
            let end = self.ends[start].load(Ordering::Relaxed).max(start);
            let ranges = (start..end).map(|last| self.peaks.of(start, last).get(0));
            ranges.collect()
        };
        let least = (0..self.ends.len()).map(row).collect();
        match &self.patterns {
            None => RangeCosts::new(least),
            Some(_) => RangeCosts::in_pipeline(least, self.stages, |range, after| {
                match after < self.depths(range.end) {
                    true => self.peaks.of(range.start, range.end - 1).get(after + 1),
                    false => u64::MAX,
                }
            }),
        }
    }
}
