//! docs/model.md, "The original's search", and the best split by trying all.

use std::collections::HashMap;
use std::ops::Range;

use super::Oracle;
use super::memory::Stage;

/// A split: the positions of each stage in the layer order.
pub type Split = Vec<Range<usize>>;

/// Returns all splits into at most `ipus` stages.
fn splits(positions: usize, ipus: usize) -> impl Iterator<Item = Split> {
    let all = (0_u32..1 << (positions - 1)).filter(move |bits| (bits.count_ones() as usize) < ipus);
    all.map(move |bits| {
        let is_cut = |cut: &usize| bits >> (cut - 1) & 1 == 1;
        let mut start = 0;
        let ends = (1..positions).filter(is_cut).chain([positions]);
        ends.map(|end| std::mem::replace(&mut start, end)..end)
            .collect()
    })
}

/// Returns all ranges of positions.
pub fn ranges(positions: usize) -> impl Iterator<Item = Range<usize>> {
    (0..positions).flat_map(move |start| (start + 1..=positions).map(move |end| start..end))
}

/// The numbers by which splits are compared.
pub struct Numbers {
    pub positions: usize,
    /// Bytes on the fullest tile of each range of positions.
    pub peaks: HashMap<Range<usize>, u64>,
    /// Bytes that stages exchange over a cut before each position from 1 on.
    pub cut_bytes: Vec<u64>,
    /// Cycles of a micro-batch by position, without updates and recomputation.
    pub cycles: Option<Vec<u64>>,
}

impl Numbers {
    /// Returns the numbers of a split by which `objective` compares, and the ends of its stages.
    pub fn rank(&self, objective: &str, stages: &[Range<usize>]) -> (Vec<u128>, Vec<usize>) {
        let peaks = || stages.iter().map(|stage| u128::from(self.peaks[stage]));
        let peak = peaks().max().expect("a stage");
        let count = stages.len() as u128;
        let squares: u128 = peaks().map(|peak| peak * peak).sum();
        let cuts = stages[1..].iter();
        let cut_bytes = cuts.map(|after| u128::from(self.cut_bytes[after.start - 1]));
        let cut_bytes: u128 = cut_bytes.sum();
        let slowest: u128 = self.cycles.as_ref().map_or(0, |cycles| {
            let of = |stage: &Range<usize>| -> u64 { cycles[stage.clone()].iter().sum() };
            stages.iter().map(of).max().expect("a stage").into()
        });
        let numbers = match objective {
            "peak" => vec![peak, count, slowest, squares, cut_bytes],
            "fewest" => vec![count, peak, slowest, squares, cut_bytes],
            "communication" => vec![cut_bytes, peak, count, slowest, squares],
            other => panic!("{other}"),
        };
        (numbers, stages.iter().map(|stage| stage.end).collect())
    }

    /// Returns the best split within `limits` (by IPU) that is allowed.
    pub fn best(
        &self,
        objective: &str,
        limits: &[u64],
        is_allowed: impl Fn(&[Range<usize>]) -> bool,
    ) -> Option<Split> {
        let fits = |stages: &Split| {
            let mut stages = stages.iter().zip(limits);
            stages.all(|(stage, &limit)| self.peaks[stage] <= limit)
        };
        let splits = splits(self.positions, limits.len());
        let allowed = splits.filter(|stages| fits(stages) && is_allowed(stages));
        allowed.min_by_key(|stages| self.rank(objective, stages))
    }
}

/// The result of the greedy search.
pub struct Greedy {
    pub stages: Split,
    pub proportion: f64,
    pub min_layers: usize,
    pub fits: bool,
}

/// Every range of the layer order as a stage.
pub struct Ranges {
    stages: HashMap<Range<usize>, Stage>,
    numbers: Numbers,
}

impl Ranges {
    /// Computes all ranges; `cycles` are by layer, 0 if the profile has none.
    pub fn of(oracle: &Oracle, cycles: Vec<u64>) -> Self {
        let positions = oracle.layer_count();
        let stage = |range: Range<usize>| (range.clone(), oracle.stage(&oracle.members(range)));
        let stages: HashMap<_, _> = ranges(positions).map(stage).collect();
        let peaks = stages.iter();
        let peaks = peaks.map(|(range, stage)| (range.clone(), stage.peak()));
        Self {
            numbers: Numbers {
                positions,
                peaks: peaks.collect(),
                cut_bytes: oracle.cut_bytes(),
                cycles: Some(cycles),
            },
            stages,
        }
    }

    pub fn stage(&self, range: &Range<usize>) -> &Stage {
        &self.stages[range]
    }

    /// Returns the bytes on the fullest tile of a range.
    pub fn peak(&self, range: &Range<usize>) -> u64 {
        self.numbers.peaks[range]
    }
}

/// Returns the split with the lowest peak of all into at most `num_ipus` stages.
pub fn best(ranges: &Ranges, num_ipus: usize) -> Split {
    let limits = vec![u64::MAX; num_ipus];
    let best = ranges.numbers.best("peak", &limits, |_| true);
    best.expect("a split")
}

/// Runs "The original's search". The pseudo-layer counts as a layer.
pub fn greedy(ranges: &Ranges, num_ipus: usize, mem_per_tile: u64) -> Greedy {
    let mut last = None;
    for min_layers in [3, 2, 1] {
        for proportion in [0.5, 0.6, 0.7, 0.8, 0.9, 1.0] {
            let target = mem_per_tile as f64 * proportion;
            let (stages, complete) = fill(ranges, min_layers, target);
            let fits = complete && stages.len() <= num_ipus;
            let attempt = Greedy {
                stages,
                proportion,
                min_layers,
                fits,
            };
            if fits {
                return attempt;
            }
            last = Some(attempt);
        }
    }
    last.expect("an attempt")
}

/// Makes one attempt: returns its stages, and whether they contain every layer.
fn fill(ranges: &Ranges, min_layers: usize, target: f64) -> (Split, bool) {
    let count = ranges.numbers.positions;
    let overflows = |range: Range<usize>| ranges.peak(&range) as f64 > target;
    let mut stages = Vec::new();
    let mut start = 0;
    while start < count {
        let left = count - start;
        let mut layers = if left < min_layers { 1 } else { min_layers };
        if overflows(start..start + layers) {
            return (stages, false);
        }
        while layers < left && !overflows(start..start + layers + 1) {
            layers += 1;
        }
        stages.push(start..start + layers);
        start += layers;
    }
    (stages, true)
}
