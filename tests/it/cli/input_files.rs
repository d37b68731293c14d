//! Wrong and missing files: the tool prints the right message, and leaves the files unchanged.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::{
    FIXTURES, ONE_IPU_FIXTURES, Words, command, copy, finish, popliner, run_fixture, skip,
};
use tempfile::TempDir;

const FIXTURE: &str = "poplar-mlp";

/// Checks that both files are refused with an error that contains every part.
fn refused(profile: &Path, debug: &Path, parts: &[&str]) {
    popliner([profile, debug, Path::new("--solve")]).refuses(3, parts);
}

/// An option that prints a table from a profile.
const TABLE: &str = "--layer-breakdown";

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn nothing_is_written_beside_the_inputs() {
    for fixture in FIXTURES {
        let folder = TempDir::new().unwrap();
        let files = copy(fixture, folder.path());
        set_mode(folder.path(), 0o555);
        let read = || files.each_ref().map(|path| fs::read(path).unwrap());
        let before = read();
        let changed = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        let times = [&files[0], &files[1], folder.path()].map(changed);
        let options = "--solve --layer-breakdown --memory-totals --diagnose".words();
        let arguments = files.iter().map(|file| file.as_os_str());
        let run = popliner(arguments.chain(options.into_iter().map(OsStr::new)));
        assert!(run.code < 2, "{run:?}");
        // Creating or removing a file changes the time of its folder.
        assert_eq!(times, [&files[0], &files[1], folder.path()].map(changed));
        assert!(before == read(), "{fixture}");
        set_mode(folder.path(), 0o755);
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
    let expected = run_fixture(FIXTURE, TABLE);
    for (path, from) in [
        (&*profile, Path::new("/")),
        (&*deep, Path::new("/")),
        // The path has no folder: the tool runs in the folder of the profile.
        (Path::new("profile.pop"), folder.path()),
        (Path::new("profile.pop"), &inner),
    ] {
        let run = finish(command([path, Path::new(TABLE)]).current_dir(from));
        assert_eq!(run.exits(0).out, expected.out, "{run:?}");
    }
    fs::remove_file(debug).unwrap();
    popliner([&deep, Path::new(TABLE)]).refuses(3, &["there is no debug.cbor beside"]);
}

/// This cannot be tested for users who may read every file, such as the superuser.
#[test]
fn a_file_that_may_not_be_read_is_said_to_be_closed() {
    let folder = TempDir::new().unwrap();
    let [profile, debug] = copy(FIXTURE, folder.path());
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    let inner = copy(FIXTURE, &closed);
    for path in [&profile, &debug, &closed] {
        set_mode(path, 0o000);
    }
    if fs::read(&profile).is_ok() {
        return skip("this user may read everything");
    }
    let message = "you have no permission to read it: ";
    for path in [&profile, &inner[0], &closed, &closed.join("nothere")] {
        popliner([path]).refuses(3, &[message]);
    }
    popliner([&profile, &debug]).refuses(3, &[message]);
    set_mode(&profile, 0o644);
    popliner([&profile]).refuses(3, &["debug.cbor: ", message]);
    set_mode(&closed, 0o755);
}

/// Checks that all forms of output have the warning about a damaged file that is accepted.
fn warned_of_everywhere(profile: &Path, debug: &Path, message: &str) {
    let folder = TempDir::new().unwrap();
    let at = folder.path().display();
    let options = format!(
        "{} {} --allow-incomplete -q --layer-name-regex=auto --save-to-file={at}/saved \
         --export-json={at}/json --export-markdown={at}/markdown --export-html={at}/html",
        profile.display(),
        debug.display()
    );
    popliner(options.words()).exits(3).warns(&[message]);
    for form in ["json", "markdown", "html"] {
        let text = fs::read_to_string(folder.path().join(form)).unwrap();
        assert!(text.contains(message), "{message} in {form}");
    }
    // A saved model keeps the warning.
    let saved = format!("{at}/saved");
    popliner([&*saved, "-q", TABLE]).refuses(3, &[message]);
    popliner([&*saved, "-q", TABLE, "--allow-incomplete"]).warns(&[message]);
}

#[test]
fn a_debug_file_cut_off_has_no_verdict() {
    for fixture in ONE_IPU_FIXTURES {
        let folder = TempDir::new().unwrap();
        let [profile, debug] = copy(fixture, folder.path());
        let bytes = fs::read(&debug).unwrap();
        for part in [1, 7, 9] {
            let length = bytes.len() * part / 10;
            fs::write(&debug, &bytes[..length]).unwrap();
            let message = format!("cut off at byte {length}, contexts read: ");
            let parts = [&*message, "copy debug.cbor again", "--allow-incomplete"];
            refused(&profile, &debug, &parts);
            // Without the string table, which has all its names, plain Poplar has no layers.
            if part == 7 && fixture != FIXTURE {
                warned_of_everywhere(&profile, &debug, &format!("cut off at byte {length}"));
            }
        }
    }
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
    let expected = run_fixture(FIXTURE, TABLE).out;
    for name in names {
        let folder = TempDir::new().unwrap();
        let inner = folder.path().join(OsStr::from_bytes(name));
        fs::create_dir(&inner).unwrap();
        let [profile, debug] = copy(FIXTURE, &inner);
        let odd: PathBuf = inner.join(OsStr::from_bytes(&[name, b".pop"].concat()));
        fs::rename(profile, &odd).unwrap();
        let alone: &[&Path] = &[&odd, Path::new(TABLE)];
        for run in [popliner([&odd, &debug, Path::new(TABLE)]), popliner(alone)] {
            assert_eq!(run.exits(0).out, expected, "{run:?}");
            let is_silent = !run.err.contains("warning") && !run.err.contains("error");
            assert!(is_silent, "{run:?}");
        }
        fs::write(&odd, "no profile").unwrap();
        popliner(alone).refuses(3, &[]);
    }
}
