//! The list of tables in the performance floor matches the tables and columns that the library
//! reads.

#[path = "../../../examples/floor/tables.rs"]
mod tables;

use popliner::profile::{CompiledProfile, Profile, ProfileError, VariableLists};
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use tables::{FIT, OPTIONAL, TABLES, all, of_fit};
use tempfile::TempDir;

/// A fixture with every required table, with calls and code copies, and with the compiler's
/// estimates of cycles.
const FIXTURE: &str = "fixtures/poptorch-bert-training/profile.pop";
/// A fixture with executions.
const EXECUTED: &str = "fixtures/poplar-mlp/profile.pop";

/// A compiled pipeline that was executed.
const COMPILED: &str = "fixtures/training-pipelined/profile.pop";

type Tables = Vec<(&'static str, Vec<&'static str>)>;

/// Writes a profile with only the tables and columns of the lists; `without` leaves out one column.
fn reduced(directory: &TempDir, fixture: &str, without: Option<(&str, &str)>) -> PathBuf {
    reduced_to(all(), directory, fixture, without)
}

fn reduced_to(
    tables: Tables,
    directory: &TempDir,
    fixture: &str,
    without: Option<(&str, &str)>,
) -> PathBuf {
    let path = directory.path().join("reduced.pop");
    let _ = std::fs::remove_file(&path);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = Connection::open_with_flags(&path, flags).unwrap();
    connection
        .execute("ATTACH DATABASE ?1 AS whole", [fixture])
        .unwrap();
    // The file is read once and thrown away, for each column.
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
    path
}

/// Returns the members of each list. The number of their stretches in memory depends on how threads
/// divided the pages of the file.
fn members(lists: &VariableLists) -> Vec<Vec<u32>> {
    let positions = 0..lists.len() as u32;
    positions
        .map(|list| lists.members(list).flatten().copied().collect())
        .collect()
}

/// Prints everything that was read, except the path and the statements that only witnesses need.
/// Equal text means equal data.
fn dump(profile: &Profile) -> String {
    format!(
        "{:?} {:?} {:?} {:?} {:?}",
        (&profile.version, &profile.target, &profile.programs),
        (&profile.steps, &profile.classes, &profile.variables),
        (
            members(&profile.compute_set_variables),
            members(&profile.region_variables)
        ),
        (&profile.recorded, &profile.warnings),
        (&profile.cycles, &profile.made),
    )
}

#[test]
fn the_library_reads_nothing_that_the_floor_leaves_out() {
    let directory = TempDir::new().unwrap();
    for fixture in [FIXTURE, EXECUTED] {
        let whole = Profile::read(Path::new(fixture)).unwrap();
        let reduced = Profile::read(&reduced(&directory, fixture, None)).unwrap();
        assert!(dump(&whole) == dump(&reduced), "{fixture} differs");
    }
}

/// Columns that only name variables.
const NAMES: [(&str, &str); 6] = [
    ("vars_info", "name_base_id"),
    ("vars_info", "unlowered_var_id"),
    ("vars_string_table", "id"),
    ("vars_string_table", "string"),
    ("debug_ids", "variable_id"),
    ("debug_ids", "ids"),
];

#[test]
fn the_library_reads_all_that_the_floor_reads() {
    let directory = TempDir::new().unwrap();
    for &(table, columns) in TABLES {
        for &column in columns {
            let without = |fixture| reduced(&directory, fixture, Some((table, column)));
            match Profile::read(&without(FIXTURE)) {
                // Tables that only name variables are optional, but are read.
                Ok(_) if NAMES.contains(&(table, column)) => {
                    let differs = [FIXTURE, EXECUTED].into_iter().any(|fixture| {
                        let whole = Profile::read(Path::new(fixture)).unwrap();
                        dump(&Profile::read(&without(fixture)).unwrap()) != dump(&whole)
                    });
                    assert!(differs, "{table}.{column} is read for nothing");
                }
                Err(ProfileError::MissingColumn {
                    table: in_table,
                    column: missing,
                    ..
                }) => assert_eq!((in_table, missing), (table, column)),
                other => panic!("without {table}.{column}: {:?}", other.map(|_| ())),
            }
        }
    }
}

#[test]
fn the_library_reads_what_the_floor_reads_where_it_is_there() {
    let directory = TempDir::new().unwrap();
    let all = [FIXTURE, EXECUTED].map(|fixture| {
        let profile = Profile::read(Path::new(fixture)).unwrap();
        (fixture, dump(&profile))
    });
    for &(table, columns) in OPTIONAL {
        for &column in columns {
            let matters = all.iter().any(|(fixture, whole)| {
                let path = reduced(&directory, fixture, Some((table, column)));
                dump(&Profile::read(&path).unwrap()) != *whole
            });
            assert!(matters, "{table}.{column} is read for nothing");
        }
    }
}

/// Reads a compilation as text; `None` if it was refused.
fn compiled(path: &Path) -> Option<String> {
    let profile = CompiledProfile::read(path, true).ok()?;
    Some(format!("{profile:?}"))
}

#[test]
fn of_a_compilation_the_floor_reads_what_the_library_does() {
    let directory = TempDir::new().unwrap();
    // The second fixture has bytes that overflowed.
    let fixtures = [COMPILED, EXECUTED];
    let whole = fixtures.map(|fixture| compiled(Path::new(fixture)).expect("a compilation"));
    let differs = |without: Option<(&str, &str)>| {
        let mut pairs = fixtures.iter().zip(&whole);
        pairs.any(|(fixture, whole)| {
            let path = reduced_to(of_fit(), &directory, fixture, without);
            compiled(&path).as_ref() != Some(whole)
        })
    };
    assert!(!differs(None), "the library reads more");
    for &(table, columns) in FIT {
        for &column in columns {
            let matters = differs(Some((table, column)));
            assert!(matters, "{table}.{column} is read for nothing");
        }
    }
}
