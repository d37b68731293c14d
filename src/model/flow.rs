//! Finds through which variables data flows from operations to later operations (docs/model.md,
//! "The flow of data").
//!
//! A live range of a variable begins where the variable is written and ends where it is last read.
//! So the first operation that uses the variable in the range is the producer of the data, and the
//! other users are its consumers. Nothing else in a profile shows dependencies between operations,
//! whatever the framework calls the operations.

use super::operations::{NO_OPERATION, UnnamedOperations};
use super::use_sets::{Role, UseSetIndex};
use super::walk::{CallSites, Path, StepIndex};
use super::{Model, ascending};
use crate::limits;
use crate::message::{FileError, OVER_BOUND};
use crate::profile::Profile;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::hash_map::Entry;
use std::iter::once;

/// A graph of the data that flows through the program. A node is a run of consecutive steps of one
/// operation or call. An edge stands for the variables that one node writes and later nodes use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFlow {
    /// The nodes, in the order of their first steps.
    pub nodes: Vec<FlowNode>,
    /// The edges, ascending by `from`, then by `to`. All live ranges with the same producer and the
    /// same consumers are one edge.
    pub edges: Vec<FlowEdge>,
    /// The use sets of parameters, such as weights, in ascending order. Each use set comes with the
    /// nodes that use its variables, as ascending indices into `nodes`. Parameters have no
    /// producer.
    pub parameters: Vec<(u32, Box<[u32]>)>,
}

/// A node of the data flow: consecutive steps of one operation, or of one call of a function that
/// is called from several places. The steps of a call include those that copy its arguments and
/// results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowNode {
    /// The first liveness step of the node.
    pub first: u32,
    /// The operations that run in the node, as ascending indices into
    /// [`Model::operations`](super::Model); empty if the programs of the node belong to no
    /// operation.
    pub operations: Box<[u32]>,
}

/// An edge of the data flow: the variables that one node writes and later nodes use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FlowEdge {
    /// Index into [`DataFlow::nodes`]: the node that writes the variables. It is [`NO_NODE`] if the
    /// producer is unknown, as for variables that the host writes.
    pub from: u32,
    /// Ascending indices into [`DataFlow::nodes`]: the nodes that use the variables. All these
    /// nodes come after `from`, unless `from` is [`NO_NODE`].
    pub to: Box<[u32]>,
    /// Bytes of the variables over all tiles. The bytes of a variable are added once for each of
    /// its live ranges that belong to the edge.
    pub bytes: u64,
}

/// Both ends of an edge of the data flow, as indices of nodes: the node that writes the variables,
/// or [`NO_NODE`], and the nodes that use the variables, ascending.
type EdgeEnds = (u32, Box<[u32]>);

/// Used in place of the index of a node if the producer of an edge of the data flow is unknown.
pub const NO_NODE: u32 = u32::MAX;

/// Returns the error for a profile whose steps use variables more often than in any real model.
fn too_much() -> FileError {
    FileError::new(format!(
        "table `depth_first_steps` or `eq_class_step`: steps use variables more than {} times or \
         in more than {} ways, more than in any real model; {OVER_BOUND}",
        limits::LOOKS,
        limits::FLOW
    ))
}

/// One use of the variables of a use set: the liveness step, the node of the data flow that
/// contains the step, and how the step uses the variables.
#[derive(Clone, Copy)]
struct Use {
    step: u32,
    node: u32,
    role: Role,
}

/// The nodes of the data flow, and one entry per use set with the uses of its variables, ascending
/// by step.
pub struct FlowUses {
    nodes: Vec<FlowNode>,
    by_set: Vec<Vec<Use>>,
}

