//! The parts of a [`Model`]: operations, groups of operations, and the variables that they use.

use super::code::{GroupCode, ProgramCluster};
use super::cycles::OperationCycles;
use super::flow::Flow;
use super::labels::{Label, TensorKind};
use super::memory_peak::MemoryPeak;
use super::operations::OwnedProgram;
use super::passes::Pass;
use super::recording::Recording;
use super::use_sets::UseSets;
use super::variable_groups::VariableGroups;
use crate::message::Warning;
use crate::profile::{BuildInfo, FormatVersion, LiveClasses, Recorded, Target, TileBytes};
use crate::witnesses::Contradiction;
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
    /// operation uses are included. They are by far the largest part, so [`saved`](crate::saved)
    /// stores them apart.
    #[serde(skip)]
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

/// An operation of the model at one place in the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Group of the operation, as a position in [`Model::operation_groups`].
    pub group: u32,
    /// Full name of the operation (docs/model.md, "Contexts and names").
    pub name: Box<str>,
    /// The inputs of its operation context, joined by `/`, every `.` read as `/`.
    pub inputs: Box<str>,
    /// Does the operation only make a tensor? Such an operation never has a layer.
    pub is_tensor: bool,
    /// Did the compiler create the operation, so that no context says its purpose (docs/model.md,
    /// "Contexts and names")?
    pub is_anonymous: bool,
    /// Is the operation part of the backward pass (docs/model.md, "Passes")?
    pub is_backward: bool,
    /// Does the operation update weights? By its name or, if no operation has such a name, by what
    /// it does.
    pub is_update: bool,
    /// The pass of the operation.
    pub pass: Pass,
    /// Is the operation in the body of a function?
    pub is_nested: bool,
    /// Index of its first and last step, both inclusive; `None` if no step runs it. A body that is
    /// listed under another call only has the steps there.
    pub window: Option<(u32, u32)>,
    /// The call that the operation is part of, as a position in [`Model::calls`], or
    /// [`NO_CALL`](super::NO_CALL).
    pub call: u32,
}

/// Code and state of the operations of one uid (docs/model.md, "Operations"), defined by the first
/// of them in the walk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationGroup {
    /// The id of the operation context.
    pub uid: u64,
    /// Window of its first operation: first and last step, both inclusive.
    pub window: Option<(u32, u32)>,
    /// Code and vertex state by tile.
    pub code: GroupCode,
    /// The steps at which the group copies from or to the host, ascending.
    pub host_copies: Vec<u32>,
    /// Programs of the group by the use sets of their variables; empty if all programs use the
    /// same.
    pub clusters: Vec<ProgramCluster>,
}

impl OperationGroup {
    /// Does it copy from or to the host and compute nothing?
    pub fn only_streams(&self) -> bool {
        !self.host_copies.is_empty() && !self.computes()
    }

    /// Does it run vertices, rather than only move data?
    pub fn computes(&self) -> bool {
        !self.code.vertex_types.is_empty()
    }
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

    /// Number of liveness steps of the program.
    pub fn steps(&self) -> u32 {
        self.classes.steps()
    }
}
