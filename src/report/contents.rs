//! Defines what a [`Report`] contains. If contradictions in the profile could change whether a
//! split fits, the report has no verdict; the code that leaves the verdict out is here too.

use super::{
    BestSplit, Cut, Execution, Fit, FitComparison, GivenSplit, LayerMemory, LiveSteps, Liveness,
    PipelineFacts, PlanFacts, Proof, Provenance, RecordedMemory, Refusal, Sentence,
    SharedVariables, Split, Stage, StepFacts, Sweep, WhatIf,
};
use crate::{
    escape::printable,
    memory::Schedule,
    message::{FileWarnings, Warning},
    model::{Framework, PseudoLayers, WeightTie},
    search::free_bytes,
    witnesses::{Contradiction, are_refused, doubts, refuse_close},
    wording::{Units, displayed},
};
use serde::{Deserialize, Serialize};

/// The value of the field `format`, by which programs recognize a JSON document as a report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum DocumentFormat {
    /// The document is a report of PopLiner.
    #[default]
    #[serde(rename = "popliner-report")]
    PoplinerReport,
}

/// The version of the JSON report that this program writes, and the only version that it reads.
pub const VERSION: u32 = 1;

/// The results of one run: the recorded memory, the layers, and the answer to the user's
/// request, such as a split, a plan, or whether a compilation fits. Sections that were not
/// requested are `null` or empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// The format of the document, always `popliner-report`, by which programs recognize a
    /// report.
    pub format: DocumentFormat,
    /// The version of the report format. After the first release, the version grows when a
    /// field is removed or changes its meaning.
    #[cfg_attr(test, schemars(extend("const" = VERSION)))]
    pub version: u32,
    /// The files and options that the report was made from.
    pub provenance: Provenance,
    /// The memory that the compiler recorded in the profile, and the limit in bytes of each
    /// tile.
    pub memory: RecordedMemory,
    /// The pseudo-layers, which stand for operations outside all layers. They determine what the
    /// layer name `null` means:
    /// - `in-and-out`: In, the operations before the layers. Out, those after them, is `"Out"`.
    /// - `out-with-in`: In and Out, both on the first IPU. A list of layers that begins with `null`
    ///   then ends with `"Out"`.
    /// - `none-first`: None, all operations without a layer (`--memory-model classic`)
    pub pseudo_layers: PseudoLayers,
    /// The memory of each layer as a stage of its own, in layer order. The operations outside all
    /// layers have entries, too: In and Out (those before and after the layers), or None (all of
    /// them). With `out-with-in`, the first entry is In and Out together. Empty for a recorded
    /// compilation (`fit`).
    pub layers: Vec<LayerMemory>,
    /// The pipeline for which the memory of stages is computed. `null` without a search, with
    /// the greedy solver, and with the classic memory model.
    pub pipeline: Option<PipelineFacts>,
    /// The split into pipeline stages, and whether it fits; `null` if no split was requested.
    pub split: Option<Split>,
    /// The proof that the split is the best by the objective; `null` if no split was requested.
    pub proof: Option<Proof>,
    /// Why no split fits, and which changes would help; `null` if a split fits or none was
    /// requested.
    pub refusal: Option<Refusal>,
    /// The comparison of a split that the user gave with the best split; `null` if none was
    /// given.
    pub given: Option<GivenSplit>,
    /// The constraints on the split, such as pins of layers to stages, as the user gave them.
    pub constraints: Vec<String>,
    /// Weights that several layers use and that must therefore be on one IPU, most bytes first.
    pub tied_weights: Vec<WeightTie>,
    /// Groups of layers that use the same always-live variables, which a cut between them
    /// duplicates, most bytes first.
    pub shared_variables: Vec<SharedVariables>,
    /// The boundaries between consecutive stages of the split, in order; empty without a split.
    pub cuts: Vec<Cut>,
    /// The live bytes of the whole model at each step of the program; `null` if the profile has
    /// no steps.
    pub liveness: Option<Liveness>,
    /// The variables that are live at the steps that an HTML page draws; `null` unless a page
    /// was requested and the profile can be read again for the names of variables.
    pub live_steps: Option<LiveSteps>,
    /// The best split for each recorded size of a micro-batch, ascending by size; empty unless
    /// `--micro-batch` names several profiles.
    pub sizes: Vec<BestSplit>,
    /// The best split for each number of IPUs (`--sweep`); `null` unless requested.
    pub sweep: Option<Sweep>,
    /// The configurations of IPUs, pipeline and split that fit (`--plan`); `null` unless
    /// requested.
    pub plan: Option<PlanFacts>,
    /// The bytes and cycles of other splits, which an HTML page needs when the reader moves
    /// cuts; `null` unless a split and a page were requested.
    pub what_if: Option<WhatIf>,
    /// The time that the split's pipeline takes for one training or inference step, that is, for
    /// all micro-batches; `null` without cycles in the profile, or without a split.
    pub step: Option<StepFacts>,
    /// The cycles of each layer and stage; `null` if the profile has no cycles.
    pub execution: Option<Execution>,
    /// Whether a recorded compilation fits, IPU by IPU (`--fit`); `null` unless requested. Then
    /// the report has no layers and no split.
    pub fit: Option<Fit>,
    /// Warnings, as sentences, about unusual files or about a doubtful choice of layers.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub warnings: Vec<Warning>,
    /// Contradictions between statements of the profile. The first entries of `warnings` describe
    /// them. Contradictions that could change the verdict are marked as `refused`; the report then
    /// has no verdict, and marks nothing as fitting.
    pub contradictions: Vec<Contradiction>,
}

