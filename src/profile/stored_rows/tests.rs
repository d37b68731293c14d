//! Rows from the pages against what SQLite itself reads.

use super::StoredRows;
use crate::profile::ProfileError;
use crate::profile::cells::{AnyRow, Cells};
use crate::profile::database::Database;
use crate::profile::open::Source;
use crate::profile::schema::Schema;
use crate::progress::Progress;
use proptest::collection::vec;
use proptest::prelude::*;
use rusqlite::Connection;
use rusqlite::types::{Value, ValueRef};
use std::path::Path;
use tempfile::TempDir;

type Rows = Vec<Vec<Value>>;

/// As SQLite reads them.
fn by_sqlite(path: &Path, columns: &[&str]) -> rusqlite::Result<Rows> {
    rows_of("t", path, columns)
}

fn rows_of(table: &str, path: &Path, columns: &[&str]) -> rusqlite::Result<Rows> {
    let connection = Source::find(path).unwrap().connect().unwrap();
    let sql = format!("SELECT {} FROM {table} NOT INDEXED", columns.join(", "));
    let mut statement = connection.prepare(&sql)?;
    let value = |row: &rusqlite::Row<'_>, n| Ok(owned(row.get_ref(n)?));
    let values = |row: &rusqlite::Row<'_>| (0..columns.len()).map(|n| value(row, n)).collect();
    statement.query_map([], values)?.collect()
}

/// A damaged text is one all the same.
fn owned(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Text(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        value => value.try_into().unwrap(),
    }
}

