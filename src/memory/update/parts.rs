//! Finds the variables that are optimizer state, and the operations that form one update.

use crate::limits;
use crate::memory::Pipeline;
use crate::model::{
    Framework, Label, Model, NO_USERS, PassPlaces, TensorKind, TooManyPlaces, VariableUse,
};

/// Prefixes of the names of optimizer state in PopART, before the name of the weight.
const STATE_MARKS: [&str; 4] = ["Accl1___", "Accl2___", "Accl3___", "Step___"];
/// Prefix of momentum and gradients in one tensor, which is state unless gradients are summed up in
/// another tensor.
const MOMENTUM_MARK: &str = "Accl___";
/// The smallest number of elements of a tensor of state that PopART moves off the chip; scalars
/// stay.
const FEWEST_ELEMENTS: u64 = 2;
/// The smallest number of elements of a tensor of state that PopART shards.
const FEWEST_SHARED_ELEMENTS: u64 = 8192;
/// The smallest number of bytes, for each replica, of a variable that TensorFlow moves off the
/// chip.
const FEWEST_BYTES: u64 = 128;
/// The bytes of an element that are assumed if no context gives them.
const ELEMENT: u64 = 4;

/// The role that variables have in the update of a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpdateRole {
    /// Optimizer state that is not on the chip between two updates. Each replica has a share of it,
    /// or (if `is_shared_out` is false) all of it is off the chip.
    State { is_shared_out: bool },
    /// The variables are a tensor that only updates make and use.
    Temporary,
    /// The variables are a weight that the update changes.
    Weight,
    /// The variables are the accumulator of a weight's gradients.
    Gradient,
}

/// All updates of a model. Operations that update one weight, or that use the same state, form one
/// update.
#[derive(Debug)]
pub(super) struct Updates {
    pipeline: Pipeline,
    /// For each use set: whether its variables are state, weights or accumulators.
    kinds: Vec<SetKind>,
    /// For each use set: the bytes of the whole tensor that its variables belong to.
    tensor_bytes: Vec<u64>,
    /// For each operation group: the number of its update, or [`NO_UPDATE`].
    of_group: Vec<u32>,
    /// For each use set: the operation groups of updates that use its variables.
    groups: Vec<Box<[u32]>>,
    /// For each update: the half-open range of its steps.
    pub(super) steps: Vec<(u32, u32)>,
}

/// The entry of an operation group that is not part of an update.
const NO_UPDATE: u32 = u32::MAX;

/// The kind of the variables of a use set in the update, whether or not they are always live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SetKind {
    is_state: bool,
    is_weight: bool,
    is_accumulator: bool,
    /// Whether only operations of updates use the variables.
    is_of_updates: bool,
}

impl Updates {
    pub(super) fn new(
        model: &Model,
        by_pass: &PassPlaces,
        pipeline: Pipeline,
    ) -> Result<Self, TooManyPlaces> {
        let is_update = model.groups_with(|operation| operation.is_update);
        let groups = groups_of_updates(model, &is_update)?;
        let kinds = kinds(model, by_pass, (&is_update, &groups));
        let mut found = Self {
            pipeline,
            tensor_bytes: tensor_bytes(model),
            of_group: vec![NO_UPDATE; is_update.len()],
            kinds,
            groups,
            steps: Vec::new(),
        };
        found.number_updates(model, &is_update);
        Ok(found)
    }

    /// Returns the role of the variables of a use (class and use set) in the update; `None` if they
    /// have none.
    pub(super) fn role_of(&self, model: &Model, variable: &VariableUse) -> Option<UpdateRole> {
        let kind = self.kinds[variable.set as usize];
        let is_parameter = model.classes.lasts(variable.class);
        if !is_parameter {
            return kind.is_of_updates.then_some(UpdateRole::Temporary);
        }
        match kind {
            SetKind { is_state: true, .. } => self.state(model, variable.set),
            SetKind {
                is_accumulator: true,
                ..
            } => Some(UpdateRole::Gradient),
            SetKind {
                is_weight: true, ..
            } => Some(UpdateRole::Weight),
            _ => None,
        }
    }

    /// Returns the role of a tensor of state; `None` if it stays on the chip between updates.
    fn state(&self, model: &Model, set: u32) -> Option<UpdateRole> {
        let bytes = self.tensor_bytes[set as usize];
        let elements = self.elements(model, set);
        let is_tensorflow = model.recording.framework == Framework::Tensorflow;
        let replicas = self.pipeline.replicas.max(1);
        let is_large = match is_tensorflow {
            true => bytes >= FEWEST_BYTES.saturating_mul(replicas),
            false => elements >= FEWEST_ELEMENTS,
        };
        let may_share = match is_tensorflow {
            true => is_large,
            false => elements >= FEWEST_SHARED_ELEMENTS,
        };
        let place = self.pipeline.state;
        let is_shared_out = may_share && place.is_sharded() && replicas > 1;
        let is_off = is_large && place.is_off_chip();
        (is_shared_out || is_off).then_some(UpdateRole::State { is_shared_out })
    }

    /// Returns the number of elements of the tensor that the variables of a use set (variables that
    /// the same operations use) are a part of.
    fn elements(&self, model: &Model, set: u32) -> u64 {
        let element = model.label_of(set).element_bytes.map_or(ELEMENT, u64::from);
        self.tensor_bytes[set as usize] / element.max(1)
    }

    /// Returns the numbers of the updates that use the variables of a use set, in ascending order.
    pub(super) fn updates_of(&self, set: u32) -> Vec<u32> {
        let groups = self.groups[set as usize].iter();
        let mut updates: Vec<u32> = groups.map(|&group| self.of_group[group as usize]).collect();
        updates.sort_unstable();
        updates.dedup();
        updates
    }

