//! Paths that are no files, or that cannot be written to: each is reported before anything is read.

use crate::support::{copy, finish, piped, popliner};
use std::path::Path;

/// Runs `work` in a folder of its own, with both files of a fixture.
fn in_folder(work: impl FnOnce(&Path, [String; 2])) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = copy("poplar-mlp", folder.path());
    work(folder.path(), files.map(|file| file.display().to_string()));
}

#[cfg(unix)]
#[test]
fn pipes_are_no_debug_files_that_are_looked_for() {
    in_folder(|_, [profile, debug]| {
        std::fs::remove_file(&debug).expect("a file");
        finish(piped("mkfifo").arg(&debug)).exits(0);
        popliner([&*profile, "--solve"]).refuses(3, &["there is no debug.cbor beside"]);
        popliner([&*profile, "--fit"]).exits(1);
    });
}

#[test]
fn nothing_is_written_where_sqlite_keeps_changes_of_the_profile() {
    in_folder(|_, [profile, debug]| {
        for end in ["-wal", "-journal", "-shm"] {
            let output = format!("--export-json={profile}{end}");
            let run = popliner([&*profile, &*debug, "--solve", &*output]);
            run.refuses(2, &["changes to the profile"]);
        }
        popliner([&*profile, &*debug, "--list-layers"]).exits(0);
    });
}

#[test]
fn folders_of_outputs_are_looked_at_before_anything_is_read() {
    in_folder(|folder, [_, debug]| {
        let missing = folder.join("missing/x.json");
        for (output, cure) in [
            (&*missing, "the folder does not exist; give a path"),
            (folder, "it is not a regular file"),
        ] {
            for option in ["--export-json", "--export-html", "--save-to-file"] {
                let option = format!("{option}={}", output.display());
                let run = popliner(["nowhere.pop", &*debug, "--solve", &*option]);
                run.refuses(3, &[cure, output.to_str().expect("a plain path")]);
            }
        }
        assert_eq!(std::fs::read_dir(folder).expect("a folder").count(), 2);
    });
}

#[test]
fn what_is_typed_by_habit_is_understood() {
    assert_eq!(popliner(["help"]).exits(0).out, popliner(["--help"]).out);
}
