//! Bytes that a pipeline adds to one stage on each of some tiles: the rules in their literal form.

use super::flows::{Flows, Life, Part, TileFlows};
use super::transfer_buffers::{BackwardPass, PHASES, Transfers};
use super::{PlacedStage, Schedule};
use crate::memory::stage::meets;
use crate::memory::{MemoryModel, lanes};
use crate::model::EVERYWHERE;
use std::ops::Range;

/// Bytes on one tile that a pipeline adds to the bytes of the layers themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::memory) struct Additions {
    /// Stashed copies for the micro-batches in flight.
    pub(in crate::memory) stash: u64,
    /// Accumulators of gradients.
    pub(in crate::memory) accumulators: u64,
    /// Shares of optimizer state that is sharded on the chip.
    pub(in crate::memory) state: u64,
    /// By phase: buffers of tensors that go to another stage or come from one.
    pub(in crate::memory) transfer_buffers: [u64; PHASES],
    /// By phase: tensors that are on their way between two other stages.
    pub(in crate::memory) forwarded: [u64; PHASES],
}

impl Additions {
    /// The additions in the update, which takes `state` bytes besides always-live variables.
    pub(in crate::memory) fn in_update(&self, state: u64) -> Self {
        Self {
            stash: self.stash,
            accumulators: self.accumulators,
            state: self.state + state,
            ..Self::default()
        }
    }

    /// By phase: all bytes besides the least that a stage needs wherever it is in a split.
    pub(in crate::memory) fn beside_least(&self) -> [u64; PHASES] {
        std::array::from_fn(|phase| {
            self.stash + self.transfer_buffers[phase] + self.forwarded[phase]
        })
    }
}

/// The part of some places in each flow.
#[derive(Debug)]
pub(super) struct Area {
    places: Range<u32>,
    backward: BackwardPass,
    /// By flow; empty where no part is needed.
    parts: Vec<Part>,
}

/// Sums of bytes by the part that an area has in their flows (see [`Part`]), by lane.
#[derive(Debug, Clone, Copy)]
struct AreaBytes<const N: usize> {
    stashed: [u64; N],
    passes_forward: [u64; N],
    passes_backward: [u64; N],
    enters: [u64; N],
    leaves: [u64; N],
    gradient_in: [u64; N],
    gradient_out: [u64; N],
    largest_kept: [u64; N],
}

impl<const N: usize> AreaBytes<N> {
    const NONE: Self = Self {
        stashed: [0; N],
        passes_forward: [0; N],
        passes_backward: [0; N],
        enters: [0; N],
        leaves: [0; N],
        gradient_in: [0; N],
        gradient_out: [0; N],
        largest_kept: [0; N],
    };

    /// The sums that determine the transfer buffers of the tile in `lane`.
    fn transfers(&self, area: &Area, lane: usize) -> Transfers {
        Transfers {
            backward: area.backward,
            enters: self.enters[lane],
            leaves: self.leaves[lane],
            gradient_in: self.gradient_in[lane],
            gradient_out: self.gradient_out[lane],
            passes_forward: self.passes_forward[lane],
            passes_backward: self.passes_backward[lane],
            largest_kept: self.largest_kept[lane],
        }
    }
}

/// A stage with its part in each flow.
#[derive(Debug)]
pub(in crate::memory) struct StageFlows {
    stage: PlacedStage,
    own: Area,
    /// Out, where it is a separate pipeline stage on the IPU of this stage.
    out_beside: Option<Area>,
}

impl StageFlows {
    /// Does the stage keep the tensors of a flow from its forward to its backward pass?
    pub(in crate::memory) fn keeps(&self, flow: u32) -> bool {
        self.own
            .parts
            .get(flow as usize)
            .is_some_and(|part| part.kept)
    }
}

impl Flows {
    /// Bytes that the pipeline adds to a stage, by lane of `tiles`.
    pub(in crate::memory) fn additions<const N: usize>(
        &self,
        memory: &MemoryModel<'_>,
        stage: &StageFlows,
        tiles: &TileFlows<N>,
    ) -> [Additions; N] {
        let PlacedStage { positions, after } = &stage.stage;
        let counts = |set| set == EVERYWHERE || meets(memory.sets.places(set), positions);
        let accumulators = tiles.accumulators.iter().filter(|&&(set, _)| counts(set));
        let accumulators = lanes::sum(accumulators.map(|&(_, bytes)| bytes));
        let least = |lane: usize| Additions {
            accumulators: accumulators[lane],
            ..Additions::default()
        };
        let Some(after) = *after else {
            return std::array::from_fn(least);
        };
        let sums = self.bytes_in(&stage.own, tiles);
        let of_out = stage.out_beside.as_ref();
        let of_out = of_out.map(|out| (out, self.bytes_in(out, tiles)));
        let shared = self.shared_with_out(stage, tiles);
        let depth = self.depth(positions, after);
        std::array::from_fn(|lane| {
            let transfers = sums.transfers(&stage.own, lane);
            let out = of_out.map(|(area, out)| out.transfers(area, lane));
            Additions {
                stash: self.copies(depth) * sums.stashed[lane] + (depth as u64 + 1) * shared[lane],
                transfer_buffers: match out {
                    None => self.transfer_buffers(&transfers),
                    Some(out) => self.transfer_buffers_beside_out(&transfers, &out),
                },
                forwarded: self.forwarded(&transfers),
                ..least(lane)
            }
        })
    }

