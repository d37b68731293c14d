//! Flows: groups of tensors that the same layers use. A stage can make, use, keep and forward the
//! tensors of a flow, and treats all of them alike.

mod lives;
mod stash_and_transfers;
mod users;

use lives::StageLives;
pub(super) use stash_and_transfers::{Flow, Life, QUANTITIES, Quantity, StageRole, users_in};

use super::{Accumulator, Pipeline, Recompute, StageRoles};
use crate::{
    memory::steps::StepsOfPosition,
    model::{
        Framework, Model, PassPlaces, PlaceSets, Placement, TensorKind, TooManyPlaces, VariableUse,
    },
};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::{ops::Range, sync::Arc};
pub(super) use users::{BackwardPass, PassWindows};
use users::{KnownFlows, OwnSteps};

/// All *flows* of a model in a pipeline. A flow is a group of tensors that the same places (In,
/// layers, Out) use in the same passes; its number is its index in `list`. The flows of one model
/// in several pipelines share most of their data.
#[derive(Debug, Clone)]
pub(crate) struct Flows {
    pub pipeline: Pipeline,
    pub is_training: bool,
    /// The number of places: In, each layer, and Out, numbered in this order. Out is a place of its
    /// own even if it is on the first IPU, where it shares a position with In.
    pub places: u32,
    pub out_is_first: bool,
    pub list: Arc<[Flow]>,
    /// One entry per use, in the order of [`CountedUses`](crate::memory::uses::CountedUses): the
    /// role of its variables in a pipeline, such as a weight that gets an accumulator. A use is all
    /// variables that are live at the same steps and are used by the same operations.
    of_uses: Arc<[UseInPipeline]>,
    /// The liveness steps at which the operations of each place (In, a layer or Out) run, in the
    /// forward and in the backward pass.
    pub windows: Arc<PassWindows>,
    /// The liveness steps at which each position (In, a layer or Out) needs the variables of a use
    /// (variables that are live at the same steps and are used by the same operations). The key is
    /// the number of the use. A use is missing if all positions need its variables whenever these
    /// are live.
    own_steps: Arc<FxHashMap<u32, Vec<StepsOfPosition>>>,
    /// For each flow (tensors that the same layers use): whether Out (the operations after the last
    /// layer) stashes, receives or sends its tensors when Out is a pipeline stage of its own on the
    /// first IPU. `None` if Out is on another IPU, or as long as no pipeline has been chosen
    /// ([`Flows::in_pipeline`]).
    pub roles_of_out: Option<Arc<StageRoles>>,
    /// The liveness steps at which variables are live in stages of the pipeline; `None` as long as
    /// no pipeline has been chosen ([`Flows::in_pipeline`]).
    lives: Option<Arc<StageLives>>,
}

/// The role of variables in a pipeline, such as a weight that gets an accumulator. Variables that
/// are live at the same steps and are used by the same operations have the same role.
#[derive(Debug, Clone, Copy)]
pub(crate) enum UseInPipeline {
    /// Tensors that layers (also In or Out) use, other than parameters and constants. The value is
    /// the index in [`Flows::list`] of their flow (tensors with the same users).
    Flow(u32),
    /// A weight that gets an accumulator of its gradients. The value is the number of bytes of one
    /// element of the weight; `None` if it is unknown.
    Accumulated(Option<u8>),
    /// A weight that no operation updates, so that it gets no accumulator of gradients.
    NotUpdated,
    /// Variables for which a pipeline adds no bytes: constants, parameters that are neither
    /// [`Accumulated`](Self::Accumulated) nor [`NotUpdated`](Self::NotUpdated), and variables that
    /// no operation with a place (In, a layer or Out) uses.
    Other,
}

impl Flows {
    /// Finds the flows of `model`, that is, groups of tensors that the same layers use. The steps
    /// at which variables are live in stages are still missing; [`Flows::in_pipeline`] adds them.
    pub fn new(model: &Model, placement: &Placement) -> Self {
        let positions = &placement.positions;
        let mut known = KnownFlows::new(positions);
        let windows = PassWindows::new(model, placement);
        let of_uses = UseInPipeline::of_uses((model, placement), &windows, &mut known);
        let own = OwnSteps::new(model, placement);
        let own_steps: FxHashMap<_, _> = model
            .variables
            .uses()
            .par_iter()
            .zip(&*of_uses)
            .enumerate()
            .filter_map(|(number, (variable, of_use))| {
                let &UseInPipeline::Flow(flow) = of_use else {
                    return None;
                };
                Some((number as u32, own.of(variable, &known.list[flow as usize])?))
            })
            .collect();
        let out_is_first = positions.out_is_first();
        let places = positions.len() as u32 + u32::from(out_is_first);
        Self {
            pipeline: Pipeline::default(),
            is_training: model.backward_start.is_some(),
            places,
            out_is_first,
            list: known.list.into(),
            of_uses,
            windows: windows.into(),
            own_steps: own_steps.into(),
            roles_of_out: None,
            lives: None,
        }
    }

