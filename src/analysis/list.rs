//! A list whose entries can be borrowed while others are added.

use std::cell::OnceCell;
use std::iter;

/// A list to whose end entries are added through a shared reference.
#[derive(Debug)]
pub(crate) struct List<T>(OnceCell<Box<(T, List<T>)>>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(OnceCell::new())
    }
}

impl<T> List<T> {
    /// Iterates over the entries, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let first = self.0.get();
        iter::successors(first, |entry| entry.1.0.get()).map(|entry| &entry.0)
    }

    /// Adds `entry` to the end.
    pub fn push(&self, entry: T) -> &T {
        let mut end = self;
        while let Some(entry) = end.0.get() {
            end = &entry.1;
        }
        &end.0.get_or_init(|| Box::new((entry, Self::default()))).0
    }
}
