//! Gives read-only access to the tables of a profile. Each query scans a single table, after a
//! check that the table has the requested columns.
//!
//! Several threads read large tables, in ranges of rowids. SQLite finds the first row of a range by
//! comparing rowids, and continues from there. On a damaged page rowids may be out of order, and
//! then SQLite would silently miss rows. So each range is read up to the first row of the next
//! range, and all rowids must ascend. These two checks ensure that the ranges together hold every
//! row of the table exactly once.

use super::{
    Cells, Ids, ProfileFile, Target,
    cells::{Columns, disordered, sqlite},
    target::FormatVersion,
};
use crate::{
    message::{GIVE_PROFILE, PROFILE_AGAIN, Result, unusable},
    progress::{Progress, Task},
};
use rayon::prelude::*;
use rusqlite::{Connection, Params, Row};
use rustc_hash::FxHashMap;
use std::{
    cell::Cell,
    collections::BTreeSet,
    path::Path,
    sync::{Mutex, PoisonError},
};

pub struct Database {
    /// The profile on disk, and the state (size, time, header) that it had when it was opened.
    pub source: ProfileFile,
    /// Open connections to the profile that no query uses at the moment.
    idle: Mutex<Vec<Connection>>,
    schema: Schema,
    rows: Task,
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

    /// Returns the leading `columns` that the table has, up to the first missing column.
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
        self.query(table, columns, &select(table, columns, "", ""), [], |row| {
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

    /// Reads the rows of `table` as [`rows`](Self::rows) does, and also returns an index that maps
    /// the id of a row (its value in the first of `columns`) to the index of the row in the
    /// returned list.
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
            let condition = format!("WHERE \"{}\" IN ({})", columns[0], ids.join(", "));
            let sql = select(table, columns, "", &condition);
            self.query(table, columns, &sql, [], |row| {
                values.insert(row.unsigned(0)?, read(row)?);
                Ok(true)
            })?;
        }
        Ok(values)
    }

    /// Returns whether `table` has at least one row; `false` if the profile has no such table.
    pub fn has_rows(&self, table: &'static str) -> Result<bool> {
        let mut has_rows = false;
        if self.has_table(table) {
            let sql = format!("SELECT 1 FROM \"{table}\"");
            self.query(table, &[], &sql, [], |_| {
                has_rows = true;
                Ok(false)
            })?;
        }
        Ok(has_rows)
    }

    /// Runs the statement `sql` with `parameters`, and calls `visit` with each resulting row until
    /// `visit` returns `false`. `sql` must select `columns` of `table` first, in this order.
    fn query(
        &self,
        table: &'static str,
        columns: Columns,
        sql: &str,
        parameters: impl Params,
        mut visit: impl FnMut(Cells<'_>) -> Result<bool>,
    ) -> Result<()> {
        let failed = sqlite(table);
        // Limit on the bytes of texts and blobs that are read from one table, against damaged
        // files. It exceeds the size of the file, since a text in UTF-16 grows by half when it is
        // read, and a cell may be read twice.
        let payload_left = Cell::new(self.source.length.saturating_mul(4));
        self.with_connection(|connection| {
            let mut statement = connection.prepare(sql).map_err(&failed)?;
            let mut rows = statement.query(parameters).map_err(&failed)?;
            while let Some(row) = rows.next().map_err(&failed)?
                && visit(Cells {
                    row,
                    table,
                    columns,
                    tiles: self.target.num_tiles,
                    payload_left: &payload_left,
                })?
            {}
            Ok(())
        })
    }

    fn with_connection<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        // A poisoned lock is used like any other, since a panic cannot leave the list of
        // connections half changed.
        let lock = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = lock().pop();
        let connection = idle.map_or_else(|| self.source.connect(), Ok)?;
        let done = work(&connection);
        lock().push(connection);
        done
    }
}

/// Number of ids that [`Database::with_ids`] looks up in one statement. More ids would exceed the
/// limit on the operations of a statement (`SQLITE_LIMIT_VDBE_OP`).
const LOOKED_UP: usize = 5000;

