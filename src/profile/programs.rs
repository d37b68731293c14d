//! The program tree and the code that programs run.

use super::ids::Ids;
use super::tile_bytes::TileBytes;
use std::sync::Arc;

/// The program tree, with compute sets and vertex types.
#[derive(Debug, Clone)]
pub struct Programs {
    pub(super) ids: Ids,
    /// Every program, in the order of the file.
    pub all: Vec<Program>,
    /// The roots of the tree (`control_programs`, by id), as positions in `all`.
    pub roots: Vec<u32>,
    /// Every compute set, in the order of the file.
    pub compute_sets: Vec<ComputeSet>,
    /// Every vertex type, in the order of the file.
    pub vertex_types: Vec<VertexType>,
}

/// One program.
#[derive(Debug, Clone)]
pub struct Program {
    /// `programs.id`.
    pub id: u64,
    /// Its name; mostly empty.
    pub name: Box<str>,
    /// Its kind.
    pub kind: ProgramKind,
    /// The row of the table of its type that belongs to it.
    pub(super) variant_index: Option<u64>,
    /// Its children in order, as positions in [`Programs::all`].
    pub children: Box<[u32]>,
    /// Its debug context; 0 for none.
    pub debug_id: u64,
    /// Bytes of control code by tile. Those of a program with children
    /// include the children's, so they are kept for programs without only.
    pub control_code: TileBytes,
    /// The ids of the region sets that it moves, for
    /// [`Profile::region_variables`](super::Profile::region_variables): source
    /// and destination of exchanges, the regions of a host exchange, the
    /// destination of a code copy. A region set without a row is empty.
    pub regions: Arc<[u64]>,
}

/// The kind of a program, as far as memory is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramKind {
    /// Runs a compute set; its position in [`Programs::compute_sets`].
    OnTileExecute(u32),
    /// Moves data between tiles, with so much code by tile.
    DoExchange(TileBytes),
    /// Runs the body of a function; its position in [`Programs::all`].
    Call(u32),
    /// Anything else, by its name in `program_types`.
    Other(Box<str>),
}

impl ProgramKind {
    /// Does it move data between tiles or IPUs, from its first region set to its last?
    pub fn is_exchange(&self) -> bool {
        match self {
            ProgramKind::DoExchange(_) => true,
            ProgramKind::Other(name) => &**name == "GlobalExchange",
            ProgramKind::OnTileExecute(_) | ProgramKind::Call(_) => false,
        }
    }

    /// Does it copy from or to the host, or begin or end that?
    pub fn is_stream_copy(&self) -> bool {
        matches!(self, ProgramKind::Other(name) if name.starts_with("StreamCopy"))
    }
}

/// One compute set.
#[derive(Debug, Clone)]
pub struct ComputeSet {
    /// `compute_sets.compute_set`.
    pub id: u64,
    /// Its name.
    pub name: Box<str>,
    /// Its own debug context; 0 for none, or where the profile does not say.
    pub debug_id: u64,
    /// The vertices it holds: position in [`Programs::vertex_types`], and how
    /// many instances each tile has.
    pub vertices: Vec<(u32, TileBytes)>,
    /// How many instances it has by its own count; `None` where the profile does not say.
    pub counted: Option<u64>,
    /// Exact bytes of its vertices by tile: data, edge and copy pointers,
    /// descriptors and padding (`memory_by_compute_set`); `None` when the
    /// profile does not say.
    pub memory: Option<TileBytes>,
}

/// One vertex type.
#[derive(Debug, Clone)]
pub struct VertexType {
    /// Its name.
    pub name: Box<str>,
    /// Bytes of state of one instance.
    pub state_bytes: u32,
    /// Bytes of code by tile.
    pub code: TileBytes,
}

impl Programs {
    /// The position in `all` of the program with this id.
    pub fn position(&self, id: u64) -> Option<u32> {
        self.ids.position(id)
    }
}

/// A row of `programs`, with ids where [`Program`] has positions.
pub(super) struct ProgramRow {
    pub(super) id: u64,
    pub(super) name: Box<str>,
    pub(super) kind: Box<str>,
    pub(super) variant_index: Option<u64>,
    pub(super) children: Vec<u64>,
    pub(super) debug_id: u64,
    pub(super) control_code: TileBytes,
}
