//! Which way the data flows (docs/model.md, "The flow of data").
//!
//! A live range begins where its variable is written and ends where it was read
//! last. So the first user of a range is its producer and the others are its
//! consumers: what the tool knows of dependencies between operations, whatever
//! the framework calls them.

use super::operations::{NO_OPERATION, UnnamedOperations};
use super::use_set_index::{Role, UseSetIndex};
use super::walk::Path;
use super::windows::StepIndex;
use super::{ModelError, TensorKind, UseSets, VariableUse};
use crate::limits;
use crate::profile::{LiveClasses, Profile};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::collections::hash_map::Entry;

/// Runs of steps without a break, and the data that flows between them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// In the order of their first steps.
    pub nodes: Vec<FlowNode>,
    /// Live ranges, those with the same producer and consumers joined.
    pub edges: Vec<FlowEdge>,
    /// By use set with parameters, ascending: the nodes that use them. These have no
    /// producer.
    pub parameters: Vec<(u32, Box<[u32]>)>,
}

/// Steps that follow each other and belong to one operation, or to one call of a
/// function that several places call, with the copies of its arguments and results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowNode {
    /// Index of the first step.
    pub first: u32,
    /// Its operations, as positions in [`Model::operations`](super::Model),
    /// ascending; empty for programs that belong to none.
    pub operations: Box<[u32]>,
}

/// Variables that one node writes and others use later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowEdge {
    /// The node that writes them, as a position in [`Flow::nodes`]; [`NO_NODE`] when
    /// none of the first steps of the range tells.
    pub from: u32,
    /// The nodes that use them, ascending; those of a producer come after it.
    pub to: Box<[u32]>,
    /// Bytes over all tiles, of all ranges.
    pub bytes: u64,
}

/// The node that writes, and those that use what it wrote.
type Edge = (u32, Box<[u32]>);

/// Means that no node is known to write a variable.
pub const NO_NODE: u32 = u32::MAX;

/// Within how many steps of a live range its producer is looked for: a range may
/// begin with the parents of the program that writes.
const FIRST_STEPS: u32 = 3;

/// A step that uses a variable of a use set.
#[derive(Debug, Clone, Copy)]
struct Use {
    step: u32,
    node: u32,
    role: Role,
}

/// The nodes, and by use set where its variables are used, in the order of steps.
pub(super) struct FlowUses {
    nodes: Vec<FlowNode>,
    by_set: Vec<Vec<Use>>,
}

impl FlowUses {
    /// Looks at every step. `sites` has the call paths that lead through a function
    /// which is called from several places: the outermost such call.
    pub(super) fn new(
        profile: &Profile,
        found: &UnnamedOperations,
        steps: &StepIndex,
        index: &UseSetIndex,
        (sets, sites): (usize, &FxHashMap<Path, Path>),
    ) -> Result<Self, ModelError> {
        let mut runs = OpenNodes {
            profile,
            found,
            steps,
            index,
            sites,
            sets: FxHashMap::default(),
            all: Vec::new(),
        };
        runs.find();
        runs.join_copies();
        let mut uses = Self {
            nodes: runs.nodes(),
            by_set: vec![Vec::new(); sets],
        };
        let mut left = limits::LOOKS;
        for (node, run) in (0u32..).zip(&runs.all) {
            for &(step, _) in &run.steps {
                for &(set, role) in &*runs.sets[&profile.steps[step as usize].program] {
                    left = left.checked_sub(1).ok_or(ModelError::TooMuchFlow)?;
                    uses.by_set[set as usize].push(Use { step, node, role });
                }
            }
        }
        Ok(uses)
    }

