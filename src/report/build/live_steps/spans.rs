//! Chosen steps as indices of a list, and sums of bytes over these indices.

/// Converts half-open `ranges` of steps, ascending and disjoint, to half-open ranges of indices in
/// `steps`, which is ascending. Ranges are merged if no step of `steps` is between them, and
/// dropped if they contain none.
pub fn spans(ranges: &[(u32, u32)], steps: &[u32]) -> Vec<(usize, usize)> {
    let place = |step: u32| steps.partition_point(|&chosen| chosen < step);
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for &(from, to) in ranges {
        let (from, to) = (place(from), place(to));
        match spans.last_mut() {
            _ if from >= to => {}
            Some(last) if last.1 >= from => last.1 = to,
            _ => spans.push((from, to)),
        }
    }
    spans
}

/// A number for each chosen step, such as live bytes, stored as the differences between consecutive
/// steps, so that adding to a range of steps changes only two entries. Has one entry more than
/// there are steps.
#[derive(Clone)]
pub struct BytesBySteps(Vec<u64>);

impl BytesBySteps {
    pub fn new(steps: usize) -> Self {
        Self(vec![0; steps + 1])
    }

    /// Adds `number` at each index of the half-open `spans`, which are ranges of indices in the
    /// list of chosen steps. Differences may wrap around, but the running sums are exact.
    pub fn add(&mut self, spans: &[(usize, usize)], number: u64) {
        for &(from, to) in spans {
            self.0[from] = self.0[from].wrapping_add(number);
            self.0[to] = self.0[to].wrapping_sub(number);
        }
    }

    pub fn by_step(mut self) -> Vec<u64> {
        self.0.pop();
        self.0
            .into_iter()
            .scan(0u64, |sum, change| {
                *sum = sum.wrapping_add(change);
                Some(*sum)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_steps_become_ranges_of_chosen_steps() {
        let steps = [2, 5, 6, 9];
        assert_eq!(spans(&[(0, 2), (3, 5), (7, 9), (10, 99)], &steps), []);
        assert_eq!(spans(&[(0, 3), (6, 7)], &steps), [(0, 1), (2, 3)]);
        // The class is dead at step 3, which is not a chosen step.
        assert_eq!(spans(&[(2, 3), (4, 6)], &steps), [(0, 2)]);
        assert_eq!(spans(&[(0, 100)], &steps), [(0, 4)]);
    }

    #[test]
    fn sums_are_by_step() {
        let mut sums = BytesBySteps::new(4);
        sums.add(&[(0, 2), (3, 4)], 7);
        sums.add(&[(1, 4)], 10);
        assert_eq!(sums.by_step(), [7, 17, 10, 17]);
    }
}
