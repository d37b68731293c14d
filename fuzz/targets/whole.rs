//! Fuzzes the whole tool on a small model that is changed at random: it never panics, always ends,
//! and leaves its input files unchanged.
#![no_main]

#[path = "../../tests/it/support/mutations.rs"]
mod mutations;

use clap::Parser;
use libfuzzer_sys::fuzz_target;
use mutations::{Choices, Schema, loosen, mutate};
use popliner::app::{Options, run};
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use tempfile::TempDir;

/// A model as it was generated, and the paths to which its changed files are written.
struct Base {
    schema: Schema,
    files: [Vec<u8>; 2],
    paths: [PathBuf; 2],
    _folder: TempDir,
}

static BASES: LazyLock<Vec<Base>> = LazyLock::new(|| {
    let bases = ["poplar", "popart", "tensorflow"];
    bases.into_iter().map(base).collect()
});

fn base(framework: &str) -> Base {
    // In memory if the system has such a folder.
    let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
    let folder = folder.expect("a folder");
    let outlined = if framework == "poplar" {
        "none"
    } else {
        "per-call"
    };
    let options = [
        "--framework",
        framework,
        "--outlined",
        outlined,
        "--layers=2",
        "--tiles=4",
        "--vars-per-layer-tile=1",
        "--page-size=512",
        "--execution",
    ];
    synthesize::write(folder.path(), options).expect("both files");
    let paths = ["profile.pop", "debug.cbor"].map(|name| folder.path().join(name));
    let schema = loosen(&paths[0]);
    Base {
        schema,
        files: paths.each_ref().map(|path| fs::read(path).expect("a file")),
        paths,
        _folder: folder,
    }
}

const OPTIONS: [&[&str]; 10] = [
    &["--solve"],
    &["--solve", "--memory-model=classic", "--solver=greedy"],
    &["--operation-breakdown", "--layer-breakdown", "--format=csv"],
    &["--diagnose", "--memory-totals"],
    &["--memory-affinity", "--interlayer-communication"],
    &["--solve", "--mem-per-tile=30000", "--out-on=first"],
    &["--solve", "--export-json=-", "--format=csv"],
    &["--sweep", "--explain", "--export-html=-", "--units=auto"],
    &["--objective=cycles", "--solve", "--export-markdown=-"],
    &["--emit=examples", "--cut-before=1", "--splits=1"],
];

fuzz_target!(|data: &[u8]| {
    let [which, rest @ ..] = data else { return };
    let mut choices = Choices(rest);
    let base = &BASES[usize::from(*which) % BASES.len()];
    let options = OPTIONS[usize::from(*which) / BASES.len() % OPTIONS.len()];
    for (path, bytes) in base.paths.iter().zip(&base.files) {
        fs::write(path, bytes).expect("a file");
    }
    let [profile, debug] = &base.paths;
    mutate(profile, debug, &base.schema, &mut choices);
    let before = base
        .paths
        .each_ref()
        .map(|path| fs::read(path).expect("a file"));
    let arguments = ["popliner", "-q", "--allow-incomplete"]
        .into_iter()
        .chain(options.iter().copied());
    let paths = base
        .paths
        .iter()
        .map(|path| path.to_str().expect("a plain path"));
    let options = Options::try_parse_from(arguments.chain(paths)).expect("known options");
    let mut out = Vec::new();
    if let Err(error) = run(&options, &mut out) {
        let text = format!("{error:#}");
        assert!(text.len() > 20 && text.len() < 20_000, "{text}");
    }
    let after = base
        .paths
        .each_ref()
        .map(|path| fs::read(path).expect("a file"));
    assert!(before == after, "an input changed");
    let entries = fs::read_dir(profile.parent().expect("a folder")).expect("a folder");
    assert_eq!(entries.count(), 2, "a file is beside the inputs");
});
