//! Cases: a changed fixture, a run of the tool on it within limits, and checks that hold for every
//! run.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};

use ciborium::Value;
use popliner::profile::encoding::push_varint;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::support::models::{pairs, share};
use crate::support::{self, Run, Words, contexts, each, finish, mutations, piped};

pub const FIXTURE: &str = "poplar-mlp";

/// Upper bound on address space in KiB: more than a run on a file of a fixture's size needs.
const MEMORY: u32 = 512 * 1024;

/// Returns a folder for the files of cases, in memory if the system has such a folder.
pub fn new_folder() -> TempDir {
    let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
    folder.expect("a folder")
}

/// Runs the tool within limits; `before` is shell code that runs first.
pub fn limited(before: &str, arguments: &[&OsStr]) -> Command {
    let script = format!("{before}\nulimit -v {MEMORY}; exec \"$0\" \"$@\"");
    let mut command = piped("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_popliner")]);
    command.args(arguments).current_dir(support::root());
    // Each thread of the allocator or of the tool takes address space.
    command.envs([("MALLOC_ARENA_MAX", "2"), ("RAYON_NUM_THREADS", "2")]);
    command
}

/// Copies of both files of a fixture.
pub struct Case {
    pub folder: TempDir,
    pub profile: PathBuf,
    pub debug: PathBuf,
    /// Whether the run has `--allow-incomplete`, since the contexts are not as Poplar wrote them.
    pub trusts: bool,
    /// The change that was made, for the message of a failure.
    pub what: String,
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
            what: String::new(),
        }
    }

    /// Runs SQL on the profile.
    pub fn sql(mut self, statements: &str) -> Self {
        let start: String = statements.chars().take(200).collect();
        self.what = format!("{} {start}", self.what);
        support::run_sql(&self.profile, statements);
        self
    }

    /// Returns the usual fixture without keys and constraints.
    pub fn loose() -> Self {
        Self::loose_of(FIXTURE)
    }

    /// Returns a fixture without keys and constraints, which would refuse damaging SQL.
    pub fn loose_of(fixture: &str) -> Self {
        static LOOSE: Mutex<BTreeMap<String, Vec<u8>>> = Mutex::new(BTreeMap::new());
        let case = Self::of(fixture);
        let mut known = LOOSE.lock().expect("no panic");
        if let Some(bytes) = known.get(fixture) {
            fs::write(&case.profile, bytes).unwrap();
        } else {
            mutations::loosen(&case.profile);
            known.insert(fixture.to_owned(), fs::read(&case.profile).unwrap());
        }
        case
    }

    /// Changes the contexts and the string table, and trusts the debug file.
    pub fn cbor(mut self, change: impl FnOnce(&mut Vec<Value>, &mut Vec<Value>)) -> Self {
        contexts::change(&self.debug, change);
        self.trusts = true;
        self
    }

    /// Changes the texts of the string table, and accepts the debug file, without a verdict.
    pub fn names(self, change: impl Fn(&str) -> String) -> Self {
        self.cbor(|_, strings| {
            for string in strings {
                let name = change(string.as_text().expect("a name"));
                *string = Value::Text(name);
            }
        })
    }

    /// Changes the bytes of the profile.
    pub fn bytes(self, change: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut bytes = fs::read(&self.profile).unwrap();
        change(&mut bytes);
        fs::write(&self.profile, bytes).unwrap();
        self
    }

    /// Returns the arguments of a run on both files.
    pub fn arguments<'a>(&'a self, options: &'a (impl Words + ?Sized)) -> Vec<&'a OsStr> {
        let trust = self.trusts.then_some("--allow-incomplete");
        let options = options.words().into_iter().chain(trust).map(OsStr::new);
        let files = [self.profile.as_os_str(), self.debug.as_os_str()];
        files.into_iter().chain(options).collect()
    }

    /// Runs the tool, and checks that all files are unchanged.
    pub fn run(&self, options: &(impl Words + ?Sized)) -> Run {
        let before = snapshot(self.folder.path());
        let mut run = finish(&mut limited("", &self.arguments(options)));
        assert!(before == snapshot(self.folder.path()), "a file changed");
        run.of = format!("{} {:?}", self.what, options.words());
        run
    }

    /// Checks that the tool refuses the files with one line that has all these parts.
    #[track_caller]
    pub fn refused(&self, parts: &[&str]) {
        self.run("--solve").refuses(3, parts);
    }

    /// Checks that the tool finds the same split as for the unchanged fixture, and returns the run.
    #[track_caller]
    pub fn same(&self) -> Run {
        static EXPECTED: LazyLock<Run> = LazyLock::new(|| Case::new().run(SOLVE));
        let run = self.run(SOLVE);
        let lacks_verdict = self.trusts && run.code == 3;
        assert!(run.code == EXPECTED.code || lacks_verdict, "{run:?}");
        assert_eq!(run.out, EXPECTED.out, "{}", run.of);
        run
    }
}

