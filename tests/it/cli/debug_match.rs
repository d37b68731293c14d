//! A `debug.cbor` of another compilation is refused, and so is a damaged one. A whole one that
//! belongs to the profile causes no warning. `first_run` tests the messages.

use crate::support::models::{every_kind, generate, share};
use crate::support::{ONE_IPU_FIXTURES, debug, each, profile, root, sample_pair};
use popliner::debug_info::DebugInfo;
use popliner::profile::Profile;
use popliner::witnesses::DebugMatch;
use std::path::Path;
use tempfile::TempDir;

/// Compares a profile with the first `part` twentieths of a debug file.
fn debug_match(profile: &Path, debug: &Path, part: usize) -> DebugMatch {
    let profile = Profile::read(&root().join(profile)).expect("a profile");
    let contexts = std::fs::read(root().join(debug)).expect("a file");
    let contexts = DebugInfo::from_reader(&contexts[..contexts.len() * part / 20]);
    DebugMatch::new(&profile.programs, &contexts.expect("contexts"))
}

fn is_sound(found: &DebugMatch, name: &str) {
    assert!(!found.is_foreign(), "{name}: {found:?}");
    assert_eq!((found.damage(), found.orphans), (Vec::new(), 0), "{name}");
}

/// Checks that contexts belong to a profile whose compute sets have names.
fn is_own(found: &DebugMatch, name: &str) {
    is_sound(found, name);
    let is_own = found.named > 0 && found.same_names == found.named;
    assert!(is_own, "{name}: {found:?}");
}

#[test]
fn the_contexts_of_another_fixture_are_refused() {
    for fixture in ONE_IPU_FIXTURES {
        for other in ONE_IPU_FIXTURES
            .into_iter()
            .filter(|&other| other != fixture)
        {
            let found = debug_match(&profile(fixture), &debug(other), 20);
            assert!(found.is_foreign(), "{fixture} with {other}: {found:?}");
        }
        let own = debug_match(&profile(fixture), &debug(fixture), 20);
        is_own(&own, fixture);
    }
}

#[test]
fn contexts_that_were_cut_off_are_not_those_of_another_compilation() {
    for fixture in ONE_IPU_FIXTURES {
        for part in (1..=20).step_by(share(4)) {
            let found = debug_match(&profile(fixture), &debug(fixture), part);
            assert!(!found.is_foreign(), "{fixture}, {part} of 20: {found:?}");
        }
    }
}

#[test]
fn those_of_generated_models_and_of_the_real_sample_are_not_refused() {
    each(&every_kind(4 / share(4) as u64), |options| {
        let folder = TempDir::new().expect("a folder");
        let [profile, debug] = generate(folder.path(), options);
        is_sound(&debug_match(&profile, &debug, 20), &options.join(" "));
    });
    let Some([profile, contexts]) = sample_pair() else {
        return;
    };
    is_own(&debug_match(&profile, &contexts, 20), "the sample");
    for fixture in ONE_IPU_FIXTURES {
        let found = debug_match(&profile, &debug(fixture), 20);
        assert!(found.is_foreign(), "{fixture}: {found:?}");
    }
}
