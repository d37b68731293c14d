//! From layers to the best split: memory, search and report.

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
    /// Returns the model.
    pub(crate) fn model(&self) -> &'a Model {
        &self.analysis.model
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

    /// Finds the best split and builds its report. Finer layers replace a layer that is over the
    /// limit by itself.
    ///
    /// # Errors
    /// If the request contradicts itself or the layers, the profile cannot be read again for the
    /// names of variables, or data are too uncertain for an answer.
    pub fn split(&self, request: &Request) -> Result<Report> {
        let (memory, result) = self.search(self.memory()?, request, &Progress::new())?;
        let finer = result.as_ref().map(|result| self.finer(result, request));
        match finer.transpose()?.flatten() {
            Some(finer) => finer.split(request),
            None => self.report(&memory, result.as_ref(), request),
        }
    }

    /// Runs the search that `request` needs, if any. The returned model has the pipeline of the
    /// answer, with the optimizer state where the answer has it.
    pub(crate) fn search<'m>(
        &self,
        memory: MemoryModel<'m>,
        request: &Request,
        progress: &Progress,
    ) -> Result<(MemoryModel<'m>, Option<SearchResult<'m>>)> {
        let search = request.search(self)?;
        let memory = memory.in_pipeline(request.pipeline(self)?);
        let memory = memory.with_context(|| self.analysis.displayed())?;
        let Some(search) = search else {
            return Ok((memory, None));
        };
        let result = search::search(&memory, &self.placement, search, progress);
        let result = result.map_err(|error| match error {
            // Constraints or ties of weights that contradict each other are wrong usage.
            SearchError::Solve(
                error @ (SolveError::Contradiction(_) | SolveError::NoSuchPosition { .. }),
            ) => refused(&error),
            SearchError::TooManyPlaces(_) => Error::from(error).context(self.analysis.displayed()),
            error => error.into(),
        })?;
        Ok((result.costs.memory.clone(), Some(result)))
    }

    /// IPUs of the split to judge that run nothing, from 0.
    pub(crate) fn idle_ipus(&self, request: &Request) -> Vec<usize> {
        let judged = request.judged.as_ref();
        judged.map_or(Vec::new(), |judged| {
            judged.idle_ipus(&self.placement.positions)
        })
    }

    /// Builds the report. Names of variables are fetched from the profile, which must not have
    /// changed.
    pub(crate) fn report(
        &self,
        memory: &MemoryModel<'_>,
        result: Option<&SearchResult<'_>>,
        request: &Request,
    ) -> Result<Report> {
        let Analysis { model, lookup, .. } = self.analysis;
        let bytes_per_tile = model.target.bytes_per_tile;
        // Names come with the bytes in the profile, not with bytes estimated for another
        // micro-batch.
        let is_recorded = result.is_none_or(|result| result.estimate.is_none());
        let lookup = lookup.as_ref().filter(|_| is_recorded);
        let inputs = Inputs {
            model,
            layering: &self.layering,
            placement: &self.placement,
            memory,
            search: result,
            peaks: Peaks::new(model, memory, result, request.detail),
            limit: Limits::new(&request.limits(bytes_per_tile)?).highest(),
            detail: request.detail,
            provenance: self.provenance(request),
            warnings: self.warnings_of(memory, result),
        };
        let mut report = Report::new(inputs, lookup).with_context(|| self.analysis.displayed())?;
        if let Some(what_if) = &mut report.what_if {
            what_if.memories = request.memories(bytes_per_tile);
            let reserve = |&memory: &u64| request.reserve.of(memory);
            what_if.reserves = what_if.memories.iter().map(reserve).collect();
        }
        Ok(report)
    }

    /// Returns how the report is made.
    fn provenance(&self, request: &Request) -> Provenance {
        let Analysis { model, files, .. } = self.analysis;
        Provenance {
            arguments: request.arguments.clone(),
            framework: self.analysis.framework.clone(),
            app: self.analysis.app.clone(),
            layer_name_regex: self.layering.regex().map(|regex| regex.to_string()),
            ..Provenance::new(
                &model.target,
                &model.made,
                files.clone(),
                request.rules.name(),
            )
        }
    }

    /// Returns all warnings of the report.
    fn warnings_of(
        &self,
        memory: &MemoryModel<'_>,
        found: Option<&SearchResult<'_>>,
    ) -> Vec<Warning> {
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
    found: &SearchResult<'_>,
) -> impl Iterator<Item = Warning> {
    let of_recording = memory.recording_warning().into_iter();
    of_recording.chain(memory.update_warning(&found.shown.stages))
}
