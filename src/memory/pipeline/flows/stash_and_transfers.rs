//! Decides what each pipeline stage does with the tensors of each flow (tensors that the same
//! layers use): whether it stashes them, in how many copies, and whether it receives them from or
//! sends them to other stages. `additions.rs` sums up their bytes.

use super::Flows;
use crate::{
    memory::pipeline::{Recompute, Schedule},
    model::{Model, Placement},
};
use std::ops::Range;

impl Schedule {
    /// Returns the number of additional copies of each stashed tensor that a stage of a training
    /// pipeline keeps, if `depth` stages follow it in the forward pass (docs/model.md,
    /// "Pipelines").
    pub fn copies(self, depth: usize) -> u64 {
        let depth = depth as u64;
        match self {
            _ if depth == 0 => 0,
            Schedule::Popart => 2 * depth + 1,
            Schedule::TfGrouped => 2 * depth,
            Schedule::TfInterleaved => depth,
            Schedule::None | Schedule::Sequential => 0,
        }
    }
}

/// The passes in which variables of a flow (tensors with the same users) are live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Life {
    /// Variables that are live in the forward pass but need not be kept for the backward pass: none
    /// of their live ranges includes both the last step of the forward pass and the first step of
    /// the backward pass.
    Forward,
    /// Variables that are kept for the backward pass: they are live at the last step of the forward
    /// pass and at the first step of the backward pass.
    AcrossPasses,
    /// Variables that are not live before the backward pass, such as gradients.
    Backward,
}

impl Life {
    /// Returns the passes in which variables of the equivalence class `class` (variables that are
    /// live at the same steps) are live. Returns `None` for parameters, which are live at the first
    /// and at the last liveness step of the profile, and for variables that are never live.
    pub fn of_class(model: &Model, class: u32) -> Option<Self> {
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

/// A group of tensors that the same places (In, layers, Out) use, and that are live in the same
/// passes, so that a stage treats them alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Flow {
    /// The places (In, layers, Out; by number) that use each tensor of this group in the forward
    /// pass, in ascending order. Out has the highest number, even if it is on the first IPU.
    pub forward: Box<[u32]>,
    /// The places (In, layers, Out; by number) that use each tensor of this group in the backward
    /// pass and in weight updates, in ascending order.
    pub backward: Box<[u32]>,
    pub life: Life,
    /// Whether the host sends the tensors of this group to the IPUs, so that no operation of the
    /// model makes them.
    pub is_streamed: bool,
}

/// What one stage does with the tensors of one flow (tensors with the same users).
#[derive(Debug, Clone, Copy, Default)]
pub struct StageRole {
    /// Whether the stage keeps the tensors of the flow from its forward to its backward pass.
    pub kept: bool,
    /// One entry per [`Quantity`], a sum of bytes such as those that a stage stashes: whether the
    /// sum includes the tensors of the flow (tensors with the same users).
    pub counts: [bool; QUANTITIES],
}

/// A sum of bytes of a stage: the bytes of all flows (tensors with the same users) that the stage
/// treats in one way, such as stashing. From these sums follow the bytes that a pipeline adds to
/// the stage.
#[derive(Clone, Copy)]
pub enum Quantity {
    /// Bytes of tensors that the stage stashes, one copy of each. The stage keeps [`Flows::copies`]
    /// additional copies of each of them for the micro-batches in flight.
    Stash,
    /// Bytes of tensors that the forward passes of the first stage and of Out (the operations after
    /// the last layer) both use, without stashed tensors. Only for PopART with Out as a pipeline
    /// stage of its own on the first IPU, which then holds a copy of each such tensor for each
    /// micro-batch between the first stage and Out.
    ForOut,
    /// Bytes of tensors that the stage forwards to a later stage without using them.
    PassesForward,
    /// Bytes of gradients that the stage forwards to an earlier stage without using them.
    PassesBackward,
    /// Bytes of tensors that an earlier stage or the host makes, and that the forward pass of this
    /// stage uses.
    Enters,
    /// Bytes of tensors that the stage makes or receives in the forward pass, and that the forward
    /// pass of a later stage uses.
    Leaves,
    /// Bytes of gradients that the stage receives from a later stage.
    GradientIn,
    /// Bytes of gradients that the stage makes for an earlier stage.
    GradientOut,
    /// Bytes of tensors that enter the stage (see [`Quantity::Enters`]) and that only its forward
    /// pass still needs: its backward pass and the forward passes of later stages do not use them.
    /// Always 0 for the last pipeline stage, which is not recomputed.
    EntersLast,
    /// Bytes of tensors that an earlier stage makes or receives, and that the forward pass of this
    /// stage uses. Tensors that the host sends to this stage are left out: they are live in this
    /// stage as soon as the host has sent them.
    EntersFromStage,
}

pub const QUANTITIES: usize = 10;

impl Flow {
    /// Returns the number of the place (In, a layer or Out) that makes the tensors of this flow,
    /// that is, the first place that uses them in the forward pass. Returns `None` if the host
    /// sends the tensors, or if no place uses them in the forward pass.
    pub fn maker(&self) -> Option<u32> {
        self.forward.first().copied().filter(|_| !self.is_streamed)
    }

