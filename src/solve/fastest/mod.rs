//! Finds the split with the shortest step of the pipeline (docs/model.md, "Time").
//!
//! A step consists of slots, and a slot takes as long as the busiest IPU in it. In the middle of a
//! step the slowest stage is the busiest; while the pipeline fills and drains, the order of the
//! stages matters, so the split with the fastest slowest stage often does not have the shortest
//! step. This search places stages from the first to the last. It gives up the stages placed so far
//! if no split that begins with them can have a shorter step than the best split found so far. The
//! proof is a lower bound on each slot: the slot takes at least as long as the busiest placed
//! stage, and at least as long as the lower bound on the stages that are not placed yet.

mod bounds;

use super::checked_problem::CheckedProblem;
use super::objectives::Goal;
use super::plan::{Plan, Score, Solution};
use super::problem::CompiledStage;
use crate::time::{Rate, SlotKind, Slots, StageTimes};
use bounds::{Bounds, RestActivity};

/// Maximum number of slots that a search evaluates, which takes some tenths of a second. A slot is
/// an interval of a step in which each IPU works on one pass of its stage. Slots with the same
/// passes are one kind, which is evaluated once for each stage that the search tries.
pub(super) const MAX_SLOTS: u64 = 20_000_000;
/// Maximum number of splits, each with another number of stages, that [`TimedSplit::climb`]
/// improves before the search, to begin with a fast split.
const MAX_CLIMBS: usize = 8;
/// With more positions than this number, or more stages than `MAX_STAGES`, there are too many
/// splits to try. The search then only tries splits near the ones whose slowest stage is the
/// fastest.
const MAX_POSITIONS: usize = 400;
const MAX_STAGES: usize = 64;

/// A split that is within the limits and obeys the constraints, with the time of its step.
struct TimedSplit {
    plan: Plan,
    score: Score,
    rate: Rate,
}

impl TimedSplit {
    /// Computes the time of the split into `stages`; `None` if the split is over a limit or breaks
    /// a constraint, or if a profile has no cycle counts.
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

    /// Returns whether the split has a shorter step per micro-batch than `other` or, if the steps
    /// are equally long, fewer stages or a lower peak.
    fn is_better_than(&self, other: &Self) -> bool {
        self.score.compare(&other.score, Goal::Time).is_lt()
    }

    /// Improves the split as long as moving one cut by one position, or taking another profile for
    /// one stage, makes it better.
    fn climb(mut self, checked: &CheckedProblem<'_>) -> Self {
        let mut is_better = true;
        while is_better {
            is_better = false;
            for number in 0..self.score.stages {
                let at = self.plan.stages()[number].start;
                let moves = [at.wrapping_sub(1), at + 1].map(Move::Cut);
                let profiles = checked.problem.profiles().map(Move::Profile);
                for change in moves.into_iter().filter(|_| number > 0).chain(profiles) {
                    let mut stages: Vec<CompiledStage> = self.plan.compiled().collect();
                    match change {
                        Move::Cut(at) => {
                            stages[number - 1].positions.end = at;
                            stages[number].positions.start = at;
                        }
                        Move::Profile(profile) => stages[number].profile = profile,
                    }
                    if let Some(next) = Self::new(checked, stages)
                        && next.is_better_than(&self)
                    {
                        (self, is_better) = (next, true);
                    }
                }
            }
        }
        self
    }
}

enum Move {
    /// Move the cut before a stage to the position (In, layer or Out) in this field.
    Cut(usize),
    /// Take the costs of a stage from the profile with the index in this field.
    Profile(usize),
}

