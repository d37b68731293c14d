//! Cycles that a stage of a pipeline recomputes (docs/model.md, "Time").

use super::StageTimes;
use crate::memory::Recompute;
use std::ops::Range;

impl StageTimes {
    /// Cycles that a stage recomputes, without Out, which ends the pipeline. `is_last` says whether
    /// the stage is the last of the pipeline.
    pub(super) fn recomputed(&self, range: &Range<usize>, is_last: bool) -> u128 {
        match self.forward_again(range) {
            0 => 0,
            _ => self.recomputed_among_others(range, is_last),
        }
    }

    /// Cycles that a range recomputes within a stage that recomputes: frozen layers run again with
    /// the others of their stage.
    pub(super) fn recomputed_among_others(&self, range: &Range<usize>, is_last: bool) -> u128 {
        match self.pipeline.recompute {
            _ if !self.is_by_depth() => 0,
            Recompute::Stage if is_last => 0,
            Recompute::Stage => self.forward_without_out(range),
            // The last stage keeps everything after its last checkpoint, which is the end of the
            // last layer.
            _ => self.forward_again(range),
        }
    }

    /// Forward cycles of a range that run again if each layer is recomputed only where necessary.
    pub(super) fn forward_again(&self, range: &Range<usize>) -> u128 {
        let again = self.by_themselves(range);
        match range.start {
            0 => again + self.with_first_layer(range),
            _ => again,
        }
    }

    /// Forward cycles of positions that run again for their own backward pass.
    fn by_themselves(&self, range: &Range<usize>) -> u128 {
        let before = |position: usize| self.again_before.get(position).copied().unwrap_or(0);
        before(range.end).saturating_sub(before(range.start))
    }

    /// Forward cycles of In if it has no backward pass and runs again with the first layer, which
    /// the range includes.
    fn with_first_layer(&self, range: &Range<usize>) -> u128 {
        let runs = |position: usize| self.by_themselves(&(position..position + 1)) > 0;
        match range.contains(&1) && runs(1) && !runs(0) {
            true => self.forward_without_out(&(0..1)),
            false => 0,
        }
    }

    /// Forward cycles of a range, without Out.
    pub(super) fn forward_without_out(&self, range: &Range<usize>) -> u128 {
        let [forward, ..] = self.sums(range).unwrap_or_default();
        forward.saturating_sub(self.forward_of_out(range))
    }
}