impl FlowUses {
    /// Collects the use sets that each step uses. `sets` is the number of all use sets. `sites` has
    /// the Calls of functions that are called from several places; all steps of an outermost Call
    /// of these form one node.
    ///
    /// # Errors
    /// If steps use variables more often than in any real model.
    pub fn new(
        profile: &Profile,
        found: &UnnamedOperations,
        steps: &StepIndex,
        index: &UseSetIndex,
        sites: &CallSites,
        sets: usize,
    ) -> Result<Self, FileError> {
        // For each program that has steps (by its index): the use sets of the program's variables,
        // each with the role of these variables.
        let mut roles = FxHashMap::default();
        let has_roles = |program| {
            let roles = roles
                .entry(program)
                .or_insert_with(|| index.roles(profile, program));
            !roles.is_empty()
        };
        let mut used = used_steps(profile, found, steps, sites, has_roles);
        join_copies(&mut used);
        let is_one_node = |step: &UsedStep, next: &UsedStep| {
            step.call == next.call && (step.call.is_some() || step.operation == next.operation)
        };
        let nodes: Vec<&[UsedStep]> = used.chunk_by(is_one_node).collect();
        let node = |steps: &&[UsedStep]| {
            let operations = steps.iter().map(|step| step.operation);
            FlowNode {
                first: steps[0].step,
                operations: ascending(operations.filter(|&operation| operation != NO_OPERATION)),
            }
        };
        let mut uses = Self {
            nodes: nodes.iter().map(node).collect(),
            by_set: vec![Vec::new(); sets],
        };
        let mut left = limits::LOOKS;
        for (node, steps) in (0u32..).zip(nodes) {
            for &UsedStep { step, .. } in steps {
                for &(set, role) in &roles[&profile.steps[step as usize].program] {
                    left = left.checked_sub(1).ok_or_else(too_much)?;
                    uses.by_set[set as usize].push(Use { step, node, role });
                }
            }
        }
        Ok(uses)
    }

    /// Builds the data flow from the live ranges of all data variables of `model`. Parameters get
    /// no edges.
    ///
    /// # Errors
    /// If the data flow is larger than that of any real model.
    pub fn flow(self, model: &Model) -> Result<DataFlow, FileError> {
        let mut edges: FxHashMap<EdgeEnds, u64> = FxHashMap::default();
        let mut parameters: Vec<u32> = Vec::new();
        let (mut left, mut ends_left) = (limits::LOOKS, limits::FLOW);
        for variable in model.variables.uses() {
            let users = &self.by_set[variable.set as usize];
            if model.is_parameter(variable.class, variable.set) {
                parameters.push(variable.set);
                continue;
            }
            for &(from, to) in model.classes.ranges(variable.class) {
                let begin = users.partition_point(|user| user.step < from);
                let end = users.partition_point(|user| user.step < to);
                for (edge, looks) in edges_of(&users[begin..end.max(begin)]) {
                    left = left.checked_sub(looks).ok_or_else(too_much)?;
                    let size = edge.1.len() + 1;
                    let known = edges.entry(edge);
                    if let Entry::Vacant(_) = known {
                        ends_left = ends_left.checked_sub(size).ok_or_else(too_much)?;
                    }
                    *known.or_default() += variable.bytes;
                }
            }
        }
        let parameters = ascending(parameters).into_iter().map(|set| {
            let users = self.by_set[set as usize].iter();
            (set, ascending(users.map(|user| user.node)))
        });
        let mut edges: Vec<FlowEdge> = edges
            .into_iter()
            .map(|((from, to), bytes)| FlowEdge { from, to, bytes })
            .collect();
        edges.sort_unstable();
        Ok(DataFlow {
            nodes: self.nodes,
            edges,
            parameters: parameters.filter(|(_, nodes)| !nodes.is_empty()).collect(),
        })
    }
}

