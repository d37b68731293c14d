//! `profile.pop` as plain data.
//!
//! [`Profile::read`] opens the file strictly read-only, looks at the format
//! version and the target first, and then goes over each table that the
//! analysis needs once, in the order in which SQLite keeps it. Rows are joined
//! here, in memory, by the ids of the tables. What is said to be
//! checked was checked on a real profile.

mod build_info;
mod cells;
mod compiled;
mod cycles;
mod database;
pub mod encoding;
mod error;
mod ids;
mod labels;
mod liveness;
mod members;
mod names;
mod open;
mod outline;
mod program_types;
mod programs;
mod read_programs;
mod recorded;
mod schema;
mod target;
mod tile_bytes;
mod variable_lists;
mod variables;
mod vertices;

pub use build_info::{BuildInfo, ChosenOption};
pub use compiled::{
    CompiledProfile, Ipus, LiveByIpu, LiveOnTile, Named, PipelineName, VariableSums,
};
pub(crate) use compiled::{Deltas, LIVE_BY_STEP, joined};
use cycles::or_warn;
pub use cycles::{Cycles, Executed};
pub use error::ProfileError;
pub use ids::Ids;
pub use labels::VariableLabel;
pub use liveness::{LiveClasses, Step};
pub use names::VariableNames;
pub(crate) use open::companions;
pub use outline::Outline;
pub use programs::{ComputeSet, Program, ProgramKind, Programs, VertexType};
pub(crate) use recorded::{CATEGORIES, TILES};
pub use recorded::{Recorded, RecordedCategory, RecordedTile, Regions};
pub use target::{FormatVersion, Target};
pub use tile_bytes::{TileBytes, TileRun};
pub use variable_lists::VariableLists;
pub use variables::{NEVER_LIVE, Variables};

use crate::message::Warning;
use crate::progress::Progress;
use database::Database;
use std::path::Path;

/// Everything of a `profile.pop` that the analysis uses.
#[derive(Debug)]
pub struct Profile {
    /// The report format that the file states.
    pub version: FormatVersion,
    /// The machine that the model was compiled for.
    pub target: Target,
    /// The program tree, with what each program runs and how much code it is.
    pub programs: Programs,
    /// The liveness steps, in order.
    pub steps: Vec<Step>,
    /// On which steps each equivalence class is live.
    pub classes: LiveClasses,
    /// Every lowered variable.
    pub variables: Variables,
    /// The lowered variables of each compute set.
    pub compute_set_variables: VariableLists,
    /// The lowered variables of each exchange target (region set).
    pub region_variables: VariableLists,
    /// The compiler's own record of memory.
    pub recorded: Recorded,
    /// Executed and estimated cycles.
    pub cycles: Cycles,
    /// How the file came about.
    pub made: BuildInfo,
    /// Warnings about unusual content that could be read.
    pub warnings: Vec<Warning>,
    /// Statements that the rest is compared with.
    pub statements: Statements,
    /// Where the names of variables can be fetched from, also when the rest is
    /// gone.
    pub names: VariableNames,
}

/// Statements of a profile that only [`witnesses`](crate::witnesses) need.
#[derive(Debug, Default)]
pub struct Statements {
    /// By tile its regions; `None` where the profile does not say.
    pub regions: Option<Vec<Regions>>,
    /// By step, ascending: bytes beside always-live variables on all tiles, more than at the step
    /// before; empty where the profile does not say.
    pub live_by_step: Vec<(u32, i64)>,
    /// The variables of exchange regions that do not lie within them, ascending.
    pub outside: Vec<u32>,
    /// Is there a table of the state of vertices?
    pub has_vertex_memory: bool,
}

impl Profile {
    /// Reads the profile at `path`. Nothing is written, to it or beside it.
    ///
    /// # Errors
    /// [`ProfileError`] names the table, column and row that could not be
    /// understood; profiles for several IPUs or replicas are refused
    /// (docs/model.md, "The memory of a stage").
    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        Self::read_with(path, &Progress::new())
    }

    /// Gives back the room of what tells the variables of compute sets and regions, and
    /// the labels of variables: of large models a third of all.
    pub(crate) fn forget_users(&mut self) {
        self.compute_set_variables = VariableLists::default();
        self.region_variables = VariableLists::default();
        self.variables.label_of = Vec::new();
    }

    /// Reads the profile, counting rows.
    ///
    /// # Errors
    /// As [`Profile::read`].
    pub(crate) fn read_with(path: &Path, progress: &Progress) -> Result<Self, ProfileError> {
        let mut database = Database::open(path, progress)?;
        let version = FormatVersion::read(&database)?;
        database.version = version;
        let mut target = Target::read(&database)?;
        let one_replica = target.take_one_replica(&database)?;
        target.check_single_ipu()?;
        let (made, of_made) = BuildInfo::read(&database);
        let programs = Programs::read(&database, &target)?;
        let (cycles, of_cycles) = Cycles::read(&database, &programs, &target);
        let steps = liveness::read_steps(&database, &programs)?;
        let (classes, class_ids) = LiveClasses::read(&database, &steps)?;
        let of_classes = (&classes, &class_ids);
        let variables = Variables::read(&database, &target, of_classes)?;
        let (regions, compute_sets) = rayon::join(
            || members::read_regions(&database, &variables),
            || members::read_compute_sets(&database, &variables),
        );
        let (region_variables, outside) = regions?;
        let compute_set_variables = compute_sets?;
        let recorded = Recorded::read(&database, &target)?;
        let mut of_steps = Vec::new();
        let live_by_step = compiled::live_by_step(&database, &steps).map(Some);
        let live_by_step = or_warn(live_by_step, "live bytes by step", &mut of_steps);
        let statements = Statements {
            regions: recorded::read_regions(&database, &target)?,
            live_by_step: live_by_step.unwrap_or_default(),
            outside,
            has_vertex_memory: database.has_table(vertices::MEMORY),
        };
        database.check_unchanged()?;
        Ok(Self {
            recorded,
            statements,
            warnings: [
                version.warnings(),
                one_replica.into_iter().collect(),
                of_made,
                of_cycles,
                of_steps,
            ]
            .concat(),
            cycles,
            made,
            names: VariableNames {
                source: database.source().clone(),
                version,
            },
            version,
            target,
            programs,
            steps,
            classes,
            variables,
            compute_set_variables,
            region_variables,
        })
    }
}
