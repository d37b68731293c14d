//! Finds the pass of each operation: forward, backward or update (docs/model.md, "Passes").
//! Contexts say which operations of the main graph are backward; the first step of the first of
//! them starts the backward pass. All other operations are forward or backward by their steps,
//! since contexts inside the body of a function do not distinguish its calls. If no name marks
//! updates of weights, the variables that operations use show which are updates.

use super::code::OperationGroup;
use super::operations::{NUMBER_BYTES, Operation, Pass};
use super::recording::Label;
use super::{UseSets, VariableGroups};
use crate::limits;
use crate::profile::LiveClasses;

/// Sets the pass of each operation. Returns the first step of the backward pass; `None` for
/// inference, where no operation changes: all are in the forward pass from the start.
pub(super) fn find(operations: &mut [Operation]) -> Option<u32> {
    let of_main_graph = operations.iter().filter(|operation| !operation.is_nested);
    let backward = of_main_graph.filter(|operation| operation.is_backward);
    let first_steps = backward.filter_map(|operation| Some(operation.window?.0));
    let backward_start = first_steps.min()?;
    for operation in operations {
        operation.pass = pass(operation, backward_start);
    }
    Some(backward_start)
}

fn pass(operation: &Operation, backward_start: u32) -> Pass {
    match operation.window {
        _ if operation.is_update => Pass::Update,
        Some((first, _)) if first >= backward_start => Pass::Backward,
        Some((_, last)) if last < backward_start => Pass::Forward,
        Some(_) => Pass::Both,
        None if operation.is_backward => Pass::Backward,
        None => Pass::Forward,
    }
}

/// Sets `is_update` and the pass of operations that update weights, unless names already mark some
/// as updates. Here, a parameter is a variable that is live on the first and on the last step. An
/// update meets four conditions; the last two allow exceptions of less than one number for each
/// tile:
/// - It begins in the backward pass and uses a parameter that is not an accumulator.
/// - It also uses an accumulator, or a variable that is not a parameter and that another operation
///   group uses too.
/// - It uses no result of the forward pass except parameters.
/// - Only parameters among the variables that it uses are live after its last step.
pub(super) fn mark_updates(
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

/// Properties of the variables that one operation group of the backward pass uses. A parameter is a
/// variable that is live on the first and on the last step.
#[derive(Debug, Clone, Copy, Default)]
struct Uses {
    /// Whether the group uses a parameter (a variable that is live on the first and on the last
    /// step) that is not an accumulator.
    has_parameter: bool,
    /// Whether the group uses an accumulator, or a variable that is not a parameter and that
    /// another group uses too.
    has_other: bool,
    /// Bytes, over all tiles, of variables that are not parameters and are live after the last step
    /// of the group.
    outliving: u64,
    /// Bytes, over all tiles, of variables that are not parameters and are live across the start of
    /// the backward pass. Only gradients are computed from these variables.
    from_forward: u64,
}

impl Uses {
    /// Returns the properties of each group. All are zero or false for groups that begin before the
    /// backward pass, run no vertices, or copy from or to the host; and for all groups if the file
    /// is too large to look at.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{self, fixture};

    #[test]
    fn steps_tell_the_pass_where_no_update_is_named() {
        let operation = |window| Operation {
            window,
            ..testing::operation(0, "", "")
        };
        let update = Operation {
            is_update: true,
            ..operation(Some((7, 7)))
        };
        let backward = Operation {
            is_backward: true,
            ..operation(None)
        };
        let at = |from, to| pass(&operation(Some((from, to))), 5);
        assert_eq!(at(0, 4), Pass::Forward);
        assert_eq!(at(5, 5), Pass::Backward);
        assert_eq!(at(4, 5), Pass::Both);
        assert_eq!(pass(&operation(None), 5), Pass::Forward);
        assert_eq!(pass(&backward, 5), Pass::Backward);
        assert_eq!(pass(&update, 5), Pass::Update);
    }

    #[test]
    fn inference_has_no_backward_pass_and_training_has_all_passes() {
        let inference = fixture("popart-bert-inference");
        assert_eq!(inference.backward_start, None);
        let mut operations = inference.operations.iter();
        assert!(operations.all(|operation| operation.pass == Pass::Forward));
        for name in ["poptorch-bert-training", "tensorflow-cnn"] {
            let training = fixture(name);
            let backward_start = training.backward_start.expect(name);
            assert!(
                backward_start > 0 && backward_start < training.steps(),
                "{name}"
            );
            for pass in [Pass::Forward, Pass::Backward, Pass::Update] {
                let mut operations = training.operations.iter();
                assert!(
                    operations.any(|operation| operation.pass == pass),
                    "{name}: {pass}"
                );
            }
            let mut named = training
                .operations
                .iter()
                .filter(|operation| operation.is_backward);
            let is_after = |operation: &Operation| operation.pass == Pass::Backward;
            assert!(named.all(is_after), "{name}");
        }
    }
}
