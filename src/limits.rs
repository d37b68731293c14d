//! Bounds on the memory and time that input files may demand.
//!
//! A few bytes of a file can demand a table, a list or a loop of any size. Each bound is far above
//! real models, and a file beyond it is refused with an error that says so. Where large models need
//! more, the bound grows with the file. A test compares the table in SECURITY.md with them.

/// A bound that grows with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growing {
    /// Allowed in any file.
    pub least: usize,
    /// Allowed for each item of the file.
    pub each: usize,
}

impl Growing {
    /// Bound for a file with `count` items.
    pub fn of(self, count: usize) -> usize {
        self.least.max(count.saturating_mul(self.each))
    }
}

// --- profile.pop ---

/// Tiles of all IPUs: 256 IPUs of 1,472 tiles have 376,832.
pub const TILES: u64 = 1 << 20;
/// Tiles of an IPU. The largest has 1,472, and every computation takes memory for each.
pub const TILES_OF_IPU: u32 = 1 << 12;
/// Bytes of a tile.
pub const BYTES_OF_TILE: u64 = u32::MAX as u64;
/// Bytes of all tiles.
pub const DEVICE_BYTES: u64 = TILES * BYTES_OF_TILE;
/// Variables of all compute sets together, for each variable. A few bytes can name all variables in
/// every row; in real models a variable is in a handful of compute sets.
pub const MEMBERS: Growing = Growing {
    least: 1 << 24,
    each: 256,
};
/// Contexts of one variable; real variables have a handful.
pub const CONTEXTS_OF_VARIABLE: usize = 1 << 12;

// --- debug.cbor ---

/// Maximum nesting depth of CBOR items; each level takes stack.
pub const NESTED_ITEMS: usize = 256;
/// Ancestors of a context. Real contexts have some ten; chains are walked for each program.
pub const CONTEXTS_ABOVE: usize = 1024;

// --- The model ---

/// Visits of programs, for each program: nested calls can unfold without end. Real models have some
/// 10^5.
pub const VISITS: Growing = Growing {
    least: 1 << 18,
    each: 64,
};
/// Maximum number of stored range costs: ranges of layers times numbers of following stages. Splits
/// into more stages are not searched.
pub const RANGE_COSTS: usize = 1 << 25;

/// Nesting depth of calls.
pub const NESTED_CALLS: usize = 64;
/// Executions of a program in nested loops; more are capped, as in a damaged file. Small enough
/// that sums over all visits, times any cycles, fit 128 bits.
pub const EXECUTIONS: u64 = 1 << 36;
/// Maximum cycles of all programs together, over all runs: 2^62 cycles take a tile 79 years. Twice
/// that, where a stage runs its forward pass again, still fits 64 bits.
pub const CYCLES: u64 = 1 << 62;
/// Bytes of the names and inputs of all operations together. A context contributes once for each
/// call path.
pub const TEXT: usize = 1 << 28;
/// Different sets of operation groups that use variables, for each variable. Real models have some
/// 10^4.
pub const SETS: Growing = Growing {
    least: 1 << 20,
    each: 4,
};
/// Uses of variables by operation groups, for each variable.
pub const USES: Growing = Growing {
    least: 1 << 27,
    each: 1 << 10,
};
/// Use sets of the program clusters of all operation groups together, for each program.
pub const SETS_OF_CLUSTERS: Growing = Growing {
    least: 1 << 22,
    each: 64,
};
/// Runs of tiles in the code of all operation groups together, for each run in the profile. Each
/// program belongs to one group, so there are more only if many programs refer to few rows.
pub const CODE_RUNS: Growing = Growing {
    least: 1 << 22,
    each: 16,
};
/// Most layers of a model. The ranges of more layers would not fit into memory.
pub const LAYERS: usize = 2048;
/// Uses of variables by operation groups that the placement visits; real models have some 10^6.
pub const LOOKS: usize = 1 << 28;
/// Ends of all edges of the data flow; real models have some 10^5.
pub const FLOW: usize = 1 << 24;
/// Pairs of an operation group without a layer and a place of a variable that it uses; real models
/// have some 10^4.
pub const PAIRS: usize = 1 << 22;
/// Places of all sets of places together; real models have some 10^6.
pub const PLACES: usize = 1 << 24;

// --- Memory ---

/// Entries of variables, and of code, into ranges of layers on one tile: 128 MB. Models of 10^7
/// variables have some 10^5.
pub const ENTRIES: usize = 1 << 23;
/// Layers times steps that can hold a peak, on one tile: 128 MB for each thread. Large models have
/// some 10^6.
pub const CELLS: usize = 1 << 25;

// --- Saved files ---

/// Liveness steps; real models have some 10^5. A file can state any number without a byte for each.
pub const STEPS: u64 = 1 << 22;
/// Liveness steps times tiles; real models have some 10^8.
pub const STEPS_AND_TILES: u64 = 1 << 32;

// --- Other files ---

/// Bytes of a report for `--compare` or `--against`. A report of 1,000 layers has some megabytes.
pub const REPORT: u64 = 1 << 24;
/// Bytes of a JSON file beside the profile. Real files have some kilobytes.
pub const BESIDE: u64 = 1 << 20;
