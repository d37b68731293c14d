//! The steps from layers to a report on the best split: the memory model, the search and the
//! report.

use super::layers::no_layers;
use super::{Analysis, Layers, Request};
use crate::memory::MemoryModel;
use crate::message::{Warning, refused};
use crate::model::Model;
use crate::progress::Progress;
use crate::report::{Inputs, Peaks, Provenance, Report};
use crate::search::{self, SearchError, SearchResult};
use crate::solve::{Limits, SolveError};
use anyhow::{Context, Error, Result};

impl<'a> Layers<'a> {
    /// Returns the model whose layers these are.
    pub(crate) fn model(&self) -> &'a Model {
        &self.analysis.model
    }

    /// Returns the position of a layer in the layer order, by its name or `In`, `Out` or `None`;
    /// `None` if there is no such layer. Constraints use these positions.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.placement.positions.find(name)
    }

    /// Returns the memory model, which computes the bytes of layers and stages.
    ///
    /// # Errors
    /// If the distinct sets of layers that share code or variables have more than 2^24 layers in
    /// all; no real model comes near this.
    pub fn memory(&self) -> Result<MemoryModel<'_>> {
        let memory = MemoryModel::new(&self.analysis.model, &self.placement);
        memory.with_context(|| self.analysis.displayed())
    }

    /// Finds the best split and builds its report. If a layer is over the limit as a stage of its
    /// own, the split is of finer layers.
    ///
    /// # Errors
    /// If options of `request` contradict each other or name layers that do not exist, if the
    /// profile cannot be read again for the names of variables, or if data are too uncertain for a
    /// verdict.
    pub fn split(&self, request: &Request) -> Result<Report> {
        let mut request = request.clone();
        request.options.split = true;
        let searched = self.search(&self.memory()?, &request, &Progress::new())?;
        match searched.finer(&request)? {
            Some(finer) => finer.split(&request),
            None => searched.report(&request),
        }
    }

    /// Runs the search of `request` with the memory of stages in its pipeline; `memory` is the
    /// memory model without a pipeline. If the request needs no search, the `result` is `None`.
    ///
    /// # Errors
    /// As [`split`](Self::split), and if the model has no layers.
    pub(crate) fn search<'l>(
        &'l self,
        memory: &MemoryModel<'l>,
        request: &Request,
        progress: &Progress,
    ) -> Result<SearchedLayers<'l>> {
        let model = self.model();
        if request.has_search() && self.layering.is_empty() {
            return Err(no_layers(model, &self.layering));
        }
        let search = request.search(model, &self.placement)?;
        let memory = memory.in_pipeline(request.pipeline(model)?);
        let memory = memory.with_context(|| self.analysis.displayed())?;
        let (memory, result) = match search {
            None => (memory, None),
            Some(search) => {
                let result = search::search(&memory, &self.placement, search, progress);
                let result = result.map_err(|error| self.refused(error))?;
                (result.costs.memory.clone(), Some(result))
            }
        };
        let layers = self;
        Ok(SearchedLayers {
            layers,
            memory,
            result,
        })
    }

    /// Turns an error of a search into an error of the command. Constraints or tied weights that
    /// contradict each other count as wrong usage (exit code 2).
    fn refused(&self, error: SearchError) -> Error {
        match error {
            SearchError::Solve(
                error @ (SolveError::Contradiction(_) | SolveError::NoSuchPosition(..)),
            ) => refused(&error),
            SearchError::TooManyPlaces(_) => Error::from(error).context(self.analysis.displayed()),
            error => error.into(),
        }
    }

    /// Returns the part of the report about its origin: the files, the arguments of the command,
    /// the layer regex and the memory model.
    fn provenance(&self, request: &Request) -> Provenance {
        Provenance {
            arguments: request.arguments.clone(),
            layer_name_regex: self.layering.regex().map(ToString::to_string),
            memory_model: request.rules.name().to_owned(),
            ..self.analysis.provenance.clone()
        }
    }
}

/// Layers, and the result of the search for the best split of them.
#[derive(Debug)]
pub(crate) struct SearchedLayers<'l> {
    /// The layers that were searched.
    pub(crate) layers: &'l Layers<'l>,
    /// The memory model in the pipeline of the best split, with its place of the optimizer state;
    /// without a pipeline if no search was requested.
    memory: MemoryModel<'l>,
    /// The result of the search; `None` if none was requested.
    pub(crate) result: Option<SearchResult<'l>>,
}

impl<'l> SearchedLayers<'l> {
    /// Returns the layers by which layers over the limit are replaced, as [`Layers::finer`] says;
    /// `None` if no search was requested.
    pub(crate) fn finer(&self, request: &Request) -> Result<Option<Layers<'l>>> {
        let finer = self.result.as_ref();
        let finer = finer.map(|result| self.layers.finer(result, request));
        Ok(finer.transpose()?.flatten())
    }

    /// Returns warnings about the split: about recorded memory, and about the optimizer update.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let Some(result) = &self.result else {
            return Vec::new();
        };
        let of_recording = self.memory.recording_warning().into_iter();
        let of_update = self.memory.update_warning(&result.shown.stages);
        of_recording.chain(of_update).collect()
    }

    /// Builds the report. Names of variables are read from the profile again.
    ///
    /// # Errors
    /// If the profile has changed since it was first read.
    pub(crate) fn report(&self, request: &Request) -> Result<Report> {
        let Self {
            layers,
            memory,
            result,
        } = self;
        let result = result.as_ref();
        let Analysis { model, lookup, .. } = layers.analysis;
        let bytes_per_tile = model.target.bytes_per_tile;
        let of_files = layers.analysis.warnings.iter();
        let warnings = of_files.map(|(_, warning)| warning);
        let warnings = warnings.chain(&layers.warnings).cloned();
        let inputs = Inputs {
            model,
            layering: &layers.layering,
            placement: &layers.placement,
            memory,
            search: result,
            peaks: Peaks::new(model, memory, result, request.detail),
            limit: Limits::new(&request.limits(bytes_per_tile)?).highest(),
            detail: request.detail,
            provenance: layers.provenance(request),
            warnings: warnings.chain(self.warnings()).collect(),
        };
        let report = Report::new(inputs, lookup.as_ref());
        let mut report = report.with_context(|| layers.analysis.displayed())?;
        if let Some(what_if) = &mut report.what_if {
            what_if.memories = request.memories(bytes_per_tile);
            let reserve = |&memory: &u64| request.options.reserve.of(memory);
            what_if.reserves = what_if.memories.iter().map(reserve).collect();
        }
        Ok(report)
    }
}
