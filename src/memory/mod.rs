//! Computes the bytes of any range of layers on each tile (docs/model.md, "The memory of a stage").
//!
//! [`MemoryModel`] has, for each variable and each piece of code, the layers that need it. It
//! computes the memory of stages in full ([`MemoryModel::stages`]), the peak of every range of
//! layers that can fit ([`MemoryModel::range_costs`]), and the bytes that flow between layers
//! ([`MemoryModel::cut_bytes`]). [`MemoryModel::in_pipeline`] adds the copies and buffers of a
//! [`Pipeline`], which grow with the number of stages after a stage.

mod breakdown;
mod code;
mod costs;
mod coverage;
mod curve;
mod entering;
mod kinds;
mod lanes;
mod layer_spans;
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
mod uses;

pub use crate::model::Rules;
pub use breakdown::Reducible;
pub use costs::RangeCosts;
pub use coverage::{CodeCategory, Coverage, Explaining};
pub use curve::{LiveCurve, LiveCurves};
pub use kinds::VariableKinds;
pub use layer_spans::LayerSpan;
pub use pipeline::{
    Accumulator, Pipeline, PipelineOptions, PlacedStage, Recompute, Schedule, StatePlace,
};
pub use stage::{Parts, StageMemory, UpdateOnTile};

use crate::model::{
    EVERYWHERE, Model, NO_LAYER, Pass, PlaceSet, PlaceSets, Placement, Positions, TooManyPlaces,
    meets,
};
use code::{CodeItem, TileOverhead};
use pipeline::{Flows, PHASES};
use std::{cmp::Reverse, ops::Range, sync::Arc};
use steps::covering;
use update::UpdatePhase;
use uses::CountedUses;

/// The memory model of a profile whose operations are assigned to layers. It computes the bytes
/// that any pipeline stage takes on each tile.
#[derive(Debug, Clone)]
pub struct MemoryModel<'a> {
    model: &'a Model,
    placement: &'a Placement,
    rules: Rules,
    sets: Arc<PlaceSets>,
    /// One entry per piece of code: its kind ([`CodeKind`](crate::profile::CodeKind)), its bytes,
    /// and a set of positions (In, layers, Out). A stage with any of these positions has the bytes
    /// once.
    code: Arc<[CodeItem]>,
    /// One entry per tile: the bytes that every stage needs whatever its layers, such as the stack,
    /// and the bytes of fragmentation.
    overhead: Arc<[TileOverhead]>,
    /// Flows, that is, groups of tensors that the same layers use. What a stage stashes and what it
    /// sends to other stages follows from its flows. `None` without a pipeline.
    flows: Option<Flows>,
    pipeline: Pipeline,
    /// The weight updates, if optimizer state is loaded or gathered for them: they may then take
    /// more bytes than the forward and the backward pass. `None` if all optimizer state stays on
    /// the chip, or if the model does not train.
    update: Option<Arc<UpdatePhase>>,
    /// One entry per phase, such as the backward pass (see [`PHASES`]): its half-open range of
    /// liveness steps, which is empty if the model does not have the phase.
    phases: [Range<u32>; PHASES],
    /// One entry per position (In, a layer or Out): the first and the last liveness step (both
    /// inclusive) of the operations that belong to this position only. `None` if there are no such
    /// operations.
    windows: Vec<Option<(u32, u32)>>,
    uses: CountedUses<'a>,
}

