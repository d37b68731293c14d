//! The bytes that a pipeline adds to every range of layers on some tiles, for any number of stages
//! after the range.
//!
//! Whether a range of layers stashes, receives or sends the tensors of a flow (tensors that the
//! same layers use) is the same on all tiles, so [`Flows::stretches`] determines it once. The bytes
//! are then summed up for each tile: from each first layer, a range grows layer by layer, as in
//! `memory::ranges`.

use super::{
    Recompute,
    additions::{PHASES, TileFlows, Transfers},
    flows::{Flow, Flows, Life, QUANTITIES, StageRole, users_in},
};
use crate::{
    memory::MemoryModel,
    memory::entering::{Entries, GrowingSums},
    memory::lanes::{self, ByLane},
    model::{TooManyPlaces, ascending},
};
use std::ops::Range;

/// A change of a sum of bytes, such as the bytes that a range of layers stashes, when the range
/// grows to a certain layer. The bytes of the tensors of `flow` (tensors that the same layers use)
/// are added to the sum, or subtracted from it if `is_end` is true. `quantity` is the index of the
/// sum, a [`Quantity`](super::flows::Quantity).
#[derive(Clone, Copy, Default)]
struct Event {
    quantity: usize,
    is_end: bool,
    flow: u32,
}

/// The bytes that a pipeline adds to a range of layers on up to `N` neighbouring tiles, one lane
/// per tile. The range grows layer by layer. [`RangeAdditions::load`] sets the tiles.
#[derive(Default)]
pub struct RangeAdditions<const N: usize> {
    /// The bytes of accumulators of gradients that the pipeline adds to the range of layers,
    /// however many stages follow the range.
    pub accumulators: GrowingSums<N, 1>,
    events: Entries<Event>,
    /// One entry per position (In, layers, Out): the changes of the sums of bytes that a range of
    /// layers stashes, receives, sends and so on, when a range from the current start grows to this
    /// position. Negative changes wrap around.
    changes: Vec<[ByLane<u64, N>; QUANTITIES]>,
    /// One entry per place (In, a layer or Out): the bytes of tensors that the place keeps from its
    /// forward to its backward pass.
    kept: Vec<ByLane<u64, N>>,
    range: Transfers<N>,
    /// The bytes that Out stashes, receives, sends and keeps, if Out is on the first IPU, where it
    /// can be a pipeline stage of its own; otherwise `None`.
    out: Option<Transfers<N>>,
}

impl<const N: usize> RangeAdditions<N> {
    /// Loads the bytes of flows (tensors that the same layers use) and of accumulators on some
    /// tiles. `stretches` has, for each flow, the ranges of layers that stash, receive or send its
    /// tensors.
    pub fn load(
        &mut self,
        memory: &MemoryModel<'_>,
        (flows, stretches): (&Flows, &[Vec<FlowStretch>]),
        tiles: &TileFlows<N>,
    ) -> Result<(), TooManyPlaces> {
        let positions = memory.layers();
        self.accumulators.restart(positions);
        self.events.restart(positions);
        self.changes.clear();
        self.changes.resize_with(positions + 1, Default::default);
        self.kept.clear();
        self.kept.resize(flows.places as usize, ByLane::default());
        for &flow in &tiles.met {
            for stretch in &stretches[flow as usize] {
                self.enter(stretch, flow);
            }
            let Flow { life, backward, .. } = &flows.list[flow as usize];
            if *life == Life::AcrossPasses {
                let largest = tiles.bytes[flow as usize].largest.map(u64::from);
                for &place in backward {
                    lanes::raise(&mut self.kept[place as usize], &largest);
                }
            }
        }
        for &(set, bytes) in &tiles.accumulators {
            self.accumulators.enter(memory, set, 0, bytes);
        }
        self.out = flows
            .roles_of_out
            .as_ref()
            .map(|out| flows.transfers(out, tiles));
        self.accumulators.entries.check()
    }

