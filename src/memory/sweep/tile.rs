//! One tile, in the form that the sweep needs.

use crate::limits;
use crate::memory::MemoryModel;
use crate::memory::liveness::{StepSet, visit};
use crate::model::{EVERYWHERE, PlaceSet, TooManyPlaces, VariableGroup};

/// Bytes that enter ranges at `layer`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LayerEntry<What> {
    pub(super) layer: u32,
    pub(super) what: What,
}

/// Entries by the first start from which they count: one more than the last
/// layer before theirs that has the same.
type ByStart<What> = Vec<Vec<LayerEntry<What>>>;

/// A stretch of the list of steps, and the bytes live there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) bytes: u32,
}

/// One tile; its memory is used again for the next.
#[derive(Debug, Default)]
pub(super) struct Tile {
    pub(super) number: usize,
    /// All bytes of variables that a stage may have.
    pub(super) variable_bytes: u64,
    /// How many steps can hold a peak.
    pub(super) places: usize,
    /// Variables that are not live on all steps.
    pub(super) moving: ByStart<Stretch>,
    /// Variables that are.
    pub(super) always: ByStart<u64>,
    /// Kinds of code and their bytes.
    pub(super) code: ByStart<(usize, u64)>,
    /// Variables that every stage has: live on some steps, and on all.
    pub(super) everywhere: Vec<Stretch>,
    pub(super) always_everywhere: u64,
    /// Code that every stage has, by kind.
    pub(super) code_everywhere: [u64; 4],
    /// The stretches of steps of these variables, with where they count.
    found: Vec<(Stretch, PlaceSet)>,
    begins: StepSet,
    ends: StepSet,
    /// Where windows begin or end: these steps are kept.
    edges: StepSet,
    /// By step that is marked, how many of those that can hold a peak lie
    /// before it.
    rank: Vec<u32>,
}

impl Tile {
    /// Takes tile `tile`, with its code as (code item, bytes).
    ///
    /// # Errors
    /// When there is more on it than on any real tile.
    pub(super) fn load(
        &mut self,
        model: &MemoryModel<'_>,
        tile: u32,
        code: &[(u32, u64)],
    ) -> Result<(), TooManyPlaces> {
        self.number = tile as usize;
        self.variable_bytes = 0;
        self.always_everywhere = 0;
        self.code_everywhere = [0; 4];
        self.everywhere.clear();
        clear(&mut self.moving, model.layers());
        clear(&mut self.always, model.layers());
        clear(&mut self.code, model.layers());
        self.find_variables(model, tile)?;
        self.find_places(model);
        if self.places.saturating_mul(model.layers()) > limits::CELLS {
            return Err(TooManyPlaces);
        }
        self.enter_variables(model);
        let mut left = limits::ENTRIES;
        for &(number, bytes) in code {
            let item = &model.code[number as usize];
            if item.set == EVERYWHERE {
                self.code_everywhere[item.kind as usize] += bytes;
            }
            let layers = model.sets.places(item.set);
            left = left.checked_sub(layers.len()).ok_or(TooManyPlaces)?;
            enter(layers, &mut self.code, (item.kind as usize, bytes));
        }
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

    /// Gathers the variables that a stage can have, and marks where they
    /// begin and end to be live.
    fn find_variables(&mut self, model: &MemoryModel<'_>, tile: u32) -> Result<(), TooManyPlaces> {
        let mut left = limits::ENTRIES;
        let steps = model.model.classes.steps() as usize + 1;
        self.found.clear();
        self.begins.restart(steps);
        self.ends.restart(steps);
        for &VariableGroup { class, set, bytes } in model.moving_or_always(tile) {
            let counted = model.counted(set);
            let layers = model.sets.places(counted);
            let everywhere = counted == EVERYWHERE;
            if layers.is_empty() && !everywhere {
                continue;
            }
            self.variable_bytes += u64::from(bytes);
            let Some(ranges) = model.live_ranges(class) else {
                let what = u64::from(bytes);
                self.always_everywhere += if everywhere { what } else { 0 };
                left = left.checked_sub(layers.len()).ok_or(TooManyPlaces)?;
                enter(layers, &mut self.always, what);
                continue;
            };
            for &(from, to) in ranges {
                left = left.checked_sub(layers.len().max(1)).ok_or(TooManyPlaces)?;
                self.begins.add(from);
                self.ends.add(to);
                self.found.push((Stretch { from, to, bytes }, counted));
            }
        }
        Ok(())
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

    /// Enters the variables that were found, with their stretches in places.
    fn enter_variables(&mut self, model: &MemoryModel<'_>) {
        for &(Stretch { from, to, bytes }, counted) in &self.found {
            let what = Stretch {
                from: self.rank[from as usize],
                to: self.rank[to as usize],
                bytes,
            };
            if what.from == what.to {
                continue;
            }
            if counted == EVERYWHERE {
                self.everywhere.push(what);
            }
            enter(model.sets.places(counted), &mut self.moving, what);
        }
    }
}

fn clear<What>(entries: &mut ByStart<What>, layers: usize) {
    entries.resize_with(layers, Vec::new);
    entries.iter_mut().for_each(Vec::clear);
}

/// Enters what all of `layers` have: at each of them, into the ranges that
/// start after the one before it.
fn enter<What: Copy>(layers: &[u32], entries: &mut ByStart<What>, what: What) {
    let mut start = 0;
    for &layer in layers {
        entries[start].push(LayerEntry { layer, what });
        start = layer as usize + 1;
    }
}
