//! Finds the pass of each operation: forward, backward or update (docs/model.md, "Passes"). The
//! backward pass starts at the first step of the first operation that debug contexts mark as
//! backward. If none is marked, the order in which modules run gives the start. Unmarked operations
//! are forward or backward by their steps. This also holds for operations in functions that are
//! called several times, since debug contexts do not distinguish the calls. If no name marks
//! updates of weights, the variables that operations use show the updates.

mod module_order;

use super::{
    Model, Operation, Pass, VariableUse, counts,
    names::{unwrapped, update_scope},
};
use crate::{limits, witnesses::Contradiction};
use rustc_hash::FxHashSet;

/// Sets the pass of each operation, and returns the first step of the backward pass. Inference has
/// no backward pass: `None` is returned and all operations are in the forward pass.
pub fn find(operations: &mut [Operation]) -> Option<u32> {
    let calls = counts(operations.iter().map(|operation| operation.group));
    // An operation in a function that is called several times runs at several places in the
    // program, so it does not show where the backward pass starts.
    let single: Vec<&Operation> = operations
        .iter()
        .filter(|own| !own.is_nested || calls[&own.group] == 1)
        .collect();
    let marked = single
        .iter()
        .filter(|operation| operation.is_backward)
        .filter_map(|operation| Some(operation.window?.0))
        .min();
    let by_order = match marked {
        Some(_) => None,
        None => module_order::backward_steps(&single),
    };
    let backward_start = marked.or(by_order.as_ref().map(|steps| *steps.start()));
    unmark_updates(operations, backward_start.unwrap_or(u32::MAX));
    if let Some(steps) = by_order {
        for operation in operations.iter_mut() {
            let is_inside = operation
                .window
                .is_some_and(|(first, _)| steps.contains(&first));
            operation.is_backward = is_inside && operation.is_named() && !operation.is_update;
        }
    }
    let backward_start = backward_start?;
    for operation in operations {
        operation.pass = pass(operation, backward_start);
    }
    Some(backward_start)
}

