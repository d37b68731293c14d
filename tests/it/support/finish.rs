//! Runs commands to their end with their output. A command that hangs is ended.

use super::messages;
use super::run::Run;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A command that takes this long hangs. No test depends on speed: see `benches`.
const PATIENCE: Duration = Duration::from_secs(300);

/// Returns a command without input, whose output is kept.
pub fn piped(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command to its end.
pub fn finish(command: &mut Command) -> Run {
    try_finish(command).unwrap_or_else(|| panic!("{command:?} does not start"))
}

/// Runs a command to its end; `None` if there is no such program.
pub fn try_finish(command: &mut Command) -> Option<Run> {
    Some(end(command.spawn().ok()?))
}

/// Runs a command whose standard output is closed at once.
pub fn finish_unread(command: &mut Command) -> Run {
    let mut child = command.spawn().expect("the command starts");
    drop(child.stdout.take());
    end(child)
}

/// Runs a command with `input`; `None` if there is no such program.
pub fn try_finish_with(command: &mut Command, input: &str) -> Option<Run> {
    let mut child = command.stdin(Stdio::piped()).spawn().ok()?;
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("a reader");
    drop(stdin);
    Some(end(child))
}

fn end(mut child: Child) -> Run {
    let (out, err) = (read(child.stdout.take()), read(child.stderr.take()));
    let status = wait(&mut child);
    let (out, err) = (out.join().expect("UTF-8"), err.join().expect("UTF-8"));
    let code = status.code();
    let code = code.unwrap_or_else(|| panic!("ended by a signal: {status}, {err}"));
    assert!(!err.contains("panicked"), "{err}");
    messages::check(&err);
    let of = String::new();
    Run { of, code, out, err }
}

fn read(stream: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut stream) = stream {
            stream.read_to_string(&mut text).expect("UTF-8");
        }
        text
    })
}

/// Waits for the end of a process, and ends it if it hangs.
pub fn wait(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a status") {
            return status;
        }
        let waited = start.elapsed();
        if waited > PATIENCE {
            child.kill().expect("an end");
            panic!("the process hangs: it was ended after {PATIENCE:?}");
        }
        // Polls often in a short run, and seldom in a long one.
        let pause = (waited / 8).clamp(Duration::from_micros(200), Duration::from_millis(20));
        thread::sleep(pause);
    }
}
