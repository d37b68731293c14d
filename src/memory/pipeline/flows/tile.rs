//! The bytes of flows on neighbouring tiles.

use super::Flows;
use crate::memory::MemoryModel;
use crate::memory::lanes::{self, ByLane};
use crate::memory::neighbours::NeighbourUses;
use crate::model::PlaceSet;

/// The bytes of flows on up to `N` neighbouring tiles, by lane; reused for the next tiles.
#[derive(Debug, Clone, Default)]
pub(in crate::memory) struct TileFlows<const N: usize> {
    /// By flow.
    bytes: Vec<FlowBytes<N>>,
    /// Flows that any of the tiles has.
    pub(in crate::memory::pipeline) met: Vec<u32>,
    /// Bytes of accumulators, with the places whose stages count them.
    pub(in crate::memory::pipeline) accumulators: Vec<(PlaceSet, [u64; N])>,
}

#[derive(Debug, Clone, Copy, Default)]
struct FlowBytes<const N: usize> {
    is_met: bool,
    all: ByLane<u64, N>,
    /// Bytes of the largest variable.
    largest: ByLane<u64, N>,
}

impl<const N: usize> TileFlows<N> {
    /// Sums up the uses of some tiles. Parameters, constants, and variables that no operation with
    /// a place uses have no flow.
    pub(in crate::memory) fn load(
        &mut self,
        memory: &MemoryModel<'_>,
        flows: &Flows,
        uses: &NeighbourUses<N>,
    ) {
        for &flow in &self.met {
            self.bytes[flow as usize] = FlowBytes::default();
        }
        self.bytes.resize(flows.list.len(), FlowBytes::default());
        self.met.clear();
        self.accumulators.clear();
        for (number, bytes) in uses.with_bytes() {
            if let Some(flow) = flows.of(number) {
                self.add(flow, &bytes.map(u64::from));
            } else if let Some(of_weight) = flows.accumulators_of(number, bytes) {
                self.accumulate(memory.uses.known(number).counted, of_weight);
            }
        }
    }

    fn accumulate(&mut self, places: PlaceSet, bytes: [u64; N]) {
        match self.accumulators.last_mut() {
            Some((last, sums)) if *last == places => lanes::add_up(sums, &bytes),
            _ => self.accumulators.push((places, bytes)),
        }
    }

    fn add(&mut self, flow: u32, bytes: &[u64; N]) {
        let sums = &mut self.bytes[flow as usize];
        if !sums.is_met {
            sums.is_met = true;
            self.met.push(flow);
        }
        lanes::add_up(&mut sums.all, bytes);
        lanes::raise(&mut sums.largest, bytes);
    }

    /// The bytes of all variables of a flow, by lane.
    pub(in crate::memory::pipeline) fn bytes(&self, flow: u32) -> [u64; N] {
        *self.bytes[flow as usize].all
    }

    /// The bytes of a flow's largest variable, by lane.
    pub(in crate::memory::pipeline) fn largest(&self, flow: u32) -> [u64; N] {
        *self.bytes[flow as usize].largest
    }
}

#[cfg(test)]
impl TileFlows<1> {
    /// A tile with these bytes of each flow.
    pub(in crate::memory::pipeline) fn made(bytes: impl Iterator<Item = u64>) -> Self {
        let mut made = Self::default();
        for (flow, bytes) in (0u32..).zip(bytes) {
            made.bytes.push(FlowBytes::default());
            made.add(flow, &[bytes]);
        }
        made
    }
}
