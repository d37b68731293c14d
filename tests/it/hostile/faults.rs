//! Faults around the tool: no partial file under the final name, unchanged inputs, and the right
//! exit code.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::cases::{Case, limited, snapshot};
use crate::support::{Run, Words, finish, finish_unread, piped, wait};

/// Options that write a file.
const WRITERS: &str = "--save-to-file --export-json --export-markdown --export-html";

/// Runs a command whose standard output is a full disk.
fn on_a_full_disk(command: &mut Command) {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let error = "error: standard output cannot be written to: No space left";
    finish(command.stdout(Stdio::from(full)))
        .exits(3)
        .says(error);
}

/// A full disk behind standard output is an error. A reader who closes the pipe causes no error, and
/// the exit code still gives the verdict.
#[test]
fn standard_output_on_a_full_disk_and_in_a_closed_pipe() {
    let case = Case::new();
    for (options, code) in [
        ("--solve --num-ipus=3", 0),
        ("--solve --mem-per-tile=1000", 1),
        ("--operation-breakdown", 0),
        ("--diagnose", 0),
        ("--solve --export-json=-", 0),
        ("--solve --format=csv", 0),
        ("--solve --export-markdown=-", 0),
        ("--solve --export-html=-", 0),
    ] {
        let command = || limited("", &case.arguments(options));
        on_a_full_disk(&mut command());
        let run = finish_unread(&mut command());
        assert!(!run.exits(code).err.contains("error"), "{run:?}");
    }
    // Help and version are results too.
    for option in "-h --help --version --generate=man --generate=complete-zsh".words() {
        let command = || limited("", &[OsStr::new(option)]);
        on_a_full_disk(&mut command());
        let run = finish_unread(&mut command());
        assert_eq!(run.exits(0).err, "", "{option}");
    }
}

#[test]
fn files_on_a_full_disk() {
    let case = Case::new();
    let file = case.folder.path().join("written");
    let write = |before: &str, option: &str, path: &Path| {
        let option = format!("{option}={}", path.display());
        finish(&mut limited(before, &case.arguments(&[option])))
    };
    for option in WRITERS.words() {
        for old in [None, Some("the old file")] {
            let _ = fs::remove_file(&file);
            if let Some(old) = old {
                fs::write(&file, old).unwrap();
            }
            let before = snapshot(case.folder.path());
            // `ulimit -f 0` allows no byte in any file.
            let run = write("trap '' XFSZ; ulimit -f 0", option, &file);
            run.exits(3).says("written: ").says("File too large");
            assert!(before == snapshot(case.folder.path()), "{option}");
        }
        for place in ["/dev/full", "/nowhere/written", "/"] {
            write("", option, Path::new(place)).exits(3).says(place);
        }
    }
}

/// A case whose runs save a file.
struct Saving {
    case: Case,
    file: PathBuf,
    options: String,
    run: Run,
    whole: Vec<u8>,
    files: usize,
}

impl Saving {
    fn new() -> Self {
        let case = Case::new();
        let file = case.folder.path().join("saved");
        let options = format!("--solve --save-to-file={}", file.display());
        let run = finish(&mut limited("", &case.arguments(&options)));
        Self {
            whole: fs::read(&file).unwrap(),
            files: snapshot(case.folder.path()).len(),
            case,
            file,
            options,
            run,
        }
    }

    /// Starts a run that replaces an old file, and ends it with `end` after `delay` milliseconds.
    /// Checks that the old file or the whole new one is left.
    fn ended(&self, delay: u64, end: impl Fn(&mut Child)) {
        fs::write(&self.file, "old").unwrap();
        let mut command = limited("", &self.case.arguments(&self.options));
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = quiet.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        end(&mut child);
        self.has_one_file(&format!("after {delay} ms"));
    }

