//! Where operations, variables and code count (docs/model.md, "Positions" and "What
//! variables count in").
//!
//! A [`Layering`](super::Layering) gives a layer to the operations whose names contain one. All others must count
//! somewhere too: embedding and head, optimiser, operations that the compiler makes. In the full
//! model they get places by these rules:
//!
//! 1. *Layered operations* have the place of their layer.
//! 2. *All other operations* have the place of the data that flows through them: between its
//!    producer and its users, in the forward pass up from In over the layers to Out, in the
//!    backward pass down again. Updates are where the weights are that they change (`levels`).
//! 3. *Operations that reach over the model*, such as a norm of all gradients, leave no place
//!    between the variables that they use and their users. They have no place of their own and add
//!    none to a variable. The same holds for operations that only copy from and to the host or make
//!    a tensor.
//! 4. *Where no data flows*, an operation of the compiler whose variables nothing else uses is in
//!    every stage, and any other goes by the order of the program (`assign`).
//! 5. *Variables* have the places of the operations of 1, 2 and 4 that use them. A variable that
//!    only operations of 3 use goes by its name, by the variables that it is used with, or to all
//!    places touched (`variables`); the code of these operations counts program by program at the
//!    places that each touches.
//! 6. *Weights that several places share* keep these on one IPU (`weights`).
//!
//! The classic model has only the layers and one pseudo-layer for everything else.

mod assign;
mod levels;
mod place_sets;
mod positions;
#[cfg(test)]
mod tests;
mod used_places;
mod variables;
mod weights;

pub use place_sets::{EVERYWHERE, NOWHERE, PlaceSet, PlaceSets, TooManyPlaces};
pub use positions::{PositionName, Positions, PseudoLayers};
pub use used_places::PassPlaces;
pub use weights::{Untied, WeightTie};

use clap::ValueEnum;
use std::fmt;

/// Which rules say what a stage needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Rules {
    /// Everything that the compiler recorded.
    #[default]
    Full,
    /// The bytes that the original tool counted.
    Classic,
}

impl Rules {
    /// The name as in the option and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Rules::Full => "full",
            Rules::Classic => "classic",
        }
    }
}

/// On which IPU Out runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum OutOn {
    /// The first IPU if In and Out share a weight, otherwise the last.
    #[default]
    Auto,
    /// The first IPU, with what runs before the layers.
    First,
    /// The last IPU.
    Last,
}

/// Options of a placement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlacementOptions {
    /// On which IPU Out runs.
    pub out_on: OutOn,
    /// Weights that do not bind the places that use them.
    pub untie: Untied,
}

/// Why an operation counts at its places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The name or the inputs of the operation give its layer.
    Layer,
    /// The operation is in a function that several places call, and the data that flows through
    /// this call determines its place.
    Call,
    /// Data flows through the operation before the layers, or the operation is the backward pass of
    /// one like that.
    BeforeLayers,
    /// Data flows through the operation after the layers, and before it returns to them.
    AfterLayers,
    /// Data flows through the operation at its place; of several places, the one with most bytes of
    /// its variables is taken.
    Variables,
    /// No data flows through the operation, so it has the place of the operation before it.
    Neighbour,
    /// The operation updates weights and counts at the places that use these weights. Or it has no
    /// place ([`NOWHERE`]), such as an operation that uses variables of several places or only
    /// copies from or to the host: each program counts at the places of the variables that it uses.
    Touched,
    /// The compiler creates the operation for every IPU.
    EveryStage,
    /// The operation has no layer; all operations without a layer form one pseudo-layer.
    Pseudo,
}

impl Reason {
    /// Does an operation with this reason have a place of its own?
    pub(crate) fn is_own(self) -> bool {
        match self {
            Reason::Layer
            | Reason::Call
            | Reason::BeforeLayers
            | Reason::AfterLayers
            | Reason::Variables
            | Reason::Neighbour
            | Reason::Pseudo => true,
            Reason::Touched | Reason::EveryStage => false,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Layer => "layer",
            Reason::Call => "call",
            Reason::BeforeLayers => "before_layers",
            Reason::AfterLayers => "after_layers",
            Reason::Variables => "variables",
            Reason::Neighbour => "operation_before",
            Reason::Touched => "touched",
            Reason::EveryStage => "every_stage",
            Reason::Pseudo => "pseudo_layer",
        })
    }
}

/// The places where an operation counts, and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationPlace {
    /// Places of the operation, as a set of [`Placement::sets`].
    pub places: PlaceSet,
    /// The rule that decides.
    pub reason: Reason,
}

impl OperationPlace {
    /// Does it have no place, so that its programs count at the places that they touch?
    pub(crate) fn is_open(&self) -> bool {
        self.reason == Reason::Touched && self.places == NOWHERE
    }
}

/// The positions of the layer order at which everything in a model counts.
#[derive(Debug, Clone)]
pub struct Placement {
    /// The rules that decided.
    pub rules: Rules,
    /// The layer order.
    pub positions: Positions,
    /// By operation: places of the operation.
    pub operations: Vec<OperationPlace>,
    /// Weights that several places use.
    pub ties: Vec<WeightTie>,
    /// The place sets that all other fields refer to.
    pub sets: PlaceSets,
    /// The places that use variables, by pass. In its sets, Out is always a separate place.
    pub(crate) by_pass: PassPlaces,
    /// By operation group: where its code counts.
    pub(crate) of_group: Vec<PlaceSet>,
    /// By operation group: where the code of each of its clusters counts; empty if the code counts
    /// as a whole.
    pub(crate) of_cluster: Vec<Vec<PlaceSet>>,
    /// By use set: where its variables count.
    pub(crate) counted: Vec<PlaceSet>,
    /// By use set: the places that use its variables, if these are more than `counted` (classic
    /// model).
    pub(crate) sharing: Option<Vec<PlaceSet>>,
    /// By operation group: does any of its operations have a layer by its name?
    pub(crate) named_groups: Vec<bool>,
    /// By use set: does any of its groups have a layer by its name?
    pub(crate) named_sets: Vec<bool>,
    /// By use set: does the set count in several places only because an operation that reaches over
    /// the model touches them?
    pub(crate) by_touch: Vec<bool>,
}

impl Placement {
    /// The places of an operation, ascending; empty if it counts in every stage or in none.
    pub fn places_of(&self, operation: usize) -> &[u32] {
        self.sets.places(self.operations[operation].places)
    }

    /// Counts the places that share the first position if Out runs on the first IPU, among `places`:
    /// (1 if Out is one of them, else 0; number of In and Out among them, 0 to 2). If Out is elsewhere,
    /// (0, 1).
    pub(crate) fn out_in_first(&self, places: PlaceSet) -> (u64, u64) {
        if !self.positions.out_is_first() {
            return (0, 1);
        }
        let out = self.positions.len() as u32;
        let places = self.by_pass.sets.places(places);
        let count = |wanted: u32| places.iter().filter(|&&place| place == wanted).count() as u64;
        (count(out), count(0) + count(out))
    }

    /// By use set: the places that use its variables.
    pub(crate) fn sharing(&self) -> &[PlaceSet] {
        self.sharing.as_ref().unwrap_or(&self.counted)
    }
}
