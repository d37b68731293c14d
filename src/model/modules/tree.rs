//! Builds the module tree. A node is a series of consecutive operations of the forward pass whose
//! paths begin with the same modules. If names show no modules, a node is a series of operations
//! between two places in the program where little data flows.

use super::{
    evidence::RunSums,
    paths::{bare, is_number, shared},
};
use std::ops::Range;

/// A node of the module tree, which stands for one run of a module: consecutive operations of the
/// forward pass whose paths begin with the path of the module. A later run of the module is another
/// node.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// The operations of this node of the module tree, as indices into the forward pass.
    pub operations: Range<usize>,
    /// Number of components in the path of the node's module. The paths of all operations of the
    /// node begin with this path.
    pub depth: usize,
    /// The path component by which the node differs from its siblings, such as `3`. `None` for a
    /// node whose module path is that of its parent:
    /// - the root, which has no parent
    /// - one of several successive calls of the parent's module
    /// - an operation that the parent's module calls itself
    pub component: Option<Box<str>>,
    /// Whether the node is an operation that the parent itself calls beside its submodules, such as
    /// a residual addition.
    pub is_own: bool,
    /// The child nodes in program order, as indices into [`Tree::nodes`]. Together they contain all
    /// operations of the node. A node has no children or at least two.
    pub children: Vec<usize>,
}

impl Node {
    pub fn new(operations: Range<usize>) -> Self {
        Self {
            operations,
            ..Self::default()
        }
    }
}

/// All nodes of the module tree. Parents come before their children, and the first node is the
/// root.
#[derive(Debug, Default)]
pub struct Tree {
    pub nodes: Vec<Node>,
    /// One entry per operation of the forward pass: its module path, divided into components.
    pub paths: Vec<Vec<Box<str>>>,
}

impl Tree {
    pub fn new(paths: Vec<Vec<Box<str>>>) -> Self {
        let mut tree = Self {
            nodes: Vec::new(),
            paths,
        };
        tree.add(Node::new(0..tree.paths.len()), 0);
        tree
    }

    /// Adds a node and all nodes below it to the tree, and returns the index of the added node. The
    /// paths of the node's operations agree in their first `depth` components.
    fn add(&mut self, mut node: Node, mut depth: usize) -> usize {
        // One node stands for a module and its only submodule, and has the path of the outer
        // module. If the outer module is a list, which is never called, the node has the path of
        // the submodule.
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
        if runs.iter().any(|run| !run.is_own) {
            let period = self.period(&runs);
            self.nodes[number].children = if period < runs.len() {
                runs.chunks(period)
                    .map(|runs| self.add_call(runs, depth))
                    .collect()
            } else {
                self.add_all(&runs, depth)
            };
        }
        number
    }

    fn add_all(&mut self, runs: &[Node], depth: usize) -> Vec<usize> {
        let add = |run: &Node| self.add(run.clone(), depth + usize::from(!run.is_own));
        runs.iter().map(add).collect()
    }

    /// Adds a node for one call of a module that is called several times in succession. The nodes
    /// `runs`, one for each submodule that runs in this call, become its children. The paths of all
    /// their operations agree in the first `depth` components. Returns the index of the added node.
    fn add_call(&mut self, runs: &[Node], depth: usize) -> usize {
        let number = self.nodes.len();
        self.nodes.push(Node {
            depth,
            ..Node::new(runs[0].operations.start..runs[runs.len() - 1].operations.end)
        });
        self.nodes[number].children = self.add_all(runs, depth);
        number
    }

    /// Divides operations into nodes: consecutive operations with the same path component at index
    /// `depth` form a node. An operation with a shorter path, such as an addition after all
    /// submodules, becomes a node without a component.
    fn runs(&self, operations: Range<usize>, depth: usize) -> Vec<Node> {
        let mut end = operations.start;
        let is_alike =
            |a: &Vec<Box<str>>, b: &Vec<Box<str>>| a.len() > depth && a.get(depth) == b.get(depth);
        self.paths[operations]
            .chunk_by(is_alike)
            .map(|run| {
                end += run.len();
                let component = run[0].get(depth).cloned();
                Node {
                    is_own: component.is_none(),
                    component,
                    ..Node::new(end - run.len()..end)
                }
            })
            .collect()
    }

    /// Returns how many consecutive runs of submodules (`runs`) belong to one call of the module
    /// around them. If the submodules repeat in the same order, as in `a b a b`, that module is
    /// called several times in succession, and each call has the shortest sequence of at least two
    /// runs that repeats. The result is its length: 2 in the example. Otherwise, all `runs` belong
    /// to one call.
    fn period(&self, runs: &[Node]) -> usize {
        // Returns the path components that all operations in this run of a submodule share.
        let shared_path = |run: &Node| {
            let first = &self.paths[run.operations.start];
            let depth = self.paths[run.operations.clone()]
                .iter()
                .map(|path| shared(first, path))
                .min();
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

    /// Returns the operations of a node of the module tree, as a range of indices into the forward
    /// pass.
    pub fn operations(&self, node: usize) -> &Range<usize> {
        &self.nodes[node].operations
    }

    /// Iterates over the child nodes of a node of the module tree, in program order, without
    /// operations that the node's module calls itself.
    pub fn submodules(&self, node: usize) -> impl DoubleEndedIterator<Item = usize> {
        let children = self.nodes[node].children.iter().copied();
        children.filter(|&child| !self.nodes[child].is_own)
    }

    pub fn path(&self, node: usize) -> &[Box<str>] {
        let Node {
            operations, depth, ..
        } = &self.nodes[node];
        self.paths[operations.clone()]
            .iter()
            .find_map(|path| path.get(..*depth))
            .unwrap_or_default()
    }
}

/// Builds a tree for a program whose names show no modules, by dividing the program in two
/// repeatedly, down to single operations. A node is divided somewhere in the middle half of its
/// bytes, if possible where at most one tensor is passed on, and of such places where the fewest
/// bytes are. `crossing` and `tensors` have the bytes and the number of tensors that are passed on
/// before each operation ([`Evidence::crossing`](super::evidence::Evidence::crossing)).
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
            // A node of the tree is divided before the operation `cut`, which begins in the middle
            // half of the node's bytes. Of several such operations, those before which at most one
            // tensor is passed on come first, and then those before which the fewest bytes are. If
            // there is none, both parts get bytes as equal as possible.
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
