//! The variables of neighbouring tiles, prepared for computing ranges that grow layer by layer.

use crate::limits;
use crate::memory::MemoryModel;
use crate::memory::entering::{Entries, GrowingSums};
use crate::memory::lanes;
use crate::memory::pipeline::PHASES;
use crate::memory::uses::NeighbourUses;
use crate::model::{EVERYWHERE, PlaceSet, TooManyPlaces};

/// A live range of the variables of one row of [`NeighbourUses`], as the *places* from `from` to
/// `to` (end exclusive). A place is a step at which a peak is possible; its number is its index in
/// the list of all such steps.
#[derive(Clone, Copy, Default)]
pub(super) struct Stretch {
    pub from: u32,
    pub to: u32,
    /// The row of the variables, as an index into [`NeighbourUses::rows`].
    pub row: u32,
}

/// A live range of the variables of one row (a use on neighbouring tiles), and the positions that a
/// stage must have for this live range to apply.
struct LiveRange {
    /// The half-open steps at which the variables are live.
    steps: (u32, u32),
    /// The row of the variables, as an index into [`NeighbourUses::rows`].
    row: u32,
    /// A set of positions, of which a stage must have at least one for the live range to apply, and
    /// one more position that the stage must have; `None` if there is no such further condition.
    part: (PlaceSet, Option<u32>),
}

/// The bit of [`EnteringVariables::marks`] for a step at which variables begin to be live.
const BEGINS: u8 = 1;
/// The bit of [`EnteringVariables::marks`] for a step before which variables cease to be live.
const ENDS: u8 = 2;
/// The bit of [`EnteringVariables::marks`] for the first and the last step of a phase or of the
/// steps of a layer. A peak is always possible at these steps.
const EDGE: u8 = 4;

/// The variables of up to `N` tiles, ordered by the layers at which growing ranges gain them. A
/// *place* is a step at which a peak is possible. The same buffers are used for one group of tiles
/// after the other.
#[derive(Default)]
pub(super) struct EnteringVariables<const N: usize> {
    /// The live ranges of variables that are not live at every step.
    live: Vec<LiveRange>,
    /// The number of places: steps at which a peak is possible.
    pub places: usize,
    /// One entry per step: the sum of the bits among [`BEGINS`], [`ENDS`] and [`EDGE`] that apply
    /// to the step; 0 if none applies.
    marks: Vec<u8>,
    /// One entry per phase (see [`PHASES`]): its range of places (end exclusive), which is empty if
    /// the phase has no steps.
    pub phases: [(usize, usize); PHASES],
    /// One entry per step: the number of places before the step if the step has a mark. The entries
    /// of other steps have no meaning.
    rank: Vec<u32>,
    /// The variables that are not live at every step, as items that ranges gain at certain layers.
    /// Variables that every stage has are stored at an additional layer after the last.
    pub moving: Entries<Stretch>,
    /// The sum of the bytes of all live ranges on the tile where this sum is highest. No sum of
    /// live bytes exceeds it.
    pub most: u64,
}

impl<const N: usize> EnteringVariables<N> {
    /// Replaces the contents by the variables of `uses`, which has the uses of some tiles.
    /// Variables that are live at every step go to `always` instead, whose contents they replace.
    ///
    /// # Errors
    /// If the tiles have more variables than any real tile.
    pub fn load(
        &mut self,
        model: &MemoryModel<'_>,
        uses: &NeighbourUses<N>,
        always: &mut GrowingSums<N, 1>,
    ) -> Result<(), TooManyPlaces> {
        always.restart(model.layers());
        self.live.clear();
        for (row, &(number, bytes)) in (0u32..).zip(&uses.rows) {
            model.each_life(number, |part, live| match live {
                None => always.enter(model, part.0, 0, bytes.map(u64::from)),
                Some(_) if part.0 != EVERYWHERE && model.sets.places(part.0).is_empty() => {}
                Some(live) => {
                    let ranges = live.iter().map(|&steps| LiveRange { steps, row, part });
                    self.live.extend(ranges);
                }
            });
        }
        self.find_places(model);
        if self.places.saturating_mul(model.layers()) > limits::CELLS {
            return Err(TooManyPlaces);
        }
        always.entries.check()?;
        self.enter(model, uses)
    }

