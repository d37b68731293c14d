//! The greedy search of the Python tool that PopLiner replaces (docs/model.md, "The original's
//! search"). It fills one stage after the other up to a share of the tile memory.

use std::ops::Range;

use crate::memory::RangeCosts;

/// Numbers of layers that the greedy search puts into a stage at first, in the order in which it
/// tries them. Further layers follow as long as the stage is within its share of the tile memory
/// ([`PROPORTIONS`]).
const MIN_LAYERS: [usize; 3] = [3, 2, 1];
/// Shares of the tile memory up to which the greedy search fills stages, in the order in which it
/// tries them. It tries all shares before it puts fewer layers into each stage at first
/// ([`MIN_LAYERS`]).
const PROPORTIONS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// The result of the greedy search. Its stages may be too many, or not cover all layers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Greedy {
    /// Whether every position is in a stage, and there are at most as many stages as allowed. The
    /// greedy search makes several attempts; if none fits, all fields describe the last attempt.
    pub fits: bool,
    /// The stages as ranges of positions (ends exclusive), in order from position 0, without a gap.
    ///
    /// If `fits` is false, there may be more stages than the caller allowed. Or the stages end
    /// before the last layer, because the next layers take more bytes than `proportion` of the tile
    /// memory. The list is empty if already the first layers take more.
    pub stages: Vec<Range<usize>>,
    /// The share of the tile memory, from 0.5 to 1, up to which the search filled each of `stages`.
    pub proportion: f64,
    /// The number of layers with which the search began each of `stages`, before it added further
    /// layers as long as they fit. If fewer layers were left, it began the stage with 1 layer.
    pub min_layers: usize,
}

/// Searches for a split into at most `max_stages` stages for tiles of `mem_per_tile` bytes, as the
/// original tool does (docs/model.md, "The original's search"). Returns the first attempt that
/// fits, or else the last attempt. A range without an entry in `costs` does not fit. The position
/// None (operations without a layer) is treated as a layer.
pub fn greedy(costs: &RangeCosts, mem_per_tile: u64, max_stages: usize) -> Greedy {
    let mut attempt = Greedy::default();
    for min_layers in MIN_LAYERS {
        for proportion in PROPORTIONS {
            let stages = fill(costs, mem_per_tile as f64 * proportion, min_layers);
            let placed = stages.last().map_or(0, |stage| stage.end) == costs.layers();
            attempt = Greedy {
                fits: placed && stages.len() <= max_stages,
                stages,
                proportion,
                min_layers,
            };
            if attempt.fits {
                return attempt;
            }
        }
    }
    attempt
}

/// Makes one attempt: fills one stage after the other, each up to `target` bytes on the fullest
/// tile. Each stage starts with `min_layers` layers, or with 1 if fewer are left. The attempt ends
/// if the first layers of a stage exceed `target`.
fn fill(costs: &RangeCosts, target: f64, min_layers: usize) -> Vec<Range<usize>> {
    let layers = costs.layers();
    let fits = |range: Range<usize>| costs.least(range).is_some_and(|peak| peak as f64 <= target);
    let mut stages = Vec::new();
    let mut start = 0;
    while start < layers {
        let is_end = layers - start < min_layers;
        let mut end = start + if is_end { 1 } else { min_layers };
        if !fits(start..end) {
            break;
        }
        while end < layers && fits(start..end + 1) {
            end += 1;
        }
        stages.push(start..end);
        start = end;
    }
    stages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::testing::additive;

    #[test]
    fn three_layers_at_half_the_memory_come_first() {
        let found = greedy(&additive(&[1; 9], u64::MAX), 8, 4);
        assert!(found.fits);
        assert_eq!((found.min_layers, found.proportion), (3, 0.5));
        assert_eq!(found.stages, [0..4, 4..8, 8..9]);
    }

    #[test]
    fn fewer_stages_are_reached_by_a_higher_proportion() {
        let found = greedy(&additive(&[1; 9], u64::MAX), 8, 2);
        assert!(found.fits);
        assert_eq!((found.min_layers, found.proportion), (3, 0.7));
        assert_eq!(found.stages, [0..5, 5..9]);
    }

    #[test]
    fn a_stage_starts_with_one_layer_when_fewer_than_the_minimum_remain() {
        // A stage may take 5 bytes. It begins with 3 layers, or with 1 if fewer than 3 are left.
        // The first stage takes the layers of 2, 2 and 1 bytes. The second stage begins with the
        // layer of 3 bytes, and then also takes the last layer, of 2 bytes.
        let found = greedy(&additive(&[2, 2, 1, 3, 2], u64::MAX), 10, 2);
        assert_eq!((found.min_layers, found.proportion), (3, 0.5));
        assert_eq!(found.stages, [0..3, 3..5]);
    }

    #[test]
    fn the_minimum_falls_when_its_layers_never_fit_together() {
        let found = greedy(&additive(&[6, 6, 6], u64::MAX), 10, 3);
        assert!(found.fits);
        assert_eq!((found.min_layers, found.proportion), (1, 0.6));
        assert_eq!(found.stages, [0..1, 1..2, 2..3]);
    }

    #[test]
    fn targets_are_floating_point() {
        // A stage may fill 0.7 of a tile of 10 bytes: in 64-bit floating point exactly 7, so a
        // layer of 7 bytes fits.
        let found = greedy(&additive(&[7], u64::MAX), 10, 1);
        assert_eq!((found.min_layers, found.proportion), (3, 0.7));
        // A layer of 2 bytes does not fit in 0.6 of a tile of 3 bytes (about 1.8), but in 0.7
        // (about 2.1).
        let found = greedy(&additive(&[2], u64::MAX), 3, 1);
        assert_eq!((found.min_layers, found.proportion), (3, 0.7));
    }

    #[test]
    fn the_best_effort_ends_before_the_layer_that_overflows() {
        let found = greedy(&additive(&[1, 1, 20, 1], 10), 10, 4);
        assert!(!found.fits);
        assert_eq!((found.min_layers, found.proportion), (1, 1.0));
        assert_eq!((found.stages.len(), found.stages[0].clone()), (1, 0..2));
        let first = greedy(&additive(&[20, 1], 10), 10, 4);
        assert_eq!((first.fits, first.stages), (false, vec![]));
    }

    #[test]
    fn the_best_effort_may_have_too_many_stages() {
        let found = greedy(&additive(&[6, 6, 6], u64::MAX), 10, 2);
        assert!(!found.fits);
        assert_eq!(found.stages, [0..1, 1..2, 2..3]);
    }
}
