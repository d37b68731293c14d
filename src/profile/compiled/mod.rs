//! Reads a profile that was compiled for any number of IPUs (docs/model.md, "A compiled pipeline").
//!
//! Tiles are numbered across all IPUs: the IPU of a tile is its number divided by the tiles of one
//! IPU. No real profile of several IPUs was available, so each assumption is stated where it is
//! used, and sums are compared with the sums in the file. Data that contradict these sums are left
//! out with a warning; the totals of the tiles, on which the verdict rests, must be complete.

mod ipus;
mod live;
mod pipeline_names;
mod variable_sums;

pub use ipus::Ipus;
pub use live::LiveByIpu;
pub(super) use live::by_step as live_by_step;
pub(crate) use live::{Deltas, TABLE as LIVE_BY_STEP, joined};
pub use pipeline_names::PipelineName;
pub use variable_sums::{LiveOnTile, Named, VariableSums};

use super::cycles::{or_warn, read_cycles_by_ipu};
use super::database::Database;
use super::recorded::{Recorded, read_regions};
use super::{
    BuildInfo, FormatVersion, ProfileError, Programs, RecordedCategory, RecordedTile, Target,
};
use crate::message::Warning;
use crate::progress::Progress;
use crate::witnesses::{Contradiction, of_record};
use std::path::Path;

/// The memory of each IPU as a `profile.pop` recorded it.
#[derive(Debug)]
pub struct CompiledProfile {
    /// Report format that the file states.
    pub version: FormatVersion,
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
    /// Warnings about unusual content that could be read.
    pub warnings: Vec<Warning>,
    /// Statements of the file that contradict each other.
    pub contradictions: Vec<Contradiction>,
}

impl CompiledProfile {
    /// Reads the profile at `path`, and its programs if `with_programs`. Nothing is written,
    /// neither to the file nor beside it.
    ///
    /// # Errors
    /// [`ProfileError`] names the table, column and row that could not be understood, or says that
    /// the tiles do not make whole IPUs.
    pub fn read(path: &Path, with_programs: bool) -> Result<Self, ProfileError> {
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
    ) -> Result<Self, ProfileError> {
        let mut database = Database::open(path, progress)?;
        let version = FormatVersion::read(&database)?;
        database.version = version;
        let mut target = Target::read(&database)?;
        target.check_sizes()?;
        let ipus = Ipus::read(&database, &mut target)?;
        let (made, mut warnings) = BuildInfo::read(&database);
        warnings.extend(version.warnings());
        let recorded = Recorded::read(&database, &target)?;
        let regions = read_regions(&database, &target)?;
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
        let (live, of_live) = live::read(&database, ipus, &tiles, &steps)?;
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
        database.check_unchanged()?;
        Ok(Self {
            programs,
            version,
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
