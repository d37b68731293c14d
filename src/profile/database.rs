//! SQLite, strictly read-only, as scans over one table each.

use super::error::ProfileError;
use super::{FormatVersion, encoding::BlobError};
use crate::progress::{Progress, Rows, Task, Unit};
use rayon::prelude::*;
use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};
use rustc_hash::FxHashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Columns of each table by its name, in lower case.
type Schema = FxHashMap<String, Vec<String>>;

/// An open profile.
pub(super) struct Database {
    path: PathBuf,
    connection: Connection,
    schema: Schema,
    rows: Task,
    /// What `version_info` says; zero until it was read.
    pub(super) version: FormatVersion,
}

impl Database {
    /// Opens `path` so that nothing is written, neither to it nor beside it:
    /// `immutable=1` keeps SQLite from locks, journals and shared memory, so
    /// a file that has changes waiting beside it is refused first.
    pub(super) fn open(path: &Path, progress: &Progress) -> Result<Self, ProfileError> {
        check_header(path)?;
        check_unfinished(path)?;
        let connection = connect(path)?;
        let schema = read_schema(&connection)?;
        let tables = LARGE_TABLES.iter();
        let rows = tables.fold(0u64, |rows, table| {
            rows.saturating_add(rows_at_most(&connection, table))
        });
        Ok(Self {
            path: path.to_owned(),
            connection,
            schema,
            rows: progress.begin("reading profile.pop", Unit::Rows, rows),
            version: FormatVersion::default(),
        })
    }

    /// Is there a table of this name (not a view)?
    pub(super) fn has_table(&self, table: &str) -> bool {
        self.schema.contains_key(table)
    }

    /// Checks that the table and the columns are there.
    pub(super) fn require(
        &self,
        table: &'static str,
        columns: &[&'static str],
    ) -> Result<(), ProfileError> {
        let version = self.version;
        let Some(present) = self.schema.get(table) else {
            return Err(ProfileError::MissingTable { table, version });
        };
        match columns.iter().find(|c| !present.iter().any(|p| p == *c)) {
            Some(column) => Err(ProfileError::MissingColumn {
                table,
                column,
                version,
            }),
            None => Ok(()),
        }
    }

    /// Calls `visit` with each row of `table`, in rowid order, without a sort.
    /// The first column names the row in errors.
    pub(super) fn scan(
        &self,
        table: &'static str,
        columns: &'static [&'static str],
        visit: impl FnMut(Cells<'_>) -> Result<(), ProfileError>,
    ) -> Result<(), ProfileError> {
        self.scan_where(table, columns, "", visit)
    }

    /// The same for the rows that `condition` (SQL, from `WHERE` on) selects.
    pub(super) fn scan_where(
        &self,
        table: &'static str,
        columns: &'static [&'static str],
        condition: &str,
        visit: impl FnMut(Cells<'_>) -> Result<(), ProfileError>,
    ) -> Result<(), ProfileError> {
        self.require(table, columns)?;
        scan(&self.connection, table, columns, condition, visit)
    }

    /// Scans a large table in chunks, each on a connection of its own, as many
    /// at a time as there are threads. `visit` fills one `T` for each chunk;
    /// they come back in rowid order.
    pub(super) fn scan_chunks<T: Default + Send>(
        &self,
        table: &'static str,
        columns: &'static [&'static str],
        visit: impl Fn(Cells<'_>, &mut T) -> Result<(), ProfileError> + Sync,
    ) -> Result<Vec<T>, ProfileError> {
        self.require(table, columns)?;
        let Some((first, last)) = self.rowid_bounds(table)? else {
            return Ok(Vec::new());
        };
        let (path, task) = (&self.path, &self.rows);
        let chunk = |(from, to): (i64, i64)| {
            let mut filled = T::default();
            let between = format!("WHERE rowid BETWEEN {from} AND {to}");
            let connection = connect(path)?;
            let mut rows = Rows::new(task);
            scan(&connection, table, columns, &between, |row| {
                rows.next();
                visit(row, &mut filled)
            })?;
            Ok(filled)
        };
        chunks(first, last).into_par_iter().map(chunk).collect()
    }

    /// The smallest and largest rowid of `table`; `None` when it is empty.
    pub(super) fn rowid_bounds(
        &self,
        table: &'static str,
    ) -> Result<Option<(i64, i64)>, ProfileError> {
        rowid_bounds(&self.connection, table).map_err(|source| ProfileError::Sqlite {
            place: table,
            source,
        })
    }
}

fn rowid_bounds(connection: &Connection, table: &str) -> rusqlite::Result<Option<(i64, i64)>> {
    let bound = |order| -> rusqlite::Result<Option<i64>> {
        let sql = format!("SELECT {order}(rowid) FROM \"{table}\"");
        connection.query_row(&sql, [], |row| row.get(0))
    };
    Ok(bound("min")?.zip(bound("max")?))
}

/// The tables that are scanned in chunks; nearly all of the time goes there,
/// so only their rows count as progress.
const LARGE_TABLES: [&str; 2] = ["vars_info", "exchange_regions"];

/// How many rows the table can have by its rowids, 0 when there is no telling:
/// whatever is wrong with it comes out when it is read.
fn rows_at_most(connection: &Connection, table: &str) -> u64 {
    match rowid_bounds(connection, table) {
        Ok(Some((first, last))) => last.abs_diff(first).saturating_add(1),
        _ => 0,
    }
}

fn scan(
    connection: &Connection,
    table: &'static str,
    columns: &'static [&'static str],
    condition: &str,
    mut visit: impl FnMut(Cells<'_>) -> Result<(), ProfileError>,
) -> Result<(), ProfileError> {
    let failed = |source| ProfileError::Sqlite {
        place: table,
        source,
    };
    let list = columns.join("\", \"");
    // An index may hold all columns that are asked for; the table's own order
    // is read faster.
    let sql = format!("SELECT \"{list}\" FROM \"{table}\" NOT INDEXED {condition}");
    let mut statement = connection.prepare(&sql).map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        visit(Cells {
            row,
            table,
            columns,
        })?;
    }
    Ok(())
}

