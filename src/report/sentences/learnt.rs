//! The correction from compiled pipelines.

use super::{Sentence, say};
use crate::report::{Report, Stage};
use crate::wording::listed;

/// Says that the correction of some stages is from another split; `None` where
/// it is not.
pub(in crate::report) fn learnt(report: &Report) -> Option<Sentence> {
    let split = report
        .split
        .as_ref()
        .filter(|split| split.has_estimates())?;
    let is_estimate = |stage: &&Stage| stage.fullest_tile.learnt_is_estimate;
    let stages = split.stages.iter().filter(is_estimate);
    let stages: Vec<String> = stages.map(|stage| stage.stage.to_string()).collect();
    let ipus = if stages.len() == 1 { "IPU" } else { "IPUs" };
    let ipus = match stages.len() == split.stages.len() {
        true => "every IPU".to_string(),
        false => format!("{ipus} {}", listed(&stages)),
    };
    Some(say(format!(
        "the calibrated correction of {ipus} comes from another split, by the place of the IPU: \
         compile this split and calibrate again to be sure"
    )))
}
