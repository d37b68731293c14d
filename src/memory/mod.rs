//! Bytes of any range of layers, per tile.

mod costs;

pub use costs::RangeCosts;
