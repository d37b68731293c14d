//! The content of a tile of a pipelined compilation at its peak.

use std::collections::BTreeMap;

/// The bytes of a tile at the first of its fullest steps: those that are always
/// live, and those that are live then.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TileContent {
    /// By name of the category, where there are any.
    pub categories: BTreeMap<&'static str, u64>,
    /// Bytes at used addresses that no variable explains.
    pub gap: u64,
    /// By what their names tell, where they tell that a pipeline made them.
    pub kinds: BTreeMap<NameKind, u64>,
}

/// The kind of a variable that its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameKind {
    /// A ring: `Stashed___`, of TensorFlow the buffer of a FIFO.
    Stashed,
    /// A tensor that came out of it: `Restored___`, of TensorFlow the output of
    /// a FIFO.
    Restored,
    /// An accumulator of a weight, which the model may have without a pipeline
    /// too: `Accum___`.
    Accumulator,
    /// A copy from another IPU: `_ipucopy`.
    Received,
    /// A recomputed tensor: `_Recomputed`.
    Recomputed,
}

impl NameKind {
    /// The kind that this name tells.
    pub fn of(name: &str) -> Option<Self> {
        let starts = [
            ("Stashed___", Self::Stashed),
            ("Restored___", Self::Restored),
            ("Accum___", Self::Accumulator),
        ];
        let ends = [
            ("/fifo/buffer/0", Self::Stashed),
            ("/fifo/out/0", Self::Restored),
            ("/Accumulator", Self::Accumulator),
            ("/accumulator", Self::Accumulator),
            ("_ipucopy", Self::Received),
            ("/inter-ipu-copy", Self::Received),
            ("_Recomputed", Self::Recomputed),
        ];
        let starts = starts.iter().find(|start| name.starts_with(start.0));
        let found = starts.or_else(|| ends.iter().find(|end| name.ends_with(end.0)));
        found.map(|found| found.1)
    }
}

impl TileContent {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.categories.values().sum::<u64>() + self.gap
    }
}
