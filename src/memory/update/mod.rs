//! The update of the weights as a separate phase, where the state of the optimizer is away between
//! two updates (docs/model.md, "Optimizer state elsewhere").
//!
//! The passes run without the state and without variables that only updates make. Then the state of
//! one weight after the other comes in, and the bytes that its update takes (`tile`) are added to
//! those of always-live variables. `ranges` does so for all ranges of layers at once.

mod parts;
mod ranges;
#[cfg(test)]
mod tests;
mod tile;

pub(super) use ranges::RangeUpdates;
pub(super) use tile::{TileUpdates, Updating};

use super::MemoryModel;
use crate::limits;
use crate::memory::{Pipeline, StatePlace};
use crate::model::{Model, Placement, TooManyPlaces};
use parts::{Part, Updates};
use std::sync::Arc;

/// The variables of updates; some are off the chip in the passes.
#[derive(Debug, Clone)]
pub(in crate::memory) struct UpdatePhase {
    place: StatePlace,
    replicas: u64,
    /// By number of the use, its part in the update.
    of_uses: Arc<[InUpdate]>,
    /// Does the profile have gradients of several micro-batches? Else accumulators are assumed to
    /// be as large as the weights.
    has_gradients: bool,
    /// By update: is some of its state sharded among replicas?
    is_shared_out: Arc<[bool]>,
    /// By update, the half-open range of its steps.
    steps: Arc<[(u32, u32)]>,
}

/// The part of a use's variables in the update.
#[derive(Debug, Clone)]
pub(in crate::memory) struct InUpdate {
    part: Option<Part>,
    /// Are the variables parameters that some steps do without? In the update all of them are live.
    has_holes: bool,
    /// The numbers of their updates, ascending.
    updates: Box<[u32]>,
}

impl InUpdate {
    /// Are the variables absent from both passes?
    fn is_away(&self) -> bool {
        matches!(self.part, Some(Part::State { .. } | Part::Temporary))
    }
}

impl UpdatePhase {
    /// Finds the variables that are off the chip in `pipeline`; `None` if the model does not train
    /// or the pipeline keeps all state on the chip.
    ///
    /// # Errors
    /// When variables have more updates, summed over all uses, than [`limits::ENTRIES`].
    pub(in crate::memory) fn new(
        model: &Model,
        placement: &Placement,
        pipeline: Pipeline,
    ) -> Result<Option<Self>, TooManyPlaces> {
        if model.backward_start.is_none() || pipeline.state == StatePlace::OnChip {
            return Ok(None);
        }
        let found = Updates::new(model, &placement.by_pass, pipeline)?;
        let mut left = limits::ENTRIES;
        let mut of_uses = Vec::new();
        let mut is_shared_out = vec![false; found.steps.len()];
        for variable in model.variables.uses() {
            let part = found.part_of(model, variable);
            let is_parameter = model.classes.lasts(variable.class);
            let updates = part.map_or(Vec::new(), |_| found.updates_of(variable.set));
            if let Some(Part::State {
                is_shared_out: true,
            }) = part
            {
                for &update in &updates {
                    is_shared_out[update as usize] = true;
                }
            }
            left = left.checked_sub(updates.len()).ok_or(TooManyPlaces)?;
            of_uses.push(InUpdate {
                part,
                has_holes: is_parameter && !model.classes.is_always_live(variable.class),
                updates: updates.into(),
            });
        }
        Ok(Some(Self {
            place: pipeline.state,
            replicas: pipeline.replicas.max(1),
            of_uses: of_uses.into(),
            is_shared_out: is_shared_out.into(),
            has_gradients: model.recording.accumulates,
            steps: found.steps.into(),
        }))
    }

    /// Is the state loaded from memory outside the IPUs?
    fn is_off_chip(&self) -> bool {
        self.place.is_off_chip()
    }

    /// The bytes of one replica's share of `bytes`.
    fn share(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.replicas)
    }

    /// The part of a use's variables in the update; `None` for a use of code.
    fn of(&self, number: u32) -> Option<&InUpdate> {
        self.of_uses.get(number as usize)
    }
}

impl MemoryModel<'_> {
    /// Are the variables of a use absent from both passes?
    #[inline]
    pub(in crate::memory) fn is_away(&self, number: u32) -> bool {
        let in_update = self.update.as_ref().and_then(|update| update.of(number));
        in_update.is_some_and(InUpdate::is_away)
    }

    /// Are the same variables absent from both passes in another pipeline?
    pub(in crate::memory) fn is_away_as(&self, other: &MemoryModel<'_>) -> bool {
        let mut numbers = 0..self.model.variables.uses().len() as u32;
        numbers.all(|number| self.is_away(number) == other.is_away(number))
    }

    /// The names of the weights of an update, or of its state if it has no weights.
    pub fn weights_of_update(&self, update: u32) -> Vec<&str> {
        let Some(phase) = &self.update else {
            return Vec::new();
        };
        let (mut weights, mut state) = (Vec::new(), Vec::new());
        for (in_update, variable) in phase.of_uses.iter().zip(self.model.variables.uses()) {
            let names = match in_update.part {
                Some(Part::Weight) => &mut weights,
                Some(Part::State { .. }) => &mut state,
                _ => continue,
            };
            let name = self.model.label_of(variable.set).weight_name();
            if in_update.updates.contains(&update) && !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
        if weights.is_empty() { state } else { weights }
    }

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
        let uses = phase.of_uses.iter().zip(self.model.variables.uses());
        for (number, (in_update, variable)) in (0u32..).zip(uses) {
            if let Some(Part::State { .. }) = in_update.part {
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
