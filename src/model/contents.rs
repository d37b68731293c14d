//! The contents of a [`Model`]: operations, groups of operations, and the variables that they use.

use super::code::OperationGroup;
use super::cycles::OperationCycles;
use super::flow::Flow;
use super::operations::{Operation, OwnedProgram};
use super::recording::{Label, Recording, TensorKind};
use super::use_sets::UseSets;
use super::variable_groups::VariableGroups;
use super::variables::MemoryPeak;
use crate::message::Warning;
use crate::profile::{BuildInfo, FormatVersion, LiveClasses, Recorded, Target, TileBytes};
use crate::witnesses::Contradiction;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// A model as it was compiled: operations and the cost of each.
///
/// A deserialized model may have dangling references: [`from_bytes`](crate::saved::from_bytes)
/// checks for them.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// The machine that the model was compiled for.
    pub target: Target,
    /// Every operation, in the order of its first program in the walk.
    pub operations: Vec<Operation>,
    /// Operation groups: operations of one context share a group, such as all calls of an outlined
    /// body.
    pub operation_groups: Vec<OperationGroup>,
    /// The steps at which each equivalence class is live.
    pub classes: LiveClasses,
    /// The lowered variables that hold data, by tile, equal ones joined. Variables that no
    /// operation uses are included. They are by far the largest part.
    pub variables: VariableGroups,
    /// The lowered variables that hold code or vertex state but are used by an operation all the
    /// same: the targets of code copies.
    pub code_variables: VariableGroups,
    /// By [`CodeKind`](super::CodeKind): bytes by tile of all lowered variables of this kind.
    pub recorded_code: [TileBytes; 4],
    /// The use sets that `variables` refers to.
    pub use_sets: UseSets,
    /// Labels of weights and other persistent variables, which `use_sets` refers to. The first is
    /// empty.
    pub labels: Vec<Label>,
    /// By call of a function with several call sites that does not say which operation it replaced:
    /// a number that all calls of the function share.
    pub calls: Vec<u32>,
    /// The tensors that flow between operations.
    pub flow: Flow,
    /// Bytes of code by tile of each vertex type that `operation_groups` refer to.
    pub vertex_code: Vec<TileBytes>,
    /// The programs that run compute sets or exchanges, each with the group that owns it.
    pub programs: Vec<OwnedProgram>,
    /// The memory that the compiler recorded.
    pub recorded: Recorded,
    /// Index of the first step of the backward pass; `None` for inference.
    pub backward_start: Option<u32>,
    /// Properties of the recorded compilation that a pipeline depends on.
    pub recording: Recording,
    /// The cycles of the operations; `None` if the profile has none.
    pub cycles: Option<OperationCycles>,
    /// The report format of the profile.
    pub version: FormatVersion,
    /// Versions and options that the profile was made with.
    pub made: BuildInfo,
    /// Where the whole model takes most memory; `None` unless it was requested.
    pub memory_peak: Option<MemoryPeak>,
    /// Warnings about unusual content.
    pub warnings: Vec<Warning>,
    /// Where the profile contradicts itself.
    pub contradictions: Vec<Contradiction>,
}

/// Bytes of the variables of one use set, over all tiles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SetBytes {
    pub(crate) all: u64,
    /// Bytes of parameters: live on the first and on the last step, or a variable of the framework
    /// by its context (docs/model.md, "Variables").
    pub(crate) parameters: u64,
}

impl Model {
    /// Do contexts say which variables are the framework's own, such as weights?
    pub(crate) fn has_weight_labels(&self) -> bool {
        let mut labels = self.labels.iter();
        labels.any(|label| label.kind == TensorKind::Variable)
    }

    /// The label of the variables of a use set.
    pub fn label_of(&self, set: u32) -> &Label {
        &self.labels[self.use_sets.label(set) as usize]
    }

    /// By operation group: does any of its operations satisfy `is_wanted`?
    pub(crate) fn groups_with(&self, is_wanted: impl Fn(&Operation) -> bool) -> Vec<bool> {
        let mut has_any = vec![false; self.operation_groups.len()];
        for operation in &self.operations {
            has_any[operation.group as usize] |= is_wanted(operation);
        }
        has_any
    }

    /// By use set: number of updates that use its variables, at most 2.
    pub(crate) fn updates_by_set(&self) -> Vec<u8> {
        let is_update = self.groups_with(|operation| operation.is_update);
        self.users_by_set(|group| is_update[group])
    }

    /// By use set: number of operation groups that satisfy `counts` and use its variables, at most
    /// 2.
    pub(crate) fn users_by_set(&self, counts: impl Fn(usize) -> bool) -> Vec<u8> {
        let mut of_set = vec![0u8; self.use_sets.len()];
        for (set, smaller, group) in self.use_sets.iter() {
            let count = u8::from(counts(group as usize));
            of_set[set as usize] = (of_set[smaller as usize] + count).min(2);
        }
        of_set
    }

    /// By use set: do all operation groups that use its variables satisfy `is_wanted`? True where
    /// nothing uses them.
    pub(crate) fn sets_of_only(&self, is_wanted: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut of_set = vec![true; self.use_sets.len()];
        for (set, smaller, group) in self.use_sets.iter() {
            of_set[set as usize] = of_set[smaller as usize] && is_wanted(group as usize);
        }
        of_set
    }

    /// By use set: the bytes of its variables.
    pub(crate) fn bytes_of_sets(&self) -> Vec<SetBytes> {
        let mut sums = vec![SetBytes::default(); self.use_sets.len()];
        for item in self.variables.uses() {
            let sum = &mut sums[item.set as usize];
            sum.all += item.bytes;
            let is_weight = self.label_of(item.set).kind == TensorKind::Variable;
            if is_weight || self.classes.lasts(item.class) {
                sum.parameters += item.bytes;
            }
        }
        sums
    }

    /// The highest sum of live bytes of variables that hold data on a tile, and the first step that
    /// has it.
    pub(crate) fn peak_on(&self, tile: u32) -> (u64, u32) {
        let on_tile = self.variables.on_tile(tile);
        self.classes
            .peak(on_tile.map(|group| (group.class, group.bytes)))
    }

    /// By tile: bytes of all code, and of the live variables at the tile's fullest step. Depends
    /// neither on layers nor on options.
    pub(crate) fn bytes_in_one_stage(&self) -> Vec<u64> {
        let tiles = self.target.num_tiles.min(self.variables.tiles());
        let tiles = (0..tiles).into_par_iter();
        let mut taken: Vec<u64> = tiles.map(|tile| self.peak_on(tile).0).collect();
        for bytes in &self.recorded_code {
            bytes.change(&mut taken, u64::saturating_add);
        }
        taken
    }

    /// Number of liveness steps of the program.
    pub fn steps(&self) -> u32 {
        self.classes.steps()
    }
}
