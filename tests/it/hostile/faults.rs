//! Faults around the tool: no partial file under the final name, unchanged inputs, and the right
//! exit code.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::hostile::cases::{Case, limited, snapshot};
use crate::support::{finish, finish_unread, piped};

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

/// Help and version are results too.
#[test]
fn help_on_a_full_disk() {
    let options = [
        "-h",
        "--help",
        "--version",
        "--generate=man",
        "--generate=complete-zsh",
    ];
    for option in options {
        let mut command = limited("", &[OsStr::new(option)]);
        let full = File::options().write(true).open("/dev/full").unwrap();
        let run = finish(command.stdout(Stdio::from(full)));
        assert_eq!(run.code, 3, "{option}: {run:?}");
        let expected = "error: standard output cannot be written to: No space left";
        assert!(run.err.starts_with(expected), "{option}: {run:?}");
        let run = finish_unread(&mut limited("", &[OsStr::new(option)]));
        assert_eq!((run.code, &*run.err), (0, ""), "{option}: {run:?}");
    }
}

/// A reader who closes the pipe causes no error, and the exit code still gives the verdict.
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
    let export = format!("--export-html={}", saved.display());
    for old in [None, Some("what stood there")] {
        if let Some(old) = old {
            fs::write(&saved, old).unwrap();
        }
        let before = snapshot(case.folder.path());
        // Files are limited to few blocks; the system sends a signal for larger ones.
        for few in ["ulimit -f 1", "trap '' XFSZ; ulimit -f 1"] {
            for option in [&option, &export] {
                let run = finish(&mut limited(few, &arguments(&case, &[option])));
                assert_eq!(run.code, 3, "{run:?}");
                assert!(
                    run.err.contains("saved: ") && run.err.contains("File too large"),
                    "{run:?}"
                );
                assert!(before == snapshot(case.folder.path()));
            }
        }
    }
    for place in ["/dev/full", "/nowhere/saved", "/"] {
        let option = format!("--save-to-file={place}");
        let run = finish(&mut limited("", &arguments(&case, &[&option])));
        assert_eq!(run.code, 3, "{run:?}");
        assert!(run.err.contains(place), "{run:?}");
    }
}

/// A run that is killed at any time leaves the old file or the whole new one.
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
            // A killed run leaves a temporary file with a name of its own.
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with(".popliner-") {
                fs::remove_file(path).unwrap();
            }
        }
        assert_eq!(snapshot(case.folder.path()).len(), before);
    }
}

/// A run that a signal ends at any time leaves only the old file or the whole new one.
#[test]
fn a_signal_while_saving() {
    let case = Case::new();
    let saved = case.folder.path().join("saved");
    let option = format!("--save-to-file={}", saved.display());
    finish(&mut limited("", &arguments(&case, &[&option])));
    let whole = fs::read(&saved).unwrap();
    let before = snapshot(case.folder.path()).len();
    for (delay, signal) in (0..40)
        .step_by(2)
        .zip([("TERM", 143), ("INT", 130)].iter().cycle())
    {
        fs::write(&saved, "old").unwrap();
        let mut command = limited("", &arguments(&case, &[&option]));
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay * delay / 8));
        let kill = [&format!("-{}", signal.0), &child.id().to_string()];
        let _ = Command::new("kill")
            .args(kill)
            .stderr(Stdio::null())
            .status();
        let status = child.wait().unwrap();
        // Before the tool handles the signal, the signal ends it as it ends any program.
        let codes = [Some(0), Some(signal.1), None];
        assert!(codes.contains(&status.code()), "{status}");
        let now = fs::read(&saved).unwrap();
        assert!(now == b"old" || now == whole, "half a file after {delay}");
        assert_eq!(snapshot(case.folder.path()).len(), before);
    }
}

/// With too little memory, a run ends with an error, or the system ends it. Nothing is left behind,
/// and nothing panics.
#[test]
fn little_memory() {
    let case = Case::new();
    let saved = case.folder.path().join("saved");
    let option = format!("--save-to-file={}", saved.display());
    let expected = finish(&mut limited("", &arguments(&case, &["--solve", &option])));
    let whole = fs::read(&saved).unwrap();
    let mut done = 0;
    // Less than the program itself and its libraries take ends before it begins.
    let program = fs::metadata(env!("CARGO_BIN_EXE_popliner")).unwrap().len() >> 20;
    let limits = |step| (program + 8..program + 160).step_by(step);
    let few_threads = limits(14).map(|mib| (mib, ""));
    let many_threads = limits(60).map(|mib| (mib, "100000"));
    for (mib, threads) in few_threads.chain(many_threads) {
        fs::write(&saved, "old").unwrap();
        let before = snapshot(case.folder.path());
        let script = format!("ulimit -c 0; ulimit -v {}; \"$0\" \"$@\"", mib << 10);
        let mut command = piped("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_popliner")]);
        command.args(arguments(&case, &["--solve", &option]));
        let run = finish(command.env("RAYON_NUM_THREADS", threads));
        let now = fs::read(&saved).unwrap();
        assert!(now == b"old" || now == whole, "half a file with {mib} MiB");
        match run.code {
            0 => done += usize::from(run.out == expected.out && now == whole),
            3 => assert!(run.err.contains("error: "), "{run:?}"),
            // The system has no memory for the program itself.
            126 | 127 | 139 => assert!(mib < program + 16, "{run:?}"),
            // SIGABRT
            134 => assert!(run.err.contains("memory allocation of "), "{run:?}"),
            _ => panic!("{mib} MiB: {run:?}"),
        }
        let names = |files: Vec<(PathBuf, _)>| files.into_iter().map(|file| file.0);
        assert!(names(before).eq(names(snapshot(case.folder.path()))));
    }
    assert!(done > 5, "{done}");
}

#[test]
fn more_threads_than_a_machine_has() {
    let case = Case::new();
    let run = |threads| {
        let mut command = limited("", &arguments(&case, &["--solve"]));
        finish(command.env("RAYON_NUM_THREADS", threads))
    };
    let [few, many] = ["1", "100000"].map(run);
    assert_eq!((many.code, many.out), (few.code, few.out), "{}", many.err);
}

fn profile() -> std::path::PathBuf {
    let fixture = Path::new("fixtures").join(crate::hostile::cases::FIXTURE);
    crate::support::root().join(fixture).join("profile.pop")
}
