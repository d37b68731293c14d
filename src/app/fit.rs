//! `--fit`: does a compilation fit, as it was recorded, and how far is it from what
//! was predicted?

use super::input::{Beside, debug_path, read_bounded};
use super::messages::Messages;
use super::output::{exit_of, read_report_at};
use super::stdout::Sections;
use super::{Exit, Options, export, layers, request, usage};
use crate::analysis::{FileWarnings, shown};
use crate::atomic;
use crate::debug_info::DebugInfo;
use crate::limits;
use crate::message::Warning;
use crate::model::{LayersByIpu, Operation};
use crate::profile::CompiledProfile;
use crate::progress::Progress;
use crate::report::{
    Against, Calibration, CalibrationError, Files, FitInputs, Part, Provenance, Report, tables_of,
};
use crate::trust::check_debug;
use crate::witnesses::{are_refused, judge};
use anyhow::{Context, Result};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Judges the compilation in the profile. Results go to `out`.
pub(super) fn run(options: &Options, messages: Messages, out: &mut impl Write) -> Result<Exit> {
    let prediction = options.against.as_deref();
    let prediction = prediction.map(|path| read_report_at("--against", path));
    let prediction = prediction.transpose()?;
    let read = messages.while_showing(|progress| Compilation::read(options, progress))?;
    for (file, warning) in &read.warnings {
        messages.warning(Some(file), warning);
    }
    let mut report = read.report(options)?;
    if options.wants_report() {
        add_beside(options, messages, &mut report);
    }
    if let Some(prediction) = &prediction {
        compare(options, prediction, &mut report)?;
    }
    let exit = print(options, &report, messages, out)?;
    // Whether it fits is said in any case.
    if let (Some(prediction), Some(path)) = (&prediction, &options.calibrate) {
        write_calibration(options, path, prediction, &report)?;
        messages.info(format_args!("the calibration is in {}", shown(path)));
    }
    Ok(exit)
}

/// Adds what is beside the profile.
fn add_beside(options: &Options, messages: Messages, report: &mut Report) {
    let beside = Beside::read(options, messages);
    report.provenance.framework = beside.framework;
    report.provenance.app = beside.app;
    let warnings = beside.warnings.iter().map(Warning::to_string);
    report.warnings.extend(warnings);
}

/// What was read.
struct Compilation {
    profile: CompiledProfile,
    layers: Option<LayersByIpu>,
    debug: Option<PathBuf>,
    /// What is to be said of both files.
    warnings: FileWarnings,
}

impl Compilation {
    /// Reads the profile, and the debug contexts where there are some. Those that
    /// were not named need not be there, nor be readable.
    fn read(options: &Options, progress: &Progress) -> Result<Self> {
        let path = &options.profile;
        let debug = debug_path(options).ok();
        let read_debug = |debug: &PathBuf| {
            let read = DebugInfo::read_with(debug, progress);
            read.with_context(|| shown(debug))
        };
        let (profile, contexts) = rayon::join(
            || CompiledProfile::read_with(path, debug.is_some(), progress),
            || debug.as_ref().map(read_debug).transpose(),
        );
        let profile = profile.with_context(|| shown(path))?;
        let judged = judge(&profile.contradictions, options.allow_incomplete);
        let judged = judged.with_context(|| shown(path))?;
        let said = |warning: Warning| (shown(path), warning);
        let left_out = |error: anyhow::Error| said(no_layers(&error));
        let all = judged.into_iter().chain(profile.warnings.iter().cloned());
        let mut warnings: FileWarnings = all.map(said).collect();
        let contexts = match contexts {
            Err(error) if options.debug.is_none() => {
                warnings.push(left_out(error));
                None
            }
            contexts => contexts?,
        };
        let of_debug = debug.as_deref().zip(contexts.as_ref());
        let layers = Self::layers(&profile, of_debug, options);
        let (layers, said) = layers.unwrap_or_else(|error| (None, vec![left_out(error)]));
        warnings.extend(said);
        Ok(Self {
            layers,
            debug: debug.filter(|_| contexts.is_some()),
            profile,
            warnings,
        })
    }

