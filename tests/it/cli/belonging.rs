//! A `debug.cbor` of another compilation is refused, and none is that belongs to the
//! profile, cut off or not.

use std::fs;

use crate::support::models::{every_kind, generate};
use crate::support::{copy, debug, popliner, profile, root, sample_pair};
use ciborium::Value;
use popliner::debug_info::DebugInfo;
use popliner::model::Belonging;
use popliner::profile::Profile;
use rayon::prelude::*;
use std::path::Path;
use tempfile::TempDir;

const FIXTURES: [&str; 8] = [
    "impossible",
    "large-embedding",
    "popart-bert-inference",
    "poplar-mlp",
    "poptorch-bert-training",
    "tensorflow-cnn",
    "tied-weights",
    "training-pipeline",
];

fn belonging(profile: &Path, debug: &[u8]) -> (Belonging, bool) {
    let profile = Profile::read(profile).expect("a profile");
    let contexts = DebugInfo::from_reader(debug).expect("contexts");
    let is_whole = contexts.truncation().is_none();
    (Belonging::new(&profile.programs, &contexts), is_whole)
}

#[test]
fn the_contexts_of_another_fixture_are_refused() {
    for own in FIXTURES {
        for other in FIXTURES {
            let contexts = fs::read(root().join(debug(other))).expect("a file");
            let (belonging, is_whole) = belonging(&root().join(profile(own)), &contexts);
            let is_foreign = belonging.is_foreign();
            assert_eq!(
                is_foreign,
                own != other,
                "{own} with {other}: {belonging:?}"
            );
            assert!(own != other || !belonging.is_partial(is_whole), "{own}");
        }
    }
    let paths = [profile("poplar-mlp"), debug("tied-weights")];
    let run = |more: &[&str]| {
        let paths = paths
            .iter()
            .map(|path| path.to_str().expect("a plain path"));
        popliner(
            paths
                .chain(["--layer-breakdown"])
                .chain(more.iter().copied()),
        )
    };
    let refused = run(&[]);
    assert_eq!((refused.code, &*refused.out), (3, ""), "{refused:?}");
    for part in [
        "debug.cbor: it belongs to another compilation",
        "--trust-debug-info",
    ] {
        assert!(refused.err.contains(part), "{refused:?}");
    }
    assert_eq!(run(&["--trust-debug-info"]).code, 0);
}

#[test]
fn contexts_that_were_cut_off_are_not_refused() {
    for own in FIXTURES {
        let contexts = fs::read(root().join(debug(own))).expect("a file");
        for part in 1..=20 {
            let cut = &contexts[..contexts.len() * part / 20];
            let (belonging, _) = belonging(&root().join(profile(own)), cut);
            assert!(
                !belonging.is_foreign(),
                "{own}, {part} of 20: {belonging:?}"
            );
        }
    }
}

#[test]
fn those_of_generated_models_and_of_the_real_sample_are_not_refused() {
    every_kind(4).par_iter().for_each(|options| {
        let folder = TempDir::new().expect("a folder");
        let [profile, debug] = generate(folder.path(), options);
        let contexts = fs::read(debug).expect("a file");
        let (belonging, _) = belonging(&profile, &contexts);
        assert!(!belonging.is_foreign(), "{options:?}: {belonging:?}");
    });
    let Some([profile, debug]) = sample_pair() else {
        return;
    };
    let contexts = fs::read(debug).expect("a file");
    let (found, is_whole) = belonging(&profile, &contexts);
    let expected = Belonging {
        ids: 35,
        found: 35,
        of_programs: 35,
    };
    assert_eq!((found, is_whole), (expected, true));
    for own in FIXTURES {
        let other = fs::read(root().join(crate::support::debug(own))).expect("a file");
        let (belonging, _) = belonging(&profile, &other);
        assert!(belonging.is_foreign(), "{own}: {belonging:?}");
    }
}

#[test]
fn what_a_fitting_file_lacks_is_a_warning_with_numbers() {
    let folder = TempDir::new().expect("a folder");
    let [profile, debug] = copy("poplar-mlp", folder.path());
    let contexts = fs::read(&debug).expect("a file");
    let mut document: Value = ciborium::from_reader(&*contexts).expect("CBOR");
    let entries = document.as_map_mut().expect("two entries");
    let contexts = entries[0].1.as_array_mut().expect("contexts");
    let id = |context: &Value| {
        let fields = context.as_map().expect("a map");
        let id = fields.iter().find(|(name, _)| name.as_text() == Some("id"));
        id.and_then(|(_, id)| id.as_integer()).map(i128::from)
    };
    contexts.retain(|context| id(context).is_none_or(|id| id % 7 != 0));
    let mut left = Vec::new();
    ciborium::into_writer(&document, &mut left).expect("CBOR");
    fs::write(&debug, &left).expect("a file");
    let (found, is_whole) = belonging(&profile, &left);
    let missing = found.ids - found.found;
    assert!(missing > 0 && found.is_partial(is_whole) && !found.is_foreign());
    let run = popliner([&*profile, &*debug, Path::new("--layer-breakdown")]);
    assert_eq!(run.code, 0, "{run:?}");
    let warning = format!(
        "{missing} of {} contexts that programs refer to are missing",
        found.ids
    );
    assert!(run.err.contains(&warning), "{warning} in {}", run.err);
}
