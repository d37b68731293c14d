//! Checks a model that was loaded from a file: every index must refer to something that exists, and
//! ordered lists must be in order, since all other code relies on that.

use crate::{
    limits::{STEPS, STEPS_AND_TILES},
    model::{GroupCode, Model, NO_CALL, NO_NODE, ProgramCluster, VariableGroups, WorkCycles},
    profile::TileBytes,
};

/// Returns an error if a loaded model has more liveness steps than any real model: if their number,
/// or its product with the number of tiles, is over a fixed limit.
pub fn steps(model: &Model) -> Result<(), String> {
    let steps = u64::from(model.steps());
    if steps <= STEPS && steps * u64::from(model.target.num_tiles) <= STEPS_AND_TILES {
        return Ok(());
    }
    Err(format!(
        "it has {steps} liveness steps, more than any real one"
    ))
}

/// Checks all parts of a model that was loaded from a file. The error message names the first part
/// with an invalid index or a wrong order.
pub fn all(model: &Model) -> Result<(), String> {
    steps(model)?;
    [
        ("target", model.fit_target()),
        (
            "recorded tiles",
            [0, model.target.num_tiles as usize].contains(&model.recorded.tiles.len()),
        ),
        ("live ranges", model.fit_classes()),
        (
            "use sets",
            model
                .use_sets
                .is_sound(model.operation_groups.len(), model.labels.len()),
        ),
        ("variables", model.fit_variables(&model.variables)),
        (
            "variables of code",
            model.fit_variables(&model.code_variables),
        ),
        ("operations", model.fit_operations()),
        ("operation groups", model.fit_groups()),
        (
            "programs",
            model
                .programs
                .iter()
                .filter_map(|program| program.group)
                .all(|group| is_in(group, &model.operation_groups)),
        ),
        ("cycles", model.fit_cycles()),
        ("flow of data", model.fit_flow()),
        ("bytes by tile", model.fit_bytes_by_tile()),
        ("peak", model.fit_peak()),
    ]
    .into_iter()
    .find(|(_, fits)| !fits)
    .map_or(Ok(()), |(part, _)| {
        Err(format!("{part}: a position or an order is wrong"))
    })
}

/// Returns whether `index` is the index of an entry of `list`.
fn is_in<T>(index: u32, list: &[T]) -> bool {
    (index as usize) < list.len()
}

/// Checks of a model that was loaded from a file. Each method returns whether one part of the
/// model, or an index in it, is valid.
impl Model {
    fn fit_target(&self) -> bool {
        self.target.num_tiles > 0
            && self.target.check_single_ipu().is_ok()
            && self.backward_start.is_none_or(|step| self.has_step(step))
    }

    fn has_step(&self, step: u32) -> bool {
        step < self.steps()
    }

    fn has_set(&self, set: u32) -> bool {
        (set as usize) < self.use_sets.len()
    }

    fn has_window(&self, window: Option<(u32, u32)>) -> bool {
        window.is_none_or(|(first, last)| first <= last && self.has_step(last))
    }

    fn fit_classes(&self) -> bool {
        (0..self.classes.len() as u32).all(|class| {
            self.classes
                .ranges(class)
                .iter()
                .all(|&(from, to)| from < to && to <= self.steps())
        })
    }

    fn fit_variables(&self, variables: &VariableGroups) -> bool {
        variables.tiles() == self.target.num_tiles
            && variables
                .uses()
                .iter()
                .all(|one| (one.class as usize) < self.classes.len() && self.has_set(one.set))
    }

    fn fit_operations(&self) -> bool {
        self.operations.iter().all(|operation| {
            is_in(operation.group, &self.operation_groups)
                && self.has_window(operation.window)
                && (operation.call == NO_CALL || is_in(operation.call, &self.calls))
        })
    }

    fn fit_groups(&self) -> bool {
        self.operation_groups.iter().all(|group| {
            self.has_window(group.window)
                && group.host_copies.iter().all(|&step| self.has_step(step))
                && self.fits_code(&group.code)
                && group
                    .clusters
                    .iter()
                    .all(|ProgramCluster { sets, code, .. }| {
                        sets.is_sorted_by(|a, b| a < b)
                            && sets.last().is_none_or(|&set| self.has_set(set))
                            && self.fits_code(code)
                    })
        })
    }

    fn fits_code(&self, code: &GroupCode) -> bool {
        let types = &code.vertex_types;
        types.is_sorted_by(|a, b| a.0 < b.0)
            && types
                .last()
                .is_none_or(|&(last, _)| is_in(last, &self.vertex_code))
            && self.are_on_tiles(code.all_bytes())
    }

    /// Returns whether the cycles in a loaded model are valid. There must be an entry for each
    /// operation, and each cluster (a part of the programs of an operation) with cycles must exist.
    /// In each entry, neither the cycles of exchanges nor the cycles since the start of the
    /// backward pass may exceed the total.
    fn fit_cycles(&self) -> bool {
        let Some(cycles) = &self.cycles else {
            return true;
        };
        let (all, parts) = (&cycles.by_operation, &cycles.by_cluster);
        let is_part = |cycles: &WorkCycles| cycles.exchange.max(cycles.later) <= cycles.all;
        all.len() == self.operations.len()
            && all.iter().all(is_part)
            && is_part(&cycles.unexplained)
            && parts.keys().all(|&(operation, cluster)| {
                self.operations
                    .get(operation as usize)
                    .and_then(|own| self.operation_groups.get(own.group as usize))
                    .is_some_and(|group| is_in(cluster, &group.clusters))
            })
            && parts.values().all(is_part)
    }

    /// Returns whether the data flow between nodes (runs of consecutive liveness steps) is valid:
    /// its edges must be sorted by the node where they start, and each edge must lead to later
    /// nodes only. All nodes and operations in the data flow must exist.
    fn fit_flow(&self) -> bool {
        let flow = &self.flow;
        let lead_on = |from: u32, to: &[u32]| {
            to.first().is_some_and(|&to| from == NO_NODE || from < to)
                && to.is_sorted_by(|a, b| a < b)
                && to.iter().all(|&node| is_in(node, &flow.nodes))
        };
        flow.nodes
            .iter()
            .flat_map(|node| &node.operations)
            .all(|&one| is_in(one, &self.operations))
            && flow.edges.iter().all(|edge| lead_on(edge.from, &edge.to))
            && flow.edges.is_sorted_by_key(|edge| edge.from)
            && flow
                .parameters
                .iter()
                .all(|(set, to)| self.has_set(*set) && lead_on(NO_NODE, to))
    }

    fn fit_bytes_by_tile(&self) -> bool {
        let categories = self.recorded.categories.iter();
        self.are_on_tiles(
            categories
                .flat_map(|own| [&own.bytes, &own.overlapped])
                .chain(&self.vertex_code)
                .chain(&self.recorded_code),
        )
    }

    fn fit_peak(&self) -> bool {
        self.memory_peak.as_ref().is_none_or(|peak| {
            peak.tile < self.target.num_tiles
                // The liveness step of the peak must exist. A model without liveness steps may give
                // step 0.
                && peak.step < self.steps().max(1)
                && peak
                    .variables
                    .iter()
                    .all(|variable| self.has_set(variable.set))
        })
    }

    fn are_on_tiles<'b>(&self, mut all: impl Iterator<Item = &'b TileBytes>) -> bool {
        all.all(|bytes| bytes.end() <= self.target.num_tiles)
    }
}
