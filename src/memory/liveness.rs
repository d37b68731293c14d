//! When variables are live: by class, summed over a window, and as sets of steps.

use crate::profile::LiveClasses;

/// When the variables of a class are live. Reading it takes one access to memory, where the ranges
/// of the class take three. Most classes have one half-open step range, or two, one for each pass.
#[derive(Debug, Clone, Copy)]
pub(super) enum ClassLife {
    /// On every step.
    Always,
    Once([(u32, u32); 1]),
    Twice([(u32, u32); 2]),
    /// On more than two ranges, or on none.
    Otherwise,
}

impl ClassLife {
    pub(super) fn of(classes: &LiveClasses, class: u32) -> Self {
        match *classes.ranges(class) {
            _ if classes.is_always_live(class) => Self::Always,
            [range] => Self::Once([range]),
            [first, second] => Self::Twice([first, second]),
            _ => Self::Otherwise,
        }
    }

    /// The half-open step ranges of `class`, which `self` was made of; `None` if it is live on
    /// every step.
    #[inline]
    pub(super) fn ranges<'a>(
        &'a self,
        classes: &'a LiveClasses,
        class: u32,
    ) -> Option<&'a [(u32, u32)]> {
        match self {
            Self::Always => None,
            Self::Once(range) => Some(range),
            Self::Twice(ranges) => Some(ranges),
            Self::Otherwise => Some(classes.ranges(class)),
        }
    }
}

/// Bytes of live variables, summed step by step over one window.
#[derive(Debug, Default)]
pub(super) struct StepSums {
    /// (step, change of the live bytes at this step)
    events: Vec<(u32, i64)>,
    always: i64,
    window: (u32, u32),
}

impl StepSums {
    /// Clears the sums and sets the window (first and last step, both inclusive).
    pub(super) fn restart(&mut self, window: (u32, u32)) {
        self.events.clear();
        self.always = 0;
        self.window = window;
    }

    /// Adds `bytes` that are live on half-open step ranges.
    pub(super) fn add(&mut self, bytes: u32, ranges: &[(u32, u32)]) {
        let bytes = i64::from(bytes);
        let (first, last) = self.window;
        for &(from, to) in ranges {
            if to <= first || from > last {
                continue;
            }
            if from <= first {
                self.always += bytes;
            } else {
                self.events.push((from, bytes));
            }
            if to <= last {
                self.events.push((to, -bytes));
            }
        }
    }

    /// The highest sum in bytes, and the first step that has it.
    pub(super) fn peak(&mut self) -> (u64, u32) {
        self.events.sort_unstable_by_key(|&(step, _)| step);
        let mut live = self.always;
        let mut peak = (live, self.window.0);
        for at in self.events.chunk_by(|a, b| a.0 == b.0) {
            live += at.iter().map(|&(_, change)| change).sum::<i64>();
            if live > peak.0 {
                peak = (live, at[0].0);
            }
        }
        (peak.0 as u64, peak.1)
    }
}

/// A set of steps, one bit each.
#[derive(Debug, Default)]
pub(super) struct StepSet(Vec<u64>);

impl StepSet {
    /// Empties the set and makes room for steps below `count`.
    pub(super) fn restart(&mut self, count: usize) {
        self.0.clear();
        self.0.resize(count.div_ceil(64), 0);
    }

    /// Adds a step.
    ///
    /// # Panics
    /// When `step` is not below the count given to [`StepSet::restart`].
    pub(super) fn add(&mut self, step: u32) {
        self.0[step as usize / 64] |= 1 << (step % 64);
    }
}

/// Calls `visit` with each step that any of `sets` has, ascending, and with whether each set has
/// it. All sets must have room for the same count.
pub(super) fn visit<const N: usize>(sets: [&StepSet; N], mut visit: impl FnMut(u32, [bool; N])) {
    let words = sets.iter().map(|set| set.0.len()).min().unwrap_or(0);
    for index in 0..words {
        let words = sets.map(|set| set.0[index]);
        let mut rest = words.iter().fold(0, |all, word| all | word);
        while rest != 0 {
            let bit = rest.trailing_zeros();
            rest &= rest - 1;
            visit(
                index as u32 * 64 + bit,
                words.map(|word| word >> bit & 1 == 1),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_half_open_and_clipped_to_the_window() {
        let mut liveness = StepSums::default();
        liveness.restart((2, 5));
        liveness.add(100, &[(0, 2), (6, 9)]);
        assert_eq!(liveness.peak(), (0, 2));
        liveness.add(1, &[(0, 3)]);
        liveness.add(2, &[(3, 5)]);
        liveness.add(4, &[(5, 9)]);
        assert_eq!(liveness.peak(), (4, 5));
        liveness.add(8, &[(0, 9)]);
        assert_eq!(liveness.peak(), (12, 5));
    }

    #[test]
    fn steps_come_in_order_with_the_sets_they_are_in() {
        let mut sets = [StepSet::default(), StepSet::default()];
        sets.iter_mut().for_each(|set| set.restart(130));
        [129, 0, 64].iter().for_each(|&step| sets[0].add(step));
        [64, 63].iter().for_each(|&step| sets[1].add(step));
        let mut seen = Vec::new();
        visit([&sets[0], &sets[1]], |step, is_in| seen.push((step, is_in)));
        let (first, second, both) = ([true, false], [false, true], [true, true]);
        assert_eq!(seen, [(0, first), (63, second), (64, both), (129, first)]);
        sets[0].restart(64);
        sets[1].restart(64);
        visit([&sets[0], &sets[1]], |_, _| panic!("nothing is left"));
    }
}
