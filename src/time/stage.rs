//! Computes the cycles of one stage, including recomputation and the streaming of optimizer state
//! (docs/model.md, "Time").

use super::{Passes, StageTimes};
use crate::memory::Recompute;
use std::ops::Range;

impl StageTimes {
    /// Computes the cycles of the stage of positions `range` with `after` later stages. If Out runs
    /// on the first IPU, the stage with In includes it. `None` if positions do not exist.
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

    /// Computes the cycles of a stage for one micro-batch, including recomputation; `None` if
    /// positions do not exist.
    pub fn cycles(&self, range: &Range<usize>, after: usize) -> Option<u128> {
        self.stage(range, after).map(Passes::of_micro_batch)
    }

    /// Returns the forward, backward and update cycles of positions `range`; `None` if positions do
    /// not exist.
    pub(super) fn sums(&self, range: &Range<usize>) -> Option<[u128; 3]> {
        let mut sums = [0; 3];
        for (sum, before) in sums.iter_mut().zip(&self.before) {
            *sum = before
                .get(range.end)?
                .checked_sub(*before.get(range.start)?)?;
        }
        Some(sums)
    }

    /// Returns the forward cycles of Out if the range includes it; otherwise 0.
    fn forward_of_out(&self, range: &Range<usize>) -> u128 {
        let last = self.positions().saturating_sub(1);
        let in_first = self.out_in_first.filter(|_| range.start == 0);
        match self.has_out && range.contains(&last) {
            true => self.sums(&(last..last + 1)).map_or(0, |[sum, ..]| sum),
            false => in_first.map_or(0, |out| out.forward),
        }
    }

    /// Computes the cycles of a stage without Out (first item), and the cycles of Out (second item)
    /// if it runs on the first IPU and this is the first of several stages: then Out is a stage of
    /// its own, the last of the pipeline. `None` if positions do not exist.
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

    /// Returns the cycles that a stage recomputes for one micro-batch. Out is never recomputed.
    /// `is_last` says whether the stage is the last of the pipeline.
    pub(super) fn recomputed(&self, range: &Range<usize>, is_last: bool) -> u128 {
        match self.forward_again(range) {
            0 => 0,
            _ => self.recomputed_among_others(range, is_last),
        }
    }

    /// Returns the cycles that positions `range` recompute as part of a stage that recomputes: a
    /// frozen layer runs again with the other layers of its stage, though not by itself.
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

    /// Returns the forward cycles of positions `range` that run again if each layer is recomputed
    /// only where its own backward pass, or that of the first layer, needs it.
    pub(super) fn forward_again(&self, range: &Range<usize>) -> u128 {
        let again = self.by_themselves(range);
        match range.start {
            0 => again + self.with_first_layer(range),
            _ => again,
        }
    }

    /// Returns the forward cycles of positions that run again for their own backward pass.
    fn by_themselves(&self, range: &Range<usize>) -> u128 {
        let before = |position: usize| self.again_before.get(position).copied().unwrap_or(0);
        before(range.end).saturating_sub(before(range.start))
    }

    /// Returns the forward cycles of In if it runs again with the first layer: it has no backward
    /// pass, and `range` includes the first layer. Otherwise 0.
    fn with_first_layer(&self, range: &Range<usize>) -> u128 {
        let runs = |position: usize| self.by_themselves(&(position..position + 1)) > 0;
        match range.contains(&1) && runs(1) && !runs(0) {
            true => self.forward_without_out(&(0..1)),
            false => 0,
        }
    }

    /// Returns the forward cycles of positions `range`, without Out.
    pub(super) fn forward_without_out(&self, range: &Range<usize>) -> u128 {
        let [forward, ..] = self.sums(range).unwrap_or_default();
        forward.saturating_sub(self.forward_of_out(range))
    }

    /// Returns the bytes that a stage loads from and stores to memory off the chip for one update,
    /// on one replica; 0 if optimizer state is on the chip.
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

    /// Returns the bytes that all IPUs of one replica load from and store to memory off the chip in
    /// a step.
    pub(super) fn streamed_in_step(&self, stages: &[Range<usize>]) -> u128 {
        let of_stages = stages.iter().map(|range| self.streamed_by(range));
        of_stages.fold(0, u128::saturating_add)
    }

    /// Returns the cycles in which `bytes` are loaded or stored; 0 if the bandwidth or the clock
    /// frequency is unknown.
    pub(super) fn streaming_cycles(&self, bytes: u128) -> u128 {
        let known = self.options.streaming_bandwidth.zip(self.clock_hertz);
        known.map_or(0, |(bandwidth, clock)| {
            let cycles = bytes.saturating_mul(clock.into());
            cycles.div_ceil(u128::from(bandwidth.max(1)))
        })
    }
}
