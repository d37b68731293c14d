//! A regex that describes the model worse than its modules do.

use crate::message::Warning;
use crate::model::{Layering, Model, ModuleLayers, NO_LAYER};
use crate::wording::grouped;

/// Warns if the modules describe the model better than the given regex does.
pub(super) fn better_modules(model: &Model, layering: &Layering) -> Option<Warning> {
    let regex = layering.regex()?;
    let modules = ModuleLayers::new(model);
    let layers = layering.layers_by_name();
    if modules.are_by_flow() || modules.are_matched_by(&layers) {
        return None;
    }
    let (by_regex, by_modules) = (modules.description_by(&layers), modules.description());
    let operations = model
        .operations
        .iter()
        .filter(|operation| !operation.is_tensor);
    let layered = layers.iter().filter(|&&layer| layer != NO_LAYER);
    Some(Warning::new(format!(
        "--layer-name-regex '{regex}' finds {} layers with {} of {} operations, and the largest \
         piece between two cuts has {} bytes of variables, but the modules of the model are {} \
         layers with at most {} bytes; set --layer-name-regex to auto",
        layering.len() - 1,
        layered.count(),
        operations.count(),
        grouped(by_regex.largest),
        modules.names.len(),
        grouped(by_modules.largest)
    )))
}
