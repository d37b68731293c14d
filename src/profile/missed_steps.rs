//! Finds the steps that classes of variables miss which are otherwise live in the whole program, as
//! large weights are (docs/model.md, "Variables").

use super::{LiveClasses, Programs, Step};
use std::iter::once;
use std::ops::Range;

/// The steps at which a variable is not live: their number, the first and the last.
#[derive(Debug)]
pub(crate) struct MissedSteps {
    pub count: u32,
    pub first: u32,
    pub last: u32,
}

impl MissedSteps {
    /// Returns the steps that each class misses if it is nearly always live: at most steps, and at
    /// all that compute, or move data on the IPU. `None` for all other classes, and for those that
    /// miss no step.
    pub fn of_classes(
        classes: &LiveClasses,
        steps: &[Step],
        programs: &Programs,
    ) -> Vec<Option<Self>> {
        let mut idle = 0;
        let idle_before = steps.iter().map(|step| {
            idle += u32::from(programs.all[step.program as usize].is_idle());
            idle
        });
        let idle_before: Vec<u32> = once(0).chain(idle_before).collect();
        (0..classes.len() as u32)
            .map(|class| Self::of(gaps(classes, class).collect(), &idle_before))
            .collect()
    }

    /// Returns the steps in `gaps`, ascending, if all are idle and most steps are in none.
    /// `idle_before` has, by step, the number of idle steps before it, with one more entry for the
    /// end.
    fn of(gaps: Vec<Range<u32>>, idle_before: &[u32]) -> Option<Self> {
        let (first, last) = (gaps.first()?.start, gaps.last()?.end - 1);
        let count: u32 = gaps.iter().map(|gap| gap.end - gap.start).sum();
        let idle = |step: u32| idle_before[step as usize];
        let idle: u32 = gaps.iter().map(|gap| idle(gap.end) - idle(gap.start)).sum();
        (idle == count && 2 * (count as usize) < idle_before.len() - 1).then_some(Self {
            count,
            first,
            last,
        })
    }
}

/// Iterates over the ranges of steps (ends exclusive) at which a class is not live, ascending.
fn gaps(classes: &LiveClasses, class: u32) -> impl Iterator<Item = Range<u32>> {
    let ranges = classes.ranges(class).iter();
    let ends = once(0).chain(ranges.clone().map(|range| range.1));
    ends.zip(ranges.map(|range| range.0).chain(once(classes.steps())))
        .map(|(end, begin)| end..begin)
        .filter(|gap| !gap.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten steps: the first two, the fifth and the last two are idle.
    fn missed(ranges: &[(u32, u32)]) -> Option<(u32, u32, u32)> {
        let spans = ranges.iter().map(|&(from, to)| (0, from, to));
        let classes = LiveClasses::new(vec![false], spans.collect(), 10);
        let idle_before = [0, 1, 2, 2, 2, 3, 3, 3, 3, 4, 5];
        let found = MissedSteps::of(gaps(&classes, 0).collect(), &idle_before)?;
        Some((found.count, found.first, found.last))
    }

    #[test]
    fn only_idle_steps_may_be_missed_and_fewer_than_not() {
        assert_eq!(missed(&[(2, 10)]), Some((2, 0, 1)));
        assert_eq!(missed(&[(0, 4), (5, 9)]), Some((2, 4, 9)));
        assert_eq!(missed(&[(0, 10)]), None, "it misses nothing");
        assert_eq!(missed(&[(3, 10)]), None, "step 2 is not idle");
        assert_eq!(missed(&[(0, 5), (6, 10)]), None, "nor is step 5");
        assert_eq!(missed(&[]), None, "it is never live");
        assert_eq!(missed(&[(2, 4), (5, 8)]), None, "it misses as many as not");
    }
}
