//! The model of a compiled program: its operations in the order of the program, with the memory and
//! the layer of each operation.
//!
//! [`Model::build`] joins a profile and its debug contexts as docs/model.md describes in "Contexts
//! and names", "The walk", "Operations", "Code", "Passes" and "The flow of data". The model does
//! not depend on the choice of layers, so one model serves any number of [`Layering`]s
//! (docs/model.md, "Layers").

mod build;
mod code;
mod contents;
mod cycles;
mod flow;
mod layer_cycles;
mod layer_lookup;
mod layer_regex;
mod layer_warnings;
mod layers;
mod layers_by_ipu;
mod lists;
mod modules;
mod names;
mod nearly_always_live;
mod operations;
mod passes;
mod placement;
mod profile_lookup;
mod recording;
mod refine;
#[cfg(test)]
pub(crate) mod testing;
mod use_sets;
mod variable_groups;
mod variables;
mod walk;
mod windows;

pub use code::{GroupCode, OperationGroup, ProgramCluster};
pub(crate) use contents::SetBytes;
pub use contents::{LayerRegexes, Model};
pub use cycles::{CycleSource, OperationCycles, WorkCycles};
pub use flow::{DataFlow, FlowEdge, FlowNode, NO_NODE};
pub use layer_cycles::{CyclesByLayer, NoCycles, PassCycles};
pub use layer_lookup::Named;
pub use layer_regex::{LayerOrder, NO_LAYER, Note};
pub use layers::{DEFAULT_INPUTS_REGEX, DEFAULT_LAYER_REGEX, LayerOptions, LayerSource, Layering};
pub use layers_by_ipu::LayersByIpu;
pub(crate) use lists::{ascending, counts};
pub use modules::{ModuleCalls, Repeat};
pub(crate) use modules::{ModuleLayers, without_numbers};
pub use operations::{Operation, OwnedKind, OwnedProgram, Pass};
pub(crate) use placement::meets;
pub use placement::{
    EVERYWHERE, LayerNames, NOWHERE, OperationPlace, OutOn, PassPlaces, PlaceSet, PlaceSets,
    Placement, PlacementOptions, Positions, PseudoLayers, Reason, Rules, TooManyPlaces, Untied,
    WeightTie,
};
pub use profile_lookup::{
    FetchedNames, LivePlace, NamedVariable, ProfileLookup, TileLists, TileVariable,
};
pub use recording::{Framework, Label, Recording, TensorKind};
pub use use_sets::{NO_USERS, UseSets};
pub use variable_groups::{TileUse, VariableGroup, VariableGroups, VariableUse};
pub use variables::MemoryPeak;
pub use walk::NO_CALL;
pub use windows::{StepProgram, StepPrograms};
