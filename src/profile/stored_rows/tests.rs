//! Rows from the pages against what SQLite itself reads.

use super::StoredRows;
use crate::profile::open::Source;
use crate::profile::schema::Schema;
use proptest::collection::vec;
use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::path::Path;
use tempfile::TempDir;

type Rows = Vec<Vec<Value>>;

/// As SQLite reads them.
fn by_sqlite(path: &Path, columns: &[&str]) -> rusqlite::Result<Rows> {
    let connection = Source::find(path).unwrap().connect().unwrap();
    let sql = format!("SELECT {} FROM t NOT INDEXED", columns.join(", "));
    let mut statement = connection.prepare(&sql)?;
    let values = |row: &rusqlite::Row<'_>| (0..columns.len()).map(|n| row.get(n)).collect();
    statement.query_map([], values)?.collect()
}

/// As they are stored; `None` when that is left to SQLite.
fn by_pages(path: &Path, columns: &[&str]) -> Option<Rows> {
    let source = Source::find(path).unwrap();
    let schema = Schema::read(&source.connect().unwrap()).ok()?;
    let (root, stored) = schema.stored("t", columns)?;
    let parts = StoredRows::of(&source, root, &stored)?.chunks(|chunk| {
        let mut rows = Rows::new();
        chunk.visit(|record| {
            let values = (0..columns.len()).map(|n| record.value(n).try_into().unwrap());
            rows.push(values.collect());
            Some(())
        })?;
        Some(rows)
    })?;
    Some(parts.concat())
}

/// A file with what `sql` makes, a table `t` among it.
fn file(directory: &TempDir, sql: &str) -> std::path::PathBuf {
    let path = directory.path().join("t.db");
    let connection = Connection::open(&path).unwrap();
    let fast = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;";
    connection.execute_batch(fast).unwrap();
    connection.execute_batch(sql).unwrap();
    path
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        (0i64..200).prop_map(Value::Integer),
        (any::<i64>(), 0u32..64).prop_map(|(value, bits)| Value::Integer(value >> bits)),
        (-1e9..1e9f64).prop_map(Value::Real),
        "[a-zé]{0,40}".prop_map(Value::Text),
        (0usize..4000, any::<u8>()).prop_map(|(length, byte)| Value::Blob(vec![byte; length])),
    ]
}

/// Two columns without a type, which keep values of any.
fn rows() -> impl Strategy<Value = Vec<(i64, Value, Value)>> {
    vec((1i64..1 << 40, value(), value()), 0..200)
}

/// Writes the rows, and takes every `step`-th away again.
fn write(path: &Path, rows: &[(i64, Value, Value)], step: usize) {
    let connection = Connection::open(path).unwrap();
    connection
        .execute_batch("PRAGMA synchronous = OFF; BEGIN")
        .unwrap();
    let mut id = -5;
    for (number, (gap, first, second)) in rows.iter().enumerate() {
        // Neighbours and leaps.
        id += if number % 3 == 0 { 1 } else { *gap };
        let sql = "INSERT INTO t (id, first, second) VALUES (?1, ?2, ?3)";
        connection.execute(sql, (id, first, second)).unwrap();
        if number % step == 0 {
            connection
                .execute("DELETE FROM t WHERE id = ?1", [id])
                .unwrap();
        }
    }
    connection.execute_batch("COMMIT").unwrap();
}

