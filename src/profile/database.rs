//! SQLite, strictly read-only, as scans over one table each.

use super::FormatVersion;
use super::cells::{AnyRow, Cells};
use super::error::ProfileError;
use super::open::Source;
use super::schema::Schema;
use super::stored_rows::StoredRows;
use crate::progress::{Progress, Rows, Task, Unit};
use rayon::prelude::*;
use rusqlite::Connection;
use rustc_hash::FxHashSet;
use std::cell::Cell;
use std::path::Path;

/// An open profile.
pub(super) struct Database {
    source: Source,
    connection: Connection,
    schema: Schema,
    rows: Task,
    /// The version in `version_info`; zero until it was read.
    pub(super) version: FormatVersion,
}

impl Database {
    /// Opens `path` so that nothing is written, neither to it nor beside it,
    /// see [`Source`].
    pub(super) fn open(path: &Path, progress: &Progress) -> Result<Self, ProfileError> {
        let source = Source::find(path)?;
        let connection = source.connect()?;
        let schema = Schema::read(&connection)?;
        let tables = LARGE_TABLES.iter();
        let rows = tables.fold(0u64, |rows, (table, _)| {
            rows.saturating_add(rows_at_most(&connection, &schema, table))
        });
        Ok(Self {
            source,
            connection,
            schema,
            rows: progress.begin("reading profile.pop", Unit::Rows, rows),
            version: FormatVersion::default(),
        })
    }

    /// Is there anything of this name that can be selected from? (Reading what
    /// is not a table is an error.)
    pub(super) fn has_table(&self, table: &str) -> bool {
        self.schema.has(table)
    }

    /// Checks that the table and the columns are there.
    pub(super) fn require(
        &self,
        table: &'static str,
        columns: &[&'static str],
    ) -> Result<(), ProfileError> {
        self.schema.require(table, columns, self.version)
    }

    /// Opens a file again that was read before.
    ///
    /// # Errors
    /// [`ProfileError::Changed`] when it is no longer what it was.
    pub(super) fn open_again(source: &Source) -> Result<Self, ProfileError> {
        let database = Self::open(source.path(), &Progress::new())?;
        if database.source == *source {
            Ok(database)
        } else {
            Err(ProfileError::Changed)
        }
    }

    /// The file as it was when it was opened.
    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// Is the file still what it was when it was opened?
    pub(super) fn check_unchanged(&self) -> Result<(), ProfileError> {
        self.source.check_unchanged()
    }

    /// Calls `visit` with each row of `table`, in rowid order, without a sort.
    /// The first column names the row in errors.
    pub(super) fn scan(
        &self,
        table: &'static str,
        columns: &'static [&'static str],
        visit: impl FnMut(Cells<'_>) -> Result<(), ProfileError>,
    ) -> Result<(), ProfileError> {
        self.require(table, columns)?;
        let max_payload = self.source.max_payload();
        scan(&self.connection, table, columns, "", max_payload, visit)
    }

    /// Calls `visit` with each row of `table` whose first column is one of `ids`: looked up
    /// where that column is the rowid, as Poplar has it, else by a scan of all rows.
    pub(super) fn rows_with(
        &self,
        table: &'static str,
        columns: &'static [&'static str],
        ids: &FxHashSet<u64>,
        mut visit: impl FnMut(u64, Cells<'_>) -> Result<(), ProfileError>,
    ) -> Result<(), ProfileError> {
        let mut wanted = |row: Cells<'_>| match row.unsigned(0)? {
            id if ids.contains(&id) => visit(id, row),
            _ => Ok(()),
        };
        let stored = self.schema.stored(table, columns);
        if !stored.is_some_and(|(_, stored)| stored[0].is_rowid) {
            return self.scan(table, columns, wanted);
        }
        self.require(table, columns)?;
        let max_payload = self.source.max_payload();
        let mut ids: Vec<u64> = ids.iter().copied().collect();
        ids.sort_unstable();
        for ids in ids.chunks(LOOKED_UP) {
            let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
            let condition = format!("WHERE \"{}\" IN ({})", columns[0], ids.join(", "));
            scan(
                &self.connection,
                table,
                columns,
                &condition,
                max_payload,
                &mut wanted,
            )?;
        }
        Ok(())
    }

