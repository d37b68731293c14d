//! Collects facts that the debug contexts record: the framework's labels of variables, and the
//! properties of the compilation that affect a pipeline (docs/model.md, "Passes").

use super::{
    names::op_type,
    operations::{Operation, Pass, UnnamedOperations, operation_layer},
};
use crate::{
    debug_info::{ContextField, DebugInfo, SoftwareLayer},
    message::Warning,
    profile::VariableLabel,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind of tensor that a variable is part of, as the framework's debug contexts record it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum TensorKind {
    /// The tensor is a weight, or other state that training changes.
    Variable,
    /// The tensor is a constant, which never changes.
    Constant,
    /// Any other tensor, such as an activation, and any tensor whose kind the debug contexts do not
    /// record.
    #[default]
    Other,
}

/// The label of a tensor: what the profile and the framework's debug contexts record about it. All
/// lowered variables that are parts of the tensor share the label.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The name that the tensor's variables have in common in the profile, such as `weights#` for
    /// the variables `weights#0` and `weights#1`.
    pub name: Box<str>,
    /// The id of the tensor in the framework; empty if no debug context records it.
    pub tensor: Box<str>,
    /// The kind of tensor, such as a weight or a constant.
    pub kind: TensorKind,
    /// Bytes of one element of the tensor; `None` if no debug context records the element type.
    pub element_bytes: Option<u8>,
}

impl Label {
    /// Builds the label of a tensor. Its name comes from the profile (`label`). The id, the kind
    /// and the size of an element come from the tensor's PopART debug context; they are unknown if
    /// there is none.
    pub(super) fn new(label: &VariableLabel, debug_info: &DebugInfo) -> Self {
        let tensor = label
            .debug_ids
            .iter()
            .flat_map(|&id| debug_info.chain(id))
            .find(|&context| {
                debug_info.layer(context) == SoftwareLayer::Popart
                    && debug_info.text(context, ContextField::TensorId).is_some()
            });
        let text = |field| debug_info.text(tensor?, field);
        Self {
            name: label.name.as_str().into(),
            tensor: text(ContextField::TensorId).unwrap_or_default().into(),
            kind: match text(ContextField::TensorType) {
                Some("Variable") => TensorKind::Variable,
                Some("Const") => TensorKind::Constant,
                _ => TensorKind::Other,
            },
            element_bytes: text(ContextField::ElementType).and_then(element_bytes),
        }
    }

    /// Returns the name of the tensor by which it is recognised, for example, as an accumulator of
    /// a weight: its id in the framework or, if the id is unknown, its name in the profile without
    /// `#` at the end.
    pub fn weight_name(&self) -> &str {
        if self.tensor.is_empty() {
            self.name.trim_end_matches('#')
        } else {
            &self.tensor
        }
    }

    /// Returns whether the tensor is a gradient accumulator, judging by its name: it begins with
    /// `Accum___` in PopART, and ends with `/Accumulator` in TensorFlow.
    pub fn is_accumulator(&self) -> bool {
        let name = self.weight_name();
        name.starts_with("Accum___") || name.ends_with("/Accumulator")
    }
}

/// Returns the bytes of one element of the PopART data type `name`, such as `FLOAT16`; `None` for
/// unknown types.
fn element_bytes(name: &str) -> Option<u8> {
    match name {
        "BOOL" | "INT8" | "UINT8" | "FLOAT8_143" | "FLOAT8_152" => Some(1),
        "FLOAT16" | "BFLOAT16" | "INT16" | "UINT16" => Some(2),
        "FLOAT" | "INT32" | "UINT32" => Some(4),
        "DOUBLE" | "INT64" | "UINT64" => Some(8),
        _ => None,
    }
}

/// The software that the model was written with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Framework {
    /// PopART without another framework.
    Popart,
    /// PyTorch through PopTorch.
    Poptorch,
    /// PopXL, which builds PopART models from Python.
    Popxl,
    /// TensorFlow, or JAX: both compile with XLA.
    Tensorflow,
    /// Poplar and its libraries without a framework, or an unknown framework.
    #[default]
    Poplar,
}

impl fmt::Display for Framework {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Framework::Popart => "PopART",
            Framework::Poptorch => "PopTorch",
            Framework::Popxl => "PopXL",
            Framework::Tensorflow => "TensorFlow",
            Framework::Poplar => "plain Poplar",
        })
    }
}