    /// Finds the places (steps at which a peak is possible). These are the first and the last step
    /// of each layer and phase, and the last step before variables cease to be live, if a variable
    /// has begun to be live since the previous place.
    fn find_places(&mut self, model: &MemoryModel<'_>) {
        let steps = model.model.classes.steps() as usize + 1;
        self.marks.clear();
        self.marks.resize(steps, 0);
        for &LiveRange {
            steps: (from, to), ..
        } in &self.live
        {
            self.marks[from as usize] |= BEGINS;
            self.marks[to as usize] |= ENDS;
        }
        let of_phases = model
            .phases
            .each_ref()
            .map(|steps| (!steps.is_empty()).then(|| (steps.start, steps.end - 1)));
        let of_layers = (0..model.layers()).map(|layer| model.layer_window(layer));
        for (first, last) in of_layers.chain(of_phases).flatten() {
            self.marks[first as usize] |= EDGE;
            self.marks[last as usize] |= EDGE;
        }
        self.rank.resize(steps, 0);
        let mut places = 0;
        let mut began = false;
        for (mark, rank) in self
            .marks
            .iter()
            .zip(&mut self.rank)
            .filter(|(mark, _)| **mark != 0)
        {
            let has = |one: u8| mark & one != 0;
            places += u32::from(began && has(ENDS));
            began &= !has(ENDS);
            *rank = places;
            places += u32::from(has(EDGE));
            began = (began || has(BEGINS)) && !has(EDGE);
        }
        self.places = places as usize;
        self.phases = of_phases.map(|steps| self.widened(None, steps).unwrap_or_default());
    }

    /// Adds the variables in `live` to `moving`.
    ///
    /// # Errors
    /// If the tiles have more variables than any real tile.
    fn enter(
        &mut self,
        model: &MemoryModel<'_>,
        uses: &NeighbourUses<N>,
    ) -> Result<(), TooManyPlaces> {
        self.moving.restart(model.layers());
        let after_last = [model.layers() as u32];
        let mut sums = [0; N];
        for &LiveRange {
            steps,
            row,
            part: (counted, with),
        } in &self.live
        {
            let [from, to] = [steps.0, steps.1].map(|step| self.rank[step as usize]);
            if from == to {
                continue;
            }
            let layers = match counted {
                EVERYWHERE => &after_last,
                _ => model.sets.places(counted),
            };
            let stretch = Stretch { from, to, row };
            lanes::add(&mut sums, &uses.bytes(row).map(u64::from));
            match with {
                None => self.moving.enter(layers, stretch),
                Some(with) => {
                    // A stretch whose ends are swapped cancels the original stretch.
                    let (from, to) = (to, from);
                    let undo = Stretch { from, to, row };
                    self.moving.enter_with(layers, with, stretch, undo);
                }
            }
        }
        self.most = lanes::highest(&sums);
        self.moving.check()
    }

    /// Returns the smallest window of places (end exclusive) that covers both the places of
    /// `window` and the steps of one more layer or phase, `layer` (first and last step, both
    /// inclusive; both must have a mark in `marks`). In
    /// the arguments and in the result, `None` means that there are no steps.
    pub fn widened(
        &self,
        window: Option<(usize, usize)>,
        layer: Option<(u32, u32)>,
    ) -> Option<(usize, usize)> {
        let Some((first, last)) = layer else {
            return window;
        };
        let [first, last] = [first, last].map(|step| self.rank[step as usize] as usize);
        let end = last + 1;
        let (from, to) = window.unwrap_or((first, end));
        Some((from.min(first), to.max(end)))
    }
}
