//! Builds a report from a model and the result of a search for splits.

mod live_steps;
mod named;
mod peaks;
mod split;
mod tile_map;

pub(super) use named::NamedVariables;
pub use peaks::Peaks;

use super::{
    Provenance, RecordedMemory, Report, SharedVariables, StepFacts, VERSION, WhatIf, answer,
};
use crate::{
    memory::MemoryModel,
    message::{FileError, Warning},
    model::{LayerNames, Layering, Model, Placement, ProfileLookup, WeightTie},
    profile::Recorded,
    search::{SearchResult, Word},
};
use std::{mem::swap, ops::Range};

/// A report lists at most this many groups of layers that use the same always-live variables.
const MAX_SHARED: usize = 100;

/// The data from which a report on a model and its splits is made. (A report on a pipeline that
/// Poplar has already compiled is made from other data.)
pub struct Inputs<'a> {
    /// The operations, variables and steps of the model, as the profile describes them.
    pub model: &'a Model,
    /// The layer that each operation belongs to, if any.
    pub layering: &'a Layering,
    /// The layer order (In, the layers, Out), and the positions of the layer order that each
    /// operation and each variable is assigned to.
    pub placement: &'a Placement,
    /// The memory model, which computes the bytes of ranges of layers on each tile.
    pub memory: &'a MemoryModel<'a>,
    /// The result of the search for splits; `None` if the user requested nothing that needs a
    /// search.
    pub search: Option<&'a SearchResult<'a>>,
    /// The curves of live bytes over the steps of the program, from [`Peaks::new`].
    pub peaks: Peaks,
    /// Bytes that a stage may take on each tile; the highest limit if the IPUs have different
    /// limits.
    pub limit: u64,
    /// How much the report contains besides the split.
    pub detail: Detail,
    /// The files and options that the report is made from.
    pub provenance: Provenance,
    /// Warnings about the files and about the choice of layers.
    pub warnings: Vec<Warning>,
    /// A function that returns the user's command line with the given words changed, such as
    /// another number of IPUs. It returns an empty text if the request did not come from a command
    /// line.
    pub command: &'a (dyn Fn(&[Word]) -> String + Sync),
}

/// How much a report contains besides the split. More detail takes more time to compute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// The report has only the split, the proof of the split or the reason why no split fits, and
    /// the recorded memory.
    Split,
    /// The report has everything except the data that only an HTML page shows, such as the contents
    /// of each tile.
    #[default]
    Full,
    /// The report has everything, including the data that only an HTML page shows.
    Page,
}

impl Report {
    /// Returns the report on a model. `lookup` reads the profile again to find the names of
    /// variables; without `lookup`, the report has only the names that a saved model contains.
    ///
    /// # Errors
    /// When the profile cannot be read again, or has changed since it was first read.
    pub fn new(inputs: Inputs<'_>, lookup: Option<&ProfileLookup>) -> Result<Self, FileError> {
        // Reading the names of variables takes long, so the memory of layers is computed meanwhile.
        let (named, layers) = rayon::join(|| inputs.named(lookup), || inputs.layers());
        let mut named = named?;
        let Recorded { tiles, categories } = &inputs.model.recorded;
        let (limit, of_tiles) = (inputs.limit, named.of_tiles.take());
        let report = Self {
            version: VERSION,
            provenance: inputs.provenance.clone(),
            memory: RecordedMemory {
                coverage: inputs.memory.coverage(),
                ..RecordedMemory::new(limit, tiles, categories, inputs.detail, of_tiles)
            },
            pseudo_layers: inputs.placement.positions.pseudo_layers(),
            layers,
            tied_weights: inputs.tied_weights(),
            liveness: inputs.liveness(&named),
            live_steps: named.live_steps.take(),
            execution: inputs.execution(),
            warnings: inputs.warnings.clone(),
            contradictions: inputs.model.contradictions.clone(),
            ..Self::default()
        };
        let report = match inputs.search {
            Some(search) => report.with_search(&inputs, search, &named),
            None => report,
        };
        Ok(report.without_unearned_verdict())
    }

