//! The program tree, compute sets, exchanges and liveness steps.

use std::ops::Range;

use super::places::Places;
use super::tensors::TensorOf;

/// The program types in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Type {
    Sequence,
    OnTileExecute,
    Repeat,
    Call,
    OnEveryTileSwitch,
    DoExchange,
    CodeCopy,
    StreamCopyBegin,
    StreamCopyMid,
    StreamCopyEnd,
    WriteUndef,
    Sync,
    Sans,
    SyncAns,
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

    /// Its tiles.
    pub fn tiles(self) -> Range<u32> {
        self.first..self.first + self.count
    }

    /// Whether `tile` is inside.
    #[inline]
    pub fn holds(self, tile: u32) -> bool {
        tile.wrapping_sub(self.first) < self.count
    }

    /// The tiles of both.
    pub fn intersect(self, other: Window) -> Window {
        let first = self.first.max(other.first);
        let end = (self.first + self.count).min(other.first + other.count);
        Window {
            first,
            count: end.saturating_sub(first),
        }
    }
}

/// One program.
#[derive(Debug, Clone)]
pub struct Program {
    pub kind: Type,
    /// Its row in the table of its type.
    pub index: Option<usize>,
    /// Ids of its children, in order.
    pub children: Vec<u32>,
    /// Its name, where it has one.
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
    pub share: Share,
}

/// Which places a stage works for.
#[derive(Debug, Clone, Default)]
pub struct Share {
    /// All of them.
    pub places: Places,
    /// Where it reaches over several: its parts, each for its own places and on
    /// its own tiles.
    pub parts: Vec<(Places, Window)>,
}

/// A compute set.
#[derive(Debug, Clone)]
pub struct ComputeSet {
    pub name: String,
    /// The operation that runs it.
    pub op: usize,
    /// Tiles with vertices.
    pub window: Window,
    /// Its own context.
    pub debug_id: u32,
    pub share: Share,
}

/// An exchange between tiles.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// The operation; none for the broadcast of control ids.
    pub op: Option<usize>,
    /// Tiles that take part.
    pub window: Window,
    /// `exchange_target` ids of what is sent and what is received.
    pub targets: (u32, u32),
    /// An earlier exchange whose code it uses.
    pub shares: Option<usize>,
    pub share: Share,
}

/// The data that is copied from or to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    Control,
    /// The groups with this mark.
    Marked(Mark),
    /// All weights and their optimiser state.
    AllTensors,
}

/// A mark of variables that are copied from or to the host on their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Input,
    Loss,
    /// A weight, optimiser state or constant.
    Tensor(TensorOf),
}

/// A copy from or to the host.
#[derive(Debug, Clone)]
pub struct Stream {
    pub name: String,
    /// Whether the host sends.
    pub from_host: bool,
    /// The data that is copied.
    pub content: Content,
    /// `exchange_target` id of the variables.
    pub target: u32,
}

/// Programs and what they refer to.
#[derive(Debug, Default)]
pub struct Tree {
    /// Ids are positions.
    pub programs: Vec<Program>,
    /// Root of each control program.
    pub roots: Vec<u32>,
    /// Root of each function.
    pub functions: Vec<u32>,
    pub stages: Vec<Stage>,
    /// Per operation: its stages.
    pub op_stages: Vec<Vec<usize>>,
    pub compute_sets: Vec<ComputeSet>,
    pub exchanges: Vec<Exchange>,
    pub streams: Vec<Stream>,
    /// Repeat counts, by row of their table.
    pub repeats: Vec<u64>,
    /// Number of rows of `program_type_sans`, `_sync_ans` and `_sync`.
    pub syncs: [usize; 3],
    /// `exchange_target` ids of the destinations of code copies.
    pub code_copies: Vec<u32>,
    /// Functions called, by row of `program_type_call`.
    pub calls: Vec<usize>,
    /// Number of `exchange_target` rows.
    pub targets: u32,
    /// Liveness steps: program and parent step.
    pub steps: Vec<(u32, Option<u32>)>,
    /// Per program: its step indices.
    pub listings: Vec<Vec<u32>>,
}
