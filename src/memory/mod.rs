//! Bytes of any range of layers, per tile (docs/model.md, "The memory of a stage").
//!
//! [`MemoryModel`] knows which layers use each variable and run each piece of code. It computes the
//! memory of given stages in full ([`MemoryModel::stages`]), the peak of every range of layers that
//! can fit ([`MemoryModel::range_costs`]), and the bytes that flow between layers
//! ([`MemoryModel::between`]). [`MemoryModel::in_pipeline`] adds what stages of a [`Pipeline`]
//! keep, which grows with the number of stages after them.

mod breakdown;
mod code;
mod costs;
mod coverage;
mod curve;
mod entering;
mod lanes;
mod layer_spans;
mod live_steps;
mod micro_batch;
mod neighbours;
mod overhead;
mod pipeline;
mod ranges;
mod stage;
mod steps;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod traffic;
mod update;

pub use crate::model::Rules;
pub use breakdown::Reducible;
pub use costs::RangeCosts;
pub use coverage::{CodeCategory, Coverage, Explaining};
pub use curve::{LiveCurve, LiveCurves};
pub use layer_spans::LayerSpan;
pub use micro_batch::MicroBatchScale;
pub use overhead::Overhead;
pub use pipeline::{
    Accumulator, Pipeline, PipelineOptions, PlacedStage, Recompute, Schedule, StatePlace,
};
pub use stage::{Parts, StageMemory, UpdateOnTile};
pub use traffic::LayerTraffic;

use crate::model::{
    Model, NO_LAYER, Pass, PlaceSet, PlaceSets, Placement, Positions, TooManyPlaces,
};
use code::CodeItem;
use live_steps::CountedUses;
use pipeline::{Flows, PHASES};
use std::ops::Range;
use std::sync::Arc;
use update::UpdatePhase;

/// A model with the places of its operations, ready to compute the memory of stages.
#[derive(Debug, Clone)]
pub struct MemoryModel<'a> {
    model: &'a Model,
    placement: &'a Placement,
    rules: Rules,
    /// Place sets of the placement and of code.
    sets: Arc<PlaceSets>,
    code: Arc<[CodeItem]>,
    overhead: Arc<Overhead>,
    /// The flows of the pipeline; `None` without one.
    flows: Option<Flows>,
    pipeline: Pipeline,
    /// The update with the variables that are off the chip during the passes; `None` if all stay
    /// on.
    update: Option<Arc<UpdatePhase>>,
    /// By phase of a stage, its steps; empty for a phase that the model lacks.
    phases: [Range<u32>; PHASES],
    /// By position: first and last step of its operations, inclusive.
    windows: Vec<Option<(u32, u32)>>,
    uses: CountedUses<'a>,
}

impl<'a> MemoryModel<'a> {
    /// Prepares `model` by the rules of `placement`, which says where everything counts. Without a
    /// pipeline, stages have the memory of parts of the one-IPU compilation.
    ///
    /// # Errors
    /// If the distinct sets of layers that share code or variables have more than 2^24 layers in
    /// all; no real model comes near this.
    pub fn new(model: &'a Model, placement: &'a Placement) -> Result<Self, TooManyPlaces> {
        let rules = placement.rules;
        let mut sets = placement.sets.clone();
        let tiles = 0..model.target.num_tiles;
        let placed = code::placed(model, placement);
        let code = || code::collect((model, rules), &placed, &tiles, &mut sets);
        let overhead = || match rules {
            Rules::Classic => Overhead::none(model),
            Rules::Full => Overhead::new(model),
        };
        let (code, overhead) = rayon::join(code, overhead);
        sets.check()?;
        Ok(Self {
            model,
            placement,
            rules,
            sets: sets.into(),
            code: code.into(),
            overhead: overhead.into(),
            flows: None,
            pipeline: Pipeline::default(),
            update: None,
            phases: phases(model, placement),
            windows: windows(model, placement),
            uses: CountedUses::new(model, placement),
        })
    }

    /// The model with the memory that stages need in `pipeline` (docs/model.md, "Pipelines"). The
    /// classic rules have no pipelines and ignore it.
    ///
    /// # Errors
    /// As [`MemoryModel::new`].
    pub fn in_pipeline(&self, pipeline: Pipeline) -> Result<Self, TooManyPlaces> {
        let (model, placement) = (self.model, self.placement);
        let mut placed = self.clone();
        placed.pipeline = match self.rules {
            Rules::Classic => Pipeline::default(),
            Rules::Full => pipeline.in_effect(),
        };
        placed.update = UpdatePhase::new(model, placement, placed.pipeline)?.map(Arc::new);
        if !placed.pipeline.is_on() {
            placed.flows = None;
            return Ok(placed);
        }
        let new = || Flows::new((model, placement), pipeline, self.end_of_passes());
        let flows = placed.flows.take().unwrap_or_else(new);
        let flows = flows.in_pipeline(pipeline, (model, placement), &mut placed.sets)?;
        placed.flows = Some(flows);
        Ok(placed)
    }

