//! The pass of each operation: forward, backward or update (docs/model.md, "Passes"). Contexts say
//! which operations of the main graph are backward; the first of them is the start of the backward
//! pass. Steps decide on all other operations, because contexts say nothing inside the body of a
//! function but the steps of its calls do.

use super::Operation;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The pass that an operation belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Pass {
    /// Before the start of the backward pass; everything in inference.
    #[default]
    Forward,
    /// From the start of the backward pass on.
    Backward,
    /// Update of weights.
    Update,
    /// Steps before and after the start of the backward pass: a body that is listed once for calls
    /// in both passes, or an operation that is recomputed for the backward pass.
    Both,
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Pass::Forward => "forward",
            Pass::Backward => "backward",
            Pass::Update => "update",
            Pass::Both => "both",
        })
    }
}

/// Gives each operation its pass. Returns the first step of the backward pass; `None` for
/// inference.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Analysis;
    use crate::model::{Model, testing};
    use std::path::Path;

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

    fn fixture(name: &str) -> Model {
        let folder = Path::new("fixtures").join(name);
        let read = Analysis::read(&folder.join("profile.pop"), &folder.join("debug.cbor"));
        read.unwrap().model
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
