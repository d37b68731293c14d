//! Writes `profile.pop` and `debug.cbor` of a planted model.
//!
//! Decided first, in memory (`plan`): operations, programs, steps, classes and
//! variables by *group* (an unlowered variable over its tiles). Written then,
//! row by row: sizes and classes of the lowered variables are hashes of the
//! seed, so that 10^7 of them need no more than their ids in memory. The truth
//! tables are summed from the rows as they are written.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod author;
mod code;
mod context_fields;
mod contexts;
mod cycles;
mod debug_writer;
#[path = "../../../src/profile/encoding/encode.rs"]
mod encoding;
mod execution;
mod features;
mod graph_file;
mod groups;
mod liveness;
mod memory_tables;
mod model;
mod op_programs;
pub mod operation_truth;
mod options;
mod outlining_contexts;
mod overhead;
pub mod pipeline;
pub mod place_truth;
mod placed;
pub mod places;
mod plan;
mod planted;
mod profile_writer;
mod program_builder;
mod program_tables;
mod random;
mod schema;
mod settings;
mod sizes;
mod templates;
mod tensor_contexts;
mod tensors;
mod tree;
mod variable_tables;
mod vertex_tables;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Parser as _;

pub use options::Options;
use options::Pipelined;
use pipeline::PipelineModel;
use place_truth::PlaceTruth;
use places::Places;
use plan::Plan;
use settings::Settings;

/// Writes both files into `folder`, with options as on the command line.
pub fn write<S: AsRef<OsStr>>(
    folder: &Path,
    options: impl IntoIterator<Item = S>,
) -> anyhow::Result<()> {
    generate(parsed(folder, options)?)
}

/// Writes both files; gives the true memory of any set of places.
pub fn write_with_truth<S: AsRef<OsStr>>(
    folder: &Path,
    options: impl IntoIterator<Item = S>,
) -> anyhow::Result<PlaceTruth> {
    let (settings, _) = parsed(folder, options)?.settle()?;
    Ok(PlaceTruth::new(&write_plan(settings)?))
}

/// Writes both files; gives the true memory of any pipeline over several IPUs.
pub fn write_with_pipeline<S: AsRef<OsStr>>(
    folder: &Path,
    options: impl IntoIterator<Item = S>,
) -> anyhow::Result<PipelineModel> {
    let (settings, _) = parsed(folder, options)?.settle()?;
    Ok(PipelineModel::new(write_plan(settings)?))
}

fn parsed<S: AsRef<OsStr>>(
    folder: &Path,
    options: impl IntoIterator<Item = S>,
) -> anyhow::Result<Options> {
    let mut arguments = vec!["synthesize".into(), "--out".into(), folder.into()];
    arguments.extend(options.into_iter().map(|option| option.as_ref().into()));
    Ok(Options::try_parse_from::<_, OsString>(arguments)?)
}

/// Plans the model that is asked for and writes both files into its directory,
/// replacing what has their names there.
pub fn generate(options: Options) -> anyhow::Result<()> {
    match options.settle()? {
        (settings, None) => write_plan(settings).map(drop),
        (settings, Some(pipelined)) => write_pipeline(settings, &pipelined),
    }
}

fn write_plan(settings: Settings) -> anyhow::Result<Plan> {
    let (plan, profile) = begin(settings)?;
    profile_writer::write(&plan, &profile)?;
    if let Some(path) = &plan.settings.planted {
        planted::write(&plan, path)?;
    }
    Ok(plan)
}

fn write_pipeline(settings: Settings, (cuts, options, form): &Pipelined) -> anyhow::Result<()> {
    let last = settings.layers + 1;
    for cut in cuts {
        anyhow::ensure!(
            (1..=last).contains(cut),
            "there is no cut before position {cut}: the last one is {last}"
        );
    }
    let (plan, profile) = begin(settings)?;
    let model = PipelineModel::new(plan);
    model.write_profile(&profile, cuts, options, form).map(drop)
}

/// Plans the model, makes the folder, and writes its `debug.cbor`. Gives the path of the profile,
/// where there is no file then.
fn begin(settings: Settings) -> anyhow::Result<(Plan, PathBuf)> {
    let plan = plan::build(settings);
    let layers = plan.settings.layers;
    anyhow::ensure!(
        layers <= Places::MAX_LAYERS,
        "a model has at most {} layers, not {layers}",
        Places::MAX_LAYERS
    );
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
    Ok((plan, profile))
}
