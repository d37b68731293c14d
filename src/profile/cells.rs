//! Reads the values in the cells of a row of `profile.pop`, and checks their types and ranges.
//! Creates the errors about a cell, and about a part of the file that SQLite cannot read.

use super::{
    Ids, TileBytes,
    encoding::{BlobError, decode_list},
    row_batch::StoredCell,
};
use crate::message::{FileError, PROFILE_AGAIN, Result, Warning, unusable};
use rusqlite::types::ValueRef;
use std::{cell::Cell, fmt::Display};

/// Names of the columns of a table that a scan reads, in the order in which it reads them.
pub type Columns = &'static [&'static str];

/// The cells of one row of a table in a profile. Methods identify a column by its index in
/// `columns`, the columns that the scan reads.
#[derive(Clone, Copy)]
pub struct Cells<'r> {
    pub cells: &'r [StoredCell],
    /// The bytes of the texts and blobs in the batch of rows that this row belongs to. Each text or
    /// blob in `cells` is a range of these bytes.
    pub bytes: &'r [u8],
    pub table: &'static str,
    pub columns: Columns,
    pub tiles: u32,
    /// Number of bytes of texts and blobs that the scan of a table may still read. This limit keeps
    /// a damaged file from filling the memory.
    pub payload_left: &'r Cell<u64>,
}