impl<'a> MemoryModel<'a> {
    /// Prepares the memory of the stages of `model`. `placement` assigns operations and variables
    /// to layers. Without a pipeline, a stage takes the memory that its layers take in the one-IPU
    /// compilation.
    ///
    /// # Errors
    /// If the distinct sets of layers that share code or variables have more than 2^24 members in
    /// all; no real model comes near this number.
    pub fn new(model: &'a Model, placement: &'a Placement) -> Result<Self, TooManyPlaces> {
        let rules = placement.rules;
        let mut sets = placement.sets.clone();
        let tiles = 0..model.target.num_tiles;
        let placed = code::placed(model, placement);
        let (code, overhead) = rayon::join(
            || code::collect((model, rules), &placed, &tiles, &mut sets),
            || match rules {
                Rules::Classic => TileOverhead::none(model),
                Rules::Full => TileOverhead::of_tiles(model),
            },
        );
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
            uses: CountedUses::new(model, rules),
        })
    }

    /// Returns a copy of this memory model for stages of `pipeline`: it includes the memory that
    /// the pipeline adds (docs/model.md, "Pipelines"). The classic memory model has no pipelines
    /// and ignores `pipeline`.
    ///
    /// # Errors
    /// The error of [`MemoryModel::new`].
    pub fn in_pipeline(&self, pipeline: Pipeline) -> Result<Self, TooManyPlaces> {
        let (model, placement) = (self.model, self.placement);
        let pipeline = match self.rules {
            Rules::Classic => Pipeline::default(),
            Rules::Full => pipeline.in_effect(),
        };
        let mut placed = Self {
            pipeline,
            update: UpdatePhase::new(model, placement, pipeline)?.map(Arc::new),
            flows: None,
            ..self.clone()
        };
        if pipeline.is_on() {
            let (flows, at) = (self.flows_or_new(), (model, placement));
            placed.flows = Some(flows.in_pipeline(pipeline, at, &mut placed.sets)?);
        }
        Ok(placed)
    }

    /// Returns the settings of the pipeline whose stages this memory model predicts. Settings that
    /// do not change the memory have their defaults. Returns [`Pipeline::default`], which means no
    /// pipeline, unless this memory model was made by [`MemoryModel::in_pipeline`].
    pub fn pipeline(&self) -> Pipeline {
        self.pipeline
    }

    /// Returns two numbers: how many additional copies `stage` keeps of each tensor that it stashes
    /// for micro-batches in flight, and how many forward pipeline stages come after `stage`.
    /// Returns `None` without a pipeline, or if `stage` leaves open how many stages come after it.
    pub fn copies(&self, stage: &PlacedStage) -> Option<(u64, usize)> {
        let (flows, after) = self.flows.as_ref().zip(stage.after)?;
        let depth = flows.depth(&stage.positions, after);
        Some((flows.copies(depth), depth))
    }

    /// Returns whether `stage` stashes certain variables, that is, keeps additional copies of them
    /// for the micro-batches in flight. `class` is the equivalence class of the variables
    /// (variables that are live at the same steps), and `set` their use set (the operations that
    /// use them).
    pub fn is_stashed(&self, stage: &PlacedStage, class: u32, set: u32) -> bool {
        self.has_copies(stage)
            && self
                .flows
                .as_ref()
                .zip(self.uses.data.number(class, set))
                .is_some_and(|(flows, number)| flows.is_stashed(&stage.positions, number))
    }

    fn has_copies(&self, stage: &PlacedStage) -> bool {
        self.copies(stage).is_some_and(|(copies, _)| copies > 0)
    }

    /// Returns the flows of this memory model, that is, groups of tensors that the same layers use.
    /// A memory model without a pipeline stores no flows, so they are then made from the profile,
    /// without the steps at which variables are live in stages of a pipeline.
    fn flows_or_new(&self) -> Flows {
        self.flows
            .clone()
            .unwrap_or_else(|| Flows::new(self.model, self.placement))
    }

    pub(crate) fn positions(&self) -> &'a Positions {
        &self.placement.positions
    }

    /// Returns the number of positions: In (the operations before the first layer), the layers, and
    /// Out (the operations after the last layer). If In and Out are not separate, all operations
    /// without a layer share one position, which is named `None`.
    pub fn layers(&self) -> usize {
        self.windows.len()
    }

    /// Returns the first and the last liveness step (both inclusive) between which the peak of a
    /// stage with the positions `layers` (end exclusive) is searched for; `None` if there is no
    /// step.
    ///
    /// - Full memory model: all steps of the profile.
    /// - Classic memory model: the steps of the stage's layers. Position 0, which has the
    ///   operations without a layer, only counts in a stage without other positions.
    pub fn window(&self, layers: Range<usize>) -> Option<(u32, u32)> {
        match self.rules {
            Rules::Full => self.all_steps(),
            Rules::Classic if layers.end <= 1 => self.windows[NO_LAYER as usize],
            Rules::Classic => covering(&self.windows[layers.start.max(1)..layers.end]),
        }
    }

    /// Returns the first and the last liveness step (both inclusive) at which the peak of a stage
    /// with the position `layer` is searched for. `None` stands for no steps.
    ///
    /// - By default (full memory model): all steps of the profile.
    /// - With `--memory-model classic`: the steps of the layer's operations; `None` for position 0,
    ///   which has the operations without a layer.
    fn layer_window(&self, layer: usize) -> Option<(u32, u32)> {
        match self.rules {
            Rules::Full => self.all_steps(),
            Rules::Classic => self.windows[layer].filter(|_| layer != NO_LAYER as usize),
        }
    }

    fn all_steps(&self) -> Option<(u32, u32)> {
        Some((0, self.model.steps().checked_sub(1)?))
    }

    pub(crate) fn tiles(&self) -> u32 {
        self.model.variables.tiles()
    }

    /// Returns the fullest tile of the one-IPU compilation (the first if several are equally full)
    /// and its recorded bytes; `None` if the profile has no record of tiles.
    pub(crate) fn recorded_fullest_tile(&self) -> Option<(u32, u64)> {
        fullest(self.model.recorded.tiles.iter().map(|tile| tile.total))
    }

    /// Returns whether a stage with the positions `stage` (end exclusive) has the bytes of code or
    /// variables that belong to the positions in `set`. The stage has them if it contains at least
    /// one position (In, a layer or Out) of `set`, or if `set` is [`EVERYWHERE`].
    fn counts_in(&self, set: PlaceSet, stage: &Range<usize>) -> bool {
        set == EVERYWHERE || meets(self.sets.places(set), stage)
    }

    /// Returns the positions (In, layers, Out) to which variables with the use set `set` (the
    /// operations that use them) are attributed: a stage with any of these positions has the bytes
    /// of the variables.
    fn counted(&self, set: u32) -> PlaceSet {
        self.placement.counted[set as usize]
    }
}

