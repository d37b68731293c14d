//! A planted model, and what its pipelined compilations need.

use std::collections::BTreeMap;

use super::compilation::Compilation;
use super::form::PlantedTruth;
use super::from_plan;
use super::graph::Graph;
use super::ipu::{Ipu, Of, Variable};
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

/// The memory of a pipelined compilation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineTruth {
    /// By IPU.
    pub stages: Vec<StageTruth>,
}

/// The bytes of a tile of a pipelined compilation at the first of its fullest steps: those that
/// are always live, and those that are live then.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TileContent {
    /// By name of the category, where there are any.
    pub categories: BTreeMap<&'static str, u64>,
    /// Bytes at used addresses that no variable explains.
    pub gap: u64,
    /// Bytes of rings of stashed tensors.
    pub stash: u64,
    /// Bytes of accumulators of weights, which the model may have without a pipeline too.
    pub accumulators: u64,
}

/// The memory of one IPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageTruth {
    /// By tile: the most bytes that are live at any time, all counted, with planted code.
    pub tiles: Vec<u64>,
    /// By tile: those between variables.
    pub gaps: Vec<u64>,
    /// The most copies of a stashed tensor beside the one that is worked on.
    pub slots: u32,
    /// By tile: bytes of stashed tensors, always allocated.
    pub stash: Vec<u64>,
    /// By tile: bytes of accumulators of weights, always allocated.
    pub accumulators: Vec<u64>,
    /// Planted code that the compilation for one IPU does not tell, where a profile was written.
    pub planted: PlantedTruth,
    /// By tile: what it holds when it is fullest. Known where a profile was
    /// written, empty where the pipeline was only simulated.
    pub contents: Vec<TileContent>,
    /// Cycles in the execution, if there is one, over all runs: in compute sets, and in
    /// exchanges with other IPUs without what it waited for them.
    pub cycles: u64,
}

impl PipelineModel {
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            graph: from_plan::graph(&plan),
            places: PlaceTruth::new(&plan),
            plan,
        }
    }

    /// The memory of places on one IPU.
    pub fn places(&self) -> &PlaceTruth {
        &self.places
    }

    /// The pipelined compilation with these cuts: positions before which there is
    /// one, where In is 0, the layers come from 1 on, and Out is the last. Cuts
    /// that leave a stage empty do not count, nor does one before Out where it
    /// goes to the first IPU.
    pub fn simulate(&self, cuts: &[u32], options: &PipelineOptions) -> PipelineTruth {
        let compiled = Compilation::new(&self.graph, cuts, options);
        let ipus = 0..compiled.stages.ipus();
        let ipus = ipus.map(|number| Ipu {
            compiled: &compiled,
            number,
        });
        PipelineTruth {
            stages: ipus.map(|ipu| self.stage(&ipu)).collect(),
        }
    }

    fn stage(&self, ipu: &Ipu) -> StageTruth {
        let tiles = self.graph.tiles as usize;
        let mut changes: Vec<Changes> = (0..tiles).map(|_| Changes::default()).collect();
        let (mut stash, mut accumulators) = (vec![0; tiles], vec![0; tiles]);
        let slots = ipu.visit(|Variable { tile, of, bytes }| match of {
            Of::Local(_, lives) | Of::Copy(_, _, lives) | Of::State(lives) => {
                changes[tile].add(lives.iter().map(|live| (live.start, live.end)), bytes);
            }
            Of::Ring(_) => stash[tile] += bytes,
            Of::Accumulator(_) => accumulators[tile] += bytes,
        });
        let (places, elsewhere) = (ipu.places(), ipu.compiled.options.elsewhere);
        // State of the optimizer that is always live on one IPU and has left, and the shares of
        // it that stay.
        let moved = |tile: usize| self.graph.updates.moved(tile, places, elsewhere);
        let numbered = changes.iter().enumerate();
        let layers = numbered.map(|(tile, changes)| {
            let (left, shares) = moved(tile);
            self.places.fixed(tile, places) - left + shares + changes.peak()
        });
        let layers: Vec<u64> = layers.collect();
        // Gaps come with the places: with no buffers for other stages, and not with what the
        // compilation for one IPU keeps and this one recomputes.
        let gap = |(tile, &bytes)| {
            let alone = self.places.explained_on(tile, places) - moved(tile).0;
            self.places.gap(tile, alone.min(bytes))
        };
        let gaps: Vec<u64> = layers.iter().enumerate().map(gap).collect();
        let bytes = |tile: usize| layers[tile] + gaps[tile] + stash[tile] + accumulators[tile];
        StageTruth {
            tiles: (0..tiles).map(bytes).collect(),
            gaps,
            slots,
            stash,
            accumulators,
            planted: PlantedTruth::default(),
            contents: Vec::new(),
            cycles: 0,
        }
    }
}
