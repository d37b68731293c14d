//! A model compiled for any number of IPUs, and whether it fits.

use super::Request;
use crate::debug_info::DebugInfo;
use crate::message::{FileWarnings, Warning, displayed, usage};
use crate::model::{LayerOptions, LayersByIpu};
use crate::profile::CompiledProfile;
use crate::progress::Progress;
use crate::report::{Files, FitInputs, Provenance, Report};
use crate::witnesses::{Contradiction, check_compilation, check_debug, judge};
use crate::wording::counted;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// A compiled model, with information about the files that it was read from.
#[derive(Debug)]
pub struct Compilation {
    /// The recorded memory of each IPU.
    pub profile: CompiledProfile,
    /// Layers of each IPU; `None` if their names are unknown.
    layers: Option<LayersByIpu>,
    /// The files, the compilation, and the files beside the profile if they were read.
    pub provenance: Provenance,
    /// Warnings about the files, each with the path of its file.
    pub warnings: FileWarnings,
    /// Where the profile contradicts itself.
    pub contradictions: Vec<Contradiction>,
}

/// Options for reading a compilation.
#[derive(Debug, Clone, Default)]
pub struct CompilationOptions {
    /// Path of the `debug.cbor`, if there is one.
    pub debug: Option<PathBuf>,
    /// Did the user name the `debug.cbor`? Otherwise, if it cannot be read, layers are left out with
    /// a warning.
    pub is_debug_named: bool,
    /// Accept contexts that are damaged or belong to another compilation?
    pub trust_debug_info: bool,
    /// How contexts name the layers of operations.
    pub layers: LayerOptions,
    /// Accept a profile that contradicts itself? There is no verdict on it.
    pub allow_incomplete: bool,
}

impl Compilation {
    /// Reads a profile, and contexts that name the layers of its operations.
    ///
    /// # Errors
    /// Names the file that could not be read or understood.
    pub fn read(profile: &Path, options: &CompilationOptions) -> Result<Self> {
        Self::read_with(profile, options, &Progress::new())
    }

    /// Reads both files in parallel, and reports to `progress`.
    pub(crate) fn read_with(
        path: &Path,
        options: &CompilationOptions,
        progress: &Progress,
    ) -> Result<Self> {
        let debug = options.debug.as_deref();
        let read_debug = |debug: &Path| {
            let read = DebugInfo::read_with(debug, progress);
            read.with_context(|| displayed(debug))
        };
        let (profile, debug_info) = rayon::join(
            || CompiledProfile::read_with(path, debug.is_some(), progress),
            || debug.map(read_debug).transpose(),
        );
        let profile = profile.with_context(|| displayed(path))?;
        let contradictions = check_compilation(&profile);
        let judged = judge(&contradictions, options.allow_incomplete);
        let judged = judged.with_context(|| displayed(path))?;
        let all = judged.iter().chain(&profile.warnings).cloned();
        let mut warnings: FileWarnings = all.map(|warning| (displayed(path), warning)).collect();
        let left_out = |error| (displayed(path), no_layers(&error));
        let debug_info = match debug_info {
            Err(error) if !options.is_debug_named => {
                warnings.push(left_out(error));
                None
            }
            debug_info => debug_info?,
        };
        let of_debug = debug.zip(debug_info.as_ref());
        let found = layers_by_ipu(&profile, of_debug, options);
        let (layers, of_layers) = found.unwrap_or_else(|error| (None, vec![left_out(error)]));
        warnings.extend(of_layers);
        let files = Files::of(path, of_debug.map(|(debug, _)| debug));
        Ok(Self {
            layers: layers.filter(|layers| !layers.names.is_empty()),
            provenance: Provenance {
                memory_model: "recorded".to_owned(),
                ..Provenance::new(&profile.target, &profile.made, files)
            },
            profile,
            warnings,
            contradictions,
        })
    }

    /// Report on whether each IPU fits within the limits of `request`.
    ///
    /// # Errors
    /// If the reserve leaves nothing of a tile, or there are several limits, but not one for each
    /// IPU.
    pub fn fit(&self, request: &Request) -> Result<Report> {
        let limits = request.limits(self.profile.target.bytes_per_tile)?;
        let ipus = self.profile.ipus.count as usize;
        if limits.len() > 1 && limits.len() != ipus {
            return Err(usage(format!(
                "--mem-per-tile has {} amounts, but the profile has {}; give one amount, or one \
                 for each IPU",
                limits.len(),
                counted(ipus, "IPU")
            )));
        }
        let warnings = self.warnings.iter().map(|(_, warning)| warning.clone());
        Ok(Report::of_compilation(FitInputs {
            profile: &self.profile,
            layers: self.layers.as_ref(),
            limits,
            detail: request.detail,
            provenance: Provenance {
                arguments: request.arguments.clone(),
                ..self.provenance.clone()
            },
            warnings: warnings.collect(),
            contradictions: self.contradictions.clone(),
        }))
    }
}

/// Layers of each IPU, if there are programs and contexts, and warnings about the contexts.
fn layers_by_ipu(
    profile: &CompiledProfile,
    of_debug: Option<(&Path, &DebugInfo)>,
    options: &CompilationOptions,
) -> Result<(Option<LayersByIpu>, FileWarnings)> {
    let (Some(programs), Some((debug, contexts))) = (&profile.programs, of_debug) else {
        return Ok((None, FileWarnings::new()));
    };
    let (warnings, _) = check_debug(
        (programs, None),
        (debug, contexts),
        options.trust_debug_info,
    )?;
    let found = LayersByIpu::find(programs, contexts, &options.layers, profile.ipus)?;
    Ok((Some(found), warnings))
}

/// Warning that layers cannot be named, with the reason.
fn no_layers(error: &anyhow::Error) -> Warning {
    Warning::new(format!("layers on IPUs are left out: {error:#}"))
}
