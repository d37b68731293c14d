//! A `debug.cbor` of another compilation is refused, and so is a damaged one. A whole one that
//! belongs to the profile causes no warning. `first_run` tests the messages.

use std::fs;

use crate::support::each;
use crate::support::models::{every_kind, generate, share};
use crate::support::{ONE_IPU_FIXTURES, debug, popliner, profile, root, sample_pair};
use popliner::debug_info::DebugInfo;
use popliner::model::Belonging;
use popliner::profile::Profile;
use std::path::Path;
use tempfile::TempDir;

fn belonging(profile: &Path, debug: &[u8]) -> Belonging {
    let profile = Profile::read(profile).expect("a profile");
    let contexts = DebugInfo::from_reader(debug).expect("contexts");
    Belonging::new(&profile.programs, &contexts)
}

#[test]
fn the_contexts_of_another_fixture_are_refused() {
    for fixture in ONE_IPU_FIXTURES {
        for other in ONE_IPU_FIXTURES {
            let contexts = fs::read(root().join(debug(other))).expect("a file");
            let belonging = belonging(&root().join(profile(fixture)), &contexts);
            let is_foreign = belonging.is_foreign();
            assert_eq!(
                is_foreign,
                fixture != other,
                "{fixture} with {other}: {belonging:?}"
            );
            if fixture == other {
                assert_eq!(belonging.damage(), [], "{fixture}");
                assert_eq!(belonging.orphans, 0, "{fixture}");
                assert!(belonging.named > 0, "{fixture}");
                assert_eq!(belonging.same_names, belonging.named, "{fixture}");
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
            let belonging = belonging(&root().join(profile(fixture)), cut);
            assert!(
                !belonging.is_foreign(),
                "{fixture}, {part} of 20: {belonging:?}"
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
        let belonging = belonging(&profile, &contexts);
        assert!(!belonging.is_foreign(), "{options:?}: {belonging:?}");
        assert_eq!(belonging.damage(), [], "{options:?}");
        assert_eq!(belonging.orphans, 0, "{options:?}");
    });
    let Some([profile, debug]) = sample_pair() else {
        return;
    };
    let contexts = fs::read(debug).expect("a file");
    let found = belonging(&profile, &contexts);
    let expected = Belonging {
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
        let belonging = belonging(&profile, &other);
        assert!(belonging.is_foreign(), "{fixture}: {belonging:?}");
    }
}
