//! The split with the shortest step (docs/model.md, "Time").
//!
//! A step is as long as its slots, and a slot as long as the busiest IPU in it. In the middle of a
//! step that is the slowest stage; while the pipeline fills and drains, it depends on the order of
//! the stages, so the split with the fastest slowest stage often does not have the shortest step.
//! This search goes from the first stage to the last and gives up prefixes that cannot lead to a
//! better split than the best so far: in each slot, a split takes at least as long as its stages so
//! far, and as the best rest could take.

mod bounds;

use super::Solution;
use super::checked_problem::CheckedProblem;
use super::objectives::Goal;
use super::plan::{Plan, Score};
use crate::time::{Passes, Rate, SlotKind, Slots, StageTimes};
use bounds::{Bounds, WorkOfRest};
use std::cmp::Ordering;
use std::ops::Range;

/// Upper bound on the slots of a step that are evaluated: some tenths of a second. A stage that
/// is tried costs as many as the step has kinds of slots, two to four for each IPU.
pub(super) const MAX_SLOTS: u64 = 20_000_000;
/// Upper bound on the splits, one for each number of stages, whose cuts are moved to find better
/// splits.
const MAX_CLIMBS: usize = 8;
/// With more positions or stages, only splits near those with the fastest slowest stage are tried.
const MAX_POSITIONS: usize = 400;
const MAX_STAGES: usize = 64;

/// Bounds on the shortest step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepProof {
    /// Lower bound on the cycles of a step with the same number of micro-batches, over all splits
    /// that fit. If the split is the best one, the cycles of its step.
    pub at_least: u128,
    /// Was every split tried, or shown to be no better?
    pub is_optimal: bool,
}

/// A split that is allowed, with the time of its step in its score.
#[derive(Debug, Clone)]
struct Candidate {
    plan: Plan,
    score: Score,
    rate: Rate,
}

impl Candidate {
    /// `None` if the split is not allowed.
    fn new(checked: &CheckedProblem<'_>, stages: Vec<Range<usize>>) -> Option<Self> {
        let plan = Plan::new(stages, checked.layers()).filter(|plan| checked.allows(plan))?;
        let score = Score::of(&checked.problem, &plan)?;
        let rate = score.step?.rate();
        Some(Self { plan, score, rate })
    }

    /// The best split as the result; splits that were not tried, if there are any, take at least
    /// `at_least`.
    fn proven(self, at_least: Option<Rate>, is_small: bool) -> Solution {
        let Self { plan, score, rate } = self;
        let bound = at_least.filter(|&bound| bound.compare(rate).is_lt());
        let proof = StepProof {
            at_least: bound.map_or(rate.cycles, |bound| bound.of(rate.micro_batches)),
            is_optimal: bound.is_none() && is_small,
        };
        Solution::unproven(plan, score, Some(proof))
    }

    /// Orders candidates by speed, then by number of stages, then by peak, the best first.
    fn compare(&self, other: &Self) -> Ordering {
        self.score.compare(&other.score, Goal::Time)
    }

    fn is_better_than(&self, other: &Self) -> bool {
        self.compare(other).is_lt()
    }

    /// Moves one cut by one layer at a time, as long as a step of the pipeline takes fewer cycles.
    fn climb(mut self, checked: &CheckedProblem<'_>) -> Self {
        let mut is_better = true;
        while is_better {
            is_better = false;
            for cut in 1..self.score.stages {
                let at = self.plan.stages()[cut].start;
                for moved in [at.wrapping_sub(1), at + 1] {
                    // Stages that a move leaves empty are no split.
                    let mut stages = self.plan.stages().to_vec();
                    (stages[cut - 1].end, stages[cut].start) = (moved, moved);
                    let next = Self::new(checked, stages);
                    if let Some(next) = next.filter(|next| next.is_better_than(&self)) {
                        self = next;
                        is_better = true;
                    }
                }
            }
        }
        self
    }
}

/// The split with the shortest step, found from `start`, a split that is allowed, by evaluating at
/// most `max_slots` slots; `None` without cycles.
pub(super) fn fastest(
    checked: &CheckedProblem<'_>,
    start: &Plan,
    max_slots: u64,
) -> Option<Solution> {
    let times = checked.problem.times?;
    let start = Candidate::new(checked, start.stages().to_vec())?;
    let stages = checked.stages.min(MAX_STAGES).min(checked.layers());
    let bounds = Bounds::of_all(checked, times, stages);
    Some(search(
        checked,
        times,
        bounds,
        start.climb(checked),
        max_slots,
    ))
}

