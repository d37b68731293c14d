//! Reads a profile that was compiled for any number of IPUs (docs/model.md, "A compiled pipeline").
//!
//! Tiles are numbered across all IPUs: the number of a tile divided by the number of tiles per IPU
//! is the index of its IPU. No real profile of several IPUs was available. So comments state each
//! assumption where it is used, and computed sums are compared with the sums in the file. Data that
//! contradict these sums are left out with a warning. Only the recorded totals of the tiles must be
//! complete, since they decide whether the compilation fits.

mod live;
mod variable_sums;

pub use live::LiveByIpu;
pub(crate) use live::TABLE as LIVE_BY_STEP;
pub(super) use live::by_step as live_by_step;
pub use variable_sums::{BytesByName, LiveOnTile, PipelineName, VariableSums};

use super::{
    BuildInfo, Database, Programs, Recorded, RecordedTile, TILES, Target,
    cells::{cell, no_row},
    cycles::read_cycles_by_ipu,
    or_warn,
    target::listed_tiles,
    variables::TABLE as VARIABLES,
};
use crate::{
    message::{PROFILE_AGAIN, Result, Warning, unusable},
    progress::Progress,
};
use std::{ops::Range, path::Path};

/// The memory of each IPU of a compiled model, as recorded in its `profile.pop`.
#[derive(Debug)]
pub struct CompiledProfile {
    /// The machine that the model was compiled for. Its numbers of tiles and IPUs only count those
    /// that the file lists.
    pub target: Target,
    /// The IPUs and replicas that the profile lists, which may be fewer than the model was compiled
    /// for.
    pub ipus: Ipus,
    /// The memory of each tile and of each category of variables as the compiler recorded it. Tiles
    /// are numbered across all IPUs.
    pub recorded: Recorded,
    /// Bytes of not-always-live variables on each IPU at each liveness step (execution of a
    /// program); `None` if the profile lacks these bytes, or if they contradict other tables.
    pub live: Option<LiveByIpu>,
    /// The number and the bytes of the lowered variables, by IPU and by tile; `None` if the profile
    /// has no lowered variables.
    pub variables: Option<VariableSums>,
    /// One entry per IPU: its executed cycles, summed over all runs; `None` if the model was not
    /// executed.
    pub cycles: Option<Vec<u64>>,
    /// The program tree; `None` unless it was requested and could be read.
    pub programs: Option<Programs>,
    /// The version of Poplar that compiled the model, and the time and options of the compilation.
    pub made: BuildInfo,
    /// Warnings about unusual content of the profile that did not prevent reading it.
    pub warnings: Vec<Warning>,
}

impl CompiledProfile {
    /// Reads the profile at `path`, and its program tree if `with_programs` is set. Writes nothing,
    /// neither to the file nor beside it.
    ///
    /// # Errors
    /// [`FileError`](crate::message::FileError) names the table, column and row that could not be
    /// understood, or says that the tiles do not make up a whole number of IPUs.
    pub fn read(path: &Path, with_programs: bool) -> Result<Self> {
        Self::read_with(path, with_programs, &Progress::new())
    }

    /// Reads the profile at `path`, and reports the number of rows read to `progress`.
    ///
    /// # Errors
    /// The same errors as [`CompiledProfile::read`].
    pub(crate) fn read_with(path: &Path, with_programs: bool, progress: &Progress) -> Result<Self> {
        let mut database = Database::open(path, progress)?;
        database.target.check_sizes()?;
        let ipus = Ipus::read(&mut database)?;
        let mut warnings = Vec::new();
        let made = BuildInfo::read(&database, &mut warnings);
        warnings.extend(database.version.warning());
        let recorded = Recorded::read(&database)?;
        let steps = if live::is_there(&database) || database.has_rows(VARIABLES)? {
            live::read_steps(&database)?
        } else {
            Vec::new()
        };
        let cycles = read_cycles_by_ipu(&database, ipus.count);
        let cycles = or_warn(cycles, "executed cycles", &mut warnings);
        let live = live::read(&database, ipus, &recorded.tiles, &steps, &mut warnings)?;
        let variables = variable_sums::read(&database, ipus, &recorded.tiles, &steps)?;
        let programs = with_programs.then(|| Programs::read(&database));
        let programs = or_warn(programs.transpose(), "layers on IPUs", &mut warnings);
        database.source.check_unchanged()?;
        Ok(Self {
            programs,
            target: database.target,
            ipus,
            recorded,
            live,
            variables,
            cycles,
            made,
            warnings,
        })
    }