    /// Returns whether it is known which layer recomputes tensors of this flow (tensors with the
    /// same users). `set` is the use set of the tensors (the operations that use them). The layer
    /// is known if all of these conditions hold:
    /// - The tensors are kept for the backward pass.
    /// - A place (In, a layer or Out) uses them in the backward pass.
    /// - Each position to which their bytes are attributed uses them.
    pub fn is_layered(&self, placement: &Placement, set: u32) -> bool {
        let positions = &placement.positions;
        let out = positions.len() as u32;
        let uses = |place| {
            [&self.forward, &self.backward]
                .iter()
                .any(|pass| pass.binary_search(&place).is_ok())
        };
        let is_used =
            |&place: &u32| uses(place) || (place == 0 && positions.out_is_first() && uses(out));
        let counted = placement.sets.places(placement.counted[set as usize]);
        self.life == Life::AcrossPasses
            && !self.backward.is_empty()
            && !counted.is_empty()
            && counted.iter().all(is_used)
    }

    /// Determines what a stage that runs `places` (the numbers of In, layers or Out; end exclusive)
    /// does with the tensors of this flow (tensors with the same users), directly by the
    /// definitions of docs/model.md, "Pipelines". `flows` has the settings of the pipeline.
    pub fn role_of(&self, places: &Range<u32>, flows: &Flows) -> StageRole {
        let met = |users: &[u32]| !users_in(users, places).is_empty();
        let comes_before = |users: &[u32]| users.first().is_some_and(|&user| user < places.start);
        let comes_after = |users: &[u32]| users.last().is_some_and(|&user| user >= places.end);
        let passes = |users: &[u32]| comes_before(users) && comes_after(users) && !met(users);
        let (forward, backward) = (&*self.forward, &*self.backward);
        let is_gradient = self.life == Life::Backward;
        let has_forward = met(forward) && !is_gradient;
        let kept = self.life == Life::AcrossPasses && met(backward);
        let enters = has_forward && (self.is_streamed || comes_before(forward));
        let stashed = match flows.pipeline.recompute {
            Recompute::None => kept,
            Recompute::Stage => enters && places.clone().any(|place| flows.goes_back(place)),
            Recompute::Layer => self.is_checkpoint(places, flows, (kept, enters)),
        };
        let for_out = has_forward
            && !(flows.is_training && stashed)
            && flows.pipeline.schedule == Schedule::Popart
            && flows.is_beside_out(places)
            && forward.last() == Some(&flows.out().start);
        let has_last = backward.last().is_some_and(|last| places.contains(last));
        let is_last_stage = places.end == flows.places;
        StageRole {
            kept,
            // One answer for each variant of [`Quantity`], in the order of the variants: whether
            // the stage stashes, forwards, receives or sends the tensors of this flow.
            counts: [
                stashed,
                for_out,
                !is_gradient && passes(forward),
                is_gradient && passes(backward),
                enters,
                has_forward && comes_after(forward),
                is_gradient && met(backward) && comes_after(backward),
                is_gradient && has_last && comes_before(backward),
                enters && !kept && !comes_after(forward) && !is_last_stage,
                has_forward && comes_before(forward),
            ],
        }
    }

    /// Returns whether a stage stashes the tensors of this flow (tensors with the same users) in a
    /// pipeline that recomputes layers. It stashes tensors from which it recomputes a layer, and
    /// tensors that a place (In, a layer or Out) without recomputation makes. `kept` says whether
    /// the stage needs the tensors in both passes, `enters` whether they come from an earlier stage
    /// or from the host.
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
        // A tensor that a stage makes in its forward pass and keeps for its backward pass is
        // stashed in two cases. First, the place (In, a layer or Out) that makes it is never
        // recomputed. Second, another layer of the stage also uses it in the forward pass. In and
        // the first layer count as one layer here.
        let is_kept = |maker: u32| {
            places.contains(&maker)
                && (!flows.runs_again(maker, &(0..flows.places))
                    || users.iter().any(|&user| user.max(1) != maker.max(1)))
        };
        (enters && users.iter().any(|&user| again(user)))
            || layers.skip(1).any(again)
            || (kept && self.maker().is_some_and(is_kept))
    }
}

pub fn users_in<'u>(users: &'u [u32], places: &Range<u32>) -> &'u [u32] {
    let users = &users[users.partition_point(|&user| user < places.start)..];
    &users[..users.partition_point(|&user| user < places.end)]
}
