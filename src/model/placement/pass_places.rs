//! Which places use a variable in which pass (docs/model.md, "Pipelines").

use super::Placement;
use super::by_layer::of_sets;
use super::place_sets::{NOWHERE, PlaceSet, PlaceSets, TooManyPlaces};
use crate::model::{Model, Pass};

/// By use set: the places that use its variables, by pass. Only operations with a place of their
/// own count, and no copies from or to the host.
#[derive(Debug, Clone)]
pub struct PassPlaces {
    /// The sets that the other fields refer to. Out is a separate place after the last layer, even
    /// if it is in one position with In.
    pub sets: PlaceSets,
    /// By use set: places of the forward pass.
    pub forward: Vec<PlaceSet>,
    /// By use set: places of the backward pass and of updates.
    pub backward: Vec<PlaceSet>,
}

impl PassPlaces {
    /// Gathers the places of all operations of `model`.
    ///
    /// # Errors
    /// When more distinct sets of layers share variables than in any real model.
    pub fn new(model: &Model, placement: &Placement) -> Result<Self, TooManyPlaces> {
        let apart = placement.apart.as_ref();
        let mut sets = apart.unwrap_or(&placement.sets).clone();
        let none = || vec![NOWHERE; model.operation_groups.len()];
        let (mut forward, mut backward) = (none(), none());
        for (number, operation) in model.operations.iter().enumerate() {
            let group = operation.group as usize;
            let place = &placement.operations[number];
            if !place.reason.is_own() || model.operation_groups[group].only_streams() {
                continue;
            }
            let (is_forward, is_backward) = match operation.pass {
                Pass::Forward => (true, false),
                Pass::Backward | Pass::Update => (false, true),
                Pass::Both => (true, true),
            };
            for (of_group, is_in_pass) in [(&mut forward, is_forward), (&mut backward, is_backward)]
            {
                if is_in_pass {
                    of_group[group] = sets.union(of_group[group], place.places);
                }
            }
        }
        let forward = of_sets(&model.use_sets, &forward, &mut sets);
        let backward = of_sets(&model.use_sets, &backward, &mut sets);
        sets.check()?;
        Ok(Self {
            sets,
            forward,
            backward,
        })
    }

    /// The places that use the variables of a set: (in the forward pass, in the backward pass or an
    /// update), both ascending.
    pub fn places(&self, set: u32) -> (&[u32], &[u32]) {
        let places = |of_set: &[PlaceSet]| self.sets.places(of_set[set as usize]);
        (places(&self.forward), places(&self.backward))
    }
}
