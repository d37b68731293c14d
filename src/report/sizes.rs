//! The best split for each size of a micro-batch that the model was recorded with.

use super::{BestSplit, Inputs, Report};
use crate::search::SearchResult;
use serde::{Deserialize, Serialize};

/// The best split for one size of a micro-batch (`--micro-batch SIZE=PROFILE`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SizeAnswer {
    /// Number of samples in a micro-batch.
    pub micro_batch: u64,
    /// Path of the profile that was recorded with micro-batches of `micro_batch` samples.
    pub profile: String,
    /// The best split with micro-batches of `micro_batch` samples or, if none fits, the split
    /// with the lowest peak. The field `command` of the split is empty.
    pub answer: BestSplit,
}

impl Inputs<'_> {
    /// Returns the best split for each recorded size of a micro-batch, in ascending order of size;
    /// an empty list if only one size was recorded.
    pub(super) fn sizes(&self, search: &SearchResult<'_>) -> Vec<SizeAnswer> {
        search
            .claims
            .sizes
            .iter()
            .map(|size| SizeAnswer {
                micro_batch: size.claim.best.samples as u64,
                profile: size.profile.clone(),
                answer: BestSplit {
                    command: String::new(),
                    ..self.best_split(&size.claim)
                },
            })
            .collect()
    }
}

/// Returns a sentence about the largest recorded size of a micro-batch that fits, the next size
/// that does not, and the size to record next. Returns `None` if there is only one size.
pub(super) fn next_size(report: &Report) -> Option<String> {
    let sizes_that = |fit: bool| {
        let sizes = report
            .sizes
            .iter()
            .filter(move |size| size.answer.fits == fit);
        sizes.map(|size| size.micro_batch)
    };
    let largest = sizes_that(true).next_back();
    let over = sizes_that(false).find(|&size| Some(size) > largest);
    Some(match (largest, over) {
        (None, None) => return None,
        (Some(fits), None) => {
            format!("micro-batches of {fits} fit, the largest recorded: record larger ones")
        }
        (None, Some(1)) => "micro-batches of 1 do not fit".to_owned(),
        (None, Some(over)) => {
            format!(
                "micro-batches of {over} do not fit, the smallest recorded: record {}",
                over / 2
            )
        }
        (Some(fits), Some(over)) if over - fits == 1 => {
            format!("micro-batches of {fits} fit, {over} do not")
        }
        (Some(fits), Some(over)) => {
            let between = fits.midpoint(over);
            format!("micro-batches of {fits} fit, {over} do not: record {between} to know more")
        }
    })
}