/// Below so many rowids a table is read in one go.
const SMALL: i128 = 100_000;
/// Into how many chunks a large table is cut: several for each thread, since
/// the threads have other work too.
const CHUNKS: i128 = 8;

/// Stretches of rowids, both ends inclusive, that cover `first..=last`.
fn chunks(first: i64, last: i64) -> Vec<(i64, i64)> {
    let rows = i128::from(last) - i128::from(first) + 1;
    let count = if rows < SMALL { 1 } else { CHUNKS };
    let bound = |n: i128| (i128::from(first) + rows * n / count) as i64;
    (0..count)
        .map(|n| {
            (
                bound(n),
                (i128::from(first) + rows * (n + 1) / count - 1) as i64,
            )
        })
        .collect()
}

/// One row of a scan. Columns are given by their place in the scan's list.
#[derive(Clone, Copy)]
pub(super) struct Cells<'r> {
    row: &'r Row<'r>,
    table: &'static str,
    columns: &'static [&'static str],
}

impl<'r> Cells<'r> {
    fn value(&self, column: usize) -> Result<ValueRef<'r>, ProfileError> {
        self.row
            .get_ref(column)
            .map_err(|source| ProfileError::Sqlite {
                place: self.table,
                source,
            })
    }

    /// An integer that may be NULL.
    pub(super) fn signed(&self, column: usize) -> Result<Option<i64>, ProfileError> {
        match self.value(column)? {
            ValueRef::Integer(value) => Ok(Some(value)),
            ValueRef::Null => Ok(None),
            other => Err(self.wrong(column, other, "an integer")),
        }
    }

    /// An integer from 0 on, or NULL.
    pub(super) fn optional(&self, column: usize) -> Result<Option<u64>, ProfileError> {
        self.signed(column)?
            .map(|value| {
                u64::try_from(value)
                    .map_err(|_| self.problem(column, format!("{value} is negative")))
            })
            .transpose()
    }

    /// An integer from 0 on.
    #[inline]
    pub(super) fn unsigned(&self, column: usize) -> Result<u64, ProfileError> {
        match self.value(column)? {
            ValueRef::Integer(value) if value >= 0 => Ok(value as u64),
            _ => self
                .optional(column)?
                .ok_or_else(|| self.problem(column, "it is NULL where a number belongs")),
        }
    }

    /// An integer from 0 to `u32::MAX`.
    #[inline]
    pub(super) fn small(&self, column: usize) -> Result<u32, ProfileError> {
        let value = self.unsigned(column)?;
        u32::try_from(value).map_err(|_| self.problem(column, format!("{value} is too large")))
    }

    /// A blob; NULL counts as empty.
    pub(super) fn blob(&self, column: usize) -> Result<&'r [u8], ProfileError> {
        match self.value(column)? {
            ValueRef::Blob(bytes) => Ok(bytes),
            ValueRef::Null => Ok(&[]),
            other => Err(self.wrong(column, other, "a blob")),
        }
    }

    /// A text; NULL counts as empty, bytes that are not UTF-8 are replaced.
    pub(super) fn text(&self, column: usize) -> Result<String, ProfileError> {
        match self.value(column)? {
            ValueRef::Text(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            ValueRef::Null => Ok(String::new()),
            other => Err(self.wrong(column, other, "a text")),
        }
    }

    /// An error that names this row and `column`.
    pub(super) fn problem(&self, column: usize, problem: impl ToString) -> ProfileError {
        let key = match self.value(0) {
            Ok(ValueRef::Integer(key)) => key.to_string(),
            Ok(ValueRef::Text(key)) => format!("'{}'", String::from_utf8_lossy(key)),
            _ => "without a key".to_string(),
        };
        let column = self.columns[column];
        ProfileError::cell(self.table, column, key, problem)
    }

    /// The same for a blob that could not be decoded.
    pub(super) fn bad_blob(&self, column: usize) -> impl Fn(BlobError) -> ProfileError + '_ {
        move |error| self.problem(column, error)
    }

    fn wrong(&self, column: usize, found: ValueRef<'_>, expected: &str) -> ProfileError {
        let found = found.data_type();
        self.problem(
            column,
            format!("it holds a value of type {found} where {expected} belongs"),
        )
    }
}

