//! The contexts of another compilation are told from those of the profile, whole or cut off.
//! `first_run` tests the messages, and that sound files contradict nothing.

use crate::support::models::share;
use crate::support::{ONE_IPU_FIXTURES, debug, profile, root};
use popliner::debug_info::DebugInfo;
use popliner::profile::Profile;
use popliner::witnesses::DebugMatch;
use std::path::Path;

/// Compares a profile with the first `part` twentieths of a debug file.
fn debug_match(profile: &Path, debug: &Path, part: usize) -> DebugMatch {
    let profile = Profile::read(&root().join(profile)).expect("a profile");
    let contexts = std::fs::read(root().join(debug)).expect("a file");
    let contexts = DebugInfo::from_reader(&contexts[..contexts.len() * part / 20]);
    DebugMatch::new(&profile.programs, &contexts.expect("contexts"))
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
        let is_own = own.named > 0 && own.same_names == own.named && !own.is_foreign();
        assert!(is_own, "{fixture}: {own:?}");
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
