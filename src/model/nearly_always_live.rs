//! Persistent variables that do not count as always live, because steps that only copy from or to
//! the host leave them out. Large weights are seen to do so in practice (docs/model.md,
//! "Variables").

use super::VariableGroups;
use crate::message::Warning;
use crate::profile::{LiveClasses, Profile};
use crate::wording::grouped;
use std::ops::Range;

/// Less than 1/`MIN_SHARE` of the bytes of all variables changes no split visibly.
const MIN_SHARE: u64 = 100;

/// Warns about persistent variables that are not always live, if they have much of the memory of
/// `data`, the variables that hold no code. `is_training`: is there a backward pass?
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
    let mut sum = MissedByAll::default();
    for &class in &profile.variables.classes {
        if let Some(Some(missed)) = by_class.get(class as usize) {
            sum.add(missed, classes.steps());
        }
    }
    Some(sentence(bytes, &sum, classes.steps(), is_training))
}

/// The steps at which a variable is not live.
struct MissedSteps {
    count: u32,
    first: u32,
    last: u32,
}

/// The steps at which any of several variables is not live.
#[derive(Default)]
struct MissedByAll {
    variables: usize,
    /// Number of variables that miss the first or the last step of the program.
    at_ends: usize,
    max_count: u32,
    /// The first and the last of all missed steps.
    ends: Option<(u32, u32)>,
}

impl MissedByAll {
    fn add(&mut self, missed: &MissedSteps, steps: u32) {
        self.variables += 1;
        self.at_ends += usize::from(missed.first == 0 || missed.last + 1 == steps);
        self.max_count = self.max_count.max(missed.count);
        let (first, last) = self.ends.unwrap_or((missed.first, missed.last));
        self.ends = Some((first.min(missed.first), last.max(missed.last)));
    }
}

fn sentence(bytes: u64, all: &MissedByAll, steps: u32, is_training: bool) -> Warning {
    let (first, last) = all.ends.unwrap_or_default();
    let (count, bytes) = (all.variables, grouped(bytes));
    let (missed, at_ends) = (all.max_count, all.at_ends);
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

/// Finds the steps at which classes are not live.
struct Missed<'a> {
    classes: &'a LiveClasses,
    /// By step: number of steps before it that copy from or to the host.
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

    /// The steps at which a class is not live, if all of them copy from or to the host and the
    /// class is live at more steps than it misses.
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

    /// The ranges of steps at which a class is not live, ascending.
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
        let mut all = MissedByAll::default();
        let missed = |first, last| MissedSteps {
            count: 2,
            first,
            last,
        };
        for class in [missed(3, 4), missed(8, 9), missed(0, 1)] {
            all.add(&class, 10);
        }
        let text = sentence(12_345, &all, 10, true);
        for part in [
            "3 variables with 12,345 bytes",
            "all 10 steps except at most 2, between step 0 and step 9",
            "2 of them miss the first or the last step",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!sentence(12_345, &all, 10, false).contains("pipeline"));
    }
}