/// Looks at the first bytes, so that the usual mix-ups get words of their own.
fn check_header(path: &Path) -> Result<(), ProfileError> {
    let mut head = [0u8; 16];
    let mut filled = 0;
    let mut file = File::open(path)?;
    while filled < head.len() {
        match file.read(&mut head[filled..])? {
            0 => break,
            n => filled += n,
        }
    }
    match &head[..filled] {
        [] => Err(ProfileError::Empty),
        b"SQLite format 3\0" => Ok(()),
        [0xa0..=0xbf, ..] | [0xd9, 0xd9, 0xf7, ..] => Err(ProfileError::NotADatabase {
            hint: "; it looks like CBOR: is this the debug.cbor, with the two files swapped, \
                   or a profile of a format before 3?",
        }),
        [b'{', ..] => Err(ProfileError::NotADatabase {
            hint: "; it looks like JSON: profiles of format 1 cannot be read",
        }),
        _ => Err(ProfileError::NotADatabase { hint: "" }),
    }
}

/// Refuses a profile with a write-ahead log or a journal that holds changes.
fn check_unfinished(path: &Path) -> Result<(), ProfileError> {
    for suffix in ["-wal", "-journal"] {
        let mut name = OsString::from(path.as_os_str());
        name.push(suffix);
        let beside = PathBuf::from(name);
        if beside.metadata().is_ok_and(|m| m.len() > 0) {
            return Err(ProfileError::Unfinished(beside));
        }
    }
    Ok(())
}

fn connect(path: &Path) -> Result<Connection, ProfileError> {
    let failed = |source| ProfileError::Sqlite {
        place: "the file",
        source,
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection =
        Connection::open_with_flags(uri(&std::path::absolute(path)?), flags).map_err(failed)?;
    // SQLite's advice for files from strangers: no schema that runs code, no
    // writing to the schema, and cells checked before they are used.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)
        .and_then(|_| connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true))
        .and_then(|_| connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false))
        .and_then(|_| connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false))
        .map_err(failed)?;
    connection
        .pragma_update(None, "cell_size_check", true)
        .map_err(failed)?;
    Ok(connection)
}

/// A `file:` address for SQLite, with every byte that has a meaning in one
/// (or is not ASCII) escaped.
fn uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?mode=ro&immutable=1");
    uri
}

fn read_schema(connection: &Connection) -> Result<Schema, ProfileError> {
    let failed = |source| ProfileError::Sqlite {
        place: "the list of tables",
        source,
    };
    let sql = "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c \
               WHERE t.type = 'table'";
    let mut schema = Schema::default();
    let mut statement = connection.prepare(sql).map_err(failed)?;
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let table: String = row.get(0).map_err(failed)?;
        let column: String = row.get(1).map_err(failed)?;
        let columns = schema.entry(table.to_lowercase()).or_default();
        columns.push(column.to_lowercase());
    }
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_every_rowid_once() {
        for (first, last) in [(0, 5), (1, 1), (-7, 1_000_003), (i64::MIN, i64::MAX)] {
            let chunks = chunks(first, last);
            assert_eq!((chunks[0].0, chunks[chunks.len() - 1].1), (first, last));
            assert!(chunks.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0));
        }
    }

    #[test]
    fn paths_are_escaped_in_addresses() {
        let address = uri(Path::new("/a b/50%/what?#é"));
        assert_eq!(
            address,
            "file:/a%20b/50%25/what%3F%23%C3%A9?mode=ro&immutable=1"
        );
    }
}
