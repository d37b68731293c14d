//! Reads large tables with several threads, each in ranges of rowids.
//!
//! SQLite finds the first row of a range by comparing rowids, and continues from there. On a
//! damaged page rowids may be out of order, and then SQLite would silently miss rows. So each range
//! is read up to the first row of the next range, and all rowids must ascend. These two checks
//! ensure that the ranges together hold every row of the table exactly once.

use super::{
    Cells, Database,
    cells::{Columns, disordered, sqlite},
    database::{Schema, quoted, select},
};
use crate::message::Result;
use rayon::prelude::*;
use rusqlite::Connection;
use std::ops::RangeInclusive;

/// The tables of a profile that may be large, each with a threshold. If the largest and the
/// smallest rowid of a table differ by at least its threshold, several threads read the table, in
/// ranges of rowids. The threshold is lower for compute sets, whose rows hold thousands of
/// variables each. Reading these tables takes nearly all of the time, so only their rows count as
/// progress.
const LARGE_TABLES: [(&str, u64); 3] = [
    ("vars_info", 100_000),
    ("exchange_regions", 100_000),
    ("compute_sets", 1_000),
];

/// Number of ranges of rowids in which a large table is read. If each thread has many ranges to
/// read, a slow thread reads fewer of them, and no thread waits long for the last one.
const RANGES: u64 = 64;

