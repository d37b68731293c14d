//! Defines further profiles of a model: recorded with another micro-batch size or another available
//! memory proportion than the main profile, the first that the user names.

use super::{Analysis, Layers};
use crate::{escape::printable, message::FileError, model::TensorKind, wording::join};
use anyhow::Result;
use std::collections::BTreeSet;

/// One more profile of the model, which differs in one setting from the main profile (the first
/// that the user names).
#[derive(Debug)]
pub struct FurtherProfile {
    /// Number of samples in a micro-batch, if this profile differs from the main profile in this
    /// number; `None` if it differs in the available memory proportion of matrix products and
    /// convolutions.
    pub samples: Option<u64>,
    /// The model read from this profile and its `debug.cbor`.
    pub analysis: Analysis,
}

/// Checks that two profiles were recorded from one model. They must agree in the framework, in
/// training or inference, in the number of tiles and their memory, and in the names of layers, of
/// weights, and of weights that several layers share.
///
/// # Errors
/// If a property, such as the number of tiles, differs between the two profiles; the error names
/// the file and the first difference.
pub fn check_same(first: &Layers<'_>, other: &Layers<'_>) -> Result<()> {
    let mut both = properties(first).into_iter().zip(properties(other));
    let Some((mine, theirs)) = both.find(|(mine, theirs)| mine != theirs) else {
        return Ok(());
    };
    Err(FileError::new(format!(
        "{}: this is a profile of another model than {}: it has {} in place of {}; give profiles of \
         one model that differ only in --micro-batch, or only in --amp",
        other.analysis.displayed(),
        first.analysis.displayed(),
        printable(&theirs),
        printable(&mine)
    ))
    .into())
}

/// Returns the properties that all profiles of one model share, from the most general to the most
/// specific, in words such as `layer 3`. Profiles whose lists differ are of different models. The
/// layers, the weights and the shared weights each end with an entry such as `no further layer`, so
/// that a layer that one profile lacks is not compared with a weight.
fn properties(layers: &Layers<'_>) -> Vec<String> {
    let (model, placement) = (layers.model(), &layers.placement);
    let weights: BTreeSet<String> = model
        .labels
        .iter()
        .filter(|label| label.kind == TensorKind::Variable)
        .map(|label| match label.element_bytes {
            Some(bytes) => format!("weight {} of {bytes}-byte elements", label.weight_name()),
            None => format!("weight {}", label.weight_name()),
        })
        .collect();
    let ties = placement.ties.iter().map(|tie| {
        let users = join(tie.layers.iter().flatten(), " ");
        format!("shared weight {} of {users}", tie.weight)
    });
    let target = &model.target;
    let names = layers.layering.names[1..].iter();
    [
        format!("framework {}", model.recording.framework),
        format!("a program for {}", model.work()),
        format!("{} tiles", target.num_tiles),
        format!("{} bytes on a tile", target.bytes_per_tile),
    ]
    .into_iter()
    .chain(names.map(|name| format!("layer {name}")))
    .chain(["no further layer".to_owned()])
    .chain(weights)
    .chain(["no further weight".to_owned()])
    .chain(ties)
    .chain(["no further shared weight".to_owned()])
    .collect()
}
