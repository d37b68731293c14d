//! Finds the operations that update weights if no name says so.

use super::{Label, Operation, OperationGroup, Pass, UseSets, VariableGroups};
use crate::limits;
use crate::profile::LiveClasses;

/// A variable with fewer bytes on each tile is a number that several operations share, such as the
/// scale of all gradients.
pub(super) const NUMBER_BYTES: u64 = 16;

/// Marks the operations that update weights by what they do, if no operation has a name of an
/// update. After the start of the backward pass, they use a parameter; they also use an accumulator
/// or a variable that is no parameter and that another operation uses too; they use nothing that
/// the forward pass made; and only parameters outlive them, since otherwise their result would be
/// lost.
pub(super) fn mark(
    (groups, sets, labels): (&[OperationGroup], &UseSets, &[Label]),
    (variables, classes): (&VariableGroups, &LiveClasses),
    backward_start: u32,
    operations: &mut [Operation],
) {
    if operations.iter().any(|operation| operation.is_update) {
        return;
    }
    let named = (groups, sets, labels);
    let found = Uses::of_groups(named, (variables, classes), backward_start);
    let number = NUMBER_BYTES * u64::from(variables.tiles());
    for operation in operations {
        let uses = &found[operation.group as usize];
        let is_last = uses.outliving < number && uses.from_forward < number;
        if uses.has_parameter && uses.has_other && is_last {
            operation.is_update = true;
            operation.pass = Pass::Update;
        }
    }
}

/// The variables that an operation group uses after the start of the backward
/// pass.
#[derive(Debug, Clone, Copy, Default)]
struct Uses {
    has_parameter: bool,
    /// Does the group use an accumulator, or a variable that is no parameter and that others use
    /// too?
    has_other: bool,
    /// Bytes of variables that are no parameters and live on after its last step.
    outliving: u64,
    /// Bytes of variables that are no parameters and that the forward pass made: only gradients are
    /// computed from them.
    from_forward: u64,
}

impl Uses {
    /// By group; zero for groups that run before the backward pass or copy to the host.
    fn of_groups(
        (groups, sets, labels): (&[OperationGroup], &UseSets, &[Label]),
        (variables, classes): (&VariableGroups, &LiveClasses),
        backward_start: u32,
    ) -> Vec<Self> {
        let last_step = |group: &OperationGroup| {
            let (first, last) = group.window?;
            let may_be =
                first >= backward_start && group.computes() && group.host_copies.is_empty();
            may_be.then_some(last)
        };
        let last_steps: Vec<Option<u32>> = groups.iter().map(last_step).collect();
        let mut found = vec![Self::default(); groups.len()];
        let mut left = limits::ENTRIES;
        for variable_use in variables.uses() {
            let ranges = classes.ranges(variable_use.class);
            let Some(&(_, end)) = ranges.last() else {
                continue;
            };
            let is_over = |&(from, to): &(u32, u32)| from < backward_start && to > backward_start;
            let is_from_forward = ranges.iter().any(is_over);
            let is_parameter = classes.lasts(variable_use.class);
            let is_accumulator = labels[sets.label(variable_use.set) as usize].is_accumulator();
            let is_of_others = sets.groups(variable_use.set).nth(1).is_some();
            for group in sets.groups(variable_use.set) {
                // A file that was made to take long gets no updates.
                let Some(rest) = left.checked_sub(1) else {
                    return vec![Self::default(); groups.len()];
                };
                left = rest;
                let Some(last) = last_steps[group as usize] else {
                    continue;
                };
                let uses = &mut found[group as usize];
                uses.has_parameter |= is_parameter && !is_accumulator;
                uses.has_other |= is_accumulator || !is_parameter && is_of_others;
                let bytes = variable_use.bytes;
                if !is_parameter && end > last + 1 {
                    uses.outliving = uses.outliving.saturating_add(bytes);
                }
                if !is_parameter && is_from_forward {
                    uses.from_forward = uses.from_forward.saturating_add(bytes);
                }
            }
        }
        found
    }
}
