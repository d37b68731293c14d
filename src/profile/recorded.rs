//! Memory as Poplar recorded it, with which the model is compared.

use super::Target;
use super::database::Database;
use super::error::cell;
use super::tile_bytes::TileBytes;
use crate::message::FileError;
use serde::{Deserialize, Serialize};

/// Memory by tile and by category, as the compiler recorded it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// By tile: recorded memory (`memory_by_tile`); empty if the profile lacks the table.
    pub tiles: Vec<RecordedTile>,
    /// By category of lowered variables: recorded memory (`memory_by_category`).
    pub categories: Vec<RecordedCategory>,
}

/// One row of `memory_by_category`, in bytes by tile, summed over all kinds of memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedCategory {
    /// Name of the category, such as `vertexCode`.
    pub name: String,
    /// Bytes by tile, overlapped or not: the sum of the lowered variables of the category
    /// (checked).
    pub bytes: TileBytes,
    /// Overlapped bytes by tile. The other bytes lie at addresses of only one variable, so their
    /// sum over all categories is at most the total of the tile (checked).
    pub overlapped: TileBytes,
}

/// One row of `memory_by_tile`, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedTile {
    /// Distinct bytes in use, without gaps between variables.
    pub total: u64,
    /// Bytes in use with the gaps between variables (`total_including_gaps`); `None` if the profile
    /// lacks the column.
    pub with_gaps: Option<u64>,
    /// Bytes of variables that are live on every step.
    pub always_live: u64,
    /// Peak bytes of all other variables.
    pub not_always_live: u64,
}

impl RecordedTile {
    /// Bytes of `total` that no lowered variable explains: 36 on one tile of a real profile, 0 on
    /// all others.
    pub fn beyond_variables(&self) -> u64 {
        let variables = self.always_live.saturating_add(self.not_always_live);
        self.total.saturating_sub(variables)
    }
}

/// Table of tiles.
pub(crate) const TILES: &str = "memory_by_tile";

/// Number of the last tile in [`TILES`] plus 1; 0 without rows.
pub(super) fn listed_tiles(database: &Database) -> Result<u64, FileError> {
    let tiles = database.rows(TILES, &["tile"], |row| row.unsigned(0))?;
    let last = tiles.into_iter().max();
    Ok(last.map_or(0, |last| last.saturating_add(1)))
}

/// Largest position of a category in `var_categories`.
const MAX_CATEGORIES: usize = u8::MAX as usize;

impl Recorded {
    /// Total of the fullest tile; `None` if the profile lacks the table.
    pub fn fullest(&self) -> Option<u64> {
        self.tiles.iter().map(|tile| tile.total).max()
    }

    pub(super) fn read(database: &Database, target: &Target) -> Result<Self, FileError> {
        Ok(Self {
            tiles: read_tiles(database, target)?,
            categories: read_categories(database, target)?,
        })
    }
}

/// Memory regions of a tile, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Regions {
    /// Bytes of all regions together, without gaps.
    pub all: u64,
    /// Bytes beyond the memory of the tile, including the gaps between variables.
    pub overflowed: u64,
}

fn read_tiles(database: &Database, target: &Target) -> Result<Vec<RecordedTile>, FileError> {
    let table = TILES;
    if !database.has_table(table) {
        return Ok(Vec::new());
    }
    let all = &[
        "tile",
        "total",
        "always_live_bytes",
        "not_always_live_max_bytes",
        "total_including_gaps",
    ];
    let columns = database.columns(table, all, 4)?;
    let has_gaps = columns.len() == all.len();
    let mut tiles = vec![None; target.num_tiles as usize];
    database.scan(table, columns, |row| {
        let tile = row.tile(0, target.num_tiles)?;
        let with_gaps = has_gaps.then(|| row.optional_small(4)).transpose()?;
        let recorded = RecordedTile {
            total: row.small(1)?.into(),
            with_gaps: with_gaps.flatten().map(u64::from),
            always_live: row.small(2)?.into(),
            not_always_live: row.optional_small(3)?.unwrap_or(0).into(),
        };
        row.check_first(tiles[tile as usize].replace(recorded).is_none())
    })?;
    if tiles.iter().all(Option::is_none) {
        return Ok(Vec::new());
    }
    let missing = |tile| cell(table, "tile", tile, "there is no such row");
    let tiles = tiles.into_iter().enumerate();
    tiles
        .map(|(tile, recorded)| recorded.ok_or_else(|| missing(tile)))
        .collect()
}

/// Memory regions by tile; `None` if the profile lacks them.
pub(super) fn read_regions(
    database: &Database,
    target: &Target,
) -> Result<Option<Vec<Regions>>, FileError> {
    let columns = &[
        "tile",
        "interleaved",
        "non_interleaved",
        "overflowed",
        "overflowed_including_gaps",
    ];
    if database.require(TILES, columns).is_err() {
        return Ok(None);
    }
    let mut regions = vec![Regions::default(); target.num_tiles as usize];
    database.scan(TILES, columns, |row| {
        let part = |column| row.small(column).map(u64::from);
        let found = Regions {
            all: part(1)? + part(2)? + part(3)?,
            overflowed: part(3)?.max(part(4)?),
        };
        let tile = usize::try_from(row.unsigned(0)?).ok();
        if let Some(tile) = tile.and_then(|tile| regions.get_mut(tile)) {
            *tile = found;
        }
        Ok(())
    })?;
    Ok(Some(regions))
}

/// Table of categories.
pub(crate) const CATEGORIES: &str = "memory_by_category";

fn read_categories(
    database: &Database,
    target: &Target,
) -> Result<Vec<RecordedCategory>, FileError> {
    let table = CATEGORIES;
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
    let tiles = target.num_tiles;
    let mut categories: Vec<RecordedCategory> = Vec::new();
    database.scan(table, columns, |row| {
        let name = row.text(0)?;
        row.check_first(categories.iter().all(|category| category.name != name))?;
        if categories.len() > MAX_CATEGORIES {
            return Err(row.problem(0, "a profile has at most 256 categories"));
        }
        let kind =
            |column| TileBytes::from_list(row.blob(column)?, tiles).map_err(row.bad_blob(column));
        let kinds: Vec<TileBytes> = (1..columns.len()).map(kind).collect::<Result<_, _>>()?;
        let overlapped: Vec<TileBytes> = kinds.iter().skip(1).step_by(2).cloned().collect();
        categories.push(RecordedCategory {
            name,
            bytes: row.sum(&kinds, tiles)?,
            overlapped: row.sum(&overlapped, tiles)?,
        });
        Ok(())
    })?;
    Ok(categories)
}
