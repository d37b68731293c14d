//! All results of a run, printed in their order.

use super::messages::Messages;
use super::plan::next_steps;
use super::stdout::Sections;
use super::{Exit, Options, export, refused};
use crate::analysis::shown;
use crate::limits;
use crate::message::Warning;
use crate::report::compare::{Comparison, read as read_report};
use crate::report::emit::{self, Modules};
use crate::report::{
    Format, PlanFacts, Report, Split, Table, plan_table, short_plan_table, sweep_table, terminal,
};
use crate::search::{Outcome, SearchResult};
use anyhow::{Context, Result};
use std::io::Write;
use std::path::Path;

/// What a run has to show.
pub(super) struct Outputs<'a> {
    pub(super) options: &'a Options,
    pub(super) messages: Messages,
    /// The tables that show the model.
    pub(super) tables: Vec<Table>,
    pub(super) found: Option<SearchResult>,
    /// The integer program, if it is wanted.
    pub(super) lp: String,
    /// The tables of `--diagnose`.
    pub(super) diagnosis: Vec<Table>,
    pub(super) report: Report,
    /// The report to compare with.
    pub(super) earlier: Option<Report>,
}

/// Can everything be written as `options` want it? Checked before the work
/// begins.
pub(super) fn check(options: &Options) -> Result<()> {
    for form in options.forms() {
        let checked = form.check(&modules(options));
        checked.map_err(|error| refused(&error))?;
    }
    export::check(options)
}

/// The earlier report, if `--compare` names one.
pub(super) fn earlier_report(options: &Options) -> Result<Option<Report>> {
    let path = options.compare.as_deref();
    path.map(|path| read_report_at("--compare", path))
        .transpose()
}

/// The report that an option names.
pub(super) fn read_report_at(option: &str, path: &Path) -> Result<Report> {
    let context = || format!("{option} {}", shown(path));
    let what = ("report", "--export-json");
    let bytes = super::input::read_bounded(path, limits::REPORT, what).with_context(context)?;
    read_report(&bytes).with_context(context)
}

/// How a run ends that gives a verdict.
pub(super) fn exit_of(fits: bool) -> Exit {
    if fits { Exit::Done } else { Exit::DoesNotFit }
}

/// What the options call the modules of the model's code.
fn modules(options: &Options) -> Modules<'_> {
    Modules {
        layer: options.module.as_ref(),
        before: options.module_in.as_ref(),
        after: options.module_out.as_ref(),
    }
}

