//! Gradients that end where they are added to accumulators (docs/model.md, "Accumulators and
//! updates").

use super::{Flow, Life};
use crate::model::Model;

/// Variables that the backward pass makes for operations after it, such as an update or a norm.
#[derive(Debug, Default)]
pub(super) struct Summed {
    /// By use set: does an operation after both passes compute with it?
    is_used_after: Vec<bool>,
    /// The first step after both passes.
    end: u32,
}

impl Summed {
    /// Finds them for a model that gets accumulators which it was not recorded with.
    pub(super) fn new(model: &Model, end: u32) -> Self {
        let mut is_after = vec![false; model.operation_groups.len()];
        for operation in &model.operations {
            let begins_after = operation.window.is_some_and(|(first, _)| first >= end);
            is_after[operation.group as usize] |= begins_after;
        }
        let users =
            model.users_by_set(|group| is_after[group] && model.operation_groups[group].computes());
        Self {
            is_used_after: users.into_iter().map(|users| users > 0).collect(),
            end,
        }
    }

    /// The step before which variables of a use set end that the profile has live on `ranges`;
    /// `None` if no accumulator takes their values.
    pub(super) fn until(&self, flow: &Flow, set: u32, ranges: &[(u32, u32)]) -> Option<u32> {
        let is_gradient = flow.life == Life::Backward;
        let is_gradient = is_gradient && self.is_used_after.get(set as usize) == Some(&true);
        let (&(begin, _), &(_, last)) = ranges.first().zip(ranges.last())?;
        (is_gradient && begin < self.end && self.end < last).then_some(self.end)
    }
}
