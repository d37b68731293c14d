//! Finds the levels of gradient operations without names by the sizes of tensors.

use super::{ForwardSizes, Level, Levels, Phase};

impl Levels<'_> {
    /// Collects the sizes of tensors of all nodes of the forward pass that have a level.
    pub(super) fn forward_sizes(&self) -> ForwardSizes {
        let size = |node: usize| {
            let level = self.found[node].level()?;
            let is_forward = self.phases[node] == Phase::Forward;
            let used = self.inputs(node).map(|edge| edge.bytes).max()?;
            let made = self.largest_made(node)?;
            is_forward.then_some((level, used, made))
        };
        (0..self.found.len()).filter_map(size).collect()
    }

    /// Returns whether `node` can be the gradient of a node of the forward pass at `level`: it
    /// makes a tensor of the size that the forward node uses, from a gradient of the size that the
    /// forward node makes.
    pub(super) fn mirrors(&self, node: usize, level: Level) -> bool {
        let Some(made) = self.largest_made(node) else {
            return false;
        };
        let is_gradient = |from: u32| {
            let phase = self.phases.get(from as usize);
            phase.is_some_and(|&phase| phase != Phase::Forward)
        };
        let mut gradients = self.inputs(node).filter(|edge| is_gradient(edge.from));
        gradients.any(|edge| self.forward_sizes.contains(&(level, made, edge.bytes)))
    }

    fn largest_made(&self, node: usize) -> Option<u64> {
        self.outgoing(node).iter().map(|edge| edge.bytes).max()
    }
}
