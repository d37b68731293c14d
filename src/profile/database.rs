//! Gives read-only access to the tables of a profile: each query scans a single table, after a
//! check that the table has the columns.
//!
//! Several threads read large tables, in ranges of rowids. SQLite finds the first row of a range by
//! comparing rowids, and continues from there. On a damaged page rowids may be out of order, and
//! then SQLite would silently miss rows. So each range is read up to the first row of the next one,
//! and all rowids must ascend: then the ranges together hold every row of the table exactly once.

use super::FormatVersion;
use super::cells::{Cells, Columns, disordered, sqlite};
use super::ids::Ids;
use super::open::ProfileFile;
use crate::message::{GIVE_PROFILE, PROFILE_AGAIN, Result, unusable};
use crate::progress::{Progress, Task};
use rayon::prelude::*;
use rusqlite::{Connection, Params, Row};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// An open `profile.pop`.
pub(super) struct Database {
    /// The profile on disk, in the state in which it was opened.
    pub source: ProfileFile,
    /// Open connections that no query uses at the moment.
    idle: Mutex<Vec<Connection>>,
    schema: Schema,
    /// The progress of reading, in rows of large tables.
    rows: Task,
    pub version: FormatVersion,
}

impl Database {
    /// Opens the profile at `path`, and reads its tables' names and its report format. Nothing is
    /// written, neither to the file nor beside it (see [`ProfileFile`]). Reports rows that are read
    /// to `progress`.
    pub fn open(path: &Path, progress: &Progress) -> Result<Self> {
        Self::of(ProfileFile::find(path)?, progress)
    }