/// Returns `name` quoted as an SQL identifier.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns the SQL statement that selects `columns` of `table`, and then the expressions in `more`,
/// from the rows that fulfil `condition`. `NOT INDEXED` keeps SQLite from using an index that
/// covers these columns, since reading the table in its own order is faster.
fn select(table: &str, columns: &[&str], more: &str, condition: &str) -> String {
    let list = columns.join("\", \"");
    format!("SELECT \"{list}\"{more} FROM \"{table}\" NOT INDEXED {condition}")
}

/// Maps the name of each table or view of a profile, in lower case, to its description.
pub struct Schema(FxHashMap<String, SchemaEntry>);

struct SchemaEntry {
    /// What the entry of the schema is if it is no table, such as `a view`; `None` for a table.
    instead: Option<&'static str>,
    /// Maps the name of each column of the table, in lower case, to whether its values are computed
    /// when it is read.
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
        // SQLite gives a selected rowid the name of the column that holds it, or else `rowid`.
        match statement.ok()?.column_name(0).ok()? {
            "rowid" => Some(name.to_owned()),
            column => Some(quoted(column)),
        }
    }
}

/// Tables that several threads read, each in ranges of rowids, with the number of rowids from which
/// a table is split into ranges. This number is lower for compute sets, whose rows hold thousands
/// of variables. Reading these tables takes nearly all of the time, so only their rows count as
/// progress.
const LARGE_TABLES: [(&str, u64); 3] = [
    ("vars_info", 100_000),
    ("exchange_regions", 100_000),
    ("compute_sets", 1_000),
];

/// Number of ranges of rowids in which a large table is read. With many ranges per thread, a busy
/// thread reads fewer of them, and no thread waits long for the last one.
const RANGES: u64 = 64;

/// The SQL statement that reads the rows of a large table from a given rowid on.
struct RangeScan {
    table: &'static str,
    columns: Columns,
    /// Selects `columns`, and the rowid as the result with the index `rowid_column`, from all rows
    /// whose rowid is at least the statement's parameter, in ascending order of rowids.
    sql: String,
    rowid_column: usize,
}

struct ScannedRange<T> {
    filled: T,
    /// Rowid of the first row at or after the start of the range of rowids that was read; `None` if
    /// there is no such row.
    first: Option<i64>,
    /// Rowid of the first row after the end of the range of rowids that was read; `None` if there
    /// is no such row.
    next: Option<i64>,
}

