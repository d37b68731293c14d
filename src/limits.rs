//! Limits on the memory and time that input files may demand.
//!
//! A few bytes of a file can demand a table, a list or a loop of any size. Each limit is far above
//! the needs of real models, and the error for a file that exceeds a limit names the limit. A limit
//! that large models could reach grows with the size of the file. A test compares the limits with
//! the table in SECURITY.md.

/// A limit that grows with the number of items in the input file, such as variables or programs:
/// [`each`](Self::each) times the number of items, but at least [`least`](Self::least).
#[derive(Debug)]
pub struct Growing {
    /// The limit for an input file with few items, such as variables or programs.
    pub least: usize,
    /// The limit for each item, such as a variable or a program, in an input file with many items.
    pub each: usize,
}

impl Growing {
    /// Returns the maximum for a file with `count` items (such as variables or programs): `each`
    /// times `count`, but at least `least`.
    pub fn of(self, count: usize) -> usize {
        self.least.max(count.saturating_mul(self.each))
    }
}

// The next constants limit what `profile.pop` may contain.

/// Maximum number of tiles of all IPUs together. For comparison, 256 IPUs of 1,472 tiles have
/// 376,832 tiles.
pub const TILES: u64 = 1 << 20;
/// Maximum number of tiles that a profile may state for one IPU; the largest IPU has 1,472. Without
/// a limit, a damaged profile could make popliner reserve more memory than the machine has.
pub const TILES_OF_IPU: u32 = 1 << 12;
/// Maximum memory capacity, in bytes, that a profile may state for one tile; a tile of a real IPU
/// has less than 1 MB.
pub const BYTES_OF_TILE: u64 = u32::MAX as u64;
/// Maximum memory capacity, in bytes, of all tiles of a machine together. A profile is refused if
/// it records that the live bytes change by more than this at any liveness step.
pub const DEVICE_BYTES: u64 = TILES * BYTES_OF_TILE;
/// Maximum number of entries in the variable lists of all compute sets together, which grows with
/// the number of lowered variables in the profile. A few bytes of a compute set can list all
/// variables; in real models, a variable is in a handful of compute sets.
pub const MEMBERS: Growing = Growing {
    least: 1 << 24,
    each: 256,
};
/// Maximum number of debug contexts of one lowered variable. Real variables have a handful of
/// contexts.
pub const CONTEXTS_OF_VARIABLE: usize = 1 << 12;

// The next constants limit what `debug.cbor` may contain.

/// Maximum nesting depth of the CBOR items in `debug.cbor`. Each level takes stack memory in the
/// decoder.
pub const NESTED_ITEMS: usize = 256;
/// Maximum number of ancestors of a debug context, since the chain of ancestors is followed for
/// each program. Real contexts have about ten ancestors.
pub const CONTEXTS_ABOVE: usize = 1024;

// The next constants limit the model that is built from `profile.pop` and `debug.cbor`.

/// Maximum number of visits to programs while the program tree is traversed, which grows with the
/// number of programs in the profile. A program is visited once for each path of calls that leads
/// to it, so nested calls can multiply the visits without end. Real models have about 10^5 visits.
pub const VISITS: Growing = Growing {
    least: 1 << 18,
    each: 64,
};
/// Maximum number of entries in the table with the predicted memory of all stages that the search
/// may choose. The table has an entry for each range of consecutive layers and each possible number
/// of stages after it, so models with many layers can be split into fewer stages.
pub const RANGE_COSTS: usize = 1 << 25;

