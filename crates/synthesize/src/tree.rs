//! The program tree, compute sets, exchanges and liveness steps.

use std::ops::Range;

use super::places::Places;
use super::tensors::TensorOf;

/// Types of programs, as real files number them.
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

/// Tiles from `first`, `count` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub first: u32,
    pub count: u32,
}

impl Window {
    /// The window of the first `count` tiles: the whole of a target with that many.
    pub const fn all(count: u32) -> Self {
        Self { first: 0, count }
    }

    pub fn tiles(self) -> Range<u32> {
        self.first..self.first + self.count
    }

    /// By tile of a device: a value on these tiles, 0 elsewhere.
    pub fn with(self, value: u64, tiles: u32) -> Vec<u64> {
        let value = |tile| if self.holds(tile) { value } else { 0 };
        (0..tiles).map(value).collect()
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
    /// Its row in the table of its type.
    pub index: Option<usize>,
    pub children: Vec<u32>,
    pub name: Option<String>,
    pub debug_id: u32,
    /// Its own control code: bytes on each tile of the window.
    pub code: (u64, Window),
    /// The operation that it belongs to; none for what the compiler makes.
    pub op: Option<usize>,
    /// The places that it works for, where that is not all.
    pub places: Option<Places>,
}

/// A step of an operation: an exchange, a compute set, or both.
#[derive(Debug, Clone)]
pub struct Stage {
    pub op: usize,
    pub exchange: Option<usize>,
    pub compute_set: Option<usize>,
    /// First and last of its programs.
    pub programs: (u32, u32),
}

/// Which places a stage works for.
#[derive(Debug, Clone, Default)]
pub struct Share {
    pub places: Places,
    /// Where it reaches over several: its parts, each for its own places and on
    /// its own tiles.
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
    /// The share of a stage that these places have in common.
    pub fn of(places: Places) -> Self {
        let parts = Vec::new();
        Self { places, parts }
    }
}

impl ComputeSet {
    /// The places that its vertices on a tile work for, if it has any there.
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
    /// Ids in `exchange_regions` of what is sent and what is received.
    pub targets: (u32, u32),
    /// An earlier exchange whose code it uses.
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
    /// Id in `exchange_regions` of the variables.
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
    /// Ids in `exchange_regions` of the destinations of code copies.
    pub code_copies: Vec<u32>,
    /// Functions called, by row of `program_type_call`.
    pub calls: Vec<usize>,
    pub targets: u32,
    /// Liveness steps: program and parent step.
    pub steps: Vec<(u32, Option<u32>)>,
    pub listings: Vec<Vec<u32>>,
}