    /// The pipeline that the stages belong to.
    pub fn pipeline(&self) -> Pipeline {
        self.pipeline
    }

    /// Number of additional copies that a stage keeps of stashed tensors, and number of forward
    /// pipeline stages after it; `None` without a pipeline.
    pub fn copies(&self, stage: &PlacedStage) -> Option<(u64, usize)> {
        let (flows, after) = self.flows.as_ref().zip(stage.after)?;
        let depth = flows.depth(&stage.positions, after);
        Some((flows.copies(depth), depth))
    }

    /// Does a stage keep copies of the variables of this class and use set?
    pub fn is_stashed(&self, stage: &PlacedStage, class: u32, set: u32) -> bool {
        let has_copies = self.copies(stage).is_some_and(|(copies, _)| copies > 0);
        let flows = self.flows.as_ref().filter(|_| has_copies);
        let flow = flows.and_then(|flows| Some((flows, flows.of(self.uses.of_data(class, set)?)?)));
        flow.is_some_and(|(flows, flow)| flows.is_stashed(&stage.positions, flow))
    }

    /// The first step after both passes.
    fn end_of_passes(&self) -> u32 {
        let [.., after] = &self.phases;
        after.start
    }

    /// The positions of the layer order.
    pub(crate) fn positions(&self) -> &'a Positions {
        &self.placement.positions
    }

    /// Number of positions in the layer order.
    pub fn layers(&self) -> usize {
        self.windows.len()
    }

    /// First and last step (both inclusive) at which a stage with these positions (end exclusive)
    /// is examined; `None` without steps. By the classic rules they span the steps of its layers,
    /// and the pseudo-layer counts only in a stage without other layers. By the full rules they are
    /// all steps.
    pub fn window(&self, layers: Range<usize>) -> Option<(u32, u32)> {
        match self.rules {
            Rules::Full => self.all_steps(),
            Rules::Classic if layers.end <= 1 => self.windows[NO_LAYER as usize],
            Rules::Classic => join(&self.windows[layers.start.max(1)..layers.end]),
        }
    }

    /// Steps that one position adds to the window of a stage: by the classic rules none for the
    /// pseudo-layer.
    fn layer_window(&self, layer: usize) -> Option<(u32, u32)> {
        match self.rules {
            Rules::Full => self.all_steps(),
            Rules::Classic => self.windows[layer].filter(|_| layer != NO_LAYER as usize),
        }
    }

    fn all_steps(&self) -> Option<(u32, u32)> {
        Some((0, self.model.steps().checked_sub(1)?))
    }

    /// The places (In, Out and layers) of a use set: a stage with any of them counts the bytes of
    /// the set's variables.
    fn counted(&self, set: u32) -> PlaceSet {
        self.placement.counted[set as usize]
    }
}

/// The smallest window that covers all of `windows`.
fn join(windows: &[Option<(u32, u32)>]) -> Option<(u32, u32)> {
    let windows = windows.iter().flatten().copied();
    windows.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// Steps of each phase of a stage, end exclusive; without a backward pass only the first phase has
/// any. The last phase begins after the last operation of both passes that has a place of its own.
fn phases(model: &Model, placement: &Placement) -> [Range<u32>; PHASES] {
    let steps = model.steps();
    let start = model.backward_start;
    let start = start.filter(|_| placement.rules == Rules::Full);
    let start = start.map_or(steps, |start| start.min(steps));
    if start == steps {
        return [0..steps, steps..steps, steps..steps, steps..steps];
    }
    let operations = model.operations.iter().zip(&placement.operations);
    let in_passes = operations
        .filter(|(operation, placed)| placed.reason.is_own() && operation.pass != Pass::Update);
    let ends = in_passes.filter_map(|(operation, _)| Some(operation.window?.1 + 1));
    let end = ends.max().map_or(steps, |end| end.clamp(start, steps));
    let last_forward = start.saturating_sub(1);
    [0..last_forward, last_forward..start, start..end, end..steps]
}

/// By position, the window of the operations that are at this position only.
fn windows(model: &Model, placement: &Placement) -> Vec<Option<(u32, u32)>> {
    let mut windows = vec![None; placement.positions.len()];
    for (index, operation) in model.operations.iter().enumerate() {
        let &[place] = placement.places_of(index) else {
            continue;
        };
        let group = &model.operation_groups[operation.group as usize];
        let window = &mut windows[place as usize];
        *window = join(&[*window, group.window]);
    }
    windows
}
