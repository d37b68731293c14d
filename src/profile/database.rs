//! SQLite, strictly read-only, as scans over one table each.

use super::error::ProfileError;
use super::{FormatVersion, encoding::BlobError};
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
    connection: Connection,
    schema: Schema,
    /// What `version_info` says; zero until it was read.
    pub(super) version: FormatVersion,
}

impl Database {
    /// Opens `path` so that nothing is written, neither to it nor beside it:
    /// `immutable=1` keeps SQLite from locks, journals and shared memory, so
    /// a file that has changes waiting beside it is refused first.
    pub(super) fn open(path: &Path) -> Result<Self, ProfileError> {
        check_header(path)?;
        check_unfinished(path)?;
        let connection = connect(path)?;
        let schema = read_schema(&connection)?;
        Ok(Self {
            connection,
            schema,
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

    /// Calls `visit` with each row of `table`, in the order that SQLite keeps
    /// them, without a sort. The first column names the row in errors.
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
        mut visit: impl FnMut(Cells<'_>) -> Result<(), ProfileError>,
    ) -> Result<(), ProfileError> {
        self.require(table, columns)?;
        let failed = |source| ProfileError::Sqlite {
            place: table,
            source,
        };
        let list = columns.join("\", \"");
        let sql = format!("SELECT \"{list}\" FROM \"{table}\" {condition}");
        let mut statement = self.connection.prepare(&sql).map_err(failed)?;
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

    /// The smallest and largest rowid of `table`; `None` when it is empty.
    pub(super) fn rowid_bounds(
        &self,
        table: &'static str,
    ) -> Result<Option<(i64, i64)>, ProfileError> {
        let bound = |order| -> Result<Option<i64>, ProfileError> {
            let sql = format!("SELECT {order}(rowid) FROM \"{table}\"");
            self.connection
                .query_row(&sql, [], |row| row.get(0))
                .map_err(|source| ProfileError::Sqlite {
                    place: table,
                    source,
                })
        };
        Ok(bound("min")?.zip(bound("max")?))
    }
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
