//! The pass of each operation against its planted pass.

use std::collections::HashMap;

use popliner::model::Pass;

use super::subject::Subject;

/// Checks a model, and returns the passes of its operations.
pub fn check(subject: &Subject, planted: &HashMap<u64, &str>) -> Vec<Pass> {
    let (model, name) = (&subject.model, &subject.name);
    let is_training = planted.values().any(|&pass| pass == "backward");
    assert_eq!(model.backward_start.is_some(), is_training, "{name}");
    let mut found = Vec::new();
    for operation in model.operations.iter().filter(|_| is_training) {
        let uid = model.operation_groups[operation.group as usize].uid;
        let Some(pass) = planted.get(&uid) else {
            continue;
        };
        let is_right = match (*pass, operation.pass) {
            ("forward", Pass::Forward) | ("backward", Pass::Backward) => true,
            // An update of weights without a telling name comes after the start of the backward
            // pass.
            ("update", Pass::Update | Pass::Backward) => true,
            // One body is called in both passes.
            ("forward" | "backward", Pass::Both) => operation.is_nested,
            _ => false,
        };
        let (found_pass, operation) = (operation.pass, &operation.name);
        assert!(is_right, "{operation} is {found_pass:?}, not {pass}");
        found.push(found_pass);
    }
    found
}

/// Checks that the operations of all models have all passes.
pub fn have_all(passes: &[Pass]) {
    for pass in [Pass::Forward, Pass::Backward, Pass::Update] {
        assert!(passes.contains(&pass), "{pass:?}");
    }
}
