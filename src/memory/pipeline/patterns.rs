//! In which ranges of layers each flow counts, and for which quantity.
//!
//! The definition ([`Flow::part_of`]) is evaluated only where a range gains or loses a place that
//! can change the result.

use super::Recompute;
use super::additions::Area;
use super::flows::{Flow, Flows, Part, QUANTITIES};
use std::ops::Range;

/// Ranges of positions in which the bytes of one [`Flow`] count for one `Quantity`: each range
/// with a start in `starts` and a last position in `lasts` (all ends inclusive).
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowStretch {
    /// The quantity, as its index in [`Part::counts`].
    pub(super) quantity: usize,
    pub(super) starts: (u32, u32),
    pub(super) lasts: (u32, u32),
}

/// By flow, the ranges in which it counts, and for what.
#[derive(Debug)]
pub(in crate::memory) struct Patterns {
    pub(super) of_flow: Vec<Vec<FlowStretch>>,
    /// The area of Out, if Out is on the first IPU.
    pub(super) out: Option<Area>,
}

impl Patterns {
    pub(in crate::memory) fn new(flows: &Flows, positions: u32) -> Self {
        let stretches = |flow| stretches(flows, flow, positions);
        Self {
            of_flow: flows.list.iter().map(stretches).collect(),
            out: flows.out_is_first.then(|| flows.area(flows.out())),
        }
    }
}

/// The ranges of positions in which a flow counts.
fn stretches(flows: &Flows, flow: &Flow, positions: u32) -> Vec<FlowStretch> {
    let mut found = Vec::new();
    let lost = turns_of_starts(flows, flow);
    for starts in pieces(0..positions, lost.into_iter().map(|place| place + 1)) {
        let first = starts.0;
        let lasts = pieces(first..positions, turns_from(flows, flow, first));
        let part = |lasts: (u32, u32)| {
            let places = flows.places_of(&(first as usize..lasts.0 as usize + 1));
            (lasts, flow.part_of(&places, flows))
        };
        let parts: Vec<_> = lasts.into_iter().map(part).collect();
        for quantity in 0..QUANTITIES {
            let counts = |(_, part): &(_, Part)| part.counts[quantity];
            for alike in parts.chunk_by(|a, b| counts(a) == counts(b)) {
                if counts(&alike[0]) {
                    let lasts = (alike[0].0.0, alike[alike.len() - 1].0.1);
                    found.push(FlowStretch {
                        quantity,
                        starts,
                        lasts,
                    });
                }
            }
        }
    }
    found
}

/// Places that can change the part of a range that loses them at its start.
fn turns_of_starts(flows: &Flows, flow: &Flow) -> Vec<u32> {
    let users = flow.forward.iter().chain(&flow.backward);
    let mut turns: Vec<u32> = users.copied().collect();
    match flows.pipeline.recompute {
        Recompute::None => {}
        // A stage runs again if one of its places goes back.
        Recompute::Stage => {
            let last_back = |&user: &u32| (0..=user).rev().find(|&place| flows.goes_back(place));
            turns.extend(flow.forward.iter().filter_map(last_back));
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

/// Places (In, layers or Out, by number) at which a growing range that begins with `start` can
/// change its part in a flow, that is, what the range does with the flow's tensors.
fn turns_from(flows: &Flows, flow: &Flow, start: u32) -> Vec<u32> {
    let from = |users: &'_ [u32]| users.partition_point(|&user| user < start);
    let forward = &flow.forward[from(&flow.forward)..];
    let backward = &flow.backward[from(&flow.backward)..];
    let ends = [backward.first(), forward.last(), backward.last()];
    // In and the first layer run again together.
    let mut turns = vec![0, 1];
    if flows.out_is_first {
        // A range of all positions has Out too.
        turns.push(flows.places - 2);
    }
    turns.extend(ends.into_iter().flatten());
    // What a layer recomputes depends on no more than three of its users that go back.
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

/// Cuts positions (end exclusive) before each of `cuts`: the first and the last position of each
/// piece.
fn pieces(positions: Range<u32>, cuts: impl IntoIterator<Item = u32>) -> Vec<(u32, u32)> {
    let is_inside = |cut: &u32| (positions.start + 1..positions.end).contains(cut);
    let mut ends: Vec<u32> = cuts.into_iter().filter(is_inside).collect();
    ends.push(positions.end);
    ends.sort_unstable();
    ends.dedup();
    let mut first = positions.start;
    let piece = |end| (std::mem::replace(&mut first, end), end - 1);
    ends.into_iter().map(piece).collect()
}
