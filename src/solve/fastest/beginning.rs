//! Beginnings of splits (their first stages), with the numbers on which the step time of a whole
//! split depends, and the addition of one stage to a beginning.

use super::bounds::{RestActivity, RestBounds};
use crate::{
    solve::problem::CompiledStage,
    time::{Passes, SlotKind, Slots},
};
use std::collections::BTreeMap;

/// Maximum number of other beginnings of splits with which the search compares each beginning, to
/// save time. If none of these is at least as good, the beginning is kept.
const MAX_COMPARED: usize = 64;

/// A beginning of a split: its first stages (none by default), and what they cost.
#[derive(Default)]
pub struct Beginning {
    /// The stages of this beginning of a split, from stage 0 on.
    pub stages: Vec<CompiledStage>,
    /// Rank among the beginnings of splits with equally many stages: the earlier the cuts, the
    /// lower the rank. Of equally good beginnings, the one with the lower rank is preferred. After
    /// a stage is added, the old rank stays until [`without_beaten`] computes the new one.
    pub rank: usize,
    /// Lower bound on the cycles of the step of every split that begins with these first stages.
    pub at_least: u128,
    /// Cycles of all slots (intervals of the step) in which no stage after this beginning of a
    /// split has work.
    pub closed: u128,
    /// Lower bounds on the cycles of slots (intervals of the step, each as long as its busiest IPU
    /// works) in which stages after this beginning of a split still have work. There is one entry
    /// per group of slots that have the same bound wherever the cuts are ([`Level`]).
    pub busiest: Vec<u64>,
    /// The most bytes that any IPU sends or receives in a slot (an interval of the step), counting
    /// only the stages of this beginning of a split. The first number is for slots with an even
    /// index, the second for the others. If only one stage works at a time, the first number is the
    /// sum over the stages. There is one entry per profile that the next stage may have, since the
    /// bytes that the next stage sends back depend on its profile.
    pub sent: Vec<[u128; 2]>,
    /// Bytes that the last stage of this beginning of a split sends to the next stage for one
    /// micro-batch. If the beginning has no stages yet: the fewest bytes, by any profile, that are
    /// sent from the last layer to Out (the operations after it) if Out runs on the first IPU,
    /// otherwise 0.
    pub sends: u128,
    /// Cycles of the weight updates of the stages of this beginning of a split. If all IPUs update
    /// at the same time, the cycles of the longest update, otherwise the sum.
    pub update: u128,
    /// Bytes on the fullest tile of any stage of this beginning of a split.
    pub peak: u64,
}

impl Beginning {
    /// Returns the position where the next stage starts.
    pub fn end(&self) -> usize {
        self.stages.last().map_or(0, |last| last.positions.end)
    }

