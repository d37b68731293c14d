//! The program tree, and the code bytes of programs.

use super::ids::Ids;
use super::tile_bytes::TileBytes;
use std::sync::Arc;

/// The program tree, with compute sets and vertex types.
#[derive(Debug, Clone)]
pub struct Programs {
    pub(super) ids: Ids,
    /// All programs, in the order of the file.
    pub all: Vec<Program>,
    /// Roots of the tree (`control_programs`, ordered by id), as positions in `all`.
    pub roots: Vec<u32>,
    /// All compute sets, in the order of the file.
    pub compute_sets: Vec<ComputeSet>,
    /// All vertex types, in the order of the file.
    pub vertex_types: Vec<VertexType>,
}

/// One program.
#[derive(Debug, Clone)]
pub struct Program {
    /// Id of the program (`programs.id`).
    pub id: u64,
    /// Name of the program; mostly empty.
    pub name: Box<str>,
    /// Kind of the program.
    pub kind: ProgramKind,
    /// Id of the program's row in the table of its type.
    pub(super) variant_index: Option<u64>,
    /// Children in order, as positions in [`Programs::all`].
    pub children: Box<[u32]>,
    /// Debug context; 0 for none.
    pub debug_id: u64,
    /// Bytes of control code by tile. Empty for a program with children, whose recorded bytes
    /// include those of the children.
    pub control_code: TileBytes,
    /// Ids of the region sets that the program moves, for
    /// [`Profile::region_variables`](super::Profile::region_variables): source and destination of
    /// an exchange, regions of a host exchange, destination of a code copy. A region set without a
    /// row is empty.
    pub regions: Arc<[u64]>,
}

/// Kind of a program, as far as memory is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramKind {
    /// Runs the compute set at this position in [`Programs::compute_sets`].
    OnTileExecute(u32),
    /// Moves data between tiles; with the bytes of exchange code by tile.
    DoExchange(TileBytes),
    /// Runs the body of a function, at this position in [`Programs::all`].
    Call(u32),
    /// Any other type, by its name in `program_types`.
    Other(Box<str>),
}

impl ProgramKind {
    /// Does the program move data between tiles or IPUs, from its first region set to its last?
    pub fn is_exchange(&self) -> bool {
        match self {
            ProgramKind::DoExchange(_) => true,
            ProgramKind::Other(name) => &**name == "GlobalExchange",
            ProgramKind::OnTileExecute(_) | ProgramKind::Call(_) => false,
        }
    }

    /// Does the program copy from or to the host, or begin or end such a copy?
    pub fn is_stream_copy(&self) -> bool {
        matches!(self, ProgramKind::Other(name) if name.starts_with("StreamCopy"))
    }
}

/// One compute set.
#[derive(Debug, Clone)]
pub struct ComputeSet {
    /// Id of the compute set (`compute_sets.compute_set`).
    pub id: u64,
    /// Name of the compute set.
    pub name: Box<str>,
    /// Debug context of the compute set itself; 0 for none, or if the profile lacks it.
    pub debug_id: u64,
    /// Vertices by type (a position in [`Programs::vertex_types`]), with the number of instances by
    /// tile.
    pub vertices: Vec<(u32, TileBytes)>,
    /// Number of instances as the compute set itself states it; `None` if the profile lacks it.
    pub counted: Option<u64>,
    /// Exact bytes of its vertices by tile: data, edge and copy pointers, descriptors and padding
    /// (`memory_by_compute_set`); `None` if the profile lacks them.
    pub memory: Option<TileBytes>,
}

/// One vertex type.
#[derive(Debug, Clone)]
pub struct VertexType {
    /// Name of the vertex type.
    pub name: Box<str>,
    /// State of one instance, in bytes.
    pub state_bytes: u32,
    /// Code of the vertex type, in bytes by tile.
    pub code: TileBytes,
}

impl Programs {
    /// Position in `all` of the program with this id.
    pub fn position(&self, id: u64) -> Option<u32> {
        self.ids.position(id)
    }
}

/// A row of `programs`, with ids in place of the positions in [`Program`].
pub(super) struct ProgramRow {
    pub(super) id: u64,
    pub(super) name: Box<str>,
    pub(super) kind: Box<str>,
    pub(super) variant_index: Option<u64>,
    pub(super) children: Vec<u64>,
    pub(super) debug_id: u64,
    pub(super) control_code: TileBytes,
}
