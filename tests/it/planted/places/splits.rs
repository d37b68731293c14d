//! The best split in truth, against the chosen one.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use popliner::memory::MemoryModel;
use popliner::model::Placement;
use popliner::solve::{Constraint, Goal, Problem, ProfileCosts, Rule, solve};

use super::planted::Planted;

/// True bytes of the fullest tile of each range that can be a stage, computed when they are needed.
pub struct Peaks<'p> {
    planted: &'p Planted,
    /// Positions at which a stage may begin or end, ascending.
    cuts: Vec<usize>,
    peaks: RefCell<HashMap<Range<usize>, u64>>,
}

impl<'p> Peaks<'p> {
    pub fn new(planted: &'p Planted) -> Self {
        let is_cut = |cut: &usize| *cut == 0 || planted.can_be_a_stage(&(0..*cut));
        Self {
            cuts: (0..=planted.positions()).filter(is_cut).collect(),
            planted,
            peaks: RefCell::default(),
        }
    }

    fn of(&self, range: Range<usize>) -> u64 {
        if let Some(&peak) = self.peaks.borrow().get(&range) {
            return peak;
        }
        let peak = *self.planted.bytes(&range).iter().max().expect("a tile");
        self.peaks.borrow_mut().insert(range, peak);
        peak
    }

    /// Returns the bytes of the fullest tile of a split; `None` if a stage has only a part of a
    /// weight.
    fn of_split(&self, stages: &[Range<usize>]) -> Option<u64> {
        let stages = stages.iter();
        let peak = |stage: &Range<usize>| {
            let is_whole = self.planted.can_be_a_stage(stage);
            is_whole.then(|| self.of(stage.clone()))
        };
        let peaks: Option<Vec<u64>> = stages.map(peak).collect();
        peaks?.into_iter().max()
    }

    /// Returns the fewest stages within a limit that make up the model, if at most `most` do. A
    /// longer range never needs less, so each goes as far as it fits.
    fn fewest(&self, limit: u64, most: usize) -> Option<usize> {
        let mut first = 0;
        for stages in 1..=most {
            let (mut fits, mut exceeds) = (first, self.cuts.len());
            while fits + 1 < exceeds {
                let middle = fits.midpoint(exceeds);
                match self.of(self.cuts[first]..self.cuts[middle]) <= limit {
                    true => fits = middle,
                    false => exceeds = middle,
                }
            }
            match fits {
                _ if fits + 1 == self.cuts.len() => return Some(stages),
                _ if fits == first => return None,
                _ => first = fits,
            }
        }
        None
    }

    /// Returns the lowest peak in bytes of all splits into at most `ipus` stages.
    pub fn lowest(&self, ipus: usize) -> u64 {
        let (mut exceeds, mut fits) = (0, self.of(0..self.planted.positions()));
        while exceeds + 1 < fits {
            let middle = exceeds.midpoint(fits);
            match self.fewest(middle, ipus) {
                Some(_) => fits = middle,
                None => exceeds = middle,
            }
        }
        fits
    }
}

/// The answer to a question, compared with the truth.
#[derive(Debug)]
#[expect(dead_code, reason = "failures print all fields")]
pub struct SplitError {
    /// Number of IPUs.
    ipus: usize,
    /// Bytes of each tile.
    limit: u64,
    /// The chosen split; `None` without one.
    pub stages: Option<Vec<Range<usize>>>,
    /// By how much the chosen split needs more than the best one, relative to the truth; `None` if
    /// it divides a weight.
    pub loss: Option<f64>,
    /// Does the chosen split fit in truth?
    fits: bool,
}

impl SplitError {
    /// Is the answer good enough? Refusing is right if the best split is near the limit.
    pub fn is_right(&self) -> bool {
        let is_good = self.fits && self.loss.is_some_and(|loss| (0.0..=0.02).contains(&loss));
        self.stages.is_none() || is_good
    }
}

/// Bytes for a tile that every model fits in.
const ENOUGH: u64 = 1 << 40;

/// Asks for the best splits on two to four IPUs, with ample memory and with little more than needed,
/// and compares the answers with the truth.
pub fn errors(
    seed: u64,
    peaks: &Peaks<'_>,
    memory: &MemoryModel<'_>,
    placement: &Placement,
) -> Vec<SplitError> {
    // Layers with a tied weight stay together.
    let ties = placement.ties.iter();
    let tied = ties.filter_map(|tie| tie.binds(&placement.positions));
    let tied = tied.map(|(first, last)| Constraint::option(Rule::Together { first, last }, "tied"));
    let tied: Vec<Constraint> = tied.collect();
    let ipus = (2..=4).filter(|&ipus| ipus < memory.layers());
    let errors = ipus.flat_map(|ipus| {
        let optimum = peaks.lowest(ipus);
        let little = optimum * (101 + (7 * seed + ipus as u64) % 12) / 100;
        [ENOUGH, little].map(|limit| {
            let stages = chosen(memory, &tied, ipus, limit);
            let peak = stages.as_ref().map(|stages| peaks.of_split(stages));
            SplitError {
                ipus,
                limit,
                stages,
                loss: match peak {
                    Some(peak) => peak.map(|peak| peak as f64 / optimum as f64 - 1.0),
                    None => Some(0.0),
                },
                fits: peak.flatten().is_none_or(|peak| peak <= limit),
            }
        })
    });
    errors.collect()
}

/// Returns the split that the library chooses.
fn chosen(
    memory: &MemoryModel<'_>,
    tied: &[Constraint],
    ipus: usize,
    limit: u64,
) -> Option<Vec<Range<usize>>> {
    let costs = memory.range_costs(limit).expect("costs");
    let cut_bytes = memory.cut_bytes();
    let profile = ProfileCosts {
        ranges: costs.into(),
        cut_bytes: cut_bytes.into(),
        times: None,
    };
    let problem = Problem {
        by_profile: &[profile],
        ipus,
        limits: &[limit],
        constraints: tied,
        goal: Goal::Peak,
    };
    let solution = solve(&problem).expect("an answer");
    solution.map(|solution| solution.plan.stages().to_vec())
}
