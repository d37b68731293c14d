//! Memory of every other split, for the page.

use super::Inputs;
use super::answer::broken;
use crate::report::{BestSplit, CheckedConstraint, WhatIf};
use crate::search::{Answer, SearchResult};
use crate::solve::{Constraint, Solution};
use crate::time::StageTimes;
use std::ops::Range;

/// Upper bound on numbers of bytes of ranges in a report: some 1.2 MB of JSON.
const MAX_NUMBERS: usize = 150_000;

impl Inputs<'_> {
    /// Returns the memory of other splits, if it was requested and there is a split to begin with.
    /// `None` if the bytes of any range are missing, since some splits would then be wrong.
    pub(super) fn what_if(&self, found: &SearchResult<'_>) -> Option<WhatIf> {
        let question = &found.costs.question;
        let costs = found.near.as_ref().unwrap_or(&found.costs.ranges);
        let split = ends(&found.shown.stages);
        let positions = costs.layers() as u32;
        if !question.request.what_if
            || split.last() != Some(&positions)
            || split.len() > costs.stages()
        {
            return None;
        }
        let best = best(found);
        let highest = best.iter().map(|best| best.ipus as usize).max();
        let max_stages = highest
            .unwrap_or(found.costs.ipus)
            .max(split.len())
            .min(costs.stages());
        let without_numbers = WhatIf {
            max_stages: max_stages as u32,
            by_stages_after: costs.is_by_depth(),
            best,
            constraints: question.constraints.iter().map(checked).collect(),
            cycles: found.costs.times.as_ref().map(StageTimes::by_position),
            ..WhatIf::default()
        };
        let cut_bytes_of = |at: u32| {
            let place = (at as usize).checked_sub(1)?;
            question.cut_bytes.get(place).copied()
        };
        let has_all_from = |&at: &u32| costs.reach(at as usize) == costs.layers();
        let starts = (0..positions).filter(has_all_from);
        let all: Vec<u32> = starts.chain([positions]).collect();
        without_numbers.between(
            &all,
            &split,
            MAX_NUMBERS,
            |start, end, after| costs.peak(start as usize..end as usize, after),
            cut_bytes_of,
        )
    }
}

/// Returns the end position of each stage, exclusive.
fn ends(stages: &[Range<usize>]) -> Vec<u32> {
    stages.iter().map(|stage| stage.end as u32).collect()
}

/// Returns the best splits for other numbers of IPUs, or else the best one of the run.
fn best(found: &SearchResult<'_>) -> Vec<BestSplit> {
    let one = |ipus: usize, fits, best: &Solution| BestSplit {
        ipus: ipus as u32,
        fits,
        ends: ends(best.plan.stages()),
    };
    let rows = found
        .sweep
        .iter()
        .map(|row| one(row.ipus, row.fits, &row.solution));
    let fits = matches!(found.answer, Answer::Best { .. });
    let is_best = found.sweep.is_empty() && found.costs.request().given.is_none();
    let of_run = found.answer.best().filter(|_| is_best);
    let of_run = of_run.map(|best| one(found.costs.ipus, fits, best));
    rows.chain(of_run).collect()
}

fn checked(constraint: &Constraint) -> CheckedConstraint {
    CheckedConstraint {
        name: broken(constraint),
        rule: constraint.rule,
    }
}
