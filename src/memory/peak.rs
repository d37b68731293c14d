//! The highest sum of live bytes within a window.

/// Bytes that are live on step ranges, summed step by step over one window.
#[derive(Debug, Default)]
pub(super) struct StepSums {
    /// (step, bytes that begin or end to be live there)
    events: Vec<(u32, i64)>,
    always: i64,
    window: (u32, u32),
}

impl StepSums {
    /// Forgets everything and looks at the steps of `window` (both inclusive).
    pub(super) fn restart(&mut self, window: (u32, u32)) {
        self.events.clear();
        self.always = 0;
        self.window = window;
    }

    /// Adds `bytes` that are live on the half-open step ranges.
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

    /// The highest sum and the first step that has it.
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
}
