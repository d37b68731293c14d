//! Facts that contexts record of tensors and of the compilation: labels of variables, and properties
//! that a pipeline depends on (docs/model.md, "Passes").

use super::names::op_type;
use super::operations::{Operation, Pass, UnnamedOperations};
use super::walk::EMPTY_PATH;
use crate::debug_info::{DebugInfo, Field, SoftwareLayer};
use crate::message::Warning;
use crate::profile::VariableLabel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Marks of gradient accumulators in names of PopART and of TensorFlow.
const POPART_ACCUMULATOR: &str = "Accum___";
const TENSORFLOW_ACCUMULATOR: &str = "/Accumulator";

/// The kind of tensor that a variable holds, according to the contexts of the framework.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum TensorKind {
    /// No context gives the kind.
    #[default]
    Unknown,
    /// A weight, or other state that training changes.
    Variable,
    /// A constant.
    Constant,
    /// Anything else.
    Other,
}

/// The label of the variables of one tensor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The base name of the variables.
    pub name: Box<str>,
    /// The tensor's id in the framework; empty if no context gives it.
    pub tensor: Box<str>,
    /// The kind of tensor.
    pub kind: TensorKind,
    /// Bytes of one element; `None` if no context gives them.
    pub element_bytes: Option<u8>,
}

impl Label {
    /// The label of a profile, with what its contexts say about the tensor.
    pub(super) fn new(label: &VariableLabel, debug_info: &DebugInfo) -> Self {
        let mut contexts = label.debug_ids.iter().flat_map(|&id| debug_info.chain(id));
        let tensor = contexts.find(|&context| {
            debug_info.layer(context) == SoftwareLayer::Popart
                && debug_info.text(context, Field::TensorId).is_some()
        });
        let text = |field| debug_info.text(tensor?, field);
        Self {
            name: label.name.as_str().into(),
            tensor: text(Field::TensorId).unwrap_or_default().into(),
            kind: match text(Field::TensorType) {
                None => TensorKind::Unknown,
                Some("Variable") => TensorKind::Variable,
                Some("Const") => TensorKind::Constant,
                Some(_) => TensorKind::Other,
            },
            element_bytes: text(Field::ElementType).and_then(element_bytes),
        }
    }

    /// Name of the tensor as a weight: the tensor's id, or else the name of its variables without
    /// the mark of a part.
    pub fn weight_name(&self) -> &str {
        if self.tensor.is_empty() {
            self.name.trim_end_matches('#')
        } else {
            &self.tensor
        }
    }

    /// Is it the label of an accumulator of gradients?
    pub fn is_accumulator(&self) -> bool {
        let name = self.weight_name();
        name.starts_with(POPART_ACCUMULATOR) || name.ends_with(TENSORFLOW_ACCUMULATOR)
    }
}

/// Bytes of one element of a type, by its name in PopART.
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Framework {
    /// PopART.
    Popart,
    /// PyTorch through PopTorch.
    Poptorch,
    /// PopXL.
    Popxl,
    /// TensorFlow, or JAX.
    Tensorflow,
    /// Only Poplar and its libraries, or an unknown framework.
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
    fn of(debug_info: &DebugInfo) -> Self {
        let by_layer = [
            (SoftwareLayer::Popxl, Framework::Popxl),
            (SoftwareLayer::Poptorch, Framework::Poptorch),
            (SoftwareLayer::Popart, Framework::Popart),
            (SoftwareLayer::XlaOp, Framework::Tensorflow),
            (SoftwareLayer::HloInstruction, Framework::Tensorflow),
        ];
        let found = by_layer
            .into_iter()
            .find(|&(layer, _)| debug_info.has_layer(layer));
        found.map_or(Framework::Poplar, |(_, framework)| framework)
    }
}

/// Facts about the recorded compilation, and the versions of the software that wrote it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Recording {
    /// The software that the model was written with, as its contexts show.
    pub framework: Framework,
    /// Does it accumulate gradients over several micro-batches?
    pub accumulates: bool,
    /// Does it recompute parts of the forward pass for the backward pass?
    pub recomputes: bool,
    /// Are there operations that mark checkpoints for recomputation?
    pub has_checkpoints: bool,
    /// Are tensors loaded from memory outside the IPUs, such as optimizer state?
    pub loads_state: bool,
    /// Are tensors gathered from several replicas?
    pub gathers_state: bool,
}

/// The part of the program that runs once for all micro-batches.
const UPDATE_CONTEXT: &str = "AccumulateOuterFragment";
/// The operation of PopART that loads from memory outside the IPUs, and the suffixes of tensors
/// that are loaded and of tensors that are gathered from replicas.
const REMOTE_LOAD: &str = "RemoteLoad";
const LOADED_END: &str = "__l0";
const GATHERED_END: &str = "__g0";
/// The prefix of operations that mark a checkpoint.
const CHECKPOINT: &str = "Checkpoint";

impl Recording {
    /// Derives the properties from contexts, names and passes.
    pub(super) fn new(
        debug_info: &DebugInfo,
        found: &UnnamedOperations,
        operations: &[Operation],
        labels: &[Label],
    ) -> Self {
        let texts = |field| {
            let operations = found.operations.iter();
            let contexts = operations.map(|operation| operation.context.position);
            contexts.filter_map(move |context| debug_info.text(context, field))
        };
        let ends = |end| {
            labels
                .iter()
                .any(|label| label.weight_name().ends_with(end))
        };
        // Operations that the compiler makes may run in both passes anyway.
        let runs_twice = |operation: &Operation| {
            operation.pass == Pass::Both && !operation.is_nested && !operation.is_anonymous
        };
        let marks = |operation: &Operation| {
            let mut parts = operation.name.split('/');
            parts.any(|part| part.starts_with(CHECKPOINT))
        };
        Self {
            framework: Framework::of(debug_info),
            accumulates: labels.iter().any(Label::is_accumulator)
                || texts(Field::ExecutionContext).any(|text| text == UPDATE_CONTEXT),
            recomputes: texts(Field::Recompute).next().is_some()
                || operations.iter().any(runs_twice),
            has_checkpoints: operations.iter().any(marks),
            loads_state: texts(Field::Opid).any(|opid| op_type(opid).starts_with(REMOTE_LOAD))
                || ends(LOADED_END),
            gathers_state: ends(GATHERED_END),
        }
    }
}

/// Warns if the two witnesses of the backward pass disagree: backward operations have gradients
/// among their outputs, and PopART (2.6 and later) never marks them to run again.
pub(super) fn disagreement(
    debug_info: &DebugInfo,
    found: &UnnamedOperations,
    operations: &[Operation],
) -> Option<Warning> {
    let both = found.operations.iter().zip(operations);
    let again = both.filter(|(found, operation)| {
        let kind = debug_info.text(found.context.position, Field::RecomputeType);
        operation.is_backward && found.path == EMPTY_PATH && kind.is_some()
    });
    let names: Vec<&str> = again.map(|(_, operation)| &*operation.name).collect();
    let first = names.first()?;
    Some(Warning::new(format!(
        "{} operations have gradients among their outputs, but are marked as part of the forward \
         pass by their attribute `recomputetype` (the first is {first:?}), so popliner cannot be \
         sure which operations are backward, and what a pipeline keeps; leave pipeline costs out \
         with --schedule none",
        names.len()
    )))
}
