//! Runs the tool, and reads its output.

pub mod contexts;
mod finish;
pub mod messages;
pub mod models;
pub mod mutations;
mod run;
mod skipped;
pub mod vary;
mod words;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once};
use std::thread;

use finish::try_finish_with;
use flate2::read::GzDecoder;
use popliner::debug_info::DebugInfo;
use popliner::model::Model;
use popliner::profile::Profile;
use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

pub use finish::{finish, finish_unread, piped, try_finish, wait};
pub use run::{Checking, Run};
pub use skipped::skip;
pub use words::{Words, cases};

/// The forms of `--emit`.
pub const FORMS: [&str; 8] = [
    "examples",
    "optimum",
    "poptorch",
    "popart",
    "keras",
    "tf-stages",
    "pipeline-splits",
    "mmcv",
];

/// The folders in `fixtures/` that most tests use.
pub const FIXTURES: [&str; 5] = [
    "impossible",
    "popart-bert-inference",
    "poplar-mlp",
    "poptorch-bert-training",
    "tensorflow-cnn",
];

/// Applies `of` to each case, on all cores, and returns the results in the order of the cases. The
/// threads are not rayon's: a worker of rayon that waits for the library would begin another case,
/// and so on, until its stack overflows.
pub fn each<T: Sync, R: Send>(cases: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(number) else {
                return done;
            };
            done.push((number, of(case)));
        }
    };
    let count = thread::available_parallelism().map_or(1, |n| n.get());
    let mut all = thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        let done = threads.into_iter().map(|thread| thread.join());
        done.flat_map(|result| result.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect::<Vec<_>>()
    });
    all.sort_by_key(|entry| entry.0);
    all.into_iter().map(|entry| entry.1).collect()
}

/// All fixtures that can be split.
pub const ONE_IPU_FIXTURES: [&str; 8] = [
    "impossible",
    "large-embedding",
    "popart-bert-inference",
    "poplar-mlp",
    "poptorch-bert-training",
    "tensorflow-cnn",
    "tied-weights",
    "training-pipeline",
];

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns all files below a folder, in the order of their paths.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    let below = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    };
    paths.into_iter().flat_map(below).collect()
}

/// Returns the committed graph of a real model, relative to the root of the repository, where tests
/// run: options in one line have no blanks in paths.
pub fn graph_file(graph: &str) -> PathBuf {
    format!("crates/synthesize/graphs/{graph}.json.gz").into()
}

/// Returns the graphs in the folder that `POPLINER_GRAPHS` names, which tests run beside their own.
pub fn more_graphs() -> Vec<PathBuf> {
    let folder = std::env::var_os("POPLINER_GRAPHS");
    let all = folder.map(|folder| files(folder.as_ref()));
    let all = all.into_iter().flatten();
    all.filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect()
}

/// Reads a graph, which is compressed if its name ends in `.gz`.
pub fn read_graph(path: impl AsRef<Path>) -> Value {
    let path = path.as_ref();
    let file = File::open(path).expect("a graph");
    match path.extension().is_some_and(|end| end == "gz") {
        true => serde_json::from_reader(GzDecoder::new(file)).expect("JSON"),
        false => serde_json::from_reader(BufReader::new(file)).expect("JSON"),
    }
}

/// Returns the profile of a fixture, relative to the root of the repository.
pub fn profile(fixture: &str) -> PathBuf {
    Path::new("fixtures").join(fixture).join("profile.pop")
}

/// Returns the debug contexts of a fixture, relative to the root of the repository.
pub fn debug(fixture: &str) -> PathBuf {
    Path::new("fixtures").join(fixture).join("debug.cbor")
}

/// Copies both files of a fixture into a folder.
pub fn copy(fixture: &str, folder: &Path) -> [PathBuf; 2] {
    [profile(fixture), debug(fixture)].map(|file| {
        let to = folder.join(file.file_name().expect("a name"));
        std::fs::copy(root().join(file), &to).expect("a copy");
        to
    })
}

/// Runs SQL on a profile.
pub fn run_sql(profile: &Path, statements: &str) {
    let connection = Connection::open(profile).expect("a profile");
    let faster = "PRAGMA synchronous = OFF";
    connection.execute_batch(faster).expect(faster);
    connection.execute_batch(statements).expect(statements);
}

/// Returns a file of the real samples; `None` if the test is skipped. The samples have no licence
/// and are not part of the project.
#[track_caller]
pub fn sample(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("POPLINER_SAMPLES").map(PathBuf::from);
    let folder = folder.unwrap_or(root().join("../shared/samples"));
    let path = folder.join(name);
    if path.exists() {
        return Some(path);
    }
    skip("the real sample is not here (POPLINER_SAMPLES names its folder)");
    None
}

/// Returns both files of the complete sample; `None` if the test is skipped.
#[track_caller]
pub fn sample_pair() -> Option<[PathBuf; 2]> {
    Some([
        sample("firehose.profile.pop")?,
        sample("firehose.debug.cbor")?,
    ])
}

/// Returns the output of a Python script for `input`; `None` if the test is skipped without Python.
/// The script has only the standard library, so that no result depends on installed packages.
#[track_caller]
pub fn python(script: &str, input: &str) -> Option<String> {
    let run = try_finish_with(piped("python3").args(["-I", "-S", "-c", script]), input);
    if run.is_none() {
        skip("there is no python3");
    }
    let run = run?;
    assert_eq!(run.code, 0, "{}\nof\n{input}", run.err);
    Some(run.out)
}

