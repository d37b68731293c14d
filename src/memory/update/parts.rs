//! Finds the variables that are optimizer state, and the operations that form one update.

use crate::limits;
use crate::memory::Pipeline;
use crate::memory::steps::covering;
use crate::model::{
    Framework, Model, PassPlaces, TensorKind, TooManyPlaces, VariableUse, ascending,
};

/// In PopART, the name of optimizer state is one of these prefixes, followed by the name of the
/// weight.
const STATE_MARKS: [&str; 4] = ["Accl1___", "Accl2___", "Accl3___", "Step___"];
/// Prefix of the name of a PopART tensor that holds both momentum and gradients. The tensor counts
/// as optimizer state unless the profile has accumulators, which then hold the gradients.
const MOMENTUM_MARK: &str = "Accl___";
/// PopART moves a tensor of optimizer state off the chip if it has at least this number of
/// elements, that is, if it is no scalar.
const FEWEST_ELEMENTS: u64 = 2;
/// PopART shards a tensor of optimizer state if it has at least this number of elements.
const FEWEST_SHARED_ELEMENTS: u64 = 8192;
/// TensorFlow moves a variable off the chip if it has at least this number of bytes per replica.
const FEWEST_BYTES: u64 = 128;
/// The assumed size in bytes of one element of a tensor, if no debug context gives the type of the
/// elements.
const ELEMENT: u64 = 4;

/// The role that variables have in the update of a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpdateRole {
    /// Optimizer state that is not whole on the chip between two updates. If `is_shared_out`, each
    /// replica keeps only a share of the state, on the chip or off it; otherwise all of the state
    /// is off the chip.
    State { is_shared_out: bool },
    /// A tensor that only updates make and use.
    Temporary,
    /// A weight that an update changes.
    Weight,
    /// The accumulator of a weight's gradients.
    Gradient,
}

impl UpdateRole {
    /// The role of optimizer state that is sharded among replicas.
    pub const SHARED_STATE: Self = Self::State {
        is_shared_out: true,
    };
}

/// All updates of a model, numbered from 0. The operation groups that update one weight, or that
/// use the same optimizer state, form one update.
pub(super) struct Updates<'a> {
    model: &'a Model,
    pipeline: Pipeline,
    /// One entry per use set: the role in updates of its parameters ([`Model::is_parameter`]).
    /// Here, all optimizer state has the role [`UpdateRole::SHARED_STATE`], whatever its size.
    of_parameters: Vec<Option<UpdateRole>>,
    /// One entry per use set: whether updates use its variables and no other operations do, except
    /// operations that only copy from or to the host.
    is_of_updates: Vec<bool>,
    /// One entry per use set: the bytes, over all tiles, of the whole tensor to which the
    /// parameters of the use set belong.
    tensor_bytes: Vec<u64>,
    /// One entry per operation group: the index of the update to which the group belongs; 0 also
    /// for groups that belong to no update.
    of_group: Vec<u32>,
    /// One entry per use set: the operation groups, in ascending order, that use its variables and
    /// belong to updates.
    groups: Vec<Box<[u32]>>,
    /// One entry per update: the half-open range of steps from its first to its last operation.
    pub steps: Vec<(u32, u32)>,
}

impl<'a> Updates<'a> {
    pub fn new(
        model: &'a Model,
        by_pass: &PassPlaces,
        pipeline: Pipeline,
    ) -> Result<Self, TooManyPlaces> {
        let is_update = model.groups_with(|operation| operation.is_update);
        let groups = groups_of_updates(model, &is_update)?;
        // Operation groups that only copy from or to the host do not change the role of a variable.
        let mut is_of_updates = model
            .sets_of_only(|group| is_update[group] || model.operation_groups[group].only_streams());
        for (is_of_updates, groups) in is_of_updates.iter_mut().zip(&groups) {
            *is_of_updates &= !groups.is_empty();
        }
        let mut found = Self {
            model,
            pipeline,
            tensor_bytes: tensor_bytes(model),
            of_group: vec![0; is_update.len()],
            of_parameters: of_parameters(model, by_pass, (&is_of_updates, &groups)),
            is_of_updates,
            groups,
            steps: Vec::new(),
        };
        found.number_updates(&is_update);
        Ok(found)
    }

    /// Returns the role of `variable` (the variables of one class and use set) in updates. Returns
    /// `None` if these variables have no role, or are optimizer state that stays whole on the chip.
    pub fn role_of(&self, &VariableUse { class, set, .. }: &VariableUse) -> Option<UpdateRole> {
        if !self.model.is_parameter(class, set) {
            return self.is_of_updates[set as usize].then_some(UpdateRole::Temporary);
        }
        match self.of_parameters[set as usize] {
            Some(UpdateRole::State { .. }) => self.state(set),
            role => role,
        }
    }

    /// Returns the role in updates of the optimizer state with the use set `set`; `None` if this
    /// state stays whole on the chip between updates. The role depends on the size of the state and
    /// on the settings of the pipeline.
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

    /// Returns the number of elements of the whole tensor to which the parameters with the use set
    /// `set` belong.
    fn elements(&self, set: u32) -> u64 {
        let label = self.model.label_of(set);
        let element = label.element_bytes.map_or(ELEMENT, u64::from);
        self.tensor_bytes[set as usize] / element.max(1)
    }

    /// Returns the indices of the updates that use variables with the use set `set`, in ascending
    /// order.
    pub fn updates_of(&self, set: u32) -> Box<[u32]> {
        let groups = self.groups[set as usize].iter();
        ascending(groups.map(|&group| self.of_group[group as usize]))
    }

