//! Runs the whole analysis, from a profile and a debug file to a report. [`Analysis`] reads the two
//! files into a model, [`Layers`] assigns each operation of the model to a layer, and
//! [`Analysis::split`] finds the best split for a [`Request`] (`answer.rs`) and for changed
//! requests (`claims.rs`). [`Compilation`] reads a model that was compiled for several IPUs, and
//! tells whether each IPU has enough memory. The command line program calls these functions one by
//! one, since it prints messages between the calls.

mod answer;
mod changed;
mod claims;
mod compilation;
mod further;
mod judged;
mod layers;
mod named_layers;
mod request;
mod split;

pub(crate) use answer::Answers;
pub use compilation::{Compilation, CompilationOptions};
pub use further::FurtherProfile;
pub use judged::JudgedSplit;
pub use layers::Layers;
pub use named_layers::LayerConstraint;
pub use request::Request;
pub(crate) use split::SearchedLayers;

use crate::{
    debug_info::DebugInfo,
    message::{FileWarnings, about, displayed},
    model::{Model, ProfileLookup},
    profile::Profile,
    progress::Progress,
    report::{Files, Provenance, printable},
    saved,
    witnesses::{check, check_debug},
};
use anyhow::{Context, Result};
use std::path::Path;

/// A model, with the warnings and the origin of the files that it was read from.
#[derive(Debug)]
pub struct Analysis {
    /// The operations, variables and recorded memory of the model.
    pub model: Model,
    /// Looks up the lowered variables (parts of tensors on one tile) of any tile, with their names.
    /// `None` for a saved model, and if [`ReadOptions::names`] was not set.
    lookup: Option<ProfileLookup>,
    /// Where the model comes from: the paths of the files, the version of Poplar and the time of
    /// compilation, and the contents of `framework.json` and `app.json` if these were read.
    pub provenance: Provenance,
    /// Number of lowered variables read from the profile, and number of contexts read from the
    /// debug file, in this order; `None` for a saved model.
    pub counts: Option<(usize, usize)>,
    /// Warnings about the files, each with the path of its file. Contradictions between tables of
    /// the files are not among them: the report itself says whether such a contradiction could
    /// change its verdict (whether the split fits).
    pub warnings: FileWarnings,
}

/// Options for reading a profile and a debug file: extra results to compute, and faults to accept.
/// By default, nothing extra is computed and no fault is accepted.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOptions {
    /// Whether to find the tile and liveness step at which the whole model takes the most memory,
    /// with the names of the variables that are live there.
    pub memory_peak: bool,
    /// Whether to keep the data from which a report looks up the variables on a tile and their
    /// names. These data take about 20 bytes for each lowered variable (the part of a tensor on one
    /// tile). A full report needs them.
    pub names: bool,
    /// Whether to accept a profile whose tables contradict each other, and a debug file that is
    /// damaged or belongs to another compilation. The report on such files has no verdict.
    pub allow_incomplete: bool,
}

impl Analysis {
    /// Reads `profile.pop` and `debug.cbor`, with the data to look up names of variables
    /// ([`ReadOptions::names`]) and without progress bars.
    pub fn read(profile: &Path, debug: &Path) -> Result<Self> {
        let options = ReadOptions {
            names: true,
            ..ReadOptions::default()
        };
        Self::read_with(profile, debug, options, &Progress::new())
    }

