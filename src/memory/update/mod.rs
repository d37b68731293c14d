//! The weight update as a phase of its own, if optimizer state is off the chip or sharded between
//! two updates (docs/model.md, "Optimizer state elsewhere").
//!
//! The forward and backward passes run without this optimizer state, and without the variables that
//! only updates make. Then weights are updated one after the other: the optimizer state of the
//! weight is loaded or gathered, and the bytes of its update (module `tile`) are added to the bytes
//! of always-live variables.

mod parts;
#[cfg(test)]
mod tests;
mod tile;

pub(super) use tile::{RangeUpdates, TileUpdates, Updating};

use super::MemoryModel;
use crate::limits;
use crate::memory::{Pipeline, StatePlace};
use crate::model::{Model, Placement, TooManyPlaces, VariableUse};
use parts::{UpdateRole, Updates};
use std::sync::Arc;

/// The weight update as a phase of its own: the role of each variable in it. Weights are updated
/// one after the other, each in an *update*; updates are numbered from 0.
#[derive(Debug, Clone)]
pub(crate) struct UpdatePhase {
    place: StatePlace,
    replicas: u64,
    /// One entry per use of data (index as in [`CountedUses`](crate::memory::uses::CountedUses)):
    /// the role of the use's variables in updates.
    of_uses: Arc<[InUpdate]>,
    /// Whether the profile has accumulators of gradients. If not, an accumulator as large as the
    /// weight is assumed for each weight.
    has_gradients: bool,
    /// One entry per update: whether any of its optimizer state is sharded among replicas.
    is_shared_out: Arc<[bool]>,
    /// One entry per update: the half-open range of steps from its first to its last operation.
    steps: Arc<[(u32, u32)]>,
}

/// The role that the variables of one use (one class and use set) have in updates.
#[derive(Debug, Clone)]
pub(crate) struct InUpdate {
    role: Option<UpdateRole>,
    /// Whether the variables are parameters (live at the first and the last step) that are not live
    /// at some steps in between. Such parameters are on the chip with all their bytes during an
    /// update.
    has_holes: bool,
    /// Indices of the updates that use the variables, in ascending order. Empty if the variables
    /// have no role in updates.
    updates: Box<[u32]>,
}

impl InUpdate {
    /// Returns whether the variables are off the chip, or not yet made, during the whole forward
    /// and backward pass.
    fn is_away(&self) -> bool {
        matches!(
            self.role,
            Some(UpdateRole::State { .. } | UpdateRole::Temporary)
        )
    }
}

impl UpdatePhase {
    /// Finds the role of each variable in the weight updates of a model with the given `pipeline`.
    /// Returns `None` if the model does not train, or if the pipeline keeps all optimizer state on
    /// the chip.
    ///
    /// # Errors
    /// If the lists of updates of all uses together have more entries than [`limits::ENTRIES`].
    pub fn new(
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
            let role = found.role_of(variable);
            let is_parameter = model.is_parameter(variable.class, variable.set);
            let updates = role.map_or_else(Box::default, |_| found.updates_of(variable.set));
            if role == Some(UpdateRole::SHARED_STATE) {
                for &update in &*updates {
                    is_shared_out[update as usize] = true;
                }
            }
            left = left.checked_sub(updates.len()).ok_or(TooManyPlaces)?;
            of_uses.push(InUpdate {
                role,
                has_holes: is_parameter && !model.classes.is_always_live(variable.class),
                updates,
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

    /// Returns whether `other`, an update phase of the same model, is equal to `self`.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.place, self.replicas) == (other.place, other.replicas)
    }

    /// Returns the bytes of one replica's share of a tensor with `bytes` bytes, rounded up.
    fn share(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.replicas)
    }

    /// Returns whether all variables of the use with index `number` (see
    /// [`CountedUses`](crate::memory::uses::CountedUses)) are on the chip during an update,
    /// although they are not live at every step in the profile.
    pub fn fills_holes(&self, number: u32) -> bool {
        let own = self.of(number);
        own.has_holes && !own.is_away()
    }

    /// Returns the role in updates of the variables of the use with index `number` (see
    /// [`CountedUses`](crate::memory::uses::CountedUses)), which hold data: the classic memory
    /// model, which alone has uses of code, has no update phase.
    fn of(&self, number: u32) -> &InUpdate {
        &self.of_uses[number as usize]
    }
}

impl MemoryModel<'_> {
    /// Returns whether the variables of the use with index `number` (see
    /// [`CountedUses`](crate::memory::uses::CountedUses)) are off the chip, or not yet made, during
    /// both passes. The result is always false if all optimizer state stays on the chip.
    #[inline]
    pub(crate) fn is_away(&self, number: u32) -> bool {
        self.update
            .as_ref()
            .is_some_and(|update| update.of(number).is_away())
    }

