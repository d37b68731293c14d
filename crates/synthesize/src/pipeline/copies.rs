//! From when to when the copies of a tensor live on an IPU.

use super::axis::Axis;
use super::compilation::Compilation;
use super::graph::Use;
use super::keep::{Kept, Kind};
use super::route::Route;
use super::walk::Run;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Made,
    Received,
    /// It came out of the ring, for one of the runs that need it, by number.
    Restored(usize),
    Recomputed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Copy {
    pub what: What,
    pub from: u32,
    pub to: u32,
    /// The segment of the tensor's last use, where this is the copy used last:
    /// it is this one that some tiles keep longer or write again.
    pub tail: Option<usize>,
}

pub(super) struct Copies<'a> {
    pub axis: &'a Axis,
    pub compiled: &'a Compilation<'a>,
    pub route: &'a Route<'a>,
    pub kept: &'a Kept,
    pub fifo: u32,
}

impl Copies<'_> {
    /// All copies for a micro-batch, but for those in rings.
    pub fn of(&self, micro_batch: u32) -> Vec<Copy> {
        let mut copies = Vec::new();
        copies.extend(self.first(micro_batch));
        for (number, (run, uses)) in self.kept.takers.iter().enumerate() {
            if self.kept.slots > 0 {
                let is_last = number + 1 == self.kept.takers.len();
                let working = self.working(*run, uses, micro_batch, is_last);
                let what = What::Restored(number);
                copies.extend(working.map(|copy| Copy { what, ..copy }));
            }
        }
        for (run, uses) in &self.kept.remade {
            let what = What::Recomputed;
            let again = self.used(*run, uses, micro_batch);
            copies.extend(again.map(|copy| Copy { what, ..copy }));
        }
        copies
    }

    fn first(&self, micro_batch: u32) -> Option<Copy> {
        let home = self.kept.home;
        let part = self.axis.part(home, micro_batch)?;
        let uses = self.route.uses_of(home);
        let uses: Vec<(Kind, Use)> = uses.map(|used| (Kind::of(home.1), *used)).collect();
        let used = self.used(home, &uses, micro_batch);
        let sender = self.route.sender(home);
        let copied = |run| {
            let time = self.compiled.pipeline.time(run, micro_batch);
            self.axis.after_time(time)
        };
        let from = match sender {
            None => used?.from,
            Some(sender) => copied(sender),
        };
        let mut copy = Copy {
            what: sender.map_or(What::Made, |_| What::Received),
            from,
            to: used.map_or(from, |used| used.to),
            tail: used.and_then(|used| used.tail),
        };
        if self.route.sends(home.0) {
            copy.to = copy.to.max(copied(home));
        }
        self.keep(&mut copy, part, micro_batch);
        Some(copy)
    }

    /// A kept tensor stays where it is, if one copy is enough, or until it is
    /// in the FIFO. A stash takes it while it is there anyway.
    fn keep(&self, copy: &mut Copy, part: usize, micro_batch: u32) {
        let Some((last, uses)) = self.kept.takers.last() else {
            return;
        };
        if self.kept.slots == 0 {
            if let Some(used) = self.used(*last, uses, micro_batch) {
                copy.to = copy.to.max(used.to);
                copy.tail = used.tail;
            }
        } else if self.compiled.pipeline.schedule.has_fifo() {
            copy.to = copy.to.max(self.taken_in(part, *last));
        }
    }

    /// The moment after the FIFO has taken in what a part has made.
    fn taken_in(&self, part: usize, last: Run) -> u32 {
        let runs = [self.kept.home, last];
        let at = match self.compiled.options.early_fifo {
            true => Some(part),
            false => self.axis.next(part, runs),
        };
        let fifo = at.and_then(|at| self.axis.fifo(at));
        fifo.map_or(self.axis.end(part), |fifo| fifo.start + self.fifo + 1)
    }

    /// The moment when a FIFO gives out what a part needs.
    fn given_out(&self, part: usize) -> Option<u32> {
        let at = match self.compiled.options.early_fifo {
            true => self.axis.before(part, self.kept.home)?,
            false => part,
        };
        Some(self.axis.fifo(at)?.start + self.fifo)
    }

    /// The copy that a later run works on: what a FIFO gives out, or what is
    /// restored from the stash.
    fn working(
        &self,
        run: Run,
        uses: &[(Kind, Use)],
        micro_batch: u32,
        is_last: bool,
    ) -> Option<Copy> {
        let part = self.axis.part(run, micro_batch)?;
        let used = self.used(run, uses, micro_batch)?;
        let options = self.compiled.options;
        let restored = match options.schedule.has_fifo() {
            true if is_last => self.given_out(part),
            false if !options.early_restore => None,
            _ => Some(self.axis.start(part)),
        };
        let from = restored.unwrap_or(used.from).min(used.from);
        Some(Copy { from, ..used })
    }

    fn used(&self, run: Run, uses: &[(Kind, Use)], micro_batch: u32) -> Option<Copy> {
        let part = self.axis.part(run, micro_batch)?;
        let end = self.route.tensor.end();
        let mut copy: Option<Copy> = None;
        for (kind, usage) in uses {
            let Some(first) = self.axis.segment(part, *kind, usage.steps.0) else {
                continue;
            };
            let last = self.axis.segment(part, *kind, usage.steps.1 - 1);
            let segment = last.unwrap_or(first);
            let from = self.axis.reach(first, usage.steps.0);
            let to = self.axis.reach(segment, usage.steps.1);
            let all = copy.get_or_insert(Copy {
                what: What::Made,
                from,
                to,
                tail: None,
            });
            all.from = all.from.min(from);
            all.to = all.to.max(to);
            if usage.steps.1 == end {
                all.tail = Some(segment);
            }
        }
        copy
    }
}
