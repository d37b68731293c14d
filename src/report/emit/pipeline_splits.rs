//! `pipeline_splits` of Graphcore's vision examples: the modules at which the next IPU begins. IPU
//! 0 has no entry. The CNNs for PopTorch name modules without parts, with slashes; the CNNs for
//! TensorFlow 2 name Keras layers, those for TensorFlow 1 name scopes, with slashes.

use super::form_source::FormSource;
use super::lines::Lines;
use crate::escape::quoted;
use crate::model::Framework;

/// Adds to `text` the entries of `pipeline_splits`: for each IPU except the first, the module at
/// which it begins.
pub fn entries(source: FormSource<'_>, text: &mut Lines<'_>) {
    let out = source.out().map(|out| (out, "Out"));
    for (position, name) in source.layers().chain(out) {
        let entry = match module(source, position, name) {
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
/// path. For TensorFlow, returns the module that begins there, below the model: the first Keras
/// layer or a scope; if it is unknown, the layer's `name`. `None` if the profile does not show it.
fn module(source: FormSource<'_>, position: u32, name: &str) -> Option<String> {
    if source.is_keras() {
        let begin = source
            .calls(position, Framework::Tensorflow)?
            .begin
            .as_ref();
        let below = begin.and_then(|path| Some(path.split_once('.')?.1));
        let is_layer = Some(position) != source.out();
        let scope = below.or(is_layer.then_some(name))?;
        return Some(scope.replace('.', "/"));
    }
    let calls = source.calls(position, Framework::Poptorch)?;
    Some(calls.leaf.as_ref()?.replace('.', "/"))
}
