//! The bytes of flows on one tile.

use super::Flows;
use super::accumulators::AccumulatorSize;
use crate::memory::MemoryModel;
use crate::memory::neighbours::NeighbourUses;
use crate::model::PlaceSet;

/// The flows of one tile; used again for the next.
#[derive(Debug, Default)]
pub(in crate::memory) struct TileFlows {
    /// By number in [`NeighbourUses`].
    of_uses: Vec<FlowOfUse>,
    /// By flow: all bytes, and those of the largest variable.
    bytes: Vec<(u64, u64)>,
    /// The flows that have bytes.
    pub(in crate::memory::pipeline) met: Vec<u32>,
    /// Bytes of accumulators, with the places where they count.
    pub(in crate::memory::pipeline) accumulators: Vec<(PlaceSet, u64)>,
}

/// What a pipeline does with the variables of one class and user set.
#[derive(Debug, Clone, Copy)]
struct FlowOfUse {
    /// [`NO_FLOW`] for parameters, constants, and what no operation with a place uses.
    flow: u32,
    /// Of weights that get one: how large their accumulator is, and where it counts.
    accumulator: Option<(AccumulatorSize, PlaceSet)>,
}

const NO_FLOW: u32 = u32::MAX;

impl TileFlows {
    /// Looks up what neighbouring tiles have in common.
    pub(in crate::memory) fn prepare(
        &mut self,
        memory: &MemoryModel<'_>,
        flows: &Flows,
        uses: &NeighbourUses,
    ) {
        self.of_uses.clear();
        self.of_uses.extend(uses.all().map(|(class, set)| {
            let size = flows.accumulator_size(class, set);
            FlowOfUse {
                flow: flows.of(class, set).unwrap_or(NO_FLOW),
                accumulator: size.map(|size| (size, memory.counted(set))),
            }
        }));
    }

    /// Gathers what is on `tile`, one of those.
    pub(in crate::memory) fn load(
        &mut self,
        memory: &MemoryModel<'_>,
        flows: &Flows,
        uses: &NeighbourUses,
        tile: u32,
    ) {
        for &flow in &self.met {
            self.bytes[flow as usize] = (0, 0);
        }
        self.bytes.resize(flows.list.len(), (0, 0));
        self.met.clear();
        self.accumulators.clear();
        for (number, bytes) in uses.on_tile(memory, tile) {
            let FlowOfUse { flow, accumulator } = self.of_uses[number];
            if let Some((size, places)) = accumulator {
                let bytes = flows.accumulator_bytes(size, bytes);
                match self.accumulators.last_mut() {
                    Some((last, sum)) if *last == places => *sum += bytes,
                    _ => self.accumulators.push((places, bytes)),
                }
            }
            if flow == NO_FLOW {
                continue;
            }
            let (all, largest) = &mut self.bytes[flow as usize];
            if *all == 0 {
                self.met.push(flow);
            }
            *all += u64::from(bytes);
            *largest = (*largest).max(bytes.into());
        }
    }

    /// All bytes of a flow.
    pub(in crate::memory::pipeline) fn bytes(&self, flow: u32) -> u64 {
        self.bytes[flow as usize].0
    }

    /// Those of its largest variable.
    pub(in crate::memory::pipeline) fn largest(&self, flow: u32) -> u64 {
        self.bytes[flow as usize].1
    }
}

#[cfg(test)]
impl TileFlows {
    /// A tile with these bytes of each flow.
    pub(in crate::memory::pipeline) fn made(bytes: impl Iterator<Item = u64>) -> Self {
        let bytes: Vec<(u64, u64)> = bytes.map(|bytes| (bytes, bytes)).collect();
        Self {
            met: (0..bytes.len() as u32).collect(),
            bytes,
            ..Self::default()
        }
    }
}
