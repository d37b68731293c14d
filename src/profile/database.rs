//! Gives read-only access to the tables of a profile. Each query scans a single table, after a
//! check that the table has the requested columns. `row_ranges.rs` reads large tables.

use super::{
    Cells, Ids, ProfileFile, Target,
    cells::{Columns, sqlite},
    row_batch::{RowBatch, STORE},
    row_ranges::rows_at_most,
    target::FormatVersion,
};
use crate::{
    message::{GIVE_PROFILE, PROFILE_AGAIN, Result, unusable},
    parallel::lock,
    progress::{Progress, Task},
};
use rusqlite::{Connection, Params, Row};
use rustc_hash::FxHashMap;
use std::{cell::Cell, collections::BTreeSet, path::Path, sync::Mutex};

pub struct Database {
    /// The profile on disk, and the state (size, time, header) that it had when it was opened.
    pub source: ProfileFile,
    /// Open connections to the profile that no query uses at the moment.
    idle: Mutex<Vec<Connection>>,
    pub schema: Schema,
    pub rows: Task,
    pub version: FormatVersion,
    /// The machine that the model was compiled for. A blob (an encoded list) with a value for each
    /// tile has as many values as this machine has tiles.
    pub target: Target,
}

impl Database {
    /// Opens the profile at `path`, and reads the names of its tables, its report format and its
    /// target. Writes nothing, neither to the file nor beside it (see [`ProfileFile`]). Reports the
    /// number of rows read to `progress`.
    pub fn open(path: &Path, progress: &Progress) -> Result<Self> {
        Self::of(ProfileFile::find(path)?, progress)
    }

    /// Opens the profile in the file `source`, which [`ProfileFile::find`] has checked for damage
    /// and pending changes.
    pub fn of(source: ProfileFile, progress: &Progress) -> Result<Self> {
        let connection = source.connect()?;
        let schema = Schema::read(&connection).map_err(sqlite("the list of tables"))?;
        let rows = rows_at_most(&connection, &schema);
        let mut database = Self {
            source,
            idle: Mutex::new(vec![connection]),
            schema,
            rows: progress.begin("reading profile.pop", rows),
            version: FormatVersion::default(),
            target: Target::default(),
        };
        database.version = FormatVersion::read(&database)?;
        database.target = Target::read(&database)?;
        Ok(database)
    }

    /// Returns whether the profile has a table, view or virtual table with the name `table`. (Views
    /// and virtual tables are never read, since they would run code from the file.)
    pub fn has_table(&self, table: &str) -> bool {
        self.schema.0.contains_key(table)
    }

