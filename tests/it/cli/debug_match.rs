//! A `debug.cbor` of another compilation is refused. `first_run` tests the messages, and that the
//! complete `debug.cbor` of the profile causes no warning; `input_files` tests files that are cut
//! off.

use crate::support::{ONE_IPU_FIXTURES, debug, profile, root, sample_pair};
use popliner::debug_info::DebugInfo;
use popliner::profile::Profile;
use popliner::witnesses::DebugMatch;

#[test]
fn only_its_own_contexts_belong_to_a_profile() {
    let fixtures = ONE_IPU_FIXTURES.map(|fixture| [profile(fixture), debug(fixture)]);
    let all = fixtures.iter().cloned().chain(sample_pair());
    for [profile, own] in all {
        let read = Profile::read(&root().join(&profile)).expect("a profile");
        let others = fixtures.iter().map(|files| &files[1]);
        let others = others.filter(|&debug| *debug != own);
        for debug in others.chain([&own]) {
            let contexts = DebugInfo::read(&root().join(debug)).expect("contexts");
            let found = DebugMatch::new(&read.programs, &contexts);
            let what = format!("{} with {}: {found:?}", profile.display(), debug.display());
            assert_eq!(found.is_foreign(), *debug != own, "{what}");
            if *debug == own {
                assert_eq!(found.damage, [], "{what}");
                assert!(found.named > 0 && found.same_names == found.named, "{what}");
            }
        }
    }
}
