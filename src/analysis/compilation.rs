//! A profile of any number of IPUs, and whether what was compiled fits.

use crate::debug_info::DebugInfo;
use crate::message::{FileWarnings, Warning, displayed};
use crate::model::{LayerOptions, LayersByIpu};
use crate::profile::CompiledProfile;
use crate::progress::Progress;
use crate::report::{Detail, Files, FitInputs, Provenance, Report};
use crate::witnesses::{check_debug, judge};
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A compiled model, and the files that it is from.
#[derive(Debug)]
pub struct Compilation {
    /// The recorded memory of each IPU.
    pub profile: CompiledProfile,
    /// The layers on each IPU, where their names are known.
    layers: Option<LayersByIpu>,
    /// The files.
    pub files: Files,
    /// `framework.json` from beside the profile, where it was read.
    pub framework: Option<Value>,
    /// `app.json` from there.
    pub app: Option<Value>,
    /// Warnings about the files, each with its path.
    pub warnings: FileWarnings,
}

/// Where the contexts of a compilation are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextsOf {
    /// The `debug.cbor`, if there is one.
    pub file: Option<PathBuf>,
    /// Was it named? Else it need not be readable: then layers are left out, with a
    /// warning.
    pub is_named: bool,
    /// Contexts that are damaged or of another compilation are taken all the same.
    pub is_trusted: bool,
}

impl Compilation {
    /// Reads a profile with the contexts that name its layers, which `layers` finds among
    /// its operations. One that contradicts itself is read only with `allow_incomplete`;
    /// there is no verdict on it.
    ///
    /// # Errors
    /// With the name of the file that could not be read or understood.
    pub fn read(
        profile: &Path,
        contexts: &ContextsOf,
        layers: &LayerOptions,
        allow_incomplete: bool,
    ) -> Result<Self> {
        Self::read_with(
            profile,
            contexts,
            layers,
            allow_incomplete,
            &Progress::new(),
        )
    }

    /// Reads both files side by side, telling `progress` how far it is.
    pub(crate) fn read_with(
        path: &Path,
        contexts: &ContextsOf,
        layers: &LayerOptions,
        allow_incomplete: bool,
        progress: &Progress,
    ) -> Result<Self> {
        let debug = contexts.file.as_deref();
        let read_debug = |debug: &Path| {
            let read = DebugInfo::read_with(debug, progress);
            read.with_context(|| displayed(debug))
        };
        let (profile, debug_info) = rayon::join(
            || CompiledProfile::read_with(path, debug.is_some(), progress),
            || debug.map(read_debug).transpose(),
        );
        let profile = profile.with_context(|| displayed(path))?;
        let judged = judge(&profile.contradictions, allow_incomplete);
        let judged = judged.with_context(|| displayed(path))?;
        let all = judged.iter().chain(&profile.warnings).cloned();
        let mut warnings: FileWarnings = all.map(|warning| (displayed(path), warning)).collect();
        let left_out = |error| (displayed(path), no_layers(&error));
        let debug_info = match debug_info {
            Err(error) if !contexts.is_named => {
                warnings.push(left_out(error));
                None
            }
            debug_info => debug_info?,
        };
        let of_debug = debug.zip(debug_info.as_ref());
        let found = layers_by_ipu(&profile, of_debug, layers, contexts.is_trusted);
        let (layers, of_layers) = found.unwrap_or_else(|error| (None, vec![left_out(error)]));
        warnings.extend(of_layers);
        Ok(Self {
            layers: layers.filter(|layers| !layers.names.is_empty()),
            files: Files {
                profile: path.to_string_lossy().into_owned(),
                debug: of_debug.map(|(debug, _)| debug.to_string_lossy().into_owned()),
                saved_model: false,
            },
            profile,
            framework: None,
            app: None,
            warnings,
        })
    }

    /// Whether each IPU fits in `limits`: bytes that a tile may take, one number or one for
    /// each IPU that is listed.
    pub fn fit(&self, limits: Vec<u64>) -> Report {
        self.report(limits, Detail::Full, Vec::new())
    }

    /// Whether it fits, with as much beside that as `detail` has, and how the report was
    /// asked for.
    pub(crate) fn report(
        &self,
        limits: Vec<u64>,
        detail: Detail,
        arguments: Vec<String>,
    ) -> Report {
        let CompiledProfile { target, made, .. } = &self.profile;
        let warnings = self.warnings.iter().map(|(_, warning)| warning.clone());
        Report::of_compilation(FitInputs {
            profile: &self.profile,
            layers: self.layers.as_ref(),
            limits,
            detail,
            provenance: Provenance {
                arguments,
                framework: self.framework.clone(),
                app: self.app.clone(),
                ..Provenance::new(target, made, self.files.clone(), "recorded")
            },
            warnings: warnings.collect(),
        })
    }
}

/// The layers on each IPU, where programs and contexts are there, and warnings about the
/// contexts.
fn layers_by_ipu(
    profile: &CompiledProfile,
    of_debug: Option<(&Path, &DebugInfo)>,
    layers: &LayerOptions,
    is_trusted: bool,
) -> Result<(Option<LayersByIpu>, FileWarnings)> {
    let (Some(programs), Some((debug, contexts))) = (&profile.programs, of_debug) else {
        return Ok((None, FileWarnings::new()));
    };
    let (warnings, _) = check_debug((programs, None), (debug, contexts), is_trusted)?;
    let found = LayersByIpu::find(programs, contexts, layers, profile.ipus)?;
    Ok((Some(found), warnings))
}

/// Says that the names of layers cannot be told, and why.
fn no_layers(error: &anyhow::Error) -> Warning {
    Warning::new(format!("layers on IPUs are left out: {error:#}"))
}
