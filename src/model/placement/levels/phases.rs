//! Finds the pass in which each node of the data flow (steps of one operation) runs. For a node of
//! the backward pass, also finds the operations of the forward pass whose gradient it may compute,
//! by the sizes of tensors.

use super::{ForwardSizes, Level, Levels, Phase};

impl Levels<'_> {
    /// Returns the phase of each node of the data flow: forward, backward, or late (updates and
    /// recomputation).
    pub(super) fn phases(&self) -> Vec<Phase> {
        let by_context = self.model.backward_start;
        let backward_start = by_context.or_else(|| self.turn_of_edges());
        self.model
            .flow
            .nodes
            .iter()
            .enumerate()
            .map(|(number, node)| {
                let is_backward = match by_context {
                    Some(_) => node
                        .operations
                        .iter()
                        .any(|&own| self.model.operations[own as usize].is_backward),
                    None => !self.outgoing(number).is_empty(),
                };
                if backward_start.is_none_or(|start| node.first < start) {
                    Phase::Forward
                } else if is_backward {
                    Phase::Backward
                } else {
                    Phase::Late
                }
            })
            .collect()
    }

    /// Finds the liveness step at which the backward pass starts, for models whose debug contexts
    /// do not mark it. Before this step, most data flows up from In over the layers to Out; from
    /// this step on, most flows down from Out to In. Returns `None` if there is no such step.
    fn turn_of_edges(&self) -> Option<u32> {
        let mut reached: Vec<Option<Level>> = Vec::new();
        let mut turns: Vec<(usize, i64)> = Vec::new();
        for (node, &level) in self.seeds.iter().enumerate() {
            // `from` is the highest level (In, layers, Out) from which data flows to the node. If
            // it is above the node's own level, the node is in the backward pass. Lower levels do
            // not show the pass: nodes of the backward pass get data from them too, as stashed
            // variables of the forward pass or gradients of heads (further outputs of the model)
            // between layers.
            let from = self.producers(node).filter_map(|from| reached[from]).max();
            reached.push(level.or(from));
            if let (Some(level), Some(from)) = (level, from) {
                turns.push((node, i64::from(from > level) - i64::from(from < level)));
            }
        }
        // The flow of data turns from up to down at the node for which `downs` is the largest. To
        // compute `downs`, the nodes from the last one back to this one are counted: +1 for a node
        // that gets data from a higher level (In, layers, Out), as in the backward pass, and -1 for
        // a node that gets data only from lower levels.
        let mut downs = 0;
        let downs = turns.into_iter().rev().map(|(node, way)| {
            downs += way;
            (downs, node)
        });
        let (_, turn) = downs.max().filter(|&(downs, _)| downs > 0)?;
        Some(self.model.flow.nodes[self.end_of_forward(turn)].first)
    }

    /// Returns the node (steps of one operation) at which the backward pass of the last layer
    /// begins. `turn` is the first node that gets data from a higher layer. Before it, the last
    /// layer runs twice, forward and backward, with Out (the operations after the last layer) in
    /// between. So Out is taken to be the longest gap between two nodes of the last layer.
    fn end_of_forward(&self, turn: usize) -> usize {
        let layered: Vec<usize> = (0..turn)
            .filter(|&node| self.seeds[node].is_some())
            .collect();
        let top = layered.iter().map(|&node| self.seeds[node]).max();
        layered
            .windows(2)
            .filter(|pair| pair.iter().all(|&node| Some(self.seeds[node]) == top))
            .map(|pair| (pair[1] - pair[0], pair[1]))
            .max()
            .map_or(turn, |(_, next)| next)
    }

    pub fn forward_sizes(&self) -> ForwardSizes {
        (0..self.found.len())
            .filter(|&node| self.is_forward(node))
            .filter_map(|node| {
                let used = self.inputs(node).map(|edge| edge.bytes).max()?;
                Some((self.found[node].level()?, used, self.largest_made(node)?))
            })
            .collect()
    }

    /// Returns whether `node` of the data flow may be the gradient of a forward node at `level`
    /// (In, a layer or Out). A gradient has the sizes of its forward node in reverse: the largest
    /// tensor that `node` makes must be as large as the largest that the forward node uses, and a
    /// gradient that `node` uses must be as large as the largest tensor that the forward node
    /// makes.
    pub fn mirrors(&self, node: usize, level: Level) -> bool {
        self.largest_made(node).is_some_and(|made| {
            self.inputs(node)
                .filter(|edge| self.is_made_later(edge))
                .any(|edge| self.forward_sizes.contains(&(level, made, edge.bytes)))
        })
    }

    fn largest_made(&self, node: usize) -> Option<u64> {
        self.outgoing(node).iter().map(|edge| edge.bytes).max()
    }
}
