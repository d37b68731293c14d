//! Bytes of any range of layers, per tile (analysis.md, sections 7 and 8).
//!
//! [`MemoryModel`] knows which layers use each variable and run each piece of
//! code. From it come the memory of given stages in full
//! ([`MemoryModel::stages`]), the peak of every range of layers that can fit
//! ([`MemoryModel::range_costs`]), and what flows between layers
//! ([`MemoryModel::between`]).

mod between;
mod breakdown;
mod code;
mod costs;
mod coverage;
mod layer_sets;
mod peak;
mod stage;
mod sweep;
#[cfg(test)]
mod tests;

pub use between::Between;
pub use costs::RangeCosts;
pub use coverage::{CodeCategory, Explaining};
pub use stage::{Parts, StageMemory};

use crate::model::{Layering, Model, NO_LAYER};
use code::CodeItem;
use layer_sets::Users;

/// A model with its layers, ready to be weighed.
#[derive(Debug)]
pub struct MemoryModel<'a> {
    model: &'a Model,
    users: Users,
    code: Vec<CodeItem>,
    /// By layer position: first and last step of its operations, inclusive.
    windows: Vec<Option<(u32, u32)>>,
}

impl<'a> MemoryModel<'a> {
    /// Prepares `model` with the layers that `layering` gave its operations.
    pub fn new(model: &'a Model, layering: &Layering) -> Self {
        let mut users = Users::new(model, layering);
        let code = code::collect(model, &mut users);
        Self {
            model,
            users,
            code,
            windows: windows(model, layering),
        }
    }

    /// How many positions the layer order has, the pseudo-layer included.
    pub fn layers(&self) -> usize {
        self.windows.len()
    }

    /// The window of a stage with these layers (end exclusive): lowest first
    /// and highest last step, inclusive. The pseudo-layer has no say in it
    /// unless it stands alone.
    pub fn window(&self, layers: std::ops::Range<usize>) -> Option<(u32, u32)> {
        let layered = layers.start.max(1)..layers.end;
        match layers.end <= 1 {
            true => self.windows[NO_LAYER as usize],
            false => join(&self.windows[layered]),
        }
    }
}

impl MemoryModel<'_> {
    /// The window of one layer as far as it counts in a stage: the
    /// pseudo-layer has none.
    fn layer_window(&self, layer: usize) -> Option<(u32, u32)> {
        self.windows[layer].filter(|_| layer != NO_LAYER as usize)
    }
}

/// The smallest window that covers all of `windows`.
fn join(windows: &[Option<(u32, u32)>]) -> Option<(u32, u32)> {
    let windows = windows.iter().flatten().copied();
    windows.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

fn windows(model: &Model, layering: &Layering) -> Vec<Option<(u32, u32)>> {
    let mut windows = vec![None; layering.len()];
    for (operation, &layer) in model.operations.iter().zip(&layering.layers) {
        let body = &model.bodies[operation.body as usize];
        let window = &mut windows[layer as usize];
        *window = join(&[*window, body.window]);
    }
    windows
}