/// The split into exactly `stages` stages with the shortest step, found by evaluating at most
/// `max_slots` slots; `None` if there is no split, and without cycles.
pub(super) fn fastest_of_number(
    checked: &CheckedProblem<'_>,
    stages: usize,
    max_slots: u64,
) -> Option<Solution> {
    let times = checked.problem.times?;
    let bounds = Bounds::new(checked, times, stages)?;
    let start = Candidate::new(checked, bounds.path()?)?;
    Some(search(checked, times, vec![bounds], start, max_slots))
}

/// Searches the splits of all `bounds` for one that is better than `best`.
fn search(
    checked: &CheckedProblem<'_>,
    times: &StageTimes,
    bounds: Vec<Bounds>,
    mut best: Candidate,
    max_slots: u64,
) -> Solution {
    let of_number = |bounds| StageSearch::new(checked, times, bounds, &best);
    let mut searches: Vec<StageSearch<'_>> = bounds.into_iter().filter_map(of_number).collect();
    searches.sort_by(|a, b| a.at_least.compare(b.at_least));
    let may_be_best = |search: &&StageSearch<'_>| search.at_least.compare(best.rate).is_le();
    let paths = searches.iter().take_while(may_be_best);
    let paths = paths.filter_map(|search| Candidate::new(checked, search.bounds.path()?));
    let mut paths: Vec<Candidate> = paths.collect();
    paths.sort_by(Candidate::compare);
    for path in paths.into_iter().take(MAX_CLIMBS) {
        let climbed = path.climb(checked);
        if climbed.is_better_than(&best) {
            best = climbed;
        }
    }
    let is_small = checked.layers() <= MAX_POSITIONS && checked.stages <= MAX_STAGES;
    let mut left = if is_small { max_slots } else { 0 };
    let mut at_least = None;
    for mut search in searches {
        search.best = best;
        search.left = left;
        let is_done = search.run();
        (best, left) = (search.best, search.left);
        if !is_done {
            at_least = at_least.or(Some(search.at_least));
        }
    }
    best.proven(at_least, is_small)
}

/// A search over splits into one number of stages.
struct StageSearch<'a> {
    checked: &'a CheckedProblem<'a>,
    times: &'a StageTimes,
    stages: usize,
    micro_batches: u64,
    kinds: Vec<SlotKind>,
    /// By stage, then by kind of slot.
    rests: Vec<Vec<WorkOfRest>>,
    slots: u128,
    /// Cycles of all stages to update their weights one after the other.
    update: u128,
    bounds: Bounds,
    /// The lower bound on a step.
    at_least: Rate,
    best: Candidate,
    /// The stages so far.
    placed: Vec<Range<usize>>,
    /// By number of stages so far: their costs.
    taken: Vec<CostsSoFar>,
    /// Number of slots that may still be evaluated.
    left: u64,
}

/// Costs of the stages so far.
#[derive(Debug, Clone, Default)]
struct CostsSoFar {
    /// By kind of slot: the cycles of the busiest IPU.
    busiest: Vec<u128>,
    /// Most bytes that an IPU sends or receives, in slots with an even and with an odd number.
    sent: [u128; 2],
    /// The longest update of an IPU.
    update: u128,
    peak: u64,
}

impl<'a> StageSearch<'a> {
    /// A search over the splits of `bounds`; `None` without cycles.
    fn new(
        checked: &'a CheckedProblem<'a>,
        times: &'a StageTimes,
        bounds: Bounds,
        best: &Candidate,
    ) -> Option<Self> {
        let stages = bounds.stages();
        let micro_batches = times.micro_batches(stages);
        let slots = Slots::new(times.order(), times.pipeline_depth(stages), micro_batches);
        let of_rest = |stage: usize| {
            let kinds = slots.kinds.iter();
            kinds.map(|kind| WorkOfRest::new(kind, stage)).collect()
        };
        let whole = times.stage(&(0..checked.layers()), 0)?;
        let at_first = CostsSoFar {
            busiest: vec![0; slots.kinds.len()],
            ..CostsSoFar::default()
        };
        let mut search = Self {
            checked,
            times,
            stages,
            placed: Vec::new(),
            taken: vec![at_first; stages + 1],
            micro_batches,
            slots: slots.count(),
            rests: (0..=stages).map(of_rest).collect(),
            kinds: slots.kinds,
            update: whole.update,
            bounds,
            at_least: Rate {
                cycles: 0,
                micro_batches,
            },
            best: best.clone(),
            left: 0,
        };
        search.at_least.cycles = search.bound();
        Some(search)
    }

