//! Reads a profile that was compiled for any number of IPUs (docs/model.md, "A compiled pipeline").
//!
//! Tiles are numbered across all IPUs: the IPU of a tile is its number divided by the tiles of one
//! IPU. No real profile of several IPUs was available, so each assumption is stated where it is
//! used, and sums are compared with the sums in the file. Data that contradict these sums are left
//! out with a warning; the totals of the tiles, on which the verdict rests, must be complete.

mod ipus;
mod live;
mod variable_sums;

pub use ipus::Ipus;
pub use live::LiveByIpu;
pub(super) use live::by_step as live_by_step;
pub(crate) use live::{Deltas, TABLE as LIVE_BY_STEP, summed_by_step};
pub use variable_sums::{BytesByName, LiveOnTile, PipelineName, VariableSums};

use super::cycles::read_cycles_by_ipu;
use super::database::Database;
use super::error::or_warn;
use super::recorded::Recorded;
use super::variables::TABLE as VARIABLES;
use super::{BuildInfo, Programs, RecordedCategory, RecordedTile, Regions, Target};
use crate::message::{Result, Warning};
use crate::progress::Progress;
use std::path::Path;

/// The memory of each IPU of a compilation, as its `profile.pop` recorded it.
#[derive(Debug)]
pub struct CompiledProfile {
    /// The machine that the model was compiled for, with the numbers of tiles and IPUs that the
    /// file lists.
    pub target: Target,
    /// The IPUs and replicas that the file lists.
    pub ipus: Ipus,
    /// The recorded memory of each tile (`memory_by_tile`), numbered across all IPUs.
    pub tiles: Vec<RecordedTile>,
    /// The bytes of each tile in its memory regions; `None` if the profile lacks these columns.
    pub regions: Option<Vec<Regions>>,
    /// The recorded memory of each category of lowered variables (`memory_by_category`).
    pub categories: Vec<RecordedCategory>,
    /// Bytes of not-always-live variables on each IPU at each step; `None` if the profile lacks
    /// them, or if they contradict other tables.
    pub live: Option<LiveByIpu>,
    /// Sums over the lowered variables; `None` if the profile has no lowered variables.
    pub variables: Option<VariableSums>,
    /// Executed cycles of each IPU over all runs; `None` if the model was not executed.
    pub cycles: Option<Vec<u64>>,
    /// The program tree; `None` unless it was requested and could be read.
    pub programs: Option<Programs>,
    /// The version of Poplar that compiled the model, the time, and the options.
    pub made: BuildInfo,
    /// Warnings about unusual content of the file, which could be read in spite of it.
    pub warnings: Vec<Warning>,
}

impl CompiledProfile {
    /// Reads the profile at `path`, and its program tree if `with_programs` is set. Nothing is
    /// written, neither to the file nor beside it.
    ///
    /// # Errors
    /// [`FileError`](crate::message::FileError) names the table, column and row that could not be understood, or says that the
    /// tiles do not make whole IPUs.
    pub fn read(path: &Path, with_programs: bool) -> Result<Self> {
        Self::read_with(path, with_programs, &Progress::new())
    }

    /// Reads the profile at `path`, and reports the number of rows read to `progress`.
    ///
    /// # Errors
    /// As [`CompiledProfile::read`].
    pub(crate) fn read_with(path: &Path, with_programs: bool, progress: &Progress) -> Result<Self> {
        let database = Database::open(path, progress)?;
        let mut target = Target::read(&database)?;
        target.check_sizes()?;
        let ipus = Ipus::read(&database, &mut target)?;
        let mut warnings = Vec::new();
        let made = BuildInfo::read(&database, &mut warnings);
        warnings.extend(database.version.warning());
        let (recorded, regions) = Recorded::read(&database, &target)?;
        let Recorded { tiles, categories } = recorded;
        let steps = if live::is_there(&database) || database.has_rows(VARIABLES)? {
            live::read_steps(&database)?
        } else {
            Vec::new()
        };
        let cycles = read_cycles_by_ipu(&database, ipus.count);
        let cycles = or_warn(cycles, "executed cycles", &mut warnings);
        let live = live::read(&database, ipus, &tiles, &steps, &mut warnings)?;
        let variables = variable_sums::read(&database, ipus, &tiles, &steps)?;
        let programs = with_programs.then(|| Programs::read(&database, &target));
        let programs = or_warn(programs.transpose(), "layers on IPUs", &mut warnings);
        database.source.check_unchanged()?;
        Ok(Self {
            programs,
            target,
            ipus,
            tiles,
            regions,
            categories,
            live,
            variables,
            cycles,
            made,
            warnings,
        })
    }

    /// Returns the bytes, including the gaps between variables, by which `tile` exceeds its memory;
    /// 0 if it does not, or if the profile lacks memory regions. Tiles are numbered across all
    /// IPUs.
    pub fn overflowed(&self, tile: usize) -> u64 {
        let regions = self.regions.as_ref();
        regions.map_or(0, |regions| regions[tile].overflowed)
    }
}
