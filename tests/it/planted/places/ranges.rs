//! Every range of places that can be a stage: by how much the prediction is too low or too high.

use std::ops::Range;

use super::planted::Planted;

/// The error of a range.
pub struct RangeError {
    pub range: Range<usize>,
    /// True and predicted bytes of the fullest tile.
    pub peaks: [u64; 2],
    /// Largest error on any tile, relative to the true bytes of the fullest tile.
    pub under: f64,
    /// By how much the prediction for the fullest tile is too high, relative to the truth.
    pub over: f64,
}

impl std::fmt::Display for RangeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [truth, predicted] = self.peaks;
        let range = format!("{:?}", self.range);
        let [under, over] = [self.under, self.over].map(|error| 100.0 * error);
        write!(
            f,
            "{range:>6} truth {truth:8} predicted {predicted:8} under {under:6.2} % over {over:6.2} %"
        )
    }
}

/// Compares a prediction with the truth.
fn error(range: Range<usize>, predicted: &[u64], truth: &[u64]) -> RangeError {
    assert_eq!(predicted.len(), truth.len());
    let peaks = [truth, predicted].map(|bytes| bytes.iter().copied().max().unwrap_or(0));
    let under = predicted.iter().zip(truth);
    let under = under.map(|(&predicted, &truth)| truth as f64 - predicted as f64);
    let [fullest, highest] = peaks.map(|peak| peak as f64);
    RangeError {
        range,
        peaks,
        under: under.fold(0.0, f64::max) / fullest,
        over: highest / fullest - 1.0,
    }
}

/// Returns the errors of all ranges that can be a stage.
pub fn errors(planted: &Planted, predicted: &[Vec<u64>]) -> Vec<RangeError> {
    let ranges = planted.ranges();
    assert_eq!(ranges.len(), predicted.len());
    let stages = ranges.into_iter().zip(predicted);
    let stages = stages.filter(|(range, _)| planted.can_be_a_stage(range));
    stages
        .map(|(range, predicted)| {
            let truth = planted.bytes(&range);
            error(range, predicted, &truth)
        })
        .collect()
}
