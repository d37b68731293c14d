//! One run of the tool: the only place where all rooms meet.

use crate::cli::Options;
use crate::debug_info::DebugInfo;
use crate::memory::{MemoryModel, RangeCosts};
use crate::messages::Messages;
use crate::model::{Layering, Model};
use crate::profile::Profile;
use crate::report::{Layer, Memory, Report, Stage, json, layer_name, printable, terminal};
use crate::solve::{Plan, Problem, solve};
use anyhow::{Context, Result};
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use thiserror::Error;

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done; with `--solve`, the model fits.
    Done = 0,
    /// The model does not fit.
    DoesNotFit = 1,
    /// The command line asks for what cannot be.
    Usage = 2,
    /// A file could not be read or understood.
    Unreadable = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

impl Exit {
    /// The code for an error: those of usage are told apart by their type.
    pub fn of(error: &anyhow::Error) -> Self {
        match error.downcast_ref::<UsageError>() {
            Some(_) => Exit::Usage,
            None => Exit::Unreadable,
        }
    }
}

/// The options do not go with the files.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct UsageError(String);

/// Does what `options` ask for. Results go to `out`, all else to standard error.
///
/// # Errors
/// With the name of the file or option that is at fault; [`Exit::of`] has the
/// exit code.
pub fn run(options: &Options, out: &mut impl Write) -> Result<Exit> {
    let messages = Messages::new(options.quiet, options.verbose);
    let model = read_model(options, messages)?;
    let layering = Layering::new(&model.operations, &options.layers());
    describe(&model, &layering, messages);
    if !options.solve {
        messages.summary("nothing was asked for: --solve finds the split points");
        return Ok(Exit::Done);
    }
    if layering.is_empty() {
        return Err(no_layers(&model, options).into());
    }
    let report = split(options, &model, &layering, messages)?;
    json::write_stages(&report, out)?;
    messages.summary(terminal::table(&report));
    messages.summary(terminal::verdict(&report));
    match report.fits() {
        true => Ok(Exit::Done),
        false => Ok(Exit::DoesNotFit),
    }
}

/// Reads both files, one beside the other.
fn read_model(options: &Options, messages: Messages) -> Result<Model> {
    let start = Instant::now();
    let profile_path = &options.profile;
    let (profile, debug_info) = rayon::join(
        || Profile::read(profile_path).with_context(|| Shown(profile_path).to_string()),
        || read_debug_info(options, messages),
    );
    let (profile, debug_info) = (profile?, debug_info?);
    messages.detail(format_args!(
        "read {} variables and {} contexts in {:.2?}",
        profile.variables.len(),
        debug_info.len(),
        start.elapsed()
    ));
    let model = Model::build(profile, &debug_info, false)
        .with_context(|| Shown(profile_path).to_string())?;
    for warning in &model.warnings {
        messages.warning(format_args!("{}: {warning}", Shown(profile_path)));
    }
    messages.detail(format_args!("model after {:.2?}", start.elapsed()));
    Ok(model)
}

fn read_debug_info(options: &Options, messages: Messages) -> Result<DebugInfo> {
    let path = debug_path(options)?;
    let debug_info = DebugInfo::read(&path).with_context(|| Shown(&path).to_string())?;
    for warning in debug_info.warnings() {
        messages.warning(format_args!("{}: {warning}", Shown(&path)));
    }
    Ok(debug_info)
}

/// The second argument, or where Poplar writes the file.
fn debug_path(options: &Options) -> Result<PathBuf> {
    if let Some(path) = &options.debug {
        return Ok(path.clone());
    }
    let folder = options.profile.parent().unwrap_or(Path::new(""));
    let places = [
        folder.join("debug.cbor"),
        folder.join("..").join("debug.cbor"),
    ];
    let found = places.iter().find(|place| place.exists()).cloned();
    found.ok_or_else(|| {
        anyhow::anyhow!(
            "no debug.cbor stands beside {} or one folder above; give its path as the second \
             argument",
            Shown(&options.profile)
        )
    })
}

