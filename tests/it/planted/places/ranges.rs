//! Every range of places that can be a stage: how far the prediction is under or
//! over what is true.

use std::ops::Range;

use super::planted::Planted;

/// The error of a range.
pub struct RangeError {
    pub range: Range<usize>,
    /// Bytes of the fullest tile, in truth and as predicted.
    pub peaks: [u64; 2],
    /// The largest error on any tile, as a part of what is true on the fullest.
    pub under: f64,
    /// How much more is predicted for the fullest tile.
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

/// Holds a prediction against the truth.
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

/// The errors of all ranges that can be a stage.
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
