//! Commands run to their end, with what they said. One that hangs is ended.

use super::messages;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Whatever takes so long waits for something that never comes. How fast
/// something is, no test asks: see `benches`.
const PATIENCE: Duration = Duration::from_secs(300);

/// How a run ended and what it said.
#[derive(Debug, Clone)]
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// A command without input, whose output is kept.
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

/// Runs a command to its end, if there is such a program.
pub fn try_finish(command: &mut Command) -> Option<Run> {
    Some(end(command.spawn().ok()?))
}

/// Runs a command whose reader has had enough before it began.
pub fn finish_unread(command: &mut Command) -> Run {
    let mut child = command.spawn().expect("the command starts");
    drop(child.stdout.take());
    end(child)
}

/// Runs a command that is given `input`, if there is such a program.
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
    Run { code, out, err }
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

/// Waits for the end of a process, and ends it when it hangs.
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
        // Often enough for a short run, and seldom for a long one.
        let pause = (waited / 8).clamp(Duration::from_micros(200), Duration::from_millis(20));
        thread::sleep(pause);
    }
}
