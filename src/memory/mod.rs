//! Bytes of any range of layers, per tile (analysis.md, sections 7 and 8).
//!
//! [`MemoryModel`] knows which layers use each variable and run each piece of
//! code. From it come the memory of given stages in full
//! ([`MemoryModel::stages`]), the peak of every range of layers that can fit
//! ([`MemoryModel::range_costs`]), and what flows between layers
//! ([`MemoryModel::between`]).

mod bands;
mod between;
mod breakdown;
mod code;
mod costs;
mod coverage;
mod curve;
mod layer_sets;
mod marks;
#[cfg(test)]
mod once;
mod overhead;
mod peak;
#[cfg(test)]
mod plain;
mod stage;
mod sweep;
#[cfg(test)]
mod tests;
mod timeline;

pub use bands::Band;
pub use between::Between;
pub use costs::RangeCosts;
pub use coverage::{CodeCategory, Coverage, Explaining};
pub use curve::{Curve, Curves};
pub use overhead::Overhead;
pub use stage::{Parts, StageMemory};

use crate::model::{Item, Layering, Model, NO_LAYER, Placement};
use code::CodeItem;
use layer_sets::Users;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Which rules say what a stage needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// The original tool's (analysis.md, section 7): what the operations of
    /// the stage explain, variables within the stage's window and only those
    /// of operations with a layer.
    Classic,
    /// All that the compiler recorded for the tile: what operations explain,
    /// and overhead in every stage. See [`Overhead`] for what that is.
    Full,
}

/// A model with its layers, ready to be weighed.
#[derive(Debug)]
pub struct MemoryModel<'a> {
    model: &'a Model,
    rules: Rules,
    users: Users,
    code: Vec<CodeItem>,
    overhead: Overhead,
    /// By layer position: first and last step of its operations, inclusive.
    windows: Vec<Option<(u32, u32)>>,
    /// Was there more than can be kept? See [`MemoryModel::is_beyond_bounds`].
    is_beyond_bounds: AtomicBool,
}

impl<'a> MemoryModel<'a> {
    /// Prepares `model` by the classic rules, with the layers that `layering`
    /// gave its operations.
    pub fn classic(model: &'a Model, layering: &Layering) -> Self {
        let placement = Placement::by_name(layering);
        Self::new(model, layering, &placement, Rules::Classic)
    }

    /// Prepares `model` by the full rules; operations without a layer count
    /// where `placement` puts them.
    pub fn full(model: &'a Model, layering: &Layering, placement: &Placement) -> Self {
        Self::new(model, layering, placement, Rules::Full)
    }

    fn new(model: &'a Model, layering: &Layering, placement: &Placement, rules: Rules) -> Self {
        let mut users = Users::new(model, layering, placement, rules);
        let code = code::collect(model, &mut users, rules);
        let overhead = match rules {
            Rules::Classic => Overhead::none(model),
            Rules::Full => Overhead::new(model),
        };
        let is_beyond_bounds = placement.is_beyond_bounds || users.sets.is_full();
        Self {
            model,
            rules,
            users,
            code,
            overhead,
            windows: windows(model, layering.len(), placement),
            is_beyond_bounds: is_beyond_bounds.into(),
        }
    }

    /// Do layers share variables in more different ways than can be kept, or
    /// has [`MemoryModel::range_costs`] met more of them on one tile? Then
    /// nothing that this says of them is right. No real model comes near.
    pub fn is_beyond_bounds(&self) -> bool {
        self.is_beyond_bounds.load(Ordering::Relaxed)
    }

    /// How many positions the layer order has, the pseudo-layer included.
    pub fn layers(&self) -> usize {
        self.windows.len()
    }

    /// The steps at which a stage with these layers (end exclusive) is looked
    /// at, both inclusive. By the classic rules they go from the lowest first
    /// to the highest last step of its layers; the pseudo-layer has no say in
    /// it unless it stands alone. By the full rules they are all steps.
    pub fn window(&self, layers: Range<usize>) -> Option<(u32, u32)> {
        match self.rules {
            Rules::Full => self.all_steps(),
            Rules::Classic if layers.end <= 1 => self.windows[NO_LAYER as usize],
            Rules::Classic => join(&self.windows[layers.start.max(1)..layers.end]),
        }
    }

    /// What one layer adds to the window of a stage: nothing for the
    /// pseudo-layer, by the classic rules.
    fn layer_window(&self, layer: usize) -> Option<(u32, u32)> {
        match self.rules {
            Rules::Full => self.all_steps(),
            Rules::Classic => self.windows[layer].filter(|_| layer != NO_LAYER as usize),
        }
    }

    fn all_steps(&self) -> Option<(u32, u32)> {
        Some((0, self.model.steps().checked_sub(1)?))
    }

    /// The variables on `tile` that count: by the full rules, code is counted
    /// by what was recorded of it and not as variables.
    fn items(&self, tile: u32) -> impl Iterator<Item = &'a Item> {
        let code = match self.rules {
            Rules::Classic => self.model.code_variables.on_tile(tile),
            Rules::Full => &[],
        };
        self.model.variables.on_tile(tile).iter().chain(code)
    }
}

/// The smallest window that covers all of `windows`.
fn join(windows: &[Option<(u32, u32)>]) -> Option<(u32, u32)> {
    let windows = windows.iter().flatten().copied();
    windows.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

fn windows(model: &Model, layers: usize, placement: &Placement) -> Vec<Option<(u32, u32)>> {
    let mut windows = vec![None; layers];
    for (operation, layer) in model.operations.iter().zip(&placement.layers) {
        let Some(layer) = *layer else { continue };
        let body = &model.bodies[operation.body as usize];
        let window = &mut windows[layer as usize];
        *window = join(&[*window, body.window]);
    }
    windows
}
