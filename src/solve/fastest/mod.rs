//! Finds the split with the shortest step of the pipeline (docs/model.md, "Time").
//!
//! A step consists of slots (intervals in which each IPU works on the passes of its stage), and a
//! slot takes as long as its busiest IPU. In the middle of a step, the slowest stage is the
//! busiest. While the pipeline fills and drains, only some stages have work, so the order of the
//! stages matters. Hence the split whose slowest stage takes the least time often does not have the
//! shortest step.
//!
//! For each number of stages, this search places stages from the first to the last. The stages
//! placed so far are a *beginning* of a split. The search extends all beginnings by one stage at a
//! time, and gives up a beginning for one of two reasons:
//!
//! * No split with this beginning can have a shorter step than the best split found so far. This is
//!   proven by a lower bound on each slot: the slot takes at least as long as the busiest placed
//!   stage, and at least as long as the lower bound on the stages that are not placed yet.
//! * Another beginning ends at the same position, and takes no more time for slots, copies and
//!   weight updates. So whichever stages follow, the split with the other beginning is no worse.

mod beginning;
mod bounds;

use super::{
    checked_problem::CheckedProblem,
    objectives::Goal,
    plan::{Plan, Score, Solution},
    problem::CompiledStage,
};
use crate::time::{Rate, Slots, StageTimes};
use beginning::{Beginning, Level, NextStage, without_beaten};
use bounds::{RestsByStages, rests};
use std::{collections::BTreeMap, slice, sync::Arc};

/// Maximum number of times that the search adds a stage to a beginning of a split (its first
/// stages), over all numbers of stages. This number of additions takes some tenths of a second.
pub const MAX_TRIES: u64 = 50_000;
/// Before the full search, a short one for each number of stages adds a stage at most [`MAX_TRIES`]
/// / [`FIRST_SEARCH`] times. It finds a fast split soon. Compared with this split, the full search
/// can rule out more splits as too slow.
const FIRST_SEARCH: u64 = 25;
/// Maximum number of stages of the splits that the search tries; there are too many splits into
/// more stages. If more stages are allowed, the search does not claim that its split is the
/// fastest.
const MAX_STAGES: usize = 64;

/// A split that is within the limits and obeys the constraints, with the time of its step.
struct TimedSplit {
    plan: Plan,
    score: Score,
    rate: Rate,
}

impl TimedSplit {
    /// Makes the split into `stages`, with the time of its step; `None` if the split is over a
    /// limit or breaks a constraint, or if a profile has no cycle counts.
    fn new(
        checked: &CheckedProblem<'_>,
        stages: impl IntoIterator<Item = CompiledStage>,
    ) -> Option<Self> {
        let plan = Plan::new(stages, checked.layers())?;
        let score = checked.score(&plan)?;
        Some(Self {
            plan,
            score,
            rate: score.step?.rate(1),
        })
    }

    /// Returns whether this split may be worse than another, of which only lower bounds are known:
    /// `rate`, the cycles of its step per micro-batch, and `peak`, the bytes on its fullest tile.
    /// The other split has `stages` stages.
    fn may_lose_to(&self, rate: Rate, stages: usize, peak: u64) -> bool {
        let by_size = (stages, peak).cmp(&(self.score.stages, self.score.peak));
        rate.compare(self.rate).then(by_size).is_lt()
    }
}

/// Finds the split, into any number of stages, with the shortest step per micro-batch. `start` is a
/// first split to compare others with. The search adds a stage to a beginning of a split (its first
/// stages) at most `max_tries` times; a shorter search for each number of stages goes before
/// ([`FIRST_SEARCH`]). [`Solution::is_shortest`] is false if the search cannot rule out a faster
/// split. Returns `None` without cycle counts.
pub fn fastest(checked: &CheckedProblem<'_>, start: &Plan, max_tries: u64) -> Option<Solution> {
    let times: Vec<&StageTimes> = checked
        .problem
        .by_profile
        .iter()
        .filter_map(|own| own.times.as_deref())
        .collect();
    let mut best = TimedSplit::new(checked, start.compiled())?;
    let most = checked.stages.min(MAX_STAGES);
    // If it does not matter which IPU runs a stage, lower bounds on the cycles of the last stages
    // of a split do not depend on the number of all stages. So all searches share one table.
    let shared = (!checked.is_numbered()).then(|| Arc::new(rests(checked, most)));
    let mut searches: Vec<StageSearch<'_>> = (1..=most)
        .filter_map(|stages| {
            let own = || rests(checked, stages).into();
            StageSearch::new(checked, &times, stages, shared.clone().unwrap_or_else(own))
        })
        .collect();
    searches.sort_by(|a, b| a.at_least.compare(b.at_least));
    searches.retain(|search| {
        let mut few = max_tries / FIRST_SEARCH;
        search.run(&mut best, &mut few).is_some()
    });
    let mut left = max_tries;
    let mut may_be_faster = checked.stages > MAX_STAGES;
    for search in searches {
        let given_up = search.run(&mut best, &mut left);
        may_be_faster |= given_up.is_some_and(|least| least.compare(best.rate).is_lt());
    }
    Some(Solution {
        is_shortest: !may_be_faster,
        ..Solution::unproven(best.plan, best.score)
    })
}