    pub(crate) fn read_with(
        profile: &Path,
        debug: &Path,
        options: ReadOptions,
        progress: &Progress,
    ) -> Result<Self> {
        let (read, debug_info) = rayon::join(
            || Profile::read_with(profile, progress).context(displayed(profile)),
            || DebugInfo::read_with(debug, progress).context(displayed(debug)),
        );
        let (read, debug_info) = (read?, debug_info?);
        let lacking =
            check_debug(&read.programs, Some(&read), &debug_info).context(displayed(debug))?;
        let of_debug = debug_info.warning().cloned();
        let counts = (read.variables.len(), debug_info.len());
        let _task = progress.begin("joining programs and variables", 0);
        let (mut model, lookup) =
            Model::build(read, debug_info, options.memory_peak).context(displayed(profile))?;
        model.contradictions.extend(lacking);
        let mut analysis = Self::new(
            model,
            Files::of(profile, Some(debug)),
            options.allow_incomplete,
        )?;
        analysis.warnings.splice(0..0, about(debug, &of_debug));
        // Store the warnings about `debug.cbor` in the model too, so that [`Analysis::save`] saves
        // them with the model.
        analysis.model.warnings.splice(0..0, of_debug);
        analysis.lookup = options.names.then_some(lookup);
        analysis.counts = Some(counts);
        Ok(analysis)
    }

    /// Loads a model that [`Analysis::save`] saved.
    ///
    /// # Errors
    /// If the file cannot be read or understood. Also if it is unknown whether the model fits,
    /// because tables of its profile are missing or contradict each other, unless
    /// `allow_incomplete` is set. The error names the file.
    pub fn load(file: &Path, allow_incomplete: bool) -> Result<Self> {
        let model = saved::load(file).context(displayed(file))?;
        let files = Files {
            saved_model: true,
            ..Files::of(file, None)
        };
        Self::new(model, files, allow_incomplete)
    }

    /// Creates the analysis of `model`, which was read from `files`. Returns an error if the files
    /// contradict themselves so much that it is unknown whether the model fits, unless
    /// `allow_incomplete` is set.
    fn new(model: Model, files: Files, allow_incomplete: bool) -> Result<Self> {
        check(&model.contradictions, files.displayed(), allow_incomplete)?;
        Ok(Self {
            warnings: about(Path::new(&files.profile), &model.warnings),
            lookup: None,
            counts: None,
            provenance: Provenance::new(&model.target, &model.made, files),
            model,
        })
    }

    /// Saves the model in one file, which [`Analysis::load`] loads.
    ///
    /// # Errors
    /// If the file cannot be written; the error names the file.
    pub fn save(&self, file: &Path) -> Result<()> {
        saved::save(&self.model, file).context(displayed(file))
    }

    /// Returns the path of the profile or of the saved model, escaped for display in a message.
    fn displayed(&self) -> String {
        printable(&self.provenance.files.profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Layering, Positions, PseudoLayers};
    use std::fs;

    /// Returns what a split divides into stages, in three variants for tests of a model with layers
    /// 0 to 3: `In 0 1 2 3 Out`, `In+Out 0 1 2 3`, and `None 0 1 2 3` (classic memory model). In
    /// and Out are the operations before and after the layers; None is all operations without a
    /// layer.
    pub(super) fn orders() -> [Positions; 3] {
        let names = ["", "0", "1", "2", "3"].map(String::from);
        let layering = Layering::of(names.to_vec(), Vec::new());
        [
            Positions::new(&layering, PseudoLayers::InAndOut),
            Positions::new(&layering, PseudoLayers::OutWithIn),
            Positions::new(&layering, PseudoLayers::NoneFirst),
        ]
    }

    #[test]
    fn names_are_not_fetched_from_a_profile_that_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let copy = |name: &str| {
            let to = folder.path().join(name);
            fs::copy(Path::new("fixtures/poplar-mlp").join(name), &to).unwrap();
            to
        };
        let (profile, debug) = (copy("profile.pop"), copy("debug.cbor"));
        let analysis = Analysis::read(&profile, &debug).unwrap();
        let request = Request::default();
        assert!(analysis.split(&request).is_ok());
        // Change SQLite's change counter, bytes 24 to 27 of the profile, as any write to a database
        // does. The analysis must then refuse to read the profile again.
        let mut bytes = fs::read(&profile).unwrap();
        bytes[27] ^= 1;
        fs::write(&profile, bytes).unwrap();
        let error = analysis.split(&request).unwrap_err();
        assert!(format!("{error:#}").contains("changed"), "{error:#}");
        assert!(format!("{error:#}").contains("profile.pop"), "{error:#}");
    }
}
