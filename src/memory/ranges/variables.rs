//! The variables of neighbouring tiles, prepared for computing the peaks of ranges of layers that
//! grow layer by layer.

use crate::{
    limits,
    memory::MemoryModel,
    memory::entering::{Entries, GrowingSums},
    memory::lanes,
    memory::pipeline::PHASES,
    memory::uses::NeighbourUses,
    model::{EVERYWHERE, PlaceSet, TooManyPlaces},
};

/// A live range of variables on neighbouring tiles, as a range of *places* from `from` to `to`
/// (exclusive). A place is a liveness step at which a peak is possible, identified by its index in
/// the list of all such steps.
#[derive(Clone, Copy, Default)]
pub struct Stretch {
    pub from: u32,
    pub to: u32,
    pub row: u32,
}

/// A live range of variables (of one equivalence class and use set) on neighbouring tiles, and the
/// positions (In, layers, Out) that a stage must have for the live range to apply.
struct LiveRange {
    steps: (u32, u32),
    row: u32,
    /// Selects the stages in which the variables are live at `steps`: those that contain at least
    /// one position (In, a layer or Out) of the [`PlaceSet`] and, unless it is `None`, also the
    /// second position. For example, recomputing a layer keeps variables live only in stages with
    /// this layer.
    part: (PlaceSet, Option<u32>),
}

/// A flag of liveness steps at which variables begin to be live. Live bytes rise there, so such a
/// step or a later one may have a peak.
const BEGINS: u8 = 1;
/// A flag of liveness steps at which variables are no longer live. Live bytes fall there, so the
/// step before may have a peak.
const ENDS: u8 = 2;
/// A flag of the first and the last liveness step of each phase and of each layer. The highest live
/// bytes within the phase or layer may be at these steps, even if live bytes rise further outside
/// it.
const EDGE: u8 = 4;

/// The variables of up to `N` tiles, by the layers that use them: when a range of layers grows, it
/// gains a variable with the first layer that uses the variable. Also the *places*: the liveness
/// steps at which a peak is possible. The buffers are reused for further tiles.
#[derive(Default)]
pub struct EnteringVariables<const N: usize> {
    live: Vec<LiveRange>,
    /// The number of places (liveness steps at which a peak is possible).
    pub places: usize,
    /// One entry per liveness step, as a sum of flags: [`BEGINS`] if variables begin to be live
    /// there, [`ENDS`] if variables cease to be live there, and [`EDGE`] if a layer or phase begins
    /// or ends there. These flags determine which steps may have a peak.
    marks: Vec<u8>,
    /// One entry per phase, such as the backward pass (see [`PHASES`]): its range of places (steps
    /// at which a peak is possible; end exclusive), which is empty if the phase has no steps.
    pub phases: [(usize, usize); PHASES],
    /// One entry per liveness step: the number of earlier steps at which a peak is possible. For a
    /// step at which a peak is possible, this is its index in the list of such steps. Only steps
    /// with a flag in `marks` have a valid entry.
    rank: Vec<u32>,
    /// The liveness steps of variables that are not always live, each stored for the layers that
    /// use the variable: when layers are added to a stage one by one, the stage gains the variable
    /// with the first such layer. Variables of every stage are stored for one more layer after the
    /// last.
    pub moving: Entries<Stretch>,
    /// The sum of the bytes of all live ranges, on the tile where this sum is highest. Sums of live
    /// bytes never exceed this number, so it determines whether 32 bits are enough for them.
    pub most: u64,
}

impl<const N: usize> EnteringVariables<N> {
    /// Loads the variables of `uses` (groups of variables on the tiles to examine next). Adds the
    /// bytes of variables that are live at every step to `always`. Stores the live ranges of all
    /// other variables in `self`, and finds the steps at which a peak is possible.
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
                    self.live
                        .extend(live.iter().map(|&steps| LiveRange { steps, row, part }));
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

    /// Finds the *places*, the liveness steps at which a peak is possible:
    ///
    /// - the first and the last step of each layer and phase
    /// - the last step before variables cease to be live, if a variable has begun to be live since
    ///   the previous place
    fn find_places(&mut self, model: &MemoryModel<'_>) {
        let steps = model.model.classes.steps() as usize + 1;
        self.marks.clear();
        self.marks.resize(steps, 0);
        for LiveRange { steps, .. } in &self.live {
            self.marks[steps.0 as usize] |= BEGINS;
            self.marks[steps.1 as usize] |= ENDS;
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
                    // The negative of a live range, which cancels it for starts to which it no
                    // longer applies, is the same live range with swapped ends: bytes are added
                    // where a live range begins and subtracted where it ends.
                    let undo = Stretch {
                        from: to,
                        to: from,
                        row,
                    };
                    self.moving.enter_with(layers, with, stretch, undo);
                }
            }
        }
        self.most = lanes::highest(&sums);
        self.moving.check()
    }

    /// Returns the smallest window that contains both `window` and the steps of a layer or phase.
    /// `layer` is the first and the last of these steps (both inclusive); `None` if there are none.
    /// Windows are ranges (end exclusive) of indices into the list of liveness steps at which a
    /// peak is possible; `None` if they are empty.
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
