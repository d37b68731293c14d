//! Makes the requested tables of the model, prints all results of a run in a fixed order, and
//! chooses the exit code.

use super::{Exit, Messages, Options, export, input::read_bounded, messages, stdout::Sections};
use crate::{
    analysis::Layers,
    limits,
    memory::MemoryModel,
    message::{displayed, usage},
    model::Model,
    profile::RecordedTile,
    report::compare::{Comparison, read as read_report},
    report::emit,
    report::{
        self, Form, Format, PlanFacts, Report, ScreenPart, Split, Table, plan_table,
        stages_as_json, sweep_table, terminal,
    },
};
use anyhow::{Context, Result};
use std::{
    io::{self, Write},
    path::Path,
};

pub struct Outputs<'a> {
    pub options: &'a Options,
    pub messages: Messages,
    /// The requested tables of the model, such as the table of `--operation-breakdown`. With
    /// `--fit`, these are the tables of the compilation.
    pub tables: Vec<Table>,
    /// The tables of `--diagnose`, which compares computed with recorded memory; empty without this
    /// option.
    pub diagnosis: Vec<Table>,
    pub report: Report,
    /// The earlier report that `--compare` names, with which the new report is compared; `None`
    /// without `--compare`.
    pub earlier: Option<Report>,
}

/// Reads the report at `path` that `--compare` names. Errors name `--compare` and the path.
pub fn read_earlier(path: &Path) -> Result<Report> {
    let context = || format!("--compare {}", displayed(path));
    let bytes = read_bounded(path, limits::REPORT, "report", "--export-json");
    read_report(&bytes.with_context(context)?).with_context(context)
}

