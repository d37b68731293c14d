//! Builds a [`Model`] from a profile and its contexts: operations in the order of the program, the
//! memory that each owns, and (with regexes) their layers.
//!
//! [`Model::build`] follows docs/model.md, "Contexts and names" to "Operations", "Passes" and "The
//! flow of data"; it does not depend on how layers are named, so one model serves any number of
//! [`Layering`]s ("Layers").

mod belonging;
mod code;
mod contexts;
mod cycles;
mod error;
mod flow;
mod labels;
mod layer_cycles;
mod layer_regex;
mod layer_warnings;
mod layers;
mod layers_by_ipu;
mod memory_peak;
mod modules;
mod named;
mod names;
mod nearly_always_live;
mod operations;
mod passes;
mod placement;
mod profile_lookup;
mod recording;
mod refine;
#[cfg(test)]
pub(crate) mod testing;
mod use_set_index;
mod use_sets;
mod variable_groups;
mod variable_uses;
mod variables;
mod walk;
mod windows;

pub use belonging::Belonging;
pub use code::{CodeKind, GroupCode, ProgramCluster};
pub use cycles::{ClusterCycles, CycleSource, OperationCycles, WorkCycles};
pub use error::{ModelError, NoClock, NoCycles};
use flow::FlowUses;
pub use flow::{Flow, FlowEdge, FlowNode, NO_NODE};
pub use labels::{Label, TensorKind};
pub use layer_cycles::{CyclesByLayer, PassCycles};
pub use layer_regex::{NO_LAYER, Note};
pub use layers::{
    DEFAULT_INPUTS_REGEX, DEFAULT_LAYER_REGEX, LayerOptions, LayerOrder, LayerSource, Layering,
};
pub use layers_by_ipu::LayersByIpu;
pub use memory_peak::{MemoryPeak, NamedVariable};
pub use modules::ModuleCalls;
pub(crate) use modules::ModuleLayers;
use named::Named;
pub use operations::{OwnedKind, OwnedProgram};
pub use passes::Pass;
pub use placement::{
    EVERYWHERE, NOWHERE, OperationPlace, OutOn, PassPlaces, PlaceSet, PlaceSets, Placement,
    PlacementOptions, PositionName, Positions, PseudoLayers, Reason, Rules, TooManyPlaces, Untied,
    WeightTie,
};
pub use profile_lookup::{LivePlace, LiveVariables, ProfileLookup, TileLists, TileVariable};
pub use recording::{Framework, Recording};
use use_set_index::UseSetIndex;
use use_sets::Users;
pub use use_sets::{NO_USERS, UseSets};
pub use variable_groups::{VariableGroup, VariableGroups};
pub use variable_uses::{TileUse, VariableUse};
pub(crate) use variables::members as variables_of;
use walk::CallSites;
pub use walk::NO_CALL;
use windows::StepIndex;
pub use windows::{StepProgram, StepPrograms};

use crate::debug_info::DebugInfo;
use crate::message::Warning;
use crate::profile::{
    BuildInfo, FormatVersion, LiveClasses, Profile, Programs, Recorded, Target, TileBytes,
};
use crate::witnesses::{Contradiction, of_profile};
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;

