//! From when to when the copies of a tensor live on an IPU.

use super::axis::Axis;
use super::compilation::{Compilation, Run};
use super::graph::Use;
use super::route::{Stay, Uses};

/// A copy of a tensor for one micro-batch, with the name of its variable.
pub(super) struct Copy {
    pub name: String,
    pub from: u32,
    pub to: u32,
    /// The segment of the tensor's last use, where this is the copy used last:
    /// it is this one that some tiles keep longer or write again.
    pub tail: Option<usize>,
}

pub(super) struct Copies<'a> {
    pub compiled: &'a Compilation<'a>,
    pub axis: &'a Axis,
    pub stay: &'a Stay<'a>,
    pub micro_batch: u32,
}

impl Copies<'_> {
    /// All copies for the micro-batch, but for those in rings.
    pub fn all(&self) -> Vec<Copy> {
        let name = self.stay.route.tensor.name.as_str();
        let takers = self.stay.takers.iter().enumerate();
        let takers = takers.filter(|_| self.stay.slots > 0);
        let restored = takers.filter_map(|(number, taker)| {
            let is_last = number + 1 == self.stay.takers.len();
            let names = ["Restored___{}", "{}/fifo/out/0"];
            let name = self.compiled.name(names, name);
            Some(Copy {
                name,
                ..self.restored(taker, is_last)?
            })
        });
        let remade = self.stay.remade.iter().filter_map(|remade| {
            let name = format!("{name}_Recomputed");
            Some(Copy {
                name,
                ..self.used(remade)?
            })
        });
        self.first()
            .into_iter()
            .chain(restored)
            .chain(remade)
            .collect()
    }

    fn has_fifo(&self) -> bool {
        self.compiled.options.schedule.has_fifo()
    }

    fn part(&self, run: Run) -> usize {
        self.axis.part(run, self.micro_batch)
    }

    /// The moment when a run copies to other IPUs.
    fn copied(&self, run: Run) -> u32 {
        let time = self.compiled.time(run, self.micro_batch);
        self.axis.after_time(time)
    }

    /// The copy that the IPU makes or receives.
    fn first(&self) -> Option<Copy> {
        let (home, _) = self.stay.home;
        let name = &self.stay.route.tensor.name;
        let used = self.used(&self.stay.home);
        let mut copy = match self.stay.route.sender(home) {
            None => Copy {
                name: name.clone(),
                ..used?
            },
            Some(sender) => {
                let from = self.copied(sender);
                Copy {
                    name: self
                        .compiled
                        .name(["{}_ipucopy", "{}/inter-ipu-copy"], name),
                    from,
                    to: used.as_ref().map_or(from, |used| used.to),
                    tail: used.and_then(|used| used.tail),
                }
            }
        };
        if self.stay.route.sends(home.0) {
            copy.to = copy.to.max(self.copied(home));
        }
        self.keep(&mut copy);
        Some(copy)
    }

    /// A kept tensor stays where it is, if one copy is enough, or until it is
    /// in the FIFO. A stash takes it while it is there anyway.
    fn keep(&self, copy: &mut Copy) {
        let Some(last) = self.stay.takers.last() else {
            return;
        };
        if self.stay.slots == 0 {
            if let Some(used) = self.used(last) {
                copy.to = copy.to.max(used.to);
                copy.tail = used.tail;
            }
        } else if self.has_fifo() {
            copy.to = copy.to.max(self.taken_in(last.0));
        }
    }

    /// The moment after the FIFO has taken in the tensor.
    fn taken_in(&self, last: Run) -> u32 {
        let (home, _) = self.stay.home;
        let part = self.part(home);
        let at = match self.compiled.options.early_fifo {
            true => Some(part),
            false => self.axis.next(part, [home, last]),
        };
        let fifos = at.and_then(|at| self.axis.fifos(at));
        fifos.map_or(self.axis.start(part + 1), |first| {
            first + self.stay.fifo + 1
        })
    }

    /// The moment when a FIFO gives out what a part needs.
    fn given_out(&self, part: usize) -> Option<u32> {
        let at = match self.compiled.options.early_fifo {
            true => self.axis.before(part, self.stay.home.0)?,
            false => part,
        };
        Some(self.axis.fifos(at)? + self.stay.fifo)
    }

    /// The copy that a later run works on: what a FIFO gives out, or what is
    /// restored from the stash.
    fn restored(&self, taker: &Uses, is_last: bool) -> Option<Copy> {
        let used = self.used(taker)?;
        let part = self.part(taker.0);
        let restored = match self.has_fifo() {
            true if is_last => self.given_out(part),
            false if !self.compiled.options.early_restore => None,
            _ => Some(self.axis.start(part)),
        };
        let from = restored.unwrap_or(used.from).min(used.from);
        Some(Copy { from, ..used })
    }

    /// A copy that lives from the first of these uses to the last one.
    fn used(&self, (run, uses): &Uses) -> Option<Copy> {
        let part = self.part(*run);
        let end = self.stay.route.tensor.end();
        let mut copy: Option<Copy> = None;
        for &(kind, Use { steps, .. }) in uses {
            let Some(first) = self.axis.segment(part, kind, steps.0) else {
                continue;
            };
            let last = self.axis.segment(part, kind, steps.1 - 1);
            let segment = last.unwrap_or(first);
            let from = self.axis.reach(first, steps.0);
            let to = self.axis.reach(segment, steps.1);
            let all = copy.get_or_insert(Copy {
                name: String::new(),
                from,
                to,
                tail: None,
            });
            all.from = all.from.min(from);
            all.to = all.to.max(to);
            if steps.1 == end {
                all.tail = Some(segment);
            }
        }
        copy
    }
}
