//! Which stages make, use, keep and forward a tensor.

mod lives;
mod own_steps;
mod reruns;
mod stash_and_transfers;
mod users;

use lives::{PartOfLife, StageLives};
pub(super) use stash_and_transfers::{Flow, Life, Part, QUANTITIES, Quantity};

use super::{Accumulator, Pipeline, Recompute};
use crate::memory::steps::OfPosition;
use crate::model::{
    Framework, Model, PassPlaces, PlaceSets, Placement, TensorKind, TooManyPlaces, VariableUse,
};
use own_steps::{OwnSteps, Summed};
use rayon::prelude::*;
use reruns::Segments;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use users::KnownFlows;
pub(super) use users::PassWindows;

/// All flows of a model, shared by the pipelines that are tried for it.
#[derive(Debug, Clone)]
pub(in crate::memory) struct Flows {
    pub(super) pipeline: Pipeline,
    /// Is there a backward pass?
    pub(super) is_training: bool,
    /// Number of places: In, each layer, and Out.
    pub(in crate::memory) places: u32,
    /// Is Out, the last place, in one position with In?
    pub(super) out_is_first: bool,
    /// The flows by number.
    pub(super) list: Arc<[Flow]>,
    /// By number of the use: its role in a pipeline.
    of_uses: Arc<[UseInPipeline]>,
    /// Steps at which each place runs.
    pub(super) windows: Arc<PassWindows>,
    /// By number of the use: steps at which each position needs its variables, where these differ.
    own_steps: Arc<FxHashMap<u32, Vec<OfPosition>>>,
    /// Segments of layers that may run again.
    segments: Arc<Segments>,
    /// Gradients that end where accumulators take their values.
    summed: Arc<Summed>,
    /// By number of the use: when variables are live in stages of the pipeline; `None` before
    /// [`Flows::in_pipeline`].
    lives: Option<Arc<StageLives>>,
}

/// The role of a use's variables in a pipeline.
#[derive(Debug, Clone, Copy)]
enum UseInPipeline {
    /// Variables that flow between stages or are kept, by the number of their flow.
    Flow(u32),
    /// A weight that gets an accumulator, with the bytes of one element if they are known.
    Accumulated(Option<u8>),
    /// A weight that no operation updates.
    NotUpdated,
    /// Any other parameter, constants, or variables that no operation with a place uses.
    Other,
}

impl Flows {
    /// Finds the flows of `model` in `pipeline`; its passes end before the step `end`.
    pub(in crate::memory) fn new(
        (model, placement): (&Model, &Placement),
        pipeline: Pipeline,
        end: u32,
    ) -> Self {
        let positions = &placement.positions;
        let mut known = KnownFlows::new(positions);
        let windows = PassWindows::new(model, placement);
        let of_uses = of_uses((model, placement), &windows, &mut known);
        let own_steps = own_steps(model, placement, (&known.list, &of_uses));
        let out_is_first = positions.out_is_first();
        let places = positions.len() as u32 + u32::from(out_is_first);
        let has_out = positions.out().is_some() || out_is_first;
        let is_summed = |of_use: &UseInPipeline| matches!(of_use, UseInPipeline::Accumulated(_));
        let summed = match of_uses.iter().any(is_summed) {
            true => Summed::new(model, end),
            false => Summed::default(),
        };
        Self {
            pipeline,
            is_training: model.backward_start.is_some(),
            places,
            out_is_first,
            list: known.list.into(),
            of_uses,
            segments: Segments::new(&windows, places, has_out).into(),
            windows: windows.into(),
            own_steps: own_steps.into(),
            summed: summed.into(),
            lives: None,
        }
    }

