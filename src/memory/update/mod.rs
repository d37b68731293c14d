//! The weight update as a phase after the forward and backward passes, if optimizer state is off
//! the chip or sharded between two updates (docs/model.md, "Optimizer state elsewhere").
//!
//! The passes run without this optimizer state, and without the variables that only updates make.
//! Then weights are updated one after the other: the optimizer state of the weight is loaded or
//! gathered. A stage then takes the bytes of this one update (module `tile`) and those of
//! always-live variables.

#[cfg(test)]
mod tests;
mod tile;

pub(super) use tile::{RangeUpdates, TileUpdates, Updating};

use super::{MemoryModel, Pipeline, StatePlace, steps::covering};
use crate::{
    limits,
    model::{
        Framework, Model, PassPlaces, Placement, TensorKind, TooManyPlaces, VariableUse, ascending,
    },
};

/// The role of each variable, such as weight or optimizer state, in the weight update. The update
/// is a phase after the forward and backward passes if optimizer state is off the chip or sharded.
/// It consists of one *update* per weight, one after the other; these are numbered from 0.
#[derive(Debug)]
pub(crate) struct UpdatePhase {
    place: StatePlace,
    replicas: u64,
    /// One entry per use (variables that are live at the same steps and are used by the same
    /// operations), in the order of [`CountedUses`](crate::memory::uses::CountedUses): the role of
    /// the variables in updates.
    of_uses: Vec<InUpdate>,
    /// Whether the profile has accumulators of gradients. If not, an accumulator as large as the
    /// weight is assumed for each weight.
    has_gradients: bool,
    /// One entry per weight update: whether any of its optimizer state is sharded among replicas,
    /// so that replicas update only their shares and gather the weight.
    is_shared_out: Vec<bool>,
    /// One entry per weight update: the half-open range of liveness steps from its first to its
    /// last operation. The peak of the tensors that the update makes is the peak in this range.
    steps: Vec<(u32, u32)>,
}

/// The role that variables have in weight updates, and the updates that use them. Variables that
/// are live at the same steps and are used by the same operations have the same role.
#[derive(Debug)]
pub(crate) struct InUpdate {
    role: Option<UpdateRole>,
    /// Whether the variables are parameters that stay on the chip, although the profile lists them
    /// as live at some steps only. During every weight update, a stage holds all its parameters of
    /// this kind.
    pub fills_holes: bool,
    updates: Box<[u32]>,
}

impl UpdatePhase {
    /// Finds the role of each variable in the weight updates of a model in `pipeline`. Returns
    /// `None` if the model does not train, or if the pipeline keeps all optimizer state on the
    /// chip.
    ///
    /// # Errors
    /// If the lists of the updates that use each variable have more than [`limits::ENTRIES`]
    /// entries in total.
    pub fn new(
        model: &Model,
        placement: &Placement,
        pipeline: Pipeline,
    ) -> Result<Option<Self>, TooManyPlaces> {
        if model.backward_start.is_none() || pipeline.state == StatePlace::OnChip {
            return Ok(None);
        }
        let found = Updates::new(model, &placement.by_pass, pipeline);
        let (of_group, steps) = found.numbered();
        let mut left = limits::ENTRIES;
        let mut of_uses = Vec::new();
        let mut is_shared_out = vec![false; steps.len()];
        for variable in model.variables.uses() {
            let role = found.role_of(variable);
            let is_parameter = model.is_parameter(variable.class, variable.set);
            let groups = role.map(|_| found.groups(variable.set));
            let updates = ascending(groups.into_iter().flatten().map(|group| of_group[group]));
            if role == Some(UpdateRole::SHARED_STATE) {
                for &update in &*updates {
                    is_shared_out[update as usize] = true;
                }
            }
            left = left.checked_sub(updates.len()).ok_or(TooManyPlaces)?;
            of_uses.push(InUpdate {
                role,
                fills_holes: is_parameter
                    && !model.classes.is_always_live(variable.class)
                    && !role.is_some_and(UpdateRole::is_away),
                updates,
            });
        }
        Ok(Some(Self {
            place: pipeline.state,
            replicas: pipeline.replicas.max(1),
            of_uses,
            is_shared_out,
            has_gradients: model.recording.accumulates,
            steps,
        }))
    }

