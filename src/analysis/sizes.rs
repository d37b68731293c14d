//! Profiles of one model that were recorded with several sizes of a micro-batch.

use super::answer::{Answers, Level};
use super::{Analysis, Request};
use crate::escape::printable;
use crate::message::FileError;
use crate::model::{LayerNames, TensorKind};
use anyhow::Result;
use std::collections::BTreeSet;

/// A further profile of the model of a run, recorded with another size of a micro-batch.
#[derive(Debug)]
pub struct SizedProfile {
    /// Samples of a micro-batch in the profile.
    pub samples: u64,
    /// The profile, with its debug contexts.
    pub analysis: Analysis,
}

/// Properties that all profiles of one model have in common: what they are, and their values in order.
type Properties = (&'static str, Vec<String>);

impl Answers<'_, '_> {
    /// Checks that all profiles are of one model: its framework, target, passes, layers, weights
    /// and shared weights are the same in each.
    ///
    /// # Errors
    /// If any of these differs; the error names the file and the first difference.
    pub(super) fn check_sizes(&self, request: &Request) -> Result<()> {
        let first = properties(self.whole_layers(request)?);
        for profile in self.profiles(request) {
            let level = self.whole_layers_of(profile, request)?;
            for ((what, mine), (_, theirs)) in first.iter().zip(properties(level)) {
                let differs = |&index: &usize| mine.get(index) != theirs.get(index);
                let Some(index) = (0..mine.len().max(theirs.len())).find(differs) else {
                    continue;
                };
                let shown = |own: &[String]| match own.get(index) {
                    Some(own) => printable(own),
                    None => "nothing".to_owned(),
                };
                return Err(FileError::new(format!(
                    "{}: this is a profile of another model than {}: its {what} is {} in place of \
                     {}; give profiles of one model that differ only in the samples of a micro-batch",
                    profile.analysis.displayed(),
                    self.analysis.displayed(),
                    shown(&theirs),
                    shown(mine)
                ))
                .into());
            }
        }
        Ok(())
    }
}

/// Lists the properties of the model of a profile that do not depend on the size of a micro-batch,
/// the most general first.
fn properties(level: &Level<'_>) -> Vec<Properties> {
    let (model, placement) = (level.layers.model(), &level.layers.placement);
    let pass = match model.backward_start {
        Some(_) => "training",
        None => "inference",
    };
    let weights: BTreeSet<String> = model
        .labels
        .iter()
        .filter(|label| label.kind == TensorKind::Variable)
        .map(|label| label.weight_name().to_owned())
        .collect();
    let layers = |names: &LayerNames| names.iter().flatten().cloned().collect::<Vec<_>>();
    let ties = placement.ties.iter();
    let ties = ties.map(|tie| format!("{} of {}", tie.weight, layers(&tie.layers).join(" ")));
    let target = &model.target;
    vec![
        ("framework", vec![model.recording.framework.to_string()]),
        ("program", vec![pass.to_owned()]),
        ("number of tiles", vec![target.num_tiles.to_string()]),
        ("memory of a tile", vec![target.bytes_per_tile.to_string()]),
        ("layer", level.layers.layering.names[1..].to_vec()),
        ("weight", weights.into_iter().collect()),
        ("shared weight", ties.collect()),
    ]
}