    /// Tries all splits with the current prefix that may be better than the best. Returns whether
    /// it finished.
    fn run(&mut self) -> bool {
        if !self.may_be_better() {
            return true;
        }
        let (stage, start) = (self.placed.len(), self.end());
        if stage == self.stages {
            self.take();
            return true;
        }
        for end in self.ends(stage, start) {
            let Some(peak) = bounds::peak(self.checked, (stage, self.stages), &(start..end)) else {
                continue;
            };
            if !self.bounds.leads_on(stage + 1, end) {
                continue;
            }
            let Some(left) = self.left.checked_sub(self.kinds.len() as u64) else {
                return false;
            };
            self.left = left;
            if self.begin(start..end, peak).is_none() {
                continue;
            }
            let is_done = self.run();
            self.placed.pop();
            if !is_done {
                return false;
            }
        }
        true
    }

    /// Where a stage that starts here may end.
    fn ends(&self, stage: usize, start: usize) -> Range<usize> {
        let layers = self.checked.layers();
        match self.stages - 1 - stage {
            0 => layers..layers + 1,
            after => start + 1..(layers + 1).saturating_sub(after),
        }
    }

    /// Adds the range of positions (end exclusive) of the next stage, with the bytes of its fullest
    /// tile; `None` if its cycles are unknown.
    fn begin(&mut self, range: Range<usize>, peak: u64) -> Option<()> {
        let stage = self.placed.len();
        let (parts, out) = self.times.stage_and_out(&range, self.stages - 1 - stage)?;
        let (taken, left) = self.taken.split_at_mut(stage + 1);
        let (before, next) = (taken.last()?, left.first_mut()?);
        let slots = self.kinds.iter().zip(&before.busiest);
        for (busiest, (kind, &before)) in next.busiest.iter_mut().zip(slots) {
            let of_out = |out: Passes| {
                let last = kind.forward.len() - 1;
                out.active(kind.forward[last], kind.backward[last])
            };
            let active = parts.active(kind.forward[stage], kind.backward[stage]);
            *busiest = before.max(active + out.map_or(0, of_out));
        }
        next.sent = self.times.with_copies_of(before.sent, (stage, &range));
        let update = parts.update + out.map_or(0, |out| out.update);
        next.update = before.update.max(update);
        next.peak = before.peak.max(peak);
        self.placed.push(range);
        Some(())
    }

    /// Costs of the stages so far.
    fn so_far(&self) -> &CostsSoFar {
        &self.taken[self.placed.len()]
    }

    /// The position after the stages so far.
    fn end(&self) -> usize {
        self.placed.last().map_or(0, |last| last.end)
    }

    /// Lower bound on the cycles of a step with the current prefix.
    fn bound(&self) -> u128 {
        let (stage, placed) = (self.placed.len(), self.so_far());
        let rest = self.bounds.rest(stage, self.end());
        let slots = self.kinds.iter().zip(&self.rests[stage]);
        let slots = slots.zip(&placed.busiest).map(|((kind, &work), &busiest)| {
            let slot = rest.map_or(busiest, |rest| busiest.max(rest.of(work)));
            slot.saturating_mul(kind.count.into())
        });
        let work = slots.fold(0u128, u128::saturating_add);
        let of_step = (self.slots, self.micro_batches);
        let copies = self.times.copy_cycles(placed.sent, of_step).unwrap_or(0);
        let update = if self.times.updates_side_by_side() {
            placed.update
        } else {
            self.update
        };
        work.saturating_add(copies).saturating_add(update)
    }

    fn may_be_better(&self) -> bool {
        let rate = Rate {
            cycles: self.bound(),
            micro_batches: self.micro_batches,
        };
        let best = &self.best;
        let by_size = (self.stages, self.so_far().peak).cmp(&(best.score.stages, best.score.peak));
        rate.compare(best.rate).then(by_size).is_lt()
    }

    /// Takes the stages so far, which are a whole split, if they are better than the best.
    fn take(&mut self) {
        let found = Candidate::new(self.checked, self.placed.clone());
        if let Some(found) = found.filter(|found| found.is_better_than(&self.best)) {
            self.best = found;
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