/// The SQL statement that reads the rows of a large table from a given rowid on.
struct RangeScan {
    table: &'static str,
    columns: Columns,
    /// Selects `columns` and the rowid of all rows whose rowid is at least the statement's
    /// parameter, in ascending order of rowids. If the table has no rowids, selects `columns` of
    /// all rows.
    sql: String,
    /// Index of the rowid among the results of `sql`. `None` if the table has no rowids; its rows
    /// are then numbered in the order of the file.
    rowid_column: Option<usize>,
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
    /// `visit` also gets the row's value in the first of `columns`, which is not negative, such as
    /// the id of a variable. Returns the collections of all ranges in rowid order.
    pub fn scan_ranges<T: Send>(
        &self,
        table: &'static str,
        columns: Columns,
        init: impl Fn() -> T + Sync,
        visit: impl Fn(Cells<'_>, u64, &mut T) -> Result<()> + Sync,
    ) -> Result<Vec<T>> {
        self.require(table, columns)?;
        let rowids = self.with_connection(|connection| {
            rowid_bounds(connection, &self.schema, table).map_err(sqlite(table))
        })?;
        let bounds = rowids.as_ref().map(|&(_, bounds)| bounds);
        let ranges = ranges(table, bounds.unwrap_or_default());
        let scan = RangeScan::new(table, columns, rowids.map(|(rowid, _)| rowid));
        // Each thread takes one range of rows at a time. If it took several, other threads might
        // have nothing left to do while it still reads the last of them.
        let parts: Vec<_> = ranges
            .into_par_iter()
            .with_max_len(1)
            .map(|range| self.scan_range(&scan, range, init(), &visit))
            .collect();
        values_in_order(table, parts.into_iter().collect::<Result<_>>()?)
    }

    /// Reads the rows of a table with a rowid in `range`. `visit` adds each row to the collection
    /// `filled`. Also returns the rowid of the first row after the range: if this is not the first
    /// row of the next range, rows were missed.
    fn scan_range<T>(
        &self,
        scan: &RangeScan,
        range: RangeInclusive<i64>,
        mut filled: T,
        visit: impl Fn(Cells<'_>, u64, &mut T) -> Result<()>,
    ) -> Result<ScannedRange<T>> {
        let mut rows = 0;
        let (mut first, mut last, mut next) = (None, None, None);
        self.query(
            scan.table,
            scan.columns,
            &scan.sql,
            [range.start()],
            |row| {
                let value = row.unsigned(0)?;
                let rowid = match scan.rowid_column {
                    Some(0) => value as i64,
                    Some(column) => row.rowid(column),
                    None => rows as i64,
                };
                first = first.or(Some(rowid));
                if rowid > *range.end() {
                    next = Some(rowid);
                    return Ok(false);
                }
                if last.is_some_and(|last| last >= rowid) {
                    return Err(disordered(scan.table, rowid));
                }
                last = Some(rowid);
                rows += 1;
                visit(row, value, &mut filled).map(|()| true)
            },
        )?;
        self.rows.add(rows as u64);
        Ok(ScannedRange {
            filled,
            first,
            next,
        })
    }
}

impl RangeScan {
    /// Creates the SQL statement that reads `columns` of the rows of `table` from a given rowid on.
    /// `rowid` is a name of the rowid in SQL; `None` if the table has no rowids, or no rows.
    fn new(table: &'static str, columns: Columns, rowid: Option<String>) -> Self {
        let Some(rowid) = rowid else {
            return Self {
                table,
                columns,
                sql: select(table, columns, "", "?1 NOT NULL", ""),
                rowid_column: None,
            };
        };
        let among = columns.iter().position(|column| quoted(column) == rowid);
        let more = among.map_or(format!(", {rowid}"), |_| String::new());
        let (condition, order) = (format!("{rowid} >= ?1"), format!("ORDER BY {rowid}"));
        Self {
            table,
            columns,
            sql: select(table, columns, &more, &condition, &order),
            rowid_column: among.or(Some(columns.len())),
        }
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
pub fn rows_at_most(connection: &Connection, schema: &Schema) -> u64 {
    let rows = |(table, _): &(&'static str, u64)| {
        let (_, (first, last)) = rowid_bounds(connection, schema, table).ok()??;
        Some(last.abs_diff(first).saturating_add(1))
    };
    LARGE_TABLES
        .iter()
        .filter_map(rows)
        .fold(0, u64::saturating_add)
}

/// Returns the ranges of rowids in which `table` is read: one for a small table, [`RANGES`] for a
/// large one. Together they cover every possible rowid. `first` and `last` are the smallest and the
/// largest rowid of the table; both are 0 if it has no rowids or no rows.
fn ranges(table: &str, (first, last): (i64, i64)) -> Vec<RangeInclusive<i64>> {
    let rows = last.abs_diff(first);
    let is_split = |&(name, least): &(&str, u64)| name == table && rows >= least;
    let count = if LARGE_TABLES.iter().any(is_split) {
        RANGES
    } else {
        1
    };
    let start = |n: u64| match n {
        0 => i64::MIN,
        _ => first.saturating_add_unsigned(rows / count * n),
    };
    let end = |n| if n == count { i64::MAX } else { start(n) - 1 };
    (0..count).map(|n| start(n)..=end(n + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Database, ranges};
    use crate::progress::Progress;
    use rusqlite::Connection;
    use std::{fs, path::Path};

    /// Writes a profile with a new table `vars_info`, created with the SQL `options`. It has
    /// `count` rows with the ids 0, `step`, `2 * step`, and so on. Returns the ids that were read,
    /// in one list per range of rowids.
    fn scanned(options: &str, count: u64, step: u64) -> Vec<Vec<u64>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile.pop");
        fs::copy(Path::new("fixtures/poplar-mlp/profile.pop"), &path).unwrap();
        let connection = Connection::open(&path).unwrap();
        let sql = format!(
            "DROP TABLE vars_info;
             CREATE TABLE vars_info (var_id INTEGER PRIMARY KEY, name TEXT) {options};
             WITH RECURSIVE ids(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM ids WHERE n + 1 < {count})
             INSERT INTO vars_info SELECT n * {step}, 'a name of thirty-two characters.' FROM ids"
        );
        connection.execute_batch(&sql).unwrap();
        connection.close().unwrap();
        let database = Database::open(&path, &Progress::new()).unwrap();
        let visit = |_: super::Cells<'_>, id, read: &mut Vec<u64>| {
            read.push(id);
            Ok(())
        };
        let read = database.scan_ranges("vars_info", &["var_id"], Vec::new, visit);
        read.unwrap()
    }

    #[test]
    fn every_row_is_read_once_whatever_the_gaps_between_rowids() {
        for (options, count, step, ranges) in [
            ("", 90, 1, 1),
            ("", 90, 3, 1),
            ("", 90, 1 << 40, 64),
            ("", 40_000, 3, 64),
            ("WITHOUT ROWID", 90, 3, 1),
            ("WITHOUT ROWID", 40_000, 3, 1),
        ] {
            let read = scanned(options, count, step);
            assert_eq!(read.len(), ranges);
            assert!(read.concat().into_iter().eq((0..count).map(|n| n * step)));
        }
    }

    #[test]
    fn ranges_cover_every_rowid_once() {
        for bounds in [(0, 5), (1, 1), (-7, 1_000_003), (i64::MIN, i64::MAX)] {
            let ranges = ranges("vars_info", bounds);
            let ends = (*ranges[0].start(), *ranges[ranges.len() - 1].end());
            assert_eq!(ends, (i64::MIN, i64::MAX));
            assert!(
                ranges
                    .windows(2)
                    .all(|pair| pair[0].end() + 1 == *pair[1].start())
            );
            assert_eq!(ranges.len() > 1, bounds.1 > 100_000);
        }
    }
}
