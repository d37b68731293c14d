//! Which stages a tensor is made in, used in, kept in and passed through.

mod accumulators;
mod part;
mod tile;
mod users;
mod uses;

pub(super) use part::{Flow, Life, Part};
pub(in crate::memory) use tile::TileFlows;

use super::{Pipeline, Recompute, Schedule};
use crate::model::{Model, PassPlaces, Placement, TooManyPlaces};
use accumulators::AccumulatorSize;
use std::ops::Range;
use std::sync::Arc;
use users::{KnownFlows, OfSet};
use uses::FlowsOfUses;

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
    /// By use: its flow.
    of_uses: FlowsOfUses,
    /// By user set: where it counts.
    counted: Arc<[Box<[u32]>]>,
    /// By user set: bytes of an accumulator are these for each byte of it.
    accumulators: Arc<[Option<AccumulatorSize>]>,
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
        let life = |class| Life::of_class(model, class);
        let life_of_class: Vec<_> = (0..model.classes.len() as u32).map(life).collect();
        let mut known = KnownFlows::new(positions);
        let of_set = known.of_sets(model, &by_pass);
        let has_flow = |(class, set): (u32, u32)| {
            life_of_class[class as usize].is_some() && !matches!(of_set[set as usize], OfSet::None)
        };
        let uses = model
            .variables
            .uses()
            .iter()
            .map(|own| (own.class, own.set));
        let uses: Vec<_> = uses.filter(|&own| has_flow(own)).collect();
        let of_uses = known.of_uses(model, (&by_pass, placement), &of_set, &uses);
        let lasting = life_of_class.iter().map(Option::is_none);
        let of_uses = FlowsOfUses::new(lasting, &uses, |(class, set)| {
            let first = match of_set[set as usize] {
                OfSet::First(first) => first,
                OfSet::None | OfSet::ByClass => of_uses[&(class, set)],
            };
            let life = life_of_class[class as usize].unwrap_or(Life::Forward);
            let streamed = is_streamed(model, &by_pass.streams[set as usize], class);
            first + 2 * life as u32 + u32::from(streamed)
        });
        let counted = placement.counted.iter();
        let counted = counted.map(|&set| placement.sets.places(set).into());
        Ok(Self {
            pipeline,
            is_training: model.turn.is_some(),
            places: positions.len() as u32 + u32::from(positions.out_is_first()),
            out_is_first: positions.out_is_first(),
            list: known.list.into(),
            of_uses,
            counted: counted.collect(),
            accumulators: accumulators::by_set(model, &by_pass).into(),
        })
    }

    /// The same tensors flow in every pipeline that is on.
    pub(in crate::memory) fn in_pipeline(&self, pipeline: Pipeline) -> Self {
        let own = self.clone();
        Self { pipeline, ..own }
    }

    /// The flow of a variable; `None` for parameters, constants, and what no
    /// operation with a place uses.
    #[inline]
    pub(in crate::memory) fn of(&self, class: u32, set: u32) -> Option<u32> {
        self.of_uses.of((class, set))
    }

    /// How many flows there are.
    pub(in crate::memory) fn len(&self) -> usize {
        self.list.len()
    }

    /// How large the accumulator of a variable is, if it is a weight that gets one.
    fn accumulator_size(&self, class: u32, set: u32) -> Option<AccumulatorSize> {
        let lasts = self.of_uses.is_lasting(class);
        lasts.then(|| self.accumulators[set as usize]).flatten()
    }

    /// Bytes of the accumulator of a weight.
    fn accumulator_bytes(&self, AccumulatorSize(element): AccumulatorSize, bytes: u32) -> u64 {
        self.pipeline.accumulator.bytes(bytes.into(), element)
    }

    /// Is a variable made again layer by layer, so that it is not live in all
    /// layers at once?
    pub(in crate::memory) fn is_recomputed(&self, class: u32, set: u32) -> bool {
        self.recomputes_layers()
            && self.of(class, set).is_some_and(|flow| {
                let flow = &self.list[flow as usize];
                flow.life == Life::OverTurn
                    && !flow.backward.is_empty()
                    && self.is_only_used_by(flow, set)
            })
    }

    /// Do only places count a set that use this flow of it?
    fn is_only_used_by(&self, flow: &Flow, set: u32) -> bool {
        let uses = |place| flow.forward.contains(&place) || flow.backward.contains(&place);
        let is_first_with_out = |place| self.out_is_first && place == 0;
        let is_used =
            |place: u32| uses(place) || (is_first_with_out(place) && uses(self.places - 1));
        let counted = &self.counted[set as usize];
        !counted.is_empty() && counted.iter().all(|&place| is_used(place))
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
            of_uses: FlowsOfUses::default(),
            counted: Arc::default(),
            accumulators: Arc::default(),
        }
    }
}
