//! A second reader and analyser, written only from the rules and independent of the library: plain
//! SQL joins, whole documents in memory, sets, and loops in the order of the rules. It is slow and
//! assumes nothing except a sound file. The tool must print the same numbers.
//!
//! It shares no code with `popliner`. It panics on a damaged file.

pub mod between;
pub mod codec;
pub mod contexts;
pub mod cycles;
pub mod diagnosis;
pub mod layers;
pub mod memory;
pub mod names;
pub mod operations;
pub mod read;
pub mod search;

use std::path::Path;

use contexts::Contexts;
use layers::{Layering, Rules};
use operations::Operation;
use read::Profile;

/// A model with its layers.
pub struct Oracle {
    pub profile: Profile,
    pub operations: Vec<Operation>,
    pub layering: Layering,
}

impl Oracle {
    /// Reads both files and applies docs/model.md up to "Layers".
    pub fn new(profile: &Path, debug: &Path, rules: &Rules) -> Self {
        let profile = Profile::read(profile);
        let contexts = Contexts::read(debug);
        let operations = operations::operations(&profile, &contexts);
        let layering = Layering::new(&operations, rules);
        Self {
            profile,
            operations,
            layering,
        }
    }

    /// Returns the operations of these positions of the layer order, in order.
    pub fn members(&self, layers: std::ops::Range<usize>) -> Vec<usize> {
        let is_in = |&op: &usize| layers.contains(&self.layering.layer[op].unwrap_or(0));
        (0..self.operations.len()).filter(is_in).collect()
    }

    /// Returns the number of layers, with position 0 for operations without a layer.
    pub fn layer_count(&self) -> usize {
        self.layering.names.len()
    }
}
