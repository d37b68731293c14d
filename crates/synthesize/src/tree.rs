//! Defines the program tree, compute sets, exchanges and liveness steps.

use std::ops::Range;

use super::places::Places;
use super::tensors::TensorOf;

/// The types of programs, with their numbers in real files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    Sequence = 1,
    OnTileExecute = 2,
    Repeat = 3,
    Call = 8,
    OnEveryTileSwitch = 9,
    DoExchange = 11,
    /// An exchange between IPUs. Its real number is not known.
    GlobalExchange = 12,
    CodeCopy = 13,
    StreamCopyBegin = 17,
    StreamCopyMid = 18,
    StreamCopyEnd = 19,
    WriteUndef = 20,
    Sync = 25,
    Sans = 27,
    SyncAns = 28,
}

/// A range of tiles: `count` tiles from `first` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub first: u32,
    pub count: u32,
}

impl Window {
    /// Returns the window of the first `count` tiles: all tiles of a target with that number.
    pub const fn all(count: u32) -> Self {
        Self { first: 0, count }
    }

    pub fn tiles(self) -> Range<u32> {
        self.first..self.first + self.count
    }

    /// Returns a list by tile of a device: `value` on these tiles, 0 on all others.
    pub fn with(self, value: u64, tiles: u32) -> Vec<u64> {
        let value = |tile| if self.holds(tile) { value } else { 0 };
        (0..tiles).map(value).collect()
    }

    /// Returns the window, counted from the last of this number of tiles if it is mirrored.
    pub fn mirrored_if(self, is_mirrored: bool, tiles: u32) -> Self {
        let Self { first, count } = self;
        let first = if is_mirrored {
            tiles - first - count
        } else {
            first
        };
        Self { first, count }
    }

    pub fn holds(self, tile: u32) -> bool {
        tile.wrapping_sub(self.first) < self.count
    }

    pub fn intersect(self, other: Window) -> Window {
        let first = self.first.max(other.first);
        let end = (self.first + self.count).min(other.first + other.count);
        Window {
            first,
            count: end.saturating_sub(first),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Program {
    pub kind: Type,
    /// The row of the program in the table of its type.
    pub index: Option<usize>,
    pub children: Vec<u32>,
    pub name: Option<String>,
    pub debug_id: u32,
    /// The control code of the program itself: bytes on each tile, and the tiles.
    pub code: (u64, Window),
    /// The operation to which the program belongs; `None` for a program that the compiler makes.
    pub op: Option<usize>,
    /// The places for which the program works; `None` for all places.
    pub places: Option<Places>,
}

/// A stage of an operation: an exchange, a compute set, or both.
#[derive(Debug, Clone)]
pub struct Stage {
    pub op: usize,
    pub exchange: Option<usize>,
    pub compute_set: Option<usize>,
    /// The first and the last of its programs.
    pub programs: (u32, u32),
}

/// The places for which a stage works.
#[derive(Debug, Clone, Default)]
pub struct Share {
    pub places: Places,
    /// The parts of a stage that works for several places: each the places and the tiles of the
    /// part.
    pub parts: Vec<(Places, Window)>,
}

#[derive(Debug, Clone)]
pub struct ComputeSet {
    pub name: String,
    pub op: usize,
    pub window: Window,
    pub debug_id: u32,
    pub share: Share,
}

impl Share {
    /// Returns the share of a stage that works for all these places together.
    pub fn of(places: Places) -> Self {
        let parts = Vec::new();
        Self { places, parts }
    }
}

impl ComputeSet {
    /// Returns the places for which its vertices on a tile work; `None` if it has no vertices
    /// there.
    pub fn places_on(&self, tile: u32) -> Option<Places> {
        let parts = self.share.parts.iter().filter(|part| part.1.holds(tile));
        match self.share.parts.is_empty() {
            true => self.window.holds(tile).then_some(self.share.places),
            false => parts.map(|part| part.0).reduce(|all, one| all | one),
        }
    }

    pub fn runs_on(&self, tile: u32) -> bool {
        self.places_on(tile).is_some()
    }
}

#[derive(Debug, Clone)]
pub struct Exchange {
    /// The operation; none for the broadcast of control ids.
    pub op: Option<usize>,
    pub window: Window,
    /// The ids in `exchange_regions` of the data that are sent and of the data that are received.
    pub targets: (u32, u32),
    /// An earlier exchange whose code this exchange uses.
    pub shares: Option<usize>,
    pub share: Share,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    Control,
    Tensor(TensorOf),
    AllTensors,
}

#[derive(Debug, Clone)]
pub struct Stream {
    pub content: Content,
    /// The id in `exchange_regions` of its variables.
    pub target: u32,
}

#[derive(Debug, Default)]
pub struct Tree {
    pub programs: Vec<Program>,
    /// Of the control program.
    pub root: u32,
    pub functions: Vec<u32>,
    pub stages: Vec<Stage>,
    pub op_stages: Vec<Vec<usize>>,
    pub compute_sets: Vec<ComputeSet>,
    pub exchanges: Vec<Exchange>,
    pub streams: Vec<Stream>,
    pub repeats: Vec<u64>,
    /// The ids in `exchange_regions` of the destinations of code copies.
    pub code_copies: Vec<u32>,
    /// The functions that are called, by row of `program_type_call`.
    pub calls: Vec<usize>,
    pub targets: u32,
    /// The liveness steps: the program and the parent step of each.
    pub steps: Vec<(u32, Option<u32>)>,
    pub listings: Vec<Vec<u32>>,
}
