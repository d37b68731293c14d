//! `--fit`: whether a recorded compilation fits, and how far it is from the prediction.

use super::input::{Beside, debug_path};
use super::messages::Messages;
use super::output::{Outputs, read_report_at};
use super::{Exit, Options, check_verdict, detail, request, usage};
use crate::analysis::{Compilation, ContextsOf, displayed};
use crate::model::Rules;
use crate::report::{Against, Form, Format, Report, Table, tables_of};
use crate::wording::counted;
use anyhow::{Context, Result};
use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

/// Evaluates the compilation in the profile. Results go to `out`.
pub(super) fn run(options: &Options, messages: Messages, out: &mut impl Write) -> Result<Exit> {
    let prediction = match options.compiled.against.as_deref() {
        Some(path) => Some((path, read_report_at("--against", path)?)),
        None => None,
    };
    let mut compilation = read(options, messages)?;
    for (file, warning) in &compilation.warnings {
        messages.warning(Some(file), warning);
    }
    let limits = limits_of(options, &compilation)?;
    if options.wants_report() {
        let beside = Beside::read(options, messages);
        compilation.warnings.extend(beside.warnings);
        (compilation.framework, compilation.app) = beside.files;
    }
    let arguments = options.arguments.clone();
    let mut report = compilation.report(limits, detail(options), arguments);
    check_verdict(options, &report)?;
    if let Some((path, prediction)) = &prediction {
        compare(path, prediction, &mut report)?;
    }
    let outputs = Outputs {
        tables: tables(options, &report),
        ..Outputs::new(Cow::Borrowed(options), messages, report)
    };
    outputs.print(out)
}

/// Returns the tables: all for programs, and only the first one for people, whose sentences have
/// the rest.
fn tables(options: &Options, report: &Report) -> Vec<Table> {
    match options.results.format {
        Format::Table => {
            let tables = tables_of(report, Form::Terminal).into_iter();
            tables.take(1).collect()
        }
        _ => tables_of(report, Form::Csv),
    }
}

/// Reads the profile, and the debug contexts if a debug file exists.
fn read(options: &Options, messages: Messages) -> Result<Compilation> {
    let contexts = ContextsOf {
        file: debug_path(options).ok(),
        is_named: options.input.debug.is_some(),
        is_trusted: options.layers.trust_debug_info,
    };
    messages.while_showing(|progress| {
        Compilation::read_with(
            &options.input.profile,
            &contexts,
            &options.layers.options(Rules::Full),
            options.results.allow_incomplete,
            progress,
        )
    })
}

/// Returns the limit of a tile in bytes: one number, or one for each IPU.
fn limits_of(options: &Options, compilation: &Compilation) -> Result<Vec<u64>> {
    let profile = &compilation.profile;
    let limits = request::limits(options, profile.target.bytes_per_tile)?;
    let ipus = profile.ipus.count as usize;
    if limits.len() > 1 && limits.len() != ipus {
        return Err(usage(format!(
            "--mem-per-tile has {} amounts, but the profile has {}; give one amount, or one for \
             each IPU",
            limits.len(),
            counted(ipus, "IPU")
        )));
    }
    Ok(limits)
}

/// Adds to `report` the differences from `prediction`.
fn compare(path: &Path, prediction: &Report, report: &mut Report) -> Result<()> {
    let has_verdict = prediction.has_verdict() && report.has_verdict();
    let Some(fit) = &mut report.fit else {
        return Ok(());
    };
    let against = Against::new(prediction, fit);
    let against = against.with_context(|| format!("--against {}", displayed(path)))?;
    fit.against = Some(Against {
        reserve: against.reserve.filter(|_| has_verdict),
        ..against
    });
    // The names of layers come from the prediction.
    report.pseudo_layers = prediction.pseudo_layers;
    Ok(())
}