/// Returns the index of the tile with the most bytes, the first of several such tiles, and its
/// bytes. `bytes` has one entry per tile. Returns `None` if there are no tiles.
fn fullest(bytes: impl Iterator<Item = u64>) -> Option<(u32, u64)> {
    (0..).zip(bytes).min_by_key(|&(_, bytes)| Reverse(bytes))
}

/// Divides the liveness steps into phases, such as the backward pass (see [`PHASES`]), as half-open
/// ranges. The last phase begins after the last operation of the forward or backward pass. Only
/// operations with a position of their own (In, a layer or Out) count for this. Without a backward
/// pass, and in the classic memory model, only the first phase has steps.
fn phases(model: &Model, placement: &Placement) -> [Range<u32>; PHASES] {
    let steps = model.steps();
    let start = model.backward_start.unwrap_or(steps);
    if start == steps || placement.rules == Rules::Classic {
        return [0..steps, steps..steps, steps..steps, steps..steps];
    }
    let end = model
        .operations
        .iter()
        .zip(&placement.operations)
        .filter(|(operation, placed)| placed.reason.is_own() && operation.pass != Pass::Update)
        .filter_map(|(operation, _)| Some(operation.window?.1 + 1))
        .max()
        .map_or(steps, |end| end.max(start));
    let last_forward = start.saturating_sub(1);
    [0..last_forward, last_forward..start, start..end, end..steps]
}

fn windows(model: &Model, placement: &Placement) -> Vec<Option<(u32, u32)>> {
    let mut windows = vec![None; placement.positions.len()];
    for (index, operation) in model.operations.iter().enumerate() {
        if let &[place] = placement.places_of(index) {
            let group = &model.operation_groups[operation.group as usize];
            let window = &mut windows[place as usize];
            *window = covering(&[*window, group.window]);
        }
    }
    windows
}
