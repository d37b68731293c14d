//! The list of tables that the floor goes over, held against what the library
//! reads: no table or column more, and none less.

#[path = "../examples/floor/tables.rs"]
mod tables;

use popliner::profile::{Profile, ProfileError};
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use tables::TABLES;
use tempfile::TempDir;

/// A fixture that has every table of the list, calls and code copies included.
const FIXTURE: &str = "fixtures/poptorch-bert-training/profile.pop";

/// Writes a profile with the tables and columns of the list and no others,
/// leaving out one column if `without` names it.
fn reduced(directory: &TempDir, without: Option<(&str, &str)>) -> PathBuf {
    let path = directory.path().join("reduced.pop");
    let _ = std::fs::remove_file(&path);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let connection = Connection::open_with_flags(&path, flags).unwrap();
    connection
        .execute("ATTACH DATABASE ?1 AS whole", [FIXTURE])
        .unwrap();
    for (table, columns) in TABLES {
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
    path
}

#[test]
fn the_library_reads_nothing_that_the_floor_leaves_out() {
    let directory = TempDir::new().unwrap();
    let whole = Profile::read(Path::new(FIXTURE)).unwrap();
    let reduced = Profile::read(&reduced(&directory, None)).unwrap();
    // What prints alike is alike; only the path differs.
    let shown = |profile: &Profile| {
        format!(
            "{:?} {:?} {:?} {:?}",
            (&profile.version, &profile.target, &profile.programs),
            (&profile.steps, &profile.classes, &profile.variables),
            (&profile.compute_set_variables, &profile.region_variables),
            (&profile.recorded, &profile.warnings),
        )
    };
    assert!(shown(&whole) == shown(&reduced), "the reduced file differs");
}

#[test]
fn the_library_reads_all_that_the_floor_reads() {
    let directory = TempDir::new().unwrap();
    for &(table, columns) in TABLES {
        for &column in columns {
            let error = Profile::read(&reduced(&directory, Some((table, column))));
            match error.map(|_| ()) {
                Err(ProfileError::MissingColumn {
                    table: in_table,
                    column: missing,
                    ..
                }) => assert_eq!((in_table, missing), (table, column)),
                other => panic!("without {table}.{column}: {other:?}"),
            }
        }
    }
}
