//! The variables of neighbouring tiles, prepared for ranges that grow layer by layer.

use crate::limits;
use crate::memory::MemoryModel;
use crate::memory::entering::{Entries, GrowingSums};
use crate::memory::lanes;
use crate::memory::neighbours::NeighbourUses;
use crate::memory::pipeline::PHASES;
use crate::model::{EVERYWHERE, PlaceSet, TooManyPlaces};

/// A live range of the variables of a use (class and use set), as places (end exclusive). A place
/// is a step at which a peak is possible, by its index in the list of such steps.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stretch {
    pub(super) from: u32,
    pub(super) to: u32,
    /// The row of the use in [`NeighbourUses`].
    pub(super) row: u32,
}

/// Marks a step at which variables begin to be live.
const BEGINS: u8 = 1;
/// Marks a step before which variables cease to be live.
const ENDS: u8 = 2;
/// Marks a step at which a window begins or ends, where a peak is always possible.
const EDGE: u8 = 4;

/// The variables of some tiles, by the layers at which ranges gain them. The buffers are reused for
/// the next tiles.
#[derive(Debug, Default)]
pub(super) struct EnteringVariables<const N: usize> {
    /// The half-open live ranges of uses that are not live at every step, in lists. A use has
    /// several lists if it is live at different steps in different stages.
    live: Vec<(u32, u32)>,
    /// For each list in `live`: the row of its use, its number of ranges, the positions that count
    /// it, and a position that stages must have too, if any.
    counted: Vec<(u32, usize, PlaceSet, Option<u32>)>,
    /// The number of *places*: the steps at which a peak is possible.
    pub(super) places: usize,
    /// For each step: a combination of [`BEGINS`], [`ENDS`] and [`EDGE`]; 0 for no mark.
    marks: Vec<u8>,
    /// For each phase: its range of places (steps at which a peak is possible), end exclusive.
    pub(super) phases: [(usize, usize); PHASES],
    /// For each step that has a mark: the number of places (steps at which a peak is possible)
    /// before it.
    rank: Vec<u32>,
    /// The variables that are not live at every step, by the layers at which ranges gain them.
    pub(super) moving: Entries<Stretch>,
    /// The variables that every stage has and that are not live at every step.
    pub(super) everywhere: Vec<Stretch>,
    /// The sum of the bytes of all stretches, on the tile with the most.
    pub(super) most: u64,
}

impl<const N: usize> EnteringVariables<N> {
    /// Loads the variables of some tiles. Variables that are live at every step are added to
    /// `always`.
    ///
    /// # Errors
    /// If the tiles have more variables than any real tile.
    pub(super) fn load(
        &mut self,
        model: &MemoryModel<'_>,
        uses: &NeighbourUses<N>,
        always: &mut GrowingSums<N, 1>,
    ) -> Result<(), TooManyPlaces> {
        always.restart(model.layers());
        self.counted.clear();
        self.live.clear();
        for (row, &number) in (0u32..).zip(uses.numbers()) {
            model.each_life(number, |(set, with), live| match live {
                None => {
                    let bytes = uses.bytes(row as usize).map(u64::from);
                    always.enter(model, set, 0, bytes);
                }
                Some(_) if set != EVERYWHERE && model.sets.places(set).is_empty() => {}
                Some(live) => {
                    self.counted.push((row, live.len(), set, with));
                    self.live.extend_from_slice(live);
                }
            });
        }
        self.find_places(model);
        if self.places.saturating_mul(model.layers()) > limits::CELLS {
            return Err(TooManyPlaces);
        }
        always.check()?;
        self.enter(model, uses)
    }

    /// Finds the places: the last step before variables cease to be live, if a variable has begun
    /// since the last place, and both ends of each window and phase.
    fn find_places(&mut self, model: &MemoryModel<'_>) {
        let steps = model.model.classes.steps() as usize + 1;
        self.marks.clear();
        self.marks.resize(steps, 0);
        for &(from, to) in &self.live {
            self.marks[from as usize] |= BEGINS;
            self.marks[to as usize] |= ENDS;
        }
        for (first, last) in (0..model.layers()).filter_map(|layer| model.layer_window(layer)) {
            self.marks[first as usize] |= EDGE;
            self.marks[last as usize] |= EDGE;
        }
        let phases = &model.phases;
        for phase in phases.iter().filter(|phase| !phase.is_empty()) {
            self.marks[phase.start as usize] |= EDGE;
            self.marks[phase.end as usize - 1] |= EDGE;
        }
        self.rank.resize(steps, 0);
        let mut places = 0;
        let mut began = false;
        let marked = self.marks.iter().zip(&mut self.rank);
        for (mark, rank) in marked.filter(|(mark, _)| **mark != 0) {
            let has = |one: u8| mark & one != 0;
            places += u32::from(began && has(ENDS));
            began &= !has(ENDS);
            *rank = places;
            places += u32::from(has(EDGE));
            began = (began || has(BEGINS)) && !has(EDGE);
        }
        self.places = places as usize;
        let place = |step: u32| self.rank[step as usize] as usize;
        self.phases = [(0, 0); PHASES];
        let phases = self.phases.iter_mut().zip(phases);
        for (ends, steps) in phases.filter(|(_, steps)| !steps.is_empty()) {
            *ends = (place(steps.start), place(steps.end - 1) + 1);
        }
    }

    /// Adds the variables that a stage can have to the layers at which ranges gain them.
    fn enter(
        &mut self,
        model: &MemoryModel<'_>,
        uses: &NeighbourUses<N>,
    ) -> Result<(), TooManyPlaces> {
        self.moving.restart(model.layers());
        self.everywhere.clear();
        let mut sums = [0; N];
        let mut live = self.live.iter();
        for &(row, count, counted, with) in &self.counted {
            let bytes = uses.bytes(row as usize).map(u64::from);
            let layers = model.sets.places(counted);
            for &(from, to) in live.by_ref().take(count) {
                let (from, to) = (self.rank[from as usize], self.rank[to as usize]);
                if from == to {
                    continue;
                }
                let stretch = Stretch { from, to, row };
                if counted == EVERYWHERE {
                    self.everywhere.push(stretch);
                }
                lanes::add(&mut sums, &bytes);
                match with {
                    None => self.moving.enter(layers, stretch),
                    Some(with) => {
                        // A stretch with swapped ends cancels the stretch.
                        let (from, to) = (to, from);
                        let undo = Stretch { from, to, row };
                        self.moving.enter_with(layers, with, stretch, undo);
                    }
                }
            }
        }
        self.most = lanes::highest(&sums);
        self.moving.check()
    }

    /// Returns the smallest window of places (end exclusive) that covers `window` and the steps of
    /// one more layer (both inclusive).
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
