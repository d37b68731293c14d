//! The best split in truth, against the chosen one.

use std::collections::HashMap;
use std::ops::Range;

use super::planted::Planted;
use super::prediction::Question;

/// Bytes for a tile that every model fits in.
const ENOUGH: u64 = 1 << 40;

/// True bytes of the fullest tile of each range that can be a stage.
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

    /// Returns the bytes of the fullest tile of a split; `None` if a stage has only a part of a
    /// weight.
    pub fn of_split(&self, stages: &[Range<usize>]) -> Option<u64> {
        let peaks: Option<Vec<u64>> = stages
            .iter()
            .map(|stage| self.peaks.get(stage).copied())
            .collect();
        peaks?.into_iter().max()
    }

    /// Returns the lowest peak of all splits into at most `ipus` stages.
    pub fn optimum(&self, ipus: usize) -> Option<u64> {
        // For each end, the lowest peak of the positions before it, in the stages so far.
        let mut before: Vec<Option<u64>> = vec![None; self.positions + 1];
        before[0] = Some(0);
        let mut lowest: Option<u64> = None;
        for _ in 0..ipus {
            let with_stage = |from: usize, to: usize| {
                let stage = self.peaks.get(&(from..to))?;
                before[from].map(|before| before.max(*stage))
            };
            let best = |to| (0..to).filter_map(|from| with_stage(from, to)).min();
            before = (0..=self.positions).map(best).collect();
            lowest = lowest.into_iter().chain(before[self.positions]).min();
        }
        lowest
    }
}

/// The answer to a question, compared with the truth.
pub struct SplitError {
    /// Number of IPUs.
    pub ipus: usize,
    /// Bytes of each tile.
    pub limit: u64,
    /// The chosen split.
    pub stages: Option<Vec<Range<usize>>>,
    /// By how much the chosen split needs more than the best one, relative to the truth; `None` if
    /// it divides a weight.
    pub loss: Option<f64>,
    /// Does the chosen split fit in truth?
    pub fits: bool,
    /// Was no split found, though one fits?
    pub is_refused: bool,
}

impl std::fmt::Display for SplitError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (ipus, limit) = (self.ipus, self.limit);
        let fits = if self.fits { "fits" } else { "does not fit" };
        match (&self.stages, self.loss) {
            (None, _) => write!(f, "{ipus} IPUs of {limit} bytes: refused"),
            (Some(stages), None) => write!(f, "{ipus} IPUs: {stages:?} tears a weight apart"),
            (Some(stages), Some(loss)) => {
                let loss = 100.0 * loss;
                write!(
                    f,
                    "{ipus} IPUs of {limit} bytes: {stages:?} {fits}, {loss:.2} % lost"
                )
            }
        }
    }
}

impl SplitError {
    /// Is the answer good enough? Refusing is right if the best split is near the limit.
    pub fn is_right(&self) -> bool {
        self.is_refused || (self.fits && self.loss.is_some_and(|loss| loss <= 0.02))
    }
}

/// Returns questions for two to four IPUs, with ample memory and with little more than needed.
pub fn questions(seed: u64, peaks: &Peaks) -> Vec<Question> {
    let ipus = (2..=4).filter(|&ipus| ipus < peaks.positions);
    let questions = ipus.flat_map(|ipus| {
        let optimum = peaks.optimum(ipus).expect("a split");
        let little = optimum * (101 + (7 * seed + ipus as u64) % 12) / 100;
        [ENOUGH, little].map(|limit| Question { ipus, limit })
    });
    questions.collect()
}

/// Compares the answers with the truth.
pub fn errors(
    peaks: &Peaks,
    questions: &[Question],
    answers: &[Option<Vec<Range<usize>>>],
) -> Vec<SplitError> {
    let judge = |(question, answer): (&Question, &Option<Vec<Range<usize>>>)| {
        let &Question { ipus, limit } = question;
        let optimum = peaks.optimum(ipus).expect("a split");
        let peak = answer.as_ref().map(|stages| peaks.of_split(stages));
        SplitError {
            ipus,
            limit,
            stages: answer.clone(),
            loss: match peak {
                Some(peak) => peak.map(|peak| peak as f64 / optimum as f64 - 1.0),
                None => Some(0.0),
            },
            fits: peak.flatten().is_none_or(|peak| peak <= limit),
            is_refused: answer.is_none(),
        }
    };
    questions.iter().zip(answers).map(judge).collect()
}
