//! Answers `--fit`: whether a model that was compiled for several IPUs fits, and how far its memory
//! is from the prediction of an earlier report.

use super::input::{debug_path, read_beside};
use super::output::Outputs;
use super::{Exit, Run};
use crate::analysis::{Compilation, CompilationOptions, displayed};
use crate::report::{FitComparison, FitComparisonError, Report};
use anyhow::{Context, Result};
use std::io::Write;

/// Judges the compilation in the profile, writes the results to `out`, and returns the exit code.
/// Reads the profile, the debug contexts if there is a debug file, and, if a report needs them,
/// `framework.json` and `app.json` beside the profile. `prediction` is the report that `--compare`
/// names.
pub fn run(run: &Run, prediction: Option<Report>, out: &mut impl Write) -> Result<Exit> {
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
    read_beside(
        options,
        messages,
        &mut compilation.provenance,
        &mut compilation.warnings,
    );
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

/// Adds to `report` how the memory of the compilation differs from the earlier report `prediction`.
/// Unless both reports have a verdict (whether the model fits), leaves out the `--reserve` with
/// which the prediction would have been high enough.
fn compare(prediction: &Report, report: &mut Report) -> Result<(), FitComparisonError> {
    let has_verdict = prediction.has_verdict() && report.has_verdict();
    let Some(fit) = &mut report.fit else {
        return Ok(());
    };
    let mut comparison = FitComparison::new(prediction, fit)?;
    if !has_verdict {
        comparison.reserve = None;
    }
    fit.comparison = Some(comparison);
    // The comparison has the names of the prediction for the operations before and after the layers
    // (In and Out, or None for both). The rest of the report must use the same names.
    report.pseudo_layers = prediction.pseudo_layers;
    Ok(())
}
