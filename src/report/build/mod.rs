//! Builds a report from the model and the result of a search.

mod live_steps;
mod named;
mod peaks;
mod split;
mod tile_map;

pub(super) use named::NamedVariables;
pub use peaks::Peaks;

use super::{LayerNames, Provenance, Report, TiedWeightFacts, answer};
use crate::memory::MemoryModel;
use crate::message::{FileError, Warning};
use crate::model::{Layering, Model, Placement, PositionName, ProfileLookup, WeightTie};
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
    pub fn new(inputs: Inputs<'_>, lookup: Option<&ProfileLookup>) -> Result<Self, FileError> {
        // Looking up names waits for the file, while layers are computed.
        let (named, layers) = rayon::join(|| inputs.named(lookup), || inputs.layers());
        let mut named = named?;
        let of_tiles = named.of_tiles.take();
        let report = Self {
            pseudo_layers: inputs.placement.positions.pseudo_layers(),
            layers,
            tied_weights: inputs.tied_weights(),
            liveness: inputs.peaks.liveness(&inputs, &named),
            live_steps: named.live_steps.take(),
            execution: inputs.execution(),
            warnings: inputs.warnings.iter().map(Warning::to_string).collect(),
            contradictions: inputs.model.contradictions.clone(),
            ..Self::of_memory(inputs.recorded(of_tiles), inputs.provenance.clone())
        };
        let report = match inputs.search {
            Some(found) => report.with_search(&inputs, found, &named),
            None => report,
        };
        Ok(report.without_unearned_verdict())
    }

    /// Adds the result of a search.
    fn with_search(
        self,
        inputs: &Inputs<'_>,
        found: &SearchResult<'_>,
        named: &NamedVariables,
    ) -> Self {
        let split = Some(found).filter(|found| found.costs.request().options.split);
        let shared = match inputs.is_full() {
            true => inputs.memory.ties(),
            false => Vec::new(),
        };
        Self {
            cuts: split.map_or(Vec::new(), |found| inputs.cuts(found, &shared)),
            pipeline: inputs.pipeline(found),
            estimate: found.estimate,
            proof: split.map(answer::proof),
            split: split.map(|found| inputs.split(found, named)),
            refusal: inputs.refusal(found, named),
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
    pub(super) fn name(&self, position: usize) -> Option<String> {
        super::layer_names::layer_name(&self.placement.positions, position)
    }

    pub(super) fn names(&self, positions: impl IntoIterator<Item = usize>) -> LayerNames {
        super::layer_names::layer_names(&self.placement.positions, positions)
    }

    pub(super) fn is_full(&self) -> bool {
        self.detail >= Detail::Full
    }

    /// Returns the half-open range of positions of each stage of the split.
    pub(super) fn stages(&self) -> &[Range<usize>] {
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
