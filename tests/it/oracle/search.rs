//! docs/model.md, "The original's search", and the best split by trying all.

use std::collections::HashMap;
use std::ops::Range;

use super::Oracle;
use super::memory::Stage;

/// The result of the greedy search.
pub struct Greedy {
    pub stages: Vec<Range<usize>>,
    pub proportion: f64,
    pub min_layers: usize,
    pub fits: bool,
}

/// Every range of the layer order as a stage, and the bytes over every cut.
pub struct Ranges {
    stages: HashMap<(usize, usize), Stage>,
    /// Bytes over each boundary between neighbours.
    cut_bytes: Vec<u64>,
    /// Cycles of a micro-batch by layer; 0 if the profile has none.
    cycles: Vec<u64>,
    layers: usize,
}

impl Ranges {
    pub fn of(oracle: &Oracle, cycles: Vec<u64>) -> Self {
        let count = oracle.layer_count();
        let mut stages = HashMap::new();
        for from in 0..count {
            for to in from + 1..=count {
                let stage = oracle.stage(&oracle.members(from..to));
                stages.insert((from, to), stage);
            }
        }
        Self {
            stages,
            cut_bytes: oracle.cut_bytes(),
            cycles,
            layers: count,
        }
    }

    pub fn stage(&self, range: &Range<usize>) -> &Stage {
        &self.stages[&(range.start, range.end)]
    }

    /// Returns the bytes on the fullest tile of a range.
    pub fn peak(&self, range: &Range<usize>) -> u64 {
        self.stage(range).peak()
    }
}

/// The cost of a split; lower is better. Fields are compared in order.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    peak: u64,
    stages: usize,
    slowest: u64,
    squares: u128,
    cut_bytes: u64,
    cuts: Vec<usize>,
}

/// Returns the best of all splits into at most `num_ipus` stages.
pub fn best(ranges: &Ranges, num_ipus: usize) -> Vec<Range<usize>> {
    let count = ranges.layers;
    let inner = count - 1;
    let splits = (0..1u32 << inner).map(|chosen| {
        let cuts = (0..inner).filter(|cut| chosen & 1 << cut != 0);
        cuts.map(|cut| cut + 1).collect::<Vec<usize>>()
    });
    let allowed = splits.filter(|cuts| cuts.len() < num_ipus);
    let cost = |cuts: Vec<usize>| {
        let stages = stages(&cuts, count);
        let slowest = stages
            .iter()
            .map(|stage| ranges.cycles[stage.clone()].iter().sum());
        let of_stages = || stages.iter().map(|stage| ranges.peak(stage));
        Cost {
            peak: of_stages().max().expect("a stage"),
            stages: stages.len(),
            slowest: slowest.max().expect("a stage"),
            squares: of_stages().map(|peak| u128::from(peak).pow(2)).sum(),
            cut_bytes: cuts.iter().map(|&cut| ranges.cut_bytes[cut - 1]).sum(),
            cuts,
        }
    };
    let best = allowed.map(cost).min().expect("a split");
    stages(&best.cuts, count)
}

fn stages(cuts: &[usize], count: usize) -> Vec<Range<usize>> {
    let starts = [0].into_iter().chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([count]);
    starts.zip(ends).map(|(start, end)| start..end).collect()
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
fn fill(ranges: &Ranges, min_layers: usize, target: f64) -> (Vec<Range<usize>>, bool) {
    let count = ranges.layers;
    let overflows = |range: &Range<usize>| ranges.peak(range) as f64 > target;
    let mut stages = Vec::new();
    let mut start = 0;
    while start < count {
        let left = count - start;
        let mut layers = if left < min_layers { 1 } else { min_layers };
        if overflows(&(start..start + layers)) {
            return (stages, false);
        }
        while layers < left && !overflows(&(start..start + layers + 1)) {
            layers += 1;
        }
        stages.push(start..start + layers);
        start += layers;
    }
    (stages, true)
}