/// Returns the edges of one live range of variables. `users` has the uses of the variables in this
/// range, ascending by step. Each edge comes with the number of uses that were examined to find it;
/// the caller limits the sum of these numbers. The first user is the producer, unless it is a copy
/// from or to the host. A later user that is the destination of an exchange is also a producer: the
/// users after it depend on both producers.
fn edges_of(users: &[Use]) -> impl Iterator<Item = (EdgeEnds, usize)> {
    let first = users
        .first()
        .filter(|user| user.role != Role::Host)
        .map_or((NO_NODE, 0), |user| (user.node, 1));
    let later = (1..)
        .zip(users)
        .skip(first.1)
        .filter(|(_, user)| user.role == Role::Destination);
    let writers = once(first).chain(later.map(|(after, user)| (user.node, after)));
    let mut last = None;
    writers.filter_map(move |(from, at)| {
        if last.replace(from) == Some(from) {
            return None;
        }
        let nodes = users[at..].iter().map(|user| user.node);
        let to = ascending(nodes.filter(|&node| from == NO_NODE || node > from));
        (!to.is_empty()).then_some(((from, to), users.len() - at + 1))
    })
}

/// A liveness step that uses variables, with its operation ([`NO_OPERATION`] if the step belongs to
/// no operation).
struct UsedStep {
    step: u32,
    operation: u32,
    /// The outermost Call that contains the step, among the Calls of functions that are called from
    /// several places: the first step of this Call, and the operation of the Call program. `None`
    /// if no such Call contains the step.
    call: Option<(u32, u32)>,
}

/// Returns all steps of the profile for whose programs `is_wanted` is true, ascending. `sites` has
/// the Calls of functions that are called from several places.
fn used_steps(
    profile: &Profile,
    found: &UnnamedOperations,
    steps: &StepIndex,
    sites: &CallSites,
    mut is_wanted: impl FnMut(u32) -> bool,
) -> Vec<UsedStep> {
    let operation = |step: u32| {
        let program = profile.steps[step as usize].program;
        let path = steps.walk_path(step);
        let visit = path.and_then(|path| found.walk.visit(path, program));
        visit.map_or(NO_OPERATION, |visit| found.operation_of[visit as usize])
    };
    let mut used = Vec::new();
    let mut open: Option<(Path, (u32, u32))> = None;
    for (step, entry) in (0u32..).zip(&profile.steps) {
        let path = steps.walk_path(step);
        let site = path.and_then(|path| sites.outermost[path as usize]);
        if open.map(|open| open.0) != site {
            let caller = entry.parent.map_or(NO_OPERATION, operation);
            open = site.map(|site| (site, (step, caller)));
        }
        if is_wanted(entry.program) {
            used.push(UsedStep {
                step,
                operation: operation(step),
                call: open.map(|open| open.1),
            });
        }
    }
    used
}

/// Extends each Call in `all` by the steps directly before and after it that belong to the
/// operation of the Call program. These steps copy the arguments and results of the Call.
fn join_copies(all: &mut [UsedStep]) {
    let mut end = 0;
    while end < all.len() {
        let begin = end;
        let call = all[begin].call;
        end += all[begin..]
            .iter()
            .take_while(|step| step.call == call)
            .count();
        let Some((_, caller)) = call.filter(|&(_, caller)| caller != NO_OPERATION) else {
            continue;
        };
        let is_copy = |step: &&UsedStep| step.operation == caller;
        let before = all[..begin].iter().rev().take_while(is_copy).count();
        end += all[end..].iter().take_while(is_copy).count();
        for step in &mut all[begin - before..end] {
            step.call = call;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As where several operations copy their outputs into one tensor.
    #[test]
    fn what_follows_a_later_destination_depends_on_it_too() {
        let users = [
            (0, Role::Destination),
            (2, Role::Destination),
            (4, Role::Computes),
        ];
        let users = [0u32, 1, 2].map(|node| {
            let (step, role) = users[node as usize];
            Use { step, node, role }
        });
        let edges: Vec<EdgeEnds> = edges_of(&users).map(|(edge, _)| edge).collect();
        assert_eq!(edges, [(0, [1, 2].into()), (1, [2].into())]);
        // A node that writes the variable in several steps has one edge.
        let again = [users[0], users[0], users[2]];
        let edges: Vec<EdgeEnds> = edges_of(&again).map(|(edge, _)| edge).collect();
        assert_eq!(edges, [(0, [2].into())]);
    }
}
