//! Computes from when to when the copies of a tensor live on an IPU.

use super::axis::Axis;
use super::compilation::Run;
use super::graph::Use;
use super::route::{Stay, Uses};

/// A copy of a tensor for one micro-batch.
pub(super) struct Copy {
    pub from: u32,
    pub to: u32,
    /// The segment of the tensor's last use, if this is the copy that is used last. Some tiles keep
    /// this copy longer or write it again.
    pub tail: Option<usize>,
}

impl Stay<'_> {
    /// Returns all copies for the micro-batch of the axis, except for those in rings, each with the
    /// name of its variable.
    pub fn copies(&self, axis: &Axis) -> Vec<(String, Copy)> {
        let mut copies = Vec::new();
        let mut add = |names, copy: Option<Copy>| {
            let name = self.compiled.name(names, &self.route.tensor.name);
            copies.extend(copy.map(|copy| (name, copy)));
        };
        let first = match self.route.sender(self.home.0) {
            None => ["{}"; 2],
            Some(_) => ["{}_ipucopy", "{}/inter-ipu-copy"],
        };
        add(first, self.first(axis));
        let takers = self.takers.iter().enumerate();
        for (number, taker) in takers.filter(|_| self.slots > 0) {
            let is_last = number + 1 == self.takers.len();
            let restored = self.restored(axis, taker, is_last);
            add(["Restored___{}", "{}/fifo/out/0"], restored);
        }
        if let Some(remade) = &self.remade {
            add(["{}_Recomputed"; 2], self.used(axis, remade));
        }
        copies
    }

    fn has_fifo(&self) -> bool {
        self.compiled.options.schedule.has_fifo()
    }

    /// Returns the moment at which a run copies to other IPUs.
    fn copied(&self, axis: &Axis, run: Run) -> u32 {
        axis.after_time(self.compiled.time(run, axis.micro_batch))
    }

    /// Returns the copy that the IPU makes or receives.
    fn first(&self, axis: &Axis) -> Option<Copy> {
        let (home, _) = self.home;
        let used = self.used(axis, &self.home);
        let mut copy = match self.route.sender(home) {
            None => used?,
            Some(sender) => {
                let from = self.copied(axis, sender);
                let (to, tail) = used.map_or((from, None), |used| (used.to, used.tail));
                Copy { from, to, tail }
            }
        };
        if self.route.sends(home.0) {
            copy.to = copy.to.max(self.copied(axis, home));
        }
        self.keep(axis, &mut copy);
        Some(copy)
    }

    /// Extends the life of a kept copy: it stays where it is if one copy is enough, or until it is
    /// in the FIFO. A stash takes it while it is live anyway.
    fn keep(&self, axis: &Axis, copy: &mut Copy) {
        let Some(last) = self.takers.last() else {
            return;
        };
        if self.slots == 0 {
            if let Some(used) = self.used(axis, last) {
                copy.to = copy.to.max(used.to);
                copy.tail = used.tail;
            }
        } else if self.has_fifo() {
            copy.to = copy.to.max(self.taken_in(axis, last.0));
        }
    }

    /// Returns the moment after the FIFO has taken in the tensor.
    fn taken_in(&self, axis: &Axis, last: Run) -> u32 {
        let (home, _) = self.home;
        let part = axis.part(home);
        let at = match self.compiled.options.early_fifo {
            true => Some(part),
            false => axis.next(part, [home, last]),
        };
        let fifos = at.and_then(|at| axis.fifos(at));
        fifos.map_or(axis.start(part + 1), |first| first + self.fifo + 1)
    }

    /// Returns the moment at which a FIFO gives out the tensor that a part needs.
    fn given_out(&self, axis: &Axis, part: usize) -> Option<u32> {
        let at = match self.compiled.options.early_fifo {
            true => axis.before(part, self.home.0)?,
            false => part,
        };
        Some(axis.fifos(at)? + self.fifo)
    }

    /// Returns the copy that a later run uses: the copy that a FIFO gives out, or that is restored
    /// from the stash.
    fn restored(&self, axis: &Axis, taker: &Uses, is_last: bool) -> Option<Copy> {
        let used = self.used(axis, taker)?;
        let part = axis.part(taker.0);
        let restored = match self.has_fifo() {
            true if is_last => self.given_out(axis, part),
            false if !self.compiled.options.early_restore => None,
            _ => Some(axis.start(part)),
        };
        let from = restored.unwrap_or(used.from).min(used.from);
        Some(Copy { from, ..used })
    }

    /// Returns a copy that lives from the first of these uses to the last one.
    fn used(&self, axis: &Axis, (run, uses): &Uses) -> Option<Copy> {
        let part = axis.part(*run);
        let end = self.route.tensor.end();
        let mut copy: Option<Copy> = None;
        for &(kind, Use { steps, .. }) in uses {
            let Some(first) = axis.segment(part, kind, steps.0) else {
                continue;
            };
            let last = axis.segment(part, kind, steps.1 - 1).unwrap_or(first);
            let (from, to) = (axis.reach(first, steps.0), axis.reach(last, steps.1));
            let tail = None;
            let all = copy.get_or_insert(Copy { from, to, tail });
            all.from = all.from.min(from);
            all.to = all.to.max(to);
            if steps.1 == end {
                all.tail = Some(last);
            }
        }
        copy
    }
}
