//! Checks a loaded model: indices must exist and ordered lists must be in order, since all other
//! code relies on this.

use crate::limits::{STEPS, STEPS_AND_TILES};
use crate::model::{
    ClusterCycles, GroupCode, Model, NO_CALL, NO_NODE, ProgramCluster, VariableGroups, WorkCycles,
};
use crate::profile::TileBytes;

/// Returns an error with the number of liveness steps if it, or its product with the number of
/// tiles, exceeds [`STEPS`] or [`STEPS_AND_TILES`].
pub(super) fn steps(model: &Model) -> Result<(), String> {
    let (steps, tiles) = (u64::from(model.steps()), u64::from(model.target.num_tiles));
    match steps <= STEPS && steps * tiles <= STEPS_AND_TILES {
        true => Ok(()),
        false => Err(format!(
            "it has {steps} liveness steps, more than any real one"
        )),
    }
}

/// Checks all parts of a loaded model. Returns a message that names a part with an invalid index or
/// a wrong order; `None` if there is none.
pub(super) fn problem(model: &Model) -> Option<String> {
    if let Err(problem) = steps(model) {
        return Some(problem);
    }
    let all = ModelChecks(model);
    let (data, code) = (&model.variables, &model.code_variables);
    let parts = [
        ("target", all.fit_target()),
        ("recorded tiles", all.fit_recorded_tiles()),
        ("live ranges", all.fit_classes()),
        ("use sets", all.fit_use_sets()),
        ("variables", all.fit_variables(data)),
        ("variables of code", all.fit_variables(code)),
        ("operations", all.fit_operations()),
        ("operation groups", all.fit_groups()),
        ("programs", all.fit_programs()),
        ("cycles", all.fit_cycles()),
        ("flow of data", all.fit_flow()),
        ("bytes by tile", all.fit_bytes_by_tile()),
        ("peak", all.fit_peak()),
    ];
    parts
        .into_iter()
        .find(|(_, fits)| !fits)
        .map(|(part, _)| format!("{part}: a position or an order is wrong"))
}

/// The checks of a loaded model, one function for each part of it.
struct ModelChecks<'a>(&'a Model);

