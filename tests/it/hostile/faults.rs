//! What goes wrong around the tool: no half file under the final name, inputs
//! untouched, and an exit code that says so.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::hostile::cases::{Case, limited, snapshot};
use crate::support::{finish, finish_unread};

fn arguments<'a>(case: &'a Case, more: &[&'a str]) -> Vec<&'a OsStr> {
    let files = [case.profile.as_os_str(), case.debug.as_os_str()];
    files
        .into_iter()
        .chain(more.iter().map(|o| OsStr::new(*o)))
        .collect()
}

#[test]
fn standard_output_on_a_full_disk() {
    let case = Case::new();
    for option in ["--solve", "--operation-breakdown", "--diagnose"] {
        let mut command = limited("", &arguments(&case, &[option]));
        let full = File::options().write(true).open("/dev/full").unwrap();
        let run = finish(command.stdout(Stdio::from(full)));
        assert_eq!(run.code, 3, "{run:?}");
        assert!(
            run.err
                .contains("error: standard output cannot be written to"),
            "{run:?}"
        );
        assert!(run.err.contains("No space left"), "{run:?}");
    }
}

/// The reader has had enough: that is no error, and the code tells the verdict.
#[test]
fn a_closed_pipe() {
    let case = Case::new();
    for (option, code) in [("--num-ipus=3", 0), ("--mem-per-tile=1000", 1)] {
        let mut command = limited("", &arguments(&case, &["--solve", option]));
        let run = finish_unread(&mut command);
        assert_eq!(run.code, code, "{run:?}");
        assert!(!run.err.contains("error"), "{run:?}");
    }
}

#[test]
fn saving_on_a_full_disk() {
    let case = Case::new();
    let saved = case.folder.path().join("saved");
    let option = format!("--save-to-file={}", saved.display());
    for old in [None, Some("what stood there")] {
        if let Some(old) = old {
            fs::write(&saved, old).unwrap();
        }
        let before = snapshot(case.folder.path());
        // Files may have so many blocks, and the signal for more is ignored.
        let few = "trap '' XFSZ; ulimit -f 1";
        let run = finish(&mut limited(few, &arguments(&case, &[&option])));
        assert_eq!(run.code, 3, "{run:?}");
        assert!(
            run.err.contains("saved: ") && run.err.contains("File too large"),
            "{run:?}"
        );
        assert!(before == snapshot(case.folder.path()));
    }
    for place in ["/dev/full", "/nowhere/saved", "/"] {
        let option = format!("--save-to-file={place}");
        let run = finish(&mut limited("", &arguments(&case, &[&option])));
        assert_eq!(run.code, 3, "{run:?}");
        assert!(run.err.contains(place), "{run:?}");
    }
}

/// Killed at any time, there is the old file or the whole new one.
#[test]
fn a_kill_while_saving() {
    let case = Case::new();
    let saved = case.folder.path().join("saved");
    let option = format!("--save-to-file={}", saved.display());
    finish(&mut limited("", &arguments(&case, &[&option])));
    let whole = fs::read(&saved).unwrap();
    let before = snapshot(case.folder.path()).len();
    for delay in (0..60).step_by(3) {
        fs::write(&saved, "old").unwrap();
        let mut command = limited("", &arguments(&case, &[&option]));
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(delay * delay / 8));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert!(status.signal() == Some(9) || status.success(), "{status}");
        let now = fs::read(&saved).unwrap();
        assert!(now == b"old" || now == whole, "half a file after {delay}");
        assert_eq!(
            fs::read(&case.profile).unwrap(),
            fs::read(profile()).unwrap()
        );
        for (path, _) in snapshot(case.folder.path()) {
            // What a kill leaves has a name of its own.
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with(".popliner-") {
                fs::remove_file(path).unwrap();
            }
        }
        assert_eq!(snapshot(case.folder.path()).len(), before);
    }
}

fn profile() -> std::path::PathBuf {
    let fixture = Path::new("fixtures").join(crate::hostile::cases::FIXTURE);
    crate::support::root().join(fixture).join("profile.pop")
}
