//! Reads a profile that was compiled for any number of IPUs (docs/model.md, "A compiled pipeline").
//!
//! Tiles are numbered across all IPUs: the IPU of a tile is its number divided by the tiles of one
//! IPU. No real profile of several IPUs was available, so each assumption is stated where it is
//! used, and sums are compared with the sums in the file. Data that contradict these sums are left
//! out with a warning; the totals of the tiles, on which the verdict rests, must be complete.

mod live;
mod variable_sums;

pub use live::LiveByIpu;
pub(super) use live::by_step as live_by_step;
pub(crate) use live::{Deltas, TABLE as LIVE_BY_STEP, joined};
pub use variable_sums::{LiveOnTile, Named, PipelineName, VariableSums};

use super::cycles::{or_warn, read_cycles_by_ipu};
use super::database::Database;
use super::error::{cell, no_row};
use super::recorded::{Recorded, TILES, listed_tiles};
use super::{BuildInfo, Programs, RecordedCategory, RecordedTile, Target};
use crate::message::{FileError, PROFILE_AGAIN, Warning};
use crate::progress::Progress;
use crate::witnesses::{Contradiction, of_record};
use std::ops::Range;
use std::path::Path;

/// The memory of each IPU as a `profile.pop` recorded it.
#[derive(Debug)]
pub struct CompiledProfile {
    /// Machine, with the numbers of tiles and IPUs that the file lists.
    pub target: Target,
    /// The IPUs that the file lists.
    pub ipus: Ipus,
    /// By tile, numbered across all IPUs: recorded memory (`memory_by_tile`).
    pub tiles: Vec<RecordedTile>,
    /// By tile: bytes beyond the memory of the tile, including the gaps between variables.
    pub overflowed: Vec<u64>,
    /// By category of lowered variables: recorded memory (`memory_by_category`).
    pub categories: Vec<RecordedCategory>,
    /// Bytes of not-always-live variables by step; `None` if the profile lacks them or contradicts
    /// itself.
    pub live: Option<LiveByIpu>,
    /// Sums over the lowered variables; `None` if the profile has none.
    pub variables: Option<VariableSums>,
    /// By IPU: executed cycles over all runs; `None` without execution.
    pub cycles: Option<Vec<u64>>,
    /// The program tree, if it was requested and could be read.
    pub programs: Option<Programs>,
    /// Origin of the file.
    pub made: BuildInfo,
    /// Warnings about unusual content of `profile.pop`. The file could be read in spite of it.
    pub warnings: Vec<Warning>,
    /// Statements of the file that contradict each other.
    pub contradictions: Vec<Contradiction>,
}

impl CompiledProfile {
    /// Reads the profile at `path`, and its programs if `with_programs`. Nothing is written,
    /// neither to the file nor beside it.
    ///
    /// # Errors
    /// [`FileError`] names the table, column and row that could not be understood, or says that
    /// the tiles do not make whole IPUs.
    pub fn read(path: &Path, with_programs: bool) -> Result<Self, FileError> {
        Self::read_with(path, with_programs, &Progress::new())
    }

    /// Reads the profile and reports the rows read to `progress`.
    ///
    /// # Errors
    /// As [`CompiledProfile::read`].
    pub(crate) fn read_with(
        path: &Path,
        with_programs: bool,
        progress: &Progress,
    ) -> Result<Self, FileError> {
        let database = Database::open(path, progress)?;
        let mut target = Target::read(&database)?;
        target.check_sizes()?;
        let ipus = Ipus::read(&database, &mut target)?;
        let mut warnings = Vec::new();
        let made = BuildInfo::read(&database, &mut warnings);
        warnings.extend(database.version.warnings());
        let (recorded, regions) = Recorded::read(&database, &target)?;
        let mut contradictions = of_record(&recorded, regions.as_deref(), &target);
        let Recorded { tiles, categories } = recorded;
        let overflowed = regions.map_or_else(
            || vec![0; tiles.len()],
            |regions| regions.iter().map(|region| region.overflowed).collect(),
        );
        let steps = if live::is_there(&database) || variable_sums::are_there(&database)? {
            live::read_steps(&database)?
        } else {
            Vec::new()
        };
        let mut of_live = Vec::new();
        let live = live::read(&database, ipus, (&tiles, &steps), &mut of_live)?;
        let fullest = (0..ipus.count).map(|ipu| ipus.fullest_tile(&tiles, ipu));
        let chosen: Vec<u32> = fullest.collect();
        let of_tiles = variable_sums::read(&database, ipus, &tiles, &chosen, &steps)?;
        let (variables, of_variables) = of_tiles;
        contradictions.extend(of_variables);
        let cycles = read_cycles_by_ipu(&database, ipus.count);
        let cycles = or_warn(cycles, "executed cycles", &mut warnings);
        warnings.extend(of_live);
        let programs = if with_programs {
            let read = Programs::read(&database, &target).map(Some);
            or_warn(read, "layers on IPUs", &mut warnings)
        } else {
            None
        };
        database.source.check_unchanged()?;
        Ok(Self {
            programs,
            target,
            ipus,
            tiles,
            overflowed,
            categories,
            live,
            variables,
            cycles,
            made,
            warnings,
            contradictions,
        })
    }
}

