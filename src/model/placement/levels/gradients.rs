//! Levels of gradients without names, by the sizes of tensors.

use super::{Level, Levels, Phase};
use rustc_hash::FxHashSet;

/// The largest tensors that nodes of the forward pass use and make, in bytes over all tiles, with
/// the level of each node.
#[derive(Debug, Default)]
pub(super) struct ForwardSizes(FxHashSet<(Level, u64, u64)>);

impl Levels<'_> {
    /// The sizes of all nodes of the forward pass that are placed.
    pub(super) fn forward_sizes(&self) -> ForwardSizes {
        let size = |node: usize| {
            let level = self.found[node].level()?;
            let is_forward = self.phases[node] == Phase::Forward;
            let used = self.inputs(node).map(|edge| edge.bytes).max()?;
            let made = self.largest_made(node)?;
            is_forward.then_some((level, used, made))
        };
        ForwardSizes((0..self.found.len()).filter_map(size).collect())
    }

    /// May a node be the gradient of a node of the forward pass at this level? A gradient makes a
    /// tensor of the size that its forward node uses, from a gradient of the size that this node
    /// makes.
    pub(super) fn mirrors(&self, node: usize, level: Level) -> bool {
        let Some(made) = self.largest_made(node) else {
            return false;
        };
        let is_gradient = |from: u32| {
            let phase = self.phases.get(from as usize);
            phase.is_some_and(|&phase| phase != Phase::Forward)
        };
        let mut gradients = self.inputs(node).filter(|edge| is_gradient(edge.from));
        gradients.any(|edge| self.forward_sizes.0.contains(&(level, made, edge.bytes)))
    }

    fn largest_made(&self, node: usize) -> Option<u64> {
        self.outgoing(node).iter().map(|edge| edge.bytes).max()
    }
}