/// A model as it was compiled: operations and the cost of each.
///
/// A deserialized model may have dangling references: [`from_bytes`](crate::saved::from_bytes)
/// checks for them.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// The machine that the model was compiled for.
    pub target: Target,
    /// Every operation, in the order of its first program in the walk.
    pub operations: Vec<Operation>,
    /// Operation groups: operations of one context share a group, such as all calls of an outlined
    /// body.
    pub operation_groups: Vec<OperationGroup>,
    /// The steps at which each equivalence class is live.
    pub classes: LiveClasses,
    /// The lowered variables that hold data, by tile, equal ones joined. Variables that no
    /// operation uses are included. They are by far the largest part, so [`saved`](crate::saved)
    /// stores them apart.
    #[serde(skip)]
    pub variables: VariableGroups,
    /// The lowered variables that hold code or vertex state but are used by an operation all the
    /// same: the targets of code copies.
    pub code_variables: VariableGroups,
    /// By [`CodeKind`]: bytes by tile of all lowered variables of this kind.
    pub recorded_code: [TileBytes; 4],
    /// The use sets that `variables` refers to.
    pub use_sets: UseSets,
    /// Labels of weights and other persistent variables, which `use_sets` refers to. The first is
    /// empty.
    pub labels: Vec<Label>,
    /// By call of a function with several call sites that does not say which operation it replaced:
    /// a number that all calls of the function share.
    pub calls: Vec<u32>,
    /// The tensors that flow between operations.
    pub flow: Flow,
    /// Bytes of code by tile of each vertex type that `operation_groups` refer to.
    pub vertex_code: Vec<TileBytes>,
    /// The programs that run compute sets or exchanges, each with the group that owns it.
    pub programs: Vec<OwnedProgram>,
    /// The memory that the compiler recorded.
    pub recorded: Recorded,
    /// Index of the first step of the backward pass; `None` for inference.
    pub backward_start: Option<u32>,
    /// Properties of the recorded compilation that a pipeline depends on.
    pub recording: Recording,
    /// The cycles of the operations; `None` if the profile has none.
    pub cycles: Option<OperationCycles>,
    /// The report format of the profile.
    pub version: FormatVersion,
    /// Versions and options that the profile was made with.
    pub made: BuildInfo,
    /// Where the whole model takes most memory; `None` unless it was requested.
    pub memory_peak: Option<MemoryPeak>,
    /// Warnings about unusual content.
    pub warnings: Vec<Warning>,
    /// Where the profile contradicts itself.
    pub contradictions: Vec<Contradiction>,
}

/// An operation of the model at one place in the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Group of the operation, as a position in [`Model::operation_groups`].
    pub group: u32,
    /// Full name of the operation (docs/model.md, "Contexts and names").
    pub name: Box<str>,
    /// The inputs of its operation context, joined by `/`, every `.` read as `/`.
    pub inputs: Box<str>,
    /// Does the operation only make a tensor? Such an operation never has a layer.
    pub is_tensor: bool,
    /// Did the compiler create the operation, so that no context says its purpose (docs/model.md,
    /// "Contexts and names")?
    pub is_anonymous: bool,
    /// Is the operation part of the backward pass (docs/model.md, "Passes")?
    pub is_backward: bool,
    /// Does the operation update weights? By its name or, if no operation has such a name, by what
    /// it does.
    pub is_update: bool,
    /// The pass of the operation.
    pub pass: Pass,
    /// Is the operation in the body of a function?
    pub is_nested: bool,
    /// Index of its first and last step, both inclusive; `None` if no step runs it. A body that is
    /// listed under another call only has the steps there.
    pub window: Option<(u32, u32)>,
    /// The call that the operation is part of, as a position in [`Model::calls`], or
    /// [`NO_CALL`].
    pub call: u32,
}

/// Code and state of the operations of one uid (docs/model.md, "Operations"), defined by the first
/// of them in the walk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationGroup {
    /// The id of the operation context.
    pub uid: u64,
    /// Window of its first operation: first and last step, both inclusive.
    pub window: Option<(u32, u32)>,
    /// Code and vertex state by tile.
    pub code: GroupCode,
    /// The steps at which the group copies from or to the host, ascending.
    pub host_copies: Vec<u32>,
    /// Programs of the group by the use sets of their variables; empty if all programs use the
    /// same.
    pub clusters: Vec<ProgramCluster>,
}

impl OperationGroup {
    /// Does it copy from or to the host and compute nothing?
    pub fn only_streams(&self) -> bool {
        !self.host_copies.is_empty() && !self.computes()
    }

    /// Does it run vertices, rather than only move data?
    pub fn computes(&self) -> bool {
        !self.code.vertex_types.is_empty()
    }
}

