//! Files that are wrong or missing: the message, and that they stay unchanged.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::{
    FIXTURES, ONE_IPU_FIXTURES, Run, command, copy, finish, one_line, popliner, run_fixture,
    sample, sample_pair, skip,
};
use rusqlite::Connection;
use tempfile::TempDir;

const FIXTURE: &str = "poplar-mlp";

fn fixture_with(options: &[&str]) -> Run {
    run_fixture(FIXTURE, options)
}

/// Checks that both files are refused with one line that contains every part.
fn refused(profile: &Path, debug: &Path, parts: &[&str]) {
    let run = popliner([profile, debug, Path::new("--solve")]);
    let line = one_line(&run, 3);
    for part in parts {
        assert!(line.contains(part), "{part:?} in {line}");
    }
}

#[test]
fn files_that_are_no_profile() {
    let folder = TempDir::new().unwrap();
    let [profile, debug] = copy(FIXTURE, folder.path());
    let file = |name: &str| folder.path().join(name);
    fs::write(file("text"), "This is no profile.\n").unwrap();
    fs::write(file("empty"), "").unwrap();
    fs::write(
        file("bare.cbor"),
        b"\xa2\x68contexts\x9f\xff\x6bstringTable\x80",
    )
    .unwrap();
    fs::write(file("archive.a"), "!<arch>\nname/").unwrap();
    let other = Connection::open(file("other")).unwrap();
    other
        .execute_batch("CREATE TABLE notes (note TEXT)")
        .unwrap();
    drop(other);
    let of_profile: [(&str, &[&str]); 6] = [
        ("text", &["text: ", "not an SQLite database"]),
        ("empty", &["empty: ", "the file is empty"]),
        ("other", &["other: ", "but not a profile", "version_info"]),
        ("missing", &["missing: ", "No such file"]),
        (
            "archive.a",
            &[
                "archive.a: ",
                "an archive of compiled code",
                "give the profile.pop",
            ],
        ),
        (
            "debug.cbor",
            &[
                "debug.cbor: ",
                "give profile.pop first and debug.cbor second",
            ],
        ),
    ];
    for (name, parts) in of_profile {
        refused(&file(name), &debug, parts);
    }
    let of_debug: [(&str, &[&str]); 7] = [
        (
            "bare.cbor",
            &[
                "bare.cbor: ",
                "it has no contexts",
                "autoReport.outputDebugInfo",
            ],
        ),
        ("text", &["text: ", "a text file"]),
        ("empty", &["empty: ", "the file is empty"]),
        ("other", &["other: ", "an SQLite database"]),
        ("missing", &["missing: ", "No such file"]),
        ("", &["Is a directory"]),
        (
            "profile.pop",
            &[
                "profile.pop: ",
                "give profile.pop first and debug.cbor second",
            ],
        ),
    ];
    for (name, parts) in of_debug {
        refused(&profile, &file(name), parts);
    }
    refused(
        &debug,
        &profile,
        &["give profile.pop first and debug.cbor second"],
    );
}

/// Copies the fixture and runs SQL on the profile.
fn altered(folder: &Path, sql: &str) -> [PathBuf; 2] {
    let files = copy(FIXTURE, folder);
    let connection = Connection::open(&files[0]).unwrap();
    connection.execute_batch(sql).expect(sql);
    files
}

#[test]
fn profiles_that_lack_something() {
    let cases: [(&str, &[&str]); 6] = [
        (
            "DELETE FROM vars_info",
            &[
                "POPLAR_ENGINE_OPTIONS",
                "autoReport.all",
                "autoReport.outputLoweredVars",
            ],
        ),
        ("DROP TABLE vars_info", &["autoReport.outputLoweredVars"]),
        ("DROP TABLE eq_classes", &["`eq_classes`", "3.8.0"]),
        (
            "DROP TABLE depth_first_steps",
            &["`depth_first_steps`", "3.8.0"],
        ),
        (
            "ALTER TABLE programs RENAME COLUMN children TO offspring",
            &["`children`", "`programs`", "3.8.0"],
        ),
        (
            "UPDATE target_info SET num_tiles = 32, num_ipus = 2",
            &["2 IPUs", "one IPU"],
        ),
    ];
    for (sql, parts) in cases {
        let folder = TempDir::new().unwrap();
        let [profile, debug] = altered(folder.path(), sql);
        let named = [&["profile.pop: "], parts].concat();
        refused(&profile, &debug, &named);
    }
}

#[test]
fn a_cyclic_program_is_named() {
    let folder = TempDir::new().unwrap();
    // The root becomes the only child of its own last program.
    let sql = "UPDATE programs SET children = x'80' WHERE id = (SELECT max(id) FROM programs)";
    let [profile, debug] = altered(folder.path(), sql);
    refused(&profile, &debug, &["profile.pop: ", "program 0"]);
}