    /// Finds the part of a stage in each flow.
    pub(in crate::memory) fn in_stage(&self, stage: PlacedStage) -> StageFlows {
        let area = |places| match stage.after {
            Some(_) => self.area(places),
            // Without a number of stages after it only the least bytes are computed, which need no
            // parts.
            None => Area {
                places,
                backward: BackwardPass::None,
                parts: Vec::new(),
            },
        };
        let places = self.places_of(&stage.positions);
        let has_out_beside = self.out_is_first && places.start == 0 && places.end < self.places;
        StageFlows {
            own: area(places),
            out_beside: has_out_beside.then(|| area(self.out())),
            stage,
        }
    }

    /// The places of a stage; Out is one of them if the stage has all positions.
    fn places_of(&self, positions: &Range<usize>) -> Range<u32> {
        let (start, end) = (positions.start as u32, positions.end as u32);
        let is_whole = self.out_is_first && end - start + 1 == self.places;
        start..if is_whole { self.places } else { end }
    }

    /// The place of Out.
    pub(super) fn out(&self) -> Range<u32> {
        self.places - 1..self.places
    }

    pub(super) fn area(&self, places: Range<u32>) -> Area {
        let parts = self.list.iter().map(|flow| flow.part_of(&places, self));
        let backward = places.clone().map(|place| self.backward_of(place));
        Area {
            parts: parts.collect(),
            backward: backward.fold(BackwardPass::None, BackwardPass::with),
            places,
        }
    }

    /// Sums the bytes of `tiles` by the part that an area has in their flows.
    fn bytes_in<const N: usize>(&self, area: &Area, tiles: &TileFlows<N>) -> AreaBytes<N> {
        let mut sums = AreaBytes::NONE;
        for &flow in &tiles.met {
            let part = area.parts[flow as usize];
            if part == Part::default() {
                continue;
            }
            let bytes = tiles.bytes(flow);
            let passes = match self.list[flow as usize].life {
                Life::Backward => &mut sums.passes_backward,
                Life::Forward | Life::AcrossPasses => &mut sums.passes_forward,
            };
            for (is_so, sum) in [
                (part.passes, passes),
                (part.stashed, &mut sums.stashed),
                (part.enters, &mut sums.enters),
                (part.leaves, &mut sums.leaves),
                (part.gradient_in, &mut sums.gradient_in),
                (part.gradient_out, &mut sums.gradient_out),
            ] {
                if is_so {
                    lanes::add_up(sum, &bytes);
                }
            }
            if part.kept {
                lanes::raise(&mut sums.largest_kept, &tiles.largest(flow));
            }
        }
        sums
    }

    /// By lane, bytes of tensors that Out, on the same IPU, takes from the first stage: these are
    /// stashed there for all stages between, but only where the pipeline itself keeps them.
    fn shared_with_out<const N: usize>(
        &self,
        stage: &StageFlows,
        tiles: &TileFlows<N>,
    ) -> [u64; N] {
        if stage.out_beside.is_none() || self.pipeline.schedule != Schedule::Popart {
            return [0; N];
        }
        let out = self.out().start;
        let is_so = |flow: u32| {
            let part = stage.own.parts[flow as usize];
            let flow = &self.list[flow as usize];
            let is_stashed = self.is_training && part.stashed;
            let is_used = flow
                .forward
                .iter()
                .any(|user| stage.own.places.contains(user));
            is_used && flow.life != Life::Backward && flow.forward.contains(&out) && !is_stashed
        };
        let met = tiles.met.iter().filter(|&&flow| is_so(flow));
        lanes::sum(met.map(|&flow| tiles.bytes(flow)))
    }

    /// The sums that determine the transfer buffers of an area, by lane of `tiles`.
    pub(super) fn transfers<const N: usize>(
        &self,
        area: &Area,
        tiles: &TileFlows<N>,
    ) -> [Transfers; N] {
        let bytes = self.bytes_in(area, tiles);
        std::array::from_fn(|lane| bytes.transfers(area, lane))
    }
}

impl Flows {
    /// Does a stage with these positions (end exclusive) keep copies of the tensors of a flow?
    pub(in crate::memory) fn is_stashed(&self, positions: &Range<usize>, flow: u32) -> bool {
        let part = self.list[flow as usize].part_of(&self.places_of(positions), self);
        part.stashed
    }
}
