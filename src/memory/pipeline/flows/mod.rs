//! Flows: tensors with the same users, which stages make, use, keep and forward.

mod lives;
mod own_steps;
mod reruns;
mod stash_and_transfers;
mod users;

use lives::StageLives;
pub(super) use stash_and_transfers::{Flow, Life, QUANTITIES, Quantity, StageRole};

use super::{Accumulator, Pipeline, Recompute};
use crate::memory::steps::StepsOfPosition;
use crate::model::{
    Framework, Model, PassPlaces, PlaceSets, Placement, TensorKind, TooManyPlaces, VariableUse,
    ascending,
};
use own_steps::{OwnSteps, SummedGradients};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use users::KnownFlows;
pub(super) use users::{BackwardPass, PassWindows};

/// All *flows* of a model in a pipeline, numbered from 0: groups of tensors that the same places
/// (In, layers, Out) use in the same passes. Pipelines of one model share most of the data.
#[derive(Debug, Clone)]
pub(crate) struct Flows {
    pub pipeline: Pipeline,
    /// Whether the model has a backward pass.
    pub is_training: bool,
    /// The number of places: In, each layer, and Out, numbered in this order. Out is a place of its
    /// own even if it is on the first IPU, where it shares a position with In.
    pub places: u32,
    /// Whether Out, the last place, is in one position with In, on the first IPU.
    pub out_is_first: bool,
    /// All flows (tensors with the same users); their numbers are indices.
    pub list: Arc<[Flow]>,
    /// For each use, by its number in [`CountedUses`](crate::memory::uses::CountedUses): the
    /// role of its variables in a pipeline.
    of_uses: Arc<[UseInPipeline]>,
    /// The steps at which the operations of each place run, in the forward and in the backward
    /// pass.
    pub windows: Arc<PassWindows>,
    /// For some uses, numbered as in `of_uses`: the steps at which each position needs the
    /// variables. All positions need the variables of other uses whenever these are live.
    own_steps: Arc<FxHashMap<u32, Vec<StepsOfPosition>>>,
    /// The gradients that are live until the end of the passes, where an accumulator takes them.
    summed: Arc<SummedGradients>,
    /// The steps at which variables are live in stages of the pipeline; `None` before
    /// [`Flows::in_pipeline`].
    lives: Option<Arc<StageLives>>,
}

/// The role that the variables of one use (the same class and use set) have in a pipeline.
#[derive(Debug, Clone, Copy)]
pub(crate) enum UseInPipeline {
    /// Variables that several places use or that are kept for the backward pass, with the number of
    /// their flow.
    Flow(u32),
    /// A weight that gets an accumulator of its gradients, with the bytes of one element of the
    /// weight; `None` if these are unknown.
    Accumulated(Option<u8>),
    /// A weight that no operation updates.
    NotUpdated,
    /// Any other parameter, a constant, or variables that no operation with a place uses.
    Other,
}

impl Flows {
    /// Finds the flows of `model`, for stages of `pipeline`. `end` is the first step after the
    /// forward and the backward pass. [`Flows::in_pipeline`] must follow.
    pub fn new((model, placement): (&Model, &Placement), pipeline: Pipeline, end: u32) -> Self {
        let positions = &placement.positions;
        let mut known = KnownFlows::new(positions);
        let windows = PassWindows::new(model, placement);
        let of_uses = UseInPipeline::of_uses((model, placement), &windows, &mut known);
        let own_steps = own_steps(model, placement, (&known.list, &of_uses));
        let out_is_first = positions.out_is_first();
        let places = positions.len() as u32 + u32::from(out_is_first);
        let summed = if of_uses
            .iter()
            .any(|of_use| matches!(of_use, UseInPipeline::Accumulated(_)))
        {
            SummedGradients::new(model, end)
        } else {
            SummedGradients::default()
        };
        Self {
            pipeline,
            is_training: model.backward_start.is_some(),
            places,
            out_is_first,
            list: known.list.into(),
            of_uses,
            windows: windows.into(),
            own_steps: own_steps.into(),
            summed: summed.into(),
            lives: None,
        }
    }

    /// Returns the flows for stages of `pipeline`. The flows themselves are the same in every
    /// pipeline; only the steps at which variables are live can differ. `at` is the model of the
    /// flows and its placement. New sets of positions are added to `sets`.
    ///
    /// # Errors
    /// If variables are shared by more distinct sets of layers than in any real model.
    pub fn in_pipeline(
        &self,
        pipeline: Pipeline,
        at: (&Model, &Placement),
        sets: &mut Arc<PlaceSets>,
    ) -> Result<Self, TooManyPlaces> {
        let mut flows = self.clone();
        flows.pipeline = pipeline;
        if flows.lives.is_none() || self.recomputes_layers() != flows.recomputes_layers() {
            let lives = StageLives::new(at, &flows, Arc::make_mut(sets))?;
            flows.lives = Some(lives.into());
        }
        Ok(flows)
    }

