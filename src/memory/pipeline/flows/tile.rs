//! The bytes of flows on one tile.

use super::Flows;
use crate::memory::MemoryModel;
use crate::model::PlaceSet;

/// The flows of one tile; used again for the next.
#[derive(Debug, Default)]
pub(in crate::memory) struct TileFlows {
    /// By flow: all bytes, and those of the largest variable.
    bytes: Vec<(u64, u64)>,
    /// The flows that have bytes.
    pub(in crate::memory::pipeline) met: Vec<u32>,
    /// Bytes of accumulators, with the places where they count.
    pub(in crate::memory::pipeline) accumulators: Vec<(PlaceSet, u64)>,
}

impl TileFlows {
    /// Gathers what is on `tile`.
    pub(in crate::memory) fn load(&mut self, memory: &MemoryModel<'_>, flows: &Flows, tile: u32) {
        for &flow in &self.met {
            self.bytes[flow as usize] = (0, 0);
        }
        self.bytes.resize(flows.list.len(), (0, 0));
        self.met.clear();
        self.accumulators.clear();
        for item in memory.variables(tile) {
            if let Some(bytes) = flows.accumulator(item) {
                let places = memory.counted(item.set);
                match self.accumulators.last_mut() {
                    Some((last, sum)) if *last == places => *sum += bytes,
                    _ => self.accumulators.push((places, bytes)),
                }
            }
            let Some(flow) = flows.of(item) else {
                continue;
            };
            let (all, largest) = &mut self.bytes[flow as usize];
            if *all == 0 {
                self.met.push(flow);
            }
            *all += u64::from(item.bytes);
            *largest = (*largest).max(item.bytes.into());
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
            accumulators: Vec::new(),
        }
    }
}
