//! Writes `profile.pop` and `debug.cbor` of a planted model: a model whose layers, memory and
//! cycles are known, so that tests can compare the analysis with them.
//!
//! First `plan` decides, in memory, the operations, programs, steps, equivalence classes, and the
//! variables by *group* (an unlowered variable on all its tiles). Then the files are written row by
//! row: sizes and classes of the lowered variables are hashes of the seed, so that 10^7 of them
//! need only their ids in memory. The truth tables are summed up from the rows as they are written.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod author;
mod code;
mod contexts;
mod cycles;
mod debug_writer;
pub mod encoding;
mod graph_file;
mod groups;
mod liveness;
mod memory_tables;
mod model;
mod op_programs;
mod options;
mod overhead;
pub mod pipeline;
pub mod place_truth;
mod placed;
pub mod places;
mod plan;
pub mod planted;
mod profile_writer;
mod program_builder;
mod program_tables;
mod random;
mod recompiled;
mod schema;
mod settings;
mod sizes;
mod templates;
mod tensors;
mod tree;
mod variable_tables;
mod vertex_tables;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use anyhow::Context as _;
use clap::Parser as _;

pub use options::Options;
use pipeline::PipelineModel;
use place_truth::PlaceTruth;
use places::Places;
use plan::Plan;

/// A model whose files were written.
#[derive(Debug)]
pub struct Written(Plan);

impl Written {
    /// Returns the true memory of any set of places (what runs before the layers, each layer, what
    /// runs after them).
    pub fn places(&self) -> PlaceTruth {
        PlaceTruth::new(&self.0)
    }

    /// Returns the cycles of each place; `None` if the profile has no cycles.
    pub fn cycles(&self) -> Option<planted::Cycles> {
        planted::Cycles::of(&self.0)
    }

    /// Returns the pass of each operation that the framework made, by the id of its context:
    /// `forward`, `backward` or `update`.
    pub fn passes(&self) -> HashMap<u64, &'static str> {
        planted::passes(&self.0)
    }

    /// Returns the model for computing the true memory of any pipeline over several IPUs.
    pub fn pipeline(self) -> PipelineModel {
        PipelineModel::new(self.0)
    }
}

/// Writes both files into `folder`. `options` are as on the command line.
pub fn write<S: AsRef<OsStr>>(
    folder: &Path,
    options: impl IntoIterator<Item = S>,
) -> anyhow::Result<Written> {
    let mut arguments = vec!["synthesize".into(), "--out".into(), folder.into()];
    arguments.extend(options.into_iter().map(|option| option.as_ref().into()));
    generate(Options::try_parse_from::<_, OsString>(arguments)?)
}

/// Plans the model that `options` request and writes both files into its directory, replacing files
/// of these names.
pub fn generate(options: Options) -> anyhow::Result<Written> {
    let (settings, pipelined) = options.settle()?;
    anyhow::ensure!(
        settings.layers <= Places::MAX_LAYERS,
        "a model has at most {} layers, not {}",
        Places::MAX_LAYERS,
        settings.layers
    );
    let plan = plan::build(settings);
    let out = &plan.settings.out;
    std::fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let profile = out.join("profile.pop");
    if profile.exists() {
        std::fs::remove_file(&profile)
            .with_context(|| format!("cannot replace {}", profile.display()))?;
    }
    let debug = out.join("debug.cbor");
    debug_writer::write(&plan, &debug)
        .with_context(|| format!("cannot write {}", debug.display()))?;
    let Some((cuts, options, form)) = pipelined else {
        profile_writer::write(&plan, &profile)?;
        return Ok(Written(plan));
    };
    let last = plan.settings.layers + 1;
    if let Some(cut) = cuts.iter().find(|cut| !(1..=last).contains(*cut)) {
        anyhow::bail!("there is no cut before position {cut}: the last one is {last}");
    }
    let model = PipelineModel::new(plan);
    model.write_profile(&profile, &cuts, &options, &form)?;
    Ok(Written(model.plan))
}