impl Outputs<'_> {
    /// Prints everything, results to `out`, and says how the run ends.
    pub(super) fn print(&self, out: &mut impl Write) -> Result<Exit> {
        let count = self.count();
        let look = self.messages.look_of_results();
        let mut sections = Sections::new(out, (self.options.format, look), count);
        for table in &self.tables {
            sections.table(table)?;
        }
        let mut exit = self.print_search(&mut sections)?;
        for table in &self.diagnosis {
            sections.table(table)?;
        }
        export::write(
            self.options,
            &self.report,
            &self.lp,
            &mut sections,
            self.messages,
        )?;
        if self.options.explain {
            let explained = terminal::explain(&self.report, self.messages.look());
            self.messages.summary(explained);
        }
        if self.compare(&mut sections)? {
            exit = Exit::DoesNotFit;
        }
        self.print_coverage();
        Ok(exit)
    }

    /// How many results standard output gets.
    fn count(&self) -> usize {
        let options = self.options;
        let search = [options.solve, options.sweep, options.plan];
        let search = search.into_iter().filter(|is_wanted| *is_wanted).count();
        let tables = self.tables.len() + self.diagnosis.len();
        let compared = self.earlier.iter().count() * Comparison::TABLES;
        let exports = export::to_standard_output(options);
        tables + search + options.forms().len() + exports + compared
    }

    /// Prints what the search found; the exit code says whether it fits.
    fn print_search(&self, sections: &mut Sections<'_, impl Write>) -> Result<Exit> {
        let report = &self.report;
        if let Some(sweep) = &report.sweep {
            sections.table(&sweep_table(sweep, report.pseudo_layers).without("Of the limit"))?;
        }
        let for_people = self.options.format == Format::Table;
        if let Some(plan) = &report.plan {
            let table = if for_people {
                short_plan_table
            } else {
                plan_table
            };
            sections.table(&table(plan, report.pseudo_layers))?;
        }
        let Some(split) = &report.split else {
            return Ok(Exit::Done);
        };
        let is_planned = self.options.plan && !self.options.wants_verdict();
        if !is_planned {
            self.print_verdict(split);
        }
        let forms = self.options.forms();
        let emit = |form| emit::emit(form, report, &modules(self.options));
        let emitted: Result<Vec<String>, _> = forms.iter().copied().map(emit).collect();
        let emitted = emitted.map_err(|error| refused(&error))?;
        if self.options.solve {
            sections.stages(report, split)?;
        }
        for (form, text) in forms.iter().zip(&emitted) {
            sections.text(form.section(), text.as_bytes())?;
        }
        sections.flush()?;
        if let Some(plan) = report.plan.as_ref().filter(|_| is_planned) {
            return Ok(self.print_plan(plan, split));
        }
        self.print_hints(split);
        for line in terminal::plan(report, self.messages.look()) {
            self.messages.summary(line);
        }
        let is_in_time = report.step.as_ref().is_none_or(|step| step.is_within);
        Ok(exit_of(
            split.fits && is_in_time || !self.options.wants_verdict(),
        ))
    }

    /// Says what is recommended, or why nothing fits.
    fn print_plan(&self, plan: &PlanFacts, split: &Split) -> Exit {
        if plan.rows.is_empty() {
            self.print_verdict(split);
            self.print_hints(split);
        }
        for line in terminal::plan(&self.report, self.messages.look()) {
            self.messages.summary(line);
        }
        let first = plan.rows.first();
        let framework = self.report.pipeline.as_ref().map(|own| own.framework);
        for line in first
            .map(|row| next_steps(row, framework))
            .into_iter()
            .flatten()
        {
            self.messages.summary(line);
        }
        exit_of(first.is_some_and(|row| row.is_within) && self.report.has_verdict())
    }

    /// Says whether the split fits, before anything else of it.
    fn print_verdict(&self, split: &Split) {
        let (report, messages) = (&self.report, self.messages);
        let look = messages.look();
        if let Some(Outcome::Greedy(greedy)) = self.found.as_ref().map(|found| &found.outcome) {
            messages.summary(format_args!(
                "greedy: {} at {} of the memory of a tile and at least {} layers in a stage",
                if greedy.fits { "settled" } else { "gave up" },
                greedy.proportion,
                greedy.min_layers
            ));
        }
        messages.summary(terminal::verdict(report, split, look));
    }

    /// Says how the split is and what else can be done, for people.
    fn print_hints(&self, split: &Split) {
        let (report, messages) = (&self.report, self.messages);
        let look = messages.look();
        if !(self.options.solve && self.options.format == Format::Table) {
            messages.summary(terminal::table(report, split, look));
        }
        let lines = terminal::step(report, look).into_iter();
        for line in lines.chain(terminal::pipeline(report, look)) {
            messages.summary(line);
        }
        if let Some(line) = terminal::proof(report) {
            messages.info(line);
        }
        for line in terminal::remarks(report, look) {
            messages.summary(line);
        }
    }

    /// Prints what changed. True when the model fitted and no longer does.
    fn compare(&self, sections: &mut Sections<'_, impl Write>) -> Result<bool> {
        let Some(earlier) = &self.earlier else {
            return Ok(false);
        };
        let comparison = Comparison::new(earlier, &self.report);
        for table in comparison.tables() {
            sections.table(&table)?;
        }
        let messages = self.messages;
        for warning in &comparison.warnings {
            messages.warning(None, warning);
        }
        messages.summary(comparison.summary(messages.look()));
        Ok(comparison.is_worse())
    }

    /// Says how much of the fullest tile is explained, and by what.
    fn print_coverage(&self) {
        /// Below this percentage the operations explain too little.
        const ENOUGH: i128 = 95;
        let Some(line) = terminal::coverage(&self.report, self.messages.look()) else {
            return;
        };
        let coverage = self.report.memory.coverage.iter();
        let mut misses = coverage.map(|own| (i128::from(own.rest), i128::from(own.recorded)));
        if misses.any(|(rest, recorded)| rest * 100 > recorded * (100 - ENOUGH)) {
            let warning = Warning::new(format!("only {line}; see with --diagnose what is missing"));
            self.messages.warning(None, &warning);
        } else {
            self.messages.info(line);
        }
    }
}
