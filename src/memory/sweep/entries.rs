//! At which layers bytes enter a growing range.

/// Something that enters ranges at `layer`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LayerEntry<What> {
    pub(super) layer: u32,
    pub(super) what: What,
}

/// Entries by the first start from which they count: the position after the previous layer with the
/// same entry, so that a range counts it once.
#[derive(Debug, Default)]
pub(super) struct Entries<What>(Vec<Vec<LayerEntry<What>>>);

impl<What: Copy> Entries<What> {
    /// Clears everything, for `layers` layers.
    pub(super) fn restart(&mut self, layers: usize) {
        self.0.resize_with(layers, Vec::new);
        self.0.iter_mut().for_each(Vec::clear);
    }

    /// Adds what all of `layers` have: at each layer, it enters ranges that start after the layer
    /// before.
    pub(super) fn enter(&mut self, layers: &[u32], what: What) {
        let mut start = 0;
        for &layer in layers {
            self.0[start].push(LayerEntry { layer, what });
            start = layer as usize + 1;
        }
    }

    /// Adds what ranges have that contain one of `layers`, and `with` too: it enters at the later
    /// of both. For ranges that start after `with`, `undo` takes it back.
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

    /// Entries that begin to count at `start`: layer, and what enters there.
    pub(super) fn from(&self, start: usize) -> impl Iterator<Item = (usize, What)> {
        let entries = self.0[start].iter();
        entries.map(|entry| (entry.layer as usize, entry.what))
    }
}