/// Sets `is_update` to false for operations in a scope, such as `update_block`, that also runs
/// before the backward pass. No weight is updated before the backward pass, so the scope is a
/// module whose name only looks like that of an update.
fn unmark_updates(operations: &mut [Operation], backward_start: u32) {
    let scope =
        |operation: &Operation| update_scope(&unwrapped(&operation.name)).map(str::to_owned);
    let ends_before = |(_, last): (u32, u32)| last < backward_start;
    let forward: FxHashSet<String> = operations
        .iter()
        .filter(|operation| operation.is_update && operation.window.is_some_and(ends_before))
        .filter_map(scope)
        .collect();
    for operation in operations.iter_mut().filter(|own| own.is_update) {
        operation.is_update = scope(operation).is_none_or(|scope| !forward.contains(&scope));
    }
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

/// Marks operations that update weights and sets their pass, unless names already mark some
/// operations as updates. An update meets four conditions:
/// - The operation begins in the backward pass and uses a parameter that is not an accumulator.
/// - It also uses an accumulator, or a variable that is not a parameter and that another operation
///   group uses too.
/// - It uses no result of the forward pass except parameters.
/// - Of the variables that the operation uses, only parameters are live after its last step.
///
/// The last two conditions ignore results and variables with few bytes (`Model::min_tensor_bytes`),
/// such as the scale of all gradients, unless the operation is marked as backward.
pub fn mark_updates(model: &mut Model, backward_start: u32) {
    if model.operations.iter().any(|operation| operation.is_update) {
        return;
    }
    let needed = needed_tolerance(model, backward_start);
    let number = model.min_tensor_bytes();
    for operation in &mut model.operations {
        // Apart from parameters, an update of weights uses fewer than `tolerated` bytes that are
        // live after its last step, and fewer than `tolerated` bytes from the forward pass. So it
        // may use a single number, such as a scale of all gradients. In an operation marked as
        // backward, even a single number may be a gradient, so there `tolerated` is 1.
        let tolerated = if operation.is_backward { 1 } else { number };
        if needed[operation.group as usize] < tolerated {
            operation.is_update = true;
            operation.is_backward = false;
            operation.pass = Pass::Update;
        }
    }
}

/// Checks that a model without a backward pass is not a training step whose backward pass was
/// missed. Returns a contradiction in the input files if the model updates most bytes of the
/// parameters that it reads, since only training does so.
///
/// An operation is taken as an update under four conditions:
/// - It uses a parameter, and also an accumulator or another variable that may be a gradient
///   ([`needed_tolerance`]).
/// - Its only results are parameters.
/// - It begins at the step S or later. S is the first step by which operations have begun that read
///   half of the bytes of all parameters read.
/// - Of the variables made before S, it uses only parameters.
///
/// Inference that writes a cache or running statistics does not match, because each layer writes
/// its own before the next layer begins. A parameter does not count as updated if an operation that
/// is no update changes it too.
///
/// If the update that ends last uses at most two parameters (a weight and a bias), they do not
/// count as updated: the operation may be the head of a language model, whose weight is also the
/// weight of the embedding.
pub fn updates_without_backward(model: &Model) -> Option<Contradiction> {
    const UPDATED: u8 = 1;
    const CHANGED: u8 = 2;
    const LAST: u8 = 4;
    let (groups, sets) = (&model.operation_groups, &model.use_sets);
    let number = model.min_tensor_bytes();
    let updates = |start| -> Vec<bool> {
        let needed = needed_tolerance(model, start).into_iter();
        needed.map(|needed| needed < number).collect()
    };
    let without_results = updates(0);
    let first_reads = sets.fold(u32::MAX, |first, group| match groups[group].window {
        Some((own, _)) if groups[group].computes() && !without_results[group] => first.min(own),
        _ => first,
    });
    let read = |&VariableUse { class, set, bytes }: &VariableUse| {
        let first = first_reads[set as usize];
        (first < u32::MAX && model.is_parameter(class, set)).then_some((first, bytes, set))
    };
    let mut parameters: Vec<_> = model.variables.uses().iter().filter_map(read).collect();
    parameters.sort_unstable();
    let read: u64 = parameters.iter().map(|&(_, bytes, _)| bytes).sum();
    let mut rest = read;
    let half = parameters.iter().find(|&&(_, bytes, _)| {
        rest -= bytes;
        rest <= read / 2
    });
    let updates = updates(half?.0);
    let last = (0..groups.len())
        .filter(|&group| updates[group])
        .max_by_key(|&group| groups[group].window.map(|(_, last)| last));
    let changes = &sets.fold(0, |changes, group| {
        changes
            | match without_results[group] {
                true if Some(group) == last => LAST,
                true if updates[group] => UPDATED,
                true => CHANGED,
                false => 0,
            }
    });
    let changed_by = |wanted: u8| {
        let changed = parameters.iter();
        changed.filter(move |&&(_, _, set)| changes[set as usize] == wanted)
    };
    let bytes = |wanted| changed_by(wanted).map(|&(_, bytes, _)| bytes).sum::<u64>();
    let of_last: FxHashSet<u32> = changed_by(LAST).map(|&(_, _, set)| set).collect();
    let is_head = of_last.len() <= 2;
    let updated = bytes(UPDATED) + if is_head { 0 } else { bytes(LAST) };
    (updated > read / 2).then(|| Contradiction::without_backward(read, updated))
}

/// Properties of the variables that one operation group of the backward pass uses, by which updates
/// of weights are recognised.
#[derive(Clone, Default)]
struct Uses {
    /// Whether the operation group uses a parameter, such as a weight, that is not a gradient
    /// accumulator.
    has_parameter: bool,
    /// Whether the operation group uses a gradient accumulator, or a variable that may be a
    /// gradient: one that is not a parameter and that another operation group uses too.
    has_other: bool,
    /// Bytes, over all tiles, of the variables that the operation group uses and that are live
    /// after its last step. Parameters do not count.
    outliving: u64,
    /// Bytes, over all tiles, of the variables, without parameters, that the operation group uses
    /// and that are live across the start of the backward pass. Such variables are results of the
    /// forward pass. Operations that compute gradients use them, but updates do not.
    from_forward: u64,
}

/// Returns one entry per operation group (operations with one debug context): how many bytes speak
/// against the group being an update of weights. Besides parameters, an update uses no variables
/// that are live after it, and none from the forward pass. The entry is the larger of the bytes of
/// these two kinds of variables. It is `u64::MAX` for groups that cannot be updates: they begin
/// before the backward pass, run no vertices, copy from or to the host, or do not use both a
/// parameter and a variable that may be a gradient.
fn needed_tolerance(model: &Model, backward_start: u32) -> Vec<u64> {
    let (groups, sets) = (&model.operation_groups, &model.use_sets);
    let last_steps: Vec<Option<u32>> = groups
        .iter()
        .map(|group| {
            let (first, last) = group.window?;
            let may_be =
                first >= backward_start && group.computes() && group.host_copies.is_empty();
            may_be.then_some(last)
        })
        .collect();
    let mut found = vec![Uses::default(); groups.len()];
    let mut left = limits::ENTRIES;
    for &VariableUse { class, set, bytes } in model.variables.uses() {
        let ranges = model.classes.ranges(class);
        let Some(&(_, end)) = ranges.last() else {
            continue;
        };
        let is_from_forward = ranges
            .iter()
            .any(|&(from, to)| from < backward_start && to > backward_start);
        let is_parameter = model.is_parameter(class, set);
        let is_accumulator = model.label_of(set).is_accumulator();
        let is_of_others = sets.groups(set).nth(1).is_some();
        for group in sets.groups(set) {
            // `left` limits the work: summed over all variables, at most [`limits::ENTRIES`] users
            // (operation groups) are visited. Only a profile crafted to slow down the analysis has
            // more. For such a profile, no operation is taken as an update.
            if left == 0 {
                return vec![u64::MAX; groups.len()];
            }
            left -= 1;
            let Some(last) = last_steps[group] else {
                continue;
            };
            let uses = &mut found[group];
            uses.has_parameter |= is_parameter && !is_accumulator;
            uses.has_other |= is_accumulator || !is_parameter && is_of_others;
            if !is_parameter && end > last + 1 {
                uses.outliving = uses.outliving.saturating_add(bytes);
            }
            if !is_parameter && is_from_forward {
                uses.from_forward = uses.from_forward.saturating_add(bytes);
            }
        }
    }
    found
        .into_iter()
        .map(|uses| {
            if uses.has_parameter && uses.has_other {
                uses.outliving.max(uses.from_forward)
            } else {
                u64::MAX
            }
        })
        .collect()
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
    fn modules_with_names_like_updates_are_none() {
        let operation = |name: &str, step| Operation {
            is_update: true,
            window: Some((step, step)),
            ..testing::operation(0, name, "")
        };
        let mut operations = [
            operation("update_block/conv/Conv", 1),
            operation("a/b/MatMul", 2),
            operation("gradients/a/b/MatMul", 3),
            operation("update_block/conv/Conv/Grad", 4),
            operation("Adam/update_dense/ResourceApplyAdam", 5),
        ];
        operations[1].is_update = false;
        operations[2].is_update = false;
        operations[2].is_backward = true;
        assert_eq!(find(&mut operations), Some(3));
        let passes = operations.map(|operation| operation.pass);
        use Pass::{Backward, Forward, Update};
        assert_eq!(passes, [Forward, Forward, Backward, Backward, Update]);
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
