//! Computes the cycles of one stage, including recomputation and the streaming of optimizer state
//! (docs/model.md, "Time").

use super::{Passes, StageTimes};
use crate::memory::Recompute;
use std::ops::Range;

impl StageTimes {
    /// Computes the cycles of the stage of positions `range` if the split has `after` stages after
    /// it. If Out runs on the first IPU, the cycles of the stage with In include those of Out.
    /// `None` if positions do not exist.
    pub fn stage(&self, range: &Range<usize>, after: usize) -> Option<Passes> {
        let [forward, backward, update] = self.sums(range)?;
        // Out on the first IPU comes after the last stage, unless there is only one stage.
        let is_last = after == 0 && (self.out_in_first.is_none() || range.start == 0);
        Some(Passes {
            forward,
            backward,
            recomputed: self.recomputed(range, is_last),
            update: update.saturating_add(self.streaming_cycles(self.streamed_by(range))),
        })
    }

    /// Computes the cycles of the stage of positions `range` for one micro-batch, including
    /// recomputation, if the split has `after` stages after it; `None` if positions do not exist.
    pub fn cycles(&self, range: &Range<usize>, after: usize) -> Option<u128> {
        self.stage(range, after).map(Passes::of_micro_batch)
    }

    /// Returns the sums of forward, backward and update cycles over positions `range`, without
    /// recomputation and streaming; `None` if positions do not exist.
    pub(super) fn sums(&self, range: &Range<usize>) -> Option<[u128; 3]> {
        let [forward, backward, update] = &self.before;
        let sum = |before| sum_over(before, range);
        Some([sum(forward)?, sum(backward)?, sum(update)?])
    }

    /// Computes the cycles of the stage of positions `range`, which has `after` stages after it,
    /// without Out; and the cycles of Out if it runs on the first IPU and this is the first of
    /// several stages. Then Out is a stage of its own, the last of the pipeline. Otherwise the
    /// first item has all cycles, and the second is `None`. The whole result is `None` if positions
    /// do not exist.
    pub(crate) fn stage_and_out(
        &self,
        range: &Range<usize>,
        after: usize,
    ) -> Option<(Passes, Option<Passes>)> {
        let mut stage = self.stage(range, after)?;
        let out = self.out_in_first.filter(|_| after > 0 && range.start == 0);
        if let Some(out) = out {
            stage.forward = stage.forward.saturating_sub(out.forward);
            stage.backward = stage.backward.saturating_sub(out.backward);
            stage.update = stage.update.saturating_sub(out.update);
        }
        Some((stage, out))
    }

    /// Returns the cycles that the stage of positions `range` recomputes for one micro-batch,
    /// without Out, which is never recomputed. `is_last` says whether the stage is the last of the
    /// pipeline.
    pub(super) fn recomputed(&self, range: &Range<usize>, is_last: bool) -> u128 {
        match self.forward_again(range) {
            0 => 0,
            _ => self.recomputed_among_others(range, is_last),
        }
    }

    /// Returns the cycles that positions `range` add to the recomputation of a stage, if other
    /// positions make the stage recompute: a frozen layer runs again with the others, though not by
    /// itself. `is_last` says whether the stage is the last of the pipeline.
    pub(super) fn recomputed_among_others(&self, range: &Range<usize>, is_last: bool) -> u128 {
        match self.pipeline.recompute {
            _ if !self.is_by_depth() => 0,
            Recompute::Stage if is_last => 0,
            Recompute::Stage => self.forward_without_out(range),
            // The last stage keeps everything after its last checkpoint, which is at the end of the
            // last layer.
            _ => self.forward_again(range),
        }
    }

    /// Returns the forward cycles of positions `range` that run again if layers are recomputed one
    /// by one: of positions whose own backward pass needs it, and of In if the first layer does.
    pub(super) fn forward_again(&self, range: &Range<usize>) -> u128 {
        let again = self.by_themselves(range);
        // In has no backward pass of its own.
        let runs = |position: usize| self.by_themselves(&(position..position + 1)) > 0;
        if range.contains(&0) && range.contains(&1) && runs(1) && !runs(0) {
            again + self.forward_without_out(&(0..1))
        } else {
            again
        }
    }

    /// Returns the forward cycles of those positions in `range` that run again for their own
    /// backward pass.
    fn by_themselves(&self, range: &Range<usize>) -> u128 {
        sum_over(&self.again_before, range).unwrap_or(0)
    }

    /// Returns the forward cycles of positions `range`, without Out.
    pub(super) fn forward_without_out(&self, range: &Range<usize>) -> u128 {
        let forward = |range: &Range<usize>| self.sums(range).map_or(0, |[forward, ..]| forward);
        let last = self.positions().saturating_sub(1);
        let of_out = match self.out_in_first {
            _ if self.has_out && range.contains(&last) => forward(&(last..last + 1)),
            Some(out) if range.start == 0 => out.forward,
            _ => 0,
        };
        forward(range).saturating_sub(of_out)
    }

    /// Returns the bytes that the stage of positions `range` loads from memory off the chip plus
    /// those that it stores there in one weight update, on one replica; 0 if optimizer state is on
    /// the chip.
    pub(super) fn streamed_by(&self, range: &Range<usize>) -> u128 {
        let state = self.pipeline.state;
        if !state.is_off_chip() {
            return 0;
        }
        let replicas = self.pipeline.replicas.max(1);
        let parts = if state.is_sharded() { replicas } else { 1 };
        2 * sum_over(&self.state_before, range)
            .unwrap_or(0)
            .div_ceil(parts.into())
    }

    /// Returns the cycles that an IPU takes to load or store `bytes` of memory off the chip; 0 if
    /// the bandwidth or the clock frequency is unknown.
    fn streaming_cycles(&self, bytes: u128) -> u128 {
        self.options
            .streaming_bandwidth
            .zip(self.clock_hertz)
            .map_or(0, |(bandwidth, clock)| {
                bytes
                    .saturating_mul(clock.into())
                    .div_ceil(bandwidth.max(1).into())
            })
    }
}

/// Returns the sum over the positions `range` of numbers whose prefix sums are `before`; `None` if
/// positions do not exist.
fn sum_over(before: &[u128], range: &Range<usize>) -> Option<u128> {
    let (start, end) = (before.get(range.start)?, before.get(range.end)?);
    end.checked_sub(*start)
}
