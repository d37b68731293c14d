//! The list of tables in the performance floor matches the tables and columns that the library
//! reads.

#[path = "../../../examples/floor/tables.rs"]
mod tables;

use popliner::profile::{CompiledProfile, Profile, ProfileError, VariableLists};
use rusqlite::Connection;
use std::path::Path;
use std::sync::LazyLock;
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

/// A column and its table.
type Column = (&'static str, &'static str);

/// Returns all columns of some tables.
fn columns(tables: &[(&'static str, &'static [&'static str])]) -> Vec<Column> {
    let tables = tables.iter();
    let columns = tables.flat_map(|&(table, columns)| columns.iter().map(move |&c| (table, c)));
    columns.collect()
}

/// Writes a profile with only these tables and columns; `without` leaves out one column. Reads it.
fn reduced<T>(
    tables: Tables,
    fixture: &str,
    without: Option<Column>,
    read: impl Fn(&Path) -> T,
) -> T {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("reduced.pop");
    let connection = Connection::open(&path).unwrap();
    let attach = "ATTACH DATABASE ?1 AS whole";
    connection.execute(attach, [fixture]).unwrap();
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
    read(&path)
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

/// Reads a fixture without one column.
fn without(fixture: &str, column: Option<Column>) -> Result<String, ProfileError> {
    reduced(all(), fixture, column, |path| {
        Profile::read(path).map(|profile| dump(&profile))
    })
}

/// The content of two fixtures.
static WHOLE: LazyLock<[(&str, String); 2]> = LazyLock::new(|| {
    let whole = |fixture| dump(&Profile::read(Path::new(fixture)).unwrap());
    [FIXTURE, EXECUTED].map(|fixture| (fixture, whole(fixture)))
});

/// Does the content depend on this column?
fn matters(column: Column) -> bool {
    let mut fixtures = WHOLE.iter();
    fixtures.any(|(fixture, whole)| without(fixture, Some(column)).unwrap() != *whole)
}

#[test]
fn the_library_reads_nothing_that_the_floor_leaves_out() {
    for (fixture, whole) in &*WHOLE {
        let is_equal = *whole == without(fixture, None).unwrap();
        assert!(is_equal, "{fixture} differs");
    }
}

/// Columns that only name variables. Their tables are optional, but are read.
const NAMES: [Column; 6] = [
    ("vars_info", "name_base_id"),
    ("vars_info", "unlowered_var_id"),
    ("vars_string_table", "id"),
    ("vars_string_table", "string"),
    ("debug_ids", "variable_id"),
    ("debug_ids", "ids"),
];

#[test]
fn the_library_reads_all_that_the_floor_reads() {
    for column in columns(TABLES) {
        match without(FIXTURE, Some(column)) {
            Ok(_) if NAMES.contains(&column) => {
                assert!(matters(column), "{column:?} is read for nothing");
            }
            Err(ProfileError::MissingColumn {
                table,
                column: missing,
                ..
            }) => assert_eq!((table, missing), column),
            other => panic!("without {column:?}: {:?}", other.map(|_| ())),
        }
    }
}

#[test]
fn the_library_reads_what_the_floor_reads_where_it_is_there() {
    for column in columns(OPTIONAL) {
        assert!(matters(column), "{column:?} is read for nothing");
    }
}

/// Reads a compilation as text; `None` if it was refused.
fn compiled(path: &Path) -> Option<String> {
    let profile = CompiledProfile::read(path, true).ok()?;
    Some(format!("{profile:?}"))
}

#[test]
fn of_a_compilation_the_floor_reads_what_the_library_does() {
    // The second fixture has bytes that overflowed.
    let fixtures = [COMPILED, EXECUTED];
    let whole = fixtures.map(|fixture| compiled(Path::new(fixture)).expect("a compilation"));
    let differs = |without: Option<Column>| {
        let mut pairs = fixtures.iter().zip(&whole);
        pairs.any(|(fixture, whole)| {
            reduced(of_fit(), fixture, without, compiled).as_ref() != Some(whole)
        })
    };
    assert!(!differs(None), "the library reads more");
    for column in columns(FIT) {
        assert!(differs(Some(column)), "{column:?} is read for nothing");
    }
}