/// Finds the split, into any number of stages, with the shortest step per micro-batch. The search
/// begins with the split `start`. To bound its time, it evaluates at most `max_slots` slots
/// (intervals of a step in which each IPU works on a pass of its stage). Returns `None` without
/// cycle counts.
pub(super) fn fastest(
    checked: &CheckedProblem<'_>,
    start: &Plan,
    max_slots: u64,
) -> Option<Solution> {
    let profiles = checked.problem.by_profile.iter();
    let times: Vec<&StageTimes> = profiles.filter_map(|own| own.times.as_deref()).collect();
    let start = TimedSplit::new(checked, start.compiled())?.climb(checked);
    let bounds = Bounds::of_all(checked, checked.stages.min(MAX_STAGES));
    Some(search(checked, &times, bounds, start, max_slots))
}

/// Returns the fastest split among `best` and all splits into a number of stages that has an entry
/// in `bounds`. Evaluates at most `max_slots` slots (intervals of a step in which each IPU works on
/// a pass of its stage). If they are too few to try all these splits, [`Solution::is_shortest`]
/// tells that a faster split may exist.
fn search(
    checked: &CheckedProblem<'_>,
    times: &[&StageTimes],
    bounds: Vec<Bounds>,
    mut best: TimedSplit,
    max_slots: u64,
) -> Solution {
    let mut searches: Vec<StageSearch<'_>> = bounds
        .into_iter()
        .filter_map(|bounds| StageSearch::new(checked, times, bounds))
        .collect();
    searches.sort_by(|a, b| a.at_least.compare(b.at_least));
    let mut paths: Vec<TimedSplit> = searches
        .iter()
        .take_while(|search| search.at_least.compare(best.rate).is_le())
        .filter_map(|search| TimedSplit::new(checked, search.bounds.path()?))
        .collect();
    paths.sort_by(|a, b| a.score.compare(&b.score, Goal::Time));
    for path in paths.into_iter().take(MAX_CLIMBS) {
        let climbed = path.climb(checked);
        if climbed.is_better_than(&best) {
            best = climbed;
        }
    }
    let is_bounded = checked.stages <= MAX_STAGES;
    let is_small = is_bounded && checked.layers() <= MAX_POSITIONS;
    let mut left = if is_small { max_slots } else { 0 };
    let mut least_left = None;
    for mut search in searches {
        if !search.run(&mut best, &mut left) {
            least_left = least_left.or(Some(search.at_least));
        }
    }
    let may_be_faster = least_left.is_some_and(|least| least.compare(best.rate).is_lt());
    Solution {
        is_shortest: Some(is_bounded && !may_be_faster),
        ..Solution::unproven(best.plan, best.score)
    }
}

/// A search for the fastest split into a fixed number of stages, which places one stage after the
/// other, beginning with stage 0.
struct StageSearch<'a> {
    checked: &'a CheckedProblem<'a>,
    /// One entry per profile: the cycles of stages when they are compiled as in this profile.
    times: &'a [&'a StageTimes],
    stages: usize,
    kinds: Vec<SlotKind>,
    /// For each number of stages that the search has placed (from 0) and each kind of slot: the
    /// passes that the later stages, which are not placed yet, run in a slot of this kind. Slots in
    /// which the same stages run the same passes are of one kind.
    rests: Vec<Vec<RestActivity>>,
    /// Number of slots of a step: intervals in which each IPU works on a pass of its stage.
    slots: u128,
    /// A lower bound on the cycles of the weight updates of all stages, for pipelines in which they
    /// run one after the other.
    update: u128,
    bounds: Bounds,
    /// A lower bound on the step time, per micro-batch, of every split into `stages` stages.
    at_least: Rate,
    placed: Vec<CompiledStage>,
    /// The costs of the stages placed so far: the entry n is for the first n stages, so that
    /// removing a stage restores the costs before it.
    taken: Vec<CostsSoFar>,
}

