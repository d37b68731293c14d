//! All results of a run, printed in their order.

use super::search::SearchResult;
use super::sections::Sections;
use super::subject::Subject;
use super::{Exit, compare, emit, export, tables, ties};
use crate::report::{Report, Table, sweep, terminal};
use anyhow::Result;
use std::io::Write;

/// What a run has to show, beside the report.
pub(super) struct Outputs {
    tables: Vec<Table>,
    found: Option<SearchResult>,
    diagnosis: Vec<Table>,
}

impl Outputs {
    pub(super) fn new(subject: &Subject<'_>) -> Result<Self> {
        Ok(Self {
            tables: tables::tables(subject)?,
            diagnosis: tables::diagnosis(subject),
            found: match subject.options.wants_search() {
                true => Some(subject.search()?),
                false => None,
            },
        })
    }

    /// How many results standard output gets.
    fn count(&self, subject: &Subject<'_>) -> usize {
        let options = subject.options;
        let search = usize::from(options.solve) + usize::from(options.sweep);
        let tables = self.tables.len() + self.diagnosis.len();
        let reports = export::to_standard_output(options) + compare::sections(options);
        tables + search + options.forms().len() + reports
    }

    /// Prints everything, results to `out`, and says how the run ends.
    /// `earlier` is the report to compare with.
    pub(super) fn print(
        &self,
        subject: &Subject<'_>,
        earlier: Option<&Report>,
        out: &mut impl Write,
    ) -> Result<Exit> {
        let options = subject.options;
        let count = self.count(subject);
        let mut sections = Sections::new(out, options.format, count);
        for table in &self.tables {
            sections.table(table)?;
        }
        let mut exit = match &self.found {
            Some(found) => print_found(subject, found, &mut sections)?,
            None => Exit::Done,
        };
        for table in &self.diagnosis {
            sections.table(table)?;
        }
        if options.wants_report() {
            let later = export::write(subject, self.found.as_ref(), &mut sections)?;
            if options.explain {
                let look = subject.messages.look();
                subject.messages.summary(terminal::explain(&later, look));
            }
            if let Some(earlier) = earlier
                && compare::write(earlier, &later, &mut sections, subject.messages)?
            {
                exit = Exit::DoesNotFit;
            }
        }
        if count == 0 && !options.wants_anything_else() {
            subject
                .messages
                .summary("nothing was asked for: --solve finds the split points, --help has more");
        }
        Ok(exit)
    }
}

/// Prints what the search found; the exit code says whether it fits.
fn print_found(
    subject: &Subject<'_>,
    found: &SearchResult,
    sections: &mut Sections<'_, impl Write>,
) -> Result<Exit> {
    let options = subject.options;
    if let Some(sweep) = &found.facts.sweep {
        let pseudo_layers = subject.placement.positions.pseudo_layers();
        sections.table(&sweep::table(sweep, pseudo_layers))?;
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
    let (messages, look) = (subject.messages, subject.messages.look());
    let curves = subject.screen_curves(split);
    messages.summary(terminal::table(split, look, curves.as_deref()));
    messages.summary(terminal::verdict(split, look));
    let tied = ties::facts(subject.placement, Some(split));
    if let Some(lines) = terminal::tied_weights(&tied, split.pseudo_layers) {
        messages.summary(lines);
    }
    if let Some(line) = terminal::proof(&found.facts.proof) {
        messages.info(line);
    }
    if let Some(judged) = &found.facts.judged {
        messages.summary(terminal::beside(judged, split, look));
    }
    if let Some(refusal) = &found.facts.refusal {
        messages.summary(terminal::refusal(refusal, split, look));
    }
    Ok(match split.fits() || !options.wants_verdict() {
        true => Exit::Done,
        false => Exit::DoesNotFit,
    })
}
