//! Reads a model that was already compiled for one or more IPUs, and checks whether each IPU has
//! enough memory for its part of the model.

use super::Request;
use crate::{
    debug_info::DebugInfo,
    message::{FileWarnings, Warning, about, displayed, usage},
    model::{LayerOptions, LayersByIpu},
    profile::CompiledProfile,
    progress::Progress,
    report::{Files, FitInputs, Provenance, Report},
    witnesses::{Contradiction, check, check_compilation, check_debug},
    wording::counted,
};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// A model that was compiled for one or more IPUs: its profile, the layers on each IPU, the origin
/// of its files, and warnings about these files.
#[derive(Debug)]
pub struct Compilation {
    /// The compiled model as its profile records it: the bytes on each tile of each IPU.
    pub profile: CompiledProfile,
    /// The layers that run on each IPU; `None` if no `debug.cbor` was read, or no operation has a
    /// layer.
    layers: Option<LayersByIpu>,
    /// The paths of the files, the version of Poplar, the target, and other facts about the
    /// compilation that the report repeats.
    pub provenance: Provenance,
    /// Warnings about the files, each with the path of the file that it concerns.
    pub warnings: FileWarnings,
    /// Contradictions between tables of the profile, and missing data, which make its numbers
    /// uncertain.
    pub contradictions: Vec<Contradiction>,
}

/// Options for reading a model that was compiled for one or more IPUs.
#[derive(Debug, Clone, Default)]
pub struct CompilationOptions {
    /// Path of the `debug.cbor`, which gives the layers of operations; `None` if there is no such
    /// file.
    pub debug: Option<PathBuf>,
    /// Whether the user named the `debug.cbor`. If the user did, a file that cannot be read is an
    /// error; otherwise the report lacks layers and has a warning.
    pub is_debug_named: bool,
    /// How layers are found from the names of operations, such as by a regex.
    pub layers: LayerOptions,
    /// Whether to accept a profile that contradicts itself. The report on such a profile has no
    /// verdict.
    pub allow_incomplete: bool,
}

impl Compilation {
    /// Reads the `profile.pop` at `profile` and, to find the layers of operations, the `debug.cbor`
    /// that `options` names.
    ///
    /// # Errors
    /// If the profile, or a `debug.cbor` that the user named, cannot be read or understood; the
    /// error names the file. Also if a table with the memory of the tiles is empty, unless
    /// `options` allows an incomplete profile.
    pub fn read(profile: &Path, options: &CompilationOptions) -> Result<Self> {
        Self::read_with(profile, options, &Progress::new())
    }

    pub(crate) fn read_with(
        path: &Path,
        options: &CompilationOptions,
        progress: &Progress,
    ) -> Result<Self> {
        let debug = options.debug.as_deref();
        let read_debug =
            |debug: &Path| DebugInfo::read_with(debug, progress).context(displayed(debug));
        let (profile, debug_info) = rayon::join(
            || CompiledProfile::read_with(path, debug.is_some(), progress),
            || debug.map(read_debug).transpose(),
        );
        let profile = profile.context(displayed(path))?;
        let contradictions = check_compilation(&profile);
        let files = Files::of(path, None).displayed();
        check(&contradictions, files, options.allow_incomplete)?;
        let mut warnings = about(path, &profile.warnings);
        let left_out = |error| {
            let warning = Warning::new(format!("layers on IPUs are left out: {error:#}"));
            (displayed(path), warning)
        };
        let debug_info = match debug_info {
            Err(error) if !options.is_debug_named => {
                warnings.push(left_out(error));
                None
            }
            debug_info => debug_info?,
        };
        let of_debug = debug.zip(debug_info.as_ref());
        let (layers, of_layers) = layers_by_ipu(&profile, of_debug, options)
            .unwrap_or_else(|error| (None, vec![left_out(error)]));
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

    /// Returns a report on whether the recorded memory of each IPU is within the limits of
    /// `request`.
    ///
    /// # Errors
    /// If the reserve of `request` is the whole memory of a tile, or if `request` has several
    /// amounts of memory but not one for each IPU.
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
        Ok(Report::of_compilation(FitInputs {
            profile: &self.profile,
            layers: self.layers.as_ref(),
            limits,
            detail: request.detail,
            provenance: Provenance {
                arguments: request.arguments.clone(),
                ..self.provenance.clone()
            },
            warnings: self
                .warnings
                .iter()
                .map(|(_, warning)| warning.clone())
                .collect(),
            contradictions: self.contradictions.clone(),
        }))
    }
}

/// Returns the layers that run on each IPU, and warnings about `debug.cbor`. There are no layers if
/// the profile has no program tree or `debug.cbor` was not read; `of_debug` has the path and the
/// contexts of that file.
fn layers_by_ipu(
    profile: &CompiledProfile,
    of_debug: Option<(&Path, &DebugInfo)>,
    options: &CompilationOptions,
) -> Result<(Option<LayersByIpu>, FileWarnings)> {
    let (Some(programs), Some((debug, contexts))) = (&profile.programs, of_debug) else {
        return Ok((None, FileWarnings::new()));
    };
    check_debug(programs, None, contexts).context(displayed(debug))?;
    let layers = LayersByIpu::find(programs, contexts, &options.layers, profile.ipus)?;
    Ok((Some(layers), about(debug, contexts.warning())))
}
