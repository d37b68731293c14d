//! The part of a stage in a flow: whether it makes, uses, stashes or forwards the tensors.

use super::Flows;
use crate::memory::pipeline::{Recompute, Schedule};
use crate::model::{Model, Placement};
use std::ops::Range;

/// Do two places belong to one layer? In belongs to the first layer.
fn are_of_one_layer(place: u32, other: u32) -> bool {
    place.max(1) == other.max(1)
}

/// When a variable that is no parameter is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::memory::pipeline) enum Life {
    /// Only in the forward pass, or in both passes but not over the start of the backward pass.
    Forward,
    /// On the last step of the forward pass and on the first step of the backward pass.
    AcrossPasses,
    /// Only from the start of the backward pass on.
    Backward,
}

impl Life {
    pub(in crate::memory::pipeline) const ALL: [Life; 3] =
        [Life::Forward, Life::AcrossPasses, Life::Backward];

    /// The life of a class; `None` for parameters, which are live on the first and on the last
    /// step, and for a class that is never live.
    pub(in crate::memory::pipeline) fn of_class(model: &Model, class: u32) -> Option<Self> {
        let classes = &model.classes;
        let is_live = |step| classes.is_live(class, step);
        let &(begin, _) = classes.ranges(class).first()?;
        if classes.lasts(class) {
            return None;
        }
        Some(match model.backward_start {
            Some(backward_start) if begin >= backward_start => Life::Backward,
            Some(backward_start) if is_live(backward_start - 1) && is_live(backward_start) => {
                Life::AcrossPasses
            }
            _ => Life::Forward,
        })
    }
}

/// Variables that the same places use and that have the same life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::memory::pipeline) struct Flow {
    /// The places that use the tensor in the forward pass, ascending. If Out is one of
    /// them, it comes last, even where it is on the first IPU.
    pub(in crate::memory::pipeline) forward: Box<[u32]>,
    /// The places that use the tensor in the backward pass and in updates, ascending.
    pub(in crate::memory::pipeline) backward: Box<[u32]>,
    pub(in crate::memory::pipeline) life: Life,
    /// Does the host send the tensor?
    pub(in crate::memory::pipeline) is_streamed: bool,
}

/// What a stage does with the tensors of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::memory::pipeline) struct Part {
    /// The stage keeps the tensor from its forward to its backward pass.
    pub(in crate::memory::pipeline) kept: bool,
    /// By [`Quantity`]: do the bytes of the tensor count for it?
    pub(in crate::memory::pipeline) counts: [bool; QUANTITIES],
}

/// A quantity that bytes of flows count for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::memory::pipeline) enum Quantity {
    /// The stage keeps a copy of the tensor for each micro-batch in flight: multiplied by the number
    /// of copies.
    Stash,
    /// Out, on the IPU of the stage, takes the tensor from it, and the stage does not stash it:
    /// multiplied by the number of all pipeline stages.
    ForOut,
    /// The stage forwards the tensor, which it does not use, to a later stage.
    PassesForward,
    /// The stage forwards the gradient, which it does not use, to an earlier stage.
    PassesBackward,
    /// An earlier stage makes the tensor, and the forward pass of this stage uses it.
    Enters,
    /// The stage makes or receives the tensor, and a later stage uses it.
    Leaves,
    /// The tensor is a gradient from a later stage.
    GradientIn,
    /// The tensor is a gradient for an earlier stage.
    GradientOut,
}

pub(in crate::memory::pipeline) const QUANTITIES: usize = 8;

impl Quantity {
    /// All quantities, each at the index `quantity as usize`.
    const ALL: [Quantity; QUANTITIES] = [
        Quantity::Stash,
        Quantity::ForOut,
        Quantity::PassesForward,
        Quantity::PassesBackward,
        Quantity::Enters,
        Quantity::Leaves,
        Quantity::GradientIn,
        Quantity::GradientOut,
    ];
}

impl Flow {
    /// The place that makes the tensor in the forward pass; `None` if the host sends it.
    pub(in crate::memory::pipeline) fn maker(&self) -> Option<u32> {
        self.forward.first().copied().filter(|_| !self.is_streamed)
    }