    /// Returns an error unless `table` is a table (no view or virtual table) that has all of
    /// `columns`. A column whose values are computed when it is read is also an error, since no
    /// code from a file may run.
    pub fn require(&self, table: &'static str, columns: &[&'static str]) -> Result<()> {
        let missing = |what| {
            unusable(format!(
                "{what} is missing (report format {}); {PROFILE_AGAIN}",
                self.version
            ))
        };
        let runs_code = |what| {
            unusable(format!(
                "{what}, and popliner runs no code from files; {GIVE_PROFILE}"
            ))
        };
        let Some(entry) = self.schema.0.get(table) else {
            return missing(format!("table `{table}`"));
        };
        if let Some(found) = entry.instead {
            return runs_code(format!("`{table}` is {found} instead of a table"));
        }
        for &column in columns {
            let name = || format!("column `{column}` of table `{table}`");
            match entry.columns.get(column) {
                Some(false) => {}
                Some(true) => return runs_code(name() + " is computed when it is read"),
                None => return missing(name()),
            }
        }
        Ok(())
    }

    /// Returns the leading part of `columns`, up to but not including the first column that the
    /// table lacks.
    ///
    /// # Errors
    /// If the table lacks one of the first `required` columns of `columns`.
    pub fn columns(
        &self,
        table: &'static str,
        columns: Columns,
        required: usize,
    ) -> Result<Columns> {
        self.require(table, &columns[..required])?;
        let more = columns[required..]
            .iter()
            .take_while(|&&column| self.require(table, &[column]).is_ok());
        Ok(&columns[..required + more.count()])
    }

    /// Calls `read` for each row of `table`, in rowid order, with the row's cells in `columns`.
    /// Returns the values that `read` returned, or the first error. An error names the row by its
    /// value in the first of `columns`.
    pub fn rows<T>(
        &self,
        table: &'static str,
        columns: Columns,
        mut read: impl FnMut(Cells<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.require(table, columns)?;
        let mut values = Vec::new();
        let sql = select(table, columns, "", "1", "");
        self.query(table, columns, &sql, [], |row| {
            values.push(read(row)?);
            Ok(true)
        })?;
        Ok(values)
    }

    /// Reads the rows of `table` as [`rows`](Self::rows) does, but returns an empty list if the
    /// table or a column is missing.
    pub fn rows_if_any<T>(
        &self,
        table: &'static str,
        columns: Columns,
        read: impl FnMut(Cells<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        if self.require(table, columns).is_err() {
            return Ok(Vec::new());
        }
        self.rows(table, columns, read)
    }

    /// Reads the rows of `table` as [`rows`](Self::rows) does. Also returns a map from the id of a
    /// row (its value in the first of `columns`) to the position of the row in the returned list.
    pub fn indexed<T>(
        &self,
        table: &'static str,
        columns: Columns,
        mut read: impl FnMut(Cells<'_>) -> Result<T>,
    ) -> Result<(Ids, Vec<T>)> {
        let mut ids = Vec::new();
        let values = self.rows(table, columns, |row| {
            ids.push(row.unsigned(0)?);
            read(row)
        })?;
        Ok((Ids::of(table, columns[0], ids.iter().copied())?, values))
    }

    /// Calls `read` for each row of `table`. Returns a map from the id of a row (its value in the
    /// first of `columns`) to the value that `read` returned. Two rows with the same id are an
    /// error.
    pub fn by_id<T>(
        &self,
        table: &'static str,
        columns: Columns,
        mut read: impl FnMut(Cells<'_>) -> Result<T>,
    ) -> Result<FxHashMap<u64, T>> {
        let mut values = FxHashMap::default();
        self.rows(table, columns, |row| {
            let value = read(row)?;
            row.check_first(values.insert(row.unsigned(0)?, value).is_none())
        })?;
        Ok(values)
    }

    /// Calls `read` for the rows of `table` whose id (the value in the first of `columns`) is in
    /// `ids`. Returns a map from the id of a row to the value that `read` returned. SQLite looks
    /// the rows up instead of scanning the table if the id is the rowid, as in Poplar's files.
    pub fn with_ids<T>(
        &self,
        table: &'static str,
        columns: Columns,
        ids: BTreeSet<u64>,
        mut read: impl FnMut(Cells<'_>) -> Result<T>,
    ) -> Result<FxHashMap<u64, T>> {
        self.require(table, columns)?;
        let mut values = FxHashMap::default();
        let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
        for ids in ids.chunks(LOOKED_UP) {
            let condition = format!("\"{}\" IN ({})", columns[0], ids.join(", "));
            let sql = select(table, columns, "", &condition, "");
            self.query(table, columns, &sql, [], |row| {
                values.insert(row.unsigned(0)?, read(row)?);
                Ok(true)
            })?;
        }
        Ok(values)
    }

    /// Returns whether `table` has at least one row; `false` if the profile has no such table.
    pub fn has_rows(&self, table: &'static str) -> Result<bool> {
        let sql = format!("SELECT 1 FROM \"{table}\"");
        let exists = |connection: &Connection| connection.prepare(&sql)?.exists([]);
        Ok(self.has_table(table)
            && self.with_connection(|connection| exists(connection).map_err(sqlite(table)))?)
    }

    /// Runs the SQL statement `sql` with `parameters`. The statement must be one that [`select`]
    /// created for `columns` of `table`. Calls `visit` with each row until `visit` returns `false`.
    pub fn query(
        &self,
        table: &'static str,
        columns: Columns,
        sql: &str,
        parameters: impl Params,
        mut visit: impl FnMut(Cells<'_>) -> Result<bool>,
    ) -> Result<()> {
        let failed = sqlite(table);
        // A query reads at most this many bytes of texts and blobs, since the texts and blobs of a
        // damaged file may have far more bytes than the file. The limit exceeds the size of the
        // file: a text in UTF-16 grows by half when it is read, and a cell may be read twice.
        let payload_left = Cell::new(self.source.length.saturating_mul(4));
        self.with_connection(|connection| {
            let batch = RowBatch::new(connection).map_err(&failed)?;
            let mut statement = connection.prepare(sql).map_err(&failed)?;
            let mut full = statement.query(parameters).map_err(&failed)?;
            let mut is_last = false;
            while !is_last {
                is_last = full.next().map_err(&failed)?.is_none();
                let mut batch = lock(&batch);
                for cells in batch.rows() {
                    let cells = Cells {
                        cells,
                        bytes: &batch.bytes,
                        table,
                        columns,
                        tiles: self.target.num_tiles,
                        payload_left: &payload_left,
                    };
                    if !visit(cells)? {
                        return Ok(());
                    }
                }
                batch.clear();
            }
            Ok(())
        })
    }

    pub fn with_connection<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let idle = lock(&self.idle).pop();
        let connection = idle.map_or_else(|| self.source.connect(), Ok)?;
        let done = work(&connection);
        lock(&self.idle).push(connection);
        done
    }
}

/// Number of ids that [`Database::with_ids`] looks up in one statement. More ids would exceed the
/// limit on the operations of a statement (`SQLITE_LIMIT_VDBE_OP`).
const LOOKED_UP: usize = 5000;

/// Returns `name` quoted as an SQL identifier.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns the SQL statement that reads the rows of `table` that fulfil `condition`. It passes the
/// values of `columns` and of the expressions in `more` to the SQL function [`STORE`], which
/// collects rows in batches. `NOT INDEXED` keeps SQLite from using an index that covers these
/// columns, since reading the table in its own order is faster.
pub fn select(table: &str, columns: &[&str], more: &str, condition: &str, order: &str) -> String {
    let list = columns.join("\", \"");
    format!(
        "SELECT 1 FROM \"{table}\" NOT INDEXED \
         WHERE {condition} AND {STORE}(\"{list}\"{more}) {order}"
    )
}

/// Maps the name of each table or view of a profile, in lower case, to its kind and columns.
pub struct Schema(FxHashMap<String, SchemaEntry>);

struct SchemaEntry {
    /// The kind of the entry if it is no table, in words for an error message, such as `a view`;
    /// `None` for a table.
    instead: Option<&'static str>,
    /// Maps the name of each column, in lower case, to whether SQLite computes the values of the
    /// column when they are read.
    columns: FxHashMap<String, bool>,
}

/// Returns the text that a row of the schema has in `column`, in lower case; an empty text for
/// NULL.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(
        String::from_utf8_lossy(row.get_ref(column)?.as_bytes_or_null()?.unwrap_or_default())
            .to_lowercase(),
    )
}

impl Schema {
    /// Reads the names of the tables and views of a file, and the columns of the tables. Views and
    /// virtual tables, which have no root page, get no columns, since a query for their columns
    /// would run code.
    pub fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut entries = FxHashMap::default();
        let sql = "SELECT t.name, t.type, CAST(t.rootpage AS INTEGER), c.name, c.hidden \
                   FROM sqlite_schema t \
                   LEFT JOIN pragma_table_xinfo(iif(t.rootpage > 0, t.name, NULL)) c \
                   WHERE t.type IN ('table', 'view')";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let root: Option<i64> = row.get(2)?;
            let instead = match (text(row, 1)?.as_str(), root) {
                ("view", _) => Some("a view"),
                (_, Some(1..)) => None,
                _ => Some("a virtual table"),
            };
            let entry = entries.entry(text(row, 0)?).or_insert(SchemaEntry {
                instead,
                columns: FxHashMap::default(),
            });
            let is_computed = row.get::<_, Option<i64>>(4)?.unwrap_or(0) != 0;
            entry.columns.entry(text(row, 3)?).or_insert(is_computed);
        }
        Ok(Self(entries))
    }

    /// Returns a name by which SQL can select the rowid of `table`: the column that holds the rowid
    /// (`INTEGER PRIMARY KEY`), in quotes, or else one of SQLite's names for the rowid that no
    /// column has. Returns `None` if columns have all of these names, or if the table has no rowids
    /// (`WITHOUT ROWID`).
    pub fn rowid(&self, connection: &Connection, table: &str) -> Option<String> {
        let columns = &self.0.get(table)?.columns;
        let mut names = ["rowid", "_rowid_", "oid"].into_iter();
        let name = names.find(|&name| !columns.contains_key(name))?;
        let statement = connection.prepare(&format!("SELECT {name} FROM \"{table}\""));
        // SQLite names the result of this query after the column of the table that holds the rowid,
        // or `rowid` if no column does. So the name tells which column to select.
        match statement.ok()?.column_name(0).ok()? {
            "rowid" => Some(name.to_owned()),
            column => Some(quoted(column)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Schema;
    use rusqlite::Connection;
    use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
    use rustc_hash::FxHashMap;
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_table_is_looked_up_once_whatever_its_columns() {
        let mut connection = Connection::open_in_memory().unwrap();
        let columns: Vec<String> = (0..50).map(|column| format!("c{column}")).collect();
        let columns = columns.join(", ");
        for number in 0..20 {
            let sql = format!("CREATE TABLE t{number} ({columns})");
            connection.execute_batch(&sql).unwrap();
        }
        let sql = format!(
            "CREATE TABLE Vars_Info ({columns}, PRIMARY KEY (c0)) WITHOUT ROWID;
             CREATE TABLE compute_sets (rowid)"
        );
        connection.execute_batch(&sql).unwrap();
        let calls = Arc::new(Mutex::new(FxHashMap::<String, usize>::default()));
        let counted = Arc::clone(&calls);
        let count = move |context: AuthContext<'_>| {
            if let AuthAction::Pragma { pragma_name, .. } = context.action {
                *counted
                    .lock()
                    .unwrap()
                    .entry(pragma_name.to_owned())
                    .or_default() += 1;
            }
            Authorization::Allow
        };
        connection.authorizer(Some(count)).unwrap();
        let schema = Schema::read(&connection).unwrap();
        let calls = calls.lock().unwrap();
        assert_eq!(calls["table_xinfo"], 22);
        let rowids = ["vars_info", "compute_sets"].map(|table| schema.rowid(&connection, table));
        assert_eq!(rowids, [None, Some("_rowid_".to_owned())]);
        assert_eq!(schema.0["t7"].columns.len(), 50);
    }
}
