//! Reads the memory that Poplar recorded for tiles and categories. Computed bytes are compared with
//! these records.

use super::{Database, TILES, TileBytes, cells::cell};
use crate::message::Result;
use serde::{Deserialize, Serialize};

/// The memory of each tile and of each category of variables, as the compiler recorded it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// One entry per tile: its recorded memory (`memory_by_tile`); no entries if the profile lacks
    /// the table.
    pub tiles: Vec<RecordedTile>,
    /// One entry per category of lowered variables: its recorded memory (`memory_by_category`); no
    /// entries if the profile lacks the table.
    pub categories: Vec<RecordedCategory>,
}

/// A row of `memory_by_category`: the recorded memory of one category of lowered variables, in
/// bytes on each tile, summed over the memory regions of the tile.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedCategory {
    /// Name of the category, such as `vertexCode`.
    pub name: String,
    /// Bytes of the category on each tile, including bytes whose address other variables have too.
    /// This is the sum of the lowered variables of the category on the tile (checked on a real
    /// profile).
    pub bytes: TileBytes,
    /// Bytes of the category on each tile that share their address with other variables. All other
    /// bytes of the category have an address to themselves (checked on a real profile).
    pub overlapped: TileBytes,
}

/// A kind of memory that programs need besides their tensors: a kind of code, or the state of
/// vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeKind {
    /// Code of vertex types (codelets).
    VertexCode,
    /// State of vertices, with pointers, descriptors and padding.
    VertexState,
    /// Code of exchanges between tiles of one IPU.
    ExchangeCode,
    /// Control code of programs, that is, their code apart from vertices and exchanges.
    ControlCode,
}

impl CodeKind {
    /// All kinds of memory that belongs to programs. The index of a kind in this list is its
    /// discriminant (`kind as usize`).
    pub const ALL: [Self; 4] = [
        Self::VertexCode,
        Self::VertexState,
        Self::ExchangeCode,
        Self::ControlCode,
    ];

    /// Returns the names of the categories of lowered variables that hold this kind of memory, such
    /// as `controlCode`.
    pub fn categories(self) -> &'static [&'static str] {
        match self {
            Self::VertexCode => &["vertexCode"],
            // Vertex state is in four categories. On every tile of a real profile, they add up to
            // the bytes of vertices in `memory_by_compute_set`.
            Self::VertexState => &[
                "vertexInstanceState",
                "vertexFieldData",
                "copyDescriptor",
                "vectorListDescriptor",
            ],
            Self::ExchangeCode => &["internalExchangeCode"],
            Self::ControlCode => &["controlCode"],
        }
    }

    /// Returns the kind of memory that the category of lowered variables with the name `category`
    /// holds; `None` for a category with data of tensors.
    pub fn of_category(category: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.categories().contains(&category))
    }
}

/// The recorded memory of one tile (a row of `memory_by_tile`), in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedTile {
    /// Bytes of the tile that are in use. Each address is included once, and gaps between variables
    /// are not included.
    pub total: u64,
    /// Bytes of the tile that are in use, including the gaps between variables
    /// (`total_including_gaps`); `None` if the profile lacks the column.
    pub with_gaps: Option<u64>,
    /// Bytes of the variables on the tile that are always live, that is, live on every step.
    pub always_live: u64,
    /// The largest number of bytes of not-always-live variables on the tile that are live on the
    /// same step.
    pub not_always_live: u64,
    /// Bytes of the tile by memory region; `None` if the profile lacks the columns of memory
    /// regions. A [`Model`](crate::model::Model) does not keep these bytes and always has `None`.
    #[serde(skip)]
    pub regions: Option<Regions>,
}

impl RecordedTile {
    /// Returns how many recorded bytes of the tile belong to no lowered variable. In a real
    /// profile, these are 36 bytes on one tile and 0 on all other tiles.
    pub fn beyond_variables(&self) -> u64 {
        self.total
            .saturating_sub(self.always_live.saturating_add(self.not_always_live))
    }
}

impl Recorded {
    /// Returns the recorded total of the fullest tile in bytes; `None` if the profile has no
    /// recorded memory of tiles.
    pub fn fullest(&self) -> Option<u64> {
        self.tiles.iter().map(|tile| tile.total).max()
    }

    pub(super) fn read(database: &Database) -> Result<Self> {
        Ok(Self {
            tiles: read_tiles(database)?,
            categories: read_categories(database)?,
        })
    }
}

/// The bytes of one tile in its three memory regions: interleaved, not interleaved, and overflowed
/// (beyond the memory of the tile).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Regions {
    /// Bytes in all three memory regions of the tile together, without gaps between variables.
    pub all: u64,
    /// Bytes by which the content of the tile, including the gaps between variables, exceeds the
    /// memory of the tile.
    pub overflowed: u64,
}

/// Columns of `memory_by_tile`. Every profile has the first four; a profile may lack the others.
const COLUMNS: &[&str] = &[
    "tile",
    "total",
    "always_live_bytes",
    "not_always_live_max_bytes",
    "total_including_gaps",
    "interleaved",
    "non_interleaved",
    "overflowed",
    "overflowed_including_gaps",
];
const REQUIRED: usize = 4;

/// Reads the recorded memory of each tile, in the order of tiles. The list is empty if the table is
/// missing or has no rows; otherwise, each tile must have a row.
fn read_tiles(database: &Database) -> Result<Vec<RecordedTile>> {
    if !database.has_table(TILES) {
        return Ok(Vec::new());
    }
    let columns = database.columns(TILES, COLUMNS, REQUIRED)?;
    let mut tiles = vec![None; database.target.num_tiles as usize];
    database.by_id(TILES, columns, |row| {
        let tile = row.tile(0)? as usize;
        let bytes = |column| row.small(column).map(u64::from);
        let mut recorded = RecordedTile {
            total: bytes(1)?,
            with_gaps: None,
            always_live: bytes(2)?,
            not_always_live: row.optional_small(3)?.unwrap_or(0).into(),
            regions: None,
        };
        if columns.len() > REQUIRED {
            recorded.with_gaps = row.optional_small(REQUIRED)?.map(u64::from);
        }
        if columns.len() == COLUMNS.len() {
            recorded.regions = Some(Regions {
                all: bytes(5)? + bytes(6)? + bytes(7)?,
                overflowed: bytes(7)?.max(bytes(8)?),
            });
        }
        tiles[tile] = Some(recorded);
        Ok(())
    })?;
    if tiles.iter().all(Option::is_none) {
        return Ok(Vec::new());
    }
    let missing = |tile: u32| cell(TILES, "tile", tile, "there is no such row");
    (0..)
        .zip(tiles)
        .map(|(tile, row)| row.ok_or_else(|| missing(tile)))
        .collect()
}

pub const CATEGORIES: &str = "memory_by_category";

fn read_categories(database: &Database) -> Result<Vec<RecordedCategory>> {
    if !database.has_table(CATEGORIES) {
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
    let mut categories: Vec<RecordedCategory> = Vec::new();
    database.rows(CATEGORIES, columns, |row| {
        let name = row.text(0)?;
        row.check_first(categories.iter().all(|category| category.name != name))?;
        row.check_categories(categories.len())?;
        let kinds: Vec<TileBytes> = (1..columns.len())
            .map(|column| row.tile_list(column))
            .collect::<Result<_, _>>()?;
        categories.push(RecordedCategory {
            name,
            bytes: row.sum(&kinds)?,
            overlapped: row.sum(kinds.iter().skip(1).step_by(2))?,
        });
        Ok(())
    })?;
    Ok(categories)
}