    fn has_one_file(&self, when: &str) {
        let now = fs::read(&self.file).unwrap();
        assert!(now == b"old" || now == self.whole, "half a file {when}");
        let original = Case::new();
        assert!(fs::read(&self.case.profile).unwrap() == fs::read(original.profile).unwrap());
        let files = snapshot(self.case.folder.path()).len();
        assert_eq!(files, self.files, "{when}");
    }
}

#[test]
fn a_signal_while_saving() {
    let saving = Saving::new();
    let signals = SIGNALS.into_iter().chain(["-KILL"; 3]).cycle();
    for (delay, signal) in (0..60).step_by(3).zip(signals) {
        saving.ended(delay * delay / 8, |child| {
            send(signal, child);
            let status = child.wait().unwrap();
            // Before the tool handles the signal, the signal ends it as it ends any program.
            let codes = [Some(0), Some(130), None];
            assert!(codes.contains(&status.code()), "{status}");
            // Only a killed run leaves a temporary file, with a name of its own.
            for (path, _) in snapshot(saving.case.folder.path()) {
                if signal == "-KILL" && path.to_string_lossy().contains("/.popliner-") {
                    fs::remove_file(path).unwrap();
                }
            }
        });
    }
}

const SIGNALS: [&str; 3] = ["-INT", "-TERM", "-HUP"];

fn send(signal: &str, child: &Child) {
    let pid = child.id().to_string();
    finish(piped("kill").args([signal, &pid])).exits(0);
}

/// Runs that wait for a debug file that never ends. One was started with hang-ups ignored.
#[test]
fn a_signal_interrupts_a_run_unless_it_is_ignored() {
    let case = Case::new();
    let pipe = case.folder.path().join("pipe");
    finish(piped("mkfifo").arg(&pipe)).exits(0);
    let start = |handling: &str| {
        let mut command = piped("env");
        command.args([handling, env!("CARGO_BIN_EXE_popliner")]);
        let child = command.arg(&case.profile).arg(&pipe).spawn().unwrap();
        // Opening ends when the run opens the other end.
        (child, File::options().write(true).open(&pipe).unwrap())
    };
    for signal in SIGNALS {
        let (mut child, _pipe) = start("--default-signal=INT,TERM,HUP");
        send(signal, &child);
        assert_eq!(wait(&mut child).code(), Some(130), "{signal}");
    }
    let (mut child, pipe) = start("--ignore-signal=HUP");
    send("-HUP", &child);
    drop(pipe);
    assert_eq!(wait(&mut child).code(), Some(3), "an empty debug file");
}

/// With too little memory, a run ends with an error, or the system ends it. Nothing is left behind,
/// and nothing panics.
#[test]
fn little_memory() {
    let saving = Saving::new();
    let mut done = 0;
    // With less memory than the program and its libraries take, the run ends before it begins.
    let program = fs::metadata(env!("CARGO_BIN_EXE_popliner")).unwrap().len() >> 20;
    let limits = |step| (program + 8..program + 160).step_by(step);
    let few_threads = limits(19).map(|mib| (mib, ""));
    let many_threads = limits(75).map(|mib| (mib, "100000"));
    for (mib, threads) in few_threads.chain(many_threads) {
        fs::write(&saving.file, "old").unwrap();
        let script = format!("ulimit -c 0; ulimit -v {}; \"$0\" \"$@\"", mib << 10);
        let mut command = piped("sh");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_popliner")]);
        command.args(saving.case.arguments(&saving.options));
        let run = finish(command.env("RAYON_NUM_THREADS", threads));
        saving.has_one_file(&format!("with {mib} MiB"));
        match run.code {
            0 => {
                assert_eq!(run.out, saving.run.out);
                done += 1;
            }
            3 => drop(run.says("error: ")),
            // The system had no memory for the program itself.
            126 | 127 | 139 => assert!(mib < program + 16, "{run:?}"),
            // SIGABRT
            134 => drop(run.says("memory allocation of ")),
            _ => panic!("{mib} MiB: {run:?}"),
        }
    }
    assert!(done > 3, "{done}");
}