    /// Is the tensor live across the passes, and do all places that count variables of `set` use
    /// it? Then the place that makes it again is known, where layers run again.
    pub(in crate::memory::pipeline) fn is_layered(&self, placement: &Placement, set: u32) -> bool {
        let positions = &placement.positions;
        let out = positions.len() as u32;
        let users = [&self.forward, &self.backward];
        let uses = |place| users.iter().any(|pass| pass.binary_search(&place).is_ok());
        let is_first_with_out = |place| positions.out_is_first() && place == 0;
        let is_used = |place: u32| uses(place) || (is_first_with_out(place) && uses(out));
        let counted = placement.sets.places(placement.counted[set as usize]);
        self.life == Life::AcrossPasses
            && !self.backward.is_empty()
            && !counted.is_empty()
            && counted.iter().all(|&place| is_used(place))
    }

    /// The part of a stage with these places: the definitions of docs/model.md, "Pipelines", in
    /// their literal form.
    pub(in crate::memory::pipeline) fn part_of(&self, places: &Range<u32>, flows: &Flows) -> Part {
        let met = |users: &[u32]| !users_in(users, places).is_empty();
        let comes_before = |users: &[u32]| users.first().is_some_and(|&user| user < places.start);
        let comes_after = |users: &[u32]| users.last().is_some_and(|&user| user >= places.end);
        let passes = |users: &[u32]| comes_before(users) && comes_after(users) && !met(users);
        let (forward, backward) = (&*self.forward, &*self.backward);
        let is_gradient = self.life == Life::Backward;
        let has_forward = met(forward) && !is_gradient;
        let gradient_maker = backward.last().filter(|_| is_gradient);
        let kept = self.life == Life::AcrossPasses && met(backward);
        let enters = has_forward && (self.is_streamed || comes_before(forward));
        let stashed = match flows.pipeline.recompute {
            Recompute::None => kept,
            Recompute::Stage => enters && places.clone().any(|place| flows.goes_back(place)),
            Recompute::Layer => self.is_checkpoint(places, flows, (kept, enters)),
        };
        let is_copied = flows.is_training && stashed;
        let counts = |quantity| match quantity {
            Quantity::Stash => stashed,
            Quantity::ForOut => {
                has_forward
                    && !is_copied
                    && flows.pipeline.schedule == Schedule::Popart
                    && flows.is_beside_out(places)
                    && forward.last() == Some(&flows.out().start)
            }
            Quantity::PassesForward => !is_gradient && passes(forward),
            Quantity::PassesBackward => is_gradient && passes(backward),
            Quantity::Enters => enters,
            Quantity::Leaves => has_forward && comes_after(forward),
            Quantity::GradientIn => is_gradient && met(backward) && comes_after(backward),
            Quantity::GradientOut => {
                let is_made = gradient_maker.is_some_and(|maker| places.contains(maker));
                is_made && comes_before(backward)
            }
        };
        Part {
            kept,
            counts: Quantity::ALL.map(counts),
        }
    }

    /// Where layers of the stage run again: does a layer run again from this tensor, or does a
    /// place that does not run again keep it for the backward pass?
    fn is_checkpoint(
        &self,
        places: &Range<u32>,
        flows: &Flows,
        (kept, enters): (bool, bool),
    ) -> bool {
        if self.life == Life::Backward {
            return false;
        }
        let again = |place: u32| flows.runs_again(place, places);
        let users = users_in(&self.forward, places);
        let layers = users.iter().copied().filter(|&user| user > 0);
        let is_made_once =
            |maker| places.contains(&maker) && !flows.runs_again(maker, &(0..flows.places));
        // The output of a layer is a checkpoint.
        let is_end = |maker: u32| {
            let mut users = users.iter();
            places.contains(&maker) && users.any(|&user| !are_of_one_layer(maker, user))
        };
        let is_kept = |maker| is_made_once(maker) || is_end(maker);
        (enters && users.iter().any(|&user| again(user)))
            || layers.skip(1).any(again)
            || (kept && self.maker().is_some_and(is_kept))
    }
}

/// The part of `users` (ascending) that lies in `places`.
fn users_in<'u>(users: &'u [u32], places: &Range<u32>) -> &'u [u32] {
    let first = users.partition_point(|&user| user < places.start);
    let users = &users[first..];
    &users[..users.partition_point(|&user| user < places.end)]
}
