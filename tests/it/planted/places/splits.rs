//! The best split in truth, by trying all.

use std::collections::HashMap;
use std::ops::Range;

use super::planted::Planted;

/// Bytes of the fullest tile of each range that can be a stage.
pub struct Peaks {
    positions: usize,
    peaks: HashMap<Range<usize>, u64>,
}

impl Peaks {
    pub fn new(planted: &Planted) -> Self {
        let ranges = planted.ranges().into_iter();
        let stages = ranges.filter(|range| planted.can_be_a_stage(range));
        let peak = |range: &Range<usize>| planted.bytes(range).into_iter().max();
        Self {
            positions: planted.positions(),
            peaks: stages
                .map(|range| (range.clone(), peak(&range).expect("a tile")))
                .collect(),
        }
    }

    /// The fullest tile of a split; none if a stage has a part of a weight.
    pub fn of_split(&self, stages: &[Range<usize>]) -> Option<u64> {
        let peaks: Option<Vec<u64>> = stages
            .iter()
            .map(|stage| self.peaks.get(stage).copied())
            .collect();
        peaks?.into_iter().max()
    }

    /// The lowest peak of all splits into at most so many stages.
    pub fn optimum(&self, ipus: usize) -> Option<u64> {
        let cuts = 0..1usize << (self.positions - 1);
        let splits = cuts.filter(|cuts| cuts.count_ones() as usize <= ipus - 1);
        splits
            .filter_map(|cuts| self.of_split(&self.stages(cuts)))
            .min()
    }

    /// Bit `n` of `cuts` cuts after position `n`.
    fn stages(&self, cuts: usize) -> Vec<Range<usize>> {
        let ends = (1..self.positions).filter(|end| cuts >> (end - 1) & 1 == 1);
        let ends: Vec<usize> = ends.chain([self.positions]).collect();
        let starts = [0].into_iter().chain(ends.iter().copied());
        starts
            .zip(ends.iter().copied())
            .map(|(from, to)| from..to)
            .collect()
    }
}
