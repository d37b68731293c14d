//! No program counts twice: a program that owns code or state belongs to at most one group, and a
//! group's bytes are the bytes of its programs. (Tests on random models in `src/memory` check that
//! a stage counts each group and each variable once.)

use std::collections::HashSet;

use popliner::model::OwnedKind;

use super::subject::{Subject, each_fixture, each_generated, the_sample};

fn programs_have_one_owner(subject: &Subject) {
    let Subject { name, model, .. } = subject;
    let mut seen = HashSet::new();
    let mut owned = vec![[0u64; 2]; model.operation_groups.len()];
    for program in &model.programs {
        assert!(seen.insert(program.id), "{name}: program {}", program.id);
        let Some(group) = program.group else { continue };
        owned[group as usize][usize::from(program.kind == OwnedKind::DoExchange)] += program.bytes;
    }
    for (group, owned) in model.operation_groups.iter().zip(owned) {
        let bytes = [&group.code.vertex_state, &group.code.exchange_code];
        assert_eq!(bytes.map(|bytes| bytes.total()), owned, "{name}: {group:?}");
    }
    assert!(!seen.is_empty(), "{name}: no programs");
}

#[test]
fn programs_of_fixtures_have_one_owner() {
    each_fixture(programs_have_one_owner);
}

#[test]
fn programs_of_generated_models_have_one_owner() {
    each_generated(programs_have_one_owner);
}

#[test]
fn programs_of_the_real_sample_have_one_owner() {
    the_sample(programs_have_one_owner);
}
