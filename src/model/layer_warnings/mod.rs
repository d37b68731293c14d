//! Warnings about layers that fit a model badly.

mod modules;
mod outlined;

use super::{Layering, Model};
use crate::message::Warning;

/// All of it.
pub(super) fn find(model: &Model, layering: &Layering) -> Vec<Warning> {
    let all = [
        modules::better_modules(model, layering),
        outlined::outlined_across_layers(model, layering),
        outlined::lost_in_functions(model, layering),
    ];
    all.into_iter().flatten().collect()
}
