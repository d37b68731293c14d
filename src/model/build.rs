//! Builds a [`Model`] from a profile and its debug contexts.

use super::code::{self, OperationGroup};
use super::contents::{LayerRegexes, Model};
use super::cycles;
use super::flow::{FlowUses, ascending};
use super::names;
use super::nearly_always_live;
use super::operations::{self, Operation, UnnamedOperations};
use super::passes;
use super::profile_lookup::ProfileLookup;
use super::recording::{self, Label, Recording, TensorKind};
use super::refine;
use super::use_set_index::UseSetIndex;
use super::use_sets::{self, NO_USERS, Users};
use super::variables::{self, MemoryPeak};
use super::walk::CallSites;
use super::windows::{StepIndex, StepPrograms};
use crate::debug_info::DebugInfo;
use crate::message::{FileError, Warning};
use crate::profile::{Profile, Programs};
use crate::witnesses::{check_profile, recorded_totals};

/// The operations of a profile with their names, and all other data that the build of a model needs
/// from the debug contexts.
struct NamedOperations {
    found: UnnamedOperations,
    steps: StepIndex,
    /// The operations with their names, in the order of `found.operations`.
    operations: Vec<Operation>,
    sites: CallSites,
    /// The liveness step at which the backward pass begins; `None` for inference.
    backward_start: Option<u32>,
    /// By index in `profile.variables.labels`: the label with the data of its debug contexts.
    labels: Vec<Label>,
    recording: Recording,
    /// A warning if one context marks an operation as backward and another as forward.
    disagreement: Option<Warning>,
}

impl NamedOperations {
    fn new(profile: &Profile, debug_info: &DebugInfo) -> Result<Self, FileError> {
        let programs = &profile.programs;
        let found = operations::find(programs, debug_info)?;
        let (mut operations, with_pairs) = names::name_all(&found, programs, debug_info)?;
        let steps = StepIndex::new(programs, &profile.steps);
        let sites = CallSites::new(programs, &found.walk.paths, &with_pairs);
        for (operation, unnamed) in operations.iter_mut().zip(&found.operations) {
            operation.window = steps.window(unnamed, &found.walk.paths);
            operation.call = sites.call_of[unnamed.path as usize];
        }
        let backward_start = passes::find(&mut operations);
        let labels = &profile.variables.labels;
        let labels: Vec<Label> = labels
            .iter()
            .map(|own| Label::new(own, debug_info))
            .collect();
        Ok(Self {
            recording: Recording::new(debug_info, &found, &operations, &labels),
            disagreement: recording::disagreement(debug_info, &found, &operations),
            found,
            steps,
            operations,
            sites,
            backward_start,
            labels,
        })
    }
}

