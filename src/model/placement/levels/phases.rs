//! Which way levels run at each step: up, down, or neither.

use super::{Level, Levels, Phase};
use crate::model::FlowNode;
use std::cmp::Reverse;

impl Levels<'_> {
    pub(super) fn find_phases(&mut self) {
        let flow_nodes = &self.model.flow.nodes;
        let by_context = self.model.backward_start;
        let backward_start = by_context
            .or_else(|| self.turn_of_edges())
            .unwrap_or(u32::MAX);
        let phase = |(number, node): (usize, &FlowNode)| {
            let mut operations = node.operations.iter();
            let is_backward =
                operations.any(|&operation| self.model.operations[operation as usize].is_backward);
            match node.first {
                first if first < backward_start => Phase::Forward,
                _ if by_context.is_none() && self.ends_in_parameters(number) => Phase::Late,
                _ if by_context.is_none() || is_backward => Phase::Backward,
                _ => Phase::Late,
            }
        };
        self.phases = flow_nodes.iter().enumerate().map(phase).collect();
    }

    /// Does a node use parameters, and does nothing else outlive it? Then it is an update.
    fn ends_in_parameters(&self, node: usize) -> bool {
        !self.parameters[node].is_empty() && self.outgoing(node).is_empty()
    }

    /// The step at which data begins to flow down, by the edges between layers: before
    /// it most lead up, and after it most lead down.
    fn turn_of_edges(&self) -> Option<u32> {
        let nodes = &self.model.flow.nodes;
        let mut reached = self.seeds.clone();
        let mut turns: Vec<(u32, i64)> = Vec::new();
        for node in 0..nodes.len() {
            // In the forward pass nothing comes from above; after it, beside what does, there
            // is what the forward pass kept, and gradients of heads between layers.
            let from = self.producers(node).filter_map(|from| reached[from]).max();
            let Some(level) = self.seeds[node] else {
                reached[node] = from;
                continue;
            };
            let Some(from) = from else { continue };
            let way = i64::from(from > level) - i64::from(from < level);
            turns.push((nodes[node].first, way));
        }
        // All that leads down after a step, less what leads up there.
        let mut downs = 0;
        let mut best = (0, None);
        for (step, way) in turns.into_iter().rev() {
            downs += way;
            if downs > best.0 {
                best = (downs, Some(step));
            }
        }
        Some(self.end_of_forward(best.1?))
    }

    /// The first step of the backward pass of the layer that runs last, when data begins
    /// to flow down to other layers at `turn`: Out runs where most nodes without a layer
    /// come between two of that layer.
    fn end_of_forward(&self, turn: u32) -> u32 {
        let nodes = &self.model.flow.nodes;
        let end = nodes.partition_point(|node| node.first < turn);
        let layered = (0..end).filter_map(|node| Some((node, self.seeds[node]?)));
        let top = layered.clone().map(|(_, level)| level).max();
        let layered: Vec<(usize, Level)> = layered.chain(top.map(|top| (end, top))).collect();
        let between = |pair: &[(usize, Level)]| {
            let is_top = pair.iter().all(|&(_, level)| Some(level) == top);
            let nodes = pair[0].0..pair[1].0;
            let is_open = |&node: &usize| self.seeds[node].is_none() && !self.is_outside[node];
            (nodes.filter(is_open).filter(|_| is_top).count(), pair[1].0)
        };
        let most = layered
            .windows(2)
            .map(between)
            .rev()
            .max_by_key(|most| most.0);
        match most {
            Some((1.., next)) if next < end => nodes[next].first,
            _ => turn,
        }
    }

    /// The first step of the highest layer before the start of the backward pass.
    pub(super) fn first_of_last_layer(&self) -> u32 {
        let level = |node: usize| Some((self.seeds[node]?, Reverse(node)));
        let forward = (0..self.seeds.len()).filter(|&node| self.phases[node] == Phase::Forward);
        let last = forward.filter_map(level).max();
        last.map_or(0, |(_, Reverse(node))| self.model.flow.nodes[node].first)
    }
}
