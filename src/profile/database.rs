//! SQLite, strictly read-only, as scans over one table each.

use super::error::ProfileError;
use super::open::Source;
use super::schema::Schema;
use super::{FormatVersion, TileBytes, encoding::BlobError};
use crate::progress::{Progress, Rows, Task, Unit};
use rayon::prelude::*;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use std::cell::Cell;
use std::path::Path;

/// What is wrong with an id that several rows have.
pub(super) const DUPLICATE: &str = "duplicate id";

/// An open profile.
pub(super) struct Database {
    source: Source,
    connection: Connection,
    schema: Schema,
    rows: Task,
    /// What `version_info` says; zero until it was read.
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
            rows.saturating_add(rows_at_most(&connection, table))
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
        let most = self.source.most_payload();
        scan(&self.connection, table, columns, condition, most, visit)
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
        let (source, task) = (&self.source, &self.rows);
        let chunk = |(from, to): (i64, i64)| {
            let mut filled = T::default();
            let between = format!("WHERE rowid BETWEEN {from} AND {to}");
            let connection = source.connect()?;
            let mut rows = Rows::new(task);
            scan(
                &connection,
                table,
                columns,
                &between,
                source.most_payload(),
                |row| {
                    rows.next();
                    visit(row, &mut filled)
                },
            )?;
            Ok(filled)
        };
        let large = LARGE_TABLES.iter().find(|&&(name, _)| name == table);
        let small = large.map_or(i128::MAX, |&(_, rows)| rows);
        let chunks = chunks(first, last, small);
        chunks.into_par_iter().map(chunk).collect()
    }

    /// The smallest and largest rowid of `table`; `None` when it is empty.
    pub(super) fn rowid_bounds(
        &self,
        table: &'static str,
    ) -> Result<Option<(i64, i64)>, ProfileError> {
        rowid_bounds(&self.connection, table).map_err(ProfileError::sqlite(table))
    }
}

fn rowid_bounds(connection: &Connection, table: &str) -> rusqlite::Result<Option<(i64, i64)>> {
    let bound = |order| -> rusqlite::Result<Option<i64>> {
        let sql = format!("SELECT {order}(rowid) FROM \"{table}\"");
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
    most_payload: u64,
    mut visit: impl FnMut(Cells<'_>) -> Result<(), ProfileError>,
) -> Result<(), ProfileError> {
    let failed = ProfileError::sqlite(table);
    let payload_left = Cell::new(most_payload);
    let list = columns.join("\", \"");
    // An index may hold all requested columns; the table's own order is read
    // faster.
    let sql = format!("SELECT \"{list}\" FROM \"{table}\" NOT INDEXED {condition}");
    let mut statement = connection.prepare(&sql).map_err(&failed)?;
    let mut rows = statement.query([]).map_err(&failed)?;
    while let Some(row) = rows.next().map_err(&failed)? {
        visit(Cells {
            row,
            table,
            columns,
            payload_left: &payload_left,
        })?;
    }
    Ok(())
}

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

/// One row of a scan. Columns are given by their place in the scan's list.
#[derive(Clone, Copy)]
pub(super) struct Cells<'r> {
    row: &'r Row<'r>,
    table: &'static str,
    columns: &'static [&'static str],
    /// How many more bytes of texts and blobs the table can hold.
    payload_left: &'r Cell<u64>,
}

impl<'r> Cells<'r> {
    #[inline]
    fn value(&self, column: usize) -> Result<ValueRef<'r>, ProfileError> {
        let value = self.row.get_ref(column);
        value.map_err(ProfileError::sqlite(self.table))
    }

    /// Counts bytes that were read, so that rows which share their pages end
    /// in an error and not in memory without bound.
    fn count(&self, bytes: &'r [u8]) -> Result<&'r [u8], ProfileError> {
        let left = self.payload_left.get().checked_sub(bytes.len() as u64);
        self.payload_left
            .set(left.ok_or(ProfileError::Overlapping { table: self.table })?);
        Ok(bytes)
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

    /// An integer from 0 to `u32::MAX`, or NULL.
    pub(super) fn optional_small(&self, column: usize) -> Result<Option<u32>, ProfileError> {
        match self.value(column)? {
            ValueRef::Null => Ok(None),
            _ => self.small(column).map(Some),
        }
    }

    /// A blob; NULL counts as empty.
    pub(super) fn blob(&self, column: usize) -> Result<&'r [u8], ProfileError> {
        match self.value(column)? {
            ValueRef::Blob(bytes) => self.count(bytes),
            ValueRef::Null => Ok(&[]),
            other => Err(self.wrong(column, other, "a blob")),
        }
    }

    /// A text; NULL counts as empty, bytes that are not UTF-8 are replaced.
    pub(super) fn text(&self, column: usize) -> Result<String, ProfileError> {
        match self.value(column)? {
            ValueRef::Text(bytes) => Ok(String::from_utf8_lossy(self.count(bytes)?).into_owned()),
            ValueRef::Null => Ok(String::new()),
            other => Err(self.wrong(column, other, "a text")),
        }
    }

    /// An error that names this row and `column`.
    pub(super) fn problem(&self, column: usize, problem: impl ToString) -> ProfileError {
        let key = match self.value(0) {
            Ok(ValueRef::Integer(key)) => key.to_string(),
            Ok(ValueRef::Text(key)) => shortened(&String::from_utf8_lossy(key)),
            _ => "without a key".to_string(),
        };
        let column = self.columns[column];
        ProfileError::cell(self.table, column, key, problem)
    }

    /// The same for a blob that could not be decoded.
    pub(super) fn bad_blob(&self, column: usize) -> impl Fn(BlobError) -> ProfileError + '_ {
        move |error| self.problem(column, error)
    }

    /// Is it the first row of its key? A duplicate id is an error: it would not
    /// be clear which of the two counts.
    pub(super) fn check_first(&self, is_first: bool) -> Result<(), ProfileError> {
        if is_first {
            Ok(())
        } else {
            Err(self.problem(0, DUPLICATE))
        }
    }

    /// The sum of `parts`, those of the columns from 1 on.
    pub(super) fn sum(&self, parts: &[TileBytes], tiles: u32) -> Result<TileBytes, ProfileError> {
        let sum = TileBytes::sum(parts.iter().map(|part| (part, 1)), tiles);
        sum.map_err(|tile| self.problem(1, format!("more than 4 GiB on tile {tile}")))
    }

    fn wrong(&self, column: usize, found: ValueRef<'_>, expected: &str) -> ProfileError {
        let found = found.data_type();
        self.problem(
            column,
            format!("it holds a value of type {found} where {expected} belongs"),
        )
    }
}

/// The maximum number of characters of a text that an error shows.
const SHOWN: usize = 60;

/// A text in quotes, without control characters, and cut where it is long.
fn shortened(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if shown.len() < text.len() { "..." } else { "" };
    format!("'{}'{more}", shown.escape_debug())
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
