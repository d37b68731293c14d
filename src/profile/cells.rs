//! The values of one row, checked for what belongs there.

use super::encoding::BlobError;
use super::error::{DUPLICATE, ProfileError};
use super::tile_bytes::TileBytes;
use rusqlite::Row;
use rusqlite::types::ValueRef;
use std::cell::Cell;

/// One row of a scan. Columns are given by their place in the scan's list.
#[derive(Clone, Copy)]
pub(super) struct Cells<'r> {
    pub(super) row: &'r Row<'r>,
    pub(super) table: &'static str,
    pub(super) columns: &'static [&'static str],
    /// How many more bytes of texts and blobs the table can hold.
    pub(super) payload_left: &'r Cell<u64>,
}

impl<'r> Cells<'r> {
    #[inline(always)]
    fn value(&self, column: usize) -> Result<ValueRef<'r>, ProfileError> {
        let value = self.row.get_ref(column);
        value.map_err(ProfileError::sqlite(self.table))
    }

    /// The rowid, which a scan in ranges asks for behind all columns.
    #[inline(always)]
    pub(super) fn rowid(&self) -> Result<i64, ProfileError> {
        let rowid = self.row.get(self.columns.len());
        rowid.map_err(ProfileError::sqlite(self.table))
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
    #[inline]
    pub(super) fn signed(&self, column: usize) -> Result<Option<i64>, ProfileError> {
        match self.value(column)? {
            ValueRef::Integer(value) => Ok(Some(value)),
            ValueRef::Null => Ok(None),
            other => Err(self.wrong(column, other, "an integer")),
        }
    }

    /// An integer from 0 on, or NULL.
    #[inline]
    pub(super) fn optional(&self, column: usize) -> Result<Option<u64>, ProfileError> {
        self.signed(column)?
            .map(|value| {
                u64::try_from(value)
                    .map_err(|_| self.problem(column, format!("{value} is negative")))
            })
            .transpose()
    }

    /// An integer from 0 on.
    #[inline(always)]
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
    #[inline]
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

    /// The bytes of a text; `None` for anything else.
    #[inline]
    pub(super) fn raw_text(&self, column: usize) -> Result<Option<&'r [u8]>, ProfileError> {
        match self.value(column)? {
            ValueRef::Text(bytes) => self.count(bytes).map(Some),
            _ => Ok(None),
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

    /// The error about a blob that could not be decoded.
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
const MAX_CHARACTERS: usize = 60;

/// A text in quotes, without control characters, and cut where it is long.
fn shortened(text: &str) -> String {
    let kept: String = text.chars().take(MAX_CHARACTERS).collect();
    let more = if kept.len() < text.len() { "..." } else { "" };
    format!("'{}'{more}", kept.escape_debug())
}
