//! Improves a split by moving its cuts.

use super::Candidate;
use crate::solve::checked_problem::CheckedProblem;

/// Moves one cut at a time, as long as the split gets better.
pub(super) fn climb(checked: &CheckedProblem<'_>, start: Candidate) -> Candidate {
    let mut best = start;
    let mut is_better = true;
    while is_better {
        is_better = false;
        for cut in 1..best.stages.len() {
            let at = best.stages[cut].start;
            for moved in [at.wrapping_sub(1), at + 1] {
                let next = with_cut(&best, cut, moved);
                let next = next.and_then(|stages| Candidate::new(checked, stages));
                if let Some(next) = next.filter(|next| next.is_better_than(&best)) {
                    best = next;
                    is_better = true;
                }
            }
        }
    }
    best
}

/// The stages with one cut moved; `None` if a stage would be empty.
fn with_cut(split: &Candidate, cut: usize, at: usize) -> Option<Vec<std::ops::Range<usize>>> {
    let mut stages = split.stages.clone();
    stages[cut - 1].end = at;
    stages[cut].start = at;
    let sides = &stages[cut - 1..=cut];
    let has_empty = sides.iter().any(|side| side.start >= side.end);
    (!has_empty).then_some(stages)
}