    /// Returns whether this update phase and `other`, an update phase of the same model, give the
    /// same bytes: whether they have the same place of optimizer state and the same number of
    /// replicas. Nothing else in the pipeline affects an update phase.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.place, self.replicas) == (other.place, other.replicas)
    }

    fn share(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.replicas)
    }

    /// Returns the role in weight updates of a group of variables that are live at the same steps
    /// and are used by the same operations. `number` is the index of the group in
    /// [`CountedUses`](crate::memory::uses::CountedUses). The variables must hold data, not code.
    pub fn of(&self, number: u32) -> &InUpdate {
        &self.of_uses[number as usize]
    }
}

impl MemoryModel<'_> {
    /// Returns whether variables are not counted in the forward and the backward pass, because only
    /// weight updates make and use them, or because they are optimizer state that is off the chip
    /// or sharded. Shares of state that stay on the chip are counted elsewhere. Always false if no
    /// state is off the chip or sharded. `number` is the index of the variables in
    /// [`CountedUses`](crate::memory::uses::CountedUses).
    #[inline]
    pub(crate) fn is_away(&self, number: u32) -> bool {
        self.update
            .as_ref()
            .and_then(|update| update.of(number).role)
            .is_some_and(UpdateRole::is_away)
    }

    /// Returns the distinct names of the weights that the update with index `update` changes. If
    /// none of these weights has a name, returns the names of the update's optimizer state. The
    /// list is empty if the model does not train, or if all optimizer state stays on the chip and
    /// is not sharded, since the update then has no memory peak of its own.
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

    /// Returns one entry per position (In, a layer or Out): the bytes, over all tiles, of the
    /// optimizer state that would be loaded in each weight update if all state were off the chip.
    /// State that several positions use is attributed to the first of them, and state that every
    /// stage has is attributed to position 0.
    pub fn streamed_state(&self) -> Vec<u64> {
        let mut found = vec![0u64; self.layers()];
        for (role, variable) in self.updated() {
            if let UpdateRole::State { .. } = role {
                let first = self.layers_of(variable.set).first();
                found[first.map_or(0, |&place| place as usize)] += variable.bytes;
            }
        }
        found
    }

    /// Returns the bytes, over all tiles, of the gradients that replicas exchange in each training
    /// step: the bytes of the accumulators, or of the updated weights if the profile has no
    /// accumulators.
    pub fn gradient_bytes(&self) -> u64 {
        let updated = self.updated();
        let bytes = |wanted: UpdateRole| {
            let own = updated.iter().filter(|(role, _)| *role == wanted);
            own.map(|(_, variable)| variable.bytes).sum()
        };
        match bytes(UpdateRole::Gradient) {
            0 => bytes(UpdateRole::Weight),
            gradients => gradients,
        }
    }

    /// Returns the variables that would take part in weight updates if optimizer state were off the
    /// chip, each with its role, such as weight or optimizer state. Variables that are live at the
    /// same steps and are used by the same operations are one entry. The list is empty if the model
    /// does not train.
    fn updated(&self) -> Vec<(UpdateRole, &VariableUse)> {
        if !self.is_training() {
            return Vec::new();
        }
        let elsewhere = Pipeline {
            state: StatePlace::OffChip,
            ..self.pipeline
        };
        let found = Updates::new(self.model, &self.placement.by_pass, elsewhere);
        let variables = self.model.variables.uses().iter();
        variables
            .filter_map(|variable| Some((found.role_of(variable)?, variable)))
            .collect()
    }
}

