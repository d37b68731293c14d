//! Poplar's own record of memory: the truth to hold a model against.

use super::database::Database;
use super::tile_bytes::TileBytes;
use super::{ProfileError, Target};
use crate::witnesses::{Contradiction, Pair, Witness, worst};
use serde::{Deserialize, Serialize};

/// Memory by tile and by category, as the compiler recorded it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// By tile (`memory_by_tile`); empty when the profile lacks the table.
    pub tiles: Vec<RecordedTile>,
    /// By category of lowered variables (`memory_by_category`).
    pub categories: Vec<RecordedCategory>,
}

/// One row of `memory_by_category`, in bytes by tile, in all kinds of memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedCategory {
    /// The name, such as `vertexCode`.
    pub name: String,
    /// Overlapped or not. On a real profile these are the sums of the lowered
    /// variables of the category (checked).
    pub bytes: TileBytes,
    /// Those of them that are overlapped. The others stand at addresses that only one
    /// variable has, so those of all categories are no more than the total of a tile
    /// (checked).
    pub overlapped: TileBytes,
}

/// One row of `memory_by_tile`, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedTile {
    /// Distinct bytes in use, without gaps.
    pub total: u64,
    /// These bytes with the gaps between variables
    /// (`total_including_gaps`); `None` when the profile lacks the column.
    pub with_gaps: Option<u64>,
    /// Variables that are live on every step.
    pub always_live: u64,
    /// The maximum that other variables take at one step.
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

/// The table of tiles.
pub(super) const TILES: &str = "memory_by_tile";

/// The tile after the last that has a row in [`TILES`]; 0 without rows.
pub(super) fn listed_tiles(database: &Database) -> Result<u64, ProfileError> {
    let mut listed = 0;
    database.scan(TILES, &["tile"], |row| {
        listed = listed.max(row.unsigned(0)?.saturating_add(1));
        Ok(())
    })?;
    Ok(listed)
}

/// As many as `var_categories` may have.
const MAX_CATEGORIES: usize = u8::MAX as usize;

impl Recorded {
    /// The total of the fullest tile; `None` when the profile lacks the table.
    pub fn fullest(&self) -> Option<u64> {
        self.tiles.iter().map(|tile| tile.total).max()
    }

    /// Reads the record, and finds where it contradicts itself.
    pub(super) fn read(
        database: &Database,
        target: &Target,
    ) -> Result<(Self, Vec<Contradiction>), ProfileError> {
        let recorded = Self {
            tiles: read_tiles(database, target)?,
            categories: read_categories(database, target)?,
        };
        let regions = read_regions(database, target)?;
        let contradictions = recorded.contradictions(target, regions.as_deref());
        Ok((recorded, contradictions))
    }

    /// Where what was recorded of a tile contradicts itself, or is not there.
    fn contradictions(&self, target: &Target, regions: Option<&[Regions]>) -> Vec<Contradiction> {
        let all = u64::from(target.num_tiles);
        let rows = |is_empty| [if is_empty { 0 } else { all }, all];
        let mut found = vec![
            Contradiction::of_all(Witness::Rows, TILES, rows(self.tiles.is_empty())),
            Contradiction::of_all(Witness::Rows, CATEGORIES, rows(self.categories.is_empty())),
        ];
        let tiles = || self.tiles.iter();
        found.push(self.worst(
            (Witness::LiveInTotal, TILES),
            regions,
            tiles().map(|tile| {
                let live = tile.always_live.saturating_add(tile.not_always_live);
                (tile.total, live.max(tile.total))
            }),
        ));
        found.push(self.worst(
            (Witness::Gaps, TILES),
            regions,
            tiles().map(|tile| {
                let with_gaps = tile.with_gaps.unwrap_or(tile.total);
                (with_gaps, tile.total.max(with_gaps))
            }),
        ));
        if let Some(regions) = regions {
            let sums = tiles()
                .zip(regions)
                .map(|(tile, regions)| (tile.total, regions.all));
            found.push(self.worst((Witness::Regions, TILES), Some(regions), sums));
        }
        let disjoint = tiles()
            .zip(self.disjoint())
            .map(|(tile, disjoint)| (disjoint, tile.total.min(disjoint)));
        found.push(self.worst((Witness::Apart, CATEGORIES), regions, disjoint));
        found.into_iter().flatten().collect()
    }

    /// The tile where a recorded and a computed number differ most, as a part of its total.
    /// `regions` say on which tiles nothing lies beyond their memory.
    fn worst(
        &self,
        (witness, table): (Witness, &str),
        regions: Option<&[Regions]>,
        numbers: impl Iterator<Item = (u64, u64)>,
    ) -> Option<Contradiction> {
        // Where bytes beyond the memory of a tile are counted is known of no real profile.
        let counts_them = matches!(witness, Witness::Regions | Witness::Apart);
        let overflows = |tile: usize| {
            let region = regions.and_then(|regions| regions.get(tile));
            region.is_some_and(|region| region.overflowed > 0)
        };
        let tiles = self.tiles.iter().enumerate().zip(numbers);
        let pairs = tiles.map(|((tile, recorded_tile), (recorded, computed))| Pair {
            tile: tile as u32,
            recorded,
            computed,
            whole: recorded_tile.total,
            is_certain: !(counts_them && overflows(tile)),
        });
        worst(witness, table, pairs)
    }

    /// By tile, the bytes of all categories that share no address.
    fn disjoint(&self) -> Vec<u64> {
        let mut bytes = vec![0u64; self.tiles.len()];
        for category in &self.categories {
            category.bytes.change(&mut bytes, u64::saturating_add);
            category.overlapped.change(&mut bytes, u64::saturating_sub);
        }
        bytes
    }
}

/// The regions of a tile's memory, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Regions {
    /// Of all of them, without gaps.
    all: u64,
    /// Beyond its memory, with the gaps between variables.
    pub(super) overflowed: u64,
}

fn read_tiles(database: &Database, target: &Target) -> Result<Vec<RecordedTile>, ProfileError> {
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
    let has_gaps = database.require(table, all).is_ok();
    let columns = if has_gaps { &all[..] } else { &all[..4] };
    let mut tiles = vec![None; target.num_tiles as usize];
    database.scan(table, columns, |row| {
        let tile = row.unsigned(0)?;
        let place = usize::try_from(tile)
            .ok()
            .and_then(|tile| tiles.get_mut(tile));
        let unknown = || row.problem(0, format!("there is no tile {tile}"));
        let recorded = RecordedTile {
            total: row.small(1)?.into(),
            with_gaps: if has_gaps {
                row.optional_small(4)?.map(u64::from)
            } else {
                None
            },
            always_live: row.small(2)?.into(),
            not_always_live: row.optional_small(3)?.unwrap_or(0).into(),
        };
        row.check_first(place.ok_or_else(unknown)?.replace(recorded).is_none())
    })?;
    if tiles.iter().all(Option::is_none) {
        return Ok(Vec::new());
    }
    let missing = |tile| ProfileError::cell(table, "tile", tile, "there is no such row");
    let tiles = tiles.into_iter().enumerate();
    tiles
        .map(|(tile, recorded)| recorded.ok_or_else(|| missing(tile)))
        .collect()
}

/// By tile its regions; `None` where the profile does not say.
pub(super) fn read_regions(
    database: &Database,
    target: &Target,
) -> Result<Option<Vec<Regions>>, ProfileError> {
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

/// The table of categories.
pub(super) const CATEGORIES: &str = "memory_by_category";

fn read_categories(
    database: &Database,
    target: &Target,
) -> Result<Vec<RecordedCategory>, ProfileError> {
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
