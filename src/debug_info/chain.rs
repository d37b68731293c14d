//! From a context to its root.

use super::{DebugInfo, Position};

/// A context, its parent, and so on; made by [`DebugInfo::chain`].
#[derive(Clone, Debug)]
pub struct Chain<'a> {
    info: &'a DebugInfo,
    next: Option<Position>,
    /// Where the chain entered a cycle: that is where it closes.
    entry: Option<Position>,
}

impl<'a> Chain<'a> {
    pub(super) fn new(info: &'a DebugInfo, start: Option<Position>) -> Self {
        Self {
            info,
            next: start,
            entry: None,
        }
    }
}

impl Iterator for Chain<'_> {
    type Item = Position;

    fn next(&mut self) -> Option<Position> {
        let here = self.next?;
        let record = self.info.record(here);
        if record.on_cycle && self.entry.is_none() {
            self.entry = Some(here);
        }
        self.next = self.info.position(record.parent);
        if self.next == self.entry {
            self.next = None;
        }
        Some(here)
    }
}

impl std::iter::FusedIterator for Chain<'_> {}
