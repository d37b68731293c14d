//! Computes the memory of pipelined compilations of a planted model.

use std::collections::BTreeMap;

use super::compilation::Compilation;
use super::graph::Graph;
use super::ipu::{Ipu, When};
use super::options::PipelineOptions;
use super::route::Route;
use crate::liveness::Changes;
use crate::place_truth::PlaceTruth;
use crate::plan::Plan;

/// A planted model that can be compiled for several IPUs.
#[derive(Debug)]
pub struct PipelineModel {
    pub(crate) plan: Plan,
    pub(super) graph: Graph,
    /// The true memory of places on one IPU.
    pub places: PlaceTruth,
}

/// The true memory of one IPU. The last four fields are empty if the pipeline was only simulated,
/// and no profile was written.
#[derive(Debug, Default)]
pub struct StageTruth {
    /// By tile: the most bytes that are live at any moment, with all variables and planted code.
    pub tiles: Vec<u64>,
    /// By tile: bytes at used addresses that no variable explains.
    pub gaps: Vec<u64>,
    /// By tile: bytes of rings of stashed tensors, which are always allocated.
    pub stash: Vec<u64>,
    /// By tile: bytes of accumulators of weights, which the model may have without a pipeline too;
    /// always allocated.
    pub accumulators: Vec<u64>,
    /// By tile and name of the category (only categories with bytes): the bytes that are always
    /// live, and the bytes that are live at the first of the fullest steps of the tile.
    pub categories: Vec<BTreeMap<&'static str, u64>>,
    /// By name of the category and tile: bytes of planted code, which is always live, belongs to no
    /// operation, and is not in the compilation for one IPU.
    pub planted: BTreeMap<&'static str, Vec<u64>>,
    /// Cycles of the execution over all runs, if there is one: in compute sets, and in exchanges
    /// with other IPUs without the waiting time.
    pub cycles: u64,
}

impl PipelineModel {
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            graph: Graph::new(&plan),
            places: PlaceTruth::new(&plan),
            plan,
        }
    }

    /// Returns the true memory of each IPU of the pipelined compilation with these cuts: the
    /// positions before which there is a cut, where In is at 0, the layers are at 1 and up, and Out
    /// is last. Cuts that leave a stage empty do not count, nor does a cut before Out if Out runs
    /// on the first IPU.
    pub fn simulate(&self, cuts: &[u32], options: &PipelineOptions) -> Vec<StageTruth> {
        self.ipus(cuts, options, |ipu| self.stage(ipu, options))
    }

    /// Visits the IPUs of the pipelined compilation with these cuts.
    pub(super) fn ipus<T>(
        &self,
        cuts: &[u32],
        options: &PipelineOptions,
        visit: impl FnMut(&Ipu) -> T,
    ) -> Vec<T> {
        let compiled = Compilation::new(&self.graph, cuts, options);
        let routes = Route::all(&compiled);
        let ipus = (0..compiled.ipus()).map(|number| Ipu::new(&compiled, &routes, number));
        ipus.collect::<Vec<_>>().iter().map(visit).collect()
    }

    pub(super) fn stage(&self, ipu: &Ipu, options: &PipelineOptions) -> StageTruth {
        let tiles = self.graph.tiles as usize;
        // By tile: what is live, and what would be live with one copy of each tensor.
        let mut changes: Vec<[Changes; 2]> = (0..tiles).map(|_| Default::default()).collect();
        let (mut stash, mut accumulators) = (vec![0; tiles], vec![0; tiles]);
        ipu.visit(|tile, _, bytes, when| {
            let (lives, counts) = match when {
                When::At(lives) => (lives, [true, true]),
                When::Copy(lives) => (lives, [true, false]),
                When::Any(lives) => (lives, [false, true]),
                When::Ring => return stash[tile] += bytes,
                When::Accumulator => return accumulators[tile] += bytes,
            };
            let changes = changes[tile].iter_mut().zip(counts);
            for (changes, _) in changes.filter(|(_, counts)| *counts) {
                changes.add(lives.iter().map(|live| (live.start, live.end)), bytes);
            }
        });
        let mut truth = StageTruth::default();
        for (tile, [changes, single]) in changes.iter().enumerate() {
            // State of the optimizer that is always live on one IPU and has left, and the shares
            // of it that stay.
            let updates = &self.graph.updates;
            let (left, shares) = updates.moved(tile, ipu.places, options.elsewhere);
            let fixed = self.places.fixed(tile, ipu.places) - left + shares;
            let layers = fixed + changes.peak();
            // Gaps come with the places: with no further copies of tensors that wait, and not with
            // what the compilation for one IPU keeps and this one recomputes.
            let alone = self.places.explained(tile, ipu.places) - left;
            let gap = self.places.gap(tile, alone.min(fixed + single.peak()));
            truth.gaps.push(gap);
            let kept = stash[tile] + accumulators[tile];
            truth.tiles.push(layers + gap + kept);
        }
        StageTruth { stash, ..truth }
    }
}
