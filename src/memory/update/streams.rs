//! Bytes of state that stages load from memory outside the IPUs and store there.

use super::UpdatePhase;
use super::parts::Part;
use crate::memory::{MemoryModel, Pipeline, StatePlace};
use crate::model::TooManyPlaces;

impl MemoryModel<'_> {
    /// By position, bytes over all tiles of optimizer state that a training pipeline would stream
    /// if the state were off the chip; state of several positions counts at the first of them.
    ///
    /// # Errors
    /// When more distinct sets of layers share variables than in any real model.
    pub fn streamed_state(&self) -> Result<Vec<u64>, TooManyPlaces> {
        let mut found = vec![0u64; self.layers()];
        let elsewhere = Pipeline {
            state: StatePlace::OffChip,
            ..self.pipeline
        };
        let Some(phase) = UpdatePhase::new(self.model, self.placement, elsewhere)? else {
            return Ok(found);
        };
        for (number, variable) in (0u32..).zip(self.model.variables.uses()) {
            if let Some(Part::State { .. }) = phase.of(number).0.part {
                let places = self.sets.places(self.uses.known(number).counted);
                let first = places.first().map_or(0, |&place| place as usize);
                if let Some(sum) = found.get_mut(first) {
                    *sum = sum.saturating_add(variable.bytes);
                }
            }
        }
        Ok(found)
    }
}