impl Model {
    /// Builds the model of a profile and its debug contexts. With `with_memory_peak`, the memory
    /// peak is found, and the variables that are live there get their names from the profile.
    ///
    /// # Errors
    /// [`ModelError`] when the program tree is cyclic or cannot be walked.
    pub fn build(
        profile: Profile,
        debug_info: &DebugInfo,
        with_memory_peak: bool,
    ) -> Result<Self, ModelError> {
        let (model, _) = Self::build_with_lookup(profile, debug_info, with_memory_peak)?;
        Ok(model)
    }

    /// Builds the model, and keeps an index to look up single variables and programs by name: some
    /// 20 bytes for each lowered variable. Contexts that are passed by value are freed as soon as
    /// they are no longer needed.
    ///
    /// # Errors
    /// As [`Model::build`].
    pub fn build_with_lookup(
        mut profile: Profile,
        debug_info: impl Borrow<DebugInfo>,
        with_memory_peak: bool,
    ) -> Result<(Self, ProfileLookup), ModelError> {
        let named = Named::new(&profile, debug_info.borrow())?;
        drop(debug_info);
        let Named {
            found,
            steps,
            mut operations,
            backward_start,
            ..
        } = named;
        let (operation_groups, (set_of, use_sets), index, cluster_of) =
            Self::groups(&profile, &found, &operations, &steps)?;
        let sites = CallSites::new(&profile, &found);
        let has_pairs = |path| named.with_pairs.contains(&path);
        let calls = sites.unnamed(&found, has_pairs, &mut operations);
        let sets = (use_sets.len(), &sites.outermost()[..]);
        let flow_uses = FlowUses::new(&profile, &found, &steps, &index, sets)?;
        let contradictions = of_profile(&profile, &set_of);
        profile.forget_users();
        let collected = variables::collect(&profile, &set_of)?;
        if let Some(backward_start) = backward_start {
            let groups = (&operation_groups[..], &use_sets, &named.labels[..]);
            let live = (&collected.data, &profile.classes);
            passes::mark_updates(groups, live, backward_start, &mut operations);
        }
        let mut memory_peak =
            with_memory_peak.then(|| MemoryPeak::find(&collected, &profile.classes));
        let mut disagreements: Vec<Warning> = named.disagreement.into_iter().collect();
        let is_training = backward_start.is_some();
        let nearly = nearly_always_live::warning(&profile, &collected.data, is_training);
        disagreements.extend(nearly);
        let is_weight =
            |set: u32| named.labels[use_sets.label(set) as usize].kind == TensorKind::Variable;
        let flow = flow_uses.flow(&profile.classes, collected.data.uses(), is_weight)?;
        let programs = operations::owned_programs(&profile.programs, &found.groups);
        let backward = backward_start.map(|start| (&steps, start));
        let run = (&profile.programs, &profile.cycles);
        let cycles = cycles::of_operations(run, &found, &cluster_of, backward);
        let cycles = cycles.unwrap_or_else(|warning| {
            disagreements.push(warning);
            None
        });
        let lookup = ProfileLookup::new(
            profile.variables,
            set_of,
            profile.names,
            StepPrograms::new(&profile.programs, &profile.steps, &found),
        );
        if let Some(peak) = &mut memory_peak {
            peak.name(&lookup, &profile.classes)?;
        }
        let vertex_types = profile.programs.vertex_types.into_iter();
        let model = Self {
            target: profile.target,
            operations,
            operation_groups,
            classes: profile.classes,
            variables: collected.data,
            code_variables: collected.code.used(),
            recorded_code: collected.recorded_code,
            use_sets,
            labels: named.labels,
            calls,
            flow,
            vertex_code: vertex_types.map(|vertex_type| vertex_type.code).collect(),
            programs,
            backward_start,
            recording: named.recording,
            recorded: profile.recorded,
            cycles,
            version: profile.version,
            made: profile.made,
            memory_peak,
            contradictions,
            warnings: [profile.warnings, disagreements].concat(),
        };
        Ok((model, lookup))
    }