/// Prefixes that PopART puts before the name of a weight to name its tensors of optimizer state.
const STATE_MARKS: [&str; 4] = ["Accl1___", "Accl2___", "Accl3___", "Step___"];
/// PopART gives this prefix to a tensor that holds both momentum and gradients. The tensor counts
/// as optimizer state unless the profile has accumulators, which then hold the gradients.
const MOMENTUM_MARK: &str = "Accl___";
/// PopART moves optimizer state off the chip only if the tensor has at least this number of
/// elements, so scalars stay on the chip.
const FEWEST_ELEMENTS: u64 = 2;
/// PopART shards optimizer state among replicas only if the tensor has at least this number of
/// elements.
const FEWEST_SHARED_ELEMENTS: u64 = 8192;
/// TensorFlow moves optimizer state off the chip only if the variable has at least this number of
/// bytes per replica.
const FEWEST_BYTES: u64 = 128;
/// The size in bytes of one element that is assumed for a tensor if no debug context gives its
/// type.
const ELEMENT: u64 = 4;

/// The role that variables have in the update of a weight, such as optimizer state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UpdateRole {
    /// Optimizer state that is not whole on the chip between two updates. If `is_shared_out`, each
    /// replica keeps only a share of the state, on the chip or off it; otherwise all of the state
    /// is off the chip.
    State { is_shared_out: bool },
    /// A tensor that only weight updates make and use, so that it takes no memory in the passes.
    Temporary,
    /// A weight that an update changes. A sharded update gathers it from the replicas.
    Weight,
    /// The accumulator of a weight's gradients. A sharded update needs only a replica's share of
    /// it.
    Gradient,
}

impl UpdateRole {
    /// The role of optimizer state that is divided among replicas: each replica keeps only a part.
    const SHARED_STATE: Self = Self::State {
        is_shared_out: true,
    };

    /// Returns whether variables with this role take no memory in the forward and backward passes.
    /// These are tensors that only weight updates make, and optimizer state that is off the chip or
    /// sharded. Shares of the state that stay on the chip are counted elsewhere.
    fn is_away(self) -> bool {
        matches!(self, Self::State { .. } | Self::Temporary)
    }
}

/// The operation groups and the variables that take part in the weight updates of a model.
struct Updates<'a> {
    model: &'a Model,
    pipeline: Pipeline,
    /// One entry per use set (the operations that use a variable): the role in weight updates of
    /// parameters with this use set. All optimizer state has [`UpdateRole::SHARED_STATE`] here,
    /// even if it is not sharded. [`Updates::state`] then decides by its size whether it is
    /// sharded, off the chip, or on the chip.
    of_parameters: Vec<Option<UpdateRole>>,
    /// One entry per use set (the operations that use a variable): whether only updates use its
    /// variables. Operations that only copy from or to the host are ignored.
    is_of_updates: Vec<bool>,
    /// One entry per use set (the operations that use a variable): the bytes, over all tiles, of
    /// the whole tensor to which parameters with this use set belong. For a tensor of optimizer
    /// state, the size decides whether it is moved off the chip or sharded.
    tensor_bytes: Vec<u64>,
    is_update: Vec<bool>,
}

impl<'a> Updates<'a> {
    fn new(model: &'a Model, by_pass: &PassPlaces, pipeline: Pipeline) -> Self {
        let is_update = model.groups_with(|_, operation| operation.is_update);
        let is_updated = model.sets_of_any(|group| is_update[group]);
        // A variable that only weight updates use may also be copied from or to the host, so
        // operation groups that only make such copies are ignored.
        let is_of_updates: Vec<bool> = model
            .sets_of_only(|group| is_update[group] || model.operation_groups[group].only_streams())
            .into_iter()
            .zip(&is_updated)
            .map(|(has_no_other, &is_updated)| has_no_other && is_updated)
            .collect();
        Self {
            model,
            pipeline,
            tensor_bytes: tensor_bytes(model),
            of_parameters: of_parameters(model, by_pass, (&is_of_updates, &is_updated)),
            is_update,
            is_of_updates,
        }
    }

