//! The cycles that a stage of a pipeline recomputes (docs/model.md, "Time").

use super::StageTimes;
use crate::memory::Recompute;
use std::ops::Range;

impl StageTimes {
    /// Cycles of recomputation of a range in a stage that is the last of the pipeline, or not: of all
    /// but Out, which ends the pipeline.
    pub(super) fn recomputed(&self, range: &Range<usize>, is_last: bool) -> u128 {
        match self.forward_again(range) {
            0 => 0,
            _ => self.recomputed_among_others(range, is_last),
        }
    }

    /// The same in a stage that recomputes: frozen layers run again where others of it do.
    pub(super) fn recomputed_among_others(&self, range: &Range<usize>, is_last: bool) -> u128 {
        match self.pipeline.recompute {
            _ if !self.is_by_depth() => 0,
            Recompute::Stage if is_last => 0,
            Recompute::Stage => self.forward_without_out(range),
            // Of the last stage, what follows the last checkpoint is kept: the end of the last
            // layer.
            _ => self.forward_again(range),
        }
    }

    /// The forward cycles of a range that run again, where each of its layers does that needs it.
    pub(super) fn forward_again(&self, range: &Range<usize>) -> u128 {
        let again = self.by_themselves(range);
        match range.start {
            0 => again + self.with_first_layer(range),
            _ => again,
        }
    }

    /// The forward cycles of positions that run again because of their own backward pass.
    fn by_themselves(&self, range: &Range<usize>) -> u128 {
        let before = |position: usize| self.again_before.get(position).copied().unwrap_or(0);
        before(range.end).saturating_sub(before(range.start))
    }

    /// Those of In, without a backward pass, where the range has the first layer and that runs
    /// again.
    fn with_first_layer(&self, range: &Range<usize>) -> u128 {
        let runs = |position: usize| self.by_themselves(&(position..position + 1)) > 0;
        match range.contains(&1) && runs(1) && !runs(0) {
            true => self.forward_without_out(&(0..1)),
            false => 0,
        }
    }

    /// The forward cycles of a range without those of Out.
    pub(super) fn forward_without_out(&self, range: &Range<usize>) -> u128 {
        let [forward, ..] = self.sums(range).unwrap_or_default();
        forward.saturating_sub(self.forward_of_out(range))
    }
}