    /// Adds the result of `search` to the report, such as the split and its proof. `named` has the
    /// variables that the report lists by name.
    fn with_search(
        self,
        inputs: &Inputs<'_>,
        search: &SearchResult<'_>,
        named: &NamedVariables,
    ) -> Self {
        let split = Some(search).filter(|search| search.costs.request().options.split);
        let shared = if inputs.is_full() {
            inputs.memory.ties()
        } else {
            Vec::new()
        };
        Self {
            cuts: split.map_or(Vec::new(), |search| inputs.cuts(search, &shared)),
            pipeline: inputs.pipeline(search),
            proof: split.map(answer::proof),
            split: split.map(|search| inputs.split(search, named)),
            refusal: inputs.refusal(search, named),
            given: inputs.given(search),
            constraints: (search.costs.request().constraints.iter())
                .filter(|constraint| constraint.weight().is_none())
                .map(|constraint| constraint.origin.to_string())
                .collect(),
            shared_variables: (shared.into_iter().take(MAX_SHARED))
                .map(|(layers, bytes)| SharedVariables {
                    layers: inputs.layers_at(&layers),
                    bytes,
                })
                .collect(),
            sizes: inputs.sizes(search),
            sweep: inputs.sweep(search),
            what_if: split.and_then(WhatIf::new),
            step: split.and_then(StepFacts::new),
            plan: inputs.plan(search),
            ..self
        }
    }
}

impl Report {
    /// Replaces some stages of this report, with their bytes and cycles, by the stages of `other`,
    /// a report on the same split and on a profile with another available memory proportion.
    /// `stages` has the indices of the stages to replace.
    pub fn take_stages(&mut self, mut other: Self, stages: &[usize]) {
        for &stage in stages {
            if let (Some(mine), Some(theirs)) = (&mut self.split, &mut other.split) {
                swap(&mut mine.stages[stage], &mut theirs.stages[stage]);
            }
            if let (Some(mine), Some(theirs)) = (&mut self.execution, &mut other.execution) {
                swap(&mut mine.stages[stage], &mut theirs.stages[stage]);
            }
        }
    }
}

impl Inputs<'_> {
    pub(super) fn name(&self, position: usize) -> Option<String> {
        self.placement.positions.layer_name(position)
    }

    pub(super) fn names(&self, positions: impl IntoIterator<Item = usize>) -> LayerNames {
        self.placement.positions.layer_names(positions)
    }

    /// Returns the names of the layers at `positions`, which are indices into the layer order (In,
    /// the layers, Out).
    fn layers_at<'p>(&self, positions: impl IntoIterator<Item = &'p u32>) -> LayerNames {
        self.names(positions.into_iter().map(|&position| position as usize))
    }

    pub(super) fn is_full(&self) -> bool {
        self.detail >= Detail::Full
    }

    /// Returns the stages of the split, each as a half-open range of indices into the layer order
    /// (In, the layers, Out). Returns an empty list if there is no split.
    pub(super) fn stages(&self) -> &[Range<usize>] {
        self.search.map_or(&[], |search| &search.shown.stages)
    }

    /// Returns the weights that several layers use, each with the indices of the stages that use
    /// the weight. Without a split, the lists of stages are empty.
    fn tied_weights(&self) -> Vec<WeightTie> {
        let positions = &self.placement.positions;
        let is_in = |tie: &WeightTie, stage: &Range<usize>| {
            (tie.places.iter()).any(|&place| stage.contains(&positions.of_place(place)))
        };
        (self.placement.ties.iter())
            .map(|tie| WeightTie {
                stages: (0..)
                    .zip(self.stages())
                    .filter_map(|(stage, range)| is_in(tie, range).then_some(stage))
                    .collect(),
                ..tie.clone()
            })
            .collect()
    }
}
