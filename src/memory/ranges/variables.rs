//! Variables of neighbouring tiles, in the form in which they enter ranges.

use crate::limits;
use crate::memory::MemoryModel;
use crate::memory::entering::{Entries, GrowingSums};
use crate::memory::lanes;
use crate::memory::neighbours::{LiveRanges, NeighbourUses};
use crate::memory::pipeline::PHASES;
use crate::memory::steps::{StepSet, visit};
use crate::model::{EVERYWHERE, PlaceSet, TooManyPlaces};

/// Places (end exclusive) in the list of steps at which the variables of a use are live.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stretch {
    pub(super) from: u32,
    pub(super) to: u32,
    /// The row of the use.
    pub(super) row: u32,
}

/// At which layers the variables of some tiles enter ranges; reused for the next tiles.
#[derive(Debug, Default)]
pub(super) struct EnteringVariables<const N: usize> {
    /// Row of each use, the places that count it, and a position that ranges must have too: several
    /// times where stages differ in when it is live.
    counted: Vec<(u32, (PlaceSet, Option<u32>))>,
    /// By entry of `counted`: its ranges, first as steps, then as places.
    live: LiveRanges,
    /// Number of steps that can hold a peak.
    pub(super) places: usize,
    begins: StepSet,
    ends: StepSet,
    /// Steps where windows begin or end, which are always places.
    edges: StepSet,
    /// By phase, its places, end exclusive.
    pub(super) phases: [(usize, usize); PHASES],
    /// By step in any of the three sets: number of places before it.
    rank: Vec<u32>,
    /// Uses that are live on some steps.
    pub(super) moving: Entries<Stretch>,
    /// Variables of every stage that are live on some steps.
    pub(super) everywhere: Vec<Stretch>,
    /// Bytes of all stretches together on the tile with the most.
    pub(super) most: u64,
}

impl<const N: usize> EnteringVariables<N> {
    /// Loads the variables of some tiles; those that are live on every step go to `always`.
    ///
    /// # Errors
    /// When the tiles have more variables than any real tile.
    pub(super) fn load(
        &mut self,
        model: &MemoryModel<'_>,
        uses: &NeighbourUses<N>,
        always: &mut GrowingSums<N, 1>,
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
        self.enter(model, uses, always)
    }

    /// Finds the steps that can hold a peak: the last before an end, if a variable began since the
    /// place before, and both ends of each window and phase.
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

    /// Adds the entries of the uses that a stage can have.
    fn enter(
        &mut self,
        model: &MemoryModel<'_>,
        uses: &NeighbourUses<N>,
        always: &mut GrowingSums<N, 1>,
    ) -> Result<(), TooManyPlaces> {
        self.moving.restart(model.layers());
        always.restart(model.layers());
        self.everywhere.clear();
        let mut sums = [0; N];
        for (entry, &(row, (counted, with))) in self.counted.iter().enumerate() {
            let bytes = uses.bytes(row as usize).map(u64::from);
            let Some(stretches) = self.live.of(entry) else {
                always.enter(model, counted, 0, bytes);
                continue;
            };
            let layers = model.sets.places(counted);
            for &(from, to) in stretches.iter().filter(|(from, to)| from != to) {
                let what = Stretch { from, to, row };
                if counted == EVERYWHERE {
                    self.everywhere.push(what);
                }
                lanes::add(&mut sums, &bytes);
                match with {
                    None => self.moving.enter(layers, what),
                    Some(with) => {
                        // A stretch with its ends swapped takes the stretch back.
                        let (from, to) = (to, from);
                        let undo = Stretch { from, to, row };
                        self.moving.enter_with(layers, with, what, undo);
                    }
                }
            }
        }
        self.most = lanes::highest(&sums);
        always.check()?;
        self.moving.check()
    }

    /// The smallest window (places, end exclusive) that covers `window` and the window of one more
    /// layer.
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
