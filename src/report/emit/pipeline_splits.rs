//! `pipeline_splits` of Graphcore's vision examples: the modules at which the next IPU begins. IPU
//! 0 has no entry. The CNNs for PopTorch name modules without parts, with slashes; the CNNs for
//! TensorFlow name Keras layers.

use super::form_source::FormSource;
use super::lines::Lines;
use crate::escape::quoted;
use crate::model::Framework;

/// Adds to `text` the entries of `pipeline_splits`: for each IPU except the first, the module at
/// which it begins.
pub fn entries(source: FormSource<'_>, text: &mut Lines<'_>) {
    let out = source.out().map(|out| (out, "Out"));
    for (position, name) in source.layers().chain(out) {
        let entry = match module(source, position) {
            Some(module) => format!("- {}", quoted(&module)),
            None => format!(
                "- {}  # write its first module",
                quoted(&format!("<{name}>"))
            ),
        };
        text.begin(position, true, &entry);
    }
}

/// Returns the innermost module at which a position of the layer order begins, with slashes in its
/// path, or for TensorFlow the first Keras layer that the position calls and no earlier one does;
/// `None` if the profile does not show it.
fn module(source: FormSource<'_>, position: u32) -> Option<String> {
    if source.is_keras() {
        return source.keras_begin(position).cloned();
    }
    let calls = source.calls(position, Framework::Poptorch)?;
    Some(calls.leaf.as_ref()?.replace('.', "/"))
}
