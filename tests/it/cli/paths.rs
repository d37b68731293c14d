//! Paths that are no files, or that cannot be written to: each is reported before anything is read.

use crate::support::{copy, one_line, popliner, run_fixture};

const FIXTURE: &str = "poplar-mlp";

/// Runs `work` in a folder of its own, with both files of a fixture.
fn in_folder(work: impl FnOnce(&std::path::Path, [String; 2])) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = copy(FIXTURE, folder.path());
    work(folder.path(), files.map(|file| file.display().to_string()));
}

#[cfg(unix)]
#[test]
fn pipes_are_neither_profiles_nor_debug_files_that_are_looked_for() {
    in_folder(|folder, [profile, debug]| {
        let make = |path: &str| {
            let made = std::process::Command::new("mkfifo").arg(path).status();
            assert!(made.expect("mkfifo").success());
        };
        std::fs::remove_file(&debug).expect("a file");
        make(&debug);
        let run = popliner([&*profile, "--solve"]);
        assert!(
            one_line(&run, 3).contains("there is no debug.cbor beside"),
            "{run:?}"
        );
        let run = popliner([&*profile, "--fit"]);
        assert_eq!(run.code, 1, "{run:?}");
        let pipe = folder.join("pipe.pop").display().to_string();
        make(&pipe);
        let run = popliner([&*pipe, "--solve"]);
        assert!(
            one_line(&run, 3).contains("this is a pipe or a device"),
            "{run:?}"
        );
    });
}

#[test]
fn nothing_is_written_where_sqlite_keeps_changes_of_the_profile() {
    in_folder(|_, [profile, debug]| {
        for end in ["-wal", "-journal", "-shm"] {
            let output = format!("--export-json={profile}{end}");
            let run = popliner([&*profile, &*debug, "--solve", &*output]);
            assert!(
                one_line(&run, 2).contains("changes to the profile"),
                "{run:?}"
            );
        }
        assert_eq!(popliner([&*profile, &*debug, "--list-layers"]).code, 0);
    });
}

#[test]
fn folders_of_outputs_are_looked_at_before_anything_is_read() {
    in_folder(|folder, [_, debug]| {
        let missing = folder.join("missing/x.json").display().to_string();
        let itself = folder.display().to_string();
        for (output, cure) in [
            (&missing, "the folder does not exist; give a path"),
            (&itself, "it is not a regular file"),
        ] {
            for option in ["--export-json", "--export-html", "--save-to-file"] {
                let option = format!("{option}={output}");
                let run = popliner(["nowhere.pop", &*debug, "--solve", &*option]);
                assert!(one_line(&run, 3).contains(cure), "{option}: {run:?}");
            }
        }
        assert_eq!(std::fs::read_dir(folder).expect("a folder").count(), 2);
    });
}

#[test]
fn what_is_typed_by_habit_is_understood() {
    let run = popliner(["help"]);
    assert_eq!((run.code, &*run.out), (0, &*popliner(["--help"]).out));
    let run = run_fixture(FIXTURE, &["--num-ipus", "-2"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.err.contains("a number from 1 to"), "{run:?}");
}

#[test]
fn a_step_that_takes_too_long_is_a_failure_in_words_too() {
    let options = ["--solve", "--num-ipus=4", "--max-step-ms=10"];
    for quiet in [&[][..], &["-q"]] {
        let run = run_fixture("training-pipeline", &[&options, quiet].concat());
        assert_eq!(run.code, 1, "{run:?}");
        assert!(
            !run.err.contains("SUCCESS") && !run.err.contains("next:"),
            "{run:?}"
        );
        let is_quiet = !quiet.is_empty();
        assert_eq!(run.err.contains("FAILURE: [ In 0 |"), !is_quiet, "{run:?}");
    }
}