    /// Returns the number of bytes, including gaps between variables, by which the content of
    /// `tile` exceeds the memory of a tile; 0 if the content fits, or if the profile lacks memory
    /// regions. `tile` is numbered across all IPUs.
    pub fn overflowed(&self, tile: usize) -> u64 {
        self.recorded.tiles[tile]
            .regions
            .map_or(0, |regions| regions.overflowed)
    }
}

/// The IPUs that a profile lists. Tiles are numbered across all these IPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipus {
    /// Number of IPUs that the profile lists.
    pub count: u32,
    /// Number of tiles of each IPU.
    pub tiles_per_ipu: u32,
    /// Number of replicas that the model was compiled for; all replicas run the same program.
    pub replicas: u32,
    /// Number of replicas whose IPUs the profile lists: 1 or all replicas. It is assumed that the
    /// first `count / listed_replicas` IPUs belong to the first replica, the next ones to the
    /// second, and so on.
    pub listed_replicas: u32,
}

const TABLE: &str = "target_info";

impl Ipus {
    /// Derives the listed IPUs from the rows of `memory_by_tile`, and sets `num_tiles` and
    /// `num_ipus` of the target of `database` to the numbers of listed tiles and IPUs.
    ///
    /// # Errors
    /// If the listed tiles do not make whole IPUs, or contradict the numbers in the target.
    fn read(database: &mut Database) -> Result<Self> {
        let target = &database.target;
        let listed = listed_tiles(database)?;
        if listed == 0 {
            return Err(no_row(TILES));
        }
        let of_ipu = u64::from(target.tiles_per_ipu);
        let all = u64::from(target.num_tiles);
        if !all.is_multiple_of(of_ipu) {
            let problem =
                format!("{all} tiles are not a whole number of IPUs of {of_ipu} tiles each");
            return Err(cell(TABLE, "num_tiles", all, problem));
        }
        let replicas = target.num_replicas.max(1);
        // Returns `other` divided by `one`; both are numbers of tiles, or both numbers of IPUs. If
        // `one` counts a single replica and `other` all replicas, the quotient is the number of
        // replicas; if both count the same, it is 1. Any other quotient gives `None`.
        let factor = |one: u64, other| {
            let mut factors = [1, replicas].into_iter();
            factors.find(|&factor| one.checked_mul(factor) == Some(other))
        };
        if factor(listed, all).is_none() || !listed.is_multiple_of(of_ipu) {
            return unusable(format!(
                "table `memory_by_tile` lists {listed} tiles, but `target_info` has {all} (IPUs of \
                 {of_ipu} tiles each, {replicas} replicas); {PROFILE_AGAIN}"
            ));
        }
        let ipus = listed / of_ipu;
        let stated = target.num_ipus;
        if factor(ipus, stated).or(factor(stated, ipus)).is_none() {
            return Err(cell(
                TABLE,
                "num_ipus",
                stated,
                format!("{all} tiles at {of_ipu} for each IPU do not make {stated} IPUs"),
            ));
        }
        let mut of_replica = ipus;
        if replicas > 1 {
            of_replica = database
                .rows_if_any(TABLE, &["ipus_per_replica"], |row| row.optional(0))?
                .pop()
                .flatten()
                .unwrap_or(ipus);
        }
        let Some(listed_replicas) = factor(of_replica, ipus) else {
            let problem = format!("{ipus} IPUs are listed, of {replicas} replicas");
            return Err(cell(TABLE, "ipus_per_replica", of_replica, problem));
        };
        let target = &mut database.target;
        target.num_tiles = listed as u32;
        target.num_ipus = ipus;
        Ok(Self {
            count: ipus as u32,
            tiles_per_ipu: target.tiles_per_ipu,
            replicas: u32::try_from(replicas).unwrap_or(u32::MAX),
            listed_replicas: listed_replicas as u32,
        })
    }

    /// Returns the tiles of `ipu` as a range of tile numbers (end exclusive). Tiles are numbered
    /// across all IPUs.
    pub fn tiles(&self, ipu: u32) -> Range<usize> {
        let tiles = self.tiles_per_ipu as usize;
        let first = ipu as usize * tiles;
        first..first + tiles
    }

    /// Returns the IPU on which `tile` lies; tiles are numbered across all IPUs.
    pub fn of_tile(&self, tile: u32) -> u32 {
        tile / self.tiles_per_ipu
    }

    /// Returns the tile of `ipu` with the largest recorded total; of several such tiles, the first
    /// one. `tiles` holds the recorded memory of all tiles. Tiles are numbered across all IPUs.
    pub fn fullest_tile(&self, tiles: &[RecordedTile], ipu: u32) -> u32 {
        self.tiles(ipu)
            .rev()
            .max_by_key(|&tile| tiles[tile].total)
            .unwrap_or(0) as u32
    }
}