impl<'r> Cells<'r> {
    #[inline(always)]
    fn value(&self, column: usize) -> ValueRef<'r> {
        self.cells[column].value(self.bytes)
    }

    /// Returns the rowid of the row, which is always an integer. `column` is the index of the cell
    /// that holds it. If the rowid is not among the columns that the scan reads, it is stored in
    /// one more cell after theirs, so `column` is the number of these columns.
    #[inline(always)]
    pub fn rowid(&self, column: usize) -> i64 {
        self.value(column).as_i64().unwrap_or_default()
    }

    /// Subtracts the length of `bytes` from the number of bytes that this scan of a table may still
    /// read, and returns `bytes`. Returns an error if the number is too small: in a damaged file,
    /// many rows can share the same pages, so that even a small file could fill the memory.
    fn charge(&self, bytes: &'r [u8]) -> Result<&'r [u8]> {
        let Some(left) = self.payload_left.get().checked_sub(bytes.len() as u64) else {
            return unusable(format!(
                "table `{}` is damaged: its rows hold more bytes than the whole file, so some of \
                 them share pages; {PROFILE_AGAIN}",
                self.table
            ));
        };
        self.payload_left.set(left);
        Ok(bytes)
    }

    /// Returns the integer that the row has in `column`; `None` for NULL.
    pub fn signed(&self, column: usize) -> Result<Option<i64>> {
        let value = self.value(column);
        let wrong = |_| self.wrong(column, value, "an integer");
        value.as_i64_or_null().map_err(wrong)
    }

    /// Returns the integer that the row has in `column`; `None` for NULL. A negative integer is an
    /// error.
    pub fn optional(&self, column: usize) -> Result<Option<u64>> {
        match self.signed(column)? {
            Some(value @ ..0) => Err(self.problem(column, format!("{value} is negative"))),
            value => Ok(value.map(|value| value as u64)),
        }
    }

    /// Returns the integer that the row has in `column`. A negative integer or NULL is an error.
    #[inline(always)]
    pub fn unsigned(&self, column: usize) -> Result<u64> {
        // Nearly every cell holds an integer that is not negative, so this case is tried first, for
        // speed.
        match self.value(column) {
            ValueRef::Integer(value @ 0..) => Ok(value as u64),
            _ => self
                .optional(column)?
                .ok_or_else(|| self.problem(column, "it is NULL instead of a number")),
        }
    }

    /// Returns the integer that the row has in `column`. NULL or an integer outside 32 bits is an
    /// error.
    #[inline(always)]
    pub fn small(&self, column: usize) -> Result<u32> {
        let value = self.unsigned(column)?;
        u32::try_from(value).map_err(|_| self.problem(column, format!("{value} is too large")))
    }

    /// Returns the tile index that the row has in `column`. An index that is not below the number
    /// of tiles is an error.
    #[inline(always)]
    pub fn tile(&self, column: usize) -> Result<u32> {
        self.checked_tile(column, self.unsigned(column)?)
    }

    /// Returns `tile`, the value of the cell in `column`, as a tile index. An index that is not
    /// below the number of tiles is an error.
    #[inline(always)]
    pub fn checked_tile(&self, column: usize, tile: u64) -> Result<u32> {
        if tile >= u64::from(self.tiles) {
            return Err(self.problem(column, format!("there is no tile {tile}")));
        }
        Ok(tile as u32)
    }

    /// Returns the position, counted from 0, of the row of `table` that the cell in `column` refers
    /// to by its id. `ids` maps the ids of the rows of `table` to positions. If `table` has no row
    /// with this id, the error names the cell.
    #[inline(always)]
    pub fn position(&self, column: usize, ids: &Ids, table: &str) -> Result<u32> {
        let id = self.unsigned(column)?;
        ids.position(id)
            .ok_or_else(|| self.problem(column, format!("`{table}` has no row with the id {id}")))
    }

    /// Returns an error unless `ipu`, the index of an IPU from the cell in `column`, is below
    /// `count`, the number of IPUs.
    pub fn check_ipu(&self, column: usize, ipu: u64, count: u64) -> Result<()> {
        if ipu < count {
            return Ok(());
        }
        let problem = format!("there is no IPU {ipu}: the profile has {count}, counted from 0");
        Err(self.problem(column, problem))
    }

    /// Returns the integer that the row has in `column`; `None` for NULL. An integer outside 32
    /// bits is an error.
    pub fn optional_small(&self, column: usize) -> Result<Option<u32>> {
        match self.value(column) {
            ValueRef::Null => Ok(None),
            _ => self.small(column).map(Some),
        }
    }

    /// Returns the blob that the row has in `column`; an empty blob for NULL.
    #[inline]
    pub fn blob(&self, column: usize) -> Result<&'r [u8]> {
        match self.value(column) {
            ValueRef::Blob(bytes) => self.charge(bytes),
            ValueRef::Null => Ok(&[]),
            other => Err(self.wrong(column, other, "a blob")),
        }
    }

    /// Returns the text that the row has in `column`, with replacements for bytes that are not
    /// UTF-8; an empty text for NULL.
    pub fn text(&self, column: usize) -> Result<String> {
        match self.value(column) {
            ValueRef::Text(bytes) => Ok(String::from_utf8_lossy(self.charge(bytes)?).into_owned()),
            ValueRef::Null => Ok(String::new()),
            other => Err(self.wrong(column, other, "a text")),
        }
    }

    /// Returns the bytes of the text that the row has in `column`; `None` for a value of another
    /// type.
    #[inline]
    pub fn raw_text(&self, column: usize) -> Result<Option<&'r [u8]>> {
        match self.value(column) {
            ValueRef::Text(bytes) => self.charge(bytes).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns an error about the row's cell in `column`. `problem` is a clause that describes the
    /// problem. The error names the table, the column, and the row's value in the first column that
    /// is read.
    #[cold]
    pub fn problem(&self, column: usize, problem: impl Display) -> FileError {
        let key = match self.value(0) {
            ValueRef::Integer(key) => key.to_string(),
            ValueRef::Text(key) => shortened(&String::from_utf8_lossy(key)),
            _ => "without a key".to_string(),
        };
        cell(self.table, self.columns[column], key, problem)
    }

    /// Returns a function that turns an error about decoding the blob in `column` into a
    /// [`FileError`] that names the table, the column and the row.
    pub fn bad_blob(&self, column: usize) -> impl Fn(BlobError) -> FileError {
        move |error| self.problem(column, error)
    }

    /// Returns an error if an earlier row has the same id (`is_first` is false), since it is
    /// unknown which of the two rows is right.
    pub fn check_first(&self, is_first: bool) -> Result<()> {
        if is_first {
            return Ok(());
        }
        Err(self.problem(0, DUPLICATE))
    }

    /// Returns an error if the row is beyond the 256th category of variables, since the index of a
    /// category is stored in a byte. `before` is the number of categories in earlier rows.
    pub fn check_categories(&self, before: usize) -> Result<()> {
        let too_many = |_| self.problem(0, "a profile has at most 256 categories");
        u8::try_from(before).map(drop).map_err(too_many)
    }

    /// Decodes the blob in `column`, a run-length list (see `encoding.rs`) with one value for each
    /// tile. An empty blob means 0 on all tiles.
    pub fn tile_runs(&self, column: usize) -> Result<TileBytes> {
        TileBytes::from_rle(self.blob(column)?, self.tiles).map_err(self.bad_blob(column))
    }

    /// Decodes the blob in `column`, a list of varints (see `encoding.rs`) with one value for each
    /// tile. An empty blob means 0 on all tiles.
    pub fn tile_list(&self, column: usize) -> Result<TileBytes> {
        TileBytes::from_list(self.blob(column)?, self.tiles).map_err(self.bad_blob(column))
    }

    /// Decodes the blob in `column`, a list of at most `limit` varints (see `encoding.rs`).
    pub fn list(&self, column: usize, limit: usize) -> Result<Vec<u64>> {
        decode_list(self.blob(column)?, limit).map_err(self.bad_blob(column))
    }

    /// Returns the sum of `parts` on each tile. Each part has one number of bytes per tile, decoded
    /// from a cell of this row. If the sum on a tile exceeds 32 bits, returns an error that names
    /// the cell in column 1, whichever cells the parts come from.
    pub fn sum<'b>(&self, parts: impl IntoIterator<Item = &'b TileBytes>) -> Result<TileBytes> {
        TileBytes::sum(parts.into_iter().map(|part| (part, 1)))
            .map_err(|tile| self.problem(1, format!("more than 4 GiB on tile {tile}")))
    }

    fn wrong(&self, column: usize, found: ValueRef<'_>, expected: &str) -> FileError {
        self.problem(
            column,
            format!(
                "it holds a value of type {} instead of {expected}",
                found.data_type()
            ),
        )
    }
}

