//! Properties of the recorded compilation that a pipeline depends on (docs/model.md, "Passes").

use super::names::op_type;
use super::operations::UnnamedOperations;
use super::walk::EMPTY_PATH;
use super::{Label, Operation, Pass};
use crate::debug_info::{DebugInfo, Field, SoftwareLayer};
use crate::message::Warning;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

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
        let has = |layer| debug_info.has_layer(layer);
        if has(SoftwareLayer::Popxl) {
            Framework::Popxl
        } else if has(SoftwareLayer::Poptorch) {
            Framework::Poptorch
        } else if has(SoftwareLayer::Popart) {
            Framework::Popart
        } else if has(SoftwareLayer::XlaOp) || has(SoftwareLayer::HloInstruction) {
            Framework::Tensorflow
        } else {
            Framework::Poplar
        }
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