impl Framework {
    /// Returns the smallest number of IPUs that is at least `stages` and that the framework
    /// supports. PopTorch only supports powers of 2.
    pub fn supported(self, stages: usize) -> usize {
        match self {
            Framework::Poptorch => stages.next_power_of_two(),
            _ => stages,
        }
    }

    fn of(debug_info: &DebugInfo) -> Self {
        match operation_layer(debug_info) {
            _ if debug_info.has_layer(SoftwareLayer::Popxl) => Framework::Popxl,
            _ if debug_info.has_layer(SoftwareLayer::Poptorch) => Framework::Poptorch,
            Some(SoftwareLayer::Popart) => Framework::Popart,
            Some(_) => Framework::Tensorflow,
            None => Framework::Poplar,
        }
    }
}

/// Properties of the recorded compilation that the memory of a pipeline depends on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Recording {
    /// The software that the model was written with, by its debug contexts.
    pub framework: Framework,
    /// Whether the model accumulates gradients over several micro-batches.
    pub accumulates: bool,
    /// Whether the model recomputes parts of the forward pass for the backward pass.
    pub recomputes: bool,
    /// Whether the model has operations that mark checkpoints for recomputation.
    pub has_checkpoints: bool,
    /// Whether the model loads tensors, such as optimizer state, from memory outside the IPUs.
    pub loads_state: bool,
    /// Whether the model gathers tensors, such as optimizer state, that are divided among replicas.
    pub gathers_state: bool,
}

/// PopART's name of the part of the program that runs once, after all micro-batches, to update
/// weights.
pub const UPDATE_CONTEXT: &str = "AccumulateOuterFragment";

impl Recording {
    pub(super) fn new(
        debug_info: &DebugInfo,
        found: &UnnamedOperations,
        operations: &[Operation],
        labels: &[Label],
    ) -> Self {
        let texts = |field| {
            found
                .operations
                .iter()
                .filter_map(move |own| debug_info.text(own.context, field))
        };
        let names = || labels.iter().map(Label::weight_name);
        // An operation that runs in both passes shows recomputation. Exceptions are operations that
        // the compiler made and operations in functions, which may run in both passes without
        // recomputation.
        let runs_twice = |operation: &Operation| {
            operation.pass == Pass::Both && !operation.is_nested && !operation.is_anonymous
        };
        let marks_checkpoint = |operation: &Operation| {
            operation
                .name
                .split('/')
                .any(|part| part.starts_with("Checkpoint"))
        };
        Self {
            framework: Framework::of(debug_info),
            accumulates: labels.iter().any(Label::is_accumulator)
                || texts(ContextField::ExecutionContext).any(|text| text == UPDATE_CONTEXT),
            recomputes: texts(ContextField::Recompute).next().is_some()
                || operations.iter().any(runs_twice),
            has_checkpoints: operations.iter().any(marks_checkpoint),
            // PopART appends `__l0` to the ids of tensors that are loaded from memory outside the
            // IPUs, and `__g0` to those of tensors that are gathered from replicas.
            loads_state: names().any(|name| name.ends_with("__l0"))
                || texts(ContextField::Opid).any(|opid| op_type(opid).starts_with("RemoteLoad")),
            gathers_state: names().any(|name| name.ends_with("__g0")),
        }
    }
}

/// Returns a warning if debug contexts contradict each other about the pass of an operation. An
/// operation with gradients among its outputs is marked as backward, but PopART (2.6 and later)
/// gives the attribute `recomputetype` only to forward operations.
pub fn disagreement(
    debug_info: &DebugInfo,
    found: &UnnamedOperations,
    operations: &[Operation],
) -> Option<Warning> {
    let mut again = found
        .operations
        .iter()
        .zip(operations)
        .filter(|(found, operation)| {
            let kind = debug_info.text(found.context, ContextField::RecomputeType);
            operation.is_backward && !operation.is_nested && kind.is_some()
        });
    let (_, Operation { name, .. }) = again.next()?;
    Some(Warning::new(format!(
        "{} operations have gradients among their outputs, but are marked as part of the forward \
         pass by their attribute `recomputetype` (the first is {name:?}), so popliner cannot be \
         sure which operations are backward, and what a pipeline keeps; leave pipeline costs out \
         with --schedule none",
        1 + again.count()
    )))
}
