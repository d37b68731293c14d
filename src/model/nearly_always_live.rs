//! Warns about persistent variables that do not count as always live, because they are not live at
//! some steps that only copy from or to the host. Large weights are seen to be so in practice
//! (docs/model.md, "Variables").

use super::VariableGroups;
use crate::message::Warning;
use crate::profile::{LiveClasses, Profile};
use crate::wording::grouped;
use std::ops::Range;

/// The warning is only given if the variables that it is about have at least 1/`MIN_SHARE` of the
/// bytes of all data variables. Fewer bytes change no split visibly.
const MIN_SHARE: u64 = 100;

/// Returns a warning if some variables are live at all steps except some copies from or to the
/// host, and have much of the bytes of all `data` variables ([`MIN_SHARE`]): they are probably
/// weights. `is_training` says whether there is a backward pass.
pub(super) fn warning(
    profile: &Profile,
    data: &VariableGroups,
    is_training: bool,
) -> Option<Warning> {
    let classes = &profile.classes;
    let missed = Missed::new(profile);
    let by_class = 0..classes.len() as u32;
    let by_class: Vec<_> = by_class.map(|class| missed.of_class(class)).collect();
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
    let by_variable = profile.variables.classes.iter();
    let missed = by_variable.filter_map(|&class| by_class.get(class as usize)?.as_ref());
    Some(sentence(bytes, missed, classes.steps(), is_training))
}

/// The steps at which a variable is not live: their number, the first and the last.
struct MissedSteps {
    count: u32,
    first: u32,
    last: u32,
}

/// Writes the warning about some variables: `bytes` is their sum, and `all` has, for each of them,
/// the steps at which it is not live. `steps` is the number of steps of the program.
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
    let at_ends = all.filter(|one| one.first == 0 || one.last + 1 == steps);
    let at_ends = at_ends.count();
    if is_training && at_ends > 0 {
        return Warning::new(format!(
            "{count} variables with {bytes} bytes are probably weights, but live at all {steps} \
             steps except at most {missed}, between step {first} and step {last}, that only copy \
             from or to the host; {at_ends} of them miss the first or the last step, so a pipeline \
             that trains keeps copies of them like activations, unless a context says that they \
             are weights; try --schedule none, which keeps no copies"
        ));
    }
    Warning::new(format!(
        "{count} variables with {bytes} bytes are probably weights, but live at all {steps} steps \
         except at most {missed}, between step {first} and step {last}, that only copy from or to \
         the host, so they do not count as always live; look for them under 'Not always live' in \
         --memory-totals: they count at all other steps"
    ))
}

/// Data by which to find the steps at which the variables of an equivalence class are not live.
struct Missed<'a> {
    classes: &'a LiveClasses,
    /// By step: the number of steps before it that copy from or to the host; with one more entry
    /// for the end.
    copies_before: Vec<u32>,
}

impl<'a> Missed<'a> {
    fn new(profile: &'a Profile) -> Self {
        let mut copies = 0;
        let mut copies_before = vec![copies];
        for step in &profile.steps {
            let kind = &profile.programs.all[step.program as usize].kind;
            copies += u32::from(kind.is_stream_copy());
            copies_before.push(copies);
        }
        Self {
            classes: &profile.classes,
            copies_before,
        }
    }

    /// Returns the steps at which a class is not live, if all of them copy from or to the host and
    /// there are fewer than those at which it is live. `None` otherwise, or if the class is always
    /// live.
    fn of_class(&self, class: u32) -> Option<MissedSteps> {
        let gaps: Vec<Range<u32>> = self.gaps(class).collect();
        let (first, last) = (gaps.first()?.start, gaps.last()?.end - 1);
        let count: u32 = gaps.iter().map(|gap| gap.end - gap.start).sum();
        let copies = |step: u32| self.copies_before[step as usize];
        let copied = gaps.iter().map(|gap| copies(gap.end) - copies(gap.start));
        let only_copies = copied.sum::<u32>() == count;
        let is_mostly_live = count < self.classes.steps() - count;
        (only_copies && is_mostly_live).then_some(MissedSteps { count, first, last })
    }

    /// Iterates over the ranges of steps (ends exclusive) at which a class is not live, ascending.
    fn gaps(&self, class: u32) -> impl Iterator<Item = Range<u32>> {
        let ranges = self.classes.ranges(class);
        let ends = std::iter::once(0).chain(ranges.iter().map(|range| range.1));
        let begins = ranges.iter().map(|range| range.0);
        let begins = begins.chain(std::iter::once(self.classes.steps()));
        let gaps = ends.zip(begins).map(|(end, begin)| end..begin);
        gaps.filter(|gap| !gap.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten steps: copies at the first two, the fifth and the last two.
    fn missed(ranges: &[(u32, u32)]) -> Option<(u32, u32, u32)> {
        let spans = ranges.iter().map(|&(from, to)| (0, from, to));
        let missed = Missed {
            classes: &LiveClasses::new(vec![false], spans.collect(), 10),
            copies_before: vec![0, 1, 2, 2, 2, 3, 3, 3, 3, 4, 5],
        };
        let of_class = missed.of_class(0)?;
        Some((of_class.count, of_class.first, of_class.last))
    }

    #[test]
    fn only_copies_may_be_missed_and_fewer_steps_than_not() {
        assert_eq!(missed(&[(2, 10)]), Some((2, 0, 1)));
        assert_eq!(missed(&[(0, 4), (5, 9)]), Some((2, 4, 9)));
        assert_eq!(missed(&[(0, 10)]), None, "it misses nothing");
        assert_eq!(missed(&[(3, 10)]), None, "step 2 copies nothing");
        assert_eq!(missed(&[(0, 5), (6, 10)]), None, "nor does step 5");
        assert_eq!(missed(&[]), None, "it is never live");
        assert_eq!(missed(&[(2, 4), (5, 8)]), None, "it misses as many as not");
    }

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
