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
    for (position, layer) in source.layers() {
        text.begin((position, true), &entry(module(source, position), layer));
    }
    if let Some(out) = source.out() {
        text.begin((out, true), &entry(module(source, out), "Out"));
    }
}

/// Returns the innermost module at which a position of the layer order begins, with slashes in its
/// path, or for TensorFlow the first Keras layer that the position calls and no earlier one does;
/// `None` if the profile does not show it.
fn module(source: FormSource<'_>, position: u32) -> Option<String> {
    if source.is_keras() {
        return source.keras_begin(position).cloned();
    }
    Some(
        source
            .calls(position, Framework::Poptorch)?
            .leaf
            .as_ref()?
            .replace('.', "/"),
    )
}

fn entry(module: Option<String>, name: &str) -> String {
    match module {
        Some(module) => format!("- {}", quoted(&module)),
        None => format!(
            "- {}  # write its first module",
            quoted(&format!("<{name}>"))
        ),
    }
}