    /// Returns these flows (groups of tensors that the same layers use) with the data that depends
    /// on the settings `pipeline`: whether Out stashes or sends the tensors, and the liveness steps
    /// of variables in stages. New sets of positions (In, layers, Out) in this data are added to
    /// `sets`.
    pub fn in_pipeline(
        mut self,
        pipeline: Pipeline,
        at: (&Model, &Placement),
        sets: &mut Arc<PlaceSets>,
    ) -> Result<Self, TooManyPlaces> {
        let recomputed = self.recomputes_layers();
        self.pipeline = pipeline;
        self.roles_of_out = self.find_roles_of_out();
        if self.lives.is_none() || recomputed != self.recomputes_layers() {
            let lives = StageLives::new(at, &self, Arc::make_mut(sets))?;
            self.lives = Some(lives.into());
        }
        Ok(self)
    }

    fn find_roles_of_out(&self) -> Option<Arc<StageRoles>> {
        self.out_is_first
            .then(|| self.stage_roles(self.out()).into())
    }

    #[inline]
    pub fn of_use(&self, number: u32) -> UseInPipeline {
        self.of_uses[number as usize]
    }

    #[inline]
    pub fn of(&self, number: u32) -> Option<u32> {
        match self.of_use(number) {
            UseInPipeline::Flow(flow) => Some(flow),
            _ => None,
        }
    }

    /// Returns the pass (0 forward, 1 backward) in which stages send certain variables to each
    /// other, and the first and the last place (In, a layer or Out; both inclusive) that use them
    /// in this pass. `number` is the index of the use (variables that are live at the same steps
    /// and are used by the same operations). Returns `None` if no place uses them in this pass.
    pub fn sent(&self, number: u32) -> Option<(usize, [u32; 2])> {
        let flow = &self.list[self.of(number)? as usize];
        let (pass, users) = match flow.life {
            Life::Forward | Life::AcrossPasses => (0, &flow.forward),
            Life::Backward => (1, &flow.backward),
        };
        Some((pass, [*users.first()?, *users.last()?]))
    }

    /// Returns whether the pipeline recomputes the activations of each layer in the backward pass;
    /// false without training.
    pub fn recomputes_layers(&self) -> bool {
        self.is_training && self.pipeline.recompute == Recompute::Layer
    }

    /// Returns how many stages run the forward pass of a micro-batch after the stage with the
    /// positions `positions` (end exclusive). These are the `after` later stages of the split, and
    /// Out (the operations after the last layer) if it is a pipeline stage of its own on the first
    /// IPU.
    pub fn depth(&self, positions: &Range<usize>, after: usize) -> usize {
        let is_whole = positions.len() + 1 == self.places as usize;
        after + usize::from(self.out_is_first && !is_whole)
    }

    /// Returns the number of additional copies of each stashed tensor that a stage keeps for
    /// micro-batches in flight, if `depth` stages follow it in the forward pass. Returns 0 for
    /// inference, which stashes nothing.
    pub fn copies(&self, depth: usize) -> u64 {
        u64::from(self.is_training) * self.pipeline.schedule.copies(depth)
    }

    pub fn goes_back(&self, place: u32) -> bool {
        self.backward_of(place).goes_back
    }

    pub fn backward_of(&self, place: u32) -> BackwardPass {
        self.windows.at(place).backward_pass
    }

    /// Returns whether a stage that runs `places` recomputes the forward pass of `place` (In, a
    /// layer or Out) in a pipeline that recomputes each layer. In (the operations before the first
    /// layer) and the first layer are recomputed together if the stage has both.
    pub fn runs_again(&self, place: u32, places: &Range<u32>) -> bool {
        let with = [1, 0]
            .get(place as usize)
            .filter(|with| places.contains(with));
        self.goes_back(place) || with.is_some_and(|&with| self.goes_back(with))
    }
}