impl Database {
    /// Reads `columns` of a large table in ranges of rowids, in parallel. `init` creates a
    /// collection (`T`) for each range, and `visit` adds each row to the collection of its range.
    /// Returns the collections of all ranges in rowid order.
    pub fn scan_ranges<T: Send>(
        &self,
        table: &'static str,
        columns: Columns,
        init: impl Fn() -> T + Sync,
        visit: impl Fn(Cells<'_>, &mut T) -> Result<()> + Sync,
    ) -> Result<Vec<T>> {
        self.require(table, columns)?;
        let rowids = self.with_connection(|connection| {
            rowid_bounds(connection, &self.schema, table).map_err(sqlite(table))
        })?;
        let Some((rowid, bounds)) = rowids else {
            let mut filled = init();
            self.rows(table, columns, |row| visit(row, &mut filled))?;
            return Ok(vec![filled]);
        };
        let rowid_column = columns.iter().position(|column| quoted(column) == rowid);
        let sql = select(
            table,
            columns,
            &rowid_column.map_or(format!(", {rowid}"), |_| String::new()),
            &format!("WHERE {rowid} >= ?1 ORDER BY {rowid}"),
        );
        let scan = RangeScan {
            table,
            columns,
            sql,
            rowid_column: rowid_column.unwrap_or(columns.len()),
        };
        // Each thread takes one range of rows at a time. If it took several, other threads might
        // have nothing left to do while it still reads the last of them.
        let parts: Vec<_> = ranges(table, bounds)
            .into_par_iter()
            .with_max_len(1)
            .map(|range| self.scan_range(&scan, range, init(), &visit))
            .collect();
        values_in_order(table, parts.into_iter().collect::<Result<_>>()?)
    }

    /// Reads the rows with rowids from `from` to `to` (both inclusive), and the rowid of the first
    /// row after `to`. `visit` adds each row of the range to `filled`.
    fn scan_range<T>(
        &self,
        scan: &RangeScan,
        (from, to): (i64, i64),
        mut filled: T,
        visit: impl Fn(Cells<'_>, &mut T) -> Result<()>,
    ) -> Result<ScannedRange<T>> {
        let mut rows = 0;
        let (mut first, mut last, mut next) = (None, None, None);
        self.query(scan.table, scan.columns, &scan.sql, [from], |row| {
            let rowid = row.rowid(scan.rowid_column)?;
            if last.is_some_and(|last| last >= rowid) {
                return Err(disordered(scan.table, rowid));
            }
            first = first.or(Some(rowid));
            if rowid > to {
                next = Some(rowid);
                return Ok(false);
            }
            last = Some(rowid);
            rows += 1;
            visit(row, &mut filled).map(|()| true)
        })?;
        self.rows.add(rows);
        Ok(ScannedRange {
            filled,
            first,
            next,
        })
    }
}

/// Returns the collections of rows of a table that was read in ranges of rowids. `parts` has one
/// entry per range, in rowid order.
///
/// # Errors
/// If the first row after a range is not the first row of the next range, which means that rows
/// were missed.
fn values_in_order<T>(table: &'static str, parts: Vec<ScannedRange<T>>) -> Result<Vec<T>> {
    let firsts = parts.iter().skip(1).map(|part| part.first).chain([None]);
    for (part, first) in parts.iter().zip(firsts) {
        if let Some(rowid) = part.next.or(first).filter(|_| part.next != first) {
            return Err(disordered(table, rowid));
        }
    }
    Ok(parts.into_iter().map(|part| part.filled).collect())
}

/// Returns a name by which SQL can select the rowid of `table`, and the smallest and the largest
/// rowid. Returns `None` if the table has no rowids or no rows.
fn rowid_bounds(
    connection: &Connection,
    schema: &Schema,
    table: &str,
) -> rusqlite::Result<Option<(String, (i64, i64))>> {
    let Some(rowid) = schema.rowid(connection, table) else {
        return Ok(None);
    };
    let bound = |order| -> rusqlite::Result<Option<i64>> {
        connection.query_row(
            &format!("SELECT {order}({rowid}) FROM \"{table}\""),
            [],
            |row| row.get(0),
        )
    };
    let bounds = bound("min")?.zip(bound("max")?);
    Ok(bounds.map(|bounds| (rowid, bounds)))
}

/// Returns an upper bound on the number of rows of all large tables, computed from their smallest
/// and largest rowids. A table that cannot be read counts as 0 rows; its error is reported when its
/// rows are read.
fn rows_at_most(connection: &Connection, schema: &Schema) -> u64 {
    let rows = |(table, _): &(&'static str, u64)| {
        let (_, (first, last)) = rowid_bounds(connection, schema, table).ok()??;
        Some(last.abs_diff(first).saturating_add(1))
    };
    LARGE_TABLES
        .iter()
        .filter_map(rows)
        .fold(0, u64::saturating_add)
}

/// Returns the ranges of rowids (both ends inclusive) in which `table` is read. Together they cover
/// every possible rowid. `first` and `last` are the smallest and the largest rowid of the table.
fn ranges(table: &str, (first, last): (i64, i64)) -> Vec<(i64, i64)> {
    let rows = last.abs_diff(first);
    let count = if LARGE_TABLES
        .iter()
        .any(|&(name, least)| name == table && rows >= least)
    {
        RANGES
    } else {
        1
    };
    let start = |n: u64| match n {
        0 => i64::MIN,
        _ => first
            .saturating_add_unsigned((u128::from(rows) * u128::from(n) / u128::from(count)) as u64),
    };
    let end = |n| if n == count { i64::MAX } else { start(n) - 1 };
    (0..count).map(|n| (start(n), end(n + 1))).collect()
}

#[cfg(test)]
mod tests {
    use super::{Schema, ranges};
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

    #[test]
    fn ranges_cover_every_rowid_once() {
        for bounds in [(0, 5), (1, 1), (-7, 1_000_003), (i64::MIN, i64::MAX)] {
            let ranges = ranges("vars_info", bounds);
            let ends = (ranges[0].0, ranges[ranges.len() - 1].1);
            assert_eq!(ends, (i64::MIN, i64::MAX));
            assert!(ranges.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0));
            assert_eq!(ranges.len() > 1, bounds.1 > 100_000);
        }
    }
}