    /// The flows in another pipeline: only when tensors are live differs, by whether layers run
    /// again. The place sets that this needs are added to `sets`.
    ///
    /// # Errors
    /// When more distinct sets of layers share variables than in any real model.
    pub(in crate::memory) fn in_pipeline(
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

    /// The parts of the life of a use's variables; `None` if they are live as in the profile.
    #[inline]
    pub(in crate::memory) fn lives(&self, number: u32) -> Option<&[PartOfLife]> {
        self.lives.as_ref()?.of(number)
    }

    /// The positions of `places`, ascending, each once.
    fn positions_of(&self, mut places: Vec<u32>) -> Vec<u32> {
        for place in &mut places {
            if self.out_is_first && *place == self.places - 1 {
                *place = 0;
            }
        }
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The role of a use's variables in this pipeline.
    #[inline]
    fn of_use(&self, number: u32) -> UseInPipeline {
        let found = self.of_uses.get(number as usize);
        found.copied().unwrap_or(UseInPipeline::Other)
    }

    /// The flow of a use, if it has one.
    #[inline]
    pub(in crate::memory) fn of(&self, number: u32) -> Option<u32> {
        match self.of_use(number) {
            UseInPipeline::Flow(flow) => Some(flow),
            _ => None,
        }
    }

    /// The pass in which stages send the variables of a use (0 forward, 1 backward), and the first
    /// and the last place between which they are sent; `None` if they are not sent.
    pub(in crate::memory) fn sent(&self, number: u32) -> Option<(usize, [u32; 2])> {
        let flow = &self.list[self.of(number)? as usize];
        let (pass, users) = match flow.life {
            Life::Forward | Life::AcrossPasses => (0, &flow.forward),
            Life::Backward => (1, &flow.backward),
        };
        Some((pass, [*users.first()?, *users.last()?]))
    }

    /// Does an operation update the variables of a use? `None` if they are not weights.
    pub(super) fn updates(&self, number: u32) -> Option<bool> {
        match self.of_use(number) {
            UseInPipeline::Accumulated(_) => Some(true),
            UseInPipeline::NotUpdated => Some(false),
            _ => None,
        }
    }

    /// Number of flows.
    pub(in crate::memory) fn len(&self) -> usize {
        self.list.len()
    }

    /// By lane, bytes of the accumulators that are added for a use's variables; `None` if none are.
    pub(in crate::memory) fn accumulators_of<const N: usize>(
        &self,
        number: u32,
        bytes: &[u32; N],
    ) -> Option<[u64; N]> {
        let UseInPipeline::Accumulated(element) = self.of_use(number) else {
            return None;
        };
        let accumulator = self.pipeline.accumulator;
        Some(bytes.map(|bytes| accumulator.bytes(bytes.into(), element)))
    }

    pub(in crate::memory) fn recomputes_layers(&self) -> bool {
        self.is_training && self.pipeline.recompute == Recompute::Layer
    }

    /// Number of forward pipeline stages after a stage with these positions (end exclusive) and
    /// `after` stages after it. Out counts as one more where it is on the first IPU.
    pub(in crate::memory) fn depth(&self, positions: &Range<usize>, after: usize) -> usize {
        let is_whole = positions.len() + 1 == self.places as usize;
        match self.out_is_first {
            true if !is_whole => after + 1,
            _ => after,
        }
    }

    /// Number of additional copies of a stashed tensor that a stage keeps.
    pub(in crate::memory) fn copies(&self, depth: usize) -> u64 {
        match self.is_training {
            true => self.pipeline.schedule.copies(depth),
            false => 0,
        }
    }

    /// Does a place have a backward pass?
    pub(super) fn goes_back(&self, place: u32) -> bool {
        self.windows.at(place).goes_back
    }

    /// Does a place run again in a stage with these places, where each layer runs again? In runs
    /// with the first layer.
    pub(super) fn runs_again(&self, place: u32, places: &Range<u32>) -> bool {
        let with = match place {
            0 => Some(1),
            1 => Some(0),
            _ => None,
        };
        let with = with.filter(|with| places.contains(with));
        self.goes_back(place) || with.is_some_and(|with| self.goes_back(with))
    }

    /// Do transfer buffers differ between phases?
    pub(in crate::memory) fn has_phases(&self) -> bool {
        self.is_training && self.pipeline.is_on()
    }
}

/// By number of the use, the role of its variables in a pipeline; adds new flows to `known`.
fn of_uses(
    (model, placement): (&Model, &Placement),
    windows: &PassWindows,
    known: &mut KnownFlows,
) -> Arc<[UseInPipeline]> {
    let parameters = parameters_by_set(model, &placement.by_pass);
    let flow = |&VariableUse { class, set, .. }: &VariableUse| {
        let Some(life) = Life::of_class(model, class) else {
            return parameters[set as usize];
        };
        let (forward, backward) = placement.by_pass.places(set);
        let kind = model.label_of(set).kind;
        let first = match (forward.len(), backward.len()) {
            _ if [TensorKind::Variable, TensorKind::Constant].contains(&kind) => {
                return UseInPipeline::Other;
            }
            (0, 0) => return UseInPipeline::Other,
            (0..2, 0..2) => known.number(forward, backward),
            // Which of the places use the variable depends on its class.
            _ => {
                let (forward, backward) = windows.users(model, (forward, backward), class);
                known.number(&forward, &backward)
            }
        };
        let streamed = is_streamed(model, set, class);
        UseInPipeline::Flow(first + 2 * life as u32 + u32::from(streamed))
    };
    model.variables.uses().iter().map(flow).collect()
}

/// By use set, the role of its parameters in the pipeline (docs/model.md, "Accumulators and
/// updates"). None is a weight if the profile has accumulators or gradients are not summed up.
fn parameters_by_set(model: &Model, by_pass: &PassPlaces) -> Vec<UseInPipeline> {
    let sets = model.use_sets.len();
    if model.backward_start.is_none() || model.recording.accumulates {
        return vec![UseInPipeline::Other; sets];
    }
    let is_tensorflow = model.recording.framework == Framework::Tensorflow;
    let has_kinds = !is_tensorflow && model.has_weight_labels();
    let updates = model.updates_by_set();
    let of_set = |set: u32| {
        let label = model.label_of(set);
        let (forward, _) = by_pass.places(set);
        let may_be_weight = if has_kinds {
            // Names of optimizer state have these marks before the name of the weight.
            let is_state = ["Accum___", "Accl"]
                .iter()
                .any(|mark| label.tensor.starts_with(mark));
            label.kind == TensorKind::Variable && !is_state
        } else {
            label.kind != TensorKind::Constant
        };
        match updates[set as usize] {
            _ if !may_be_weight || forward.is_empty() => UseInPipeline::Other,
            0 => UseInPipeline::NotUpdated,
            // A variable that several updates use, such as a learning rate, is not a weight.
            2.. if !has_kinds => UseInPipeline::Other,
            _ => UseInPipeline::Accumulated(label.element_bytes),
        }
    };
    (0..sets as u32).map(of_set).collect()
}

impl Accumulator {
    /// Bytes of an accumulator for a weight of `bytes` bytes, whose elements take `element` bytes
    /// each; `bytes` where the size of an element is unknown.
    pub(in crate::memory) fn bytes(self, bytes: u64, element: Option<u8>) -> u64 {
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

/// By number of the use, steps at which each position needs its variables, where these differ.
fn own_steps(
    model: &Model,
    placement: &Placement,
    (list, of_uses): (&[Flow], &[UseInPipeline]),
) -> FxHashMap<u32, Vec<OfPosition>> {
    let own = OwnSteps::new(model, placement);
    let uses = model.variables.uses().par_iter().zip(of_uses).enumerate();
    let of_use = |(number, (variable, of_use)): (usize, (&VariableUse, &UseInPipeline))| {
        let &UseInPipeline::Flow(flow) = of_use else {
            return None;
        };
        let own = own.of(variable, &list[flow as usize]);
        (!own.is_empty()).then_some((number as u32, own))
    };
    uses.filter_map(of_use).collect()
}

/// Does the host send variables of this class? Then an operation of the use set copies from the
/// host at the step where they begin to be live.
fn is_streamed(model: &Model, set: u32, class: u32) -> bool {
    let Some((begin, _)) = model.classes.ranges(class).first() else {
        return false;
    };
    let copies = |group: u32| &model.operation_groups[group as usize].host_copies;
    let mut groups = model.use_sets.groups(set);
    groups.any(|group| copies(group).binary_search(begin).is_ok())
}

#[cfg(test)]
mod made {
    use super::*;

    impl Flows {
        /// Flows of a test, as of a training model.
        pub(in crate::memory::pipeline) fn made(
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
                windows: Arc::default(),
                own_steps: Arc::default(),
                segments: Arc::default(),
                summed: Arc::default(),
                lives: None,
            }
        }
    }
}