    fn enter(&mut self, stretch: &FlowStretch, flow: u32) {
        let (starts, lasts) = (&stretch.starts, &stretch.lasts);
        for (start, is_after) in [(starts.start, false), (starts.end, true)] {
            for (last, is_end) in [(lasts.start, is_after), (lasts.end, !is_after)] {
                let event = Event {
                    quantity: stretch.quantity,
                    is_end,
                    flow,
                };
                self.events.push(start as usize, last, event);
            }
        }
    }

    /// Starts an empty range of layers at the position `start`. Must be called with the starts 0,
    /// 1, ... in this order, since each call builds on the data of the call before. `tiles` must be
    /// the same value as in the last call of [`RangeAdditions::load`].
    pub fn begin(&mut self, start: usize, tiles: &TileFlows<N>) {
        for (last, event) in self.events.from(start) {
            let bytes = &tiles.bytes[event.flow as usize].all;
            let changes = &mut self.changes[last][event.quantity];
            if event.is_end {
                lanes::subtract(changes, bytes)
            } else {
                lanes::add(changes, bytes)
            }
        }
        self.range = Transfers::default();
        for changes in &self.changes[..start] {
            lanes::add_each(&mut self.range.sums, changes);
        }
        self.accumulators.begin(start);
    }

    pub fn add(&mut self, flows: &Flows, range: &Range<usize>) {
        let last = range.end - 1;
        self.accumulators.add(last);
        lanes::add_each(&mut self.range.sums, &self.changes[last]);
        // FIFOs, which stash the tensors that a range of layers keeps for its backward pass, copy
        // one group of variables at a time. So buffers need room only for the largest group of all
        // places (In, layers, Out) in the range ([`Transfers::kept`]).
        let sums = &mut self.range;
        for place in last as u32..flows.places_of(range).end {
            sums.backward = sums.backward.max(flows.backward_of(place));
            lanes::raise(&mut sums.kept, &self.kept[place as usize]);
        }
    }

    /// Returns for each lane (tile) the bytes of all additional copies of tensors that the current
    /// range of layers keeps for micro-batches in flight. The copies stay during the weight update.
    /// `depth` is the number of forward pipeline stages after the range.
    pub fn copies(&self, flows: &Flows, depth: usize) -> [u64; N] {
        flows.stash(depth, &self.range)
    }

    /// Returns the bytes of transfer buffers and forwarded tensors of `range`, the current range of
    /// layers, in each phase, such as the backward pass (see [`PHASES`]), with one number per lane
    /// (tile).
    pub fn beside(&self, flows: &Flows, range: &Range<usize>) -> [[u64; N]; PHASES] {
        let is_beside_out = flows.is_beside_out(&flows.places_of(range));
        let out = self.out.as_ref().filter(|_| is_beside_out);
        let by_lane: [_; N] = std::array::from_fn(|lane| flows.in_phases(&self.range, out, lane));
        std::array::from_fn(|phase| {
            by_lane.map(|[buffers, forwarded]| buffers[phase] + forwarded[phase])
        })
    }
}

/// A set of ranges of positions (In, layers, Out): all ranges whose first position is in `starts`
/// and whose last position is in `lasts`. A stage with such a range adds the bytes of a flow
/// (tensors that the same layers use) to one of its sums, such as the bytes that it stashes.
/// `quantity` is the index of this sum, a [`Quantity`](super::flows::Quantity).
pub struct FlowStretch {
    pub quantity: usize,
    pub starts: Range<u32>,
    pub lasts: Range<u32>,
}

impl Flows {
    /// Returns one list per flow (tensors that the same layers use): the ranges of positions (In,
    /// layers, Out) that, as stages, stash, receive, send or forward the tensors of the flow. Each
    /// item of a list has the ranges for one of these actions. The lists apply to all tiles.
    /// `positions` is the number of positions.
    pub fn stretches(&self, positions: u32) -> Vec<Vec<FlowStretch>> {
        self.list
            .iter()
            .map(|flow| stretches(self, flow, positions))
            .collect()
    }
}

