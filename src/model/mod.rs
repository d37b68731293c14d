//! The model of a compiled program: its operations, with the variables and the code that each
//! operation uses. A [`Layering`] assigns the operations to layers (docs/model.md, "Layers"). The
//! model does not depend on the layers, so one model serves any number of layerings.
//!
//! [`Model::build`] joins a profile and its debug contexts as docs/model.md describes in "Contexts
//! and names", "The walk", "Operations", "Code", "Passes" and "The flow of data".

mod build;
mod code;
mod cycles;
mod flow;
mod layer_lookup;
mod layer_regex;
mod layer_warnings;
mod layers;
mod layers_by_ipu;
mod lists;
mod modules;
mod names;
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

pub use code::{GroupCode, OperationGroup, ProgramCluster};
pub use cycles::{CycleSource, CyclesByLayer, NoCycles, OperationCycles, PassCycles, WorkCycles};
pub use flow::{DataFlow, FlowEdge, FlowNode, NO_NODE};
pub use layer_lookup::Named;
pub use layer_regex::{LayerOrder, NO_LAYER, Note};
pub use layers::{DEFAULT_INPUTS_REGEX, DEFAULT_LAYER_REGEX, LayerOptions, LayerSource, Layering};
pub use layers_by_ipu::LayersByIpu;
pub(crate) use lists::{ascending, counts, crossing};
pub use modules::{ModuleCalls, Repeat};
pub(crate) use modules::{ModuleLayers, without_numbers};
pub use operations::{Operation, OwnedKind, OwnedProgram, Pass};
pub(crate) use placement::meets;
pub use placement::{
    EVERYWHERE, LayerNames, NOWHERE, OperationPlace, OutOn, PassPlaces, PlaceSet, PlaceSets,
    Placement, PlacementOptions, Positions, PseudoLayers, Reason, Rules, TooManyPlaces, WeightTie,
};
pub use profile_lookup::{
    LivePlace, NamedVariable, ProfileLookup, StepProgram, TileVariable, VariablesByPosition,
};
pub use recording::{Framework, Label, Recording, TensorKind};
pub use use_sets::{NO_USERS, UseSets};
pub use variable_groups::{TileUse, VariableGroup, VariableGroups, VariableUse};
pub use variables::MemoryPeak;
pub use walk::NO_CALL;

use crate::{
    message::Warning,
    profile::{BuildInfo, LiveClasses, Recorded, Target, TileBytes},
    witnesses::Contradiction,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The model of one compiled program: its operations with their code, and the variables that
/// operations use. The model does not depend on the choice of layers.
///
/// The indices in a deserialized model may be too large for the lists to which they refer. The
/// module `saved` checks them.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// The IPUs that the program was compiled for, with their number of tiles and the memory of a
    /// tile.
    pub target: Target,
    /// All operations, in the order in which a walk over the program tree reaches their first
    /// programs.
    pub operations: Vec<Operation>,
    /// All operation groups. A group has all operations with the same debug context, such as one
    /// operation in all calls of an outlined function.
    pub operation_groups: Vec<OperationGroup>,
    /// The equivalence classes of variables. All variables of a class are live at the same liveness
    /// steps.
    pub classes: LiveClasses,
    /// The lowered variables that hold data, including those that no operation uses. Variables on
    /// one tile with the same equivalence class and the same use set (the operation groups that use
    /// a variable) are stored as one group. This field is by far the largest, so the file of a
    /// saved model stores it in an encoding of its own.
    #[serde(skip)]
    pub variables: VariableGroups,
    /// The lowered variables that hold code or vertex state and that an operation uses: programs of
    /// the type `CodeCopy` copy code to them. The file of a saved model stores them in an encoding
    /// of their own.
    #[serde(skip)]
    pub code_variables: VariableGroups,
    /// One entry per [`CodeKind`](crate::profile::CodeKind): the bytes, on each tile, of all
    /// lowered variables that hold this kind of code.
    pub recorded_code: [TileBytes; 4],
    /// The use sets of all variables. A use set is the set of operation groups that use a variable.
    pub use_sets: UseSets,
    /// Labels of weights and other persistent variables, to which `use_sets` refers by index. The
    /// first label is empty, for variables without a label.
    pub labels: Vec<Label>,
    /// One entry per call of a function that is called from several places: the called function, as
    /// the index of its body among the profile's programs. A call is left out if debug contexts
    /// give the operations in it names of their own.
    pub calls: Vec<u32>,
    /// The graph of the data that flows through variables from operations to later operations.
    pub flow: DataFlow,
    /// One entry per vertex type of the profile: the bytes of the vertex type's code on each tile.
    pub vertex_code: Vec<TileBytes>,
    /// The programs that run a compute set or an exchange, each with its operation group and the
    /// bytes of its vertex state or exchange code.
    pub programs: Vec<OwnedProgram>,
    /// The memory of each tile, and of each category of variables, as the compiler recorded it.
    pub recorded: Recorded,
    /// The liveness step at which the backward pass begins; `None` for inference.
    pub backward_start: Option<u32>,
    /// Properties of the recorded compilation, such as recomputation, on which the memory of a
    /// pipeline depends.
    pub recording: Recording,
    /// The cycles of the operations; `None` if the profile has no cycles.
    pub cycles: Option<OperationCycles>,
    /// Versions and options of the software that made the profile.
    pub made: BuildInfo,
    /// The tile and the liveness step with the most live bytes; `None` unless [`Model::build`] was
    /// asked to find them.
    pub memory_peak: Option<MemoryPeak>,
    /// Warnings for the user about unusual content of the profile or the debug contexts.
    pub warnings: Vec<Warning>,
    /// Contradictions that were found between tables of the profile.
    pub contradictions: Vec<Contradiction>,
    /// The regexes that the user gave for finding layers when the model was saved.
    pub layer_regexes: LayerRegexes,
}

