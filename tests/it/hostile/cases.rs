//! Cases: a changed fixture, a run of the tool on it within limits, and checks that hold for every
//! run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use ciborium::Value;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::support::{self, Run, finish, piped};

pub const FIXTURE: &str = "poplar-mlp";

/// Upper bound on address space in KiB: more than a run on a file of a fixture's size needs.
const MEMORY: u32 = 512 * 1024;

/// Returns a folder for the files of cases, in memory if the system has such a folder.
pub fn new_folder() -> TempDir {
    let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
    folder.expect("a folder")
}

/// Runs the tool within limits; `before` is shell code that runs first.
pub fn limited(before: &str, arguments: &[&std::ffi::OsStr]) -> Command {
    let script = format!("{before}\nulimit -v {MEMORY}; exec \"$0\" \"$@\"");
    let mut command = piped("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_popliner")]);
    command.args(arguments).current_dir(support::root());
    // Each thread of the allocator or of the tool takes address space.
    command
        .env("MALLOC_ARENA_MAX", "2")
        .env("RAYON_NUM_THREADS", "2");
    command
}

/// Copies of both files of a fixture.
pub struct Case {
    pub folder: TempDir,
    pub profile: PathBuf,
    pub debug: PathBuf,
    /// Is the run given `--trust-debug-info`, since the contexts are not as Poplar wrote them?
    pub trusts: bool,
}

impl Case {
    pub fn new() -> Self {
        Self::of(FIXTURE)
    }

    pub fn of(fixture: &str) -> Self {
        let folder = new_folder();
        let [profile, debug] = support::copy(fixture, folder.path());
        Self {
            folder,
            profile,
            debug,
            trusts: false,
        }
    }

    /// Runs SQL on the profile.
    pub fn sql(self, statements: &str) -> Self {
        let connection = Connection::open(&self.profile).unwrap();
        let faster = "PRAGMA synchronous = OFF";
        connection.execute_batch(faster).unwrap();
        connection.execute_batch(statements).expect(statements);
        drop(connection);
        self
    }

    /// Returns the fixture without keys and constraints, which would refuse damaging SQL.
    pub fn loose() -> Self {
        static LOOSE: LazyLock<Vec<u8>> = LazyLock::new(|| {
            let case = Case::new();
            crate::support::mutations::loosen(&case.profile);
            fs::read(&case.profile).unwrap()
        });
        Case::new().bytes(of_profile, |bytes| bytes.clone_from(&LOOSE))
    }

    /// Changes the document in the debug file, and trusts it.
    pub fn cbor(mut self, change: impl FnOnce(&mut Vec<Value>, &mut Vec<Value>)) -> Self {
        let bytes = fs::read(&self.debug).unwrap();
        let mut document: Value = ciborium::from_reader(&*bytes).unwrap();
        let [(_, contexts), (_, strings)] = &mut document.as_map_mut().unwrap()[..] else {
            panic!("two entries");
        };
        change(
            contexts.as_array_mut().unwrap(),
            strings.as_array_mut().unwrap(),
        );
        let mut bytes = Vec::new();
        ciborium::into_writer(&document, &mut bytes).unwrap();
        fs::write(&self.debug, bytes).unwrap();
        self.trusts = true;
        self
    }

    /// Changes the bytes of a file.
    pub fn bytes(self, file: fn(&Self) -> &Path, change: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut bytes = fs::read(file(&self)).unwrap();
        change(&mut bytes);
        fs::write(file(&self), bytes).unwrap();
        self
    }

    /// Runs the tool, and checks that all files are unchanged.
    pub fn run(&self, options: &[&str]) -> Run {
        let trust = self.trusts.then_some(&"--trust-debug-info");
        let options = options.iter().chain(trust).map(std::ffi::OsStr::new);
        let files = [self.profile.as_os_str(), self.debug.as_os_str()];
        let arguments: Vec<_> = files.into_iter().chain(options).collect();
        let before = snapshot(self.folder.path());
        let run = finish(&mut limited("", &arguments));
        assert!(before == snapshot(self.folder.path()), "a file changed");
        run
    }

    /// Checks that the tool refuses the files with one line that has all these parts.
    pub fn refused(&self, what: &str, parts: &[&str]) {
        let run = self.run(&["--solve"]);
        assert_eq!(run.code, 3, "{what}: {run:?}");
        assert_eq!(run.out, "", "{what}");
        let line = run.err.lines().last().expect("a message");
        assert!(line.starts_with("error: "), "{what}: {line}");
        for part in parts {
            assert!(line.contains(part), "{what}: {part:?} in {line}");
        }
    }

    /// Checks that the tool finds the same split as for the unchanged fixture, and returns the
    /// messages.
    pub fn same(&self, what: &str) -> String {
        static EXPECTED: LazyLock<Run> = LazyLock::new(|| Case::new().run(SOLVE));
        let (expected, run) = (&*EXPECTED, self.run(SOLVE));
        assert_eq!(run.code, expected.code, "{what}: {run:?}");
        assert_eq!(run.out, expected.out, "{what}");
        run.err
    }
}

/// Options of runs that are compared if files are unusual but valid.
pub const SOLVE: &[&str] = &["--solve", "--num-ipus=3", "--layer-breakdown"];

pub fn of_profile(case: &Case) -> &Path {
    &case.profile
}

pub fn of_debug(case: &Case) -> &Path {
    &case.debug
}

/// Returns names and bytes of all files in a folder; only the name of a pipe.
pub fn snapshot(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let file = |entry: fs::DirEntry| {
        let is_file = entry.path().is_file();
        let bytes = if is_file {
            fs::read(entry.path()).unwrap()
        } else {
            Vec::new()
        };
        (entry.path(), bytes)
    };
    let mut all: Vec<_> = entries.map(file).collect();
    all.sort();
    all
}

pub fn number(profile: &Path, sql: &str) -> i64 {
    let connection = Connection::open(profile).unwrap();
    connection.query_row(sql, [], |row| row.get(0)).expect(sql)
}

/// Sets a field of a context.
pub fn set(context: &mut Value, key: &str, value: Value) {
    let fields = context.as_map_mut().unwrap();
    fields.retain(|(name, _)| name.as_text() != Some(key));
    fields.push((key.into(), value));
}

pub fn get(context: &Value, key: &str) -> Option<u64> {
    let mut fields = context.as_map().unwrap().iter();
    let found = fields.find(|(name, _)| name.as_text() == Some(key))?;
    found.1.as_integer()?.try_into().ok()
}