    /// Opens the profile in `source`, which [`ProfileFile::find`] checked.
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
        };
        database.version = FormatVersion::read(&database)?;
        Ok(database)
    }

    /// Returns whether the profile has a table, view or virtual table `table`. (Only tables are
    /// read.)
    pub fn has_table(&self, table: &str) -> bool {
        self.schema.0.contains_key(table)
    }

    /// Returns an error unless `table` is a table (no view or virtual table) and has all of
    /// `columns`, and none of these is computed when it is read.
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

    /// Returns the longest prefix of `columns` of which `table` has every column.
    ///
    /// # Errors
    /// If the table lacks one of the first `required` of `columns`.
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

    /// Calls `read` with the cells in `columns` of each row of `table`, in rowid order, until the
    /// first error, and returns the values that `read` returned. Errors name a row by its value in
    /// the first of `columns`.
    pub fn rows<T>(
        &self,
        table: &'static str,
        columns: Columns,
        mut read: impl FnMut(Cells<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.require(table, columns)?;
        let mut values = Vec::new();
        let sql = select(table, columns, "", "");
        self.query(table, columns, &sql, [], |row| {
            values.push(read(row)?);
            Ok(true)
        })?;
        Ok(values)
    }

    /// As [`rows`](Self::rows), but returns no values if the table or a column is missing.
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

    /// As [`rows`](Self::rows), but also returns an index that maps the id of a row, its value in
    /// the first of `columns`, to the position of the row's value in the list.
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
        Ok((Ids::of(table, columns[0], &ids)?, values))
    }

    /// Returns the values that `read` makes of the rows of `table`, by the id of the row in the
    /// first of `columns`. It is an error if two rows have the same id.
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

    /// Returns the values that `read` makes of the rows of `table` that have one of `ids` in the
    /// first of `columns`, by id. SQLite looks rows up if that column is the rowid, as in Poplar's
    /// files.
    pub fn with_ids<T>(
        &self,
        table: &'static str,
        columns: Columns,
        ids: BTreeSet<u64>,
        mut read: impl FnMut(Cells<'_>) -> Result<T>,
    ) -> Result<FxHashMap<u64, T>> {
        self.require(table, columns)?;
        let mut values = FxHashMap::default();
        let ids: Vec<u64> = ids.into_iter().collect();
        for ids in ids.chunks(LOOKED_UP) {
            let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
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

    /// Runs the statement `sql` with `parameters`, and calls `visit` with each resulting row as
    /// long as `visit` returns `true`. `sql` must select `columns` of `table` first, in this order.
    fn query(
        &self,
        table: &'static str,
        columns: Columns,
        sql: &str,
        parameters: impl Params,
        mut visit: impl FnMut(Cells<'_>) -> Result<bool>,
    ) -> Result<()> {
        let failed = sqlite(table);
        let payload_left = Cell::new(self.source.max_payload());
        self.with_connection(|connection| {
            let mut statement = connection.prepare(sql).map_err(&failed)?;
            let mut rows = statement.query(parameters).map_err(&failed)?;
            while let Some(row) = rows.next().map_err(&failed)?
                && visit(Cells {
                    row,
                    table,
                    columns,
                    payload_left: &payload_left,
                })?
            {}
            Ok(())
        })
    }

    /// Calls `work` with an idle connection to the profile, or with a new one if all are in use.
    fn with_connection<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        // A poisoned lock is taken too, since a panic cannot leave the list half changed.
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

/// Returns the SQL statement that reads `columns` of `table`, and then the expressions `more`, from
/// the rows that fulfil `condition`. Without `NOT INDEXED`, SQLite would use an index that covers
/// these columns, and reading the table in its own order is faster.
fn select(table: &str, columns: &[&str], more: &str, condition: &str) -> String {
    let list = columns.join("\", \"");
    format!("SELECT \"{list}\"{more} FROM \"{table}\" NOT INDEXED {condition}")
}

/// The tables and views of a profile, by name in lower case.
pub(super) struct Schema(FxHashMap<String, SchemaEntry>);

struct SchemaEntry {
    /// What the entry is instead of a table, such as `a view`; `None` for a table.
    instead: Option<&'static str>,
    /// By name of a column in lower case: whether the column is computed when it is read.
    columns: FxHashMap<String, bool>,
}

/// Returns the name in a cell of a row of the schema, in lower case; empty for NULL.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(
        String::from_utf8_lossy(row.get_ref(column)?.as_bytes_or_null()?.unwrap_or_default())
            .to_lowercase(),
    )
}

impl Schema {
    /// Reads the names of the tables and views of a file, and the columns of the tables. Views and
    /// virtual tables, which have no root page, get no columns: a query for these would run code.
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

    /// Returns a name by which SQL can select the rowid of `table`, since no column has this name;
    /// `None` if columns have all such names, or if the table has no rowids (`WITHOUT ROWID`).
    pub fn rowid(&self, connection: &Connection, table: &str) -> Option<&'static str> {
        let columns = &self.0.get(table)?.columns;
        let mut names = ["rowid", "_rowid_", "oid"].into_iter();
        let name = names.find(|&name| !columns.contains_key(name))?;
        let sql = format!("SELECT {name} FROM \"{table}\"");
        connection.prepare(&sql).is_ok().then_some(name)
    }
}

/// Tables that several threads read in ranges of rowids, with a number of rowids: a table that
/// spans fewer is read as one range. The number is lower for compute sets, whose rows hold
/// thousands of variables. Reading these tables takes nearly all of the time, so only their rows
/// count as progress.
const LARGE_TABLES: [(&str, u64); 3] = [
    ("vars_info", 100_000),
    ("exchange_regions", 100_000),
    ("compute_sets", 1_000),
];

/// Number of ranges of rowids in which a large table is read. There are several for each thread,
/// since threads have other work too. More would waste memory, since lists of a range have spare
/// capacity.
const RANGES: u64 = 16;

/// The result of reading one range of rowids of a table.
struct ScannedRange<T> {
    /// The collection to which `visit` added the rows of the range.
    filled: T,
    /// Rowid of the first row at or after the start of the range; `None` if there is none.
    first: Option<i64>,
    /// Rowid of the first row after the end of the range; `None` if there is none.
    next: Option<i64>,
}

impl Database {
    /// Reads `columns` of a large table in ranges of rowids, in parallel. `visit` adds each row to
    /// the collection (`T`) of its range, which `init` creates. Returns the collections of all
    /// ranges in rowid order; none if the table has no rows.
    pub fn scan_ranges<T: Send>(
        &self,
        table: &'static str,
        columns: Columns,
        init: impl Fn() -> T + Sync,
        visit: impl Fn(Cells<'_>, &mut T) -> Result<()> + Sync,
    ) -> Result<Vec<T>> {
        self.require(table, columns)?;
        let rowid = self.with_connection(|connection| Ok(self.schema.rowid(connection, table)))?;
        let Some(rowid) = rowid else {
            let mut filled = init();
            self.rows(table, columns, |row| visit(row, &mut filled))?;
            return Ok(vec![filled]);
        };
        let bounds = self.with_connection(|connection| {
            rowid_bounds(connection, table, rowid).map_err(sqlite(table))
        })?;
        let Some(bounds) = bounds else {
            return Ok(Vec::new());
        };
        let sql = select(
            table,
            columns,
            &format!(", {rowid}"),
            &format!("WHERE {rowid} >= ?1 ORDER BY {rowid}"),
        );
        // Each thread takes one range at a time: a thread that took several would let others wait
        // for its last range.
        let parts: Vec<_> = ranges(table, bounds)
            .into_par_iter()
            .with_max_len(1)
            .map(|range| self.scan_range(table, columns, &sql, range, init(), &visit))
            .collect();
        values_in_order(table, parts.into_iter().collect::<Result<_>>()?)
    }

    /// Reads the rows with rowids from `from` to `to` (inclusive), and the rowid of the row after
    /// the range. `sql` must select `columns` and the rowid of all rows from its parameter on,
    /// ascending. `visit` adds each row to `filled`.
    fn scan_range<T>(
        &self,
        table: &'static str,
        columns: Columns,
        sql: &str,
        (from, to): (i64, i64),
        mut filled: T,
        visit: impl Fn(Cells<'_>, &mut T) -> Result<()>,
    ) -> Result<ScannedRange<T>> {
        let mut rows = 0;
        let (mut first, mut last, mut next) = (None, None, None);
        self.query(table, columns, sql, [from], |row| {
            let rowid = row.rowid()?;
            if last.is_some_and(|last| last >= rowid) {
                return Err(disordered(table, rowid));
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

/// Returns the collections (`filled`) of `parts`, the results of reading all ranges in rowid order.
///
/// # Errors
/// If the row after a range is not the first row of the next range, so that rows were missed.
fn values_in_order<T>(table: &'static str, parts: Vec<ScannedRange<T>>) -> Result<Vec<T>> {
    let firsts = parts.iter().skip(1).map(|part| part.first).chain([None]);
    for (part, first) in parts.iter().zip(firsts) {
        if let Some(rowid) = part.next.or(first).filter(|_| part.next != first) {
            return Err(disordered(table, rowid));
        }
    }
    Ok(parts.into_iter().map(|part| part.filled).collect())
}

/// Returns the smallest and the largest rowid of a table; `None` if it has no rows. `rowid` is a
/// name by which SQL can select the rowid.
fn rowid_bounds(
    connection: &Connection,
    table: &str,
    rowid: &str,
) -> rusqlite::Result<Option<(i64, i64)>> {
    let bound = |order| -> rusqlite::Result<Option<i64>> {
        connection.query_row(
            &format!("SELECT {order}({rowid}) FROM \"{table}\""),
            [],
            |row| row.get(0),
        )
    };
    Ok(bound("min")?.zip(bound("max")?))
}

/// Returns an upper bound on the number of rows of all large tables, from their rowids. A table
/// that cannot be read adds 0; the error is reported when its rows are read.
fn rows_at_most(connection: &Connection, schema: &Schema) -> u64 {
    let rows = |(table, _): &(&'static str, u64)| {
        let (first, last) =
            rowid_bounds(connection, table, schema.rowid(connection, table)?).ok()??;
        Some(last.abs_diff(first).saturating_add(1))
    };
    LARGE_TABLES
        .iter()
        .filter_map(rows)
        .fold(0, u64::saturating_add)
}

/// Returns ranges of rowids (both ends inclusive) that together cover every possible rowid. The
/// rows of the table have rowids from `first` to `last`.
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
        assert_eq!(rowids, [None, Some("_rowid_")]);
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