/// The regexes that the user gave for finding layers. A field is `None` if the user did not give
/// its regex.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerRegexes {
    /// The value of `--layer-name-regex`: a regex, or `auto`.
    pub names: Option<String>,
    /// The value of `--inputs-regex-layer-0`, the regex for inputs of the first layer.
    pub inputs: Option<String>,
}

/// Sums of bytes, over all tiles, of the variables of one use set, that is, of variables that the
/// same operation groups use.
#[derive(Clone, Copy, Default)]
pub(crate) struct SetBytes {
    pub(crate) all: u64,
    /// Bytes of parameters. A variable is a parameter if it is live on the first and the last step,
    /// or if its debug context marks it as a variable of the framework (docs/model.md,
    /// "Variables").
    pub(crate) parameters: u64,
}

impl Model {
    /// Returns what the program does: `training` if it has a backward pass, otherwise `inference`.
    pub(crate) fn work(&self) -> &'static str {
        self.backward_start.map_or("inference", |_| "training")
    }

    /// Returns the fewest bytes, over all tiles, that a variable must have to count as a tensor: 16
    /// for each tile of the target. A single number that several operations share, such as the
    /// scale of all gradients, has fewer bytes, even if each tile has a copy.
    pub(crate) fn min_tensor_bytes(&self) -> u64 {
        16 * u64::from(self.target.num_tiles)
    }

    /// Returns whether debug contexts mark any variable as a variable of the framework, such as a
    /// weight.
    pub(crate) fn has_weight_labels(&self) -> bool {
        self.labels
            .iter()
            .any(|label| label.kind == TensorKind::Variable)
    }

    /// Returns the framework's label (name, tensor and kind) of the variables whose use set (the
    /// operation groups that use a variable) has the index `set` in [`Model::use_sets`].
    pub fn label_of(&self, set: u32) -> &Label {
        &self.labels[self.use_sets.label(set) as usize]
    }

    /// Returns whether variables are parameters, such as weights (docs/model.md, "Variables"): they
    /// are live on the first and the last step, or their debug context marks them as variables of
    /// the framework. `class` is the index in [`Model::classes`] of the steps at which they are
    /// live, and `set` the index in [`Model::use_sets`] of the operation groups that use them.
    pub(crate) fn is_parameter(&self, class: u32, set: u32) -> bool {
        self.classes.lasts(class) || self.label_of(set).kind == TensorKind::Variable
    }

    /// Returns one entry per operation group (operations with one debug context): whether
    /// `is_wanted` is true for any operation of the group, given by its index and its properties.
    pub(crate) fn groups_with(&self, is_wanted: impl Fn(usize, &Operation) -> bool) -> Vec<bool> {
        let mut has_any = vec![false; self.operation_groups.len()];
        for (number, operation) in self.operations.iter().enumerate() {
            has_any[operation.group as usize] |= is_wanted(number, operation);
        }
        has_any
    }

    /// Returns one entry per operation group (operations with one debug context): whether any of
    /// its operations begins at the liveness step `start` or later.
    pub(crate) fn groups_from(&self, start: u32) -> Vec<bool> {
        self.groups_with(|_, operation| operation.window.is_some_and(|(first, _)| first >= start))
    }

    /// Returns one entry per use set (variables that the same operations use): the number of
    /// operation groups that update weights with the set's variables. 2 means two or more.
    pub(crate) fn updates_by_set(&self) -> Vec<u8> {
        let is_update = self.groups_with(|_, operation| operation.is_update);
        self.users_by_set(|group| is_update[group])
    }

    /// Returns one entry per use set (variables that the same operations use): the number of
    /// operation groups that use these variables and for which `counts` is true. 2 means two or
    /// more.
    pub(crate) fn users_by_set(&self, counts: impl Fn(usize) -> bool) -> Vec<u8> {
        self.use_sets
            .fold(0, |sum: u8, group| (sum + u8::from(counts(group))).min(2))
    }

    /// Returns one entry per use set (variables that the same operations use): whether `is_wanted`
    /// is true for all operation groups that use the set's variables. The entry is true if no group
    /// uses them.
    pub(crate) fn sets_of_only(&self, is_wanted: impl Fn(usize) -> bool) -> Vec<bool> {
        self.use_sets
            .fold(true, |are_wanted, group| are_wanted && is_wanted(group))
    }

    /// Returns one entry per use set (variables that the same operations use): whether `is_wanted`
    /// is true for any operation group that uses the set's variables.
    pub(crate) fn sets_of_any(&self, is_wanted: impl Fn(usize) -> bool) -> Vec<bool> {
        self.use_sets
            .fold(false, |is_any, group| is_any || is_wanted(group))
    }

    pub(crate) fn bytes_of_sets(&self) -> Vec<SetBytes> {
        let mut sums = vec![SetBytes::default(); self.use_sets.len()];
        for item in self.variables.uses() {
            let sum = &mut sums[item.set as usize];
            sum.all += item.bytes;
            if self.is_parameter(item.class, item.set) {
                sum.parameters += item.bytes;
            }
        }
        sums
    }

    /// Returns one entry per use set (the operations that use a variable): whether an operation of
    /// the forward pass uses the variable. Copies from and to the host do not count.
    pub(crate) fn sets_of_forward(&self) -> Vec<bool> {
        let is_forward = self.groups_with(|_, operation| operation.pass.is_forward());
        self.sets_of_any(|group| is_forward[group] && !self.operation_groups[group].only_streams())
    }

    /// Iterates over the use sets of weights (the operation groups that use each weight), each with
    /// the bytes of its weights.
    ///
    /// If debug contexts mark variables of the framework, the marked ones are the weights.
    /// Otherwise, two kinds of always-live variables are weights: those that exactly one update
    /// uses, and those that no update uses but that the host both writes and reads. The second kind
    /// must be tensors ([`min_tensor_bytes`](Self::min_tensor_bytes)). Variables that the forward
    /// pass does not use, such as accumulators and optimizer state, are never weights.
    pub(crate) fn weights(&self, bytes: &[SetBytes]) -> impl Iterator<Item = (u32, u64)> {
        let has_kinds = self.has_weight_labels();
        let updates = self.updates_by_set();
        // A variable that the host both writes and reads may be a weight, but neither an input nor
        // a constant: the host never reads inputs back, and it never copies constants.
        let copies = self.users_by_set(|group| self.operation_groups[group].only_streams());
        // The forward pass reads weights, but neither accumulators nor optimizer state. So only
        // variables that it reads can be weights.
        let reads = self.sets_of_forward();
        (0u32..)
            .zip(bytes)
            .map(|(set, bytes)| (set, bytes.parameters))
            .filter(move |&(set, parameters)| match self.label_of(set).kind {
                _ if parameters == 0 || !reads[set as usize] => false,
                kind if has_kinds => kind == TensorKind::Variable,
                TensorKind::Constant => false,
                _ => match updates[set as usize] {
                    0 => copies[set as usize] == 2 && parameters >= self.min_tensor_bytes(),
                    // A variable that several updates use, such as a learning rate, is not a
                    // weight.
                    updates => updates == 1,
                },
            })
    }

    /// Returns the most bytes of data variables that are live at one step on `tile`, and the first
    /// step at which this many bytes are live.
    pub(crate) fn peak_on(&self, tile: u32) -> (u64, u32) {
        let on_tile = self.variables.on_tile(tile);
        self.classes
            .peak(on_tile.map(|group| (group.class, group.bytes)))
    }

    /// Returns one entry per tile: the bytes that the whole model needs as a single pipeline stage.
    /// They are the bytes of all code, of the data variables at the step with the most live bytes
    /// on the tile, and of recorded memory that no variable explains. Neither layers nor options
    /// change the result.
    fn totals_in_one_stage(&self) -> Vec<u64> {
        let mut taken: Vec<u64> = (0..self.variables.tiles())
            .into_par_iter()
            .map(|tile| self.peak_on(tile).0)
            .collect();
        for bytes in &self.recorded_code {
            bytes.add_to(&mut taken);
        }
        for (bytes, tile) in taken.iter_mut().zip(&self.recorded.tiles) {
            *bytes = bytes.saturating_add(tile.beyond_variables());
        }
        taken
    }

    /// Returns the number of liveness steps of the program.
    pub fn steps(&self) -> u32 {
        self.classes.steps()
    }
}
