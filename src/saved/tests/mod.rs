//! Models saved and loaded, and files that were not written by popliner.

mod any_model;
mod damaged;
mod hostile;
mod models;
mod unfit_parts;

use super::*;
use crate::message::Warning;
use crate::model::{VariableGroup, VariableGroups};
use any_model::any_model;
use models::full;
use proptest::prelude::*;
use std::fs;
use std::path::PathBuf;

#[test]
fn a_model_with_something_in_every_field_comes_back() {
    let model = full();
    let bytes = to_bytes(&model).unwrap();
    assert_eq!(from_bytes(&bytes).unwrap(), model);
    assert_eq!(to_bytes(&full()).unwrap(), bytes, "always the same bytes");
}

proptest! {
    #[test]
    fn any_model_comes_back(model in any_model()) {
        let bytes = to_bytes(&model).unwrap();
        let loaded = from_bytes(&bytes).unwrap();
        prop_assert_eq!(&loaded, &model);
        prop_assert_eq!(to_bytes(&loaded).unwrap(), bytes);
    }
}

/// Many groups, and much text.
#[test]
fn a_large_model_comes_back() {
    let mut model = full();
    model.warnings = (0..3_000)
        .map(|n| Warning::new(format!("{n:x<1000}")))
        .collect();
    let items = (0..600_000u32).map(|n| {
        let (class, set, bytes) = (n % 4, n % 3, n);
        ((n % 4) as u16, VariableGroup { class, set, bytes })
    });
    // 4 tiles of 3 uses each, with bytes so large that groups cannot be joined.
    let many = (0..600_000u32)
        .map(|n| (n % 4) as u16)
        .zip((0..).map(|n| VariableGroup {
            class: n % 4,
            set: n % 3,
            bytes: u32::MAX - n,
        }));
    model.variables = VariableGroups::new(4, items.chain(many));
    let bytes = to_bytes(&model).unwrap();
    assert_eq!(from_bytes(&bytes).unwrap(), model);
}

/// Names of all files in `folder`.
fn names(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into())
        .collect();
    names.sort();
    names
}

#[test]
fn saving_leaves_one_file_and_replaces_an_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a model #1?.saved");
    fs::write(&path, "old").unwrap();
    for model in [
        full(),
        Model {
            memory_peak: None,
            ..full()
        },
    ] {
        save(&model, &path).unwrap();
        assert_eq!(load(&path).unwrap(), model);
        assert_eq!(names(folder.path()), [Path::new("a model #1?.saved")]);
    }
}

#[test]
fn a_failure_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("missing").join("model");
    assert!(matches!(save(&full(), &nowhere), Err(SavedError::Write(_))));
    let taken = folder.path().join("taken");
    fs::create_dir(&taken).unwrap();
    assert!(matches!(save(&full(), &taken), Err(SavedError::Write(_))));
    assert!(matches!(load(&taken), Err(SavedError::Io(_))));
    let mut long = full();
    let (always, steps) = (vec![true; 4], 1 << 30);
    long.classes = crate::profile::LiveClasses::new(always, Vec::new(), steps);
    let path = folder.path().join("model");
    let error = save(&long, &path).unwrap_err().to_string();
    assert!(error.contains("1073741824 liveness steps"), "{error}");
    assert_eq!(names(folder.path()), [Path::new("taken")]);
    assert!(names(&taken).is_empty());
}

#[cfg(unix)]
#[test]
fn links_stay_links_and_devices_stay_devices() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("model"), folder.path().join("link"));
    save(&full(), &path).unwrap();
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&path), mode(&plain), "as any other new file");
    symlink(&path, &link).unwrap();
    let model = Model {
        memory_peak: None,
        ..full()
    };
    save(&model, &link).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(load(&path).unwrap(), model);
    let null = Path::new("/dev/null");
    assert!(matches!(save(&model, null), Err(SavedError::Write(_))));
    assert!(matches!(load(null), Err(SavedError::Io(_))));
    assert!(fs::metadata(null).unwrap().file_type().is_char_device());
}