const COLUMNS: &[&str] = &["second", "id", "first"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rows_are_those_of_sqlite(
        rows in rows(),
        step in 2usize..50,
        page in prop_oneof![Just(512), Just(1024), Just(4096), Just(65_536)],
        vacuum in 0..2,
        key in prop_oneof![Just("INTEGER PRIMARY KEY"), Just("INTEGER"), Just("INT PRIMARY KEY")],
    ) {
        let directory = TempDir::new().unwrap();
        let path = file(&directory, &format!(
            "PRAGMA page_size = {page}; PRAGMA auto_vacuum = {vacuum};
             CREATE TABLE t (id {key}, first, unused TEXT DEFAULT 'a', second)"
        ));
        write(&path, &rows, step);
        prop_assert_eq!(by_pages(&path, COLUMNS), Some(by_sqlite(&path, COLUMNS).unwrap()));
    }

    /// Where a byte is wrong, the rows are those of SQLite, or SQLite is asked.
    #[test]
    fn a_wrong_byte_changes_nothing_of_what_is_read(at in 0usize..1 << 16, byte: u8) {
        let directory = TempDir::new().unwrap();
        let path = file(&directory, "PRAGMA page_size = 512; CREATE TABLE t (id, first, second)");
        let rows: Vec<_> = (0..120)
            .map(|n| (1, Value::Integer(n), Value::Blob(vec![n as u8; n as usize * 10])))
            .collect();
        write(&path, &rows, 7);
        let mut bytes = std::fs::read(&path).unwrap();
        // What is in front of the second page is the header and the schema.
        let place = 512 + at % (bytes.len() - 512);
        bytes[place] = byte;
        std::fs::write(&path, bytes).unwrap();
        if let Some(rows) = by_pages(&path, COLUMNS) {
            prop_assert_eq!(rows, by_sqlite(&path, COLUMNS).unwrap());
        }
    }
}

#[test]
fn a_table_with_many_rows_is_read_in_chunks() {
    let directory = TempDir::new().unwrap();
    let path = file(
        &directory,
        "PRAGMA page_size = 512; CREATE TABLE t (id INTEGER PRIMARY KEY, first, second);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
         INSERT INTO t SELECT i, i * 3, 'row ' || i FROM n",
    );
    let rows = by_pages(&path, COLUMNS).unwrap();
    assert_eq!(rows.len(), 50_000);
    assert_eq!(rows, by_sqlite(&path, COLUMNS).unwrap());
}

#[test]
fn what_is_unusual_is_left_to_sqlite() {
    let added = "CREATE TABLE t (id, first); INSERT INTO t VALUES (1, 2); \
                 ALTER TABLE t ADD COLUMN second DEFAULT 7";
    for sql in [
        added,
        "CREATE TABLE t (id, first, second, PRIMARY KEY (id)) WITHOUT ROWID",
        "CREATE TABLE t (id, first, second REAL)",
        "CREATE TABLE t (id, first, second, computed AS (first + 1))",
        "CREATE VIEW t AS SELECT 1 AS id, 2 AS first, 3 AS second",
        "PRAGMA encoding = 'UTF-16'; CREATE TABLE t (id, first, second)",
    ] {
        let directory = TempDir::new().unwrap();
        assert_eq!(by_pages(&file(&directory, sql), COLUMNS), None, "{sql}");
    }
}

/// A few bytes may claim any length, and pages that lead to each other have it.
#[test]
fn a_payload_longer_than_the_file_is_left_to_sqlite() {
    let directory = TempDir::new().unwrap();
    let path = file(
        &directory,
        "PRAGMA page_size = 512; CREATE TABLE t (id, first, second);
         INSERT INTO t VALUES (1, 2, zeroblob(3000))",
    );
    let mut bytes = std::fs::read(&path).unwrap();
    // The only cell of the second page: its length is two bytes, and becomes four.
    let cell = 512 + usize::from(u16::from_be_bytes([bytes[520], bytes[521]]));
    bytes.copy_within(cell + 3..cell + 100, cell + 5);
    bytes[cell..cell + 5].copy_from_slice(&[0xff, 0xff, 0xff, 0x7f, 0x01]);
    // Each page of the chain leads to itself.
    for page in 2..bytes.len() as u32 / 512 {
        bytes[page as usize * 512..][..4].copy_from_slice(&(page + 1).to_be_bytes());
    }
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(by_pages(&path, COLUMNS), None);
}

#[test]
fn keys_that_only_look_like_rowids_are_read_as_they_are() {
    for key in [
        "INTEGER PRIMARY KEY DESC",
        "INTEGER, PRIMARY KEY (id, first)",
    ] {
        let (key, more) = key.split_once(", ").unwrap_or((key, ""));
        let comma = if more.is_empty() { "" } else { ", " };
        let directory = TempDir::new().unwrap();
        let path = file(
            &directory,
            &format!(
                "CREATE TABLE t (id {key}, first, second{comma}{more});
                 INSERT INTO t VALUES (NULL, 1, 1), (9, 2, 2), (4, 3, 3)"
            ),
        );
        assert_eq!(
            by_pages(&path, COLUMNS),
            Some(by_sqlite(&path, COLUMNS).unwrap())
        );
    }
}