/// A search for the fastest split into a fixed number of stages, which places one stage after the
/// other, beginning with stage 0.
struct StageSearch<'a> {
    checked: &'a CheckedProblem<'a>,
    /// One entry per profile: the cycles of stages that are compiled as in this profile.
    times: &'a [&'a StageTimes],
    stages: usize,
    /// Lower bound on the cycles of the weight updates of all stages in a step, if one IPU updates
    /// after the other; 0 if all IPUs update at the same time.
    update: u128,
    /// Lower bounds on the cycles of the last stages of a split, by the number of these stages.
    rests: Arc<RestsByStages>,
    /// Lower bound on the step time of every split into `stages` stages: a lower bound on the
    /// cycles that the slowest stage takes for one micro-batch, times the number of micro-batches.
    at_least: Rate,
}

impl<'a> StageSearch<'a> {
    /// Prepares the search for splits into `stages` stages; `None` if there is no such split within
    /// limits and constraints.
    fn new(
        checked: &'a CheckedProblem<'a>,
        times: &'a [&'a StageTimes],
        stages: usize,
        rests: Arc<RestsByStages>,
    ) -> Option<Self> {
        let first = times.first()?;
        let micro_batches = first.micro_batches(stages);
        let slowest = rests[stages][0]?.busiest[first.all_passes()];
        Some(Self {
            checked,
            times,
            stages,
            update: if first.updates_side_by_side() {
                0
            } else {
                StageTimes::least_update(times)?
            },
            at_least: Rate {
                cycles: u128::from(slowest) * u128::from(micro_batches),
                micro_batches,
            },
            rests,
        })
    }

    /// Searches for splits into `self.stages` stages that are better than `best`, and replaces
    /// `best` by each one found. Adds a stage to a beginning of a split (its first stages) at most
    /// `left` times, and subtracts the additions from `left`. Returns `None` if every split was
    /// tried or ruled out. Otherwise, returns a lower bound on the step time of the remaining
    /// splits.
    fn run(&self, best: &mut TimedSplit, left: &mut u64) -> Option<Rate> {
        if !best.may_lose_to(self.at_least, self.stages, 0) {
            return None;
        }
        let mut given_up = None::<Rate>;
        let of_last = self.times.iter().map(|times| times.sent_at(0)[0]);
        let mut beginnings = vec![Beginning {
            sends: of_last.min().unwrap_or(0),
            ..Beginning::default()
        }];
        let first = self.times[0];
        let depth = first.pipeline_depth(self.stages);
        let slots = Slots::new(first.order(), depth, Some(self.at_least.micro_batches));
        for level in Level::of_all(&slots, self.stages) {
            if beginnings.is_empty() {
                break;
            }
            let share = *left / (self.stages - level.stage) as u64;
            let mut unused = share;
            let (found, least) = self.extended(&beginnings, &level, best, &mut unused);
            *left -= share - unused;
            given_up = given_up
                .into_iter()
                .chain(least)
                .min_by(|a, b| a.compare(*b));
            beginnings = without_beaten(found);
        }
        for complete in beginnings {
            if self.may_beat(best, &complete)
                && let Some(found) = TimedSplit::new(self.checked, complete.stages)
                && found.score.compare(&best.score, Goal::Time).is_lt()
            {
                *best = found;
            }
        }
        given_up
    }

    fn may_beat(&self, best: &TimedSplit, beginning: &Beginning) -> bool {
        best.may_lose_to(self.rate(beginning), self.stages, beginning.peak)
    }

    /// Returns the lower bound on the step time, per micro-batch, of any split whose first stages
    /// are those of `beginning`.
    fn rate(&self, beginning: &Beginning) -> Rate {
        Rate {
            cycles: beginning.at_least.max(self.at_least.cycles),
            ..self.at_least
        }
    }

    /// Adds to each of `beginnings` (the first stages of splits) each next stage that may lead to a
    /// better split than `best`, beginning with the lowest lower bounds. Adds a stage at most
    /// `left` times, and subtracts the number of additions from `left`. If some beginnings are left
    /// out for this reason, also returns a lower bound on the step time, per micro-batch, of all
    /// splits with these beginnings.
    fn extended(
        &self,
        beginnings: &[Beginning],
        level: &Level,
        best: &TimedSplit,
        left: &mut u64,
    ) -> (Vec<Beginning>, Option<Rate>) {
        let mut found = Vec::new();
        let mut next = BTreeMap::new();
        for beginning in beginnings {
            let start = beginning.end();
            let next = next
                .entry(start)
                .or_insert_with(|| self.next_stages(level, start, best));
            let Some(less) = left.checked_sub(next.len() as u64) else {
                return (found, Some(self.rate(beginning)));
            };
            *left = less;
            found.extend(
                next.iter()
                    .filter_map(|next| self.extend(level, beginning, next, best)),
            );
        }
        (found, None)
    }

    /// Returns the stages that may start at position `start`, where a beginning of a split (its
    /// first stages) ends, with their costs. Leaves out stages that are too slow for a better split
    /// than `best`.
    fn next_stages(&self, level: &Level, start: usize, best: &TimedSplit) -> Vec<NextStage> {
        let (layers, after) = (self.checked.layers(), self.stages - 1 - level.stage);
        // Leave at least one position (In, a layer or Out) for each later stage.
        let ends = match after {
            0 => layers..layers + 1,
            _ => start + 1..(layers + 1).saturating_sub(after),
        };
        let stages = self.checked.problem.stages(start, ends);
        let next = |stage: CompiledStage| {
            let peak = self.checked.peak_at(level.stage, self.stages, &stage)?;
            let rest = self.rests[after][stage.positions.end]?;
            let times = self.times[stage.profile];
            let (own, out) = times.stage_and_out(&stage.positions, after)?;
            let out = out.unwrap_or_default();
            let active = NextStage::active(own, out);
            let rate = Rate {
                cycles: u128::from(active[times.all_passes()])
                    * u128::from(self.at_least.micro_batches),
                ..self.at_least
            };
            let may_win = best.may_lose_to(rate, self.stages, peak);
            may_win.then_some(NextStage {
                stage,
                peak,
                rest,
                active,
                update: own.update + out.update,
            })
        };
        stages.filter_map(next).collect()
    }

    /// Adds the stage `next` to `beginning` (the first stages of a split). Returns `None` if no
    /// split with the longer beginning can be better than `best`.
    fn extend(
        &self,
        level: &Level,
        beginning: &Beginning,
        next: &NextStage,
        best: &TimedSplit,
    ) -> Option<Beginning> {
        let [open, closed] = level.cycles(&beginning.busiest, next);
        let closed = beginning.closed.saturating_add(closed);
        let first = self.times[0];
        let update = if first.updates_side_by_side() {
            beginning.update.max(next.update)
        } else {
            beginning.update + next.update
        };
        let CompiledStage { positions, profile } = &next.stage;
        let (times, placed) = (self.times[*profile], (level.stage, positions));
        let before = beginning.sent.get(*profile).copied().unwrap_or_default();
        // The most bytes that any IPU copies in a slot (an interval of the step) once `next` is
        // placed ([`Beginning::sent`]), with one entry per profile that the stage after `next` may
        // have.
        let sent = self.times.iter().map(|later| {
            let [_, returns] = later.sent_at(positions.end);
            times.with_copies(before, placed, [beginning.sends, returns])
        });
        let slots = (level.slots, self.at_least.micro_batches);
        let copies = sent
            .clone()
            .filter_map(|sent| first.copy_cycles(sent, slots))
            .min();
        let sum = [closed, open, copies.unwrap_or(0), update.max(self.update)];
        let mut extended = Beginning {
            rank: beginning.rank,
            at_least: sum.into_iter().fold(0, u128::saturating_add),
            closed,
            sends: times.sent_at(positions.end)[0],
            update,
            peak: beginning.peak.max(next.peak),
            ..Beginning::default()
        };
        self.may_beat(best, &extended).then(|| {
            extended.stages = [&beginning.stages[..], slice::from_ref(&next.stage)].concat();
            extended.sent = sent.collect();
            extended.busiest = level.busiest(&beginning.busiest, next).collect();
            extended
        })
    }
}

#[cfg(test)]
pub(super) mod tests;