    /// Joins the operation groups that update one weight, or that use the same optimizer state,
    /// into one update, and gives each update an index. `is_update` has one entry per operation
    /// group: whether the group belongs to updates.
    fn number_updates(&mut self, is_update: &[bool]) {
        let mut sets_of_groups = GroupSets((0..is_update.len() as u32).collect());
        let mut has_weight = vec![false; is_update.len()];
        // Use sets of scalars, and use sets without parameters, belong to no weight.
        let is_large = |set: &usize| self.elements(*set as u32) >= FEWEST_ELEMENTS;
        let sets = || {
            (0..self.groups.len())
                .filter(is_large)
                .map(|set| (&self.groups[set], self.of_parameters[set]))
        };
        for (groups, _) in sets().filter(|(_, role)| *role == Some(UpdateRole::Weight)) {
            sets_of_groups.merge_all(groups);
            has_weight[sets_of_groups.first(groups[0]) as usize] = true;
        }
        for (groups, _) in sets().filter(|(_, role)| *role == Some(UpdateRole::SHARED_STATE)) {
            let firsts = groups.iter().map(|&group| sets_of_groups.first(group));
            let weights = ascending(firsts.filter(|&first| has_weight[first as usize]));
            // A tensor that the updates of several weights use, such as a learning rate, belongs to
            // none of these weights.
            if weights.len() < 2 {
                sets_of_groups.merge_all(groups);
                has_weight[sets_of_groups.first(groups[0]) as usize] |= !weights.is_empty();
            }
        }
        let mut windows: Vec<Option<(u32, u32)>> = Vec::new();
        for (group, _) in is_update.iter().enumerate().filter(|&(_, &is)| is) {
            let first = sets_of_groups.first(group as u32) as usize;
            if first == group {
                self.of_group[group] = windows.len() as u32;
                windows.push(None);
            }
            self.of_group[group] = self.of_group[first];
            let window = &mut windows[self.of_group[group] as usize];
            *window = covering(&[*window, self.model.operation_groups[group].window]);
        }
        self.steps = windows
            .into_iter()
            .map(|window| window.map_or((0, 0), |(first, last)| (first, last + 1)))
            .collect();
    }
}

/// Returns one entry per use set: the operation groups, in ascending order, that use its variables
/// and belong to updates. `is_update` has one entry per operation group: whether it belongs to
/// updates.
///
/// # Errors
/// If all lists together have more entries than [`limits::ENTRIES`].
fn groups_of_updates(model: &Model, is_update: &[bool]) -> Result<Vec<Box<[u32]>>, TooManyPlaces> {
    let mut left = limits::ENTRIES;
    let mut groups: Vec<Box<[u32]>> = vec![Box::default(); model.use_sets.len()];
    for (set, smaller, group) in model.use_sets.iter() {
        let mut updates = groups[smaller as usize].to_vec();
        updates.extend(Some(group).filter(|&group| is_update[group as usize]));
        left = left.checked_sub(updates.len()).ok_or(TooManyPlaces)?;
        groups[set as usize] = updates.into();
    }
    Ok(groups)
}

/// Returns one entry per use set: the role in updates of its parameters
/// ([`Updates::of_parameters`]). `is_of_updates` and `groups` are the fields of [`Updates`] with
/// these names.
fn of_parameters(
    model: &Model,
    by_pass: &PassPlaces,
    (is_of_updates, groups): (&[bool], &[Box<[u32]>]),
) -> Vec<Option<UpdateRole>> {
    let has_names = matches!(
        model.recording.framework,
        Framework::Popart | Framework::Poptorch | Framework::Popxl
    );
    (0..model.use_sets.len() as u32)
        .map(|set| {
            let label = model.label_of(set);
            let is_updated = !groups[set as usize].is_empty();
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

/// Returns one entry per use set: the bytes, over all tiles, of all parameters that have the same
/// label as the use set. If the use set has no label, only its own parameters are counted.
fn tensor_bytes(model: &Model) -> Vec<u64> {
    let mut of_label = vec![0u64; model.labels.len()];
    let mut of_set = vec![0u64; model.use_sets.len()];
    for variable in model.variables.uses() {
        if model.is_parameter(variable.class, variable.set) {
            let set = variable.set as usize;
            let label = model.use_sets.label(variable.set) as usize;
            of_set[set] = of_set[set].saturating_add(variable.bytes);
            of_label[label] = of_label[label].saturating_add(variable.bytes);
        }
    }
    (0..model.use_sets.len() as u32)
        .map(|set| match model.use_sets.label(set) {
            0 => of_set[set as usize],
            label => of_label[label as usize],
        })
        .collect()
}

/// Disjoint sets of operation groups (union-find), with one entry per group: the group itself if it
/// is the first group of its set, otherwise an earlier group of the same set.
struct GroupSets(Vec<u32>);

impl GroupSets {
    /// Returns the first operation group of the set that contains the operation group `group`.
    fn first(&mut self, group: u32) -> u32 {
        let mut first = group;
        while self.0[first as usize] != first {
            let next = self.0[self.0[first as usize] as usize];
            self.0[first as usize] = next;
            first = next;
        }
        first
    }

    /// Merges the sets that contain the operation groups `groups` into one set.
    fn merge_all(&mut self, groups: &[u32]) {
        for pair in groups.windows(2) {
            let (a, b) = (self.first(pair[0]), self.first(pair[1]));
            self.0[a.max(b) as usize] = a.min(b);
        }
    }
}
