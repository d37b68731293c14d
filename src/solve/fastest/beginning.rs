//! The first stages of a split, with everything that the step time of the whole split depends on.

use super::bounds::{RestActivity, RestBounds};
use crate::solve::problem::CompiledStage;
use crate::time::{Passes, SlotKind, Slots, StageTimes, narrow};
use std::collections::BTreeMap;

/// Maximum number of beginnings of splits with which another one is compared. It bounds the time;
/// a beginning that is not compared is kept.
const MAX_COMPARED: usize = 64;

/// The first stages of a split (none of them by default), and what they cost.
#[derive(Default)]
pub(super) struct Beginning {
    /// End (exclusive) and profile of the first stage, on which copies depend that Out sends to it.
    pub first: (usize, usize),
    /// The last of the stages; empty and at position 0 if there is no stage yet.
    pub last: CompiledStage,
    /// Index of the beginning without the last stage, among all beginnings with one stage fewer.
    pub previous: usize,
    /// The place of these stages among all beginnings with as many stages, those with earlier cuts
    /// first.
    pub rank: usize,
    /// A lower bound on the cycles of the step of every split that begins with these stages.
    pub at_least: u128,
    /// Cycles of the slots in which no later stage has work.
    pub closed: u128,
    /// For each open term of the level ([`Level`]): the cycles of the busiest IPU, or the lower
    /// bound on later stages if it is higher.
    pub busiest: Vec<u64>,
    /// By profile of the stage after these stages: the most bytes that an IPU sends or receives at
    /// the end of slots with an even index, and of slots with an odd index.
    pub sent: Vec<[u128; 2]>,
    /// Bytes that the last stage sends to the stage after it for one micro-batch.
    pub sends: u128,
    /// Cycles of the weight update: of the longest one if stages update side by side, otherwise of
    /// all stages.
    pub update: u128,
    /// Bytes on the fullest tile of any of the stages.
    pub peak: u64,
}

impl Beginning {
    /// Returns whether every way to complete `other` is no better than the same way to complete
    /// `self`. Both must end at the same position.
    fn beats(&self, other: &Self) -> bool {
        // With fewer cycles in closed slots, the step is shorter. Otherwise steps may be equally
        // long; then the lower peak decides, and after it the earlier cuts.
        let is_preferred = self.peak <= other.peak && self.rank < other.rank;
        (self.closed < other.closed || self.closed == other.closed && is_preferred)
            && self.update <= other.update
            && self.sends <= other.sends
            && are_no_more(self.sent.as_flattened(), other.sent.as_flattened())
            && are_no_more(&self.busiest, &other.busiest)
    }
}

fn are_no_more<T: PartialOrd>(some: &[T], others: &[T]) -> bool {
    some.iter().zip(others).all(|(one, other)| one <= other)
}

/// Returns `extended`, which extend the beginnings `before` by one stage, without those that
/// another one beats, in the order of their bounds.
pub(super) fn without_beaten(mut extended: Vec<Beginning>, before: &[Beginning]) -> Vec<Beginning> {
    let place = |one: &Beginning| (one.last.positions.end, one.first);
    extended.sort_by_cached_key(|one| (before[one.previous].rank, one.last.positions.end));
    for (rank, one) in extended.iter_mut().enumerate() {
        one.rank = rank;
    }
    extended.sort_by_cached_key(|one| (place(one), one.at_least, one.peak));
    let (mut kept, mut first) = (Vec::<Beginning>::new(), 0);
    for one in extended {
        if kept.last().is_some_and(|last| place(last) != place(&one)) {
            first = kept.len();
        }
        if !kept[first..]
            .iter()
            .take(MAX_COMPARED)
            .any(|other| other.beats(&one))
        {
            kept.push(one);
        }
    }
    kept.sort_by_cached_key(|one| one.at_least);
    kept
}

/// The addition of one stage to all beginnings of splits into a fixed number of stages. Slots in
/// which all placed stages run the same passes, and the later stages the same as far as bounds tell
/// them apart, take equally long and are one term.
pub(super) struct Level {
    /// Index of the stage that is added.
    pub stage: usize,
    /// Number of slots of a step.
    pub slots: u128,
    /// The terms with their numbers of slots, open ones first.
    terms: Vec<(Term, u64)>,
    /// Number of open terms.
    open: usize,
}