    /// Forms updates of operation groups that update one weight or use the same state, and numbers
    /// them.
    fn number_updates(&mut self, model: &Model, is_update: &[bool]) {
        let mut sets_of_groups = GroupSets::new(is_update.len());
        let mut has_weight = vec![false; is_update.len()];
        // Scalars belong to no weight, and neither do sets without variables.
        let is_large = |set: &usize| self.elements(model, *set as u32) >= FEWEST_ELEMENTS;
        let sets = || {
            (0..self.groups.len())
                .filter(is_large)
                .map(|set| (&self.groups[set], &self.kinds[set]))
        };
        for (groups, _) in sets().filter(|(_, kind)| kind.is_weight) {
            sets_of_groups.merge_all(groups);
            has_weight[sets_of_groups.first(groups[0]) as usize] = true;
        }
        for (groups, _) in sets().filter(|(_, kind)| kind.is_state) {
            let mut weights: Vec<u32> = groups
                .iter()
                .map(|&group| sets_of_groups.first(group))
                .collect();
            weights.retain(|&first| has_weight[first as usize]);
            weights.sort_unstable();
            weights.dedup();
            // A tensor that several weights use, such as a learning rate, belongs to none of them.
            if weights.len() < 2 {
                sets_of_groups.merge_all(groups);
                let first = sets_of_groups.first(groups[0]) as usize;
                has_weight[first] |= !weights.is_empty();
            }
        }
        let mut numbers = vec![NO_UPDATE; is_update.len()];
        for (group, _) in is_update.iter().enumerate().filter(|&(_, &is)| is) {
            let first = sets_of_groups.first(group as u32) as usize;
            let window = model.operation_groups[group].window;
            let (from, to) = window.map_or((0, 0), |(first, last)| (first, last + 1));
            if numbers[first] == NO_UPDATE {
                numbers[first] = self.steps.len() as u32;
                self.steps.push((from, to));
            }
            let steps = &mut self.steps[numbers[first] as usize];
            if from < to {
                *steps = match *steps {
                    (a, b) if a == b => (from, to),
                    (a, b) => (a.min(from), b.max(to)),
                };
            }
            self.of_group[group] = numbers[first];
        }
    }
}

/// Returns for each use set its operation groups that belong to updates, in ascending order.
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

/// Determines for each use set whether its variables are state, weights or accumulators.
fn kinds(
    model: &Model,
    by_pass: &PassPlaces,
    (is_update, groups): (&[bool], &[Box<[u32]>]),
) -> Vec<SetKind> {
    // An operation that only copies to the host does not change the role of a variable.
    let groups_of_model = &model.operation_groups;
    let of_updates =
        model.sets_of_only(|group| is_update[group] || groups_of_model[group].only_streams());
    let has_names = matches!(
        model.recording.framework,
        Framework::Popart | Framework::Poptorch | Framework::Popxl
    );
    let of_set = |set: u32| {
        let label = model.label_of(set);
        let is_updated = !groups[set as usize].is_empty();
        let is_of_updates = set != NO_USERS && is_updated && of_updates[set as usize];
        let is_accumulator = label.is_accumulator();
        let (forward, _) = by_pass.places(set);
        let is_state = match has_names {
            true => is_updated && has_mark(label, model.recording.accumulates),
            false => is_of_updates && !is_accumulator && label.kind != TensorKind::Constant,
        };
        SetKind {
            is_state,
            is_accumulator,
            is_weight: is_updated && !is_state && !is_accumulator && !forward.is_empty(),
            is_of_updates,
        }
    };
    (0..model.use_sets.len() as u32).map(of_set).collect()
}

/// Is the label the name of optimizer state in PopART?
fn has_mark(label: &Label, accumulates: bool) -> bool {
    let name = label.weight_name();
    STATE_MARKS.iter().any(|mark| name.starts_with(mark))
        || (!accumulates && name.starts_with(MOMENTUM_MARK))
}

/// Returns for each use set the bytes over all tiles of the parameters with its label or, if it has
/// no label, of its own parameters.
fn tensor_bytes(model: &Model) -> Vec<u64> {
    let mut of_label = vec![0u64; model.labels.len()];
    let mut of_set = vec![0u64; model.use_sets.len()];
    for variable in model.variables.uses() {
        if model.classes.lasts(variable.class) {
            let set = variable.set as usize;
            let label = model.use_sets.label(variable.set) as usize;
            of_set[set] = of_set[set].saturating_add(variable.bytes);
            of_label[label] = of_label[label].saturating_add(variable.bytes);
        }
    }
    let of = |set: u32| match model.use_sets.label(set) {
        0 => of_set[set as usize],
        label => of_label[label as usize],
    };
    (0..model.use_sets.len() as u32).map(of).collect()
}

/// Disjoint sets of operation groups, as a union-find: each group refers to a group of its set that
/// is not after it.
struct GroupSets(Vec<u32>);

impl GroupSets {
    fn new(count: usize) -> Self {
        Self((0..count as u32).collect())
    }

    /// Returns the first group of the set that contains `group`.
    fn first(&mut self, group: u32) -> u32 {
        let mut first = group;
        while self.0[first as usize] != first {
            let next = self.0[self.0[first as usize] as usize];
            self.0[first as usize] = next;
            first = next;
        }
        first
    }

    /// Merges the sets of all `groups` into one.
    fn merge_all(&mut self, groups: &[u32]) {
        for pair in groups.windows(2) {
            self.merge(pair[0], pair[1]);
        }
    }

    /// Merges the sets of the groups `a` and `b` into one.
    fn merge(&mut self, a: u32, b: u32) {
        let (a, b) = (self.first(a), self.first(b));
        self.0[a.max(b) as usize] = a.min(b);
    }
}