/// Returns the contents of a folder: names, bytes, times and permissions.
fn snapshot(folder: &Path) -> Vec<(OsString, Vec<u8>, std::time::SystemTime, u32)> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut all: Vec<_> = entries
        .map(|entry| {
            let about = entry.metadata().unwrap();
            let bytes = fs::read(entry.path()).unwrap();
            let modified = about.modified().unwrap();
            (
                entry.file_name(),
                bytes,
                modified,
                about.permissions().mode(),
            )
        })
        .collect();
    all.sort();
    all
}

#[test]
fn nothing_is_written_beside_the_inputs() {
    for fixture in FIXTURES {
        let folder = TempDir::new().unwrap();
        let [profile, debug] = copy(fixture, folder.path());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
        let before = snapshot(folder.path());
        let changed = fs::metadata(folder.path()).unwrap().modified().unwrap();
        let options = [
            "--solve",
            "--layer-breakdown",
            "--memory-totals",
            "--diagnose",
        ];
        let files = [profile.as_os_str(), debug.as_os_str()];
        let run = popliner(files.into_iter().chain(options.map(OsStr::new)));
        assert!(run.code < 2, "{run:?}");
        assert_eq!(before.len(), 2);
        assert!(before == snapshot(folder.path()), "{fixture}");
        let after = fs::metadata(folder.path()).unwrap().modified().unwrap();
        assert_eq!(changed, after, "{fixture}");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn the_debug_file_is_found_beside_the_profile_and_one_folder_above() {
    let folder = TempDir::new().unwrap();
    let [profile, debug] = copy(FIXTURE, folder.path());
    let inner = folder.path().join("training");
    fs::create_dir(&inner).unwrap();
    let deep = inner.join("profile.pop");
    fs::copy(&profile, &deep).unwrap();
    let table = |profile: &Path| popliner([profile, Path::new("--layer-breakdown")]);
    let expected = fixture_with(&["--layer-breakdown"]);
    for profile in [&profile, &deep] {
        let run = table(profile);
        assert_eq!((run.code, &run.out), (0, &expected.out), "{run:?}");
    }
    // A path without a folder, from the folder of the profile.
    for from in [folder.path(), &inner] {
        let mut command = command(["profile.pop", "--layer-breakdown"]);
        let run = finish(command.current_dir(from));
        assert_eq!((run.code, &run.out), (0, &expected.out), "{run:?}");
    }
    fs::remove_file(debug).unwrap();
    let run = table(&deep);
    let line = one_line(&run, 3);
    assert!(line.contains("there is no debug.cbor beside"), "{line}");
    // Errors about the profile come first.
    let inside = |name: &str| inner.join(name);
    fs::write(inside("README.md"), "# Not a profile\n").unwrap();
    fs::write(inside("empty"), "").unwrap();
    let other = Connection::open(inside("other.db")).unwrap();
    other.execute_batch("CREATE TABLE notes (text)").unwrap();
    let cases = [
        (
            "other.db",
            "other.db: the file is an SQLite database, but not a profile: it has no table \
             `version_info`",
        ),
        ("nothere", "nothere: it cannot be read: No such file"),
        ("README.md", "README.md: the file is not an SQLite database"),
        ("empty", "empty: the file is empty"),
    ];
    for (name, message) in cases {
        let run = table(&inside(name));
        let line = one_line(&run, 3);
        assert!(line.contains(message), "{message} in {line}");
    }
}

/// Cannot be tested if reading is always allowed, such as for the superuser.
#[test]
fn a_file_that_may_not_be_read_is_said_to_be_closed() {
    let folder = TempDir::new().unwrap();
    let [profile, debug] = copy(FIXTURE, folder.path());
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    let inner = copy(FIXTURE, &closed);
    let close = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
    [&profile, &debug, &closed]
        .into_iter()
        .for_each(|path| close(path));
    if fs::read(&profile).is_ok() {
        skip("this user may read everything");
        return;
    }
    let message = "you have no permission to read it: ";
    let cases: [&[&Path]; 5] = [
        &[&profile],
        &[&profile, &debug],
        &[&inner[0]],
        &[&closed],
        &[&closed.join("nothere")],
    ];
    for case in cases {
        let run = popliner(case);
        let line = one_line(&run, 3);
        assert!(line.contains(message), "{case:?}: {line}");
    }
    fs::set_permissions(&profile, fs::Permissions::from_mode(0o644)).unwrap();
    let run = popliner([&profile]);
    let line = one_line(&run, 3);
    let parts = ["debug.cbor: ", message];
    assert!(parts.iter().all(|part| line.contains(part)), "{line}");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Checks that the warning about a trusted file is in every form that has a verdict.
fn warned_of_everywhere(profile: &Path, debug: &Path, message: &str) {
    let folder = TempDir::new().unwrap();
    let forms = ["json", "markdown", "html"];
    let file = |form: &str| folder.path().join(form);
    let exports = forms.map(|form| format!("--export-{form}={}", file(form).display()));
    let files = [profile.to_str().unwrap(), debug.to_str().unwrap()];
    let fixed = ["--trust-debug-info", "-q", "--layer-name-regex=auto"].into_iter();
    let saved = format!("--save-to-file={}", file("saved").display());
    let arguments = files.into_iter().chain(fixed);
    let exports = exports.iter().map(String::as_str);
    let run = popliner(arguments.chain([&*saved]).chain(exports));
    assert_eq!(run.code, 0, "{run:?}");
    for form in forms {
        let text = fs::read_to_string(file(form)).unwrap();
        assert!(text.contains(message), "{message} in {form}");
    }
    // A saved model keeps the warning.
    let again = popliner([file("saved").to_str().unwrap(), "-q", "--layer-breakdown"]);
    for run in [run, again] {
        let is_warning = |line: &str| line.starts_with("warning: ") && line.contains(message);
        assert!(run.err.lines().any(is_warning), "{run:?}");
    }
}

#[test]
fn a_debug_file_cut_off_is_refused_unless_it_is_trusted() {
    for fixture in ONE_IPU_FIXTURES {
        let folder = TempDir::new().unwrap();
        let [profile, debug] = copy(fixture, folder.path());
        let bytes = fs::read(&debug).unwrap();
        for part in [1, 7, 9] {
            let length = bytes.len() * part / 10;
            fs::write(&debug, &bytes[..length]).unwrap();
            let message = format!("cut off at byte {length}, contexts read: ");
            let parts = [&*message, "copy debug.cbor again", "--trust-debug-info"];
            refused(&profile, &debug, &parts);
            // Without the string table, which has all its names, plain Poplar has no layers.
            if part == 7 && fixture != "poplar-mlp" {
                warned_of_everywhere(&profile, &debug, &format!("cut off at byte {length}"));
            }
        }
    }
}

/// Its contexts belong to the other sample, and its names are lost.
#[test]
fn the_real_file_that_was_cut_off_is_refused_unless_it_is_trusted() {
    let cut = sample("firehose-truncated.debug.cbor");
    let (Some([profile, _]), Some(cut)) = (sample_pair(), cut) else {
        return;
    };
    let message = "cut off at byte 8193, contexts read: 68, ";
    refused(
        &profile,
        &cut,
        &["is damaged: ", message, "--trust-debug-info"],
    );
    let run = popliner([&profile, &cut, Path::new("--layer-breakdown")]);
    one_line(&run, 3);
    warned_of_everywhere(&profile, &cut, "cut off at byte 8193");
    // `--fit` uses only the names in the debug file.
    let whole = popliner([&profile, Path::new("--fit")]);
    let run = popliner([&profile, &cut, Path::new("--fit")]);
    assert_eq!((run.code, &run.out), (whole.code, &whole.out), "{run:?}");
    let left_out = "layers on IPUs are left out: ";
    assert!(
        run.err.contains(left_out) && run.err.contains(message),
        "{run:?}"
    );
}

#[test]
fn paths_with_odd_names() {
    let names: [&[u8]; 6] = [
        b"with space",
        b"what?mode=memory",
        b"a#b",
        b"100%25",
        b"file:x",
        b"not \xff UTF-8",
    ];
    let expected = fixture_with(&["--layer-breakdown"]).out;
    for name in names {
        let folder = TempDir::new().unwrap();
        let inner = folder.path().join(OsStr::from_bytes(name));
        fs::create_dir(&inner).unwrap();
        let [profile, debug] = copy(FIXTURE, &inner);
        let file = [name, b".pop"].concat();
        let odd = inner.join(OsStr::from_bytes(&file));
        fs::rename(profile, &odd).unwrap();
        for run in [
            popliner([&odd, &debug, Path::new("--layer-breakdown")]),
            popliner([&odd, Path::new("--layer-breakdown")]),
        ] {
            assert_eq!((run.code, &run.out), (0, &expected), "{run:?}");
            assert!(
                !run.err.contains("warning") && !run.err.contains("error"),
                "{}",
                run.err
            );
        }
        fs::write(&odd, "no profile").unwrap();
        let run = popliner([&odd, Path::new("--layer-breakdown")]);
        one_line(&run, 3);
    }
}
