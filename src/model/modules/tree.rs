//! The module tree: runs of forward operations whose paths begin alike or, where names show no
//! modules, between which little data flows.

use super::evidence::Sums;
use std::ops::Range;

/// A module while it runs: consecutive operations of the forward pass whose paths begin alike. A
/// module that runs again later is another node.
#[derive(Debug)]
pub(super) struct Node {
    /// Operations of the node, as positions in the forward pass.
    pub(super) operations: Range<usize>,
    /// Number of components that the paths of all its operations share.
    pub(super) depth: usize,
    /// The first component below the path of its parent, by which siblings are compared; `None` for
    /// a node that belongs to no component of a path, as the root.
    pub(super) component: Option<Box<str>>,
    /// Child nodes, as positions in [`Tree::nodes`], in the order of the program; together they
    /// have all its operations. Either empty, or at least two.
    pub(super) children: Vec<usize>,
}

impl Node {
    /// A run of operations without parts, whose paths share nothing.
    pub(super) fn new(operations: Range<usize>) -> Self {
        Self {
            operations,
            depth: 0,
            component: None,
            children: Vec::new(),
        }
    }
}

/// All nodes; the first one is the root.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    /// By operation: the components of its path.
    pub(super) paths: Vec<Vec<Box<str>>>,
}

/// A child in the making: its operations, and the component that they share.
struct Run {
    operations: Range<usize>,
    component: Option<Box<str>>,
}

impl Tree {
    /// The tree of operations with these paths, in the order of the program.
    pub(super) fn new(paths: Vec<Vec<Box<str>>>) -> Self {
        let mut tree = Self {
            nodes: Vec::new(),
            paths,
        };
        tree.add(0..tree.paths.len(), 0, None);
        tree
    }

    /// Adds the node of these operations, whose paths share `depth` components, and all nodes
    /// below.
    fn add(
        &mut self,
        operations: Range<usize>,
        mut depth: usize,
        component: Option<Box<str>>,
    ) -> usize {
        // The node's path ends where an operation belongs to the module itself.
        let mut path_depth = None;
        let runs = loop {
            let runs = self.runs(operations.clone(), depth);
            // A module with one part is merged with that part.
            let [
                Run {
                    component: Some(_), ..
                },
            ] = runs.as_slice()
            else {
                break runs;
            };
            let mut paths = self.paths[operations.clone()].iter();
            if path_depth.is_none() && paths.any(|path| path.len() <= depth) {
                path_depth = Some(depth);
            }
            depth += 1;
        };
        let number = self.nodes.len();
        self.nodes.push(Node {
            depth: path_depth.unwrap_or(depth),
            component,
            ..Node::new(operations)
        });
        if runs.len() > 1 {
            let period = period(&runs);
            self.nodes[number].children = if period < runs.len() {
                let calls = runs.chunks(period);
                calls.map(|runs| self.add_call(runs, depth)).collect()
            } else {
                self.add_all(&runs, depth)
            };
        }
        number
    }

    fn add_all(&mut self, runs: &[Run], depth: usize) -> Vec<usize> {
        let child = |run: &Run| self.add(run.operations.clone(), depth + 1, run.component.clone());
        runs.iter().map(child).collect()
    }

    /// Adds one call of a module that runs several times in succession.
    fn add_call(&mut self, runs: &[Run], depth: usize) -> usize {
        let number = self.nodes.len();
        self.nodes.push(Node {
            depth,
            ..Node::new(runs[0].operations.start..runs[runs.len() - 1].operations.end)
        });
        self.nodes[number].children = self.add_all(runs, depth);
        number
    }

    /// Splits operations where the component at `depth` of their paths changes. An operation whose
    /// path ends before, such as an addition after all parts of a module, goes with the part before
    /// it.
    fn runs(&self, operations: Range<usize>, depth: usize) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for operation in operations {
            let component = self.paths[operation].get(depth);
            match runs.last_mut() {
                Some(run) if component.is_none() || run.component.as_ref() == component => {
                    run.operations.end = operation + 1;
                }
                Some(run) if run.component.is_none() => {
                    run.operations.end = operation + 1;
                    run.component = component.cloned();
                }
                _ => runs.push(Run {
                    operations: operation..operation + 1,
                    component: component.cloned(),
                }),
            }
        }
        runs
    }

    /// The path of a node, as components.
    pub(super) fn path(&self, node: usize) -> &[Box<str>] {
        let Node {
            operations, depth, ..
        } = &self.nodes[node];
        let mut paths = self.paths[operations.clone()].iter();
        let long = paths.find(|path| path.len() >= *depth);
        long.map_or(&[], |path| &path[..*depth])
    }
}

/// Length of the sequence of parts that a module repeats at least twice; the number of all parts if
/// it repeats none. Computed from the longest border of each prefix.
fn period(runs: &[Run]) -> usize {
    let mut borders = vec![0; runs.len()];
    for at in 1..runs.len() {
        let mut border: usize = borders[at - 1];
        while border > 0 && runs[at].component != runs[border].component {
            border = borders[border - 1];
        }
        borders[at] = border + usize::from(runs[at].component == runs[border].component);
    }
    let period = runs.len() - borders[runs.len() - 1];
    if period > 1 && 2 * period <= runs.len() {
        period
    } else {
        runs.len()
    }
}

/// A tree whose nodes are cut in two where least data flows, not far from half of their bytes.
/// `crossing` has the bytes that are passed on before each operation, as in
/// [`Evidence::crossing`](super::evidence::Evidence::crossing).
pub(super) fn by_flow(sums: &Sums, crossing: &[i64]) -> Tree {
    let operations = crossing.len() - 1;
    let mut tree = Tree {
        nodes: vec![Node::new(0..operations)],
        paths: vec![Vec::new(); operations],
    };
    let mut number = 0;
    while number < tree.nodes.len() {
        let run = tree.nodes[number].operations.clone();
        if run.len() > 1 {
            let cut = cut(sums, crossing, &run);
            let first = tree.nodes.len();
            tree.nodes.push(Node::new(run.start..cut));
            tree.nodes.push(Node::new(cut..run.end));
            tree.nodes[number].children = vec![first, first + 1];
        }
        number += 1;
    }
    tree
}

/// Where to cut a run of two operations or more: within the middle half of its bytes, where the
/// fewest bytes are passed on; the earliest of several such places.
fn cut(sums: &Sums, crossing: &[i64], run: &Range<usize>) -> usize {
    let all = sums.bytes(run);
    let is_central = |&at: &usize| {
        let before = sums.bytes(&(run.start..at));
        before >= all / 4 && before <= all - all / 4
    };
    let places = run.start + 1..run.end;
    let central = places
        .clone()
        .filter(is_central)
        .min_by_key(|&at| crossing[at]);
    let nearest = |&at: &usize| sums.bytes(&(run.start..at)).abs_diff(all / 2);
    central
        .or_else(|| places.min_by_key(nearest))
        .unwrap_or(run.end - 1)
}
