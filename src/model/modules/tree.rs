//! The module tree: a node is a run of operations of the forward pass whose paths begin with the
//! same modules. If names show no modules, a node is a run between places where little data flows.

use super::evidence::RunSums;
use std::ops::Range;

/// A node of the module tree: one run of a module, that is consecutive operations of the forward
/// pass whose paths begin with the path of the module. A module that runs again later is another
/// node.
#[derive(Debug)]
pub(super) struct Node {
    /// The operations of the node, as indices into the operations of the forward pass.
    pub(super) operations: Range<usize>,
    /// Number of components of the module's path: the first ones of its operations' paths.
    pub(super) depth: usize,
    /// The component by which the node differs from its siblings: the first one after the parent's
    /// path. `None` for the root, and for a node that stands for one call of a repeated module.
    pub(super) component: Option<Box<str>>,
    /// Indices of child nodes in [`Tree::nodes`], in the order of the program. Together they have
    /// all operations of the node. Either empty, or at least two.
    pub(super) children: Vec<usize>,
}

impl Node {
    /// Builds a node without children for `operations`, with an empty path.
    pub(super) fn new(operations: Range<usize>) -> Self {
        Self {
            operations,
            depth: 0,
            component: None,
            children: Vec::new(),
        }
    }
}

/// All nodes of the module tree, parents before children; the first one is the root.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    /// By operation of the forward pass: the components of its path.
    pub(super) paths: Vec<Vec<Box<str>>>,
}

/// The operations of a child to be added to the tree, and the component by which it differs from
/// its siblings; `None` if its operations have no further component.
struct ChildRun {
    operations: Range<usize>,
    component: Option<Box<str>>,
}

impl Tree {
    /// Builds the tree from the `paths` of the operations of the forward pass, in the order of the
    /// program, each as its components.
    pub(super) fn new(paths: Vec<Vec<Box<str>>>) -> Self {
        let mut tree = Self {
            nodes: Vec::new(),
            paths,
        };
        tree.add(0..tree.paths.len(), 0, None);
        tree
    }

    /// Adds the node of `operations`, whose paths share the first `depth` components, and all nodes
    /// below it. `component` is that by which the node differs from its siblings. Returns its
    /// index.
    fn add(
        &mut self,
        operations: Range<usize>,
        mut depth: usize,
        component: Option<Box<str>>,
    ) -> usize {
        // The path of the node ends where the path of one of its operations ends.
        let mut path_depth = None;
        let runs = loop {
            let runs = self.runs(operations.clone(), depth);
            // A module with only one submodule is merged with it.
            let [
                ChildRun {
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

    fn add_all(&mut self, runs: &[ChildRun], depth: usize) -> Vec<usize> {
        let child =
            |run: &ChildRun| self.add(run.operations.clone(), depth + 1, run.component.clone());
        runs.iter().map(child).collect()
    }

    /// Adds a node for one call of a module that is called several times in succession, and a child
    /// for each of `runs`, whose paths share the first `depth` components. Returns its index.
    fn add_call(&mut self, runs: &[ChildRun], depth: usize) -> usize {
        let number = self.nodes.len();
        self.nodes.push(Node {
            depth,
            ..Node::new(runs[0].operations.start..runs[runs.len() - 1].operations.end)
        });
        self.nodes[number].children = self.add_all(runs, depth);
        number
    }

    /// Divides `operations` where the component at index `depth` of their paths changes. An
    /// operation with a shorter path, such as an addition after all submodules, goes with the run
    /// before it.
    fn runs(&self, operations: Range<usize>, depth: usize) -> Vec<ChildRun> {
        let mut runs: Vec<ChildRun> = Vec::new();
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
                _ => runs.push(ChildRun {
                    operations: operation..operation + 1,
                    component: component.cloned(),
                }),
            }
        }
        runs
    }

    /// Returns the path of the module that a node stands for, as its components.
    pub(super) fn path(&self, node: usize) -> &[Box<str>] {
        let Node {
            operations, depth, ..
        } = &self.nodes[node];
        let mut paths = self.paths[operations.clone()].iter();
        let long = paths.find(|path| path.len() >= *depth);
        long.map_or(&[], |path| &path[..*depth])
    }
}

/// Returns the length, in runs and at least 2, of the shortest sequence of components that `runs`
/// repeat, such as the submodules of each call; the number of `runs` if they repeat none.
fn period(runs: &[ChildRun]) -> usize {
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

/// Builds a tree that divides the program in two repeatedly, down to single operations, each time
/// where the least data flows in the middle half of a node's bytes. `crossing` has, by operation of
/// the forward pass, the bytes that are passed on before it
/// ([`Evidence::crossing`](super::evidence::Evidence::crossing)).
pub(super) fn by_flow(sums: &RunSums, crossing: &[i64]) -> Tree {
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

/// Returns the operation before which to divide `run`, which has at least two: where the fewest
/// bytes are passed on (`crossing`), among operations with a quarter to three quarters of the run's
/// bytes before them; the first of several. If there are none, the operation with closest to half
/// of the bytes before it.
fn cut(sums: &RunSums, crossing: &[i64], run: &Range<usize>) -> usize {
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
