//! Every range of places that can be a stage: how far the prediction is under or
//! over what is true.

use std::ops::Range;

use super::distribution::Distribution;
use super::planted::Planted;

/// The error of a range.
pub struct RangeError {
    pub range: Range<usize>,
    /// The largest on any tile, as a part of what is true on the fullest tile.
    pub under: f64,
    /// How much more is predicted for the fullest tile.
    pub over: f64,
}

/// Holds a prediction against the truth.
pub fn error(range: Range<usize>, predicted: &[u64], truth: &[u64]) -> RangeError {
    assert_eq!(predicted.len(), truth.len());
    let fullest = *truth.iter().max().expect("a tile") as f64;
    let under = predicted.iter().zip(truth);
    let under = under.map(|(&predicted, &truth)| (truth as f64 - predicted as f64) / fullest);
    let highest = *predicted.iter().max().expect("a tile") as f64;
    RangeError {
        range,
        under: under.fold(0.0, f64::max),
        over: highest / fullest - 1.0,
    }
}

/// The same for all ranges that can be a stage.
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

/// Prints how both are distributed.
pub fn print(under: &Distribution, over: &Distribution) {
    under.print("under the truth on any tile, per cent of the fullest");
    over.print("over the truth on the fullest tile, per cent");
}
