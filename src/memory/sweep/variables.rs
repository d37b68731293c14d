//! The variables of neighbouring tiles, in the form that the sweep needs.

use super::entries::Entries;
use crate::limits;
use crate::memory::MemoryModel;
use crate::memory::lanes::{self, ByLane, add_up};
use crate::memory::liveness::{StepSet, visit};
use crate::memory::neighbours::{LiveRanges, NeighbourUses};
use crate::memory::pipeline::PHASES;
use crate::model::{EVERYWHERE, PlaceSet, TooManyPlaces};

/// A stretch of the list of steps on which the variables of a use are live.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stretch {
    pub(super) from: u32,
    pub(super) to: u32,
    /// The row of the use.
    pub(super) row: u32,
}

/// Where the variables of some tiles enter ranges of layers; used again for the next.
#[derive(Debug, Default)]
pub(super) struct SweepVariables<const N: usize> {
    /// Rows of the uses, each with where it counts and what position ranges must have too:
    /// once, or several times where it is live at other steps in some stages.
    counted: Vec<(u32, (PlaceSet, Option<u32>))>,
    /// By entry of these.
    /// First as steps, then as places.
    live: LiveRanges,
    /// How many steps can hold a peak.
    pub(super) places: usize,
    begins: StepSet,
    ends: StepSet,
    /// Where windows begin or end: these steps are kept.
    edges: StepSet,
    /// By phase of a pipeline: its places, end exclusive.
    pub(super) phases: [(usize, usize); PHASES],
    /// By step that is marked, how many of those that can hold a peak lie
    /// before it.
    rank: Vec<u32>,
    /// Uses that are not live on all steps.
    pub(super) moving: Entries<Stretch>,
    /// Uses that are, by row.
    pub(super) always: Entries<u32>,
    /// Variables that every stage has: live on some steps, and on all, by lane.
    pub(super) everywhere: Vec<Stretch>,
    pub(super) always_everywhere: ByLane<u64, N>,
    /// The highest bytes of one tile that all stretches have together.
    pub(super) most: u64,
}

impl<const N: usize> SweepVariables<N> {
    /// Takes the variables of some tiles.
    ///
    /// # Errors
    /// When there is more on them than on any real tile.
    pub(super) fn load(
        &mut self,
        model: &MemoryModel<'_>,
        uses: &NeighbourUses<N>,
    ) -> Result<(), TooManyPlaces> {
        let steps = model.model.classes.steps() as usize + 1;
        self.begins.restart(steps);
        self.ends.restart(steps);
        self.counted.clear();
        self.live.clear();
        for (row, &number) in (0u32..).zip(uses.numbers()) {
            model.each_life(number, |counted, live| {
                if counted.0 == EVERYWHERE || !model.sets.places(counted.0).is_empty() {
                    self.counted.push((row, counted));
                    self.live.push(live);
                }
            });
        }
        for &(from, to) in self.live.all() {
            self.begins.add(from);
            self.ends.add(to);
        }
        self.find_places(model);
        if self.places.saturating_mul(model.layers()) > limits::CELLS {
            return Err(TooManyPlaces);
        }
        let place = |step: u32| self.rank[step as usize];
        self.live.map(|(from, to)| (place(from), place(to)));
        self.enter(model, uses)
    }

    /// Finds the steps that can hold a peak: the last before an end, if
    /// anything began since the step found before, and both ends of each
    /// layer's window.
    fn find_places(&mut self, model: &MemoryModel<'_>) {
        let steps = model.model.classes.steps() as usize + 1;
        self.edges.restart(steps);
        for (first, last) in (0..model.layers()).filter_map(|layer| model.layer_window(layer)) {
            self.edges.add(first);
            self.edges.add(last);
        }
        let phases = &model.phases;
        for phase in phases.iter().filter(|phase| !phase.is_empty()) {
            self.edges.add(phase.start);
            self.edges.add(phase.end - 1);
        }
        self.rank.resize(steps, 0);
        let mut places = 0;
        let mut began = false;
        let sets = [&self.begins, &self.ends, &self.edges];
        visit(sets, |step, [begins, ends, is_edge]| {
            places += u32::from(began && ends);
            began &= !ends;
            self.rank[step as usize] = places;
            places += u32::from(is_edge);
            began = (began || begins) && !is_edge;
        });
        self.places = places as usize;
        let place = |step: u32| self.rank[step as usize] as usize;
        self.phases = [(0, 0); PHASES];
        let phases = self.phases.iter_mut().zip(phases);
        for (ends, steps) in phases.filter(|(_, steps)| !steps.is_empty()) {
            *ends = (place(steps.start), place(steps.end - 1) + 1);
        }
    }

    /// Enters the uses that a stage can have.
    fn enter(
        &mut self,
        model: &MemoryModel<'_>,
        uses: &NeighbourUses<N>,
    ) -> Result<(), TooManyPlaces> {
        self.moving.restart(model.layers());
        self.always.restart(model.layers());
        self.everywhere.clear();
        self.always_everywhere = ByLane::default();
        let mut left = limits::ENTRIES;
        let mut sums = [0; N];
        for (entry, &(row, (counted, with))) in self.counted.iter().enumerate() {
            let layers = model.sets.places(counted);
            let is_everywhere = counted == EVERYWHERE;
            let bytes = uses.bytes(row as usize).map(u64::from);
            let Some(stretches) = self.live.of(entry) else {
                if is_everywhere {
                    add_up(&mut self.always_everywhere, &bytes);
                }
                left = left.checked_sub(layers.len()).ok_or(TooManyPlaces)?;
                self.always.enter(layers, row);
                continue;
            };
            for &(from, to) in stretches {
                left = left.checked_sub(layers.len().max(1)).ok_or(TooManyPlaces)?;
                if from == to {
                    continue;
                }
                let what = Stretch { from, to, row };
                if is_everywhere {
                    self.everywhere.push(what);
                }
                add_up(&mut sums, &bytes);
                match with {
                    None => self.moving.enter(layers, what),
                    Some(with) => {
                        // A life that begins where it ended, and the reverse, takes it back.
                        let (from, to) = (to, from);
                        let undo = Stretch { from, to, row };
                        self.moving.enter_with(layers, with, what, undo);
                    }
                }
            }
        }
        self.most = lanes::highest(&sums);
        Ok(())
    }

    /// The window that covers `window` and that of one more layer, in places,
    /// end exclusive.
    pub(super) fn widened(
        &self,
        window: Option<(usize, usize)>,
        layer: Option<(u32, u32)>,
    ) -> Option<(usize, usize)> {
        let Some((first, last)) = layer else {
            return window;
        };
        let place = |step: u32| self.rank[step as usize] as usize;
        let (first, end) = (place(first), place(last) + 1);
        let (from, to) = window.unwrap_or((first, end));
        Some((from.min(first), to.max(end)))
    }
}
