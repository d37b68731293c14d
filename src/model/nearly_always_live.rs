//! Warns about persistent variables that are not counted as always live, because there are steps at
//! which they are not live, although the IPU neither computes nor moves data at these steps. In
//! practice, large weights can be such variables (docs/model.md, "Variables").

use super::VariableGroups;
use crate::message::Warning;
use crate::profile::{MissedSteps, Profile};
use crate::wording::grouped;

/// The warning is only given if nearly always live variables have at least 1/`MIN_SHARE` of the
/// bytes of all data variables. A smaller share changes no split visibly.
const MIN_SHARE: u64 = 100;

/// Returns a warning if some variables are live at all steps except steps at which the IPU neither
/// computes nor moves data, and have at least 1/[`MIN_SHARE`] of the bytes of all `data` variables.
/// Such variables are probably weights. `is_training` is true if the program has a backward pass.
pub(super) fn warning(
    profile: &Profile,
    data: &VariableGroups,
    is_training: bool,
) -> Option<Warning> {
    let by_class = &profile.missed_steps;
    let (mut bytes, mut all) = (0u64, 0u64);
    for data_use in data.uses() {
        all = all.saturating_add(data_use.bytes);
        if by_class[data_use.class as usize].is_some() {
            bytes = bytes.saturating_add(data_use.bytes);
        }
    }
    if bytes == 0 || bytes.saturating_mul(MIN_SHARE) < all {
        return None;
    }
    let missed = profile
        .variables
        .classes
        .iter()
        .filter_map(|&class| by_class.get(class as usize)?.as_ref());
    Some(sentence(
        bytes,
        missed,
        profile.classes.steps(),
        is_training,
    ))
}

/// Returns the text of the warning about variables that are live at nearly all of `steps` steps.
/// `bytes` is the sum of their bytes, and `all` has one entry per variable: the steps at which it
/// is not live.
fn sentence<'a>(
    bytes: u64,
    all: impl Iterator<Item = &'a MissedSteps> + Clone,
    steps: u32,
    is_training: bool,
) -> Warning {
    let (count, bytes) = (all.clone().count(), grouped(bytes));
    let most = |of: fn(&MissedSteps) -> u32| all.clone().map(of).max().unwrap_or_default();
    let (missed, last) = (most(|one| one.count), most(|one| one.last));
    let first = all.clone().map(|one| one.first).min().unwrap_or_default();
    let result = match all
        .filter(|one| one.first == 0 || one.last + 1 == steps)
        .count()
    {
        at_ends @ 1.. if is_training => format!(
            "; {at_ends} of them miss the first or the last step, so a pipeline that trains keeps \
             copies of them like activations, unless a context says that they are weights; try \
             --schedule none, which keeps no copies"
        ),
        _ => ", so they do not count as always live; look for them under 'Not always live' in \
              --memory-totals: they count at all other steps"
            .to_string(),
    };
    Warning::new(format!(
        "{count} variables with {bytes} bytes are probably weights, but live at all {steps} steps \
         except at most {missed}, between step {first} and step {last}, that compute \
         nothing{result}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_names_those_that_a_pipeline_would_copy() {
        let missed = |first, last| MissedSteps {
            count: 2,
            first,
            last,
        };
        let all = [missed(3, 4), missed(8, 9), missed(0, 1)];
        let text = sentence(12_345, all.iter(), 10, true);
        for part in [
            "3 variables with 12,345 bytes",
            "all 10 steps except at most 2, between step 0 and step 9",
            "2 of them miss the first or the last step",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!sentence(12_345, all.iter(), 10, false).contains("pipeline"));
    }
}
