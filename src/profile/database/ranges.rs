//! Reads large tables in ranges of rowids, by several threads.
//!
//! SQLite finds the first row of a range by comparing rowids, and continues from there. On a
//! damaged page rowids may be out of order, and then it would silently miss rows. So each range is
//! read up to the first row of the next one, and all rowids must ascend: then the ranges together
//! hold every row of the table exactly once.

use super::super::cells::{Cells, Columns};
use super::super::error::{disordered, sqlite};
use super::{Database, Schema, select};
use crate::message::Result;
use rayon::prelude::*;
use rusqlite::Connection;

/// Tables that several threads read, each thread a range of rowids, with a number of rowids: a
/// table that spans fewer is read as one range. The number is lower for compute sets, whose rows
/// hold thousands of variables. Reading these tables takes nearly all of the time, so only their
/// rows count as progress.
pub(super) const LARGE_TABLES: [(&str, u64); 3] = [
    ("vars_info", 100_000),
    ("exchange_regions", 100_000),
    ("compute_sets", 1_000),
];

/// Number of ranges that a large table is read in. There are several for each thread, since threads
/// have other work too. More would waste memory, since the lists of each range have spare capacity.
const RANGES: u64 = 16;

/// The result of reading one range of rowids of a table.
struct ScannedRange<T> {
    /// The rows of the range as `visit` collected them.
    filled: T,
    /// Rowid of the first row at or after the start of the range; `None` if the table ends before
    /// it.
    first: Option<i64>,
    /// Rowid of the first row after the end of the range; `None` if there is none.
    next: Option<i64>,
}

impl Database {
    /// Reads `columns` of a large table in ranges of rowids, in parallel. `visit` adds each row to
    /// the `T` of its range, which `init` creates. Returns the `T` of all ranges in rowid order;
    /// none if the table has no rows.
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
            self.scan(table, columns, |row| visit(row, &mut filled))?;
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
    /// them. `sql` must select `columns` and the rowid of all rows from its parameter on,
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

/// Returns the `filled` values of `parts`, the results of all ranges in rowid order.
///
/// # Errors
/// If the row after a range is not the first row of the next one.
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
/// that cannot be read counts 0 here; its error is reported when it is read.
pub(super) fn rows_at_most(connection: &Connection, schema: &Schema) -> u64 {
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
    use super::*;

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