    /// Scans a large table in chunks, as many at a time as there are threads. What
    /// `visitor` makes fills one `T` for each chunk; they come back in rowid order. The
    /// table may be scanned twice, each time with a visitor of its own: from the pages of
    /// the file, and when anything is unusual there, through SQLite, which then tells what
    /// is wrong.
    pub(super) fn scan_chunks<T, V>(
        &self,
        table: &'static str,
        columns: &'static [&'static str],
        visitor: impl Fn() -> V,
    ) -> Result<Vec<T>, ProfileError>
    where
        T: Default + Send,
        V: Fn(Cells<'_>, &mut T) -> Result<(), ProfileError> + Sync,
    {
        self.require(table, columns)?;
        match self.scan_stored(table, columns, visitor()) {
            Some(parts) => Ok(parts),
            None => self.scan_by_sqlite(table, columns, visitor()),
        }
    }

    fn scan_stored<T: Default + Send>(
        &self,
        table: &'static str,
        columns: &'static [&'static str],
        visit: impl Fn(Cells<'_>, &mut T) -> Result<(), ProfileError> + Sync,
    ) -> Option<Vec<T>> {
        let (root, stored) = self.schema.stored(table, columns)?;
        let rows = StoredRows::of(&self.source, root, &stored)?;
        // The connection itself belongs to one thread.
        let (max_payload, task) = (self.source.max_payload(), &self.rows);
        rows.chunks(|chunk| {
            let mut filled = T::default();
            let payload_left = Cell::new(max_payload);
            let mut counted = Rows::new(task);
            chunk.visit(|record| {
                counted.next();
                let row = Cells {
                    row: AnyRow::Stored(record),
                    table,
                    columns,
                    payload_left: &payload_left,
                };
                visit(row, &mut filled).ok()
            })?;
            Some(filled)
        })
    }

    /// Each chunk on a connection of its own.
    fn scan_by_sqlite<T: Default + Send>(
        &self,
        table: &'static str,
        columns: &'static [&'static str],
        visit: impl Fn(Cells<'_>, &mut T) -> Result<(), ProfileError> + Sync,
    ) -> Result<Vec<T>, ProfileError> {
        let (source, task) = (&self.source, &self.rows);
        let max_payload = source.max_payload();
        let chunk = |between: String| {
            let mut filled = T::default();
            let connection = source.connect()?;
            let mut rows = Rows::new(task);
            scan(&connection, table, columns, &between, max_payload, |row| {
                rows.next();
                visit(row, &mut filled)
            })?;
            Ok(filled)
        };
        let conditions = self
            .conditions(table)
            .map_err(ProfileError::sqlite(table))?;
        conditions.into_par_iter().map(chunk).collect()
    }

    /// Conditions that each row of a table fulfils one of; one that all do where rows have
    /// no rowid.
    fn conditions(&self, table: &'static str) -> rusqlite::Result<Vec<String>> {
        let Some(rowid) = self.schema.rowid(table) else {
            return Ok(vec![String::new()]);
        };
        let Some((first, last)) = rowid_bounds(&self.connection, table, rowid)? else {
            return Ok(Vec::new());
        };
        let large = LARGE_TABLES.iter().find(|&&(name, _)| name == table);
        let small = large.map_or(i128::MAX, |&(_, rows)| rows);
        let between = |(from, to)| format!("WHERE {rowid} BETWEEN {from} AND {to}");
        Ok(chunks(first, last, small)
            .into_iter()
            .map(between)
            .collect())
    }

    /// Has the table any row?
    pub(super) fn has_rows(&self, table: &'static str) -> Result<bool, ProfileError> {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM \"{table}\")");
        let found = self.connection.query_row(&sql, [], |row| row.get(0));
        found.map_err(ProfileError::sqlite(table))
    }
}

/// The smallest and largest of what is called `rowid`; `None` when there are no rows.
fn rowid_bounds(
    connection: &Connection,
    table: &str,
    rowid: &str,
) -> rusqlite::Result<Option<(i64, i64)>> {
    let bound = |order| -> rusqlite::Result<Option<i64>> {
        let sql = format!("SELECT {order}({rowid}) FROM \"{table}\"");
        connection.query_row(&sql, [], |row| row.get(0))
    };
    Ok(bound("min")?.zip(bound("max")?))
}

/// The tables that are scanned in chunks, each with the number of rowids below
/// which it is read in one go: a compute set is a row with thousands of
/// variables. Nearly all of the time goes there, so only these rows count as
/// progress.
const LARGE_TABLES: [(&str, i128); 3] = [
    ("vars_info", 100_000),
    ("exchange_regions", 100_000),
    ("compute_sets", 1_000),
];

/// How many rows the table can have by its rowids, 0 when there is no telling:
/// whatever is wrong with it comes out when it is read.
fn rows_at_most(connection: &Connection, schema: &Schema, table: &str) -> u64 {
    let rowid = schema.rowid(table);
    match rowid.map(|rowid| rowid_bounds(connection, table, rowid)) {
        Some(Ok(Some((first, last)))) => last.abs_diff(first).saturating_add(1),
        _ => 0,
    }
}

fn scan(
    connection: &Connection,
    table: &'static str,
    columns: &'static [&'static str],
    condition: &str,
    max_payload: u64,
    mut visit: impl FnMut(Cells<'_>) -> Result<(), ProfileError>,
) -> Result<(), ProfileError> {
    let failed = ProfileError::sqlite(table);
    let payload_left = Cell::new(max_payload);
    let list = columns.join("\", \"");
    // An index may hold all requested columns; the table's own order is read
    // faster.
    let sql = format!("SELECT \"{list}\" FROM \"{table}\" NOT INDEXED {condition}");
    let mut statement = connection.prepare(&sql).map_err(&failed)?;
    let mut rows = statement.query([]).map_err(&failed)?;
    while let Some(row) = rows.next().map_err(&failed)? {
        visit(Cells {
            row: AnyRow::Sqlite(row),
            table,
            columns,
            payload_left: &payload_left,
        })?;
    }
    Ok(())
}

/// How many rows are looked up by one statement.
const LOOKED_UP: usize = 500;

/// Into how many chunks a large table is cut: several for each thread, since
/// the threads have other work too.
const CHUNKS: i128 = 8;

/// Stretches of rowids, both ends inclusive, that cover `first..=last`: one
/// where there are fewer than `small`.
fn chunks(first: i64, last: i64, small: i128) -> Vec<(i64, i64)> {
    let rows = i128::from(last) - i128::from(first) + 1;
    let count = if rows < small { 1 } else { CHUNKS };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_every_rowid_once() {
        for (first, last) in [(0, 5), (1, 1), (-7, 1_000_003), (i64::MIN, i64::MAX)] {
            let chunks = chunks(first, last, 100_000);
            assert_eq!((chunks[0].0, chunks[chunks.len() - 1].1), (first, last));
            assert!(chunks.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0));
        }
    }
}