/// The words that replace "fits" or "does not fit" if contradictions in the profile could change
/// the verdict.
pub const NO_VERDICT: &str = "No verdict, since the profile contradicts itself";

impl Report {
    /// Returns the pipeline stages of the report's split; an empty list if the report has no split.
    pub(crate) fn stages(&self) -> &[Stage] {
        self.split.as_ref().map_or(&[], |split| &split.stages)
    }

    /// Returns the report's split if it fits; otherwise, or if the report has no verdict, `None`.
    pub(super) fn fitting_split(&self) -> Option<&Split> {
        self.split.as_ref().filter(|split| split.fits)
    }

    /// Returns the framework that the profile was recorded with; `None` if the report has no
    /// pipeline.
    pub(crate) fn framework(&self) -> Option<Framework> {
        self.pipeline.as_ref().map(|own| own.recording.framework)
    }

    /// Returns whether the stages of the pipeline run one after the other (`--schedule
    /// sequential`).
    pub(super) fn is_sequential(&self) -> bool {
        (self.pipeline.as_ref()).is_some_and(|own| own.pipeline.schedule == Schedule::Sequential)
    }

    /// Returns how the memory of a compiled model differs from its prediction; `None` if the report
    /// has no such comparison.
    pub(super) fn comparison(&self) -> Option<&FitComparison> {
        self.fit.as_ref()?.comparison.as_ref()
    }

    /// Returns whether the report may say that a split or a compilation fits. Returns `false` if
    /// the profile contradicts itself so much that the verdict could change.
    pub fn has_verdict(&self) -> bool {
        !are_refused(&self.contradictions)
    }

    /// Returns all warnings as text for people. The contradictions come first and in full, since
    /// they affect the verdict; the other warnings follow, shortened if they are long.
    pub(super) fn warnings_for_people(&self) -> Vec<String> {
        (self.warnings.iter().enumerate())
            .map(|(place, text)| {
                if place < self.contradictions.len() {
                    printable(text)
                } else {
                    displayed(text)
                }
            })
            .collect()
    }

    /// Returns `sentence` as plain text, with amounts of memory as exact numbers of bytes.
    pub(super) fn plain(&self, sentence: String) -> String {
        Sentence::from(sentence).plain(Units::Bytes, self.pseudo_layers)
    }

    /// Returns the warnings about contradictions in the files, each with the path of the file that
    /// the warning is about.
    pub(crate) fn doubts(&self) -> FileWarnings {
        let is_judged = self.split.is_some()
            || self.sweep.is_some()
            || self.plan.is_some()
            || self.fit.is_some();
        let files = self.provenance.files.displayed();
        doubts(&self.contradictions, files, is_judged)
    }

    /// Returns the free bytes that decide each verdict (fits or does not fit) of the report; below
    /// 0 if something does not fit. The verdicts are on:
    /// - the split
    /// - each row of the sweep, and each size of a micro-batch
    /// - the first row of the plan
    /// - each IPU of a recorded compilation
    ///
    /// Verdicts with other reasons, such as too few IPUs, are left out.
    fn free_bytes(&self) -> Vec<i64> {
        let of_split = self.split.iter().map(|split| {
            let layers = (split.too_large.iter())
                .map(|layer| free_bytes(split.limit, layer.fullest_tile_bytes));
            let free = split
                .nearest_to_limit()
                .map(|stage| stage.fullest_tile.free);
            (split.fits, free.or(layers.min()).unwrap_or(-1))
        });
        let rows = (self.sweep.iter().flat_map(|sweep| &sweep.rows)).chain(&self.sizes);
        let of_plan = self.plan.iter().filter_map(|plan| plan.rows.first());
        let of_fit = self.fit.iter().flat_map(|fit| &fit.ipus);
        of_split
            .chain(rows.map(|row| (row.fits, row.free)))
            .chain(of_plan.map(|row| (true, row.free)))
            .chain(of_fit.map(|ipu| (ipu.fits, ipu.fullest_tile.free)))
            .filter(|&(fits, free)| fits == (free >= 0))
            .map(|(_, free)| free)
            .collect()
    }

    /// Adds a warning about each contradiction in the profile, and marks contradictions as
    /// `refused` if the bytes in doubt could change a verdict (fits or does not fit) of the report.
    /// If any is refused, leaves out the plan and most other sections on whether the model would
    /// fit with other options. Splits, rows of the sweep and compilations stay, with `fits` set to
    /// `false`.
    pub(super) fn without_unearned_verdict(mut self) -> Self {
        let free = self.free_bytes();
        refuse_close(&mut self.contradictions, free);
        let doubts = self.doubts().into_iter().map(|(_, warning)| warning);
        self.warnings.splice(0..0, doubts);
        if self.has_verdict() {
            return self;
        }
        (self.plan, self.refusal, self.what_if) = (None, None, None);
        self.sizes.clear();
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.alternatives.clear();
            pipeline.with_replicas = None;
        }
        if let Some(split) = &mut self.split {
            split.fits = false;
        }
        let by_counts = self.split.iter_mut().flat_map(|split| &mut split.by_counts);
        (self.sweep.iter_mut().flat_map(|sweep| &mut sweep.rows))
            .chain(self.given.iter_mut().map(|given| &mut given.best))
            .chain(by_counts)
            .for_each(|split| split.fits = false);
        if let Some(fit) = &mut self.fit {
            fit.fits = false;
            fit.ipus.iter_mut().for_each(|ipu| ipu.fits = false);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;

    #[test]
    fn a_report_with_all_sections_reads_back() {
        let report = Report {
            ..testing::report()
        };
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(serde_json::from_value::<Report>(json).unwrap(), report);
    }
}
