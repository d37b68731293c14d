use super::*;
use crate::model::LayerOptions;
use std::fs;

#[test]
fn names_are_not_fetched_from_a_profile_that_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |name: &str| {
        let to = folder.path().join(name);
        fs::copy(Path::new("fixtures/poplar-mlp").join(name), &to).unwrap();
        to
    };
    let (profile, debug) = (copy("profile.pop"), copy("debug.cbor"));
    let analysis = Analysis::read(&profile, &debug).unwrap();
    let request = Request::default();
    let layers = analysis.layers(&request).unwrap();
    assert!(layers.split(&request).is_ok());
    // The change counter in SQLite's header, bytes 24 to 27.
    let mut bytes = fs::read(&profile).unwrap();
    bytes[27] ^= 1;
    fs::write(&profile, bytes).unwrap();
    let error = layers.split(&request).unwrap_err();
    assert!(format!("{error:#}").contains("changed"), "{error:#}");
    assert!(format!("{error:#}").contains("profile.pop"), "{error:#}");
}

#[test]
fn a_compilation_is_judged_in_a_few_calls() {
    let folder = Path::new("fixtures/training-pipelined");
    let contexts = |file: &str| ContextsOf {
        file: Some(folder.join(file)),
        is_named: false,
        is_trusted: false,
    };
    let read = |contexts: &ContextsOf| {
        let layers = LayerOptions::default();
        Compilation::read(&folder.join("profile.pop"), contexts, &layers, false).unwrap()
    };
    let compilation = read(&contexts("debug.cbor"));
    let limit = compilation.profile.target.bytes_per_tile;
    let fit = |compilation: &Compilation, limit| {
        let request = Request {
            memory_per_tile: vec![limit],
            ..Request::default()
        };
        compilation.fit(&request).unwrap().fit.unwrap()
    };
    let verdict = fit(&compilation, limit);
    assert!(verdict.fits);
    let peaks: Vec<u64> = verdict
        .ipus
        .iter()
        .map(|ipu| ipu.fullest_tile.bytes)
        .collect();
    assert_eq!(peaks, [243_878, 212_824, 238_451, 188_350]);
    let second: Vec<Option<String>> = ["1", "2"].map(|name| Some(name.into())).into();
    assert_eq!(verdict.ipus[1].layers.as_ref(), Some(&second));
    assert!(!fit(&compilation, peaks[0] - 1).fits);
    // Without readable contexts there are no layers, and a warning says why.
    let without = read(&contexts("nowhere.cbor"));
    let warning = &without.warnings[0].1;
    assert!(
        warning.contains("layers on IPUs are left out"),
        "{warning:?}"
    );
    assert_eq!(fit(&without, limit).ipus[1].layers, None);
}