impl UseInPipeline {
    fn of_uses(
        (model, placement): (&Model, &Placement),
        windows: &PassWindows,
        known: &mut KnownFlows,
    ) -> Arc<[Self]> {
        let by_pass = &placement.by_pass;
        let parameters = Self::of_parameters(model, by_pass);
        let mut numbers = FxHashMap::default();
        let flow = |&VariableUse { class, set, .. }: &VariableUse| {
            // Weights and constants are recognised by their labels and not by their live ranges,
            // since not every weight is live at all steps.
            let is_parameter =
                [TensorKind::Variable, TensorKind::Constant].contains(&model.label_of(set).kind);
            let Some(life) = Life::of_class(model, class).filter(|_| !is_parameter) else {
                return parameters[set as usize];
            };
            let (forward, backward) = by_pass.places(set);
            let is_streamed = is_streamed(model, set, class);
            let mut number = |(forward, backward)| {
                known.number(Flow {
                    forward,
                    backward,
                    life,
                    is_streamed,
                })
            };
            Self::Flow(match (forward.len(), backward.len()) {
                (0, 0) => return Self::Other,
                (0..2, 0..2) => {
                    let set = set as usize;
                    let users = (by_pass.forward[set], by_pass.backward[set]);
                    *numbers
                        .entry((users, life, is_streamed))
                        .or_insert_with(|| number((forward.into(), backward.into())))
                }
                // Several places (In, layers, Out) may use the variables in one pass, for example
                // if they call one function. The live ranges of the variables then decide which of
                // the places in `forward` and `backward` really use them ([`PassWindows::users`]).
                _ => number(windows.users(model, (forward, backward), class)),
            })
        };
        model.variables.uses().iter().map(flow).collect()
    }

    /// Returns one entry per use set (the operations that use a variable): the role of parameters
    /// with this use set in a pipeline, such as a weight that gets an accumulator (docs/model.md,
    /// "Accumulators and updates"). Without a backward pass, or if the profile already has
    /// accumulators, no weight gets an accumulator.
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
                    // A PopART tensor whose name begins with `Accum___` or `Accl` is an accumulator
                    // or optimizer state, and therefore no weight.
                    let marks = ["Accum___", "Accl"];
                    label.kind == TensorKind::Variable
                        && !marks.iter().any(|mark| label.tensor.starts_with(mark))
                } else {
                    label.kind != TensorKind::Constant
                };
                match updates[set as usize] {
                    _ if !may_be_weight || forward.is_empty() => Self::Other,
                    0 => Self::NotUpdated,
                    // A variable that the updates of several weights use is not a weight but, for
                    // example, a learning rate.
                    2.. if !has_kinds => Self::Other,
                    _ => Self::Accumulated(label.element_bytes),
                }
            })
            .collect()
    }
}

impl Accumulator {
    /// Returns the bytes of the accumulator of a weight that takes `bytes` bytes. `element` is the
    /// number of bytes of one element of the weight; if it is unknown, the accumulator takes as
    /// many bytes as the weight.
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

/// Returns whether the host sends variables: whether any operation that uses them copies data from
/// the host at the first step at which they are live. `set` is the use set of the variables (the
/// operations that use them), and `class` their equivalence class (all variables that are live at
/// the same steps).
fn is_streamed(model: &Model, set: u32, class: u32) -> bool {
    let Some((begin, _)) = model.classes.ranges(class).first() else {
        return false;
    };
    let mut copies = model
        .use_sets
        .groups(set)
        .map(|group| &model.operation_groups[group].host_copies);
    copies.any(|steps| steps.binary_search(begin).is_ok())
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod made {
    use super::*;

    impl Flows {
        pub(crate) fn made(
            list: Vec<Flow>,
            pipeline: Pipeline,
            places: u32,
            out_is_first: bool,
        ) -> Self {
            let mut flows = Self {
                pipeline,
                is_training: true,
                places,
                out_is_first,
                list: list.into(),
                of_uses: Arc::default(),
                windows: PassWindows::made(vec![true; places as usize]).into(),
                own_steps: Arc::default(),
                roles_of_out: None,
                lives: None,
            };
            flows.roles_of_out = flows.find_roles_of_out();
            flows
        }
    }
}
