//! Finds through which variables data flows from operations to later operations (docs/model.md,
//! "The flow of data").
//!
//! A live range of a variable begins where the variable is written and ends where it is last read.
//! So the first operation that uses the variable in the range is the producer of the data, and the
//! other users are its consumers. Nothing else in a profile shows dependencies between operations,
//! whatever the framework calls the operations.

use super::{
    Model, ascending,
    operations::UnnamedOperations,
    use_sets::{Role, UseSetIndex},
    walk::{CallSites, Path, StepIndex},
};
use crate::{
    limits,
    message::{FileError, OVER_BOUND},
    profile::Profile,
};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::{collections::hash_map::Entry, iter::once};

/// The graph of the data that flows through the program. A node is a series of consecutive liveness
/// steps of one operation or function call. An edge stands for variables that one node writes and
/// later nodes use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFlow {
    /// The nodes of the data flow, in the order of their first liveness steps. A node is a series
    /// of consecutive steps of one operation or function call.
    pub nodes: Vec<FlowNode>,
    /// The edges of the graph, ascending by `from`, then by `to`. Variables with the same producer
    /// and the same consumers share one edge.
    pub edges: Vec<FlowEdge>,
    /// The use sets of parameters, such as weights, ascending. A use set is the set of operation
    /// groups that use a variable. Each comes with the nodes that use its variables, as ascending
    /// indices into `nodes`. Parameters have no edges, because no node produces them.
    pub parameters: Vec<(u32, Box<[u32]>)>,
}

/// A node of the data flow: consecutive steps of one operation, or of one call of a function that
/// is called from several places. The steps of a call include those that copy its arguments and
/// results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowNode {
    /// The first liveness step of the node (consecutive steps of one operation).
    pub first: u32,
    /// The operations that run in this node of the data flow, as ascending indices into
    /// [`Model::operations`](super::Model); empty if its programs belong to no operation.
    pub operations: Box<[u32]>,
}

/// An edge of the data flow, which stands for variables that one node writes and later nodes use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FlowEdge {
    /// The node that writes the variables of this edge, as an index into [`DataFlow::nodes`];
    /// [`NO_NODE`] if the host writes them.
    pub from: u32,
    /// The nodes that use the variables of this edge, as ascending indices into
    /// [`DataFlow::nodes`]. They all come after the node `from`, unless that is [`NO_NODE`].
    pub to: Box<[u32]>,
    /// Bytes, over all tiles, of the variables of this edge of the data flow. A variable counts
    /// once for each live range in which the node `from` writes it and the nodes `to` use it.
    pub bytes: u64,
}

/// Both ends of an edge of the data flow: the node that writes the variables (or [`NO_NODE`]), and
/// the nodes that use the variables, ascending.
type EdgeEnds = (u32, Box<[u32]>);

/// Stands for the host, as the writer of variables, in [`FlowEdge::from`], which otherwise is a
/// node of the data flow.
pub const NO_NODE: u32 = u32::MAX;

fn too_much() -> FileError {
    FileError::new(format!(
        "table `depth_first_steps` or `eq_class_step`: steps use variables more than {} times or \
         in more than {} ways, more than in any real model; {OVER_BOUND}",
        limits::LOOKS,
        limits::FLOW
    ))
}

/// How one liveness step uses the variables of a use set, that is, variables that the same
/// operation groups use.
#[derive(Clone, Copy)]
struct Use {
    step: u32,
    node: u32,
    role: Role,
}

/// The nodes of the data flow, and one list per use set (variables that the same operation groups
/// use): the liveness steps that use these variables, ascending.
pub struct FlowUses {
    nodes: Vec<FlowNode>,
    by_set: Vec<Vec<Use>>,
}

