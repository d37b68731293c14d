//! Bytes of state that stages load from memory off the chip, and store there.

use super::StageTimes;
use std::ops::Range;

impl StageTimes {
    /// Bytes that a stage loads and stores for the update in this pipeline.
    pub(super) fn streamed_by(&self, range: &Range<usize>) -> u128 {
        let state = self.pipeline.state;
        if !state.is_off_chip() {
            return 0;
        }
        let parts = match state.is_sharded() {
            true => u128::from(self.pipeline.replicas.max(1)),
            false => 1,
        };
        let before = &self.state_before;
        let both = before.get(range.end).zip(before.get(range.start));
        let bytes = both.map_or(0, |(end, start)| end.saturating_sub(*start));
        2 * bytes.div_ceil(parts)
    }

    /// Bytes that a step loads and stores on all IPUs of a replica.
    pub(super) fn streamed_in_step(&self, stages: &[Range<usize>]) -> u128 {
        let of_stages = stages.iter().map(|range| self.streamed_by(range));
        of_stages.fold(0, u128::saturating_add)
    }

    /// Cycles of loading or storing `bytes`; 0 if bandwidth or clock is unknown.
    pub(super) fn streaming_cycles(&self, bytes: u128) -> u128 {
        let known = self.options.streaming_bandwidth.zip(self.clock_hertz);
        known.map_or(0, |(bandwidth, clock)| {
            let cycles = bytes.saturating_mul(clock.into());
            cycles.div_ceil(u128::from(bandwidth.max(1)))
        })
    }
}
