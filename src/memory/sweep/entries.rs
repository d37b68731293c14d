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

    /// The sums from `start` on.
    pub(super) fn from(&self, start: usize) -> impl Iterator<Item = (usize, What)> {
        let entries = self.0[start].iter();
        entries.map(|entry| (entry.layer as usize, entry.what))
    }
}
