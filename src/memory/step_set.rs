//! Sets of steps that are quick to fill and to go through in order.

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
    /// When there is no room for it.
    pub(super) fn add(&mut self, step: u32) {
        self.0[step as usize / 64] |= 1 << (step % 64);
    }
}

/// Calls `visit` with each step that is in one of `sets`, in ascending order,
/// and with which of them it is in. The sets have the same room.
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
