//! Builds a report from the model and the result of a search.

mod answer;
mod live_steps;
mod named;
mod peaks;
mod pipeline;
mod plan;
mod recorded;
mod split;
mod tile_map;
mod what_if;

pub use peaks::Peaks;
use peaks::StageSections;

use super::{LayerNames, Provenance, Report, TiedWeightFacts};
use crate::memory::MemoryModel;
use crate::message::Warning;
use crate::model::{Layering, Model, Placement, PositionName, ProfileLookup, WeightTie};
use crate::profile::ProfileError;
use crate::report::StepFacts;
use crate::search::SearchResult;
use std::ops::Range;

/// The inputs of a report.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// The model.
    pub model: &'a Model,
    /// The layer of each operation.
    pub layering: &'a Layering,
    /// The positions that operations and variables are assigned to, and the layer order.
    pub placement: &'a Placement,
    /// The memory of the model.
    pub memory: &'a MemoryModel<'a>,
    /// The result of a search, when one was requested.
    pub search: Option<&'a SearchResult<'a>>,
    /// The live curves, from [`Peaks::new`].
    pub peaks: Peaks,
    /// Bytes that a stage may take on each tile: the highest limit of any IPU.
    pub limit: u64,
    /// How much is computed beside the split.
    pub detail: Detail,
    /// How the report is made.
    pub provenance: Provenance,
    /// Warnings about the files and the layers.
    pub warnings: Vec<Warning>,
}

/// How much a report has beside the split. More detail takes more time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Detail {
    /// The split, its proof or refusal, and the recorded memory.
    Split,
    /// Everything except data that only a page shows.
    #[default]
    Full,
    /// Everything.
    Page,
}

impl Report {
    /// Makes the report. `lookup` reads the profile again for the names of variables; without it
    /// the report has only names that a saved model contains.
    ///
    /// # Errors
    /// When the profile cannot be read again, or has changed since.
    pub fn new(
        mut inputs: Inputs<'_>,
        lookup: Option<&ProfileLookup>,
    ) -> Result<Self, ProfileError> {
        // Looking up names waits for the file, while layers are computed.
        let (named, layers) = rayon::join(|| inputs.named(lookup), || inputs.layers());
        let named = named?;
        let peaks = std::mem::take(&mut inputs.peaks);
        let lacking = named.lacking(&inputs);
        let (liveness, stages) = peaks.into_sections(&inputs, &named);
        let warnings = inputs.warnings.iter().map(Warning::to_string).collect();
        let search = inputs.search;
        // Layers that share variables matter only for a search.
        let shared = match search {
            Some(_) if inputs.is_full() => inputs.memory.ties(),
            _ => Vec::new(),
        };
        let report = Self {
            pseudo_layers: inputs.placement.positions.pseudo_layers(),
            layers,
            tied_weights: inputs.tied_weights(),
            liveness,
            live_steps: named.live_steps,
            execution: inputs.execution(),
            warnings,
            contradictions: inputs.model.contradictions.clone(),
            ..Self::of_memory(inputs.recorded(named.of_tiles), inputs.provenance.clone())
        };
        let mut report = match search {
            Some(found) => report.with_search(&inputs, found, stages, shared),
            None => report,
        };
        let refusal = report.refusal.as_mut();
        if let Some(advice) = refusal.and_then(|refusal| refusal.advice.as_mut()) {
            advice.largest = lacking;
        }
        Ok(report.without_unearned_verdict())
    }

    /// Adds the result of a search.
    fn with_search(
        self,
        inputs: &Inputs<'_>,
        found: &SearchResult<'_>,
        stages: Vec<StageSections>,
        shared: Vec<(Vec<u32>, u64)>,
    ) -> Self {
        let split = Some(found).filter(|found| found.costs.request().split);
        Self {
            cuts: split.map_or(Vec::new(), |found| inputs.cuts(found, &shared)),
            pipeline: inputs.pipeline(found),
            estimate: found.estimate,
            proof: split.map(answer::proof),
            split: split.map(|found| inputs.split(found, stages)),
            refusal: inputs.refusal(found),
            given: inputs.given(found),
            constraints: answer::constraints(found),
            shared_variables: inputs.shared_variables(shared),
            sweep: inputs.sweep(found),
            what_if: split.and_then(|found| inputs.what_if(found)),
            step: split.and_then(StepFacts::new),
            plan: inputs.plan(found),
            ..self
        }
    }
}

impl Inputs<'_> {
    fn name(&self, position: usize) -> Option<String> {
        super::layer_names::layer_name(&self.placement.positions, position)
    }

    fn names(&self, positions: impl IntoIterator<Item = usize>) -> LayerNames {
        super::layer_names::layer_names(&self.placement.positions, positions)
    }

    fn is_full(&self) -> bool {
        self.detail >= Detail::Full
    }

    /// Returns the half-open range of positions of each stage of the split.
    fn stages(&self) -> &[Range<usize>] {
        self.search.map_or(&[], |found| &found.shown.stages)
    }

    /// Returns the weights that several layers use, and the stages of the split that have them.
    fn tied_weights(&self) -> Vec<TiedWeightFacts> {
        let positions = &self.placement.positions;
        let facts = |tie: &WeightTie| {
            let uses = |range: &Range<usize>| {
                let mut places = tie.places.iter();
                places.any(|&place| range.contains(&positions.of_place(place)))
            };
            let stages = (0u32..).zip(self.stages());
            let layers = tie.places.iter();
            let layers = layers.map(|&place| match positions.name_of_place(place) {
                PositionName::In => None,
                name => Some(name.to_string()),
            });
            TiedWeightFacts {
                weight: tie.weight.clone(),
                bytes: tie.bytes,
                layers: layers.collect(),
                untied: tie.is_untied,
                stages: stages
                    .filter(|(_, range)| uses(range))
                    .map(|(stage, _)| stage)
                    .collect(),
            }
        };
        self.placement.ties.iter().map(facts).collect()
    }
}