    /// The flow, by the live ranges of all variables that some operation uses.
    pub(super) fn flow(
        self,
        classes: &LiveClasses,
        uses: &[VariableUse],
        is_weight: impl Fn(u32) -> bool,
    ) -> Result<Flow, ModelError> {
        let mut edges: FxHashMap<Edge, u64> = FxHashMap::default();
        let mut parameters: Vec<u32> = Vec::new();
        let (mut left, mut ends_left) = (limits::LOOKS, limits::FLOW);
        for variable in uses {
            let users = &self.by_set[variable.set as usize];
            if classes.lasts(variable.class) || is_weight(variable.set) {
                parameters.push(variable.set);
                continue;
            }
            for &(from, to) in classes.ranges(variable.class) {
                let begin = users.partition_point(|user| user.step < from);
                let end = users.partition_point(|user| user.step < to);
                for (edge, looks) in edges_of(&users[begin..end.max(begin)], from) {
                    left = left.checked_sub(looks).ok_or(ModelError::TooMuchFlow)?;
                    let size = edge.1.len() + 1;
                    let known = edges.entry(edge);
                    if let Entry::Vacant(_) = known {
                        ends_left = ends_left.checked_sub(size).ok_or(ModelError::TooMuchFlow)?;
                    }
                    *known.or_default() += variable.bytes;
                }
            }
        }
        parameters.sort_unstable();
        parameters.dedup();
        let nodes_of = |set: u32| {
            let users = self.by_set[set as usize].iter();
            (set, ascending(users.map(|user| user.node)))
        };
        let parameters = parameters.into_iter().map(nodes_of);
        let parameters = parameters.filter(|(_, nodes)| !nodes.is_empty()).collect();
        let edges = edges.into_iter();
        let mut edges: Vec<FlowEdge> = edges
            .map(|((from, to), bytes)| FlowEdge { from, to, bytes })
            .collect();
        edges.sort_unstable_by(|a, b| (a.from, &a.to).cmp(&(b.from, &b.to)));
        Ok(Flow {
            nodes: self.nodes,
            edges,
            parameters,
        })
    }
}

/// The edges of one live range that begins at `start`, from the steps that use it, each with
/// the number of steps that were looked at. A later destination of an exchange writes to it
/// as well: what follows depends on both.
fn edges_of(users: &[Use], start: u32) -> impl Iterator<Item = (Edge, usize)> {
    let early = users
        .iter()
        .take_while(|user| user.step - start < FIRST_STEPS);
    let is_hosts = users.first().is_some_and(|user| user.role == Role::Host);
    let writes = |user: &Use| matches!(user.role, Role::Computes | Role::Destination);
    let producer = early.clone().position(writes).filter(|_| !is_hosts);
    let first = producer.map_or((NO_NODE, 0), |at| (users[at].node, at + 1));
    let later = users.iter().enumerate().skip(first.1);
    let later = later.filter(move |(_, user)| producer.is_some() && user.role == Role::Destination);
    let writers = [first]
        .into_iter()
        .chain(later.map(|(at, user)| (user.node, at + 1)));
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

/// All of these, ascending, each once.
pub(super) fn ascending(all: impl IntoIterator<Item = u32>) -> Box<[u32]> {
    let mut all: Vec<u32> = all.into_iter().collect();
    all.sort_unstable();
    all.dedup();
    all.into()
}

/// Steps that follow each other with the same key are one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    /// All of one call, by the first step in it and the operation of the Call.
    Call(u32, u32),
    /// Neighbours of one operation.
    Operation(u32),
}

/// A node in the making.
struct OpenNode {
    key: Key,
    /// Its steps that use variables, with the operation of each.
    steps: Vec<(u32, u32)>,
}

/// All nodes in the making.
struct OpenNodes<'a> {
    profile: &'a Profile,
    found: &'a UnnamedOperations,
    steps: &'a StepIndex,
    index: &'a UseSetIndex,
    sites: &'a FxHashMap<Path, Path>,
    /// By program that a step runs: the use sets that it uses.
    sets: FxHashMap<u32, Box<[(u32, Role)]>>,
    all: Vec<OpenNode>,
}

/// How many programs on each side of a call may be copies of its arguments and
/// results.
const MAX_AROUND: usize = 16;

