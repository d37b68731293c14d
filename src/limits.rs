//! Bounds on the memory and time that input files may demand.
//!
//! A few bytes of a file can demand a table, a list or a loop of any size. Each bound is far above
//! real models, and a file that exceeds one is refused with an error that says so. A bound that
//! large models could reach grows with the file. A test compares them with the table in
//! SECURITY.md.

/// A bound that grows with the number of items in the file: the larger of [`least`](Self::least)
/// and [`each`](Self::each) times that number.
#[derive(Debug)]
pub struct Growing {
    /// The bound for a file with few items.
    pub least: usize,
    /// The bound for each item of the file. Each constant of this type says what an item is.
    pub each: usize,
}

impl Growing {
    /// Returns the bound for a file with `count` items of the kind that the constant names.
    pub fn of(self, count: usize) -> usize {
        self.least.max(count.saturating_mul(self.each))
    }
}

// --- Bounds on `profile.pop` ---

/// Maximum number of tiles of all IPUs together. 256 IPUs of 1,472 tiles have 376,832.
pub const TILES: u64 = 1 << 20;
/// Maximum number of tiles of one IPU. The largest IPU has 1,472 tiles, and every computation takes
/// memory for each tile.
pub const TILES_OF_IPU: u32 = 1 << 12;
/// Maximum memory of one tile, in bytes.
pub const BYTES_OF_TILE: u64 = u32::MAX as u64;
/// Maximum memory of all tiles together, in bytes.
pub const DEVICE_BYTES: u64 = TILES * BYTES_OF_TILE;
/// Maximum number of entries in the variable lists of all compute sets together; an item is a
/// lowered variable of the profile. A few bytes of a compute set can list all variables; in real
/// models a variable is in a handful of compute sets.
pub const MEMBERS: Growing = Growing {
    least: 1 << 24,
    each: 256,
};
/// Maximum number of debug contexts of one lowered variable. Real variables have a handful.
pub const CONTEXTS_OF_VARIABLE: usize = 1 << 12;

// --- Bounds on `debug.cbor` ---

/// Maximum nesting depth of the CBOR items in `debug.cbor`. The decoder takes stack for each level.
pub const NESTED_ITEMS: usize = 256;
/// Maximum number of ancestors of a debug context. Real contexts have some ten; the chain of
/// ancestors is walked for each program.
pub const CONTEXTS_ABOVE: usize = 1024;

// --- Bounds on the model that is built from both files ---

/// Maximum number of visits to programs while the program tree is walked; an item is a program of
/// the profile. A program is visited once for each path of calls to it, and nested calls can unfold
/// without end. Real models have some 10^5 visits.
pub const VISITS: Growing = Growing {
    least: 1 << 18,
    each: 64,
};
/// Maximum number of stored costs of ranges of layers: the number of ranges of layers times the
/// number of stages that may follow a range. Splits into more stages are not searched.
pub const RANGE_COSTS: usize = 1 << 25;

/// Maximum nesting depth of calls between programs.
pub const NESTED_CALLS: usize = 64;
/// Maximum number of executions of one program in nested loops. A larger number, as in a damaged
/// file, is replaced by this maximum, which is small enough that the sum over all visits, times any
/// number of cycles, fits 128 bits.
pub const EXECUTIONS: u64 = 1 << 36;
/// Maximum number of cycles of all programs together, over all runs. A tile takes 79 years for 2^62
/// cycles. Twice this maximum, as in a stage that runs its forward pass again, still fits 64 bits.
pub const CYCLES: u64 = 1 << 62;
/// Maximum length in bytes of the names and inputs of all operations together. A debug context
/// contributes its texts once for each path of calls that leads to it.
pub const TEXT: usize = 1 << 28;
/// Maximum number of different use sets; an item is a variable of the profile. A use set has all
/// operation groups that use a variable; many variables share one. Real models have some 10^4.
pub const SETS: Growing = Growing {
    least: 1 << 20,
    each: 4,
};
/// Maximum number of pairs of a variable and an operation group that uses the variable; an item is
/// a variable of the profile.
pub const USES: Growing = Growing {
    least: 1 << 27,
    each: 1 << 10,
};
/// Maximum number of pairs of a cluster (programs of an operation group that use the same use sets)
/// and one of its use sets (groups that use a variable); an item is a program of the profile.
pub const SETS_OF_CLUSTERS: Growing = Growing {
    least: 1 << 22,
    each: 64,
};
/// Maximum number of runs (neighbouring tiles with equally many bytes) in the code of all operation
/// groups together; an item is a run in the code of the profile. Each program belongs to one group,
/// so groups have more runs than the profile only if many programs refer to the same rows.
pub const CODE_RUNS: Growing = Growing {
    least: 1 << 22,
    each: 16,
};
/// Maximum number of layers of a model. The costs of ranges of more would not fit into memory.
pub const LAYERS: usize = 2048;
/// Maximum number of pairs of a use set and an operation group in the set that are visited to
/// assign operations to layers, or to compute the data flow. Real models have some 10^6.
pub const LOOKS: usize = 1 << 28;
/// Maximum number of ends of all different edges in the data flow between operations: an edge has
/// one end where it starts, and one for each operation to which it leads. Real models have some
/// 10^5.
pub const FLOW: usize = 1 << 24;
/// Maximum number of different pairs of an operation group without a layer, and the layers of a use
/// set that contains the group. Real models have some 10^4.
pub const PAIRS: usize = 1 << 22;
/// Maximum size of all different sets of layers together, where each set has the layers that a
/// variable or operation belongs to; In and Out (what runs before and after the layers) are members
/// like layers. Real models have some 10^6.
pub const PLACES: usize = 1 << 24;

// --- Bounds on the tables of memory by layer ---

/// Maximum number of entries on one tile, each of which assigns the bytes of a variable or of code
/// to a range of layers: 128 MB. Models of 10^7 variables have some 10^5.
pub const ENTRIES: usize = 1 << 23;
/// Maximum number of cells in the table of a tile's bytes by layer and by step at which they can
/// reach a peak: 128 MB for each thread. Large models have some 10^6.
pub const CELLS: usize = 1 << 25;

// --- Bounds on saved models ---

/// Maximum number of liveness steps of a saved model. Real models have some 10^5. A file can state
/// any number of steps without a byte for each.
pub const STEPS: u64 = 1 << 22;
/// Maximum product of the number of liveness steps and the number of tiles of a saved model. Real
/// models have some 10^8.
pub const STEPS_AND_TILES: u64 = 1 << 32;

// --- Bounds on other files ---

/// Maximum size in bytes of a report for `--compare`. A report of 1,000 layers has
/// some megabytes.
pub const REPORT: u64 = 1 << 24;
/// Maximum size in bytes of `framework.json` or `app.json` beside the profile. Real files have some
/// kilobytes.
pub const BESIDE: u64 = 1 << 20;
