//! For each flow (tensors with the same users), the ranges of layers in which its bytes count, and
//! what they count as.
//!
//! The definition ([`Flow::role_of`]) is evaluated only where a range gains or loses a place (In, a
//! layer or Out) that can change the result.

use super::Recompute;
use super::additions::StageRoles;
use super::flows::{Flow, Flows, QUANTITIES, StageRole};
use std::ops::Range;

/// Ranges of positions whose stages add the bytes of one flow to one
/// [`Quantity`](super::flows::Quantity): all ranges with a first position in `starts` and a last
/// position in `lasts`.
#[derive(Clone, Copy)]
pub(super) struct FlowStretch {
    /// The quantity, as an index in [`StageRole::counts`].
    pub quantity: usize,
    /// The lowest and the highest first position of the ranges, both inclusive.
    pub starts: (u32, u32),
    /// The lowest and the highest last position of the ranges, both inclusive.
    pub lasts: (u32, u32),
}

/// For each flow (tensors with the same users), the ranges of positions whose stages do something
/// with its tensors, and what.
pub(crate) struct Patterns {
    /// For each flow, by its number in [`Flows`]: the ranges of positions in which its bytes count,
    /// for each quantity.
    pub(super) of_flow: Vec<Vec<FlowStretch>>,
    /// What Out, as a pipeline stage of its own, does with the tensors of each flow, if Out is on
    /// the first IPU; otherwise `None`.
    pub(super) out: Option<StageRoles>,
}

impl Patterns {
    pub fn new(flows: &Flows, positions: u32) -> Self {
        Self {
            of_flow: flows
                .list
                .iter()
                .map(|flow| stretches(flows, flow, positions))
                .collect(),
            out: flows.out_is_first.then(|| flows.stage_roles(flows.out())),
        }
    }
}

/// Returns the ranges of positions whose stages add the bytes of `flow` to a quantity. `positions`
/// is the number of positions in the layer order.
fn stretches(flows: &Flows, flow: &Flow, positions: u32) -> Vec<FlowStretch> {
    let mut found = Vec::new();
    let lost = turns_of_starts(flows, flow);
    for starts in pieces(0..positions, lost.into_iter().map(|place| place + 1)) {
        let first = starts.0;
        let lasts = pieces(first..positions, turns_from(flows, flow, first));
        let role = |lasts: (u32, u32)| {
            let places = flows.places_of(&(first as usize..lasts.0 as usize + 1));
            (lasts, flow.role_of(&places, flows))
        };
        let roles: Vec<_> = lasts.into_iter().map(role).collect();
        for quantity in 0..QUANTITIES {
            let counts = |(_, role): &(_, StageRole)| role.counts[quantity];
            for alike in roles.chunk_by(|a, b| counts(a) == counts(b)) {
                if counts(&alike[0]) {
                    found.push(FlowStretch {
                        quantity,
                        starts,
                        lasts: (alike[0].0.0, alike[alike.len() - 1].0.1),
                    });
                }
            }
        }
    }
    found
}

/// Returns places (In, layers or Out, by number), in any order. The role of a range in `flow` can
/// only change when the range loses one of them at its start.
fn turns_of_starts(flows: &Flows, flow: &Flow) -> Vec<u32> {
    let mut turns: Vec<u32> = flow.forward.iter().chain(&flow.backward).copied().collect();
    match flows.pipeline.recompute {
        Recompute::None => {}
        // With recomputation of stages, a stage runs again if any of its places has a backward
        // pass.
        Recompute::Stage => {
            turns.extend(
                flow.forward
                    .iter()
                    .filter_map(|&user| (0..=user).rev().find(|&place| flows.goes_back(place))),
            );
        }
        // In and the first layer run again together.
        Recompute::Layer if turns.iter().any(|&place| place < 2) => turns.extend([0, 1]),
        Recompute::Layer => {}
    }
    if flows.out_is_first {
        // Only ranges from the first position on can have Out on their IPU.
        turns.push(0);
    }
    turns
}

/// Returns places (In, layers or Out, by number), in any order. The role in `flow` of a range that
/// begins with the place `start` can only change when the range gains one of them at its end.
fn turns_from(flows: &Flows, flow: &Flow, start: u32) -> Vec<u32> {
    let from = |users: &'_ [u32]| users.partition_point(|&user| user < start);
    let forward = &flow.forward[from(&flow.forward)..];
    let backward = &flow.backward[from(&flow.backward)..];
    let ends = [backward.first(), forward.last(), backward.last()];
    // In and the first layer run again together.
    let mut turns = vec![0, 1];
    if flows.out_is_first {
        // A range of all positions also contains Out.
        turns.push(flows.places - 2);
    }
    turns.extend(ends.into_iter().flatten());
    // Recomputation of a layer depends on at most three users of the tensor with a backward pass.
    let mut back = 0;
    for &user in forward {
        turns.push(user);
        back += u32::from(flows.goes_back(user));
        if back == 3 {
            break;
        }
    }
    if flows.pipeline.recompute == Recompute::Stage
        && let Some(&next) = forward.first()
    {
        turns.extend((next..flows.places).find(|&place| flows.goes_back(place)));
    }
    turns
}

/// Cuts the half-open range `positions` before each of `cuts` that lies inside it (in any order).
/// Returns the first and the last position (both inclusive) of each piece, in order.
fn pieces(positions: Range<u32>, cuts: impl IntoIterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut ends: Vec<u32> = cuts
        .into_iter()
        .filter(|cut| (positions.start + 1..positions.end).contains(cut))
        .collect();
    ends.push(positions.end);
    ends.sort_unstable();
    ends.dedup();
    let mut first = positions.start;
    ends.into_iter()
        .map(|end| (std::mem::replace(&mut first, end), end - 1))
        .collect()
}