impl ModelChecks<'_> {
    fn fit_target(&self) -> bool {
        let (target, backward) = (&self.0.target, self.0.backward_start);
        target.num_tiles > 0
            && target.check_single_ipu().is_ok()
            && backward.is_none_or(|step| self.has_step(step))
    }

    fn fit_recorded_tiles(&self) -> bool {
        [0, self.0.target.num_tiles as usize].contains(&self.0.recorded.tiles.len())
    }

    fn fit_use_sets(&self) -> bool {
        let (groups, labels) = (self.0.operation_groups.len(), self.0.labels.len());
        self.0.use_sets.is_sound(groups, labels)
    }

    fn fit_programs(&self) -> bool {
        self.0
            .programs
            .iter()
            .filter_map(|program| program.group)
            .all(|group| self.has_group(group))
    }

    fn has_step(&self, step: u32) -> bool {
        step < self.0.steps()
    }

    fn has_group(&self, group: u32) -> bool {
        (group as usize) < self.0.operation_groups.len()
    }

    fn has_set(&self, set: u32) -> bool {
        (set as usize) < self.0.use_sets.len()
    }

    fn has_window(&self, window: Option<(u32, u32)>) -> bool {
        window.is_none_or(|(first, last)| first <= last && self.has_step(last))
    }

    fn fit_classes(&self) -> bool {
        let is_fine = |&(from, to): &(u32, u32)| from < to && to <= self.0.steps();
        let mut classes = 0..self.0.classes.len() as u32;
        classes.all(|class| self.0.classes.ranges(class).iter().all(is_fine))
    }

    fn fit_variables(&self, variables: &VariableGroups) -> bool {
        let mut uses = variables.uses().iter();
        variables.tiles() == self.0.target.num_tiles
            && uses.all(|one| (one.class as usize) < self.0.classes.len() && self.has_set(one.set))
    }

    fn fit_operations(&self) -> bool {
        let calls = self.0.calls.len();
        self.0.operations.iter().all(|operation| {
            self.has_group(operation.group)
                && self.has_window(operation.window)
                && (operation.call == NO_CALL || (operation.call as usize) < calls)
        })
    }

    fn fit_groups(&self) -> bool {
        self.0.operation_groups.iter().all(|group| {
            self.has_window(group.window)
                && group.host_copies.iter().all(|&step| self.has_step(step))
                && self.fits_code(&group.code)
                && group.clusters.iter().all(|own| self.fits_cluster(own))
        })
    }

    fn fits_cluster(&self, cluster: &ProgramCluster) -> bool {
        let sets = &cluster.sets;
        sets.is_sorted_by(|a, b| a < b)
            && sets.last().is_none_or(|&set| self.has_set(set))
            && self.fits_code(&cluster.code)
    }

    fn fits_code(&self, code: &GroupCode) -> bool {
        let types = &code.vertex_types;
        let others = [
            &code.vertex_state,
            &code.vertex_memory,
            &code.exchange_code,
            &code.control_code,
        ];
        let last = types.last().map(|&(last, _)| last as usize);
        types.is_sorted_by(|a, b| a.0 < b.0)
            && last.is_none_or(|last| last < self.0.vertex_code.len())
            && self.are_on_tiles(types.iter().map(|(_, tiles)| tiles).chain(others))
    }

    /// Are the cycles by cluster of programs in the order of operations, do all clusters exist, and
    /// are the cycles of exchanges and of later programs each at most the total of their entry?
    fn fit_cycles(&self) -> bool {
        let Some(cycles) = &self.0.cycles else {
            return true;
        };
        let clusters = |operation: u32| {
            let operation = self.0.operations.get(operation as usize)?;
            Some(
                self.0
                    .operation_groups
                    .get(operation.group as usize)?
                    .clusters
                    .len(),
            )
        };
        let (all, parts) = (&cycles.by_operation, &cycles.by_cluster);
        let exists = |part: &ClusterCycles| Some(part.cluster as usize) < clusters(part.operation);
        let is_part = |cycles: &WorkCycles| cycles.exchange.max(cycles.later) <= cycles.all;
        all.len() == self.0.operations.len()
            && all.iter().all(is_part)
            && is_part(&cycles.unexplained)
            && parts.is_sorted_by_key(|part| part.operation)
            && parts
                .iter()
                .all(|part| exists(part) && is_part(&part.cycles))
    }

    /// Are edges in the order of the nodes where they start, and does each lead to later nodes
    /// only?
    fn fit_flow(&self) -> bool {
        let (flow, operations) = (&self.0.flow, self.0.operations.len());
        let lead_on = |from: u32, to: &[u32]| {
            let first = if from == NO_NODE { 0 } else { from + 1 };
            let are_later = to.first().is_some_and(|&to| first <= to);
            are_later
                && to.is_sorted_by(|a, b| a < b)
                && to.iter().all(|&node| (node as usize) < flow.nodes.len())
        };
        let mut in_nodes = flow.nodes.iter().flat_map(|node| &node.operations);
        let mut parameters = flow.parameters.iter();
        in_nodes.all(|&one| (one as usize) < operations)
            && flow.edges.iter().all(|edge| lead_on(edge.from, &edge.to))
            && flow.edges.is_sorted_by_key(|edge| edge.from)
            && parameters.all(|(set, to)| self.has_set(*set) && lead_on(NO_NODE, to))
    }

    fn fit_bytes_by_tile(&self) -> bool {
        let categories = self
            .0
            .recorded
            .categories
            .iter()
            .flat_map(|category| [&category.bytes, &category.overlapped]);
        let code = self.0.vertex_code.iter().chain(&self.0.recorded_code);
        self.are_on_tiles(code.chain(categories))
    }

    fn fit_peak(&self) -> bool {
        self.0.memory_peak.as_ref().is_none_or(|peak| {
            let mut variables = peak.variables.iter();
            peak.tile < self.0.target.num_tiles
                // In a model without steps, a peak at step 0 stands for no step.
                && peak.step < self.0.steps().max(1)
                && variables.all(|variable| self.has_set(variable.set))
        })
    }

    fn are_on_tiles<'b>(&self, mut all: impl Iterator<Item = &'b TileBytes>) -> bool {
        all.all(|bytes| bytes.end() <= self.0.target.num_tiles)
    }
}
