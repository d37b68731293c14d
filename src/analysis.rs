//! The short way from two files to a report: [`Analysis`] reads them, [`Layers`] has the layer of
//! each operation, and [`Layers::split`] finds the best split. [`Compilation`] is a model compiled
//! for several IPUs, and says whether it fits. The command uses the same functions, step by step.

mod compilation;
#[cfg(test)]
mod tests;

pub use compilation::{Compilation, ContextsOf};

use crate::debug_info::DebugInfo;
use crate::memory::MemoryModel;
use crate::message::Warning;
pub(crate) use crate::message::{FileWarnings, displayed};
use crate::model::{
    LayerOptions, Layering, Model, Placement, PlacementOptions, ProfileLookup, Rules,
};
use crate::profile::Profile;
use crate::progress::{Progress, Unit};
use crate::report::{Detail, Files, Inputs, Peaks, Provenance, Report, printable};
use crate::saved;
use crate::search::{SearchRequest, SearchResult, search_states};
use crate::witnesses::{Witness, check_debug, judge, one_stage};
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;

/// A model, with information about the files that it was read from.
#[derive(Debug)]
pub struct Analysis {
    /// The model.
    pub model: Model,
    /// Finds variables by name; `None` for a saved model.
    lookup: Option<ProfileLookup>,
    /// The files.
    pub files: Files,
    /// `framework.json` from the folder of the profile, if it was read.
    pub framework: Option<Value>,
    /// `app.json` from the folder of the profile, if it was read.
    pub app: Option<Value>,
    /// Number of lowered variables and of contexts read; `None` for a saved model.
    pub counts: Option<(usize, usize)>,
    /// Warnings about the files, each with the path of its file.
    pub warnings: FileWarnings,
}

/// Options for reading files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// Find the tile and step at which the whole model takes the most memory, with the names of
    /// live variables?
    pub memory_peak: bool,
    /// Build an index that finds variables by name, for a full report? It takes some 20 bytes for
    /// each lowered variable.
    pub names: bool,
    /// Accept contexts that are damaged or belong to another compilation?
    pub trust_debug_info: bool,
    /// Accept a profile that contradicts itself? There is no verdict on it.
    pub allow_incomplete: bool,
}

/// A model with its layers.
#[derive(Debug)]
pub struct Layers<'a> {
    analysis: &'a Analysis,
    /// Layer of each operation.
    pub layering: Layering,
    /// Layers to which operations and variables belong, and the layer order.
    pub placement: Placement,
    /// Warnings about layers and placement.
    pub warnings: Vec<Warning>,
}

impl Analysis {
    /// Reads `profile.pop` and `debug.cbor`.
    ///
    /// # Errors
    /// Names the file that could not be read or understood.
    pub fn read(profile: &Path, debug: &Path) -> Result<Self> {
        let options = ReadOptions {
            memory_peak: false,
            names: true,
            trust_debug_info: false,
            allow_incomplete: false,
        };
        Self::read_with(profile, debug, options, &Progress::new())
    }

    /// Reads both files in parallel, and reports to `progress`.
    pub(crate) fn read_with(
        profile: &Path,
        debug: &Path,
        options: ReadOptions,
        progress: &Progress,
    ) -> Result<Self> {
        let (read, debug_info) = rayon::join(
            || Profile::read_with(profile, progress).with_context(|| displayed(profile)),
            || DebugInfo::read_with(debug, progress).with_context(|| displayed(debug)),
        );
        let (read, debug_info) = (read?, debug_info?);
        let of_debug = (debug, &debug_info);
        let with_profile = (&read.programs, Some(&read));
        let (of_debug, lacking) = check_debug(with_profile, of_debug, options.trust_debug_info)?;
        let counts = (read.variables.len(), debug_info.len());
        let _task = progress.begin("joining programs and variables", Unit::Rows, 0);
        let built = Model::build_with_lookup(read, debug_info, options.memory_peak);
        let (mut model, lookup) = built.with_context(|| displayed(profile))?;
        model.contradictions.extend(one_stage(&model));
        model.contradictions.extend(lacking);
        let of_model = warnings_of(&model, (profile, debug), options.allow_incomplete)?;
        // Saved with the model too, so warnings about contexts are part of it.
        let of_contexts = of_debug.iter().map(|(_, warning)| warning.clone());
        model.warnings.splice(0..0, of_contexts);
        Ok(Self {
            warnings: [of_debug, of_model].concat(),
            model,
            lookup: Some(lookup).filter(|_| options.names),
            counts: Some(counts),
            framework: None,
            app: None,
            files: Files {
                profile: profile.to_string_lossy().into_owned(),
                debug: Some(debug.to_string_lossy().into_owned()),
                saved_model: false,
            },
        })
    }

    /// Loads a model that [`Analysis::save`] saved.
    ///
    /// # Errors
    /// Names the file if it could not be read or understood, or if the profile of the model
    /// contradicts itself and `allow_incomplete` is false.
    pub fn load(file: &Path, allow_incomplete: bool) -> Result<Self> {
        let model = saved::load(file).with_context(|| displayed(file))?;
        Ok(Self {
            warnings: warnings_of(&model, (file, file), allow_incomplete)?,
            model,
            lookup: None,
            counts: None,
            framework: None,
            app: None,
            files: Files {
                profile: file.to_string_lossy().into_owned(),
                debug: None,
                saved_model: true,
            },
        })
    }

    /// Saves the model in one file.
    ///
    /// # Errors
    /// Names the file if it cannot be written.
    pub fn save(&self, file: &Path) -> Result<()> {
        saved::save(&self.model, file).with_context(|| displayed(file))
    }

