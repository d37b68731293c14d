//! The module tree. A node is a sequence of consecutive operations of the forward pass whose paths
//! begin with the same modules. If names show no modules, a node is a sequence of operations
//! between two places in the program where little data flows.

use super::evidence::RunSums;
use super::paths::{bare, is_number, shared};
use std::ops::Range;

/// A node of the module tree, which stands for one run of a module: consecutive operations of the
/// forward pass whose paths begin with the path of the module. If the module runs again later, that
/// run is another node.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// The operations of the node, as a range of indices into the operations of the forward pass.
    pub operations: Range<usize>,
    /// Number of components of the module's path. The paths of all operations of the node begin
    /// with these components.
    pub depth: usize,
    /// The first component of the node's path after the path of its parent, which distinguishes the
    /// node from its siblings. `None` for the root, for a node that stands for one call of a
    /// repeated module, and for an operation that the parent itself calls.
    pub component: Option<Box<str>>,
    /// Whether the node is an operation that the parent itself calls beside its submodules, such as
    /// a residual addition.
    pub is_own: bool,
    /// The child nodes, as indices into [`Tree::nodes`], in program order. The children together
    /// contain all operations of the node. The list is empty or has at least two entries.
    pub children: Vec<usize>,
}

impl Node {
    /// Builds a node without children for `operations`, with an empty path.
    pub fn new(operations: Range<usize>) -> Self {
        Self {
            operations,
            ..Self::default()
        }
    }
}

/// All nodes of the module tree, parents before children; the first one is the root.
#[derive(Debug, Default)]
pub struct Tree {
    pub nodes: Vec<Node>,
    /// One entry per operation of the forward pass: the components of its path.
    pub paths: Vec<Vec<Box<str>>>,
}

impl Tree {
    /// Builds the tree from `paths`, which has one entry per operation of the forward pass, in
    /// program order: the components of the operation's path.
    pub fn new(paths: Vec<Vec<Box<str>>>) -> Self {
        let mut tree = Self {
            nodes: Vec::new(),
            paths,
        };
        tree.add(Node::new(0..tree.paths.len()), 0);
        tree
    }

    /// Adds `node` and all nodes below it to the tree, and returns the index of the added node. The
    /// first `depth` components of the paths of all operations of `node` are equal.
    fn add(&mut self, mut node: Node, mut depth: usize) -> usize {
        // A module with only one submodule is merged with it into one node, which has the path of
        // the outer module. But if the outer "module" is a list of modules, which is never called,
        // the node has the path of the only item of the list.
        node.depth = depth;
        let runs = loop {
            let runs = self.runs(node.operations.clone(), depth);
            match runs.as_slice() {
                [
                    Node {
                        component: Some(next),
                        ..
                    },
                ] => {
                    let is_inside_name = !next.starts_with(['/', '.']) || is_number(bare(next));
                    if node.depth == depth && (depth == 0 || is_inside_name) {
                        node.depth += 1;
                    }
                    depth += 1;
                }
                _ => break runs,
            }
        };
        let number = self.nodes.len();
        self.nodes.push(node);
        if runs.iter().any(|run| run.component.is_some()) {
            let period = self.period(&runs);
            self.nodes[number].children = if period < runs.len() {
                let calls = runs.chunks(period);
                calls.map(|runs| self.add_call(runs, depth)).collect()
            } else {
                self.add_all(&runs, depth)
            };
        }
        number
    }

    fn add_all(&mut self, runs: &[Node], depth: usize) -> Vec<usize> {
        runs.iter()
            .map(|run| {
                if run.component.is_some() {
                    return self.add(run.clone(), depth + 1);
                }
                self.nodes.push(Node {
                    depth,
                    is_own: true,
                    ..run.clone()
                });
                self.nodes.len() - 1
            })
            .collect()
    }

    /// Adds a node for one call of a module that is called several times in succession, and a child
    /// node for each entry of `runs`. The first `depth` components of the paths of all `runs` are
    /// equal. Returns the index of the added node.
    fn add_call(&mut self, runs: &[Node], depth: usize) -> usize {
        let number = self.nodes.len();
        self.nodes.push(Node {
            depth,
            ..Node::new(runs[0].operations.start..runs[runs.len() - 1].operations.end)
        });
        self.nodes[number].children = self.add_all(runs, depth);
        number
    }

