//! Which places use a variable in which pass (pipeline.md, sections 12 to 15).

use super::by_layer::of_sets;
use super::place_sets::{NOWHERE, PlaceSet, PlaceSets, TooManyPlaces};
use super::{Placement, Reason};
use crate::model::{Model, Pass};

/// By user set: the places that use its variables, by pass. Only operations with
/// a place of their own count, and no copies from or to the host.
#[derive(Debug, Clone)]
pub struct PassPlaces {
    /// The sets that the others refer to. Out is a place of its own, after the
    /// last layer, even where it is in one position with In.
    pub sets: PlaceSets,
    /// Those of the forward pass.
    pub forward: Vec<PlaceSet>,
    /// Those of the backward pass and of updates.
    pub backward: Vec<PlaceSet>,
    /// The first and the last step (inclusive) of the host copies in the forward
    /// pass.
    pub streamed: Vec<Option<(u32, u32)>>,
}

impl PassPlaces {
    /// Gathers them.
    ///
    /// # Errors
    /// When layers share variables in more ways than those of any real model.
    pub fn new(model: &Model, placement: &Placement) -> Result<Self, TooManyPlaces> {
        let apart = placement.apart.as_ref();
        let mut sets = apart.unwrap_or(&placement.sets).clone();
        let none = || vec![NOWHERE; model.operation_groups.len()];
        let (mut forward, mut backward) = (none(), none());
        for (number, operation) in model.operations.iter().enumerate() {
            let group = operation.group as usize;
            let own = &placement.operations[number];
            if !has_place(own.reason) || model.operation_groups[group].streams {
                continue;
            }
            let (is_forward, is_backward) = sides(operation.pass);
            for (of_group, is_so) in [(&mut forward, is_forward), (&mut backward, is_backward)] {
                if is_so {
                    of_group[group] = sets.union(of_group[group], own.places)?;
                }
            }
        }
        Ok(Self {
            forward: of_sets(&model.user_sets, &forward, &mut sets)?,
            backward: of_sets(&model.user_sets, &backward, &mut sets)?,
            streamed: streamed(model),
            sets,
        })
    }
}

/// Has an operation a place of its own for this reason?
fn has_place(reason: Reason) -> bool {
    match reason {
        Reason::Layer
        | Reason::Call
        | Reason::BeforeLayers
        | Reason::AfterLayers
        | Reason::Variables
        | Reason::Neighbour
        | Reason::Pseudo => true,
        Reason::Touched | Reason::EveryStage | Reason::Ignored => false,
    }
}

/// Does a pass use variables before the turn, and after it?
fn sides(pass: Pass) -> (bool, bool) {
    match pass {
        Pass::Forward => (true, false),
        Pass::Backward | Pass::Update => (false, true),
        Pass::Both => (true, true),
    }
}

/// By user set: the steps of the host copies before the turn.
fn streamed(model: &Model) -> Vec<Option<(u32, u32)>> {
    let turn = model.turn.unwrap_or(u32::MAX);
    let mut of_set = vec![None; model.user_sets.len()];
    for (set, smaller, group) in model.user_sets.iter() {
        let group = &model.operation_groups[group as usize];
        let own = group
            .window
            .filter(|&(first, _)| group.streams && first < turn);
        let known: Option<(u32, u32)> = of_set[smaller as usize];
        of_set[set as usize] = match (known, own) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (known, own) => known.or(own),
        };
    }
    of_set
}