impl Outputs<'_> {
    /// Prints all results: tables and configurations to `out`, summaries and messages to standard
    /// error. Returns the exit code:
    /// - 3 if the files contradict themselves so much that it is unknown whether the model fits
    /// - 1 if a result says that the model does not fit, or no longer fits
    /// - 0 otherwise
    pub fn print(&self, out: &mut impl Write) -> Result<Exit> {
        let look = messages::look(self.messages.look.units, &io::stdout());
        let mut sections = Sections::new(out, self.options.results.format, look, self.count());
        if self.report.fit.is_some() {
            self.print_part(ScreenPart::Verdict);
        }
        sections.tables(&self.tables)?;
        let mut fits = self.print_search(&mut sections)?;
        sections.tables(&self.diagnosis)?;
        export::write(self.options, &self.report, &mut sections, self.messages)?;
        if self.options.results.explain {
            self.print_part(ScreenPart::Explanation);
        }
        if let Some(fit) = &self.report.fit {
            sections.flush()?;
            self.print_rest(true);
            fits = fit.fits;
        } else {
            fits &= self.compare(&mut sections)?;
            self.print_coverage();
        }
        sections.finish()?;
        Ok(if !self.report.has_verdict() {
            Exit::Unreadable
        } else if fits {
            Exit::Done
        } else {
            Exit::DoesNotFit
        })
    }

    /// Returns the tables that `--solve` prints: the table of the split and, in TSV or CSV, also
    /// the table of the layers. Returns `None` without `--solve`, or if `--solve` prints the stages
    /// as JSON.
    fn solved_tables(&self) -> Option<Vec<Table>> {
        let results = &self.options.results;
        (results.solve && !matches!(results.format, Format::Auto | Format::Json))
            .then(|| self.report.tables(results.format))
    }

    /// Returns the number of results that the command prints on standard output. If there are
    /// several results, a line with the name of the result precedes each result.
    fn count(&self) -> usize {
        let results = &self.options.results;
        let solved = self
            .solved_tables()
            .map_or(results.solve.into(), |tables| tables.len());
        let search = usize::from(results.sweep) + usize::from(results.plan);
        let tables = self.tables.len() + self.diagnosis.len();
        let compared = self.earlier.iter().count() * Comparison::TABLES;
        let exports =
            export::exports(self.options).filter(|(_, path, _)| export::is_standard_output(path));
        tables + solved + search + results.forms().len() + exports.count() + compared
    }

    /// Prints the requested results of the search: the table of `--sweep` (the best split for each
    /// number of IPUs), the table of `--plan`, and the best split. Returns `false` if the options
    /// ask whether the model fits, and it does not.
    fn print_search(&self, sections: &mut Sections<'_, impl Write>) -> Result<bool> {
        let (report, results) = (&self.report, &self.options.results);
        let is_aligned = results.format == Format::Table;
        let for_readers = |table: Table| {
            if is_aligned {
                table
            } else {
                table.shown_in(Form::Csv)
            }
        };
        if report.sweep.is_some() {
            sections.tables(&[for_readers(sweep_table(report))])?;
        }
        if report.plan.is_some() {
            self.print_part(ScreenPart::Recommendation);
            let table = plan_table(report);
            if !(table.rows.is_empty() && is_aligned) {
                sections.tables(&[for_readers(table)])?;
            }
        }
        let Some(split) = &report.split else {
            return Ok(true);
        };
        let is_planned = report.plan.is_some() && !results.wants_verdict();
        if !is_planned {
            self.print_part(ScreenPart::Verdict);
        }
        self.print_split(split, sections)?;
        if let Some(plan) = report.plan.as_ref().filter(|_| is_planned) {
            return Ok(self.print_plan(plan));
        }
        self.print_rest(results.solve);
        self.print_part(ScreenPart::Sizes);
        self.print_part(ScreenPart::Plan);
        if let Some(text) = self.options.lower_proportion(report) {
            self.messages.summary(text);
        }
        self.messages.verbatim(&self.options.after_split(report));
        Ok(split.fits || !results.wants_verdict())
    }

    /// Prints `split` on standard output: its stages if `--solve` was requested, and a
    /// configuration for each form that `--emit` requests.
    fn print_split(&self, split: &Split, sections: &mut Sections<'_, impl Write>) -> Result<()> {
        let results = &self.options.results;
        match self.solved_tables() {
            Some(tables) => sections.tables(&tables)?,
            None if results.solve => sections.text("solve", stages_as_json(split)? + "\n")?,
            None => {}
        }
        for form in results.forms() {
            let emitted = emit::emit(form, &self.report, &self.options.module_root, None);
            self.messages.verbatim(emitted.notes.trim_end());
            sections.text(&format!("emit-{}", emitted.form), emitted.text)?;
        }
        Ok(sections.flush()?)
    }

    /// Prints what the user needs after `plan`, a table of configurations that fit: sentences about
    /// the recommended configuration (or why none fits), and commands to copy. Returns whether a
    /// configuration fits.
    fn print_plan(&self, plan: &PlanFacts) -> bool {
        let first = plan.rows.first();
        if first.is_none() {
            self.print_part(ScreenPart::Verdict);
            self.print_rest(self.options.results.solve);
        }
        self.messages.sections(&self.report, |section| {
            [ScreenPart::Sizes, ScreenPart::Bottlenecks, ScreenPart::Plan].contains(&section.part)
                || section.id == "tried"
        });
        self.messages.verbatim(&match first {
            Some(row) => self.options.after_plan(row, &self.report),
            None => self.options.after_split(&self.report),
        });
        first.is_some()
    }

    fn print_part(&self, part: ScreenPart) {
        self.messages
            .sections(&self.report, |section| section.part == part);
    }

    /// Prints on standard error the sentences about the split and the table of its stages. Leaves
    /// out the table if standard output already has it (`is_printed`) in the format for people.
    fn print_rest(&self, is_printed: bool) {
        let has_table = is_printed && self.options.results.format == Format::Table;
        self.messages
            .sections(&self.report, |section| match section.part {
                ScreenPart::Table => !has_table,
                part => [ScreenPart::Answer, ScreenPart::Proof].contains(&part),
            });
    }

    /// Prints the changes since the earlier report that `--compare` names: tables to `sections`, a
    /// summary and warnings to standard error. Returns `false` if the model fitted in the earlier
    /// report and no longer fits. Returns `true` otherwise, and without `--compare`.
    fn compare(&self, sections: &mut Sections<'_, impl Write>) -> Result<bool> {
        let Some(earlier) = &self.earlier else {
            return Ok(true);
        };
        let comparison = Comparison::new(earlier, &self.report);
        match self.options.results.format {
            Format::Table => sections.tables(&comparison.changes())?,
            _ => sections.tables(&comparison.tables())?,
        }
        let messages = self.messages;
        for warning in &comparison.warnings {
            messages.warn(warning);
        }
        messages.summary(comparison.summary(&messages.look));
        Ok(!comparison.is_worse())
    }

    /// With `-v`, prints which share of the recorded memory of the fullest tile is attributed to
    /// operations. If the share is below 95 %, prints a warning instead, also without `-v`.
    fn print_coverage(&self) {
        /// Lowest percentage of the recorded memory of the fullest tile that must be attributed to
        /// operations. Below this percentage, a warning is printed.
        const ENOUGH: i128 = 95;
        let line = terminal::text(&self.report, &self.messages.look, &[ScreenPart::Coverage]);
        if self.report.memory.coverage.as_ref().is_some_and(|bytes| {
            i128::from(bytes.rest) * 100 > i128::from(bytes.recorded) * (100 - ENOUGH)
        }) {
            self.messages.warn(format!(
                "less than {ENOUGH} % of the fullest tile is attributed to operations: {line}; run \
                 with --diagnose to see what is missing"
            ));
        } else if !line.is_empty() {
            self.messages.info(line);
        }
    }
}

