//! Warnings about layers that fit a model badly.

mod modules;
mod outlined;

use super::{Layering, Model, Rules};
use crate::message::Warning;

/// All warnings about the layers.
pub(super) fn find(model: &Model, layering: &Layering, rules: Rules) -> Vec<Warning> {
    let better = modules::better_modules(model, layering);
    let all = [
        better.filter(|_| rules == Rules::Full),
        outlined::outlined_across_layers(model, layering),
        outlined::lost_in_functions(model, layering),
    ];
    all.into_iter().flatten().collect()
}