/// As they are stored; `None` when that is left to SQLite.
fn by_pages(path: &Path, columns: &[&str]) -> Option<Rows> {
    let source = Source::find(path).unwrap();
    let schema = Schema::read(&source.connect().unwrap()).ok()?;
    let (root, stored) = schema.stored("t", columns)?;
    let parts = StoredRows::of(&source, root, &stored)?.chunks(|chunk| {
        let mut rows = Rows::new();
        chunk.visit(|record| {
            let values = (0..columns.len()).map(|n| owned(record.value(n)));
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
}

/// Wrong values for a byte: kinds of pages and values, lengths, limits.
fn wrong_bytes(byte: u8) -> Vec<u8> {
    let neighbours = [byte.wrapping_add(1), byte ^ 0x80];
    [&[0, 5, 13, 255][..], &neighbours].concat()
}

/// Where a byte is wrong, the rows are those of SQLite, or SQLite is asked. Every byte that
/// is not in the middle of a value is tried.
#[test]
fn a_wrong_byte_changes_nothing_of_what_is_read() {
    let directory = TempDir::new().unwrap();
    let path = file(
        &directory,
        "PRAGMA page_size = 512; CREATE TABLE t (id, first, second)",
    );
    let rows: Vec<_> = (0..40)
        .map(|n| {
            (
                1,
                Value::Integer(n),
                Value::Blob(vec![n as u8; n as usize * 10]),
            )
        })
        .collect();
    write(&path, &rows, 7);
    let sound = std::fs::read(&path).unwrap();
    let is_within = |place: &usize| {
        let around = sound.get(place - 5..place + 5);
        around.is_some_and(|around| around.iter().all(|byte| *byte == around[0]))
    };
    let (mut read, mut left) = (0, 0);
    // The header and the schema are in front of the second page.
    for place in (512..sound.len()).filter(|place| !is_within(place)) {
        for byte in wrong_bytes(sound[place]) {
            let mut bytes = sound.clone();
            bytes[place] = byte;
            std::fs::write(&path, bytes).unwrap();
            match by_pages(&path, COLUMNS) {
                Some(rows) => {
                    read += 1;
                    let expected = by_sqlite(&path, COLUMNS).map_err(|error| error.to_string());
                    assert_eq!(Ok(rows), expected, "{byte} at {place}");
                }
                None => left += 1,
            }
        }
    }
    assert!(read > 1000 && left > 1000, "{read} read, {left} left");
}

/// The columns of [`scanned`], as every profile has them.
const SCANNED: &[&str] = &["tile", "size_bytes"];

/// As the profile is read, from the pages or by SQLite.
fn scanned(path: &Path) -> Result<Rows, ProfileError> {
    let database = Database::open(path, &Progress::new())?;
    let visit = |row: Cells<'_>, rows: &mut Rows| {
        let value = |column| match row.row {
            AnyRow::Sqlite(row) => owned(row.get_ref(column).unwrap()),
            AnyRow::Stored(record) => owned(record.value(column)),
        };
        rows.push((0..SCANNED.len()).map(value).collect());
        Ok(())
    };
    Ok(database
        .scan_chunks("vars_info", SCANNED, || visit)?
        .concat())
}

/// Columns beside these, whose names are those of rowids or whose values are computed.
fn more_columns() -> impl Strategy<Value = Vec<&'static str>> {
    let all = [
        "rowid",
        "_rowid_ TEXT",
        "oid INTEGER DEFAULT 9",
        "\"RowId\" INT",
        "computed AS (1) VIRTUAL",
        "kept AS (2) STORED",
        "kept_more INT AS (tile) STORED",
        "text TEXT COLLATE NOCASE DEFAULT 'x'",
        "number REAL",
    ];
    proptest::sample::subsequence(all.to_vec(), 0..5)
}

/// How a table is declared: the types of its columns, its key, and what follows.
fn declaration() -> impl Strategy<Value = String> {
    let types = [
        "",
        "INT",
        "INTEGER",
        "REAL",
        "TEXT",
        "BLOB",
        "NUMERIC",
        "FLOATING POINT",
    ];
    let types = || proptest::sample::select(types.to_vec());
    let keys = [
        "",
        ", PRIMARY KEY (id)",
        ", PRIMARY KEY (id DESC)",
        ", PRIMARY KEY (id, tile)",
        ", UNIQUE (id)",
    ];
    let ends = ["", " WITHOUT ROWID"];
    let ids = ["INTEGER", "INT", "", "INTEGER NOT NULL"];
    let parts = (
        proptest::sample::select(ids.to_vec()),
        types(),
        types(),
        more_columns(),
        proptest::sample::select(keys.to_vec()),
        proptest::sample::select(ends.to_vec()),
    );
    parts.prop_map(|(id, first, second, more, key, end)| {
        let mut columns = vec![
            format!("tile {first}"),
            format!("id {id}"),
            format!("size_bytes {second}"),
        ];
        columns.extend(more.into_iter().map(String::from));
        columns.dedup_by_key(|name| name.to_lowercase());
        let end = if key.starts_with(", PRIMARY") {
            end
        } else {
            ""
        };
        format!("CREATE TABLE vars_info ({}{key}){end}", columns.join(", "))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Whoever reads it, a table of any kind has the rows that SQLite says it has.
    #[test]
    fn tables_of_all_kinds_have_the_rows_of_sqlite(
        declaration in declaration(),
        settings in proptest::sample::select(vec![
            "", "PRAGMA encoding = 'UTF-16'", "PRAGMA page_size = 512",
            "PRAGMA auto_vacuum = 1",
        ]),
        after in proptest::sample::select(vec![
            "", "ALTER TABLE vars_info ADD COLUMN later DEFAULT 5",
            "ALTER TABLE vars_info RENAME COLUMN size_bytes TO was;
             ALTER TABLE vars_info ADD COLUMN size_bytes INT DEFAULT 8",
            "CREATE INDEX by_size ON vars_info (size_bytes, tile)",
            "DELETE FROM vars_info WHERE id % 3 = 0", "VACUUM",
        ]),
        rows in vec((any::<i32>(), value(), value()), 0..60),
    ) {
        let directory = TempDir::new().unwrap();
        let path = file(&directory, settings);
        let connection = Connection::open(&path).unwrap();
        // Two names may be one to SQLite.
        prop_assume!(connection.execute_batch(&declaration).is_ok());
        // Each row for itself would be written to the disk.
        connection.execute_batch("PRAGMA synchronous = OFF; BEGIN").unwrap();
        for row in rows {
            let sql = "INSERT OR IGNORE INTO vars_info (id, tile, size_bytes) VALUES (?1, ?2, ?3)";
            connection.execute(sql, row).unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
        connection.execute_batch(after).unwrap();
        drop(connection);
        let expected = rows_of("vars_info", &path, SCANNED).unwrap();
        let found = scanned(&path);
        prop_assert_eq!(found.unwrap(), expected, "{}", declaration);
    }
}

/// SQLite writes NULL for a key that is the rowid, and reads no other value there.
#[test]
fn a_value_in_the_place_of_the_rowid_is_left_to_sqlite() {
    let directory = TempDir::new().unwrap();
    let path = file(
        &directory,
        "PRAGMA page_size = 512; CREATE TABLE t (first, id, second);
         INSERT INTO t VALUES (1, 77, 3); PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET sql = 'CREATE TABLE t (first, id INTEGER PRIMARY KEY, second)'",
    );
    assert_eq!(by_pages(&path, COLUMNS), None);
    let id = by_sqlite(&path, COLUMNS).unwrap()[0][1].clone();
    assert_eq!(id, Value::Integer(1));
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
