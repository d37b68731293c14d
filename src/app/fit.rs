//! Answers `--fit`: whether a compilation for several IPUs fits, and how far its memory is from the
//! prediction of an earlier report.

use super::input::{debug_path, read_beside};
use super::output::Outputs;
use super::{Exit, Run};
use crate::analysis::{Compilation, CompilationOptions, displayed};
use crate::report::{FitComparison, FitComparisonError, Report};
use anyhow::{Context, Result};
use std::io::Write;

/// Reads the profile, the debug contexts if a debug file exists, and `framework.json` and
/// `app.json` beside the profile if a report needs them. Judges the compilation in the profile,
/// writes the results to `out`, and returns the exit code. `prediction` is the report of
/// `--compare`.
pub(super) fn run(run: &Run, prediction: Option<Report>, out: &mut impl Write) -> Result<Exit> {
    let (options, messages) = (&run.options, run.messages);
    let read = CompilationOptions {
        debug: debug_path(options).ok(),
        is_debug_named: options.input.debug.is_some(),
        layers: run.request.layers.clone(),
        allow_incomplete: options.results.allow_incomplete,
    };
    let mut compilation = messages.while_showing(|progress| {
        Compilation::read_with(&options.input.profile, &read, progress)
    })?;
    for (file, warning) in &compilation.warnings {
        messages.warning(Some(file), warning);
    }
    let (provenance, warnings) = (&mut compilation.provenance, &mut compilation.warnings);
    read_beside(options, messages, provenance, warnings);
    let mut report = compilation.fit(&run.request)?;
    run.check_verdict(&report)?;
    if let Some((path, prediction)) = options.exports.compare.as_deref().zip(prediction) {
        compare(&prediction, &mut report)
            .with_context(|| format!("--compare {}", displayed(path)))?;
    }
    Outputs {
        tables: report.tables(options.results.format),
        ..Outputs::new(run, report)
    }
    .print(out)
}

/// Adds to `report` the differences of the compilation from `prediction`. The reserve that would
/// have been enough is left out unless both reports have a verdict.
fn compare(prediction: &Report, report: &mut Report) -> Result<(), FitComparisonError> {
    let has_verdict = prediction.has_verdict() && report.has_verdict();
    let Some(fit) = &mut report.fit else {
        return Ok(());
    };
    let comparison = FitComparison::new(prediction, fit)?;
    fit.comparison = Some(FitComparison {
        reserve: comparison.reserve.filter(|_| has_verdict),
        ..comparison
    });
    // The layers of the compared stages have the names of the prediction.
    report.pseudo_layers = prediction.pseudo_layers;
    Ok(())
}