    fn groups(&self, set: u32) -> impl Iterator<Item = usize> + '_ {
        self.model
            .use_sets
            .groups(set)
            .filter(|&group| self.is_update[group])
    }

    /// Returns the role of `variable` in weight updates, such as weight or optimizer state.
    /// `variable` stands for all variables that are live at the same steps and are used by the same
    /// operations. Returns `None` if they take no part in weight updates, or are optimizer state
    /// that stays whole on the chip.
    fn role_of(&self, &VariableUse { class, set, .. }: &VariableUse) -> Option<UpdateRole> {
        if !self.model.is_parameter(class, set) {
            return self.is_of_updates[set as usize].then_some(UpdateRole::Temporary);
        }
        match self.of_parameters[set as usize] {
            Some(UpdateRole::State { .. }) => self.state(set),
            role => role,
        }
    }

    /// Returns whether and how optimizer state with the use set `set` (the operations that use it)
    /// is off the chip or sharded between weight updates, which depends on the size of the state
    /// and on the settings of the pipeline. Returns `None` if the state stays whole on the chip.
    fn state(&self, set: u32) -> Option<UpdateRole> {
        let (place, replicas) = (self.pipeline.state, self.pipeline.replicas.max(1));
        let has = |elements| match self.model.recording.framework {
            Framework::Tensorflow => {
                self.tensor_bytes[set as usize] >= FEWEST_BYTES.saturating_mul(replicas)
            }
            _ => self.elements(set) >= elements,
        };
        let is_shared_out = has(FEWEST_SHARED_ELEMENTS) && place.is_sharded() && replicas > 1;
        let is_off = has(FEWEST_ELEMENTS) && place.is_off_chip();
        (is_shared_out || is_off).then_some(UpdateRole::State { is_shared_out })
    }

    fn elements(&self, set: u32) -> u64 {
        let element = self.model.label_of(set).element_bytes;
        self.tensor_bytes[set as usize] / element.map_or(ELEMENT, u64::from).max(1)
    }

    /// Divides operation groups into weight updates, and numbers the updates from 0. Operation
    /// groups that update the same weight belong to one update, and so do groups that use the same
    /// optimizer state, unless the updates of several weights use it. Returns two lists:
    /// - for each operation group, the number of its update (meaningless if it belongs to none);
    /// - for each update, the half-open range of liveness steps from its first to its last
    ///   operation.
    fn numbered(&self) -> (Vec<u32>, Vec<(u32, u32)>) {
        let mut sets_of_groups = GroupSets((0..self.is_update.len()).collect());
        let mut has_weight = vec![false; self.is_update.len()];
        // Scalars, such as a learning rate, belong to no weight. So use sets (the operations that
        // use a variable) of scalars do not decide which operation groups form one update.
        let sets = |wanted: UpdateRole| {
            (0u32..)
                .zip(&self.of_parameters)
                .filter(move |&(_, &role)| role == Some(wanted))
                .map(|(set, _)| set)
                .filter(|&set| self.elements(set) >= FEWEST_ELEMENTS)
        };
        for set in sets(UpdateRole::Weight) {
            if let Some(first) = sets_of_groups.merge_all(self.groups(set)) {
                has_weight[first] = true;
            }
        }
        for set in sets(UpdateRole::SHARED_STATE) {
            let firsts = self.groups(set).map(|group| sets_of_groups.first(group));
            let weights = ascending(firsts.filter(|&first| has_weight[first]));
            // Optimizer state that the updates of several weights use belongs to none of these
            // weights, so it does not join their updates into one.
            if weights.len() < 2
                && let Some(first) = sets_of_groups.merge_all(self.groups(set))
            {
                has_weight[first] |= !weights.is_empty();
            }
        }
        let mut of_group = vec![0; self.is_update.len()];
        let mut windows: Vec<Option<(u32, u32)>> = Vec::new();
        for group in (0..self.is_update.len()).filter(|&group| self.is_update[group]) {
            let first = sets_of_groups.first(group);
            if first == group {
                of_group[group] = windows.len() as u32;
                windows.push(None);
            }
            of_group[group] = of_group[first];
            let window = &mut windows[of_group[group] as usize];
            *window = covering(&[*window, self.model.operation_groups[group].window]);
        }
        let steps = windows
            .into_iter()
            .map(|window| window.map_or((0, 0), |(first, last)| (first, last + 1)));
        (of_group, steps.collect())
    }
}