fn stretches(flows: &Flows, flow: &Flow, positions: u32) -> Vec<FlowStretch> {
    let mut found = Vec::new();
    let after_turns = turns_of_starts(flows, flow)
        .into_iter()
        .map(|place| place + 1);
    for starts in pieces(0..positions, after_turns) {
        let first = starts.start;
        let roles: Vec<_> = pieces(first..positions, turns_from(flows, flow, first))
            .into_iter()
            .map(|lasts| {
                let places = flows.places_of(&(first as usize..lasts.start as usize + 1));
                (lasts, flow.role_of(&places, flows))
            })
            .collect();
        for quantity in 0..QUANTITIES {
            let counts = |(_, role): &(_, StageRole)| role.counts[quantity];
            for alike in roles.chunk_by(|a, b| counts(a) == counts(b)) {
                if counts(&alike[0]) {
                    found.push(FlowStretch {
                        quantity,
                        starts: starts.clone(),
                        lasts: alike[0].0.start..alike[alike.len() - 1].0.end,
                    });
                }
            }
        }
    }
    found
}

/// Returns places (In, layers or Out; in any order). A range of layers that begins with such a
/// place may treat the tensors of `flow` (tensors that the same layers use) differently from a
/// range that begins right after it; for example, only one of them may stash the tensors.
fn turns_of_starts(flows: &Flows, flow: &Flow) -> Vec<u32> {
    let mut turns: Vec<u32> = flow.forward.iter().chain(&flow.backward).copied().collect();
    let last_back = |&user: &u32| (0..=user).rev().find(|&place| flows.goes_back(place));
    match flows.pipeline.recompute {
        // If stages are recomputed as a whole, a range of layers stashes a tensor that enters it
        // only if one of its places (In, layers, Out) has a backward pass. So for each user of the
        // tensor, the last place with a backward pass up to this user is returned: a range that
        // begins after this place and ends with the user has no backward pass, and does not stash
        // the tensor.
        Recompute::Stage => turns.extend(flow.forward.iter().filter_map(last_back)),
        // In (the operations before the first layer) is recomputed together with the first layer.
        // So what a range recomputes depends on whether it begins with In, the first layer or a
        // later layer.
        Recompute::Layer if turns.iter().any(|&place| place < 2) => turns.extend([0, 1]),
        Recompute::None | Recompute::Layer => {}
    }
    if flows.out_is_first {
        // If Out (the operations after the last layer) is on the first IPU, only a range that
        // begins with In (the operations before the first layer) can share this IPU with Out, and
        // then it may treat tensors differently.
        turns.push(0);
    }
    turns
}

/// Returns places (In, layers or Out; in any order). A range of layers that ends with such a place
/// may treat the tensors of `flow` (tensors that the same layers use) differently from a range that
/// ends right before it; for example, only one of them may stash the tensors. Both ranges begin
/// with the place `start`.
fn turns_from(flows: &Flows, flow: &Flow, start: u32) -> Vec<u32> {
    let places = start..flows.places;
    let forward = users_in(&flow.forward, &places);
    let backward = users_in(&flow.backward, &places);
    // A range of layers may stash other tensors when it grows to the first layer (place 1), since
    // In (place 0) is recomputed together with this layer. The same holds when it grows to the last
    // place, since the last pipeline stage is not recomputed.
    let mut turns = vec![0, 1, flows.places - 1];
    if flows.out_is_first {
        // If Out (the operations after the last layer) is on the first IPU, it is a pipeline stage
        // of its own, unless one stage has all positions and runs Out too. A range that grows to
        // the last position may become this one stage, and then may stash or send other tensors.
        turns.push(flows.places - 2);
    }
    let ends = [backward.first(), forward.last(), backward.last()];
    turns.extend(ends.into_iter().flatten());
    // If layers are recomputed, a range stashes a tensor at the latest when two of its places other
    // than In use the tensor and have a backward pass. These two are among the first three users
    // with a backward pass, so later users change nothing.
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

/// Cuts the half-open range `positions` (In, layers, Out) before each entry of `cuts` (in any
/// order) that is inside the range. Returns the pieces in order.
fn pieces(positions: Range<u32>, cuts: impl IntoIterator<Item = u32>) -> Vec<Range<u32>> {
    let inside = cuts
        .into_iter()
        .filter(|cut| (positions.start + 1..positions.end).contains(cut));
    ascending(inside.chain([positions.start, positions.end]))
        .windows(2)
        .map(|piece| piece[0]..piece[1])
        .collect()
}
