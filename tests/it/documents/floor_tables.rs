//! The list of tables in the performance floor matches the tables and columns that the library
//! reads.

#[path = "../../../examples/floor/tables.rs"]
mod tables;

use crate::support::profile;
use popliner::profile::{CompiledProfile, Profile, VariableLists};
use rusqlite::Connection;
use std::path::Path;
use tables::{FIT, all, of_fit};
use tempfile::TempDir;

type Tables = [(&'static str, Vec<&'static str>)];

/// A column and its table.
type Column = (&'static str, &'static str);

/// Writes a profile with only these tables and columns; `without` leaves out one column.
fn reduced(tables: &Tables, fixture: &str, without: Option<Column>) -> TempDir {
    let directory = TempDir::new().unwrap();
    let connection = Connection::open(directory.path().join("profile.pop")).unwrap();
    let attach = "ATTACH DATABASE ?1 AS whole";
    let whole = profile(fixture).display().to_string();
    connection.execute(attach, [whole]).unwrap();
    // The database needs no safety: it is read once, for one column, and then deleted.
    let unsafely = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN";
    connection.execute_batch(unsafely).unwrap();
    for (table, columns) in tables {
        let kept = columns.iter().filter(|c| without != Some((table, c)));
        let mut kept: Vec<&str> = kept.copied().collect();
        if kept.is_empty() {
            kept.push("0 AS left_out");
        }
        let columns = kept.join(", ");
        let sql =
            format!("CREATE TABLE {table} AS SELECT {columns} FROM whole.{table} NOT INDEXED");
        connection.execute_batch(&sql).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
    directory
}

/// Checks that `read` reads nothing but `tables` from the fixtures, and all columns of the tables
/// that `is_checked` chooses. `read` returns its data as text; `None` if it refuses the profile.
fn reads_all(
    fixtures: [&str; 2],
    tables: &Tables,
    is_checked: impl Fn(&str) -> bool,
    read: impl Fn(&Path) -> Option<String>,
) {
    let whole = fixtures.map(|fixture| read(&profile(fixture)).expect("a profile"));
    let differs = |without: Option<Column>| {
        let mut pairs = fixtures.iter().zip(&whole);
        pairs.any(|(fixture, whole)| {
            let folder = reduced(tables, fixture, without);
            read(&folder.path().join("profile.pop")).as_ref() != Some(whole)
        })
    };
    assert!(!differs(None), "the library reads more");
    for (table, columns) in tables.iter().filter(|(table, _)| is_checked(table)) {
        for column in columns {
            let is_read = differs(Some((table, column)));
            assert!(is_read, "{column} of {table} is read for nothing");
        }
    }
}

fn members(lists: &VariableLists) -> Vec<&[u32]> {
    let all = 0..lists.len() as u32;
    all.map(|list| lists.members(list)).collect()
}

/// Returns as text everything that was read, except the path and the statements that only witnesses
/// need.
fn dump(profile: &Profile) -> String {
    let lists = [&profile.compute_set_variables, &profile.region_variables].map(members);
    format!(
        "{:?} {:?} {lists:?} {:?} {:?}",
        (&profile.target, &profile.programs),
        (&profile.steps, &profile.classes, &profile.variables),
        (serde_json::to_string(&profile.recorded), &profile.warnings),
        (&profile.cycles, &profile.made),
    )
}

/// The fixtures together have a value in every column: one with calls, code copies and estimates of
/// cycles, and one that was executed.
#[test]
fn the_library_reads_what_the_floor_reads() {
    let fixtures = ["poptorch-bert-training", "poplar-mlp"];
    let read = |path: &Path| Some(dump(&Profile::read(path).ok()?));
    reads_all(fixtures, &all(), |_| true, read);
}

/// The fixtures together have a value in every column that `--fit` reads: a compiled pipeline that was
/// executed, and a model with bytes that overflowed.
#[test]
fn of_a_compilation_the_library_reads_what_the_floor_reads() {
    let fixtures = ["training-pipelined", "poplar-mlp"];
    let is_own = |table: &str| FIT.iter().any(|own| own.0 == table);
    reads_all(fixtures, &of_fit(), is_own, |path| {
        let profile = CompiledProfile::read(path, true).ok()?;
        Some(format!("{profile:?}"))
    });
}