/// Runs `check` for each SQL of a list, on a fixture without keys after this SQL, with the lines
/// below it. `vars_info tile = 16`, for example, stands for a change of the last row of this table.
pub fn each_sql(fixture: &str, list: &str, check: impl Fn(&Case, &[&str]) + Sync) {
    each(&support::cases(list), |(sql, parts)| {
        let sql = match sql.starts_with(|c: char| c.is_ascii_lowercase()) {
            true => in_last_row(sql),
            false => sql.clone(),
        };
        check(&Case::loose_of(fixture).sql(&sql), parts);
    });
}

/// Reads a list of tables, each in a line with its columns.
pub fn tables(list: &str) -> Vec<(&str, Vec<&str>)> {
    let lines = list.trim().lines().map(|line| {
        let mut words = line.words().into_iter();
        (words.next().expect("a table"), words.collect())
    });
    lines.collect()
}

/// Returns (table, column, value) for each column in a list of [`tables`] and each of `values`:
/// every `part`-th of these, or all with `SEEDS`.
pub fn cells<'a>(list: &'a str, values: &'a str, part: usize) -> Vec<(&'a str, &'a str, &'a str)> {
    let values = values.words();
    let of_table = |(table, columns): (&'a str, Vec<&'a str>)| {
        let cells = pairs(&columns, &values, 1).map(|(column, value)| (table, *column, *value));
        cells.collect::<Vec<_>>()
    };
    let all = tables(list).into_iter().flat_map(of_table);
    all.step_by(share(part)).collect()
}

/// Returns SQL for a table and a change of its last row, such as `vars_info tile = 16`.
pub fn in_last_row(change: &str) -> String {
    let (table, change) = change.split_once(' ').expect("a table");
    format!("UPDATE {table} SET {change} WHERE rowid = (SELECT max(rowid) FROM {table})")
}

/// Options of runs that are compared if files are unusual but valid.
pub const SOLVE: &str = "--solve --num-ipus=3 --layer-breakdown";

/// Returns the names and bytes of all files in a folder; of a pipe only the name.
pub fn snapshot(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let file = |entry: fs::DirEntry| match entry.path() {
        path if path.is_file() => (path.clone(), fs::read(&path).unwrap()),
        path => (path, Vec::new()),
    };
    let mut all: Vec<_> = entries.map(file).collect();
    all.sort();
    all
}

pub fn number(profile: &Path, sql: &str) -> i64 {
    let connection = Connection::open(profile).unwrap();
    connection.query_row(sql, [], |row| row.get(0)).expect(sql)
}

/// Returns the number of the first page of a table.
pub fn root_page(profile: &Path, table: &str) -> usize {
    let sql = format!("SELECT rootpage FROM sqlite_schema WHERE name = '{table}'");
    number(profile, &sql) as usize
}

pub fn half(bytes: &[u8], at: usize) -> usize {
    u16::from_be_bytes([bytes[at], bytes[at + 1]]).into()
}

pub fn word(bytes: &[u8], at: usize) -> usize {
    half(bytes, at) << 16 | half(bytes, at + 2)
}

/// Returns the offset of a page in the bytes of a profile.
pub fn page_of(bytes: &[u8], number: usize) -> usize {
    (number - 1) * half(bytes, 16)
}

/// Encodes `count` copies of `value` as a run in a blob.
pub fn run_of(count: u64, value: u64) -> Vec<u8> {
    let mut blob = Vec::new();
    push_varint(&mut blob, count << 1);
    push_varint(&mut blob, value);
    blob
}

/// Returns bytes as a blob literal of SQL.
pub fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("x'{digits}'")
}
