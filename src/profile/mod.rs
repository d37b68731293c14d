//! Reads `profile.pop` into plain data.
//!
//! [`Profile::read`] opens the file read-only, checks the format version and the target, and then
//! scans the tables that the analysis needs, in rowid order. Rows of several tables are joined in
//! memory by their ids. A comment that calls a fact about the format "checked" means that it was
//! found to hold in a real profile.

mod cells;
mod compiled;
mod cycles;
mod database;
pub mod encoding;
mod ids;
mod liveness;
mod open;
mod programs;
mod recorded;
mod row_batch;
mod row_ranges;
mod target;
mod tile_bytes;
mod variable_lists;
mod variables;

pub(crate) use compiled::LIVE_BY_STEP;
pub use compiled::{
    BytesByName, CompiledProfile, Ipus, LiveByIpu, LiveOnTile, PipelineName, VariableSums,
};
pub use cycles::{Cycles, Executed};
pub(crate) use ids::Ids;
pub(crate) use liveness::MissedSteps;
pub use liveness::{LiveClasses, Step};
pub(crate) use open::companions;
pub use programs::{ComputeSet, Program, ProgramKind, Programs, VertexType};
pub(crate) use recorded::CATEGORIES;
pub use recorded::{CodeKind, Recorded, RecordedCategory, RecordedTile, Regions};
pub(crate) use target::TILES;
pub use target::{BuildInfo, ChosenOption, Outline, Target};
pub use tile_bytes::{TileBytes, TileRun};
pub use variable_lists::VariableLists;
pub use variables::{NEVER_LIVE, VariableLabel, VariableNames, Variables};

use crate::{
    message::{Result, Warning},
    progress::Progress,
};
use cells::{Cells, or_warn};
use database::Database;
use open::ProfileFile;
use std::path::Path;

/// All data that the analysis uses from the `profile.pop` of a model for one IPU.
#[derive(Debug)]
pub struct Profile {
    /// The machine that the model was compiled for: its tiles, IPUs and memory.
    pub target: Target,
    /// The program tree, with the compute set and the code bytes of each program.
    pub programs: Programs,
    /// The liveness steps (executions of programs), in the order of their ids.
    pub steps: Vec<Step>,
    /// The equivalence classes of variables, and the steps on which the variables of a class are
    /// live.
    pub classes: LiveClasses,
    /// One entry per equivalence class of variables. For a class that is live at nearly all steps,
    /// these are the few steps at which it is not live ([`MissedSteps`]). `None` for any other
    /// class, including classes that are always live.
    pub(crate) missed_steps: Vec<Option<MissedSteps>>,
    /// All lowered variables, each a piece of memory on one tile.
    pub variables: Variables,
    /// The lowered variables that each compute set uses. [`VariableLists::position`] finds the list
    /// of a compute set by its id.
    pub compute_set_variables: VariableLists,
    /// The lowered variables in each region set. A region set has the memory regions that an
    /// exchange or a host copy moves. [`VariableLists::position`] finds the list of a region set by
    /// its id ([`Program::regions`]).
    pub region_variables: VariableLists,
    /// The memory of each tile and of each category of variables as the compiler recorded it.
    pub recorded: Recorded,
    /// The executed cycles of each program, and the cycles that the compiler estimated.
    pub cycles: Cycles,
    /// The version of Poplar that compiled the model, and the time and options of the compilation.
    pub made: BuildInfo,
    /// Warnings about unusual content of the profile that did not prevent reading it.
    pub warnings: Vec<Warning>,
    /// How the bytes of live variables change at each liveness step, summed over all tiles, without
    /// always-live variables. Each entry is a step index and the change in bytes, which is negative
    /// if more bytes are freed than allocated. Step indices ascend. Empty if the profile lacks
    /// these changes. Only the module `witnesses` uses them, to check the other data of the
    /// profile.
    pub live_by_step: Vec<(u32, i64)>,
    /// Variables with a wrong row in the table `exchange_regions`, as ascending indices into
    /// [`Variables`]. A row lists byte ranges of one variable that a program moves. It is wrong if
    /// its last range ends beyond the variable, or if the row before has the same `id` and
    /// `var_id`.
    pub outside: Vec<u32>,
    /// Whether the profile has the table `memory_by_compute_set`, with the bytes of vertex state.
    pub has_vertex_memory: bool,
    /// Fetches names of lowered variables from the profile on demand, even after all other data of
    /// the profile are dropped.
    pub names: VariableNames,
}

