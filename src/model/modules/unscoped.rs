//! Derives scopes of operations (the modules that call them) from names of parameters, for programs
//! that were recorded without scopes.

use super::paths::{is_number, modules, scope_and_type};

/// Returns whether no operation that uses parameters has a scope (modules before the type in its
/// name). `operations` gives the name of each operation, and the names of the parameters that it
/// uses.
pub(super) fn lack_scopes<'a>(
    mut operations: impl Iterator<Item = (&'a str, &'a Vec<&'a str>)>,
) -> bool {
    operations.all(|(name, parameters)| parameters.is_empty() || scope_and_type(name).0.is_empty())
}

/// Returns the scope of each operation of the forward pass, from the modules in the names of
/// parameters, for a model whose operations have no scopes; empty if no parameter has modules.
/// `uses` has the index of each operation that uses a parameter, with the name of the parameter.
/// `crossing` has the bytes that are passed on before each operation; with one more entry for the
/// end.
///
/// The scope of an operation that uses parameters is the modules that are called on the way to one
/// of them. Operations between two of these belong to the earlier one up to the place where the
/// fewest bytes are passed on, and from there on to the later one.
pub(super) fn scopes<'a>(
    uses: impl Iterator<Item = (usize, &'a str)>,
    crossing: &[i64],
) -> Vec<String> {
    let operations = crossing.len() - 1;
    let mut called_at = vec![None; operations];
    for (at, parameter) in uses {
        if called_at[at].is_none() {
            called_at[at] = called(parameter);
        }
    }
    let mut scopes: Vec<String> = Vec::new();
    for (at, scope) in called_at.into_iter().enumerate() {
        let Some(scope) = scope else { continue };
        // Of several places with the fewest bytes, the last: an activation function follows the
        // last parameter of its module.
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

/// Returns the modules that are called on the way to a parameter of this name, joined by `/`;
/// `None` if the parameter belongs to the model itself. A list of modules, which has numbered
/// items, is left out since it is not called.
fn called(parameter: &str) -> Option<String> {
    let path: Vec<&str> = modules(parameter).collect();
    let (_, path) = path.split_last()?;
    let is_list = |at: usize| path.get(at + 1).is_some_and(|part| is_number(part));
    let called: Vec<&str> = path
        .iter()
        .enumerate()
        .filter(|&(at, _)| !is_list(at))
        .map(|(_, &part)| part)
        .collect();
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
    fn operations_without_parameters_are_where_few_bytes_are_passed_on() {
        // After the first operation with parameters, two tensors are passed on until 3.
        let crossing = [0, 2, 2, 1, 1, 2, 1, 0];
        let uses = [(1, "a.weight"), (5, "b.weight")];
        let expected = ["a", "a", "a", "a", "b", "b", "b"];
        assert_eq!(scopes(uses.into_iter(), &crossing), expected);
        assert_eq!(scopes([].into_iter(), &[0; 4]), [""; 0]);
    }
}
