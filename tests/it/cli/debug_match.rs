//! A `debug.cbor` of another compilation is refused, and so is a damaged one. A whole one that
//! belongs to the profile causes no warning. `first_run` tests the messages.

use std::fs;

use crate::support::each;
use crate::support::models::{every_kind, generate, share};
use crate::support::{ONE_IPU_FIXTURES, debug, popliner, profile, root, sample_pair};
use popliner::debug_info::DebugInfo;
use popliner::model::DebugMatch;
use popliner::profile::Profile;
use std::path::Path;
use tempfile::TempDir;

fn debug_match(profile: &Path, debug: &[u8]) -> DebugMatch {
    let profile = Profile::read(profile).expect("a profile");
    let contexts = DebugInfo::from_reader(debug).expect("contexts");
    DebugMatch::new(&profile.programs, &contexts)
}

#[test]
fn the_contexts_of_another_fixture_are_refused() {
    for fixture in ONE_IPU_FIXTURES {
        for other in ONE_IPU_FIXTURES {
            let contexts = fs::read(root().join(debug(other))).expect("a file");
            let debug_match = debug_match(&root().join(profile(fixture)), &contexts);
            let is_foreign = debug_match.is_foreign();
            assert_eq!(
                is_foreign,
                fixture != other,
                "{fixture} with {other}: {debug_match:?}"
            );
            if fixture == other {
                assert_eq!(debug_match.damage(), [], "{fixture}");
                assert_eq!(debug_match.orphans, 0, "{fixture}");
                assert!(debug_match.named > 0, "{fixture}");
                assert_eq!(debug_match.same_names, debug_match.named, "{fixture}");
            }
        }
    }
    // `--trust-debug-info` accepts such files.
    let paths = [profile("poplar-mlp"), debug("tied-weights")];
    let paths = paths
        .iter()
        .map(|path| path.to_str().expect("a plain path"));
    let trusted = popliner(paths.chain(["--layer-breakdown", "--trust-debug-info"]));
    assert_eq!(trusted.code, 0, "{trusted:?}");
}

#[test]
fn contexts_that_were_cut_off_are_not_those_of_another_compilation() {
    for fixture in ONE_IPU_FIXTURES {
        let contexts = fs::read(root().join(debug(fixture))).expect("a file");
        for part in (1..=20).step_by(share(4)) {
            let cut = &contexts[..contexts.len() * part / 20];
            let debug_match = debug_match(&root().join(profile(fixture)), cut);
            assert!(
                !debug_match.is_foreign(),
                "{fixture}, {part} of 20: {debug_match:?}"
            );
        }
    }
}

#[test]
fn those_of_generated_models_and_of_the_real_sample_are_not_refused() {
    each(&every_kind(4 / share(4) as u64), |options| {
        let folder = TempDir::new().expect("a folder");
        let [profile, debug] = generate(folder.path(), options);
        let contexts = fs::read(debug).expect("a file");
        let debug_match = debug_match(&profile, &contexts);
        assert!(!debug_match.is_foreign(), "{options:?}: {debug_match:?}");
        assert_eq!(debug_match.damage(), [], "{options:?}");
        assert_eq!(debug_match.orphans, 0, "{options:?}");
    });
    let Some([profile, debug]) = sample_pair() else {
        return;
    };
    let contexts = fs::read(debug).expect("a file");
    let found = debug_match(&profile, &contexts);
    let expected = DebugMatch {
        ids: 35,
        found: 35,
        of_programs: 35,
        named: 14,
        same_names: 14,
        all_ids: 51,
        all_found: 51,
        orphans: 0,
        nameless: 0,
    };
    assert_eq!(found, expected);
    assert_eq!(found.damage(), []);
    for fixture in ONE_IPU_FIXTURES {
        let other = fs::read(root().join(crate::support::debug(fixture))).expect("a file");
        let debug_match = debug_match(&profile, &other);
        assert!(debug_match.is_foreign(), "{fixture}: {debug_match:?}");
    }
}
