//! Defines how the profile of a pipelined compilation is written, and the code in it that the
//! compilation for one IPU does not have.

use crate::overhead::category;
use crate::random::topic;
use crate::settings::Settings;

/// The form of a profile: the tables and replicas that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileForm {
    /// Whether the profile has the tables of variables, with rows or without.
    pub lowered: LoweredVariables,
    /// Number of replicas that the model was compiled for, at least 1.
    pub replicas: u32,
    /// Whether the profile lists the tiles of all replicas, one replica after the other, rather
    /// than those of the first. The target counts the tiles of all replicas in both cases.
    pub lists_replicas: bool,
    /// Adds an execution: two runs, in each of which every operation runs once on
    /// each of its IPUs, then everything is exchanged between neighbours. Each IPU
    /// counts its own cycles and waits for the others at an exchange.
    pub execution: bool,
}

impl ProfileForm {
    /// The form of one replica with its variables, and nothing else.
    pub const PLAIN: Self = Self {
        lowered: LoweredVariables::Listed,
        replicas: 1,
        lists_replicas: false,
        execution: false,
    };
}

/// The tables of variables that the option `autoReport.outputLoweredVars` left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoweredVariables {
    /// All rows are there.
    Listed,
    /// The option was false: tables without rows.
    Empty,
    /// The option was false: no tables.
    Missing,
}

/// Code that a pipeline adds to an IPU, which is always live and belongs to no operation: its
/// category, the kind of exchange in its name, its bytes on the first IPU, on each one between, and
/// on the last one, and the maximum number of further bytes on some tiles.
pub(super) type Planted = (usize, &'static str, [u64; 3], u64);

/// Code that is small beside that of a layer, and different for each IPU: code of exchanges between
/// IPUs, of host exchanges that each IPU repeats, and, last, of taking tensors out of a stash of
/// PopART.
pub(super) const PLANTED: [Planted; 3] = [
    (
        category::GLOBAL_EXCHANGE_CODE,
        "global",
        [640, 1120, 560],
        96,
    ),
    (category::HOST_EXCHANGE_CODE, "host", [192, 48, 128], 16),
    (
        category::INTERNAL_EXCHANGE_CODE,
        "internal",
        [320, 256, 0],
        48,
    ),
];

/// Returns the bytes of planted code on each tile of an IPU in a pipeline of this number of IPUs.
pub(super) fn planted_on_tiles(
    (category, _, [first, middle, last], more): Planted,
    settings: &Settings,
    (ipu, ipus): (u32, u32),
) -> Vec<u64> {
    let base = match ipu {
        _ if ipus == 1 => 0,
        0 => first,
        ipu if ipu + 1 == ipus => last,
        _ => middle,
    };
    let number = (50 + category::GLOBAL_EXCHANGE_CODE - category) as u64;
    let on_tile = |tile: u32| {
        let about = [topic::TILE, tile.into(), number, ipu.into()];
        match base {
            0 => 0,
            _ => base + 4 * settings.random.below(more / 4 + 1, about),
        }
    };
    (0..settings.tiles).map(on_tile).collect()
}
