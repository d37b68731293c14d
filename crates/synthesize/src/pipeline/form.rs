//! How the profile of a pipelined compilation is written, and what it has that
//! nothing in the compilation for one IPU tells.

use super::options::Schedule;
use crate::random::{Random, topic};

/// How a profile is written, and what is planted in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfileForm {
    /// Code that a prediction from one IPU cannot know.
    pub planted: PlantedCode,
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
        planted: PlantedCode::NONE,
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

/// Code of a pipeline that is no operation's: always live, by IPU. A pipeline of
/// one IPU has none of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlantedCode {
    /// Exchanges between IPUs, of category `globalExchangeCode`.
    pub global_exchange: PlantedBytes,
    /// Host exchanges that each IPU repeats, of category `hostExchangeCode`.
    pub host_exchange: PlantedBytes,
    /// Code that takes tensors out of the stash, of category
    /// `internalExchangeCode`: only with PopART's schedule, on IPUs with a
    /// stash.
    pub restore: PlantedBytes,
}

impl PlantedCode {
    /// None.
    pub const NONE: Self = Self {
        global_exchange: PlantedBytes::NONE,
        host_exchange: PlantedBytes::NONE,
        restore: PlantedBytes::NONE,
    };

    /// Small beside what a layer has, and different for each IPU.
    pub const SMALL: Self = Self {
        global_exchange: PlantedBytes::new([640, 1120, 560], 96),
        host_exchange: PlantedBytes::new([192, 48, 128], 16),
        restore: PlantedBytes::new([320, 256, 0], 48),
    };
}

/// Bytes on each tile of an IPU, by where it stands in the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlantedBytes {
    /// Of the first IPU, of each one between, and of the last one.
    by_place: [u64; 3],
    /// Some tiles have up to so many more, where there are any.
    varying: u64,
}

impl PlantedBytes {
    const NONE: Self = Self::new([0; 3], 0);

    const fn new(by_place: [u64; 3], varying: u64) -> Self {
        Self { by_place, varying }
    }

    fn on(&self, random: Random, place: Place, what: u64) -> Vec<u64> {
        let [first, middle, last] = self.by_place;
        let base = match place.ipu {
            _ if place.ipus == 1 => 0,
            0 => first,
            ipu if ipu + 1 == place.ipus => last,
            _ => middle,
        };
        let more = |tile: u32| {
            let about = [topic::TILE, tile.into(), 50 + what, place.ipu.into()];
            4 * random.below(self.varying / 4 + 1, about)
        };
        let tiles = 0..place.tiles;
        match base {
            0 => vec![0; place.tiles as usize],
            _ => tiles.map(|tile| base + more(tile)).collect(),
        }
    }
}

/// An IPU in its pipeline.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub ipu: u32,
    pub ipus: u32,
    pub tiles: u32,
}

/// Planted code of an IPU, by tile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlantedTruth {
    /// Bytes of category `globalExchangeCode`.
    pub global_exchange: Vec<u64>,
    /// Bytes of category `hostExchangeCode`, beside what one IPU has.
    pub host_exchange: Vec<u64>,
    /// Bytes of category `internalExchangeCode`, beside what one IPU has.
    pub restore: Vec<u64>,
}

impl PlantedTruth {
    /// The planted code of an IPU whose largest ring has so many slots.
    pub(super) fn new(
        code: &PlantedCode,
        random: Random,
        place: Place,
        (schedule, slots): (Schedule, u32),
    ) -> Self {
        let restores = schedule == Schedule::Popart && slots > 0;
        let restore = match restores {
            true => code.restore,
            false => PlantedBytes::NONE,
        };
        Self {
            global_exchange: code.global_exchange.on(random, place, 0),
            host_exchange: code.host_exchange.on(random, place, 1),
            restore: restore.on(random, place, 2),
        }
    }

    /// All of it on a tile.
    pub fn bytes(&self, tile: usize) -> u64 {
        self.global_exchange[tile] + self.host_exchange[tile] + self.restore[tile]
    }
}