impl OpenNodes<'_> {
    /// Neighbours among the steps that use variables, by operation or call.
    fn find(&mut self) {
        let paths = self.steps.walk_paths(&self.found.walk.paths);
        let mut open: Option<(Key, Path)> = None;
        for (step, entry) in (0u32..).zip(&self.profile.steps) {
            let path = paths[step as usize];
            let site = path.and_then(|path| self.sites.get(&path).copied());
            open = match (open, site) {
                (Some(open), Some(site)) if open.1 == site => Some(open),
                (_, site) => {
                    site.map(|site| (Key::Call(step, self.operation_above(step, &paths)), site))
                }
            };
            let sets = self.sets.entry(entry.program);
            let sets = sets.or_insert_with(|| self.index.roles(self.profile, entry.program));
            if sets.is_empty() {
                continue;
            }
            let operation = self.operation(step, &paths);
            let key = open.map_or(Key::Operation(operation), |(call, _)| call);
            match self.all.last_mut() {
                Some(last) if last.key == key => last.steps.push((step, operation)),
                _ => self.all.push(OpenNode {
                    key,
                    steps: vec![(step, operation)],
                }),
            }
        }
    }

    /// The operation that a step is part of.
    fn operation(&self, step: u32, paths: &[Option<Path>]) -> u32 {
        let program = self.profile.steps[step as usize].program;
        let visit = paths[step as usize].and_then(|path| self.found.walk.visit(path, program));
        visit.map_or(NO_OPERATION, |visit| {
            self.found.operation_of[visit as usize]
        })
    }

    /// That of the step which leads to this one.
    fn operation_above(&self, step: u32, paths: &[Option<Path>]) -> u32 {
        let parent = self.profile.steps[step as usize].parent;
        parent.map_or(NO_OPERATION, |parent| self.operation(parent, paths))
    }

    /// Gives each call the exchanges next to it that use variables of the function.
    fn join_copies(&mut self) {
        for call in 0..self.all.len() {
            let Key::Call(_, operation) = self.all[call].key else {
                continue;
            };
            let steps = self.all[call].steps.iter();
            let used = steps.flat_map(|&(step, _)| self.sets_of(step).iter().map(|set| set.0));
            let used: FxHashSet<u32> = used.collect();
            let mut copies = self.copies((0..call).rev(), (call, operation), &used);
            copies.extend(self.copies(call + 1..self.all.len(), (call, operation), &used));
            for &(run, copy) in &copies {
                self.all[run].steps.retain(|step| step.0 != copy.0);
            }
            let steps = &mut self.all[call].steps;
            steps.extend(copies.into_iter().map(|(_, copy)| copy));
            steps.sort_unstable();
        }
        self.all.retain(|run| !run.steps.is_empty());
    }

    /// The steps of these runs that only move data of the function, as long as there is
    /// nothing else between them and the call.
    fn copies(
        &self,
        runs: impl Iterator<Item = usize>,
        (call, operation): (usize, u32),
        used: &FxHashSet<u32>,
    ) -> Vec<(usize, (u32, u32))> {
        let mut found: Vec<(usize, (u32, u32))> = Vec::new();
        for run in runs.take_while(|&run| matches!(self.all[run].key, Key::Operation(_))) {
            let mut steps = self.all[run].steps.clone();
            // The nearest to the call first.
            if run < call {
                steps.reverse();
            }
            let is_copy = |&(step, part_of): &(u32, u32)| {
                let mut sets = self.sets_of(step).iter();
                let is_calls = part_of == operation && part_of != NO_OPERATION;
                (is_calls || self.moves(step)) && sets.any(|(set, _)| used.contains(set))
            };
            let room = MAX_AROUND - found.len();
            let all = steps.len();
            let copies = steps.into_iter().take_while(is_copy).take(room);
            let before = found.len();
            found.extend(copies.map(|copy| (run, copy)));
            if found.len() - before < all {
                break;
            }
        }
        found
    }

    fn moves(&self, step: u32) -> bool {
        let program = self.profile.steps[step as usize].program;
        let kind = &self.profile.programs.all[program as usize].kind;
        kind.is_exchange()
    }

    fn sets_of(&self, step: u32) -> &[(u32, Role)] {
        &self.sets[&self.profile.steps[step as usize].program]
    }

    fn nodes(&self) -> Vec<FlowNode> {
        let node = |run: &OpenNode| {
            let operations = run.steps.iter().map(|&(_, operation)| operation);
            FlowNode {
                first: run.steps[0].0,
                operations: ascending(operations.filter(|&operation| operation != NO_OPERATION)),
            }
        };
        self.all.iter().map(node).collect()
    }
}

/// Is a use set of parameters of the framework?
pub(super) fn is_weight(sets: &UseSets, labels: &[super::Label], set: u32) -> bool {
    labels[sets.label(set) as usize].kind == TensorKind::Variable
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
        let edges: Vec<Edge> = edges_of(&users, 0).map(|(edge, _)| edge).collect();
        assert_eq!(edges, [(0, [1, 2].into()), (1, [2].into())]);
    }
}