/// Returns one entry per use set (the operations that use a variable): the role of variables with
/// this use set in weight updates if they are parameters, such as weight or optimizer state.
/// `is_updated` says for each use set whether any of its operations is part of a weight update.
/// `is_of_updates` says whether all are, apart from copies from or to the host.
fn of_parameters(
    model: &Model,
    by_pass: &PassPlaces,
    (is_of_updates, is_updated): (&[bool], &[bool]),
) -> Vec<Option<UpdateRole>> {
    let has_names = matches!(
        model.recording.framework,
        Framework::Popart | Framework::Poptorch | Framework::Popxl
    );
    (0..model.use_sets.len() as u32)
        .map(|set| {
            let label = model.label_of(set);
            let is_updated = is_updated[set as usize];
            let is_accumulator = label.is_accumulator();
            let (forward, _) = by_pass.places(set);
            let name = label.weight_name();
            let has_mark = STATE_MARKS.iter().any(|mark| name.starts_with(mark))
                || (!model.recording.accumulates && name.starts_with(MOMENTUM_MARK));
            let is_state = if has_names {
                is_updated && has_mark
            } else {
                let is_of_updates = is_of_updates[set as usize];
                is_of_updates && !is_accumulator && label.kind != TensorKind::Constant
            };
            match (is_state, is_accumulator) {
                (true, _) => Some(UpdateRole::SHARED_STATE),
                (false, true) => Some(UpdateRole::Gradient),
                _ => (is_updated && !forward.is_empty()).then_some(UpdateRole::Weight),
            }
        })
        .collect()
}

/// Returns one entry per use set (the operations that use a variable): the bytes, over all tiles,
/// of the tensor to which parameters with this use set belong. Parameters with the same label
/// belong to one tensor. Without a label, the parameters of one use set are taken as one tensor.
fn tensor_bytes(model: &Model) -> Vec<u64> {
    let mut of_label = vec![0u64; model.labels.len()];
    let mut of_set = vec![0u64; model.use_sets.len()];
    for variable in model.variables.uses() {
        if model.is_parameter(variable.class, variable.set) {
            of_set[variable.set as usize] += variable.bytes;
            of_label[model.use_sets.label(variable.set) as usize] += variable.bytes;
        }
    }
    (0..)
        .zip(of_set)
        .map(|(set, of_set)| match model.use_sets.label(set) {
            0 => of_set,
            label => of_label[label as usize],
        })
        .collect()
}

/// Disjoint sets of operation groups (union-find), to find the groups that form one weight update.
/// At first, each group is a set by itself. The item at the index of a group is an earlier group of
/// the same set, or the group itself if it is the first of its set.
struct GroupSets(Vec<usize>);

impl GroupSets {
    fn first(&mut self, group: usize) -> usize {
        let mut first = group;
        while self.0[first] != first {
            let next = self.0[self.0[first]];
            self.0[first] = next;
            first = next;
        }
        first
    }

    /// Merges the sets that contain `groups` (operation groups) into one set. Returns the first
    /// operation group of this set; `None` if `groups` is empty.
    fn merge_all(&mut self, groups: impl Iterator<Item = usize>) -> Option<usize> {
        groups.fold(None, |merged: Option<usize>, group| {
            let first = self.first(group);
            let merged = merged.unwrap_or(first);
            self.0[first.max(merged)] = first.min(merged);
            Some(first.min(merged))
        })
    }
}
