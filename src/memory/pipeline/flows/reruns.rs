//! When variables are live where segments of layers run again for their backward pass.
//!
//! A segment is some neighbouring places whose forward pass runs again from its inputs, right
//! before their backward pass; tensors of places outside of segments are kept. The steps of the
//! forward pass stand for both of its runs:
//! * A tensor that only its segment uses is free between the end of the segment's forward pass and
//!   its backward pass: the *gap*.
//! * A tensor that other places of the stage use too, or that came from before the segment, is a
//!   checkpoint: it stays as in the one-IPU compilation, and where only forward passes use it,
//!   until the first of them has run again.
//! * A tensor that is kept over the first step of a segment's backward pass is live on all steps of
//!   its forward pass, in stages that have the segment.
//!
//! Whether a tensor is a checkpoint depends on the stage, but only on which of its users the stage
//! has: so each use is parted in two, which count in different places.

use super::{Flow, Life, PassWindows};
use crate::memory::steps::{OfPosition, Steps, joined, together, without};
use std::collections::BTreeMap;

/// A run of a forward pass right before the backward pass of `place`.
#[derive(Debug, Clone, Copy)]
struct Rerun {
    place: u32,
    /// The place whose forward pass runs: In runs with the first layer.
    runs: u32,
    /// The first step of the backward pass of `place`.
    backward_start: u32,
    /// The half-open steps of the forward pass.
    steps: (u32, u32),
}

/// The segments where each layer runs again: each layer is one, and In runs with the first layer.
/// Out is kept.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// By place, steps at which tensors that only its segment uses are free; `None` where
    /// everything is kept.
    gaps: Vec<Option<Steps>>,
    /// By place, the first step of its backward pass; `None` if it does not run again.
    first_steps: Vec<Option<u32>>,
    reruns: Vec<Rerun>,
}

impl Segments {
    /// Finds the segments of a model with `places` places; the last one is Out if `has_out`.
    pub(super) fn new(windows: &PassWindows, places: u32, has_out: bool) -> Self {
        let layers = places - u32::from(has_out);
        let known = |place: u32| windows.at(place).forward.zip(windows.at(place).backward);
        // A place may have steps that the profile lists elsewhere: they last until the next place
        // starts.
        let starts = |next: u32| windows.at(next).forward.map_or(0, |(first, _)| first);
        let runs = |place: u32, with: u32| {
            let ((first, last), _) = known(place)?;
            let (_, (backward_start, _)) = known(with)?;
            Some(Rerun {
                place: with,
                runs: place,
                backward_start,
                steps: (first, starts(place + 1).max(last + 1)),
            })
        };
        let alone = (0..layers).filter_map(|place| runs(place, place));
        let of_in = (layers > 1).then(|| runs(0, 1)).flatten();
        let gap = |place: u32| {
            let ends = (place == 0 && layers > 1).then_some(1);
            let places = || [Some(place), ends].into_iter().flatten();
            let found: Vec<_> = places().filter_map(known).collect();
            known(place)?;
            let last = found.iter().map(|((_, last), _)| last + 1).max()?;
            let first = found.iter().map(|(_, (first, _))| *first).min()?;
            let next = ends.unwrap_or(place) + 1;
            let ends = windows.at(next).backward;
            let ends = ends.map_or(first, |(_, last)| last + 1);
            let gap = (starts(next).max(last), first.min(ends));
            let bodies = places().flat_map(|place| &windows.at(place).bodies);
            Some(without(&[gap], &joined(bodies.copied())))
        };
        let reruns: Vec<Rerun> = alone.chain(of_in).collect();
        let mut first_steps = vec![None; layers as usize];
        for rerun in &reruns {
            let known: &mut Option<u32> = &mut first_steps[rerun.place as usize];
            *known = Some(known.map_or(rerun.backward_start, |known| {
                known.min(rerun.backward_start)
            }));
        }
        Self {
            gaps: (0..layers).map(gap).collect(),
            first_steps,
            reruns,
        }
    }

    fn gap(&self, place: u32) -> Option<&[(u32, u32)]> {
        self.gaps.get(place as usize)?.as_deref()
    }

