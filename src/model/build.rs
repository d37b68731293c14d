//! Builds the [`Model`] of a compiled program from a Poplar profile and its debug contexts.

use super::{
    DataFlow, Label, LayerRegexes, MemoryPeak, Model, NO_USERS, Operation, OperationGroup,
    ProfileLookup, Recording, ascending, code, cycles,
    flow::FlowUses,
    names, operations,
    operations::UnnamedOperations,
    passes,
    profile_lookup::step_programs,
    recording, refine, use_sets,
    use_sets::{UseSetIndex, Users},
    variables,
    walk::{CallSites, StepIndex},
};
use crate::{
    debug_info::DebugInfo,
    message::FileError,
    profile::Profile,
    witnesses::{check_profile, recorded_totals},
};

impl Model {
    /// Builds the model of a compiled program from its profile and debug contexts. Also returns a
    /// lookup of single variables of the profile, which takes some 20 bytes per lowered variable.
    ///
    /// If `with_memory_peak`, the tile and step with the most live bytes are found, and the names
    /// of the variables that are live there are read from the profile. Otherwise,
    /// [`Model::memory_peak`] is `None`.
    ///
    /// # Errors
    /// If the program tree is cyclic or too large, if variables or the code of an operation add up
    /// to more than 4 GiB on a tile, or if the names of variables cannot be read.
    pub fn build(
        mut profile: Profile,
        debug_info: DebugInfo,
        with_memory_peak: bool,
    ) -> Result<(Self, ProfileLookup), FileError> {
        let programs = &profile.programs;
        let found = operations::find(programs, &debug_info)?;
        let (mut operations, with_pairs) = names::name_all(&found, programs, &debug_info)?;
        let steps = StepIndex::new(programs, &profile.steps, &found.walk.paths);
        let sites = CallSites::new(programs, &found.walk.paths, &with_pairs);
        for (operation, unnamed) in operations.iter_mut().zip(&found.operations) {
            operation.window = steps.window(unnamed);
            operation.call = sites.call_of[unnamed.path];
        }
        let backward_start = passes::find(&mut operations);
        let labels: Vec<Label> = profile
            .variables
            .labels
            .iter()
            .map(|own| Label::new(own, &debug_info))
            .collect();
        let recording = Recording::new(&debug_info, &found, &operations, &labels);
        let disagreement = recording::disagreement(&debug_info, &found, &operations);
        drop(debug_info);
        let (operation_groups, (set_of, use_sets), index, cluster_of) =
            Self::groups(&profile, &found, &operations, &steps)?;
        let flow_uses = FlowUses::new(&profile, &found, &steps, &index, &sites, use_sets.len())?;
        let contradictions = check_profile(&profile, |position| set_of[position] != NO_USERS);
        profile.forget_users();
        let collected = variables::collect(&profile, &set_of)?;
        let nearly =
            variables::nearly_always_live(&profile, &collected.data, backward_start.is_some());
        let mut warnings = profile.warnings;
        warnings.extend(disagreement.into_iter().chain(nearly));
        let programs = &profile.programs;
        let vertex_code = programs.vertex_types.iter().map(|own| own.code.clone());
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
            flow: DataFlow::default(),
            vertex_code: vertex_code.collect(),
            programs: operations::owned_programs(programs, &found.groups),
            backward_start,
            recording,
            recorded: profile.recorded,
            cycles: None,
            layer_regexes: LayerRegexes::default(),
            made: profile.made,
            memory_peak: None,
            contradictions,
            warnings,
        };
        if let Some(start) = backward_start {
            passes::mark_updates(&mut model, start);
        } else if let Some(contradiction) = passes::updates_without_backward(&model) {
            model.contradictions.push(contradiction);
        }
        model.flow = flow_uses.flow(&model)?;
        let backward = backward_start.map(|start| (&steps, start));
        match cycles::of_operations(programs, &profile.cycles, &found, &cluster_of, backward) {
            Ok(cycles) => model.cycles = cycles,
            Err(warning) => model.warnings.push(warning),
        }
        let lookup = ProfileLookup {
            variables: profile.variables,
            set_of,
            names: profile.names,
            programs: step_programs(programs, &found),
            program_at: profile.steps.iter().map(|step| step.program).collect(),
        };
        model.memory_peak = with_memory_peak
            .then(|| MemoryPeak::find(&model, &collected.code, &lookup))
            .transpose()?;
        let one_stage = recorded_totals(&model.recorded, &model.totals_in_one_stage());
        model.contradictions.extend(one_stage);
        Ok((model, lookup))
    }

    /// Builds the operation groups (operations with one debug context) with their code, and finds
    /// which groups use each variable. The last item of the result has one entry per program: the
    /// index of the program's cluster (programs that use the same variables) in its operation
    /// group.
    fn groups(
        profile: &Profile,
        found: &UnnamedOperations,
        operations: &[Operation],
        steps: &StepIndex,
    ) -> Result<(Vec<OperationGroup>, Users, UseSetIndex, code::ClusterOf), FileError> {
        let programs = &profile.programs;
        let mut budget = code::Budget::new(programs);
        let unnamed = found.groups.iter();
        let with_uid = unnamed.clone().map(|group| (group.uid, &group.programs));
        let (codes, users) = rayon::join(
            || code::of_all(programs, with_uid, &mut budget),
            || use_sets::find(profile, &found.groups),
        );
        let (codes, mut users) = (codes?, users?);
        let index = refine::refine(profile, &found.groups, &codes, &mut users);
        let (clusters, cluster_of) = code::clusters(profile, &found.groups, &index, &mut budget)?;
        let with_code = unnamed.zip(codes).zip(clusters);
        let groups = with_code.map(|((group, code), clusters)| OperationGroup {
            uid: group.uid,
            window: operations[group.first as usize].window,
            host_copies: ascending(
                group
                    .programs
                    .iter()
                    .filter(|&&program| programs.all[program as usize].kind.is_stream_copy())
                    .flat_map(|&program| steps.of(program).iter().copied()),
            )
            .into(),
            code,
            clusters,
        });
        Ok((groups.collect(), users, index, cluster_of))
    }
}