/// Returns a command that runs the tool in the root of the repository, with one thread: tests run
/// side by side, and models are small. Goldens, `hostile` and some others have several threads.
pub fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = piped(env!("CARGO_BIN_EXE_popliner"));
    command.args(arguments).current_dir(root());
    command.env("RAYON_NUM_THREADS", "1");
    command
}

/// Runs the tool in the root of the repository.
pub fn popliner<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    finish(&mut command(arguments))
}

/// Returns the PATH of a user who has the tool in it.
pub fn path_with_tool() -> String {
    let tool = Path::new(env!("CARGO_BIN_EXE_popliner"));
    let tools = tool.parent().expect("a folder").display();
    format!("{tools}:{}", std::env::var("PATH").expect("a path"))
}

/// Runs a line in `folder` in the shell of a user who has the tool in the PATH.
pub fn typed(line: &str, folder: &Path) -> Run {
    let mut shell = piped("sh");
    shell.args(["-c", line]).current_dir(folder);
    shell.env("PATH", path_with_tool());
    finish(shell.env("RAYON_NUM_THREADS", "1"))
}

/// The option with the original tool's regex. With a given regex, no layer is divided into parts.
pub const DEFAULT_REGEX: &str =
    r"--layer-name-regex=(?:^|\/)(?:[L|l]ayer|blocks|encoder)[\/_\.]?(\d+)";

/// Runs the tool on a profile, its folder, or a saved model.
pub fn run_on(profile: &Path, options: &(impl Words + ?Sized)) -> Run {
    let profile = profile.to_str().expect("a plain path");
    popliner([&[profile][..], &options.words()].concat())
}

/// Runs the tool on a fixture.
pub fn run_fixture(fixture: &str, options: &(impl Words + ?Sized)) -> Run {
    run_on(&profile(fixture), options)
}

/// Runs the tool on a fixture, or returns the run of an earlier test with the same options.
pub fn run_once(fixture: &str, options: &(impl Words + ?Sized)) -> Run {
    static RUNS: Mutex<BTreeMap<Vec<String>, Run>> = Mutex::new(BTreeMap::new());
    let options = options.words();
    let key = [&[fixture], &options[..]].concat();
    let key: Vec<String> = key.into_iter().map(String::from).collect();
    let earlier = RUNS.lock().expect("no panic").get(&key).cloned();
    earlier.unwrap_or_else(|| {
        let run = run_fixture(fixture, &options);
        RUNS.lock().expect("no panic").insert(key, run.clone());
        run
    })
}

/// The report of an earlier run on a fixture.
pub struct Earlier(TempDir);

impl Earlier {
    pub fn new(fixture: &str, options: &str) -> Self {
        let earlier = Self(TempDir::new().expect("a folder"));
        let options = format!("{options} -q --export-json={}", earlier.path());
        let run = run_fixture(fixture, &options);
        assert!(run.code < 2, "{run:?}");
        earlier
    }

    pub fn path(&self) -> String {
        self.0.path().join("report.json").display().to_string()
    }
}

pub fn read_json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Returns the cells of a table, the header first.
pub fn cells(text: &str, delimiter: char) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter as u8)
        .has_headers(false)
        .from_reader(text.as_bytes());
    let row = |record: csv::StringRecord| record.iter().map(str::to_string).collect();
    let records = reader.records().map(|record| record.expect("a row"));
    records.map(row).collect()
}

/// Returns the sections of standard output, each with its name, which is one word.
pub fn sections(text: &str) -> Vec<(String, String)> {
    let mut sections: Vec<(String, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        let name = line.strip_prefix("# ");
        match name.filter(|name| !name.trim_end().contains(' ')) {
            Some(name) => sections.push((name.trim_end().to_string(), String::new())),
            None => sections.last_mut().expect("a name first").1.push_str(line),
        }
    }
    sections
}

/// Returns the layers of each stage of a report's split, and the bytes on the fullest tile of all.
pub fn split_of(report: &Value) -> (Value, Option<u64>) {
    let stages = || report["split"]["stages"].as_array().expect("stages").iter();
    let bytes = stages().filter_map(|stage| stage["fullest_tile"]["bytes"].as_u64());
    let layers = stages().map(|stage| stage["layers"].clone());
    (layers.collect(), bytes.max())
}

/// Builds the model of both files.
pub fn model(profile: &Path, debug: &Path) -> Model {
    let contexts = DebugInfo::read(debug).expect("contexts");
    let profile = Profile::read(profile).expect("a profile");
    Model::build(profile, contexts, false).expect("a model").0
}

/// Builds the model of both files in a folder.
pub fn model_in(folder: &Path) -> Model {
    model(&folder.join("profile.pop"), &folder.join("debug.cbor"))
}

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Catches an expected panic without printing it. Panics of other threads are still printed.
pub fn catch_quietly<T>(action: impl FnOnce() -> T) -> std::thread::Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_QUIET.get() {
                usual(panic);
            }
        }));
    });
    IS_QUIET.set(true);
    let caught = catch_unwind(AssertUnwindSafe(action));
    IS_QUIET.set(false);
    caught
}
