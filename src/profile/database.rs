//! Read-only access to SQLite by scans over single tables, whose columns are checked.

mod ranges;

use super::FormatVersion;
use super::cells::Cells;
use super::error::sqlite;
use super::ids::Ids;
use super::open::Source;
use crate::message::{FileError, GIVE_PROFILE, PROFILE_AGAIN};
use crate::progress::{Progress, Task, Unit};
use rusqlite::{Connection, Params};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An open profile.
pub(super) struct Database {
    /// The file as it was when it was opened.
    pub(super) source: Source,
    /// Open connections that no scan uses at the moment.
    idle: Mutex<Vec<Connection>>,
    schema: Schema,
    rows: Task,
    /// Version stated in `version_info`; zero before it was read.
    pub(super) version: FormatVersion,
}

impl Database {
    /// Opens `path` such that nothing is written, neither to the file nor beside it (see
    /// [`Source`]), and reads the format version.
    pub(super) fn open(path: &Path, progress: &Progress) -> Result<Self, FileError> {
        Self::of(Source::find(path)?, progress)
    }

    fn of(source: Source, progress: &Progress) -> Result<Self, FileError> {
        let connection = source.connect()?;
        let schema = Schema::read(&connection)?;
        let rows = ranges::rows_at_most(&connection, &schema);
        let mut database = Self {
            source,
            idle: Mutex::new(vec![connection]),
            schema,
            rows: progress.begin("reading profile.pop", Unit::Rows, rows),
            version: FormatVersion::default(),
        };
        database.version = FormatVersion::read(&database)?;
        Ok(database)
    }

    /// Is there a table, view or virtual table of this name? (Only tables can be read.)
    pub(super) fn has_table(&self, table: &str) -> bool {
        self.schema.0.contains_key(table)
    }

