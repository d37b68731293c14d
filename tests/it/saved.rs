//! A saved file in place of the profile: every option prints the same, also with other regexes and
//! orders. `src/saved/tests` alters such files.

use crate::support::models::pairs;
use crate::support::{FIXTURES, Run, run_fixture, run_on};
use std::path::Path;

const OPTIONS: [&str; 14] = [
    "--operation-breakdown",
    "--layer-breakdown --format=csv",
    "--memory-totals",
    "--memory-totals --tiles=3,1",
    "--memory-affinity",
    "--interlayer-communication",
    "--diagnose",
    "--diagnose --memory-model=classic",
    "--solve --num-ipus=4 -v",
    "--solve --memory-model=classic --layer-order=natural",
    "--solve --solver=greedy --reserve=5%",
    "--solve --out-on=first --mem-per-tile=500000",
    r"--layer-breakdown --layer-name-regex=(?i)layer\D?(\d)|blocks/(\d)",
    "--solve --diagnose --memory-affinity",
];

fn save(fixture: &str, file: &Path) {
    let run = run_fixture(fixture, &["--save-to-file", file.to_str().unwrap(), "-q"]);
    assert_eq!(run.exits(0).out, "", "{run:?}");
}

/// Checks that two runs printed the same, apart from commands to copy, which have the path.
fn is_same(loaded: &Run, fresh: &Run) {
    let messages = |run: &Run| -> Vec<String> {
        let is_other = |line: &&str| {
            line.contains(" popliner ") || line.contains("The most memory is missing")
        };
        let lines = run.err.lines().filter(|line| !is_other(line));
        lines.map(String::from).collect()
    };
    assert_eq!((loaded.code, &loaded.out), (fresh.code, &fresh.out));
    assert_eq!(messages(loaded), messages(fresh));
}

#[test]
fn every_option_prints_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let files = FIXTURES.map(|fixture| {
        let file = folder.path().join(fixture);
        save(fixture, &file);
        (fixture, file)
    });
    for ((fixture, file), options) in pairs(&files, &OPTIONS, 4) {
        let loaded = run_on(file, &format!("--load-from-file {options}"));
        is_same(&loaded, &run_fixture(fixture, *options));
    }
}

#[test]
fn mix_ups_of_profiles_and_saved_files_are_named() {
    let loaded = run_fixture("poplar-mlp", "--load-from-file --solve");
    loaded.exits(3).says("--load-from-file");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.saved");
    save("poplar-mlp", &file);
    let debug = "fixtures/poplar-mlp/debug.cbor --solve";
    for (options, message) in [
        (debug, "leave DEBUG out"),
        (&format!("{debug} --load-from-file"), "leave DEBUG out"),
        ("--fit", "--fit judges a profile"),
    ] {
        run_on(&file, options).refuses(2, &[message]);
    }
}

/// A saved model is recognized by its first bytes, without an option.
#[test]
fn a_saved_model_is_known_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let [file, again] = ["model.saved", "again.saved"].map(|name| folder.path().join(name));
    save("poplar-mlp", &file);
    let options = "--solve --num-ipus=4";
    let expected = run_fixture("poplar-mlp", options);
    for path in [&file, &again] {
        let save = format!("{options} --save-to-file={}", path.display());
        is_same(&run_on(&file, &save), &expected);
    }
    let whole = std::fs::read(&file).unwrap();
    assert_eq!(whole, std::fs::read(again).unwrap());
    for length in [3, 100] {
        std::fs::write(&file, &whole[..length]).unwrap();
        run_on(&file, "").refuses(3, &["cut off"]);
    }
}

#[test]
fn the_regexes_of_the_run_that_saved_a_model_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.saved");
    let layers = "--list-layers";
    let regex = r"--layer-name-regex=Layer(\d)/FF";
    let save = format!("{regex} --save-to-file={} -q", file.display());
    run_fixture("popart-bert-inference", &save).exits(0);
    let expected = run_fixture("popart-bert-inference", &format!("{regex} {layers}"));
    assert_eq!(run_on(&file, layers).exits(0).out, expected.exits(0).out);
    let auto = "--layer-name-regex=auto --list-layers";
    let of_auto = run_fixture("popart-bert-inference", auto);
    assert_eq!(run_on(&file, auto).exits(0).out, of_auto.exits(0).out);
    assert_ne!(expected.out, of_auto.out);
}
