//! Output of the tool on the fixtures, byte for byte: exit code, standard output and standard error
//! of every option by itself and of some together. Two fixtures run with all options, the others
//! with one option of each kind.
//!
//! `numbers/fixtures.rs` checks the numbers of the classic memory model by an independent
//! computation on the same fixtures: breakdowns, totals and both matrices; the stages of either
//! solver, their table and verdict, the layers that are too large, and the values on which the
//! greedy search settled; the counts of `-v`, and when there are warnings; all of `--diagnose`
//! except the order of equal rows. `planted` (against planted and recorded bytes) and the property
//! tests of `src/memory` check the numbers of the full memory model. Numbers inside warnings, and
//! text without numbers, are checked only by reading.
//!
//! `BLESS=1 cargo test goldens::` writes the files anew; read the
//! difference before committing it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::golden_options::{FEW, IN_FULL, ON_ALL, OPTIONS};
use crate::support::{FIXTURES, Run, Words, command, each, files, finish, profile, root};

/// Returns the text of a golden. A page is without its style and script, which are equal in all
/// pages and have tests of their own, and without their hashes.
fn golden(run: &Run) -> String {
    let mut out = run.out.clone();
    let hidden = [
        ("<style>", "</style>"),
        ("<script>", "</script>"),
        ("sha256-", "'"),
    ];
    for (start, end) in hidden {
        out = without(&out, start, end);
    }
    format!(
        "exit code: {}\n--- standard output\n{out}--- standard error\n{}",
        run.code, run.err
    )
}

/// Returns a text without everything between each `start` and the next `end`.
fn without(text: &str, start: &str, end: &str) -> String {
    let mut parts = text.split(start);
    let mut left = String::from(parts.next().unwrap_or_default());
    for part in parts {
        let after = part.find(end).map_or("", |place| &part[place..]);
        left += &format!("{start}\u{2026}{after}");
    }
    left
}

/// Returns the path of the golden of a new user's first ten minutes, which `alone` makes.
pub fn session() -> PathBuf {
    folder().join("first-ten-minutes.txt")
}

/// Returns the path of the golden of a newcomer's session with a real model.
pub fn newcomer() -> PathBuf {
    folder().join("newcomer.txt")
}

fn folder() -> PathBuf {
    root().join("tests/golden")
}

/// Returns every golden that there should be: its path, its fixture, and its options.
fn all() -> Vec<(PathBuf, String, String)> {
    let rows = |table: &str| {
        let mut rows: Vec<(String, String)> = Vec::new();
        for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match (rows.last_mut(), line.starts_with("--")) {
                (Some((_, options)), true) => *options += &format!(" {line}"),
                _ => {
                    let (name, options) = line.split_once(':').expect("a name");
                    rows.push((name.to_owned(), options.to_owned()));
                }
            }
        }
        rows
    };
    let mut all = rows(FEW);
    for (case, options) in rows(OPTIONS) {
        let is_on_all = ON_ALL.words().contains(&&*case);
        let fixtures = FIXTURES.into_iter();
        let fixtures = fixtures.filter(|fixture| is_on_all || IN_FULL.contains(fixture));
        all.extend(fixtures.map(|fixture| (format!("{fixture}/{case}"), options.clone())));
    }
    let case = |(name, options): (String, String)| {
        let (fixture, _) = name.split_once('/').expect("a fixture");
        let path = folder().join(format!("{name}.txt"));
        (path, fixture.to_owned(), options)
    };
    all.into_iter().map(case).collect()
}

#[test]
fn outputs_are_the_goldens() {
    let differences = each(&all(), |(path, fixture, options)| {
        let profile = profile(fixture).display().to_string();
        let mut command = command([&[&*profile][..], &options.words()].concat());
        // Run with all threads.
        let found = golden(&finish(command.env_remove("RAYON_NUM_THREADS")));
        difference(path, &found)
    });
    let differences: Vec<String> = differences.into_iter().flatten().collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Compares output with a golden, and describes the difference. With `BLESS=1` writes the golden.
pub fn difference(path: &Path, found: &str) -> Option<String> {
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, found).expect("a golden");
        return None;
    }
    let place = path.strip_prefix(root()).expect("inside").display();
    match fs::read_to_string(path) {
        Ok(expected) if expected == found => None,
        Ok(expected) => Some(format!("{place}: {}", first(&expected, found))),
        Err(error) => Some(format!("{place}: {error}")),
    }
}

fn first(expected: &str, found: &str) -> String {
    let mut lines = (1..).zip(expected.lines().zip(found.lines()));
    match lines.find(|(_, (expected, found))| expected != found) {
        Some((line, (expected, found))) => {
            format!("line {line} is\n  {found}\nand was\n  {expected}")
        }
        None => "one is longer, or lines end otherwise".to_string(),
    }
}

#[test]
fn every_golden_belongs_to_a_case_and_depends_on_no_machine() {
    let mut cases: BTreeSet<PathBuf> = all().into_iter().map(|(path, ..)| path).collect();
    cases.extend([session(), newcomer()]);
    for path in files(&folder()) {
        assert!(cases.contains(&path), "no case has {}", path.display());
        let text = fs::read_to_string(&path).expect("a golden");
        let root = root().to_str().expect("a plain path");
        assert!(!text.contains(root), "{}", path.display());
    }
}
