//! What everything in a run is about.

use super::input::Input;
use crate::cli::Options;
use crate::memory::{self, MemoryModel};
use crate::messages::Messages;
use crate::model::{Layering, Model, Placement};
use crate::report::Split;

/// A model with its layers, weighed as the options want it.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) options: &'a Options,
    pub(super) input: &'a Input,
    pub(super) layering: &'a Layering,
    pub(super) placement: &'a Placement,
    pub(super) memory: &'a MemoryModel<'a>,
    pub(super) messages: Messages,
}

impl<'a> Subject<'a> {
    /// The bytes by step on the fullest tile of each stage, as many as a screen
    /// has columns; `None` where nobody looks at them, since they take time.
    pub(super) fn screen_curves(&self, split: &Split) -> Option<Vec<Vec<u64>>> {
        let width = self.messages.look().screen?.width;
        if self.options.quiet {
            return None;
        }
        let stages = split.stages.iter();
        let stages = stages.map(|own| (own.positions.clone(), &own.memory, own.max_tile as u32));
        let curves = self.memory.curves(&stages.collect::<Vec<_>>()).into_iter();
        let columns = |curves: memory::LiveCurves| curves.on_tile.columns(width);
        Some(curves.map(|own| own.map_or(Vec::new(), columns)).collect())
    }

    pub(super) fn model(&self) -> &'a Model {
        &self.input.model
    }
}