    /// Checks that the table exists with these columns.
    pub(super) fn require(
        &self,
        table: &'static str,
        columns: &[&'static str],
    ) -> Result<(), FileError> {
        let version = self.version;
        let Some(entry) = self.schema.0.get(table) else {
            return Err(FileError::new(format!(
                "table `{table}` is missing (report format {version}); {PROFILE_AGAIN}"
            )));
        };
        if let Some(found) = entry.instead {
            return Err(FileError::new(format!(
                "`{table}` is {found} instead of a table, and popliner runs no code from files; \
                 {GIVE_PROFILE}"
            )));
        }
        for &column in columns {
            match entry.columns.get(column) {
                Some(false) => {}
                Some(true) => {
                    return Err(FileError::new(format!(
                        "column `{column}` of table `{table}` is computed when it is read, and \
                         popliner runs no code from files; {GIVE_PROFILE}"
                    )));
                }
                None => {
                    return Err(FileError::new(format!(
                        "column `{column}` of table `{table}` is missing (report format \
                         {version}); {PROFILE_AGAIN}"
                    )));
                }
            }
        }
        Ok(())
    }

    /// The first `columns` that the table has, up to one that it lacks; the table must have
    /// `required` of them.
    pub(super) fn columns(
        &self,
        table: &'static str,
        columns: &'static [&'static str],
        required: usize,
    ) -> Result<&'static [&'static str], FileError> {
        self.require(table, &columns[..required])?;
        let more = columns[required..].iter();
        let more = more.take_while(|&&column| self.require(table, &[column]).is_ok());
        Ok(&columns[..required + more.count()])
    }

    /// Opens a file again that was read before.
    ///
    /// # Errors
    /// If the file has changed since then.
    pub(super) fn open_again(source: &Source) -> Result<Self, FileError> {
        let found = Source::find(&source.path)?;
        source.check_same(&found)?;
        Self::of(found, &Progress::new())
    }

    /// Calls `visit` with each row of `table` in rowid order. Errors name a row by the first of
    /// `columns`.
    pub(super) fn scan(
        &self,
        table: &'static str,
        columns: &'static [&'static str],
        mut visit: impl FnMut(Cells<'_>) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        self.require(table, columns)?;
        let sql = select(table, columns, "", "");
        self.query(table, columns, &sql, [], |row| {
            visit(row)?;
            Ok(ControlFlow::Continue(()))
        })
    }

    /// The values that `read` takes from the rows of `table`, in rowid order.
    pub(super) fn rows<T>(
        &self,
        table: &'static str,
        columns: &'static [&'static str],
        mut read: impl FnMut(Cells<'_>) -> Result<T, FileError>,
    ) -> Result<Vec<T>, FileError> {
        let mut values = Vec::new();
        self.scan(table, columns, |row| {
            values.push(read(row)?);
            Ok(())
        })?;
        Ok(values)
    }

    /// As [`Database::rows`], but no values if the table or one of the columns is missing.
    pub(super) fn rows_if_any<T>(
        &self,
        table: &'static str,
        columns: &'static [&'static str],
        read: impl FnMut(Cells<'_>) -> Result<T, FileError>,
    ) -> Result<Vec<T>, FileError> {
        match self.require(table, columns) {
            Ok(()) => self.rows(table, columns, read),
            Err(_) => Ok(Vec::new()),
        }
    }

    /// As [`Database::rows`], with an index of the ids in the first column.
    pub(super) fn indexed<T>(
        &self,
        table: &'static str,
        columns: &'static [&'static str],
        mut read: impl FnMut(Cells<'_>) -> Result<T, FileError>,
    ) -> Result<(Ids, Vec<T>), FileError> {
        let mut ids = Vec::new();
        let values = self.rows(table, columns, |row| {
            ids.push(row.unsigned(0)?);
            read(row)
        })?;
        Ok((Ids::of(table, columns[0], &ids)?, values))
    }

    /// As [`Database::rows`], by the id in the first column, which no other row may have.
    pub(super) fn by_id<T>(
        &self,
        table: &'static str,
        columns: &'static [&'static str],
        mut read: impl FnMut(Cells<'_>) -> Result<T, FileError>,
    ) -> Result<FxHashMap<u64, T>, FileError> {
        let mut values = FxHashMap::default();
        self.scan(table, columns, |row| {
            let value = read(row)?;
            row.check_first(values.insert(row.unsigned(0)?, value).is_none())
        })?;
        Ok(values)
    }

    /// As [`Database::by_id`], of the rows with these `ids`. SQLite looks them up if the first
    /// column is the rowid, as in the files of Poplar.
    pub(super) fn with_ids<T>(
        &self,
        table: &'static str,
        columns: &'static [&'static str],
        ids: FxHashSet<u64>,
        mut read: impl FnMut(Cells<'_>) -> Result<T, FileError>,
    ) -> Result<FxHashMap<u64, T>, FileError> {
        self.require(table, columns)?;
        let mut values = FxHashMap::default();
        let mut ids: Vec<u64> = ids.into_iter().collect();
        ids.sort_unstable();
        for ids in ids.chunks(LOOKED_UP) {
            let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
            let condition = format!("WHERE \"{}\" IN ({})", columns[0], ids.join(", "));
            let sql = select(table, columns, "", &condition);
            self.query(table, columns, &sql, [], |row| {
                values.insert(row.unsigned(0)?, read(row)?);
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(values)
    }

    /// Does the table have a row?
    pub(super) fn has_rows(&self, table: &'static str) -> Result<bool, FileError> {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM \"{table}\")");
        self.with_connection(|connection| {
            let found = connection.query_row(&sql, [], |row| row.get(0));
            found.map_err(sqlite(table))
        })
    }

    /// Calls `visit` with the rows of the statement `sql` until it breaks. The statement selects
    /// `columns` first.
    fn query(
        &self,
        table: &'static str,
        columns: &'static [&'static str],
        sql: &str,
        parameters: impl Params,
        mut visit: impl FnMut(Cells<'_>) -> Result<ControlFlow<()>, FileError>,
    ) -> Result<(), FileError> {
        let failed = sqlite(table);
        let payload_left = Cell::new(self.source.max_payload());
        self.with_connection(|connection| {
            let mut statement = connection.prepare(sql).map_err(&failed)?;
            let mut rows = statement.query(parameters).map_err(&failed)?;
            while let Some(row) = rows.next().map_err(&failed)? {
                let cells = Cells {
                    row,
                    table,
                    columns,
                    payload_left: &payload_left,
                };
                if visit(cells)?.is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Calls `work` with an idle connection, or a new one.
    fn with_connection<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        let idle = self.idle().pop();
        let connection = idle.map_or_else(|| self.source.connect(), Ok)?;
        let done = work(&connection);
        self.idle().push(connection);
        done
    }

    /// A poisoned lock is taken too: a panic cannot leave the list half changed.
    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ids looked up by one statement: more would exceed the limit on operations of a statement.
const LOOKED_UP: usize = 5000;

/// Statement that reads `columns` of `table`, and then `more`. Without `NOT INDEXED`, SQLite would
/// use an index that covers these columns, and reading the table in its own order is faster.
fn select(table: &str, columns: &[&str], more: &str, condition: &str) -> String {
    let list = columns.join("\", \"");
    format!("SELECT \"{list}\"{more} FROM \"{table}\" NOT INDEXED {condition}")
}

/// Tables and views of a file, by name in lower case.
pub(super) struct Schema(FxHashMap<String, SchemaEntry>);

struct SchemaEntry {
    /// Kind of an entry that is no table, with its article; `None` for a table.
    instead: Option<&'static str>,
    /// Is the entry a table without rowids? (`WITHOUT ROWID`)
    is_without_rowid: bool,
    /// By name of the column in lower case: is it computed when it is read?
    columns: FxHashMap<String, bool>,
}

impl Schema {
    pub(super) fn read(connection: &Connection) -> Result<Self, FileError> {
        let mut schema = Self(FxHashMap::default());
        let read = schema.fill(connection);
        read.map_err(sqlite("the list of tables"))?;
        Ok(schema)
    }

    /// Reads the entries. Views and virtual tables have no root page; their columns are not
    /// queried, since that would run their definitions.
    fn fill(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let sql = "SELECT t.name, t.type, CAST(t.rootpage AS INTEGER), c.name, c.hidden, \
                   (SELECT wr FROM pragma_table_list(t.name) WHERE schema = 'main') \
                   FROM sqlite_schema t \
                   LEFT JOIN pragma_table_xinfo(iif(t.rootpage > 0, t.name, NULL)) c \
                   WHERE t.type IN ('table', 'view')";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let text = |column| -> rusqlite::Result<String> {
                let bytes = row.get_ref(column)?.as_bytes_or_null()?.unwrap_or_default();
                Ok(String::from_utf8_lossy(bytes).into_owned())
            };
            let is_set = |column| -> rusqlite::Result<bool> {
                Ok(row.get::<_, Option<i64>>(column)?.unwrap_or(0) != 0)
            };
            let root: Option<i64> = row.get(2)?;
            let instead = match (text(1)?.as_str(), root) {
                ("view", _) => Some("a view"),
                (_, Some(1..)) => None,
                _ => Some("a virtual table"),
            };
            let name = text(0)?.to_lowercase();
            let entry = self.0.entry(name).or_insert(SchemaEntry {
                instead,
                is_without_rowid: is_set(5)?,
                columns: FxHashMap::default(),
            });
            let column = text(3)?.to_lowercase();
            entry.columns.entry(column).or_insert(is_set(4)?);
        }
        Ok(())
    }

    /// An SQL name of the table's rowid that is not also a column; `None` if there is none.
    pub(super) fn rowid(&self, table: &str) -> Option<&'static str> {
        let entry = self.0.get(table).filter(|entry| !entry.is_without_rowid)?;
        let mut names = ["rowid", "_rowid_", "oid"].into_iter();
        names.find(|&name| !entry.columns.contains_key(name))
    }
}
