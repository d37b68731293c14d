//! Finds the places (In, layers, Out) of operations, variables and code (docs/model.md, "Positions"
//! and "What variables count in").
//!
//! A [`Layering`](super::Layering) gives a layer to operations whose names contain a layer. All
//! other operations, such as embedding, head, optimizer and operations that the compiler makes,
//! need places too. In the full model, these rules give places:
//!
//! 1. *Layered operations* have the place of their layer.
//! 2. *All other operations* have the place of the data that flows through them, which is between
//!    the producer and the users of the data. In the forward pass, data flows up from In over the
//!    layers to Out; in the backward pass, it flows down again. Updates have the places of the
//!    weights that they change (`levels`).
//! 3. *Operations that reach over the model*, such as a norm of all gradients, use variables of
//!    several places, and the flow of data shows no single place for them. Such an operation has no
//!    place of its own and adds no place to a variable. The same holds for operations that only
//!    copy from and to the host or create a tensor.
//! 4. *Where no data flows*, an operation of the compiler whose variables no other operation uses
//!    is in every stage, and any other operation is placed by the order of the program (`assign`).
//! 5. *Variables* have the places of the operations of rules 1, 2 and 4 that use them. A variable
//!    that only operations of rule 3 use is placed by its name, by the variables that it is used
//!    with, or at all places whose variables these operations use (`variables`). The code of
//!    operations of rule 3 is divided by program: the code of a program is at the places of the
//!    variables that the program uses.
//! 6. *Weights that several places use* force these places onto one IPU (`weights`).
//!
//! The classic model has only the layers, and one further place for all operations without a layer.

mod assign;
mod levels;
mod place_sets;
mod positions;
#[cfg(test)]
mod tests;
mod variables;
mod weights;

use place_sets::IN;
pub(crate) use place_sets::meets;
pub use place_sets::{EVERYWHERE, NOWHERE, PlaceSet, PlaceSets, TooManyPlaces};
pub use positions::{LayerNames, Positions, PseudoLayers};
pub use variables::PassPlaces;
pub use weights::WeightTie;

use super::Repeat;
use clap::ValueEnum;
use std::fmt;

/// Which memory of a stage is counted: all that the compiler recorded, or only what the earlier
/// Python tool counted (`--memory-model`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Rules {
    /// The full model: count all memory that the compiler recorded.
    #[default]
    Full,
    /// The classic model: count only the bytes that the original tool counts.
    Classic,
}

/// The IPU that runs Out (the operations after the last layer): the first or the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum OutOn {
    /// Run Out (the operations after the last layer) on the first IPU if In and Out share a weight,
    /// otherwise on the last IPU.
    #[default]
    Auto,
    /// Run Out on the first IPU, together with In (the operations before the first layer).
    First,
    /// Run Out (the operations after the last layer) on the last IPU.
    Last,
}

impl OutOn {
    /// Returns whether Out (the operations after the last layer) runs on the first IPU. `Auto` puts
    /// it there if In (the operations before the first layer) and Out share a weight in `ties` that
    /// the user did not untie. `out` is the index of Out among the places (In, layers, Out).
    fn is_first(self, ties: &[WeightTie], out: u32) -> bool {
        match self {
            OutOn::First => true,
            OutOn::Last => false,
            OutOn::Auto => ties.iter().any(|tie| {
                !tie.is_untied && [IN, out].iter().all(|place| tie.places.contains(place))
            }),
        }
    }
}

/// Options for finding the places (In, layers, Out) of operations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlacementOptions {
    /// The IPU that runs Out (the operations after the last layer): the first or the last.
    pub out_on: OutOn,
    /// Names of weights that may be on several IPUs although several places (In, layers, Out) use
    /// them (`--untie`).
    pub untie: Vec<String>,
    /// Whether all weights may be on several IPUs, not only those in `untie`.
    pub unties_all: bool,
}

/// Why an operation is at its places (In, layers, Out).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The operation is in the layer that its name, or else the names of its inputs, contain.
    Layer,
    /// The operation is in a function that the program calls several times. Its place (In, a layer
    /// or Out) follows from the data that flows through one of these calls.
    Call,
    /// The operation is in In: it runs before the first layer in the forward pass, as the flow of
    /// data or the order of the program shows, or it is in the backward pass of such an operation.
    BeforeLayers,
    /// The operation is in Out: it runs after the last layer and before the backward pass of the
    /// layers, as the flow of data or the order of the program shows.
    AfterLayers,
    /// The operation is in a layer that its name does not show. The layer follows from the
    /// variables that the operation uses and makes.
    Variables,
    /// No data is known to flow through the operation. So it is given the place (In, a layer or
    /// Out) of the nearest earlier operation with exactly one place.
    Neighbour,
    /// The operation has no place of its own (In, a layer or Out) in the forward or backward pass.
    /// If it updates weights, it is at the places that use these weights. Otherwise, such as for a
    /// norm of all gradients or a copy from the host, each of its programs is at the places of the
    /// variables that the program uses.
    Touched,
    /// The operation runs on every IPU, so it is in every stage. Examples are operations that the
    /// compiler adds, and operations that advance a random state.
    EveryStage,
    /// The operation has no layer, so it is in the single place, before the layers, of all such
    /// operations. Only the classic memory model ([`Rules::Classic`]) has this place.
    Pseudo,
}