/// Says how well the regexes fit.
fn describe(model: &Model, layering: &Layering, messages: Messages) {
    let layered = layering.layers.iter().filter(|&&layer| layer > 0).count();
    messages.info(format_args!(
        "{} operations, {layered} of them in {} layers, {} steps, {} tiles",
        model.operations.len(),
        layering.len() - 1,
        model.steps(),
        model.target.num_tiles
    ));
    for warning in layering.warnings.iter().filter(|_| !layering.is_empty()) {
        messages.warning(printable(warning));
    }
}

/// How many names are shown to a user whose regex matched none.
const NAMES_SHOWN: usize = 10;

fn no_layers(model: &Model, options: &Options) -> UsageError {
    let mut names: Vec<String> = Vec::new();
    for operation in &model.operations {
        let name = format!("  {}", printable(&operation.name));
        let is_named = !operation.is_tensor && !operation.name.starts_with("Anonymous");
        if is_named && !names.contains(&name) && names.len() < NAMES_SHOWN {
            names.push(name);
        }
    }
    let seen = match names.is_empty() {
        true => "the model has no operations with a name".to_string(),
        false => format!("some names in this model:\n{}", names.join("\n")),
    };
    UsageError(format!(
        "no operation matched the layer regex {}, so there are no layers to split between; \
         {seen}\nset --layer-name-regex to a regex whose capture group is the layer, such as \
         'layer(\\d+)'",
        options.layer_name_regex
    ))
}

/// Finds the best split, whether it fits or not.
fn split(
    options: &Options,
    model: &Model,
    layering: &Layering,
    messages: Messages,
) -> Result<Report> {
    let start = Instant::now();
    let memory = MemoryModel::new(model, layering);
    let limit = options.mem_per_tile.unwrap_or(model.target.bytes_per_tile);
    let cut_bytes = memory.between().cut_bytes();
    let costs = memory.range_costs(limit);
    messages.detail(format_args!("range costs in {:.2?}", start.elapsed()));
    let plan = best_plan(&memory, costs, &cut_bytes, options.num_ipus, limit)?;
    messages.detail(format_args!("solved after {:.2?}", start.elapsed()));
    let names = &layering.names;
    let stages = memory.stages(plan.stages());
    let described = plan.stages().iter().zip(&stages);
    let stages: Vec<Stage> = described
        .map(|(range, memory)| Stage::new(names, range, memory))
        .collect();
    let mut report = Report {
        limit,
        stages,
        too_large: Vec::new(),
    };
    if !report.fits() {
        report.too_large = too_large(&memory, names, limit);
    }
    Ok(report)
}

/// The best plan within the limit; without one, the best plan at all.
fn best_plan(
    memory: &MemoryModel<'_>,
    mut costs: RangeCosts,
    cut_bytes: &[u64],
    max_stages: usize,
    limit: u64,
) -> Result<Plan> {
    let mut limit = limit;
    loop {
        let problem = Problem {
            costs: &costs,
            cut_bytes,
            max_stages,
        };
        if let Some(solution) = solve(&problem)? {
            return Ok(solution.plan);
        }
        // With no limit, all layers in one stage are a plan.
        limit = limit.saturating_mul(2);
        costs = memory.range_costs(limit);
    }
}

fn too_large(memory: &MemoryModel<'_>, names: &[String], limit: u64) -> Vec<Layer> {
    let ranges: Vec<_> = (0..names.len()).map(|layer| layer..layer + 1).collect();
    let layers = ranges.iter().zip(memory.stages(&ranges));
    layers
        .filter(|(_, stage)| stage.max_tile_bytes() > limit)
        .map(|(range, stage)| Layer {
            name: layer_name(names, range.start),
            mem: Memory::of(&stage),
            max_tile: stage.max_tile(),
        })
        .collect()
}

/// A path in a message.
struct Shown<'a>(&'a Path);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.0.to_string_lossy()))
    }
}
