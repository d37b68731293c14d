//! In which ranges of layers each flow counts, and for which quantity.
//!
//! The definition ([`Flow::part_of`]) is evaluated only where a range gains or loses a place that
//! can change the result.

use super::additions::{Area, StageFlows};
use super::flows::{Flow, Flows, Quantity};
use super::{PlacedStage, Recompute};

/// A flow counts for `quantity` in ranges with a start in `starts` and a last position in `lasts`
/// (all ends inclusive).
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowStretch {
    pub(super) quantity: Quantity,
    pub(super) starts: (u32, u32),
    pub(super) lasts: (u32, u32),
}

/// By flow, the ranges in which it counts, and for what.
#[derive(Debug)]
pub(in crate::memory) struct Patterns {
    pub(super) of_flow: Vec<Vec<FlowStretch>>,
    /// If Out is on the first IPU: the area of Out, and the stage of all positions, to which Out
    /// then belongs.
    pub(super) with_out: Option<(Area, StageFlows)>,
}

impl Patterns {
    pub(in crate::memory) fn new(flows: &Flows, positions: u32) -> Self {
        let whole = || PlacedStage {
            positions: 0..positions as usize,
            after: Some(0),
        };
        let with_out = || (flows.area(flows.out()), flows.in_stage(whole()));
        let flow_list = flows.list.iter();
        Self {
            of_flow: flow_list
                .map(|flow| stretches(flows, flow, positions))
                .collect(),
            with_out: flows.out_is_first.then(with_out),
        }
    }
}

/// The ranges of positions in which a flow counts.
fn stretches(flows: &Flows, flow: &Flow, positions: u32) -> Vec<FlowStretch> {
    let turns = turns(flows, flow);
    let mut found = Vec::new();
    for starts in pieces(0..positions, turns.iter().map(|place| place + 1)) {
        let lasts = pieces(starts.0..positions, turns.iter().copied());
        let parts = lasts.into_iter().map(|lasts| {
            let part = flow.part_of(&(starts.0..lasts.0 + 1), flows);
            (lasts, part.counts())
        });
        let parts: Vec<_> = parts.collect();
        for (index, (quantity, _)) in parts[0].1.into_iter().enumerate() {
            let counts = |(_, counts): &(_, [(_, bool); _])| counts[index].1;
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

/// Places that can change the part of a range when it gains or loses them, ascending.
fn turns(flows: &Flows, flow: &Flow) -> Vec<u32> {
    let users = flow.forward.iter().chain(&flow.backward);
    let mut turns: Vec<u32> = users.copied().collect();
    match flows.pipeline.recompute {
        Recompute::None => {}
        // A stage runs again if one of its places goes back.
        Recompute::Stage => {
            let goes_back = |place: &u32| flows.goes_back(*place);
            for &user in &flow.forward {
                turns.extend((0..=user).rev().find(goes_back));
                turns.extend((user..flows.places).find(goes_back));
            }
        }
        // In and the first layer run again together.
        Recompute::Layer if turns.iter().any(|&place| place < 2) => turns.extend([0, 1]),
        Recompute::Layer => {}
    }
    if flows.out_is_first && flow.forward.last() == Some(&flows.out().start) {
        // Only ranges from the first position on can have Out on their IPU.
        turns.push(0);
    }
    turns.sort_unstable();
    turns.dedup();
    turns
}

/// Cuts positions (end exclusive) before each of `cuts`, which ascend: the first and the last
/// position of each piece.
fn pieces(positions: std::ops::Range<u32>, cuts: impl Iterator<Item = u32>) -> Vec<(u32, u32)> {
    let mut first = positions.start;
    let cuts = cuts.filter(|cut| (positions.start + 1..positions.end).contains(cut));
    let ends = cuts.chain([positions.end]);
    ends.map(|end| (std::mem::replace(&mut first, end), end - 1))
        .collect()
}
