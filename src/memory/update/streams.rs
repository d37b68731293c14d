//! The bytes that stages load from memory outside the IPUs, and store there.

use super::UpdatePhase;
use super::parts::Part;
use crate::memory::pipeline::{Patterns, RangeAdditions, TileFlows};
use crate::memory::{MemoryModel, Pipeline, Recompute, StatePlace, Storage};
use crate::model::TooManyPlaces;

/// Bytes over all tiles that would be streamed if they were elsewhere, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Streamed {
    /// State of the optimizer, by position; what several have is at the first of them.
    pub state: Vec<u64>,
    /// Accumulators, the same.
    pub accumulators: Vec<u64>,
    /// One copy of what a range keeps for each micro-batch, by what is recomputed
    /// ([`Recompute`] as a number), then by start, then by length less one. Empty unless the
    /// stash is elsewhere.
    pub stash: Vec<Vec<Vec<u64>>>,
}

impl MemoryModel<'_> {
    /// Bytes that stages of a pipeline that trains would stream.
    ///
    /// # Errors
    /// When layers share variables in more ways than those of any real model.
    pub fn streamed(&self) -> Result<Streamed, TooManyPlaces> {
        let mut found = Streamed {
            state: vec![0; self.layers()],
            accumulators: vec![0; self.layers()],
            stash: self.stashes()?,
        };
        let elsewhere = Pipeline {
            state: StatePlace::OffChip,
            accumulators: Storage::OffChip,
            ..self.pipeline
        };
        let Some(phase) = UpdatePhase::new(self.model, self.placement, elsewhere)? else {
            return Ok(found);
        };
        for (number, variable) in (0u32..).zip(self.model.variables.uses()) {
            let places = self.sets.places(self.uses.known(number).counted);
            let first = places.first().map_or(0, |&place| place as usize);
            let added = self.flows.as_ref();
            let added = added.and_then(|flows| flows.accumulator_of(number, variable.bytes));
            let (sums, bytes) = match (phase.of(number).0.part, added) {
                (Some(Part::State(_)), _) => (&mut found.state, variable.bytes),
                (Some(Part::Accumulator), _) => (&mut found.accumulators, variable.bytes),
                (_, Some(bytes)) => (&mut found.accumulators, bytes),
                _ => continue,
            };
            if let Some(sum) = sums.get_mut(first) {
                *sum = sum.saturating_add(bytes);
            }
        }
        Ok(found)
    }

    /// Bytes that ranges stash, by recomputation; nothing unless it is elsewhere.
    fn stashes(&self) -> Result<Vec<Vec<Vec<u64>>>, TooManyPlaces> {
        if self.pipeline.stash == Storage::OnChip || self.flows.is_none() {
            return Ok(Vec::new());
        }
        let all = [Recompute::None, Recompute::Stage, Recompute::Layer];
        let stash = |recompute| {
            let streamed = self.in_pipeline(Pipeline {
                recompute,
                ..self.pipeline
            })?;
            Ok(streamed.stash_of_ranges())
        };
        all.into_iter().map(stash).collect()
    }

    /// By start and length less one: one copy of what a range stashes, over all tiles.
    fn stash_of_ranges(&self) -> Vec<Vec<u64>> {
        let Some(flows) = &self.flows else {
            return Vec::new();
        };
        let layers = self.layers();
        let patterns = Patterns::new(flows, layers as u32);
        let mut all_tiles = TileFlows::<1>::default();
        all_tiles.load_all(self, flows);
        let mut additions = RangeAdditions::default();
        additions.load(self, flows, &patterns, &all_tiles);
        let mut stashes = Vec::with_capacity(layers);
        for start in 0..layers {
            additions.begin(start);
            let mut from = Vec::with_capacity(layers - start);
            for last in start..layers {
                additions.add(last);
                let [bytes] = additions.stashed();
                from.push(bytes);
            }
            stashes.push(from);
        }
        stashes
    }
}
