//! `train_split_edges` of mmcv's runners for IPUs (`eval_split_edges` for inference): the module at
//! which each IPU begins, by its name below the model of the configuration. mmcv makes a
//! `poptorch.BeginBlock` of each entry; what runs before the first entry is on IPU 0.

use super::form_source::FormSource;
use super::lines::{Lines, STAGE};
use super::poptorch::functional;
use crate::escape::quoted;

/// Adds to `text` the entry of each IPU except the first, and to `notes` warnings of stages that
/// begin with operations outside modules.
pub fn edges(source: FormSource<'_>, notes: &mut Lines<'_>, text: &mut Lines<'_>) {
    let out = source.out().map(|out| (out, "Out"));
    for (position, name) in source.layers().chain(out) {
        let calls = source.torch_calls(position);
        let (module, what) = match calls.and_then(|calls| calls.begin.as_deref()) {
            // mmcv compiles a module of its own, which has the model as its attribute `model`.
            Some(path) => (path.strip_prefix("model.").unwrap_or(path).to_owned(), ""),
            None => (format!("<{name}>"), "  # write its first module"),
        };
        let edge = format!(
            "    dict(layer_to_call={}, ipu_id={STAGE}),{what}",
            quoted(&module)
        );
        text.begin(position, true, &edge);
        functional(source, position, notes);
    }
}