/// Returns the requested tables of the model, except the tables of `--diagnose`, in the order in
/// which they are printed.
///
/// # Errors
/// If `--memory-totals` needs recorded memory that the profile lacks, or if a tile that `--tiles`
/// names does not exist.
pub fn tables(
    options: &Options,
    layers: &Layers<'_>,
    memory: &MemoryModel<'_>,
) -> Result<Vec<Table>> {
    let (model, wanted) = (layers.model(), &options.tables);
    let Layers {
        layering,
        placement,
        ..
    } = layers;
    let positions = &placement.positions;
    let mut tables = Vec::new();
    if options.layers.list_layers {
        tables.extend(report::layer_list(model, layering, placement, memory));
    }
    if wanted.operation_breakdown {
        let parts = &memory.operation_groups();
        tables.push(report::operations(model, layering, placement, parts));
    }
    if wanted.layer_breakdown {
        tables.push(report::layers(positions, &memory.single_layers()));
    }
    if wanted.memory_totals {
        let whole = memory
            .stages(std::slice::from_ref(&(0..positions.len())))
            .iter()
            .map(|stage| stage.sums().total())
            .sum();
        tables.push(report::totals(whole, &recorded_tiles(options, model)?));
    }
    let names = positions.names();
    if wanted.memory_affinity {
        tables.push(Table::matrix("memory-affinity", &names, &memory.affinity()));
    }
    if wanted.interlayer_communication {
        let bytes = &memory.communication();
        tables.push(Table::matrix("interlayer-communication", &names, bytes));
    }
    Ok(tables)
}

/// Number of tiles in the table of `--memory-totals` if the user names no tiles with `--tiles`.
const FULLEST_TILES: usize = 10;

/// Returns one entry per tile that `--memory-totals` shows: the index of the tile, and its recorded
/// bytes. These are the tiles of `--tiles` in the order of that list or, without `--tiles`, the
/// fullest tiles, from the fullest on.
fn recorded_tiles(options: &Options, model: &Model) -> Result<Vec<(u32, RecordedTile)>> {
    let recorded = &model.recorded.tiles;
    if recorded.is_empty() {
        anyhow::bail!(
            "the profile has no table `memory_by_tile`, which --memory-totals shows; leave the \
             option out, or record the profile again"
        );
    }
    let Some(tiles) = &options.tables.tiles else {
        let mut all: Vec<_> = (0u32..).zip(recorded.iter().copied()).collect();
        all.sort_by_key(|&(_, tile)| std::cmp::Reverse(tile.total));
        all.truncate(FULLEST_TILES);
        return Ok(all);
    };
    let tile = |&tile: &u32| match recorded.get(tile as usize) {
        Some(&recorded) => Ok((tile, recorded)),
        None => Err(usage(format!(
            "--tiles: there is no tile {tile}; give tiles from 0 to {}",
            recorded.len() - 1
        ))),
    };
    tiles.iter().map(tile).collect()
}
