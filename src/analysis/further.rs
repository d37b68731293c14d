//! Defines further profiles of a model: recorded with another micro-batch size or another available
//! memory proportion than the main profile, the first that the user names.

use super::{Analysis, Layers};
use crate::{escape::printable, message::FileError, model::TensorKind, wording::join};
use anyhow::Result;
use std::collections::BTreeSet;

/// A further profile of the model, recorded with one setting changed.
#[derive(Debug)]
pub struct FurtherProfile {
    /// Number of samples in a micro-batch of this profile; `None` if the profile differs from the
    /// main profile in the available memory proportion of matrix products and convolutions, and
    /// not in this number.
    pub samples: Option<u64>,
    /// The model read from this profile and its `debug.cbor`.
    pub analysis: Analysis,
}

/// Checks that two profiles are of one model: framework, target, passes, layers, weights and shared
/// weights are the same in both.
///
/// # Errors
/// If a property, such as the number of tiles, differs between the two profiles; the error names
/// the file and the first difference.
pub fn check_same(first: &Layers<'_>, other: &Layers<'_>) -> Result<()> {
    for ((what, mine), (_, theirs)) in properties(first).iter().zip(properties(other)) {
        let Some(index) =
            (0..mine.len().max(theirs.len())).find(|&index| mine.get(index) != theirs.get(index))
        else {
            continue;
        };
        let shown = |own: &[String]| {
            own.get(index)
                .map_or("nothing".into(), |own| printable(own))
        };
        return Err(FileError::new(format!(
            "{}: this is a profile of another model than {}: its {what} is {} in place of {}; give \
             profiles of one model that differ only in the samples of a micro-batch, or only in the \
             available memory proportion",
            other.analysis.displayed(),
            first.analysis.displayed(),
            shown(&theirs),
            shown(mine)
        ))
        .into());
    }
    Ok(())
}

/// Returns the properties of a model that all its profiles share, from the most general to the most
/// specific. Each entry has the kind of the property, such as `layer`, and its values, such as the
/// names of all layers. Profiles with other values, or the same values in another order, are of
/// different models.
fn properties(layers: &Layers<'_>) -> Vec<(&'static str, Vec<String>)> {
    let (model, placement) = (layers.model(), &layers.placement);
    let pass = match model.backward_start {
        Some(_) => "training",
        None => "inference",
    };
    let weights: BTreeSet<String> = model
        .labels
        .iter()
        .filter(|label| label.kind == TensorKind::Variable)
        .map(|label| match label.element_bytes {
            Some(bytes) => format!("{} of {bytes}-byte elements", label.weight_name()),
            None => label.weight_name().to_owned(),
        })
        .collect();
    let ties = placement.ties.iter().map(|tie| {
        let users = join(tie.layers.iter().flatten(), " ");
        format!("{} of {users}", tie.weight)
    });
    let target = &model.target;
    vec![
        ("framework", vec![model.recording.framework.to_string()]),
        ("program", vec![pass.to_owned()]),
        ("number of tiles", vec![target.num_tiles.to_string()]),
        ("memory of a tile", vec![target.bytes_per_tile.to_string()]),
        ("layer", layers.layering.names[1..].to_vec()),
        ("weight", weights.into_iter().collect()),
        ("shared weight", ties.collect()),
    ]
}