    /// Converts places (In, layers, Out) to positions in the layer order, ascending and without
    /// duplicates. If Out is on the first IPU, its position is that of In.
    fn positions_of(&self, places: Vec<u32>) -> Box<[u32]> {
        let is_first = |place| self.out_is_first && place == self.out().start;
        let position = |place| if is_first(place) { 0 } else { place };
        ascending(places.into_iter().map(position))
    }

    /// Returns the role of the variables of the use with this number (as in [`Flows::of_uses`]).
    #[inline]
    pub fn of_use(&self, number: u32) -> UseInPipeline {
        self.of_uses
            .get(number as usize)
            .copied()
            .unwrap_or(UseInPipeline::Other)
    }

    /// Returns the number of the flow of the variables of a use; `None` if the variables belong to
    /// no flow. `number` is as in [`Flows::of_uses`].
    #[inline]
    pub fn of(&self, number: u32) -> Option<u32> {
        match self.of_use(number) {
            UseInPipeline::Flow(flow) => Some(flow),
            _ => None,
        }
    }

    /// Returns the pass (0 forward, 1 backward) in which stages send the variables of a use, and
    /// the first and the last place (inclusive) that use the variables in this pass. `None` if the
    /// variables have no flow, or no user in the pass. `number` is as in [`Flows::of_uses`].
    pub fn sent(&self, number: u32) -> Option<(usize, [u32; 2])> {
        let flow = &self.list[self.of(number)? as usize];
        let (pass, users) = match flow.life {
            Life::Forward | Life::AcrossPasses => (0, &flow.forward),
            Life::Backward => (1, &flow.backward),
        };
        Some((pass, [*users.first()?, *users.last()?]))
    }

    /// Does the pipeline recompute the activations of each layer? Never without training.
    pub fn recomputes_layers(&self) -> bool {
        self.is_training && self.pipeline.recompute == Recompute::Layer
    }

    /// Returns the number of forward pipeline stages after the stage with the positions `positions`
    /// (end exclusive), if `after` stages of the split follow it. Out is one more if it is a
    /// pipeline stage of its own on the first IPU.
    pub fn depth(&self, positions: &Range<usize>, after: usize) -> usize {
        let is_whole = positions.len() + 1 == self.places as usize;
        after + usize::from(self.out_is_first && !is_whole)
    }

    /// Returns the number of additional copies of each stashed tensor that a stage keeps with
    /// `depth` forward pipeline stages after it; 0 without training.
    pub fn copies(&self, depth: usize) -> u64 {
        u64::from(self.is_training) * self.pipeline.schedule.copies(depth)
    }

    /// Does the place with this number (In, a layer or Out) have backward operations?
    pub fn goes_back(&self, place: u32) -> bool {
        self.backward_of(place).goes_back
    }

    /// Returns how the place with this number (In, a layer or Out) runs backward.
    pub fn backward_of(&self, place: u32) -> BackwardPass {
        self.windows.at(place).backward_pass
    }

    /// In a pipeline that recomputes each layer: does the forward pass of `place` run again in the
    /// stage that runs `places`? In and the first layer run again together if the stage has both.
    pub fn runs_again(&self, place: u32, places: &Range<u32>) -> bool {
        let with = [1, 0]
            .get(place as usize)
            .filter(|with| places.contains(with));
        self.goes_back(place) || with.is_some_and(|&with| self.goes_back(with))
    }
}

impl UseInPipeline {
    /// Determines the role in a pipeline of each use of data, numbered as in [`Flows::of_uses`]. New
    /// flows are added to `known`.
    fn of_uses(
        (model, placement): (&Model, &Placement),
        windows: &PassWindows,
        known: &mut KnownFlows,
    ) -> Arc<[Self]> {
        let parameters = Self::of_parameters(model, &placement.by_pass);
        let flow = |&VariableUse { class, set, .. }: &VariableUse| {
            // A weight or constant may be live at some steps only, so its label decides, not its
            // live ranges.
            let is_parameter =
                [TensorKind::Variable, TensorKind::Constant].contains(&model.label_of(set).kind);
            let Some(life) = Life::of_class(model, class).filter(|_| !is_parameter) else {
                return parameters[set as usize];
            };
            let (forward, backward) = placement.by_pass.places(set);
            let first = match (forward.len(), backward.len()) {
                (0, 0) => return Self::Other,
                (0..2, 0..2) => known.number(forward, backward),
                // If several places use the variables of the use set, the live ranges of the class
                // decide which of them use this variable.
                _ => {
                    let (forward, backward) = windows.users(model, (forward, backward), class);
                    known.number(&forward, &backward)
                }
            };
            Self::Flow(first + 2 * life as u32 + u32::from(is_streamed(model, set, class)))
        };
        model.variables.uses().iter().map(flow).collect()
    }