/// Maximum nesting depth of Call programs, that is, of calls of functions within functions.
pub const NESTED_CALLS: usize = 64;
/// Maximum number of executions of one program in nested loops, on one path of calls. A larger
/// number, as in a damaged file, is replaced by this maximum. The executions of all programs,
/// multiplied by their cycles, then fit 128 bits.
pub const EXECUTIONS: u64 = 1 << 36;
/// Maximum number of cycles of all programs together, over all runs. A tile takes 79 years for 2^62
/// cycles. Twice this maximum must fit 64 bits, since a stage that recomputes its forward pass
/// counts the cycles of this pass twice.
pub const CYCLES: u64 = 1 << 62;
/// Maximum length in bytes of the names and inputs of all operations together. An operation in a
/// function counts once for each path of calls that leads to it, so a few texts in `debug.cbor` can
/// become many names.
pub const TEXT: usize = 1 << 28;
/// Maximum number of different use sets, which grows with the number of variables in the profile. A
/// use set is the set of all operation groups (operations with the same debug context) that use a
/// variable; many variables have the same use set. Real models have about 10^4 use sets.
pub const SETS: Growing = Growing {
    least: 1 << 20,
    each: 4,
};
/// Maximum number of pairs of a variable and an operation group (operations with the same debug
/// context) that uses it. It grows with the number of variables in the profile.
pub const USES: Growing = Growing {
    least: 1 << 27,
    each: 1 << 10,
};
/// Maximum number of use sets of all clusters of programs together. A use set is the set of
/// operation groups (operations with the same debug context) that use a variable; programs of one
/// group form a cluster if their variables have the same use sets. The maximum grows with the
/// number of programs in the profile.
pub const SETS_OF_CLUSTERS: Growing = Growing {
    least: 1 << 22,
    each: 64,
};
/// Maximum number of runs in which the code of all operation groups is stored. A run is a series of
/// neighbouring tiles with the same number of bytes of code. The maximum grows with the number of
/// runs in the code of all programs and compute sets of the profile.
pub const CODE_RUNS: Growing = Growing {
    least: 1 << 22,
    each: 16,
};
/// Maximum number of layers of a model. With more layers, the costs of all ranges of layers would
/// not fit into memory.
pub const LAYERS: usize = 2048;
/// Maximum number of times that one computation, such as assigning operations to layers or finding
/// the flow of data, looks at a use of a variable; it may look at one use many times. Real models
/// need about 10^6 looks.
pub const LOOKS: usize = 1 << 28;
/// Maximum size of the graph of the data flow between operations. An edge leads from one
/// operation to one or more others. The size is the number of operations of each distinct edge,
/// added up over all edges; it is about 10^5 for real models.
pub const FLOW: usize = 1 << 24;
/// Maximum number of distinct pairs of an operation group (operations with the same debug context)
/// that still has no layer, and a set of layers with which it shares a variable. The pairs help to
/// assign the group to layers. Real models have about 10^4 pairs.
pub const PAIRS: usize = 1 << 22;
/// Maximum total size of all distinct sets of layers. Such a set has the layers that a variable or
/// an operation belongs to; In and Out (what runs before and after the layers) count as layers
/// here. Real models have about 10^6 members in all sets.
pub const PLACES: usize = 1 << 24;

// The next constants limit the tables that hold the bytes of each layer.

/// Maximum number of entries that are stored for one tile, which then take 128 MB. Each entry
/// assigns the bytes of a variable or of code to a range of consecutive layers. Models of 10^7
/// variables have about 10^5 entries.
pub const ENTRIES: usize = 1 << 23;
/// Maximum number of cells in the memory table of one tile, which then takes 128 MB in each thread.
/// A cell has the bytes of one layer at one liveness step; only steps at which memory can reach a
/// peak are in the table. Large models have about 10^6 cells.
pub const CELLS: usize = 1 << 25;

// The next constants limit what a saved model may contain.

/// Maximum number of liveness steps of a saved model. Real models have about 10^5 steps. A few
/// bytes of a file can state any number of steps.
pub const STEPS: u64 = 1 << 22;
/// Maximum product of the number of liveness steps and the number of tiles of a saved model. The
/// product is about 10^8 in real models.
pub const STEPS_AND_TILES: u64 = 1 << 32;

// The next constants limit the sizes of earlier reports and of files that frameworks write.

/// Maximum size in bytes of an earlier report, which `--compare` names. A report of 1,000 layers
/// has a few megabytes.
pub const REPORT: u64 = 1 << 24;
/// Maximum size in bytes of `framework.json` or `app.json` beside the profile. Real files have a
/// few kilobytes.
pub const BESIDE: u64 = 1 << 20;