    /// Returns the distinct names of the weights that the update with index `update` changes. If
    /// none of these weights has a name, returns the names of the update's optimizer state. The
    /// list is empty if the weight update is not a phase of its own.
    pub fn weights_of_update(&self, update: u32) -> Vec<&str> {
        let Some(phase) = &self.update else {
            return Vec::new();
        };
        let (mut weights, mut state) = (Vec::new(), Vec::new());
        for (in_update, variable) in phase.of_uses.iter().zip(self.model.variables.uses()) {
            let names = match in_update.role {
                Some(UpdateRole::Weight) => &mut weights,
                Some(UpdateRole::State { .. }) => &mut state,
                _ => continue,
            };
            let name = self.model.label_of(variable.set).weight_name();
            if in_update.updates.contains(&update) && !name.is_empty() && !names.contains(&name) {
                names.push(name);
            }
        }
        if weights.is_empty() { state } else { weights }
    }

    /// Returns one entry per position: the bytes, over all tiles, of the optimizer state that would
    /// be loaded in each weight update if all state were off the chip. State that several positions
    /// use is attributed to the first of them, and state that every stage has is attributed to
    /// position 0.
    ///
    /// # Errors
    /// If variables are shared by more distinct sets of layers than in any real model.
    pub fn streamed_state(&self) -> Result<Vec<u64>, TooManyPlaces> {
        let mut found = vec![0u64; self.layers()];
        for (role, variable) in self.updated()? {
            if let UpdateRole::State { .. } = role {
                let first = self.layers_of(variable.set).first();
                if let Some(sum) = found.get_mut(first.map_or(0, |&place| place as usize)) {
                    *sum = sum.saturating_add(variable.bytes);
                }
            }
        }
        Ok(found)
    }

    /// Returns the bytes, over all tiles, of the gradients that replicas exchange in each training
    /// step: the bytes of the accumulators, or of the updated weights if the profile has no
    /// accumulators.
    ///
    /// # Errors
    /// If variables are shared by more distinct sets of layers than in any real model.
    pub fn gradient_bytes(&self) -> Result<u64, TooManyPlaces> {
        let updated = self.updated()?;
        let bytes = |wanted: UpdateRole| {
            updated
                .iter()
                .filter(|(role, _)| *role == wanted)
                .fold(0u64, |sum, (_, own)| sum.saturating_add(own.bytes))
        };
        Ok(match bytes(UpdateRole::Gradient) {
            0 => bytes(UpdateRole::Weight),
            gradients => gradients,
        })
    }

    /// Returns each use (variables of one class and use set) that would have a role in updates if
    /// optimizer state were off the chip, with this role.
    fn updated(&self) -> Result<Vec<(UpdateRole, &VariableUse)>, TooManyPlaces> {
        let elsewhere = Pipeline {
            state: StatePlace::OffChip,
            ..self.pipeline
        };
        let phase = UpdatePhase::new(self.model, self.placement, elsewhere)?;
        let roles = phase
            .iter()
            .flat_map(|phase| phase.of_uses.iter().map(|own| own.role));
        Ok(roles
            .zip(self.model.variables.uses())
            .filter_map(|(role, variable)| Some((role?, variable)))
            .collect())
    }
}