    /// Returns whether this beginning of a split is at least as good as `other`, whichever stages
    /// follow. Both beginnings must end at the same position.
    fn beats(&self, other: &Self) -> bool {
        // If `self` takes fewer cycles than `other` in the slots (intervals of the step) in which
        // no later stage has work, and no other cost is higher, its step will be shorter. If both
        // take equally many cycles there, their steps may be equally long; then the lower peak and
        // the earlier cuts decide.
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

/// Leaves out each beginning of a split (its first stages) that another beginning beats
/// ([`Beginning::beats`]). `extended` has beginnings with equal numbers of stages. Returns the
/// others, ascending by their lower bounds on the time of a step.
pub fn without_beaten(mut extended: Vec<Beginning>) -> Vec<Beginning> {
    // Compare beginnings of splits only if they end at the same position. With several profiles,
    // they must also have the same first stage: if Out (the operations after the last layer) is on
    // its IPU, the profile of the first stage determines the bytes that Out sends back.
    let place = |one: &Beginning| {
        let first =
            (one.sent.len() > 1).then(|| (one.stages[0].positions.end, one.stages[0].profile));
        (one.end(), first)
    };
    extended.sort_by_cached_key(|one| (one.rank, one.end()));
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

/// One level of the search for the fastest split: it adds the stage with index `stage` to all
/// beginnings of splits (their first stages).
///
/// A step consists of slots (intervals), each as long as its busiest IPU works. The search has a
/// lower bound on the cycles of each slot. Slots that have the same bound wherever the cuts are
/// form a *term*. A term is *open* if later stages have work in its slots, otherwise *closed*.
pub struct Level {
    pub stage: usize,
    /// Number of slots of a step (intervals in which each IPU works on the passes of its stage).
    pub slots: u128,
    /// The groups of slots (intervals of the step) in which stages after `stage` have work, each
    /// with its number of slots, in the order of the entries of [`Beginning::busiest`].
    open: Vec<(Term, u64)>,
    /// The groups of slots (intervals of the step) in which the IPU of stage `stage` has work but
    /// no later stage has, each with its number of slots.
    closed: Vec<(Term, u64)>,
}

/// A group of slots (intervals of the step) with the same lower bound on their cycles. The fields
/// state what these slots have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Term {
    is_closed: bool,
    /// Index in [`Beginning::busiest`] of the lower bound that these slots (intervals of the step)
    /// had before the newest stage was placed. If the newest stage is the first of the split, there
    /// was no bound, and the index is 0.
    from: usize,
    /// The passes (forward, backward) that the newest stage runs in each of these slots (intervals
    /// of the step), as an index into [`NextStage::active`]. Includes the passes of Out (the
    /// operations after the last layer) if Out is on the same IPU.
    passes: usize,
    rest: RestActivity,
}

impl Term {
    /// Returns the group to which slots of the kind `kind` belong once the stage with index `stage`
    /// of a split into `stages` stages is placed. Slots (intervals of the step) of one group have
    /// the same lower bound on their cycles. `from` is the index in [`Beginning::busiest`] of the
    /// bound that they had before.
    fn new(kind: &SlotKind, from: usize, stage: usize, stages: usize) -> Self {
        let passes = |active: &[bool]| {
            // `active` has one entry per stage: whether it runs a forward pass (or, in the second
            // call, a backward pass) in these slots. If Out (the operations after the last layer)
            // is on the first IPU, a last entry is for Out. The result is 1 if the newest stage
            // runs the pass, plus 4 if Out runs it on the same IPU.
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
    /// Iterates over the levels of the search for splits into `stages` stages. Level n adds the
    /// stage with index n to beginnings of splits that have n stages. `slots` has the slots
    /// (intervals) of a step with `stages` stages.
    pub fn of_all(slots: &Slots, stages: usize) -> impl Iterator<Item = Self> {
        let mut kinds: Vec<(&SlotKind, usize)> = slots.kinds.iter().map(|kind| (kind, 0)).collect();
        (0..stages).map(move |stage| {
            let own: Vec<Term> = kinds
                .iter()
                .map(|&(kind, from)| Term::new(kind, from, stage, stages))
                .collect();
            let mut counts = BTreeMap::new();
            for (term, (kind, _)) in own.iter().zip(&kinds) {
                *counts.entry(*term).or_insert(0) += kind.count;
            }
            let (open, closed): (Vec<(Term, u64)>, _) =
                counts.into_iter().partition(|(term, _)| !term.is_closed);
            let index = |term: &Term| open.partition_point(|(other, _)| other < term);
            kinds = own
                .iter()
                .zip(&kinds)
                .filter(|(term, _)| !term.is_closed)
                .map(|(term, &(kind, _))| (kind, index(term)))
                .collect();
            Self {
                stage,
                slots: slots.count(),
                open,
                closed,
            }
        })
    }

    /// Returns [`Beginning::busiest`] after the stage `next` was placed: for each group of slots
    /// (intervals of the step) in which later stages have work, a lower bound on the cycles of a
    /// slot. `before` has these bounds before the stage was placed.
    pub fn busiest(&self, before: &[u64], next: &NextStage) -> impl Iterator<Item = u64> {
        let open = self.open.iter();
        open.map(move |(term, _)| next.busiest(before, term))
    }

    /// Returns two parts of a lower bound on the cycles of a step, after the stage `next` was
    /// placed. The first is for the slots (intervals of the step) in which later stages still have
    /// work. The second is for the slots in which `next` is the last stage with work, and is exact.
    /// `before` is [`Beginning::busiest`] before `next` was placed.
    pub fn cycles(&self, before: &[u64], next: &NextStage) -> [u128; 2] {
        [&self.open, &self.closed].map(|terms| {
            terms.iter().fold(0u128, |sum, (term, count)| {
                let busiest = u128::from(next.busiest(before, term));
                sum.saturating_add(busiest * u128::from(*count))
            })
        })
    }
}

/// A stage that may follow a beginning of a split (its first stages), with its costs.
pub struct NextStage {
    pub stage: CompiledStage,
    /// Bytes on the fullest tile of this stage.
    pub peak: u64,
    /// Lower bounds on the cycles that the stages after `stage` take in a slot (an interval of the
    /// step), depending on which passes (forward, backward) they run in it.
    pub rest: RestBounds,
    /// Cycles that the IPU of this stage takes in a slot (an interval of the step), for each set of
    /// passes in that slot. The index is a sum of bits: 1 for the forward and 2 for the backward
    /// pass of the stage; 4 and 8 for the passes of Out (the operations after the last layer), if
    /// Out runs on the same IPU.
    pub active: [u64; 16],
    /// Cycles of the weight update of this stage and, if Out (the operations after the last layer)
    /// runs on the same IPU, of Out.
    pub update: u128,
}

impl NextStage {
    /// Returns the cycles that an IPU takes in a slot (an interval of the step), for each set of
    /// passes that it may run there, in the order of [`NextStage::active`]. `own` has the cycles of
    /// its stage. `out` has those of Out (the operations after the last layer), or 0 if Out is on
    /// another IPU.
    pub fn active(own: Passes, out: Passes) -> [u64; 16] {
        let (own, out) = (own.by_set(), out.by_set());
        std::array::from_fn(|set| own[set % 4].saturating_add(out[set / 4]))
    }

    /// Returns a lower bound on the cycles of a slot (an interval of the step, as long as its
    /// busiest IPU works) in the group `term`, once this stage is placed. It is the maximum of
    ///
    /// - the lower bound before this stage was placed, an entry of `before`
    /// - the cycles of this stage's IPU
    /// - the lower bound for later stages
    fn busiest(&self, before: &[u64], term: &Term) -> u64 {
        let before = before.get(term.from).copied().unwrap_or(0);
        before
            .max(self.active[term.passes])
            .max(self.rest.of(term.rest))
    }
}