#[derive(Clone, Default)]
struct CostsSoFar {
    /// For each kind of slot (slots in which the same stages run the same passes): the cycles of
    /// the busiest IPU, with only the stages that the search has placed so far.
    busiest: Vec<u128>,
    /// The most bytes that an IPU sends or receives at the end of a slot (an interval of the step):
    /// first of slots with an even index, then of slots with an odd index. The two differ if each
    /// stage copies only in every second slot. If only one stage works at a time, the first entry
    /// is the sum over all stages.
    sent: [u128; 2],
    /// The cycles of the longest weight update of any stage placed so far, for pipelines in which
    /// all stages update their weights at the same time.
    update: u128,
    peak: u64,
}

impl<'a> StageSearch<'a> {
    fn new(
        checked: &'a CheckedProblem<'a>,
        times: &'a [&'a StageTimes],
        bounds: Bounds,
    ) -> Option<Self> {
        let (stages, first) = (bounds.stages, times.first()?);
        let micro_batches = first.micro_batches(stages);
        let depth = first.pipeline_depth(stages);
        let slots = Slots::new(first.order(), depth, Some(micro_batches));
        let at_first = CostsSoFar {
            busiest: vec![0; slots.kinds.len()],
            ..CostsSoFar::default()
        };
        let rests = |stage| {
            let kinds = slots.kinds.iter();
            kinds.map(|kind| RestActivity::new(kind, stage)).collect()
        };
        let mut search = Self {
            checked,
            times,
            stages,
            placed: Vec::new(),
            taken: vec![at_first; stages + 1],
            slots: slots.count(),
            rests: (0..=stages).map(rests).collect(),
            kinds: slots.kinds,
            update: StageTimes::least_update(times)?,
            bounds,
            at_least: Rate {
                cycles: 0,
                micro_batches,
            },
        };
        search.at_least = search.bound();
        Some(search)
    }

    /// Tries all splits that begin with the stages placed so far and may be better than `best`, and
    /// replaces `best` by each better split. `left` is the number of slots that the search may
    /// still evaluate: each stage that it tries takes one slot of each kind. Returns false if
    /// `left` was too low to try all these splits.
    fn run(&mut self, best: &mut TimedSplit, left: &mut u64) -> bool {
        let by_size = (self.stages, self.so_far().peak).cmp(&(best.score.stages, best.score.peak));
        if self.bound().compare(best.rate).then(by_size).is_ge() {
            return true;
        }
        let (stage, start) = (self.placed.len(), self.end());
        if stage == self.stages {
            if let Some(found) = TimedSplit::new(self.checked, self.placed.clone())
                && found.is_better_than(best)
            {
                *best = found;
            }
            return true;
        }
        let (checked, layers) = (self.checked, self.checked.layers());
        // Leave at least one position (In, a layer or Out) for each later stage.
        let ends = match self.stages - 1 - stage {
            0 => layers..layers + 1,
            after => start + 1..(layers + 1).saturating_sub(after),
        };
        for next in checked.problem.stages(start, ends) {
            let leads_on = self.bounds.rest(stage + 1, next.positions.end).is_some();
            let Some(peak) = self
                .peak(&next)
                .filter(|_| leads_on && !self.is_beaten(&next))
            else {
                continue;
            };
            let Some(less) = left.checked_sub(self.kinds.len() as u64) else {
                return false;
            };
            *left = less;
            if self.add_stage(next, peak).is_some() {
                let is_done = self.run(best, left);
                self.placed.pop();
                if !is_done {
                    return false;
                }
            }
        }
        true
    }

    /// Returns the bytes on the fullest tile of `next` as the next stage; `None` if limits or
    /// constraints rule this stage out.
    fn peak(&self, next: &CompiledStage) -> Option<u64> {
        self.checked.peak_at(self.placed.len(), self.stages, next)
    }

    /// Returns whether another profile is no worse for the stage `next` in every cost that counts
    /// for the time and the peak of a split, so that `next` need not be tried. If profiles have
    /// equal costs, the one with the lower index stays.
    fn is_beaten(&self, next: &CompiledStage) -> bool {
        if self.times.len() < 2 {
            return false;
        }
        let Some(mine) = self.costs_of(next) else {
            return false;
        };
        let profiles = self.checked.problem.profiles();
        let mut others = profiles.filter(|&profile| profile != next.profile);
        others.any(|profile| {
            let positions = next.positions.clone();
            let theirs = self.costs_of(&CompiledStage { positions, profile });
            theirs.is_some_and(|theirs| {
                (profile < next.profile || theirs != mine)
                    && theirs
                        .iter()
                        .zip(&mine)
                        .all(|(theirs, mine)| theirs <= mine)
            })
        })
    }

    /// Returns everything that the time and the peak of a split depend on in its stage `next`:
    /// cycles, bytes that the stage sends, and its peak. Returns `None` if limits or constraints
    /// rule the stage out, or if its cycles are unknown.
    fn costs_of(&self, next: &CompiledStage) -> Option<[u128; 9]> {
        let peak = self.peak(next)?;
        let times = self.times[next.profile];
        let after = self.stages - 1 - self.placed.len();
        let (own, out) = times.stage_and_out(&next.positions, after)?;
        let out = out.unwrap_or_default();
        let [back, on] = times.sends(&next.positions);
        Some([
            own.forward,
            own.backward + own.recomputed,
            own.update,
            out.forward,
            out.backward + out.recomputed,
            out.update,
            back,
            on,
            peak.into(),
        ])
    }

    /// Places `next_stage`, with `peak` bytes on its fullest tile. Returns `None`, and places
    /// nothing, if its cycles are unknown.
    fn add_stage(&mut self, next_stage: CompiledStage, peak: u64) -> Option<()> {
        let stage = self.placed.len();
        let CompiledStage { positions, profile } = &next_stage;
        let times = self.times[*profile];
        let (parts, out) = times.stage_and_out(positions, self.stages - 1 - stage)?;
        let (taken, left) = self.taken.split_at_mut(stage + 1);
        let (before, next) = (taken.last()?, left.first_mut()?);
        for (place, kind) in self.kinds.iter().enumerate() {
            let mut active = parts.active(kind.forward[stage], kind.backward[stage]);
            if let Some(out) = out {
                let last = kind.forward.len() - 1;
                active += out.active(kind.forward[last], kind.backward[last]);
            }
            next.busiest[place] = before.busiest[place].max(active);
        }
        let previous = self.placed.last().map_or(self.times, |previous| {
            std::slice::from_ref(&self.times[previous.profile])
        });
        let neighbours = [previous, self.times];
        next.sent = times.with_copies(before.sent, (stage, positions), neighbours);
        let update = parts.update + out.unwrap_or_default().update;
        next.update = before.update.max(update);
        next.peak = before.peak.max(peak);
        self.placed.push(next_stage);
        Some(())
    }

    fn so_far(&self) -> &CostsSoFar {
        &self.taken[self.placed.len()]
    }

    fn end(&self) -> usize {
        self.placed.last().map_or(0, |last| last.positions.end)
    }

    /// Returns a lower bound on the step time, per micro-batch, of any split that begins with the
    /// stages placed so far.
    fn bound(&self) -> Rate {
        let (stage, placed) = (self.placed.len(), self.so_far());
        let micro_batches = self.at_least.micro_batches;
        let rest = self.bounds.rest(stage, self.end());
        let kinds = self.kinds.iter().zip(&self.rests[stage]);
        let work = kinds.zip(&placed.busiest).map(|((kind, &work), &busiest)| {
            rest.map_or(busiest, |rest| busiest.max(rest.of(work)))
                .saturating_mul(kind.count.into())
        });
        let first = self.times[0];
        let copies = first
            .copy_cycles(placed.sent, (self.slots, micro_batches))
            .unwrap_or(0);
        let update = if first.updates_side_by_side() {
            placed.update
        } else {
            self.update
        };
        Rate {
            cycles: work.chain([copies, update]).fold(0, u128::saturating_add),
            micro_batches,
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