    /// Assigns operations to layers.
    ///
    /// # Errors
    /// If operations share variables in more ways than in any real model.
    pub fn layers(
        &self,
        rules: Rules,
        layers: &LayerOptions,
        places: &PlacementOptions,
    ) -> Result<Layers<'_>> {
        let layering = Layering::new(&self.model, layers);
        self.placed(layering, rules, places)
    }

    /// Places variables and operations in the layers of `layering`.
    pub(crate) fn placed(
        &self,
        mut layering: Layering,
        rules: Rules,
        places: &PlacementOptions,
    ) -> Result<Layers<'_>> {
        let place = |layering: &Layering| {
            let placement = match rules {
                Rules::Classic => Placement::classic(&self.model, layering),
                Rules::Full => Placement::full(&self.model, layering, places),
            };
            placement.with_context(|| self.displayed())
        };
        let mut placement = place(&layering)?;
        if let Some(free) = layering.without_tied_ends(&self.model, &placement.ties) {
            placement = place(&free)?;
            layering = free;
        }
        Ok(Layers {
            warnings: self.model.layer_warnings(&layering, rules),
            placement,
            analysis: self,
            layering,
        })
    }

    fn displayed(&self) -> String {
        printable(&self.files.profile)
    }
}

impl<'a> Layers<'a> {
    pub(crate) fn model(&self) -> &'a Model {
        &self.analysis.model
    }

    /// The model with other layers.
    ///
    /// # Errors
    /// As [`Analysis::layers`].
    pub(crate) fn with(
        &self,
        layering: Layering,
        rules: Rules,
        places: &PlacementOptions,
    ) -> Result<Layers<'a>> {
        self.analysis.placed(layering, rules, places)
    }

    /// Position of a layer in the layer order, by its name or `In`, `Out` or `None`. Constraints
    /// use these positions.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.placement.positions.find(name)
    }

    /// Model of memory, which computes the bytes of layers and stages.
    ///
    /// # Errors
    /// If layers share code in more ways than in any real model.
    pub fn memory(&self) -> Result<MemoryModel<'_>> {
        let memory = MemoryModel::new(&self.analysis.model, &self.placement);
        memory.with_context(|| self.analysis.displayed())
    }

    /// Finds the best split and builds its report.
    ///
    /// # Errors
    /// If constraints contradict each other, the profile cannot be read again for the names of
    /// variables, or data are too uncertain for an answer.
    pub fn split(&self, request: SearchRequest) -> Result<Report> {
        let pipeline = request.pipeline.choose(&self.analysis.model);
        let memory = self.memory()?.in_pipeline(pipeline);
        let memory = memory.with_context(|| self.analysis.displayed())?;
        let highest = request.highest_limit();
        let (memory, found) = search_states(&memory, &self.placement, request, &Progress::new())?;
        self.report(&memory, Some(&found), highest, Detail::Full, Vec::new())
    }

    /// Builds the report. Names of variables are fetched from the profile, which must not have
    /// changed.
    pub(crate) fn report(
        &self,
        memory: &MemoryModel<'_>,
        found: Option<&SearchResult>,
        limit: u64,
        detail: Detail,
        arguments: Vec<String>,
    ) -> Result<Report> {
        let Analysis { model, lookup, .. } = self.analysis;
        // Names come with the bytes in the profile, not with bytes estimated for another
        // micro-batch.
        let is_recorded = found.is_none_or(|found| found.estimate.is_none());
        let lookup = lookup.as_ref().filter(|_| is_recorded);
        let inputs = Inputs {
            model,
            layering: &self.layering,
            placement: &self.placement,
            memory,
            search: found,
            peaks: Peaks::new(model, memory, found, detail),
            limit,
            detail,
            provenance: Provenance {
                arguments,
                framework: self.analysis.framework.clone(),
                app: self.analysis.app.clone(),
                layer_name_regex: self.layering.regex().map(|regex| regex.to_string()),
                ..Provenance::new(
                    &model.target,
                    &model.made,
                    self.analysis.files.clone(),
                    self.placement.rules.name(),
                )
            },
            warnings: self.warnings_of(memory, found),
        };
        Report::new(inputs, lookup).with_context(|| self.analysis.displayed())
    }

    /// All warnings of the report.
    fn warnings_of(&self, memory: &MemoryModel<'_>, found: Option<&SearchResult>) -> Vec<Warning> {
        let of_files = self.analysis.warnings.iter();
        let of_files = of_files.map(|(_, warning)| warning.clone());
        let of_search = found.map(|found| warnings_of_search(memory, found));
        let all = of_files.chain(self.warnings.iter().cloned());
        all.chain(of_search.into_iter().flatten()).collect()
    }
}

/// Warnings about the result of a search.
pub(crate) fn warnings_of_search(
    memory: &MemoryModel<'_>,
    found: &SearchResult,
) -> impl Iterator<Item = Warning> {
    let of_recording = memory.recording_warning().into_iter();
    of_recording.chain(memory.update_warning(&found.stages))
}

/// Warnings about a model, each with the path of the file that it is about.
///
/// # Errors
/// If the model contradicts itself and `allow_incomplete` is false.
fn warnings_of(
    model: &Model,
    (profile, debug): (&Path, &Path),
    allow_incomplete: bool,
) -> Result<FileWarnings> {
    let all = &model.contradictions;
    let judged = judge(all, allow_incomplete).with_context(|| displayed(profile))?;
    let file = |witness| match witness {
        Witness::DebugContexts => displayed(debug),
        _ => displayed(profile),
    };
    let judged = all.iter().map(|found| file(found.witness)).zip(judged);
    let others = model
        .warnings
        .iter()
        .map(|warning| (displayed(profile), warning.clone()));
    Ok(judged.chain(others).collect())
}
