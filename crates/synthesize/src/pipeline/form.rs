//! How the profile of a pipelined compilation is written, and what it has that
//! nothing in the compilation for one IPU tells.

use crate::random::topic;
use crate::settings::Settings;

/// How a profile is written, and what is planted in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileForm {
    /// Whether there is code that a prediction from one IPU cannot know, in a pipeline of
    /// several.
    pub planted: bool,
    /// Whether the variables are there.
    pub lowered: LoweredVariables,
    /// Replicas that the model was compiled for, at least 1.
    pub replicas: u32,
    /// Whether the tiles of all replicas are listed, one replica after the other;
    /// without it those of the first one. The target counts those of all.
    pub lists_replicas: bool,
    /// Adds an execution: two runs, in each of which every operation runs once on
    /// each of its IPUs, then everything is exchanged between neighbours. Each IPU
    /// counts its own cycles and waits for the others at an exchange.
    pub execution: bool,
}

impl ProfileForm {
    /// One replica with its variables, and nothing else.
    pub const PLAIN: Self = Self {
        planted: false,
        lowered: LoweredVariables::Listed,
        replicas: 1,
        lists_replicas: false,
        execution: false,
    };
}

/// The tables of variables that `autoReport.outputLoweredVars` left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoweredVariables {
    /// All rows are there.
    Listed,
    /// The option was false: tables without rows.
    Empty,
    /// The option was false: no tables.
    Missing,
}

/// Planted code of an IPU, by tile: always live, and no operation's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlantedTruth {
    /// Exchanges between IPUs: bytes of category `globalExchangeCode`.
    pub global_exchange: Vec<u64>,
    /// Host exchanges that each IPU repeats: bytes of category `hostExchangeCode`, beside what
    /// one IPU has.
    pub host_exchange: Vec<u64>,
    /// Code that takes tensors out of a stash of PopART: bytes of category
    /// `internalExchangeCode`, beside what one IPU has.
    pub restore: Vec<u64>,
}

/// Bytes of code on the first IPU, on each one between, and on the last one, and up to how many
/// more some tiles have.
type Planted = ([u64; 3], u64);

/// Small beside what a layer has, and different for each IPU.
const GLOBAL_EXCHANGE: Planted = ([640, 1120, 560], 96);
const HOST_EXCHANGE: Planted = ([192, 48, 128], 16);
const RESTORE: Planted = ([320, 256, 0], 48);

impl PlantedTruth {
    /// The code that a pipeline adds to an IPU. `place` is the number of the IPU and the number of
    /// IPUs; `has_code` and `has_restores` say whether there is code for exchange, and code that
    /// restores tensors.
    pub(super) fn new(
        settings: &Settings,
        place: (u32, u32),
        [has_code, has_restores]: [bool; 2],
    ) -> Self {
        let on = |what, code, is_there: bool| match is_there {
            true => on_tiles(settings, place, what, code),
            false => vec![0; settings.tiles as usize],
        };
        Self {
            global_exchange: on(0, GLOBAL_EXCHANGE, has_code),
            host_exchange: on(1, HOST_EXCHANGE, has_code),
            restore: on(2, RESTORE, has_restores),
        }
    }

    /// All of it on a tile.
    pub fn bytes(&self, tile: usize) -> u64 {
        self.global_exchange[tile] + self.host_exchange[tile] + self.restore[tile]
    }
}

fn on_tiles(settings: &Settings, (ipu, ipus): (u32, u32), what: u64, code: Planted) -> Vec<u64> {
    let ([first, middle, last], more) = code;
    let base = match ipu {
        _ if ipus == 1 => 0,
        0 => first,
        ipu if ipu + 1 == ipus => last,
        _ => middle,
    };
    let on_tile = |tile: u32| {
        let about = [topic::TILE, tile.into(), 50 + what, ipu.into()];
        match base {
            0 => 0,
            _ => base + 4 * settings.random.below(more / 4 + 1, about),
        }
    };
    (0..settings.tiles).map(on_tile).collect()
}
