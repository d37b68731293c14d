//! A planted model, and what its pipelined compilations need.

use std::collections::BTreeMap;

use super::compilation::Compilation;
use super::graph::Graph;
use super::ipu::{Ipu, Variable, When};
use super::options::PipelineOptions;
use crate::liveness::Changes;
use crate::place_truth::PlaceTruth;
use crate::plan::Plan;

/// A planted model that can be compiled for several IPUs.
#[derive(Debug)]
pub struct PipelineModel {
    pub(crate) plan: Plan,
    pub(super) graph: Graph,
    pub(super) places: PlaceTruth,
}

/// The memory of one IPU. The last four fields are empty where the pipeline was only simulated,
/// and no profile was written.
#[derive(Debug, Default)]
pub struct StageTruth {
    /// By tile: the most bytes that are live at any time, all counted, with planted code.
    pub tiles: Vec<u64>,
    /// By tile: bytes at used addresses that no variable explains.
    pub gaps: Vec<u64>,
    /// By tile: bytes of rings of stashed tensors, always allocated.
    pub stash: Vec<u64>,
    /// By tile: bytes of accumulators of weights, which the model may have without a pipeline
    /// too, always allocated.
    pub accumulators: Vec<u64>,
    /// By tile and name of the category, where there are any: bytes that are always live, and
    /// those that are live at the first of its fullest steps.
    pub categories: Vec<BTreeMap<&'static str, u64>>,
    /// By name of the category and tile: bytes of planted code, which is always live and of no
    /// operation, and which the compilation for one IPU does not tell.
    pub planted: BTreeMap<&'static str, Vec<u64>>,
    /// Cycles in the execution, if there is one, over all runs: in compute sets, and in
    /// exchanges with other IPUs without what it waited for them.
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

    /// The memory of places on one IPU.
    pub fn places(&self) -> &PlaceTruth {
        &self.places
    }

    /// The memory by IPU of the pipelined compilation with these cuts: positions before which there is
    /// one, where In is 0, the layers come from 1 on, and Out is the last. Cuts
    /// that leave a stage empty do not count, nor does one before Out where it
    /// goes to the first IPU.
    pub fn simulate(&self, cuts: &[u32], options: &PipelineOptions) -> Vec<StageTruth> {
        let compiled = Compilation::new(&self.graph, cuts, options);
        let stages = Ipu::all(&compiled).map(|ipu| self.stage(&ipu, options));
        stages.collect()
    }

    fn stage(&self, ipu: &Ipu, options: &PipelineOptions) -> StageTruth {
        let tiles = self.graph.tiles as usize;
        let mut changes: Vec<Changes> = (0..tiles).map(|_| Changes::default()).collect();
        let (mut stash, mut accumulators) = (vec![0; tiles], vec![0; tiles]);
        ipu.visit(
            |Variable {
                 tile, when, bytes, ..
             }| match when {
                When::At(lives) => {
                    changes[tile].add(lives.iter().map(|live| (live.start, live.end)), bytes);
                }
                When::Ring => stash[tile] += bytes,
                When::Accumulator => accumulators[tile] += bytes,
            },
        );
        let mut truth = StageTruth::default();
        for (tile, changes) in changes.iter().enumerate() {
            // State of the optimizer that is always live on one IPU and has left, and the shares
            // of it that stay.
            let (left, shares) = self.graph.moved(tile, ipu.places, options.elsewhere);
            let layers = self.places.fixed(tile, ipu.places) - left + shares + changes.peak();
            // Gaps come with the places: with no buffers for other stages, and not with what the
            // compilation for one IPU keeps and this one recomputes.
            let alone = self.places.explained(tile, ipu.places) - left;
            let gap = self.places.gap(tile, alone.min(layers));
            truth.gaps.push(gap);
            truth
                .tiles
                .push(layers + gap + stash[tile] + accumulators[tile]);
        }
        StageTruth { stash, ..truth }
    }
}