    /// The operation groups, the users of each variable, an index of use sets, and the cluster of
    /// each program in its group.
    fn groups(
        profile: &Profile,
        found: &operations::UnnamedOperations,
        operations: &[Operation],
        steps: &StepIndex,
    ) -> Result<(Vec<OperationGroup>, Users, UseSetIndex, Vec<u32>), ModelError> {
        let programs = &profile.programs;
        let mut budget = code::Budget::new(programs);
        let groups = found.groups.iter();
        let groups = groups.map(|group| (group.uid, &group.programs[..]));
        let groups: Vec<(u64, &[u32])> = groups.collect();
        let codes = || code::of_all(programs, &groups, &profile.target, &mut budget);
        let users = || use_sets::find(profile, &found.groups);
        let (codes, users) = rayon::join(codes, users);
        let (codes, mut users) = (codes?, users?);
        let with_code = found.groups.iter().zip(codes);
        let mut groups: Vec<OperationGroup> = with_code
            .map(|(group, code)| OperationGroup {
                uid: group.uid,
                window: operations[group.first as usize].window,
                host_copies: host_copies(programs, &group.programs, steps),
                code,
                clusters: Vec::new(),
            })
            .collect();
        let computes: Vec<bool> = groups.iter().map(OperationGroup::computes).collect();
        let index = refine::refine(profile, &found.groups, &computes, &mut users);
        let (clusters, cluster_of) = code::clusters(profile, &found.groups, &index, &mut budget)?;
        for (group, clusters) in groups.iter_mut().zip(clusters) {
            group.clusters = clusters;
        }
        Ok((groups, users, index, cluster_of))
    }

    /// Do contexts say which variables are the framework's own, such as weights?
    pub(crate) fn has_weight_labels(&self) -> bool {
        let mut labels = self.labels.iter();
        labels.any(|label| label.kind == TensorKind::Variable)
    }

    /// The label of the variables of a use set.
    pub fn label_of(&self, set: u32) -> &Label {
        &self.labels[self.use_sets.label(set) as usize]
    }

    /// Warnings about layers that fit the model badly.
    pub fn layer_warnings(&self, layering: &Layering, rules: Rules) -> Vec<Warning> {
        layer_warnings::find(self, layering, rules)
    }

    /// By operation group: does any of its operations satisfy `is_wanted`?
    pub(crate) fn groups_with(&self, is_wanted: impl Fn(&Operation) -> bool) -> Vec<bool> {
        let mut has_any = vec![false; self.operation_groups.len()];
        for operation in &self.operations {
            has_any[operation.group as usize] |= is_wanted(operation);
        }
        has_any
    }

    /// By use set: number of updates that use its variables, at most 2.
    pub(crate) fn updates_by_set(&self) -> Vec<u8> {
        let is_update = self.groups_with(|operation| operation.is_update);
        self.users_by_set(|group| is_update[group])
    }

    /// By use set: number of operation groups that satisfy `counts` and use its variables, at most
    /// 2.
    pub(crate) fn users_by_set(&self, counts: impl Fn(usize) -> bool) -> Vec<u8> {
        let mut of_set = vec![0u8; self.use_sets.len()];
        for (set, smaller, group) in self.use_sets.iter() {
            let count = u8::from(counts(group as usize));
            of_set[set as usize] = (of_set[smaller as usize] + count).min(2);
        }
        of_set
    }

    /// By use set: do all operation groups that use its variables satisfy `is_wanted`? True where
    /// nothing uses them.
    pub(crate) fn sets_of_only(&self, is_wanted: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut of_set = vec![true; self.use_sets.len()];
        for (set, smaller, group) in self.use_sets.iter() {
            of_set[set as usize] = of_set[smaller as usize] && is_wanted(group as usize);
        }
        of_set
    }

    /// Number of liveness steps of the program.
    pub fn steps(&self) -> u32 {
        self.classes.steps()
    }
}

/// The steps at which these programs copy from or to the host, ascending.
fn host_copies(programs: &Programs, group: &[u32], steps: &StepIndex) -> Vec<u32> {
    let is_copy = |&&program: &&u32| programs.all[program as usize].kind.is_stream_copy();
    let copies = group.iter().filter(is_copy);
    let mut found: Vec<u32> = copies
        .flat_map(|&program| steps.of(program))
        .copied()
        .collect();
    found.sort_unstable();
    found
}
