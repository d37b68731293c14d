//! What a pipelined compilation of a planted model needs, in truth.
//!
//! Micro-batches walk through the stages as the schedule has them, each IPU
//! running the steps of the one-IPU compilation. The copies of each tensor that
//! are alive on each IPU at each of these steps are followed over a period of the
//! steady state, and summed tile by tile:
//! * what is made in a stage lives until its last use there, what another IPU
//!   needs until it is copied, between two times of the schedule; what comes from
//!   another IPU lives from that copy on. Each IPU on the way holds it;
//! * what a later run of the same IPU needs is kept. Where more than one
//!   micro-batch is on its way, a ring keeps it, allocated for good, of as many
//!   copies as the walk counts; what takes it out works on a copy of its own;
//! * what runs again makes its tensors again;
//! * variables of single operations, and gradients of weights until the update,
//!   are live at the same steps as in the one-IPU compilation;
//! * steps before the first and after the last micro-batch run once, without
//!   tensors under way.
//!
//! No formula says how many copies there are.

mod axis;
mod content;
mod copies;
mod execution;
mod form;
mod from_plan;
mod graph;
mod ipu;
mod keep;
mod listing;
mod operations;
mod options;
mod profile;
mod programs;
mod route;
mod simulate;
mod stages;
mod sum;
#[cfg(test)]
mod tests;
mod variables;
mod walk;

use super::options::Settings;
use super::place_truth::PlaceTruth;
use super::places::Places;
use super::plan::Plan;
pub use content::{NameKind, TileContent};
pub use execution::ExecutedCycles;
use form::Place;
pub use form::{LoweredVariables, PlantedBytes, PlantedCode, PlantedTruth, ProfileForm};
use graph::Graph;
use operations::Operations;
pub use options::{PipelineOptions, Recompute, Schedule};
use simulate::{IpuMemory, simulate};
use stages::Stages;

/// A planted model that can be compiled for several IPUs.
#[derive(Debug, Clone)]
pub struct PipelineModel {
    settings: Settings,
    graph: Graph,
    places: PlaceTruth,
    operations: Operations,
}

/// What a pipelined compilation needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineTruth {
    /// By IPU.
    pub stages: Vec<StageTruth>,
}

/// What one IPU needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageTruth {
    /// By tile: the most bytes that are live at any time, all counted, what is
    /// planted among them.
    pub tiles: Vec<u64>,
    /// The most copies of a stashed tensor beside the one that is worked on.
    pub slots: u32,
    /// By tile: bytes of stashed tensors, always allocated.
    pub stash: Vec<u64>,
    /// By tile: bytes of accumulators of weights, always allocated.
    pub accumulators: Vec<u64>,
    /// What was planted beside what the compilation for one IPU tells.
    pub planted: PlantedTruth,
    /// By tile: what it holds when it is fullest. Known where a profile was
    /// written, empty where the pipeline was only simulated.
    pub contents: Vec<TileContent>,
    /// Cycles in the execution, if there is one.
    pub cycles: ExecutedCycles,
}

impl PipelineModel {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            settings: plan.settings.clone(),
            graph: from_plan::graph(plan),
            places: PlaceTruth::new(plan),
            operations: Operations::new(plan),
        }
    }

    /// What places need on one IPU.
    pub fn places(&self) -> &PlaceTruth {
        &self.places
    }

    /// Whether there is a backward pass.
    pub fn is_training(&self) -> bool {
        self.graph.turn.is_some()
    }

    /// The pipelined compilation with these cuts: positions before which there is
    /// one, where In is 0, the layers come from 1 on, and Out is the last. Cuts
    /// that leave a stage empty do not count, nor does one before Out where it
    /// goes to the first IPU.
    pub fn simulate(&self, cuts: &[u32], options: &PipelineOptions) -> PipelineTruth {
        self.simulate_with(cuts, options, &PlantedCode::default())
    }

    /// The same with planted code.
    pub fn simulate_with(
        &self,
        cuts: &[u32],
        options: &PipelineOptions,
        planted: &PlantedCode,
    ) -> PipelineTruth {
        let graph = &self.graph;
        let stages = Stages::new(graph.positions(), cuts, options.out_on_first);
        let memory = simulate(graph, cuts, options).into_iter().zip(0..);
        let stages = memory.map(|(memory, ipu)| {
            let place = Place {
                ipu,
                ipus: stages.ipus(),
                tiles: graph.tiles,
            };
            let kept = (options.schedule, memory.slots);
            let planted = PlantedTruth::new(planted, self.settings.random, place, kept);
            self.stage(memory, stages.places(graph, ipu), planted)
        });
        PipelineTruth {
            stages: stages.collect(),
        }
    }

    fn stage(&self, memory: IpuMemory, places: Places, planted: PlantedTruth) -> StageTruth {
        let bytes = |tile: usize| {
            let fixed = self.places.fixed(tile, places) + self.places.gap(tile, places);
            let added = memory.stash[tile] + memory.accumulators[tile] + planted.bytes(tile);
            fixed + memory.passing[tile] + added
        };
        StageTruth {
            tiles: (0..memory.passing.len()).map(bytes).collect(),
            slots: memory.slots,
            stash: memory.stash.clone(),
            accumulators: memory.accumulators.clone(),
            planted,
            contents: Vec::new(),
            cycles: ExecutedCycles::default(),
        }
    }
}
