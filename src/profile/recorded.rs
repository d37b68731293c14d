//! What Poplar itself says about memory: the truth to hold a model against.

use super::database::Database;
use super::encoding::Varints;
use super::tile_bytes::TileBytes;
use super::{ProfileError, Target};

/// Memory by tile and by category, as the compiler recorded it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    /// By tile (`memory_by_tile`); empty when the profile lacks the table.
    pub tiles: Vec<RecordedTile>,
    /// The name of each category and its bytes by tile, overlapped or not, in
    /// all kinds of memory (`memory_by_category`). On a real profile these are
    /// the sums of the lowered variables of the category (checked).
    pub categories: Vec<(String, TileBytes)>,
}

/// One row of `memory_by_tile`, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordedTile {
    /// Distinct bytes in use, without gaps.
    pub total: u64,
    /// Variables that are live on every step.
    pub always_live: u64,
    /// The most that other variables take at one step.
    pub not_always_live: u64,
}

impl RecordedTile {
    /// Bytes that no lowered variable explains: 36 on one tile of a real
    /// profile, 0 on all others.
    pub fn beyond_variables(&self) -> u64 {
        let variables = self.always_live.saturating_add(self.not_always_live);
        self.total.saturating_sub(variables)
    }
}

impl Recorded {
    pub(super) fn read(database: &Database, target: &Target) -> Result<Self, ProfileError> {
        Ok(Self {
            tiles: read_tiles(database, target)?,
            categories: read_categories(database, target)?,
        })
    }
}

fn read_tiles(database: &Database, target: &Target) -> Result<Vec<RecordedTile>, ProfileError> {
    let table = "memory_by_tile";
    if !database.has_table(table) {
        return Ok(Vec::new());
    }
    let columns = &[
        "tile",
        "total",
        "always_live_bytes",
        "not_always_live_max_bytes",
    ];
    let mut tiles = vec![RecordedTile::default(); target.num_tiles as usize];
    database.scan(table, columns, |row| {
        let tile = row.unsigned(0)?;
        let place = usize::try_from(tile)
            .ok()
            .and_then(|tile| tiles.get_mut(tile));
        let unknown = || row.problem(0, format!("there is no tile {tile}"));
        *place.ok_or_else(unknown)? = RecordedTile {
            total: row.unsigned(1)?,
            always_live: row.unsigned(2)?,
            not_always_live: row.optional(3)?.unwrap_or(0),
        };
        Ok(())
    })?;
    Ok(tiles)
}

fn read_categories(
    database: &Database,
    target: &Target,
) -> Result<Vec<(String, TileBytes)>, ProfileError> {
    let table = "memory_by_category";
    if !database.has_table(table) {
        return Ok(Vec::new());
    }
    let columns = &[
        "category_id",
        "interleaved_non_overlapped",
        "interleaved_overlapped",
        "non_interleaved_non_overlapped",
        "non_interleaved_overlapped",
        "overflowed_non_overlapped",
        "overflowed_overlapped",
    ];
    let mut categories = Vec::new();
    database.scan(table, columns, |row| {
        let mut sums = vec![0u32; target.num_tiles as usize];
        for column in 1..columns.len() {
            let mut values = Varints::new(row.blob(column)?);
            for sum in &mut sums {
                let value = match values.next() {
                    Some(value) => value.map_err(row.bad_blob(column))?,
                    None => break,
                };
                *sum = u32::try_from(value)
                    .ok()
                    .and_then(|value| sum.checked_add(value))
                    .ok_or_else(|| row.problem(column, format!("{value} bytes on one tile")))?;
            }
        }
        categories.push((row.text(0)?, sums.into_iter().collect()));
        Ok(())
    })?;
    Ok(categories)
}
