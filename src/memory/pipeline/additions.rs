//! Bytes that a pipeline adds to one stage on each of some tiles: the rules in their literal form.

use super::PlacedStage;
use super::flows::{Flows, Part, QUANTITIES, Quantity, TileFlows};
use super::transfer_buffers::{BackwardPass, PHASES, Transfers};
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
    backward: BackwardPass,
    /// By flow; empty where no part is needed.
    parts: Vec<Part>,
}

/// Sums of bytes by the part that an area has in their flows, by lane.
#[derive(Debug, Clone, Copy)]
struct AreaBytes<const N: usize> {
    /// By [`Quantity`].
    sums: [[u64; N]; QUANTITIES],
    largest_kept: [u64; N],
    backward: BackwardPass,
}

impl<const N: usize> AreaBytes<N> {
    fn sum(&self, quantity: Quantity, lane: usize) -> u64 {
        self.sums[quantity as usize][lane]
    }

    /// The sums that determine the transfer buffers, by lane.
    fn transfers(&self) -> [Transfers; N] {
        std::array::from_fn(|lane| {
            let sum = |quantity| self.sum(quantity, lane);
            Transfers::new(sum, self.largest_kept[lane], self.backward)
        })
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
        let transfers = sums.transfers();
        let of_out = stage.out_beside.as_ref();
        let of_out = of_out.map(|out| self.transfers(out, tiles));
        let depth = self.depth(positions, after);
        std::array::from_fn(|lane| {
            let out = of_out.as_ref().map(|out| &out[lane]);
            let sum = |quantity| sums.sum(quantity, lane);
            Additions {
                stash: self.stash(depth, sum),
                transfer_buffers: self.transfer_buffers_with_out(&transfers[lane], out),
                forwarded: self.forwarded(&transfers[lane]),
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
                backward: BackwardPass::None,
                parts: Vec::new(),
            },
        };
        let places = self.places_of(&stage.positions);
        let out_beside = self.is_beside_out(&places).then(|| area(self.out()));
        StageFlows {
            own: area(places),
            out_beside,
            stage,
        }
    }

    /// The places of a stage; Out is one of them if the stage has all positions.
    fn places_of(&self, positions: &Range<usize>) -> Range<u32> {
        let (start, end) = (positions.start as u32, positions.end as u32);
        let is_whole = self.out_is_first && end - start + 1 == self.places;
        start..if is_whole { self.places } else { end }
    }

    /// Is Out a separate pipeline stage on the IPU of a stage with these places?
    pub(super) fn is_beside_out(&self, places: &Range<u32>) -> bool {
        self.out_is_first && places.start == 0 && places.end < self.places
    }

    /// The place of Out.
    pub(super) fn out(&self) -> Range<u32> {
        self.places - 1..self.places
    }

    pub(super) fn area(&self, places: Range<u32>) -> Area {
        let parts = self.list.iter().map(|flow| flow.part_of(&places, self));
        let parts = parts.collect();
        let backward = places.map(|place| self.backward_of(place));
        Area {
            parts,
            backward: backward.fold(BackwardPass::None, BackwardPass::with),
        }
    }

    /// Sums the bytes of `tiles` by the part that an area has in their flows.
    fn bytes_in<const N: usize>(&self, area: &Area, tiles: &TileFlows<N>) -> AreaBytes<N> {
        let mut found = AreaBytes {
            sums: [[0; N]; QUANTITIES],
            largest_kept: [0; N],
            backward: area.backward,
        };
        for &flow in &tiles.met {
            let part = area.parts[flow as usize];
            if part == Part::default() {
                continue;
            }
            let bytes = tiles.bytes(flow);
            for (quantity, _) in part.counts().into_iter().filter(|counts| counts.1) {
                lanes::add_up(&mut found.sums[quantity as usize], &bytes);
            }
            if part.kept {
                lanes::raise(&mut found.largest_kept, &tiles.largest(flow));
            }
        }
        found
    }

    /// The sums that determine the transfer buffers of an area, by lane of `tiles`.
    pub(super) fn transfers<const N: usize>(
        &self,
        area: &Area,
        tiles: &TileFlows<N>,
    ) -> [Transfers; N] {
        self.bytes_in(area, tiles).transfers()
    }

    /// Copies of tensors for micro-batches in flight, from the bytes of each quantity, in a stage
    /// with `depth` forward pipeline stages after it. Out, on the same IPU, takes tensors from the
    /// first stage, which keeps these for all stages between.
    pub(super) fn stash(&self, depth: usize, sum: impl Fn(Quantity) -> u64) -> u64 {
        self.copies(depth) * sum(Quantity::Stash) + (depth as u64 + 1) * sum(Quantity::ForOut)
    }

    /// Does a stage with these positions (end exclusive) keep copies of the tensors of a flow?
    pub(in crate::memory) fn is_stashed(&self, positions: &Range<usize>, flow: u32) -> bool {
        let part = self.list[flow as usize].part_of(&self.places_of(positions), self);
        part.stashed
    }
}
