//! What the variables of some neighbouring tiles have in common, in the form that the
//! sweep needs.

use crate::limits;
use crate::memory::MemoryModel;
use crate::memory::liveness::{StepSet, visit};
use crate::memory::neighbours::Uses;
use crate::model::{EVERYWHERE, NOWHERE, PlaceSet, TooManyPlaces};

/// Where the variables of each use count, and when they are live; its memory is used
/// again for the next tiles.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// By number in [`Uses`].
    rows: Vec<Row>,
    /// Live ranges (half-open) of the rows: first as steps, then as places.
    stretches: Vec<(u32, u32)>,
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

/// Variables of one class and user set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// [`NOWHERE`] if no stage has them.
    pub(super) counted: PlaceSet,
    first: u32,
    /// How many stretches; `None` if they are live on all steps.
    count: Option<u32>,
}

impl Shape {
    /// Takes the uses of some tiles.
    ///
    /// # Errors
    /// When there is more on them than on any real tile.
    pub(super) fn load(
        &mut self,
        model: &MemoryModel<'_>,
        uses: &Uses,
    ) -> Result<(), TooManyPlaces> {
        let steps = model.model.classes.steps() as usize + 1;
        self.begins.restart(steps);
        self.ends.restart(steps);
        self.rows.clear();
        self.stretches.clear();
        for (class, set) in uses.all() {
            let row = self.found(model, class, set);
            self.rows.push(row);
        }
        self.find_places(model);
        if self.places.saturating_mul(model.layers()) > limits::CELLS {
            return Err(TooManyPlaces);
        }
        for (from, to) in &mut self.stretches {
            (*from, *to) = (self.rank[*from as usize], self.rank[*to as usize]);
        }
        Ok(())
    }

    /// Marks where variables of a use begin and end to be live.
    fn found(&mut self, model: &MemoryModel<'_>, class: u32, set: u32) -> Row {
        let counted = model.counted(set);
        let is_nowhere = counted != EVERYWHERE && model.sets.places(counted).is_empty();
        let first = self.stretches.len() as u32;
        let mut row = Row {
            counted,
            first,
            count: Some(0),
        };
        if is_nowhere || model.is_recomputed(class, set) {
            row.counted = NOWHERE;
            return row;
        }
        let ranges = model.live_ranges(class);
        for &(from, to) in ranges.into_iter().flatten() {
            self.begins.add(from);
            self.ends.add(to);
            self.stretches.push((from, to));
        }
        row.count = ranges.map(|ranges| ranges.len() as u32);
        row
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

    /// The variables of a use, by its number.
    #[inline]
    pub(super) fn row(&self, number: usize) -> &Row {
        &self.rows[number]
    }

    /// The stretches of places on which they are live, some of them empty; `None` if
    /// they are live on all steps.
    #[inline]
    pub(super) fn stretches(&self, row: &Row) -> Option<&[(u32, u32)]> {
        let first = row.first as usize;
        let count = row.count? as usize;
        Some(&self.stretches[first..first + count])
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