/// What the slots of a term have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Term {
    /// Whether no later stage has work in these slots. Otherwise the term is open.
    is_closed: bool,
    /// Index of the open term to which these slots belong in the level before.
    from: usize,
    /// The passes that the added stage runs, as an index into [`NextStage::active`].
    passes: usize,
    rest: RestActivity,
}

impl Term {
    /// Returns the term of slots of the kind `kind` at the addition of the stage with index `stage`
    /// to a split into `stages` stages, if they belong to the term `from` in the level before.
    fn new(kind: &SlotKind, from: usize, stage: usize, stages: usize) -> Self {
        let passes = |active: &[bool]| {
            // Out has an entry of its own if it runs on the first IPU.
            let out = stage == 0 && active.get(stages) == Some(&true);
            usize::from(active[stage]) + 4 * usize::from(out)
        };
        let later = stage + 1..stages;
        let is_idle = |active: &[bool]| !active[later.clone()].contains(&true);
        Self {
            is_closed: is_idle(&kind.forward) && is_idle(&kind.backward),
            from,
            passes: passes(&kind.forward) + 2 * passes(&kind.backward),
            rest: RestActivity::new(kind, later),
        }
    }
}

impl Level {
    /// Returns the levels of a split into `stages` stages, the one for stage 0 first.
    pub fn of_all(times: &StageTimes, stages: usize) -> Vec<Self> {
        let (depth, micro_batches) = (times.pipeline_depth(stages), times.micro_batches(stages));
        let slots = Slots::new(times.order(), depth, Some(micro_batches));
        let mut kinds: Vec<(&SlotKind, usize)> = slots.kinds.iter().map(|kind| (kind, 0)).collect();
        let level = |stage| {
            let term = |&(kind, from): &_| Term::new(kind, from, stage, stages);
            let mut counts = BTreeMap::new();
            for own in &kinds {
                *counts.entry(term(own)).or_insert(0) += own.0.count;
            }
            let terms: Vec<(Term, u64)> = counts.into_iter().collect();
            let open = terms.partition_point(|(term, _)| !term.is_closed);
            kinds.retain_mut(|own| {
                let term = term(own);
                own.1 = terms.partition_point(|(other, _)| *other < term);
                !term.is_closed
            });
            Self {
                stage,
                slots: slots.count(),
                terms,
                open,
            }
        };
        (0..stages).map(level).collect()
    }

    /// Iterates over the cycles of the busiest IPU by open term, after `next` was added to a
    /// beginning with the cycles `before` by open term.
    pub fn busiest(&self, before: &[u64], next: &NextStage) -> impl Iterator<Item = u64> {
        let open = self.terms[..self.open].iter();
        open.map(move |(term, _)| next.busiest(before, term))
    }

    /// Returns the sums of the cycles of the slots of open terms and of closed terms, after `next`
    /// was added to a beginning with the cycles `before` by open term.
    pub fn cycles(&self, before: &[u64], next: &NextStage) -> [u128; 2] {
        let (open, closed) = self.terms.split_at(self.open);
        [open, closed].map(|terms| {
            terms.iter().fold(0u128, |sum, (term, count)| {
                let busiest = u128::from(next.busiest(before, term));
                sum.saturating_add(busiest * u128::from(*count))
            })
        })
    }
}

/// A stage that may follow a beginning of a split, with its costs.
pub(super) struct NextStage {
    pub stage: CompiledStage,
    /// Bytes on its fullest tile.
    pub peak: u64,
    /// Lower bounds on the cycles of the stages after it.
    pub rest: RestBounds,
    /// Its cycles in a slot, for each set of passes: forward 1, backward 2, and of Out, if it runs
    /// on the same IPU, forward 4 and backward 8.
    pub active: [u64; 16],
    /// Cycles of its weight update.
    pub update: u128,
}

impl NextStage {
    /// Returns [`NextStage::active`] of a stage that takes the cycles `own`, and `out` for Out.
    pub fn active(own: Passes, out: Passes) -> [u64; 16] {
        std::array::from_fn(|passes| {
            let has = |bit: usize| passes & bit > 0;
            narrow(own.active(has(1), has(2)) + out.active(has(4), has(8)))
        })
    }

    /// Returns the cycles of the busiest IPU in a slot of `term`, or the lower bound on later
    /// stages if it is higher.
    fn busiest(&self, before: &[u64], term: &Term) -> u64 {
        let before = before.get(term.from).copied().unwrap_or(0);
        let own = self.active[term.passes].max(self.rest.of(term.rest));
        before.max(own)
    }
}