    /// Determines for each use set the role of its parameters (variables that are live at the first
    /// and last step, or weights and constants by their debug context) in a pipeline
    /// (docs/model.md, "Accumulators and updates"). Without a backward pass, or if the profile has
    /// accumulators already, no parameter counts as a weight.
    fn of_parameters(model: &Model, by_pass: &PassPlaces) -> Vec<Self> {
        let sets = model.use_sets.len();
        if model.backward_start.is_none() || model.recording.accumulates {
            return vec![Self::Other; sets];
        }
        let has_kinds =
            model.recording.framework != Framework::Tensorflow && model.has_weight_labels();
        let updates = model.updates_by_set();
        (0..sets as u32)
            .map(|set| {
                let label = model.label_of(set);
                let (forward, _) = by_pass.places(set);
                let may_be_weight = if has_kinds {
                    // Names of accumulators and optimizer state begin with one of these marks.
                    let is_state = ["Accum___", "Accl"]
                        .iter()
                        .any(|mark| label.tensor.starts_with(mark));
                    label.kind == TensorKind::Variable && !is_state
                } else {
                    label.kind != TensorKind::Constant
                };
                match updates[set as usize] {
                    _ if !may_be_weight || forward.is_empty() => Self::Other,
                    0 => Self::NotUpdated,
                    // A variable that several updates use, such as a learning rate, is not a weight.
                    2.. if !has_kinds => Self::Other,
                    _ => Self::Accumulated(label.element_bytes),
                }
            })
            .collect()
    }
}

impl Accumulator {
    /// Returns the bytes of the accumulator of a weight of `bytes` bytes. `element` is the bytes of
    /// one element of the weight; if they are unknown, the accumulator takes `bytes`.
    pub(crate) fn bytes(self, bytes: u64, element: Option<u8>) -> u64 {
        let width = match self {
            Accumulator::AsWeight => None,
            Accumulator::Float16 => Some(2),
            Accumulator::Float32 => Some(4),
        };
        match (width, element) {
            (Some(width), Some(element)) if element > 0 => {
                bytes.saturating_mul(width).div_ceil(u64::from(element))
            }
            _ => bytes,
        }
    }
}

/// Returns, by the number of the use, the steps at which each position needs the variables of the
/// use. Uses whose variables all positions need whenever they are live are left out. `of_uses` has
/// the role of each use.
fn own_steps(
    model: &Model,
    placement: &Placement,
    (list, of_uses): (&[Flow], &[UseInPipeline]),
) -> FxHashMap<u32, Vec<StepsOfPosition>> {
    let own = OwnSteps::new(model, placement);
    model
        .variables
        .uses()
        .par_iter()
        .zip(of_uses)
        .enumerate()
        .filter_map(|(number, (variable, of_use))| {
            let &UseInPipeline::Flow(flow) = of_use else {
                return None;
            };
            Some((number as u32, own.of(variable, &list[flow as usize])?))
        })
        .collect()
}

/// Does the host send the variables with this use set and class? If so, an operation that uses them
/// copies data from the host at the first step at which they are live.
fn is_streamed(model: &Model, set: u32, class: u32) -> bool {
    let Some((begin, _)) = model.classes.ranges(class).first() else {
        return false;
    };
    let copies = |group: u32| &model.operation_groups[group as usize].host_copies;
    model
        .use_sets
        .groups(set)
        .any(|group| copies(group).binary_search(begin).is_ok())
}

#[cfg(test)]
mod made {
    use super::*;

    impl Flows {
        /// Makes flows of a training model for a test.
        pub(crate) fn made(
            list: Vec<Flow>,
            pipeline: Pipeline,
            places: u32,
            out_is_first: bool,
        ) -> Self {
            Self {
                pipeline,
                is_training: true,
                places,
                out_is_first,
                list: list.into(),
                of_uses: Arc::default(),
                windows: PassWindows::made(vec![true; places as usize]).into(),
                own_steps: Arc::default(),
                summed: Arc::default(),
                lives: None,
            }
        }
    }
}