impl Model {
    /// Builds the model of a profile and its debug contexts, and an index of the profile's lowered
    /// variables and of the programs of its steps, of some 20 bytes for each lowered variable.
    /// `debug_info` is freed as soon as it is no longer needed. With `with_memory_peak`, also finds
    /// the tile and step with the most live bytes, and reads the names of the variables that are
    /// live there from the profile (otherwise [`Model::memory_peak`] is `None`).
    ///
    /// # Errors
    /// If the program tree is cyclic or too large, a sum exceeds 4 GiB on a tile, or the names of
    /// variables cannot be read.
    pub fn build(
        mut profile: Profile,
        debug_info: DebugInfo,
        with_memory_peak: bool,
    ) -> Result<(Self, ProfileLookup), FileError> {
        let NamedOperations {
            found,
            steps,
            sites,
            mut operations,
            backward_start,
            labels,
            recording,
            disagreement,
        } = NamedOperations::new(&profile, &debug_info)?;
        drop(debug_info);
        let (operation_groups, (set_of, use_sets), index, cluster_of) =
            Self::groups(&profile, &found, &operations, &steps)?;
        let (sets, outermost) = (use_sets.len(), &sites.outermost);
        let flow_uses = FlowUses::new(&profile, &found, &steps, &index, sets, outermost)?;
        let mut contradictions = check_profile(&profile, |position| set_of[position] != NO_USERS);
        profile.forget_users();
        let collected = variables::collect(&profile, &set_of)?;
        let groups = (&operation_groups[..], &use_sets, &labels[..]);
        let live = (&collected.data, &profile.classes);
        match backward_start {
            Some(start) => passes::mark_updates(groups, live, start, &mut operations),
            None => contradictions.extend(passes::updates_without_backward(groups, live)),
        }
        let is_training = backward_start.is_some();
        let nearly = nearly_always_live::warning(&profile, &collected.data, is_training);
        let mut warnings = profile.warnings;
        warnings.extend(disagreement.into_iter().chain(nearly));
        let is_weight =
            |set: u32| labels[use_sets.label(set) as usize].kind == TensorKind::Variable;
        let flow = flow_uses.flow(&profile.classes, collected.data.uses(), is_weight)?;
        let programs = &profile.programs;
        let backward = backward_start.map(|start| (&steps, start));
        let cycles =
            cycles::of_operations(programs, &profile.cycles, &found, &cluster_of, backward)
                .unwrap_or_else(|warning| {
                    warnings.push(warning);
                    None
                });
        let lookup = ProfileLookup {
            variables: profile.variables,
            set_of,
            names: profile.names,
            programs: StepPrograms::new(programs, &profile.steps, &found),
        };
        let memory_peak = with_memory_peak
            .then(|| MemoryPeak::find(&collected, &lookup, &profile.classes))
            .transpose()?;
        let programs = operations::owned_programs(programs, &found.groups);
        let vertex_types = profile.programs.vertex_types.into_iter();
        let mut model = Self {
            target: profile.target,
            operations,
            operation_groups,
            classes: profile.classes,
            variables: collected.data,
            code_variables: collected.used_code,
            recorded_code: collected.recorded_code,
            use_sets,
            labels,
            calls: sites.functions,
            flow,
            vertex_code: vertex_types.map(|vertex_type| vertex_type.code).collect(),
            programs,
            backward_start,
            recording,
            recorded: profile.recorded,
            cycles,
            version: profile.version,
            layer_regexes: LayerRegexes::default(),
            made: profile.made,
            memory_peak,
            contradictions,
            warnings,
        };
        let one_stage = recorded_totals(&model.recorded.tiles, &model.totals_in_one_stage());
        model.contradictions.extend(one_stage);
        Ok((model, lookup))
    }

    /// Builds everything that depends on operation groups. Returns the groups, the use set of each
    /// variable with all use sets, the use sets of each compute set and region, and for each
    /// program the index of its cluster in its group.
    fn groups(
        profile: &Profile,
        found: &UnnamedOperations,
        operations: &[Operation],
        steps: &StepIndex,
    ) -> Result<(Vec<OperationGroup>, Users, UseSetIndex, Vec<u32>), FileError> {
        let programs = &profile.programs;
        let mut budget = code::Budget::new(programs);
        let unnamed = found.groups.iter();
        let with_uid: Vec<(u64, &[u32])> = unnamed
            .clone()
            .map(|group| (group.uid, &group.programs[..]))
            .collect();
        let (codes, users) = rayon::join(
            || code::of_all(programs, &with_uid, &profile.target, &mut budget),
            || use_sets::find(profile, &found.groups),
        );
        let (codes, mut users) = (codes?, users?);
        let groups = unnamed.zip(codes).map(|(group, code)| OperationGroup {
            uid: group.uid,
            window: operations[group.first as usize].window,
            host_copies: host_copies(programs, &group.programs, steps),
            code,
            clusters: Vec::new(),
        });
        let mut groups: Vec<OperationGroup> = groups.collect();
        let index = refine::refine(profile, &found.groups, &groups, &mut users);
        let (clusters, cluster_of) = code::clusters(profile, &found.groups, &index, &mut budget)?;
        for (group, clusters) in groups.iter_mut().zip(clusters) {
            group.clusters = clusters;
        }
        Ok((groups, users, index, cluster_of))
    }
}

/// Returns the steps at which the programs of `group` (indices of programs) copy from or to the
/// host, ascending.
fn host_copies(programs: &Programs, group: &[u32], steps: &StepIndex) -> Vec<u32> {
    let is_copy = |&&program: &&u32| programs.all[program as usize].kind.is_stream_copy();
    let copies = group.iter().filter(is_copy);
    ascending(copies.flat_map(|&program| steps.of(program)).copied()).into()
}
