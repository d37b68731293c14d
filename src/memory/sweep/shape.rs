//! What the variables of some neighbouring tiles have in common, in the form that the
//! sweep needs.

use crate::limits;
use crate::memory::MemoryModel;
use crate::memory::liveness::{StepSet, visit};
use crate::memory::neighbours::{LiveRanges, NeighbourUses};
use crate::model::{EVERYWHERE, NOWHERE, PlaceSet, TooManyPlaces};

/// Where the variables of each use count, and when they are live; its memory is used
/// again for the next tiles.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// By number of the use: where it counts; [`NOWHERE`] if no stage has it.
    counted: Vec<PlaceSet>,
    /// First as steps, then as places.
    live: LiveRanges,
    /// How many steps can hold a peak.
    pub(super) places: usize,
    begins: StepSet,
    ends: StepSet,
    /// Where windows begin or end: these steps are kept.
    edges: StepSet,
    /// By step that is marked, how many of those that can hold a peak lie
    /// before it.
    rank: Vec<u32>,
}

impl Shape {
    /// Takes the uses of some tiles.
    ///
    /// # Errors
    /// When there is more on them than on any real tile.
    pub(super) fn load(
        &mut self,
        model: &MemoryModel<'_>,
        uses: &NeighbourUses,
    ) -> Result<(), TooManyPlaces> {
        let steps = model.model.classes.steps() as usize + 1;
        self.begins.restart(steps);
        self.ends.restart(steps);
        self.counted.clear();
        self.live.clear();
        for (class, set) in uses.all() {
            self.take(model, class, set);
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
        Ok(())
    }

    /// Takes a use, which no stage has that has none of its places, or that is made
    /// again layer by layer.
    fn take(&mut self, model: &MemoryModel<'_>, class: u32, set: u32) {
        let counted = model.counted(set);
        let is_nowhere = counted != EVERYWHERE && model.sets.places(counted).is_empty();
        if is_nowhere || model.is_recomputed(class, set) {
            self.counted.push(NOWHERE);
            self.live.push(Some(&[]));
        } else {
            self.counted.push(counted);
            self.live.push(model.live_ranges(class));
        }
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
    }

    /// Where the variables of a use count, by its number.
    #[inline]
    pub(super) fn counted(&self, number: usize) -> PlaceSet {
        self.counted[number]
    }

    /// The stretches of places on which they are live, some of them empty; `None` if
    /// they are live on all steps.
    #[inline]
    pub(super) fn stretches(&self, number: usize) -> Option<&[(u32, u32)]> {
        self.live.of(number)
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
