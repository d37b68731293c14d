//! One run of the tool: the only place where all rooms meet.

mod compare;
mod emit;
mod export;
mod input;
mod results;
mod search;
mod sections;

pub use results::Results;

use crate::cli::{Accounting, Options};
use crate::memory::MemoryModel;
use crate::messages::Messages;
use crate::model::{Layering, Model, Placement};
use crate::profile::RecordedTile;
use crate::report::{Table, breakdown, diagnosis, printable, sweep, terminal};
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
    let messages = Messages::new(options.quiet, options.verbose, options.units.into());
    emit::check(options)?;
    export::check(options)?;
    let earlier = compare::read(options)?;
    let input = input::read(options, messages)?;
    let model = &input.model;
    let layering = Layering::new(&model.operations, &options.layers());
    check_layers(&layering, options)?;
    describe(model, &layering, messages);
    let placement = Placement::new(model, &layering, options.layerless.into());
    let memory = match options.memory_model {
        Accounting::Classic => MemoryModel::classic(model, &layering),
        Accounting::Full => MemoryModel::full(model, &layering, &placement),
    };
    if memory.is_beyond_bounds() {
        anyhow::bail!(
            "{}: its variables are shared by more different groups of layers than any real model \
             has; the profile is damaged, or --layer-name-regex finds too many layers",
            printable(&options.profile.to_string_lossy())
        );
    }
    let tables = tables(options, model, &layering, &placement, &memory)?;
    let diagnosis = diagnosis(options, model, &memory);
    let found = match options.wants_search() {
        true => {
            if layering.is_empty() {
                return Err(no_layers(model, options));
            }
            let search = search::Search {
                options,
                model,
                layering: &layering,
                placement: &placement,
                memory: &memory,
                messages,
            };
            Some(search.run()?)
        }
        false => None,
    };
    let count = tables.len() + diagnosis.len() + usize::from(options.solve) + options.forms().len();
    let count = count + usize::from(options.sweep);
    let count = count + export::to_standard_output(options) + compare::sections(options);
    let mut sections = Sections::new(out, options.format.into(), count);
    for table in &tables {
        sections.table(table)?;
    }
    let mut exit = match &found {
        Some(found) => answer(options, found, &mut sections, messages)?,
        None => Exit::Done,
    };
    for table in &diagnosis {
        sections.table(table)?;
    }
    if options.wants_report() {
        let report = export::Exported {
            options,
            input: &input,
            layering: &layering,
            memory: &memory,
            placement: &placement,
            found: found.as_ref(),
        };
        let later = export::write(&report, &mut sections, messages)?;
        if let Some(earlier) = &earlier
            && compare::write(earlier, &later, &mut sections, messages)?
        {
            exit = Exit::DoesNotFit;
        }
    }
    cover(&memory, messages);
    if count == 0 && !options.wants_report() && options.save_to_file.is_none() {
        messages.summary("nothing was asked for: --solve finds the split points, --help has more");
    }
    Ok(exit)
}

/// Prints what the search found; the exit code says whether it fits.
fn answer(
    options: &Options,
    found: &search::Found,
    sections: &mut Sections<'_, impl Write>,
    messages: Messages,
) -> Result<Exit> {
    let facts = &found.facts;
    if let Some(sweep) = &facts.sweep {
        sections.table(&sweep::table(sweep))?;
    }
    let Some(split) = &found.split else {
        return Ok(Exit::Done);
    };
    let emitted = emit::emit(options, split)?;
    if options.solve {
        sections.stages(split)?;
    }
    for (name, text) in &emitted {
        sections.text(name, text.as_bytes())?;
    }
    messages.summary(terminal::table(split, messages.look(), None));
    messages.summary(terminal::verdict(split, messages.look()));
    if let Some(judged) = &facts.judged {
        messages.summary(terminal::beside(judged, split, messages.look()));
    }
    if let Some(refusal) = &facts.refusal {
        messages.summary(terminal::refusal(refusal, split, messages.look()));
    }
    Ok(match split.fits() || !options.wants_verdict() {
        true => Exit::Done,
        false => Exit::DoesNotFit,
    })
}

/// With more layers, ranges of layers do not fit into memory.
const MOST_LAYERS: usize = 2048;

fn check_layers(layering: &Layering, options: &Options) -> Result<()> {
    let layers = layering.len() - 1;
    if layers <= MOST_LAYERS {
        return Ok(());
    }
    let names = layering.names[1..].iter().take(3);
    let names: Vec<String> = names.map(|name| shortened(name)).collect();
    Err(usage(format!(
        "the layer regex {} finds {layers} layers ({}, ...), and {MOST_LAYERS} are the most; set \
         --layer-name-regex to a regex whose capture group is the same for all operations of a \
         layer",
        options.layer_name_regex,
        names.join(", ")
    )))
}

/// The most characters of a name that an error shows.
const SHOWN: usize = 100;

/// A name in an error.
fn shortened(name: &str) -> String {
    let mut shown: String = name.chars().take(SHOWN).collect();
    if shown.len() < name.len() {
        shown.push_str("...");
    }
    printable(&shown)
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

/// Below so many per cent the operations explain too little.
const ENOUGH: i128 = 95;

/// Says how much of the fullest tile is explained, and by what.
fn cover(memory: &MemoryModel<'_>, messages: Messages) {
    let Some(coverage) = memory.coverage().filter(|coverage| coverage.recorded > 0) else {
        return;
    };
    let line = terminal::coverage(&coverage, messages.look());
    if coverage.rest() * 100 > i128::from(coverage.recorded) * (100 - ENOUGH) {
        messages.warning(format_args!("{line}; --diagnose shows what is missing"));
    } else {
        messages.summary(line);
    }
}

/// The tables that were asked for, in their order.
fn tables(
    options: &Options,
    model: &Model,
    layering: &Layering,
    placement: &Placement,
    memory: &MemoryModel<'_>,
) -> Result<Vec<Table>> {
    let mut tables = Vec::new();
    if options.operation_breakdown {
        let bodies = memory.bodies();
        tables.push(match options.memory_model {
            Accounting::Classic => breakdown::operations(model, layering, &bodies),
            Accounting::Full => breakdown::homes(model, layering, placement, &bodies),
        });
    }
    if options.layer_breakdown {
        tables.push(breakdown::layers(layering, &memory.single_layers()));
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
        let name = format!("  {}", shortened(&operation.name));
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