    /// The layers on each IPU, where programs and contexts are there, and what is to be
    /// said of the contexts.
    fn layers(
        profile: &CompiledProfile,
        of_debug: Option<(&Path, &DebugInfo)>,
        options: &Options,
    ) -> Result<(Option<LayersByIpu>, FileWarnings)> {
        let (Some(programs), Some((debug, contexts))) = (&profile.programs, of_debug) else {
            return Ok((None, FileWarnings::new()));
        };
        let said = check_debug(programs, (debug, contexts), options.trust_debug_info)?;
        let regex = |operations: &[Operation]| layers::of_names(operations, options);
        let found = LayersByIpu::find(programs, contexts, regex, profile.ipus)?;
        Ok((Some(found), said))
    }

    fn report(&self, options: &Options) -> Result<Report> {
        let target = &self.profile.target;
        let limits = request::limits(options, target.bytes_per_tile)?;
        let ipus = self.profile.ipus.count as usize;
        if limits.len() > 1 && limits.len() != ipus {
            return Err(usage(format!(
                "--mem-per-tile has {} amounts, but the profile has {ipus} IPUs; give one amount, \
                 or one for each IPU",
                limits.len()
            )));
        }
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let files = Files {
            profile: text(&options.profile),
            debug: self.debug.as_deref().map(text),
            saved_model: false,
        };
        Ok(Report::of_compilation(FitInputs {
            profile: &self.profile,
            layers: self
                .layers
                .as_ref()
                .filter(|layers| !layers.names.is_empty()),
            limits,
            for_page: options.export_html.is_some() || options.export_json.is_some(),
            provenance: Provenance {
                arguments: options.arguments.clone(),
                ..Provenance::new(target, &self.profile.made, files, "recorded")
            },
            warnings: self.warnings.iter().map(|(_, own)| own.clone()).collect(),
        }))
    }
}

/// That the names of layers cannot be told, and why.
fn no_layers(error: &anyhow::Error) -> Warning {
    Warning::new(format!("layers on IPUs are left out: {error:#}"))
}

/// Adds to `report` how far it is from `prediction`.
fn compare(options: &Options, prediction: &Report, report: &mut Report) -> Result<()> {
    let Some(fit) = &mut report.fit else {
        return Ok(());
    };
    let path = options.against.as_deref().unwrap_or(Path::new(""));
    let against = Against::new(prediction, fit);
    fit.against = Some(against.with_context(|| format!("--against {}", shown(path)))?);
    // The names of layers are those of the prediction.
    report.pseudo_layers = prediction.pseudo_layers;
    Ok(())
}

fn write_calibration(
    options: &Options,
    path: &Path,
    prediction: &Report,
    report: &Report,
) -> Result<()> {
    let against = report.fit.as_ref().and_then(|fit| fit.against.as_ref());
    let Some(against) = against else {
        return Ok(());
    };
    let own = match report.has_verdict() {
        true => Calibration::new(prediction, against),
        false => Err(CalibrationError::Incomplete),
    };
    let own = own.with_context(|| format!("--calibrate {}", shown(&options.profile)))?;
    atomic::write(path, own.text().as_bytes()).with_context(|| shown(path))
}

/// The calibration that `--calibration` names.
pub(super) fn calibration(options: &Options) -> Result<Option<Calibration>> {
    let Some(path) = &options.calibration else {
        return Ok(None);
    };
    let context = || format!("--calibration {}", shown(path));
    let what = ("calibration", "--calibrate");
    let bytes = read_bounded(path, limits::BESIDE, what).with_context(context)?;
    Calibration::read(&bytes).map(Some).with_context(context)
}

/// Prints the tables, writes the exports, and says how it is.
fn print(
    options: &Options,
    report: &Report,
    messages: Messages,
    out: &mut impl Write,
) -> Result<Exit> {
    let tables = tables_of(report);
    let count = tables.len() + export::to_standard_output(options);
    let mut sections = Sections::new(out, options.format, count);
    for table in tables {
        sections.table(&table)?;
    }
    export::write(options, report, "", &mut sections, messages)?;
    messages.sections(report, |own| own.part == Part::Answer);
    Ok(match &report.fit {
        _ if are_refused(&report.contradictions) => Exit::Unreadable,
        fit => exit_of(fit.as_ref().is_some_and(|fit| fit.fits)),
    })
}