/// The IPUs that a profile lists. Tiles are numbered across all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipus {
    /// Number of listed IPUs.
    pub count: u32,
    /// Tiles of each IPU.
    pub tiles_per_ipu: u32,
    /// Replicas that the model was compiled for; all run the same program.
    pub replicas: u32,
    /// Replicas that the file lists, one after the other. IPUs 0 to `count / listed_replicas` (end
    /// exclusive) belong to the first one (assumed).
    pub listed_replicas: u32,
}

const TABLE: &str = "target_info";

impl Ipus {
    /// Derives the listed IPUs from `memory_by_tile`, and sets `num_tiles` and `num_ipus` of
    /// `target` to the listed ones.
    pub(super) fn read(database: &Database, target: &mut Target) -> Result<Self, FileError> {
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
        let of_one_replica = all
            .is_multiple_of(replicas * of_ipu)
            .then(|| all / replicas);
        let is_known = listed == all || Some(listed) == of_one_replica;
        if !is_known || !listed.is_multiple_of(of_ipu) {
            return Err(FileError::new(format!(
                "table `memory_by_tile` lists {listed} tiles, but `target_info` has {all} (IPUs of \
                 {of_ipu} tiles each, {replicas} replicas); {PROFILE_AGAIN}"
            )));
        }
        let ipus = listed / of_ipu;
        let stated = target.num_ipus;
        if ![1, replicas]
            .iter()
            .any(|by| stated == ipus * by || stated * by == ipus)
        {
            let problem = format!("{all} tiles at {of_ipu} for each IPU do not make {stated} IPUs");
            return Err(cell(TABLE, "num_ipus", stated, problem));
        }
        let found = Self {
            count: ipus as u32,
            tiles_per_ipu: target.tiles_per_ipu,
            replicas: u32::try_from(replicas).unwrap_or(u32::MAX),
            listed_replicas: listed_replicas(database, target, ipus)?,
        };
        target.num_tiles = listed as u32;
        target.num_ipus = ipus;
        Ok(found)
    }

    /// Tiles of `ipu`, numbered across all IPUs (end exclusive).
    pub fn tiles(&self, ipu: u32) -> Range<usize> {
        let tiles = self.tiles_per_ipu as usize;
        let first = ipu as usize * tiles;
        first..first + tiles
    }

    /// IPU of `tile`.
    pub fn of_tile(&self, tile: u32) -> u32 {
        tile / self.tiles_per_ipu
    }

    /// Fullest tile of `ipu`, numbered across all IPUs; the first of equally full ones.
    pub fn fullest_tile(&self, tiles: &[RecordedTile], ipu: u32) -> u32 {
        let range = self.tiles(ipu).rev();
        let fullest = range.max_by_key(|&tile| tiles[tile].total);
        fullest.unwrap_or(0) as u32
    }
}

/// Number of listed replicas, derived from `ipus_per_replica`; 1 if that column is missing.
fn listed_replicas(database: &Database, target: &Target, ipus: u64) -> Result<u32, FileError> {
    let mut of_replica = None;
    if target.num_replicas > 1 {
        let stated = database.rows_if_any(TABLE, &["ipus_per_replica"], |row| row.optional(0))?;
        of_replica = stated.into_iter().flatten().next_back();
    }
    let of_replica = of_replica.unwrap_or(ipus);
    let listed = ipus.checked_div(of_replica);
    let listed = listed.filter(|listed| listed * of_replica == ipus);
    let is_known = |listed: &u64| [1, target.num_replicas.max(1)].contains(listed);
    let listed = listed.filter(is_known).ok_or_else(|| {
        let problem = format!(
            "{ipus} IPUs are listed, of {} replicas",
            target.num_replicas
        );
        cell(TABLE, "ipus_per_replica", of_replica, problem)
    })?;
    Ok(u32::try_from(listed).unwrap_or(1))
}
