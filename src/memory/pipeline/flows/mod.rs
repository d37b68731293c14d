//! Which stages a tensor is made in, used in, kept in and passed through.

mod accumulators;
mod part;
mod tile;
mod users;

pub(super) use part::{Flow, Life, Part};
pub(in crate::memory) use tile::TileFlows;

use super::{Pipeline, Recompute, Schedule};
use crate::model::{Model, PassPlaces, Placement, TooManyPlaces, VariableUse};
use accumulators::AccumulatorSize;
use std::ops::Range;
use std::sync::Arc;
use users::{KnownFlows, OfSet, PassWindows};

/// All flows of a model, which are shared with the same model in other pipelines.
#[derive(Debug, Clone)]
pub(in crate::memory) struct Flows {
    pub(super) pipeline: Pipeline,
    /// Is there a backward pass?
    pub(super) is_training: bool,
    /// The places: those of In, of each layer, and of Out.
    pub(super) places: u32,
    /// Is Out, the last place, in one position with In?
    pub(super) out_is_first: bool,
    /// The flows by number.
    pub(super) list: Arc<[Flow]>,
    /// By number of the use.
    of_uses: Arc<[UseInPipeline]>,
}

/// What a pipeline does with the variables of a use.
#[derive(Debug, Clone, Copy)]
enum UseInPipeline {
    /// They flow between stages, or are kept.
    Flow {
        flow: u32,
        /// Do pipelines that make activations again layer by layer make them again?
        is_layered: bool,
    },
    /// They are weights that get an accumulator.
    Accumulated(AccumulatorSize),
    /// Nothing: they are other parameters, constants, or what no operation with a place
    /// uses.
    Other,
}

impl Flows {
    /// Those of `model` in `pipeline`.
    ///
    /// # Errors
    /// When layers share variables in more ways than those of any real model.
    pub(in crate::memory) fn new(
        model: &Model,
        placement: &Placement,
        pipeline: Pipeline,
    ) -> Result<Self, TooManyPlaces> {
        let by_pass = PassPlaces::new(model, placement)?;
        let positions = &placement.positions;
        let mut known = KnownFlows::new(positions);
        let of_uses = of_uses(model, placement, &by_pass, &mut known);
        Ok(Self {
            pipeline,
            is_training: model.turn.is_some(),
            places: positions.len() as u32 + u32::from(positions.out_is_first()),
            out_is_first: positions.out_is_first(),
            list: known.list.into(),
            of_uses,
        })
    }

    /// The same tensors flow in every pipeline that is on.
    pub(in crate::memory) fn in_pipeline(&self, pipeline: Pipeline) -> Self {
        let own = self.clone();
        Self { pipeline, ..own }
    }

    /// What it does with the variables of a use.
    #[inline]
    fn of_use(&self, number: u32) -> UseInPipeline {
        let own = self.of_uses.get(number as usize);
        own.copied().unwrap_or(UseInPipeline::Other)
    }

    /// The flow of a use, if it has one.
    #[inline]
    pub(in crate::memory) fn of(&self, number: u32) -> Option<u32> {
        match self.of_use(number) {
            UseInPipeline::Flow { flow, .. } => Some(flow),
            UseInPipeline::Accumulated(_) | UseInPipeline::Other => None,
        }
    }

    /// How many flows there are.
    pub(in crate::memory) fn len(&self) -> usize {
        self.list.len()
    }

    /// Bytes of the accumulator of a weight.
    fn accumulator_bytes(&self, AccumulatorSize(element): AccumulatorSize, bytes: u32) -> u64 {
        self.pipeline.accumulator.bytes(bytes.into(), element)
    }

    /// Are the variables of a use made again layer by layer, so that they are not live in
    /// all layers at once?
    pub(in crate::memory) fn is_recomputed(&self, number: u32) -> bool {
        let is_layered = matches!(
            self.of_use(number),
            UseInPipeline::Flow {
                is_layered: true,
                ..
            }
        );
        is_layered && self.recomputes_layers()
    }

    pub(in crate::memory) fn pipeline(&self) -> Pipeline {
        self.pipeline
    }

    pub(in crate::memory) fn recomputes_layers(&self) -> bool {
        self.is_training && self.pipeline.recompute == Recompute::Layer
    }

    /// Forward pipeline stages after a stage with these positions, which has
    /// `after` stages after it. Out is one more where it is on the first IPU.
    pub(in crate::memory) fn depth(&self, positions: &Range<usize>, after: usize) -> usize {
        let is_whole = positions.len() + 1 == self.places as usize;
        match self.out_is_first {
            true if !is_whole => after + 1,
            _ => after,
        }
    }

    /// How many more copies of what it stashes a stage keeps.
    pub(in crate::memory) fn copies(&self, depth: usize) -> u64 {
        match self.is_training {
            true => self.pipeline.schedule.copies(depth),
            false => 0,
        }
    }

    /// Do gradients and activations wait for other stages?
    pub(super) fn has_waiting(&self) -> bool {
        self.is_training && self.pipeline.schedule.overlaps()
    }

    /// Do gradients wait that come from a later stage? Even where stages do not
    /// overlap they do, while their stage makes its activations again.
    pub(super) fn gradients_wait(&self) -> bool {
        let is_again = self.is_training && self.pipeline.recompute != Recompute::None;
        (self.has_waiting() && !self.is_backward_first())
            || (self.pipeline.schedule == Schedule::Sequential && is_again)
    }

    /// Does the backward pass come before the forward pass in a cycle?
    pub(super) fn is_backward_first(&self) -> bool {
        matches!(
            self.pipeline.schedule,
            Schedule::TfGrouped | Schedule::TfInterleaved
        )
    }
}

/// What a pipeline does with each use of data; flows that are not known yet become known.
fn of_uses(
    model: &Model,
    placement: &Placement,
    by_pass: &PassPlaces,
    known: &mut KnownFlows,
) -> Arc<[UseInPipeline]> {
    let of_set = known.of_sets(model, by_pass);
    let windows = PassWindows::new(model, placement, by_pass);
    let accumulators = accumulators::by_set(model, by_pass);
    let flow = |&VariableUse { class, set, .. }: &VariableUse| {
        let Some(life) = Life::of_class(model, class) else {
            let size = accumulators[set as usize];
            return size.map_or(UseInPipeline::Other, UseInPipeline::Accumulated);
        };
        let first = match of_set[set as usize] {
            OfSet::None => return UseInPipeline::Other,
            OfSet::First(first) => first,
            OfSet::ByClass => {
                let (forward, backward) = windows.users(model, by_pass.places(set), class);
                known.number(&forward, &backward)
            }
        };
        let streamed = is_streamed(model, &by_pass.streams[set as usize], class);
        let flow = first + 2 * life as u32 + u32::from(streamed);
        let is_layered = known.list[flow as usize].is_layered(placement, set);
        UseInPipeline::Flow { flow, is_layered }
    };
    model.variables.uses().iter().map(flow).collect()
}

/// Does the host send a variable of this class, which these operation groups copy
/// from or to it? Then it begins to be live as it is copied.
fn is_streamed(model: &Model, streams: &[u32], class: u32) -> bool {
    let mut streams = streams.iter();
    streams.any(|&group| {
        let copies = &model.operation_groups[group as usize].host_copies;
        let begin = model.classes.ranges(class).first();
        begin.is_some_and(|(begin, _)| copies.binary_search(begin).is_ok())
    })
}

#[cfg(test)]
impl Flows {
    /// Those that a test made, of a training model.
    pub(super) fn made(
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
        }
    }
}
