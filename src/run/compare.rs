//! The report against an earlier one.

use super::input::{Shown, read_bounded};
use super::sections::Sections;
use crate::cli::Options;
use crate::limits;
use crate::messages::Messages;
use crate::report::Report;
use crate::report::compare::{Comparison, read as read_report};
use anyhow::{Context, Result};
use std::io::Write;

/// The earlier report, if `--compare` names one.
pub(super) fn read(options: &Options) -> Result<Option<Report>> {
    let Some(path) = &options.compare else {
        return Ok(None);
    };
    let shown = || format!("--compare {}", Shown(path));
    let bytes =
        read_bounded(path, limits::REPORT, ", and no report is that large").with_context(shown)?;
    read_report(&bytes).map(Some).with_context(shown)
}

/// How many sections a comparison has.
pub(super) fn sections(options: &Options) -> usize {
    options.compare.iter().count() * Comparison::TABLES
}

/// Prints what changed. True when the model fitted and no longer does.
pub(super) fn write(
    earlier: &Report,
    later: &Report,
    sections: &mut Sections<'_, impl Write>,
    messages: Messages,
) -> Result<bool> {
    let comparison = Comparison::new(earlier, later);
    for table in comparison.tables() {
        sections.table(&table)?;
    }
    for warning in &comparison.warnings {
        messages.warning(format_args!("compared with another report: {warning}"));
    }
    messages.summary(comparison.summary(messages.look()));
    Ok(comparison.is_worse())
}
