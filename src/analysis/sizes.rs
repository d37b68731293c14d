//! Profiles of one model that were recorded with several sizes of a micro-batch.

use super::answer::{Answers, Level};
use super::{Analysis, Request};
use crate::escape::printable;
use crate::message::FileError;
use crate::model::TensorKind;
use crate::wording::joined;
use anyhow::{Error, Result};
use std::collections::BTreeSet;

/// A further profile of the model of a run, recorded with another size of a micro-batch.
#[derive(Debug)]
pub struct SizedProfile {
    /// Samples of a micro-batch in the profile.
    pub samples: u64,
    /// The profile, with its debug contexts.
    pub analysis: Analysis,
}

/// A property that all profiles of one model have in common, with its value in words.
type Property = (String, String);

impl<'s> Answers<'s, '_> {
    /// Checks that all profiles are of one model: its framework, target, passes, layers, weights
    /// and shared weights are the same in each.
    ///
    /// # Errors
    /// If any of these differs; the error names the file and the first difference.
    pub(super) fn check_sizes(&self, request: &Request) -> Result<()> {
        let mut levels = self.nth_levels(request, 0)?.into_iter();
        let Some(first) = levels.next() else {
            return Ok(());
        };
        let mine = properties(first);
        for level in levels {
            let theirs = properties(level);
            let absent = (String::new(), "absent".to_owned());
            let most = mine.len().max(theirs.len());
            let at = |of: &[Property], index: usize| of.get(index).unwrap_or(&absent).clone();
            let different = (0..most).find(|&index| at(&mine, index) != at(&theirs, index));
            if let Some(index) = different {
                let (one, other) = (at(&mine, index), at(&theirs, index));
                return Err(unlike(level, one, other, &self.analysis.displayed()));
            }
        }
        Ok(())
    }
}

/// Lists the properties of the model of a profile that do not depend on the size of a micro-batch,
/// the most general first.
fn properties(level: &Level<'_>) -> Vec<Property> {
    let (model, placement) = (level.layers.model(), &level.layers.placement);
    let pass = match model.backward_start {
        Some(_) => "training",
        None => "inference",
    };
    let general = [
        ("the framework", model.recording.framework.to_string()),
        ("the program", pass.to_owned()),
        ("the number of tiles", model.target.num_tiles.to_string()),
        (
            "the memory of a tile",
            model.target.bytes_per_tile.to_string(),
        ),
    ];
    let layers = level.layers.layering.names[1..].iter().enumerate();
    let weights: BTreeSet<&str> = model
        .labels
        .iter()
        .filter(|label| label.kind == TensorKind::Variable)
        .map(|label| label.weight_name())
        .collect();
    let ties = placement.ties.iter().map(|tie| {
        let layers: Vec<String> = tie
            .layers
            .iter()
            .map(|layer| layer.clone().unwrap_or("In".to_owned()))
            .collect();
        (
            format!("what shares {}", tie.weight),
            joined(&layers, "and"),
        )
    });
    general
        .into_iter()
        .map(|(what, value)| (what.to_owned(), value))
        .chain(layers.map(|(number, name)| (format!("layer {}", number + 1), name.clone())))
        .chain(
            weights
                .into_iter()
                .map(|name| ("a weight".to_owned(), name.to_owned())),
        )
        .chain(ties)
        .collect()
}

/// Returns the error that the profile of `level` is of another model than that of `first`, since it
/// has the property `theirs` in place of `mine`.
fn unlike(level: &Level<'_>, mine: Property, theirs: Property, first: &str) -> Error {
    let what = if theirs.0.is_empty() {
        &mine.0
    } else {
        &theirs.0
    };
    let text = format!(
        "{}: this is a profile of another model than {first}: {} is {}, not {}; give profiles of \
         the same model that differ only in the samples of a micro-batch",
        level.layers.analysis.displayed(),
        printable(what),
        printable(&theirs.1),
        printable(&mine.1),
    );
    FileError::new(text).into()
}