/// Maximum number of characters of a text in a cell that an error message shows.
const MAX_CHARACTERS: usize = 60;

/// Returns `text` in quotes, with control characters escaped. If `text` is long, only its first
/// characters are returned, and `...` follows the quotes.
fn shortened(text: &str) -> String {
    let kept: String = text.chars().take(MAX_CHARACTERS).collect();
    let more = if kept.len() < text.len() { "..." } else { "" };
    format!("'{}'{more}", kept.escape_debug())
}

/// The clause of an error message which says that several rows of a table have the same id.
pub const DUPLICATE: &str = "duplicate id";

/// Returns an error about one cell, in `column` of `table`. `problem` is a clause that describes
/// the problem. `row` identifies the row of the cell by the value in the first column that is read
/// from the table.
pub fn cell(table: &str, column: &str, row: impl Display, problem: impl Display) -> FileError {
    FileError::new(format!(
        "table `{table}`, column `{column}`, row {row}: {problem}; {PROFILE_AGAIN}"
    ))
}

/// Returns a function that turns an SQLite error into a [`FileError`] that names `place`, the table
/// or other part of the file that was read.
pub fn sqlite(place: &'static str) -> impl Fn(rusqlite::Error) -> FileError {
    move |error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::OperationInterrupted) => FileError::new(format!(
            "{place} cannot be read to an end: there are more rows than a file of this size can \
             hold, so some pages lead back to others; {PROFILE_AGAIN}"
        )),
        _ => FileError::new(format!(
            "SQLite cannot read {place}: {error}; {PROFILE_AGAIN}"
        )),
    }
}

/// Returns the error for a `table` whose rowids do not ascend, although SQLite relies on their
/// order to find rows. `rowid` is the first rowid that is out of order.
pub fn disordered(table: &str, rowid: i64) -> FileError {
    FileError::new(format!(
        "table `{table}` is damaged: its rows are not in the order of their rowids at {rowid}; \
         {PROFILE_AGAIN}"
    ))
}

/// Returns the error for a profile that was recorded without lowered variables.
pub fn no_variables() -> FileError {
    FileError::new(
        "the profile has no lowered variables, so no memory can be computed; record it again with \
         POPLAR_ENGINE_OPTIONS='{\"autoReport.all\":\"true\"}' or with the engine option \
         autoReport.outputLoweredVars set to true",
    )
}

pub fn no_row(table: &str) -> FileError {
    FileError::new(format!("table `{table}` has no row; {PROFILE_AGAIN}"))
}

/// Returns the value in `read`. If `read` is an error, returns the default value instead, and adds
/// a warning that `what` (a plural noun, such as "executed cycles") are left out because of the
/// error.
pub fn or_warn<T: Default>(read: Result<T>, what: &str, warnings: &mut Vec<Warning>) -> T {
    read.unwrap_or_else(|error| {
        warnings.push(Warning::new(format!("{what} are left out: {error}")));
        T::default()
    })
}
