//! At which layers something enters a growing range.

/// Bytes that enter ranges at `layer`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LayerEntry<What> {
    pub(super) layer: u32,
    pub(super) what: What,
}

/// Entries by the first start from which they count: one more than the last
/// layer before theirs that has the same.
#[derive(Debug, Default)]
pub(super) struct Entries<What>(Vec<Vec<LayerEntry<What>>>);

impl<What: Copy> Entries<What> {
    /// Forgets everything, for so many layers.
    pub(super) fn restart(&mut self, layers: usize) {
        self.0.resize_with(layers, Vec::new);
        self.0.iter_mut().for_each(Vec::clear);
    }

    /// Enters what all of `layers` have: at each of them, into the ranges that
    /// start after the one before it.
    pub(super) fn enter(&mut self, layers: &[u32], what: What) {
        let mut start = 0;
        for &layer in layers {
            self.0[start].push(LayerEntry { layer, what });
            start = layer as usize + 1;
        }
    }

    /// Enters what those ranges have that have one of `layers` and `with` too: at the later of
    /// both. Ranges that start after `with` take it back, by `undo`.
    pub(super) fn enter_with(&mut self, layers: &[u32], with: u32, what: What, undo: What) {
        let (before, after) = layers.split_at(layers.partition_point(|&layer| layer <= with));
        let mut enter = |start: u32, layer: u32, what| {
            self.0[start as usize].push(LayerEntry { layer, what });
        };
        let mut start = 0;
        if let Some(&last) = before.last() {
            enter(0, with, what);
            start = last + 1;
            if last < with {
                enter(start, with, undo);
            }
        }
        if let Some(&layer) = after.first().filter(|_| start <= with) {
            enter(start, layer, what);
            enter(with + 1, layer, undo);
        }
    }

    /// The sums from `start` on.
    pub(super) fn from(&self, start: usize) -> impl Iterator<Item = (usize, What)> {
        let entries = self.0[start].iter();
        entries.map(|entry| (entry.layer as usize, entry.what))
    }
}
