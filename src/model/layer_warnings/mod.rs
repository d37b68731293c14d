//! Warnings about layers that fit a model badly.

mod by_name;
mod nearly_empty;
mod outlined;

use super::{Layering, Model, Placement};
use crate::message::Warning;

/// All of it.
pub(super) fn find(model: &Model, layering: &Layering, placement: &Placement) -> Vec<Warning> {
    let layers = placement.positions.layers();
    let all = [
        by_name::few_operations(model, layering),
        outlined::outlined_across_layers(model, layering),
        outlined::lost_in_functions(model, layering),
        by_name::numbers_out_of_order(model, layering),
        by_name::scattered(model, layering),
        nearly_empty::nearly_empty(layers, &placement.layer_bytes(model)),
    ];
    all.into_iter().flatten().collect()
}