impl Profile {
    /// Reads the `profile.pop` at `path`. Writes nothing, neither to the file nor beside it.
    ///
    /// # Errors
    /// [`FileError`](crate::message::FileError) names the table, column and row that could not be
    /// understood. A profile of several IPUs is refused, unless each IPU runs a replica of the
    /// whole model and the file lists the tiles of one replica only (docs/model.md, "The memory of
    /// a stage").
    pub fn read(path: &Path) -> Result<Self> {
        Self::read_with(path, &Progress::new())
    }

    /// Drops the lists of variables that programs use, the label of each variable, and the memory
    /// regions of tiles. [`Model::build`](crate::model::Model::build) calls this once it has used
    /// them, which frees a third of the memory of a large model.
    pub(crate) fn forget_users(&mut self) {
        self.compute_set_variables = VariableLists::default();
        self.region_variables = VariableLists::default();
        self.variables.label_of = Vec::new();
        for tile in &mut self.recorded.tiles {
            tile.regions = None;
        }
    }

    /// Returns the lowered variables that any of `programs` uses, as lists of indices into
    /// [`Variables`]. Each list belongs to a compute set or a region set. No list is returned
    /// twice, but a variable may be in several lists. `programs` holds indices into
    /// [`Programs::all`].
    pub(crate) fn variables_of(&self, programs: &[u32]) -> Vec<&[u32]> {
        let programs = programs.iter().map(|&own| &self.programs.all[own as usize]);
        let sets = programs.clone().filter_map(|own| self.programs.set_of(own));
        let regions = programs.flat_map(|own| own.regions.iter().copied());
        self.compute_set_variables
            .lists(sets.map(|set| set.id))
            .chain(self.region_variables.lists(regions))
            .collect()
    }

    /// Reads the `profile.pop` at `path`, and reports the number of rows read to `progress`.
    ///
    /// # Errors
    /// The same errors as [`Profile::read`].
    pub(crate) fn read_with(path: &Path, progress: &Progress) -> Result<Self> {
        let mut database = Database::open(path, progress)?;
        let one_replica = Target::take_one_replica(&mut database)?;
        database.target.check_single_ipu()?;
        let mut warnings: Vec<Warning> = database
            .version
            .warning()
            .into_iter()
            .chain(one_replica)
            .collect();
        let made = BuildInfo::read(&database, &mut warnings);
        let programs = Programs::read(&database)?;
        let cycles = Cycles::read(&database, &programs, &mut warnings);
        let steps = liveness::read_steps(&database, &programs)?;
        let step_ids: Vec<u64> = steps.iter().map(|step| step.id).collect();
        let (classes, class_ids) = LiveClasses::read(&database, &step_ids)?;
        let missed_steps = MissedSteps::of_classes(&classes, &steps, &programs);
        let persistent: Vec<bool> = (0u32..)
            .zip(&missed_steps)
            .map(|(class, missed)| classes.lasts(class) || missed.is_some())
            .collect();
        let variables = Variables::read(&database, &persistent, &class_ids)?;
        let (exchanged, compute_sets) = rayon::join(
            || variable_lists::read_regions(&database, &variables),
            || variable_lists::read_compute_sets(&database, &variables),
        );
        let (region_variables, outside) = exchanged?;
        let compute_set_variables = compute_sets?;
        let recorded = Recorded::read(&database)?;
        let live_by_step = compiled::live_by_step(&database, &step_ids);
        database.source.check_unchanged()?;
        Ok(Self {
            recorded,
            live_by_step: or_warn(live_by_step, "live bytes by step", &mut warnings),
            outside,
            has_vertex_memory: database.has_table(programs::VERTEX_MEMORY),
            warnings,
            cycles,
            made,
            names: VariableNames(database.source),
            target: database.target,
            programs,
            steps,
            classes,
            missed_steps,
            variables,
            compute_set_variables,
            region_variables,
        })
    }
}
