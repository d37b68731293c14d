//! One run of the tool: the only place where all rooms meet.

mod input;
mod sections;
mod split;

use crate::cli::Options;
use crate::memory::MemoryModel;
use crate::messages::Messages;
use crate::model::{Layering, Model};
use crate::profile::RecordedTile;
use crate::report::{Table, breakdown, diagnosis, printable, terminal};
use anyhow::Result;
use sections::Sections;
use std::io::Write;
use std::process::ExitCode;
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

/// The options do not go with each other or with the files.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct UsageError(String);

/// An error of usage.
fn usage(text: impl Into<String>) -> anyhow::Error {
    UsageError(text.into()).into()
}

/// Does what `options` ask for. Results go to `out`, all else to standard error.
///
/// # Errors
/// With the name of the file or option that is at fault; [`Exit::of`] has the
/// exit code.
pub fn run(options: &Options, out: &mut impl Write) -> Result<Exit> {
    let messages = Messages::new(options.quiet, options.verbose);
    let model = input::read(options, messages)?;
    let layering = Layering::new(&model.operations, &options.layers());
    describe(&model, &layering, messages);
    let memory = MemoryModel::new(&model, &layering);
    let tables = tables(options, &model, &layering, &memory)?;
    let diagnosis = diagnosis(options, &model, &memory);
    let count = tables.len() + diagnosis.len() + usize::from(options.solve);
    let mut sections = Sections::new(out, options.format.into(), count);
    for table in &tables {
        sections.table(table)?;
    }
    let mut exit = Exit::Done;
    if options.solve {
        if layering.is_empty() {
            return Err(no_layers(&model, options));
        }
        let report = split::split(options, &model, &layering, &memory, messages)?;
        sections.stages(&report)?;
        messages.summary(terminal::table(&report));
        messages.summary(terminal::verdict(&report));
        exit = match report.fits() {
            true => Exit::Done,
            false => Exit::DoesNotFit,
        };
    }
    for table in &diagnosis {
        sections.table(table)?;
    }
    if count == 0 && options.save_to_file.is_none() {
        messages.summary("nothing was asked for: --solve finds the split points, --help has more");
    }
    Ok(exit)
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
    for warning in &layering.warnings {
        messages.warning(printable(warning));
    }
}

/// The tables that were asked for, in their order.
fn tables(
    options: &Options,
    model: &Model,
    layering: &Layering,
    memory: &MemoryModel<'_>,
) -> Result<Vec<Table>> {
    let mut tables = Vec::new();
    if options.operation_breakdown {
        tables.push(breakdown::operations(model, layering, &memory.bodies()));
    }
    if options.layer_breakdown {
        let layers: Vec<_> = (0..layering.len()).map(|layer| layer..layer + 1).collect();
        tables.push(breakdown::layers(layering, &memory.stages(&layers)));
    }
    if options.memory_totals {
        let layers = 0..layering.len();
        let whole = memory.stages(std::slice::from_ref(&layers));
        let whole = whole.iter().map(|stage| stage.sums().total()).sum();
        tables.push(breakdown::totals(whole, &recorded_tiles(options, model)?));
    }
    if options.memory_affinity || options.interlayer_communication {
        let between = memory.between();
        let names = breakdown::layer_names(layering);
        if options.memory_affinity {
            let cells = between.affinity();
            tables.push(Table::matrix("memory-affinity", &names, &cells));
        }
        if options.interlayer_communication {
            let cells = between.communication();
            tables.push(Table::matrix("interlayer-communication", &names, &cells));
        }
    }
    Ok(tables)
}

/// How many tiles the totals show when none are named.
const FULLEST_TILES: usize = 10;

/// The tiles of `--tiles`, or the fullest, with what the compiler recorded.
fn recorded_tiles(options: &Options, model: &Model) -> Result<Vec<(u32, RecordedTile)>> {
    let recorded = &model.recorded.tiles;
    if recorded.is_empty() {
        anyhow::bail!("the profile has no table `memory_by_tile`, which --memory-totals shows");
    }
    let Some(wanted) = &options.tiles else {
        let mut all: Vec<_> = (0u32..).zip(recorded.iter().copied()).collect();
        all.sort_by_key(|&(_, tile)| std::cmp::Reverse(tile.total));
        all.truncate(FULLEST_TILES);
        return Ok(all);
    };
    let tile = |&tile: &u32| {
        let found = recorded
            .get(tile as usize)
            .map(|&recorded| (tile, recorded));
        let last = recorded.len() - 1;
        let unknown = || {
            usage(format!(
                "--tiles: there is no tile {tile}, the last is {last}"
            ))
        };
        found.ok_or_else(unknown)
    };
    wanted.0.iter().map(tile).collect()
}

fn diagnosis(options: &Options, model: &Model, memory: &MemoryModel<'_>) -> Vec<Table> {
    match &model.bottleneck {
        Some(bottleneck) if options.diagnose => diagnosis::tables(model, memory, bottleneck),
        _ => Vec::new(),
    }
}

/// How many names are shown to a user whose regex matched none.
const NAMES_SHOWN: usize = 10;

fn no_layers(model: &Model, options: &Options) -> anyhow::Error {
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
    usage(format!(
        "no operation matched the layer regex {}, so there are no layers to split between; \
         {seen}\nset --layer-name-regex to a regex whose capture group is the layer, such as \
         'layer(\\d+)'",
        options.layer_name_regex
    ))
}