    /// Divides `operations` into nodes where the component at index `depth` of their paths changes.
    /// The depth and the children of these nodes are not set yet. An operation with a shorter path,
    /// such as an addition after all submodules, becomes a node without a component.
    fn runs(&self, operations: Range<usize>, depth: usize) -> Vec<Node> {
        let mut runs: Vec<Node> = Vec::new();
        for operation in operations {
            let component = self.paths[operation].get(depth);
            match runs.last_mut() {
                Some(run) if component.is_some() && run.component.as_ref() == component => {
                    run.operations.end = operation + 1;
                }
                _ => runs.push(Node {
                    component: component.cloned(),
                    ..Node::new(operation..operation + 1)
                }),
            }
        }
        runs
    }

    /// Returns the length (at least 2) of the shortest sequence of modules that `runs` repeats,
    /// such as the submodules of each call of a module. Returns the number of `runs` if no sequence
    /// is repeated.
    fn period(&self, runs: &[Node]) -> usize {
        // Returns the components with which the paths of all operations of `run` begin.
        let shared_path = |run: &Node| {
            let first = &self.paths[run.operations.start];
            let paths = self.paths[run.operations.clone()].iter();
            let depth = paths.map(|path| shared(first, path)).min();
            &first[..depth.unwrap_or(0)]
        };
        let modules: Vec<&[Box<str>]> = runs.iter().map(shared_path).collect();
        let mut borders = vec![0; runs.len()];
        for at in 1..runs.len() {
            let mut border: usize = borders[at - 1];
            while border > 0 && modules[at] != modules[border] {
                border = borders[border - 1];
            }
            borders[at] = border + usize::from(modules[at] == modules[border]);
        }
        let period = runs.len() - borders[runs.len() - 1];
        if period > 1 && 2 * period <= runs.len() {
            period
        } else {
            runs.len()
        }
    }

    /// Returns the path of the module that a node stands for, as its components.
    pub fn path(&self, node: usize) -> &[Box<str>] {
        let Node {
            operations, depth, ..
        } = &self.nodes[node];
        self.paths[operations.clone()]
            .iter()
            .find(|path| path.len() >= *depth)
            .map_or(&[], |path| &path[..*depth])
    }
}

/// Builds a tree that divides the program in two repeatedly, down to single operations. A node is
/// divided at the place within the middle half of its bytes where the least data flows; places
/// where only one tensor passes are preferred. For each operation of the forward pass, `crossing`
/// has the bytes, and `tensors` the number, of tensors that earlier operations make and that this
/// or later operations use ([`Evidence::crossing`](super::evidence::Evidence::crossing)).
pub fn by_flow(sums: &RunSums, crossing: &[i64], tensors: &[i64]) -> Tree {
    let operations = crossing.len() - 1;
    let mut tree = Tree {
        nodes: vec![Node::new(0..operations)],
        paths: vec![Vec::new(); operations],
    };
    let mut number = 0;
    while number < tree.nodes.len() {
        let run = tree.nodes[number].operations.clone();
        if run.len() > 1 {
            let all = sums.bytes(&run);
            let before = |at: usize| sums.bytes(&(run.start..at));
            let is_central = |&at: &usize| (all / 4..=all - all / 4).contains(&before(at));
            let places = run.start + 1..run.end;
            // If no operation is in the middle half, the cut is nearest to half of the bytes.
            let cut = places
                .clone()
                .filter(is_central)
                .min_by_key(|&at| (tensors[at] > 1, crossing[at]))
                .or_else(|| places.min_by_key(|&at| before(at).abs_diff(all / 2)))
                .unwrap_or(run.end - 1);
            let first = tree.nodes.len();
            tree.nodes.push(Node::new(run.start..cut));
            tree.nodes.push(Node::new(cut..run.end));
            tree.nodes[number].children = vec![first, first + 1];
        }
        number += 1;
    }
    tree
}
