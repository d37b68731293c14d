//! The bytes that stages load from memory outside the IPUs, and store there.

use super::StageTimes;
use crate::memory::{Pipeline, Storage, Streamed};
use std::ops::Range;
use std::sync::Arc;

/// Bytes that stages stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Streams {
    state_before: Vec<u128>,
    accumulators_before: Vec<u128>,
    stash: Arc<[Vec<Vec<u64>>]>,
}

impl Streams {
    pub(super) fn new(streamed: &Streamed) -> Self {
        let before = |all: &[u64]| {
            let mut sums = vec![0u128];
            for &bytes in all {
                sums.push(sums[sums.len() - 1] + u128::from(bytes));
            }
            sums
        };
        Self {
            state_before: before(&streamed.state),
            accumulators_before: before(&streamed.accumulators),
            stash: streamed.stash.as_slice().into(),
        }
    }
}

/// The bytes that a stage loads and stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StreamedBytes {
    /// For the update.
    pub(super) update: u128,
    /// In the forward pass of a micro-batch.
    pub(super) forward: u128,
    /// In its backward pass.
    pub(super) backward: u128,
}

impl StageTimes {
    /// The bytes that a stage loads and stores in this pipeline.
    pub(super) fn streams(&self, range: &Range<usize>) -> StreamedBytes {
        let Pipeline {
            state,
            accumulators,
            stash,
            replicas,
            recompute,
            ..
        } = self.pipeline;
        let streamed = &self.streamed;
        let sum = |before: &[u128]| {
            let both = before.get(range.end).zip(before.get(range.start));
            both.map_or(0, |(end, start)| end.saturating_sub(*start))
        };
        let parts = match state.is_sharded() {
            true => u128::from(replicas.max(1)),
            false => 1,
        };
        let state_bytes = match state.is_off_chip() {
            true => sum(&streamed.state_before).div_ceil(parts),
            false => 0,
        };
        let kept = streamed.stash.get(recompute as usize);
        let kept = kept.and_then(|kept| kept.get(range.start)?.get(range.len().checked_sub(1)?));
        let kept = match stash {
            Storage::OffChip => kept.map_or(0, |&bytes| u128::from(bytes)),
            Storage::OnChip => 0,
        };
        let summed = match accumulators {
            Storage::OffChip => 2 * sum(&streamed.accumulators_before),
            Storage::OnChip => 0,
        };
        StreamedBytes {
            update: 2 * state_bytes,
            forward: kept,
            backward: kept + summed,
        }
    }

    /// The bytes that a step loads and stores on all IPUs of a replica.
    pub(super) fn streamed_in_step(&self, stages: &[Range<usize>], micro_batches: u64) -> u128 {
        let of_stages = stages.iter().map(|range| {
            let streams = self.streams(range);
            let through = (streams.forward + streams.backward).saturating_mul(micro_batches.into());
            streams.update.saturating_add(through)
        });
        of_stages.fold(0, u128::saturating_add)
    }

    /// The cycles of so many bytes that are loaded or stored; none where it is not known how
    /// long that takes.
    pub(super) fn streaming_cycles(&self, bytes: u128) -> u128 {
        let known = self.options.streaming_bandwidth.zip(self.clock_hertz);
        known.map_or(0, |(bandwidth, clock)| {
            let cycles = bytes.saturating_mul(clock.into());
            cycles.div_ceil(u128::from(bandwidth.max(1)))
        })
    }
}
