//! Report folders in place of a profile: the profile in it or one folder below, or
//! the only one of several that can answer.

use std::fs;
use std::path::Path;

use crate::support::{Run, copy, popliner};
use rusqlite::Connection;
use tempfile::TempDir;

const ONE_IPU: &str = "training-pipeline";
const PIPELINED: &str = "training-pipelined";

/// A folder with these fixtures in folders below it; "" is the folder itself.
fn folder(engines: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for (name, fixture) in engines {
        let engine = folder.path().join(name);
        fs::create_dir_all(&engine).expect("a folder");
        copy(fixture, &engine);
    }
    folder
}

fn run(folder: &Path, options: &[&str]) -> Run {
    let path = folder.to_str().expect("a plain path");
    popliner([path].iter().chain(options))
}

fn reads(run: &Run, path: &str) -> bool {
    let line = run.err.lines().find(|line| line.starts_with("reading "));
    line.is_some_and(|line| line.ends_with(path))
}

#[test]
fn the_profile_in_it_or_one_folder_below_is_read() {
    for (engine, path) in [("", "/profile.pop"), ("training", "/training/profile.pop")] {
        let folder = folder(&[(engine, ONE_IPU)]);
        let run = run(folder.path(), &["--solve", "--num-ipus=4"]);
        assert_eq!(run.code, 0, "{engine}: {run:?}");
        assert!(reads(&run, path), "{engine}: {run:?}");
    }
    // The debug contexts may be one folder above the profile.
    let folder = folder(&[("training", ONE_IPU)]);
    let debug = folder.path().join("training/debug.cbor");
    fs::rename(debug, folder.path().join("debug.cbor")).expect("a move");
    assert_eq!(run(folder.path(), &["--solve", "--num-ipus=4"]).code, 0);
}

#[test]
fn of_several_the_only_one_that_can_be_split_is_taken() {
    let folder = folder(&[("inference", PIPELINED), ("training", ONE_IPU)]);
    let run = run(folder.path(), &["--solve", "--num-ipus=4"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(reads(&run, "/training/profile.pop"), "{run:?}");
}

#[test]
fn several_that_could_answer_are_listed_with_what_they_are() {
    let engines = [
        ("a", PIPELINED),
        ("b", ONE_IPU),
        ("c", ONE_IPU),
        ("d", ONE_IPU),
    ];
    let folder = folder(&engines);
    let without = Connection::open(folder.path().join("c/profile.pop")).expect("a profile");
    without
        .execute_batch("DELETE FROM vars_info")
        .expect("no variables");
    drop(without);
    fs::write(folder.path().join("d/profile.pop"), "no profile").expect("a file");
    let both = [&["--solve"][..], &["--fit"]].map(|options| run(folder.path(), options));
    let [solve, fit] = &both;
    // Only b can be split, and all can be judged.
    assert!(reads(solve, "/b/profile.pop"), "{solve:?}");
    assert_eq!((fit.code, &*fit.out), (2, ""), "{fit:?}");
    for part in [
        "there are 4 profiles below this folder; give one of them:\n",
        "/a/profile.pop: 4 IPUs, with lowered variables, executed\n",
        "/b/profile.pop: 1 IPU, with lowered variables\n",
        "/c/profile.pop: 1 IPU, without lowered variables\n",
        "/d/profile.pop: this is no SQLite database",
    ] {
        assert!(fit.err.contains(part), "{part} in {}", fit.err);
    }
}

#[test]
fn a_folder_without_a_profile_says_what_it_has() {
    let folder = TempDir::new().expect("a folder");
    let empty = run(folder.path(), &["--solve"]);
    assert_eq!((empty.code, &*empty.out), (3, ""), "{empty:?}");
    assert!(
        empty
            .err
            .contains("one folder below; it is empty; give the folder that")
    );
    for name in ["archive.a", "debug.cbor"] {
        fs::write(folder.path().join(name), "").expect("a file");
    }
    let other = run(folder.path(), &["--solve"]);
    assert!(
        other.err.contains("it has archive.a, debug.cbor; give"),
        "{other:?}"
    );
    assert!(other.err.contains("autoReport.directory"), "{other:?}");
}
