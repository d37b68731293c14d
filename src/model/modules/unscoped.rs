//! Scopes of operations in a program that was recorded without scopes, from its parameters.

use super::evidence::{Evidence, NONE, crossing, parameter};
use super::paths::{is_number, modules, scope_and_type};
use crate::model::Model;

/// The scope of each operation of the forward pass by the modules of parameters; empty if any
/// operation with parameters has a scope, or no parameter has modules.
///
/// An operation that uses parameters belongs to the modules that are called on the way to one of
/// them. Operations between two of these belong to the earlier one up to the place where the fewest
/// tensors are passed on, and from there to the later one. `positions` has the position of each
/// group of operations in the forward pass, or [`NONE`].
pub(super) fn scopes(
    model: &Model,
    forward: &[u32],
    evidence: &Evidence<'_>,
    positions: &[usize],
) -> Vec<String> {
    let has_scope = |&operation: &u32| {
        let (scope, _) = scope_and_type(&model.operations[operation as usize].name);
        !scope.is_empty()
    };
    let mut used = forward.iter().zip(&evidence.parameters);
    if used.any(|(operation, used)| !used.is_empty() && has_scope(operation)) {
        return Vec::new();
    }
    let mut called_at = vec![None; forward.len()];
    for (set, ..) in model.use_sets.iter() {
        let Some(called) = parameter(model, set).and_then(called) else {
            continue;
        };
        let users = model.use_sets.groups(set);
        let users = users.map(|group| positions[group as usize]);
        for at in users.filter(|&at| at != NONE) {
            called_at[at].get_or_insert_with(|| called.clone());
        }
    }
    between(called_at, &evidence.flow)
}

/// The scopes of all operations, if those in `called` use parameters; empty if none does.
fn between(called: Vec<Option<String>>, flow: &[(usize, usize)]) -> Vec<String> {
    let operations = called.len();
    let crossing = crossing(flow, operations);
    let mut scopes: Vec<String> = Vec::new();
    for (at, scope) in called.into_iter().enumerate() {
        let Some(scope) = scope else { continue };
        // Of several places, the latest: an activation follows the last parameter of its module.
        let cut = (scopes.len()..=at).rev().min_by_key(|&at| crossing[at]);
        if let Some(before) = scopes.last().cloned() {
            scopes.resize(cut.unwrap_or(at), before);
        }
        scopes.resize(at + 1, scope);
    }
    if let Some(last) = scopes.last().cloned() {
        scopes.resize(operations, last);
    }
    scopes
}

/// The modules that are called on the way to a parameter; `None` if it belongs to the model itself.
/// A list of modules, which has numbered parts, is not called.
fn called(parameter: &str) -> Option<String> {
    let path: Vec<&str> = modules(parameter).collect();
    let (_, path) = path.split_last()?;
    let is_list = |at: usize| path.get(at + 1).is_some_and(|part| is_number(part));
    let called = path.iter().enumerate().filter(|&(at, _)| !is_list(at));
    let called: Vec<&str> = called.map(|(_, &part)| part).collect();
    (!called.is_empty()).then(|| called.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_not_called() {
        for (parameter, expected) in [
            (
                "encoder.layer.3.attention.query.weight",
                Some("encoder/3/attention/query"),
            ),
            ("features.0.weight", Some("0")),
            ("weight", None),
            ("", None),
        ] {
            assert_eq!(called(parameter).as_deref(), expected, "{parameter}");
        }
    }

    #[test]
    fn operations_without_parameters_are_where_few_tensors_are_passed_on() {
        // A residual block: the sum of 1 and 2 is passed on alone; 4 and 5 need 3.
        let flow = [
            (0, 1),
            (0, 2),
            (1, 2),
            (2, 3),
            (3, 4),
            (3, 5),
            (4, 5),
            (5, 6),
        ];
        let called = [None, Some("a"), None, None, None, Some("b"), None];
        let called = called.map(|scope| scope.map(String::from));
        let expected = ["a", "a", "a", "a", "b", "b", "b"];
        assert_eq!(between(called.to_vec(), &flow), expected);
        assert_eq!(between(vec![None; 3], &[]), [""; 0]);
    }
}
