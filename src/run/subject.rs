//! What everything in a run is about.

use super::input::Input;
use crate::cli::Options;
use crate::memory::MemoryModel;
use crate::messages::Messages;
use crate::model::{Layering, Model, Placement};

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
    pub(super) fn model(&self) -> &'a Model {
        &self.input.model
    }
}
