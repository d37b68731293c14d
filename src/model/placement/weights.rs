//! Finds weights that several places (In, layers, Out) use. These places must be on one IPU,
//! because no framework puts a weight on two IPUs.

use super::{LayerNames, PlaceSet, PlaceSets, PlacementOptions, Positions};
use crate::model::{Model, SetBytes};
use serde::{Deserialize, Serialize};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// A weight that several places (In, layers, Out) use, so that these places must be on one IPU
/// (docs/model.md, "Shared weights").
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WeightTie {
    /// The id of the weight's tensor or, if that is unknown, the name of its variables.
    pub weight: String,
    /// Bytes of the weight over all tiles.
    pub bytes: u64,
    /// The places (In, layers, Out) that use the weight, ascending; at least two. In (before the
    /// first layer) and Out (after the last) are separate places even if they share a position
    /// ([`Positions::of_place`]).
    #[serde(skip)]
    pub places: Vec<u32>,
    /// The layers that use the weight, in order; `null` for In (the operations before the first
    /// layer).
    pub layers: LayerNames,
    /// Whether the user untied the weight (`--untie`), so that its layers may be on several IPUs.
    /// Otherwise the search keeps all of its layers on one IPU.
    #[serde(rename = "untied")]
    pub is_untied: bool,
    /// In a report, the stages of the split that use the weight; empty without a split. There are
    /// several if the weight is untied, the search ignores ties, or the split was given.
    pub stages: Vec<u32>,
}

impl WeightTie {
    /// Returns the first and the last position (In, a layer or Out) with operations that use the
    /// weight. These positions and all positions between them must be on one IPU. Returns `None` if
    /// only one position uses the weight, or if the user untied the weight.
    pub fn binds(&self, positions: &Positions) -> Option<(usize, usize)> {
        if self.is_untied {
            return None;
        }
        let all = self.places.iter().map(|&place| positions.of_place(place));
        let (first, last) = (all.clone().min()?, all.max()?);
        (first < last).then_some((first, last))
    }
}

/// Returns the weights that several places (In, layers, Out) use, the largest first. `bytes` and
/// `of_set` have one entry per use set (variables that the same operations use): the bytes of its
/// variables, and the places that use them. Use sets whose variables have the name of one weight
/// are joined. The caller sets the field `layers`.
pub fn ties(
    model: &Model,
    bytes: &[SetBytes],
    sets: &PlaceSets,
    of_set: &[PlaceSet],
    options: &PlacementOptions,
) -> Vec<WeightTie> {
    let mut weights: BTreeMap<&str, (u64, BTreeSet<u32>)> = BTreeMap::new();
    for (set, bytes) in model.weights(bytes) {
        let name = model.label_of(set).weight_name();
        // A variable that only one place (In, a layer or Out) uses does not bind places to one IPU,
        // even if it has the name of a weight that several places share.
        let places = sets.places(of_set[set as usize]);
        if name.is_empty() || places.len() < 2 {
            continue;
        }
        let (all_bytes, all_places) = weights.entry(name).or_default();
        *all_bytes += bytes;
        all_places.extend(places);
    }
    let mut ties: Vec<WeightTie> = weights
        .into_iter()
        .map(|(name, (bytes, places))| WeightTie {
            weight: name.to_string(),
            bytes,
            places: places.into_iter().collect(),
            is_untied: options.unties_all || options.untie.iter().any(|other| other == name),
            ..WeightTie::default()
        })
        .collect();
    ties.sort_by_key(|tie| Reverse(tie.bytes));
    ties
}