    /// Steps that run again, for backward passes of places that satisfy `is_of`, while variables
    /// that are live on `ranges` are kept, without `ranges` themselves. Each entry has the place
    /// whose steps they are, which a stage must have; `None` where several places share the steps.
    fn held(&self, ranges: &[(u32, u32)], is_of: impl Fn(u32) -> bool) -> Vec<Held> {
        let mut found: BTreeMap<u32, Steps> = BTreeMap::new();
        for rerun in self.reruns.iter().filter(|rerun| is_of(rerun.place)) {
            let begun = ranges.partition_point(|&(from, _)| from < rerun.backward_start);
            let last = begun.checked_sub(1).map(|last| ranges[last]);
            if last.is_some_and(|(_, to)| rerun.backward_start < to) {
                let steps = found.entry(rerun.runs).or_default();
                steps.extend(without(&[rerun.steps], ranges));
            }
        }
        let found = found.into_iter();
        let found = found.map(|(place, steps)| (place, joined(steps)));
        let found = together(&found.collect::<Vec<_>>()).into_iter();
        let held = found.map(|(places, steps)| match places[..] {
            [place] => (Some(place), steps),
            _ => (None, steps),
        });
        held.collect()
    }

    /// When variables of a flow are live: in every stage that counts them, and in stages that have
    /// certain users of the flow.
    pub(super) fn lives(&self, flow: &Flow, is_layered: bool, ranges: &[(u32, u32)]) -> Lives {
        let maker = flow.maker();
        match flow.life {
            Life::Forward => {
                let runs = |place: u32| self.first_step(place).is_some();
                let again = |&&place: &&u32| Some(place) != maker && runs(place);
                let others: Vec<u32> = flow.forward.iter().filter(again).copied().collect();
                let until = others.iter().filter_map(|&place| self.first_step(place));
                let until = until.min();
                let kept = ranges.first().zip(until);
                let kept = kept.map(|(&(from, _), until)| (from, until.max(from)));
                Lives {
                    everywhere: vec![(None, ranges.into())],
                    beside: vec![(None, without(kept.as_slice(), ranges))],
                    others,
                }
            }
            Life::AcrossPasses if is_layered => {
                let found = maker.and_then(|maker| Some((maker, self.gap(maker)?)));
                let Some((maker, gap)) = found else {
                    return self.held_alone(ranges);
                };
                // In runs with the first layer.
                let is_own = |place: u32| place.max(1) == maker.max(1);
                let of_others = self.held(ranges, |place| !is_own(place));
                let all = of_others
                    .iter()
                    .flat_map(|(_, steps)| steps.iter().copied());
                let all = joined(all);
                let of_own = self.held(ranges, is_own).into_iter();
                let (mut everywhere, mut beside) = (Vec::new(), Vec::new());
                beside.extend(of_own.map(|(place, steps)| (place, without(&steps, &all))));
                for (place, steps) in of_others.into_iter().chain([(None, ranges.into())]) {
                    let kept = without(&steps, gap);
                    beside.push((place, without(&steps, &kept)));
                    everywhere.push((place, kept));
                }
                let users = flow.forward.iter().chain(&flow.backward).copied();
                Lives {
                    everywhere,
                    beside,
                    others: users.filter(|&user| user != maker).collect(),
                }
            }
            Life::AcrossPasses | Life::Backward => self.held_alone(ranges),
        }
    }

    /// When variables are live that stay as recorded, since only backward passes free them.
    fn held_alone(&self, ranges: &[(u32, u32)]) -> Lives {
        let mut everywhere = self.held(ranges, |_| true);
        everywhere.push((None, ranges.into()));
        Lives {
            everywhere,
            ..Lives::default()
        }
    }

    /// The steps of a position, until its second run if the variable is an input of its forward
    /// pass.
    pub(super) fn until_rerun(&self, flow: &Flow, (position, steps): &OfPosition) -> Steps {
        let is_given = flow.forward.contains(position) && flow.maker() != Some(*position);
        let until = self.first_step(*position).filter(|_| is_given);
        let kept = steps.first().zip(until);
        let kept = kept.map(|(&(from, _), until)| (from, until));
        joined(steps.iter().copied().chain(kept))
    }

    /// The first step of the backward pass of a place, if the place runs again.
    fn first_step(&self, place: u32) -> Option<u32> {
        *self.first_steps.get(place as usize)?
    }
}

/// Steps at which variables are live, with a place that a stage must have if they are kept while it
/// runs again.
pub(super) type Held = (Option<u32>, Steps);

/// When variables are live.
#[derive(Debug, Default)]
pub(super) struct Lives {
    pub(super) everywhere: Vec<Held>,
    /// Live only in stages with any of `others`.
    pub(super) beside: Vec<Held>,
    pub(super) others: Vec<u32>,
}
