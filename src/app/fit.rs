//! Answers `--fit`: whether a model that was compiled for several IPUs fits, and how far its memory
//! is from the prediction of an earlier report.

use super::{
    Exit, Run,
    input::{debug_path, read_beside},
    output::Outputs,
};
use crate::{
    analysis::{Compilation, CompilationOptions},
    message::displayed,
    report::{FitComparison, Report},
};
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
        is_debug_named: options.debug.is_some(),
        layers: run.request.layers.clone(),
        allow_incomplete: options.results.allow_incomplete,
    };
    let mut compilation = messages
        .while_showing(|progress| Compilation::read_with(&options.profile, &read, progress))?;
    messages.warn_of_files(&compilation.warnings);
    read_beside(
        options,
        messages,
        &mut compilation.provenance,
        &mut compilation.warnings,
    );
    let mut report = compilation.fit(&run.request)?;
    run.check_verdict(&report)?;
    let has_verdict = report.has_verdict();
    let compared = options.compare.as_deref().zip(prediction);
    if let (Some(fit), Some((path, prediction))) = (&mut report.fit, compared) {
        let mut comparison = FitComparison::new(&prediction, fit)
            .with_context(|| format!("--compare {}", displayed(path)))?;
        // The comparison suggests the `--reserve` with which the predicted bytes would have been at
        // least the compiled bytes. Without a verdict (whether the model fits) in the prediction or
        // in this report, the bytes are uncertain, so no reserve is suggested.
        if !has_verdict || !prediction.has_verdict() {
            comparison.reserve = None;
        }
        fit.comparison = Some(comparison);
        // The comparison with the earlier report names the operations outside the layers as that
        // report does: In and Out, or None for both. The rest of this report must use the same
        // names.
        report.pseudo_layers = prediction.pseudo_layers;
    }
    Outputs {
        options,
        messages,
        tables: report.tables(options.results.format),
        diagnosis: Vec::new(),
        report,
        earlier: None,
    }
    .print(out)
}