impl FlowUses {
    /// Finds the nodes of the data flow, and for each use set (the operation groups that use a
    /// variable) the steps that use its variables. A node is a series of steps of one operation, or
    /// all steps of a call of a function that is called from several places. `sites` has the calls
    /// of such functions; if they are nested, the outermost call is the node.
    pub fn new(
        profile: &Profile,
        found: &UnnamedOperations,
        steps: &StepIndex,
        index: &UseSetIndex,
        sites: &CallSites,
        sets: usize,
    ) -> Result<Self, FileError> {
        // Map from a program to the use sets (the operation groups that use a variable) of its
        // variables, each with the role of the variables, such as destination of an exchange.
        // Without the map, the use sets would be computed again for every step of a program.
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
        let node = |steps: &&[UsedStep]| FlowNode {
            first: steps[0].step,
            operations: ascending(steps.iter().filter_map(|step| step.operation)),
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

    /// Builds the data flow from the live ranges of all data variables. Parameters, such as
    /// weights, get no edges.
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
            let users = &self.by_set[set as usize];
            (set, ascending(users.iter().map(|user| user.node)))
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

/// Returns the edges of the data flow (from a writer of variables to the later users) for one live
/// range of variables. `users` has all uses in this range, ascending by step.
///
/// The first user writes the variables. If it is a copy from or to the host, the writer is the host
/// instead. A later user also writes them if they are the destination of its exchange. Each writer
/// has one edge, which leads to all users after it, also to those after the next writer. Each edge
/// comes with the number of entries of `users` that were read for it. The caller adds up these
/// numbers and rejects a profile if their sum is too large, as damage may cause.
fn edges_of(users: &[Use]) -> impl Iterator<Item = (EdgeEnds, usize)> {
    let first = users
        .first()
        .filter(|user| user.role != Role::Host)
        .map_or((NO_NODE, 0), |user| (user.node, 1));
    let later = (1..)
        .zip(users)
        .skip(first.1)
        .filter(|(_, user)| user.role == Role::Destination)
        .map(|(after, user)| (user.node, after));
    let mut last = None;
    once(first).chain(later).filter_map(move |(from, at)| {
        if last.replace(from) == Some(from) {
            return None;
        }
        let nodes = users[at..].iter().map(|user| user.node);
        let to = ascending(nodes.filter(|&node| from == NO_NODE || node > from));
        (!to.is_empty()).then_some(((from, to), users.len() - at + 1))
    })
}

/// A liveness step that uses variables, and the operation that runs at this step, if there is one.
struct UsedStep {
    step: u32,
    operation: Option<u32>,
    /// The Call in which the step runs, if its function is called from several places; otherwise
    /// `None`. Of several such Calls, it is the outermost. It is identified by the first step in
    /// it, and by the operation of the Call program, if that belongs to one.
    call: Option<(u32, Option<u32>)>,
}

fn used_steps(
    profile: &Profile,
    found: &UnnamedOperations,
    steps: &StepIndex,
    sites: &CallSites,
    mut is_wanted: impl FnMut(u32) -> bool,
) -> Vec<UsedStep> {
    let operation = |step: u32| {
        let program = profile.steps[step as usize].program;
        found.operation_of[found.walk.visit(steps.walk_path(step)?, program)?]
    };
    let mut used = Vec::new();
    let mut open: Option<(Path, (u32, Option<u32>))> = None;
    for (step, entry) in (0u32..).zip(&profile.steps) {
        let path = steps.walk_path(step);
        let site = path.and_then(|path| sites.outermost[path]);
        if open.map(|open| open.0) != site {
            open = site.map(|site| (site, (step, entry.parent.and_then(operation))));
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

/// Joins the steps that copy arguments and results of a Call to the steps of the Call. Copies are
/// neighbouring steps that belong to the same operation as the Call program.
fn join_copies(all: &mut [UsedStep]) {
    let mut end = 0;
    while end < all.len() {
        let begin = end;
        let call = all[begin].call;
        end += all[begin..]
            .iter()
            .take_while(|step| step.call == call)
            .count();
        let Some((_, caller @ Some(_))) = call else {
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

    /// Tests a tensor into which several operations copy their outputs, as in a concatenation: its
    /// users depend on each of these operations.
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
        // A node (steps of one operation) that writes a variable at two of its steps produces only
        // one edge.
        let again = [users[0], users[0], users[2]];
        let edges: Vec<EdgeEnds> = edges_of(&again).map(|(edge, _)| edge).collect();
        assert_eq!(edges, [(0, [2].into())]);
    }
}
