//! The pass of each operation against its planted pass.

use popliner::model::Pass;
use std::cell::RefCell;
use std::collections::BTreeMap;

use super::subject::{Subject, each_generated};

/// Numbers of operations by planted pass and computed pass.
type Counts = BTreeMap<(String, Pass), usize>;

/// Do contexts tell the backward pass? In plain Poplar they do not.
fn tells_passes(subject: &Subject) -> bool {
    !subject.name.contains("--framework poplar ")
}

fn check(subject: &Subject, counts: &mut Counts) {
    let planted = &subject.planted()["passes"];
    let (model, name) = (&subject.model, &subject.name);
    let is_training = planted
        .as_object()
        .expect("passes by context")
        .values()
        .any(|pass| pass == "backward");
    let told = is_training && tells_passes(subject);
    assert_eq!(model.backward_start.is_some(), told, "{name}");
    for operation in model.operations.iter().filter(|_| told) {
        let uid = model.operation_groups[operation.group as usize].uid;
        let Some(pass) = planted[uid.to_string()].as_str() else {
            continue;
        };
        *counts
            .entry((pass.to_string(), operation.pass))
            .or_default() += 1;
        let is_right = match (pass, operation.pass) {
            ("forward", Pass::Forward) | ("backward", Pass::Backward) => true,
            // An update of weights without a telling name comes after the start of the backward
            // pass.
            ("update", Pass::Update | Pass::Backward) => true,
            // One body is called in both passes.
            ("forward" | "backward", Pass::Both) => operation.is_nested,
            _ => false,
        };
        assert!(
            is_right,
            "{name}: {} is {:?}, not {pass}",
            operation.name, operation.pass
        );
    }
}

#[test]
fn each_operation_has_the_pass_that_was_planted() {
    let counts = RefCell::new(Counts::new());
    each_generated(|subject| check(subject, &mut counts.borrow_mut()));
    let counts = counts.into_inner();
    println!("{counts:?}");
    for found in [Pass::Forward, Pass::Backward, Pass::Update] {
        assert!(counts.keys().any(|(_, pass)| *pass == found), "{counts:?}");
    }
}