impl Reason {
    /// Returns whether an operation that is placed for this reason has a place of its own (In, a
    /// layer or Out). All other operations are at the places of their variables, or in every stage.
    pub(crate) fn is_own(self) -> bool {
        !matches!(self, Reason::Touched | Reason::EveryStage)
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

/// The places (In, layers, Out) of an operation, and the reason for them.
#[derive(Debug, Clone, Copy)]
pub struct OperationPlace {
    /// The places of the operation (In, layers, Out), as an index into [`Placement::sets`].
    pub places: PlaceSet,
    /// Why the operation is at its places (In, layers, Out).
    pub reason: Reason,
}

impl OperationPlace {
    /// Returns whether the operation is at no place (In, a layer or Out) itself and is not in every
    /// stage either. Each program of such an operation is at the places of the variables that the
    /// program uses.
    pub(crate) fn is_open(&self) -> bool {
        self.reason == Reason::Touched && self.places == NOWHERE
    }
}

/// The places of all operations, variables and code of a model. Places are In (the operations
/// before the first layer), the layers, and Out (those after the last layer). If Out runs on the
/// first IPU, In and Out are one place, except in `by_pass` and `ties`, where they are always two.
#[derive(Debug, Clone)]
pub struct Placement {
    /// The rules by which the places (In, layers, Out) of operations were determined.
    pub rules: Rules,
    /// The names and the order of the positions: In, the layers and Out.
    pub positions: Positions,
    /// One entry per operation: its places (In, layers, Out), and the reason for them.
    pub operations: Vec<OperationPlace>,
    /// The weights that several places (In, layers, Out) use, the largest first. All places that
    /// use a weight must be on one IPU, unless the user unties the weight.
    pub ties: Vec<WeightTie>,
    /// Ranges of neighbouring positions (In, layers, Out) that the forward pass runs through
    /// several times, such as for each token, ascending. Empty in the classic memory model
    /// ([`Rules::Classic`]), which does not look for them.
    pub repeats: Vec<Repeat>,
    /// The distinct sets of places (In, layers, Out) whose stages need a variable or code. All
    /// fields that hold such a set, except `by_pass`, hold its index here.
    pub sets: PlaceSets,
    /// One entry per use set (variables that the same operations use): the places of the operations
    /// that use its variables, separately by pass. Out is a separate place here, even if it runs on
    /// the first IPU.
    pub(crate) by_pass: PassPlaces,
    /// One entry per operation group (operations with one debug context): the places (In, layers,
    /// Out) whose stages need the group's code.
    pub(crate) of_group: Vec<PlaceSet>,
    /// One entry per operation group (operations with one debug context). It lists, for each
    /// cluster of the group's programs (programs that use the same variables), the places of their
    /// code. It is empty if all code of the group is at the same places.
    pub(crate) of_cluster: Vec<Vec<PlaceSet>>,
    /// One entry per use set (variables that the same operations use): the places (In, layers, Out)
    /// whose stages need the memory of its variables.
    pub(crate) counted: Vec<PlaceSet>,
    /// One entry per use set (variables that the same operations use): the places (In, layers, Out)
    /// that use its variables. From these, the bytes that places share or send are computed. With
    /// [`Rules::Full`], they are the places in `counted`. With [`Rules::Classic`], they include the
    /// place of operations without a layer, although its memory is not counted.
    pub(crate) sharing: Vec<PlaceSet>,
    /// One entry per operation group (operations with one debug context): whether any of its
    /// operations has a layer in the [`Layering`](super::Layering).
    pub(crate) layered_groups: Vec<bool>,
    /// One entry per use set (variables that the same operations use): whether its variables are at
    /// several places (In, layers, Out) only because of an operation that works on variables of
    /// several places, such as a norm of all gradients.
    pub(crate) by_touch: Vec<bool>,
}

impl Placement {
    /// Returns the places (In, layers, Out) of the operation with index `operation`, ascending;
    /// empty if the operation is in every stage or in no stage.
    pub fn places_of(&self, operation: usize) -> &[u32] {
        self.sets.places(self.operations[operation].places)
    }
}
