//! Keys of contexts that are kept, and their meanings.

/// Software that wrote a context.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SoftwareLayer {
    /// Poplar: variables, compute sets and programs.
    Poplar,
    /// PopLibs.
    Poplibs,
    /// The builder of PopART.
    PopartBuilder,
    /// The ONNX graph that PopART read.
    Onnx,
    /// PopART.
    Popart,
    /// PopTorch.
    Poptorch,
    /// PopXL.
    Popxl,
    /// TensorFlow or JAX, before XLA.
    XlaOp,
    /// An instruction of XLA.
    HloInstruction,
    /// XLA's Poplar backend.
    PoplarDriver,
    /// Another layer, or none.
    Other,
}

impl SoftwareLayer {
    pub(super) fn from_text(text: &str) -> Self {
        match text {
            "poplar" => SoftwareLayer::Poplar,
            "poplibs" => SoftwareLayer::Poplibs,
            "popartbuilder" => SoftwareLayer::PopartBuilder,
            "onnx" => SoftwareLayer::Onnx,
            "popart" => SoftwareLayer::Popart,
            "poptorch" => SoftwareLayer::Poptorch,
            "popxl" => SoftwareLayer::Popxl,
            "xla_op" => SoftwareLayer::XlaOp,
            "hloinstruction" => SoftwareLayer::HloInstruction,
            "poplar_driver" => SoftwareLayer::PoplarDriver,
            _ => SoftwareLayer::Other,
        }
    }

    pub(super) fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Texts of a context that are kept, with their keys by software layer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Field {
    /// `api` of `poplibs` and `popxl`.
    Api,
    /// `opName` of `onnx`; `op_name` of `poptorch` and `xla_op`.
    OpName,
    /// `hlo_name` of `hloinstruction`.
    HloName,
    /// `opid` of `popart`, such as `ai.onnx.Add:6`.
    Opid,
    /// `instanceId` of `popart`.
    InstanceId,
    /// `tensorId` of `popart` and `popartbuilder`.
    TensorId,
    /// `inputs` of `popart`, `popxl` and `popartbuilder`, `input` of `onnx`: a list of texts,
    /// joined by `/`.
    Inputs,
    /// `outlinedDebugContextIds` of `popart`, see
    /// [`outlined_pairs`](super::DebugInfo::outlined_pairs).
    OutlinedIds,
    /// `replacedDebugContextIds` of `popart`.
    ReplacedIds,
    /// `type` of a tensor of `popart`, such as `Variable` or `Const`.
    TensorType,
    /// `outputs` of `popart`, joined by `/`, if one of them is a gradient: its name contains
    /// `Gradient___`.
    Gradients,
    /// `elementType` of a tensor of `popart`, such as `FLOAT16`.
    ElementType,
    /// `__execution_context` in the `attributes` of `popart`.
    ExecutionContext,
    /// `recompute` in the `attributes` of `popart`, if it is `YES`.
    Recompute,
    /// `recomputetype` in the `attributes` of `popart`, unless it is `Checkpoint`.
    RecomputeType,
}

/// A key of a context that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ContextKey {
    Id,
    ParentId,
    Name,
    Layer,
    Category,
    Attributes,
    Text(TextKey),
}

/// Keys that hold a text or a list of texts. Which [`Field`] a key stands for depends on the
/// software layer, which may come later in the map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TextKey {
    Api,
    OpNameCamel,
    OpNameSnake,
    HloName,
    Opid,
    InstanceId,
    TensorId,
    Inputs,
    OutlinedIds,
    ReplacedIds,
    Type,
    ElementType,
    Outputs,
    ExecutionContext,
    Recompute,
    RecomputeType,
}

/// Part of the name of every gradient (checked against the sources of PopART).
pub(super) const GRADIENT: &str = "Gradient___";
/// Value of `recompute` on operations that PopART recomputes in the backward pass.
pub(super) const IS_RECOMPUTED: &str = "YES";
/// Value of `recomputetype` on most operations, which is not kept.
pub(super) const IS_CHECKPOINT: &str = "Checkpoint";

/// Key of an entry of `attributes`; `None` if the entry is not read.
pub(super) fn attribute(name: &str) -> Option<TextKey> {
    match name {
        "__execution_context" => Some(TextKey::ExecutionContext),
        "recompute" => Some(TextKey::Recompute),
        "recomputetype" => Some(TextKey::RecomputeType),
        _ => None,
    }
}

impl TextKey {
    pub(super) fn is_list(self) -> bool {
        matches!(self, TextKey::Inputs | TextKey::Outputs)
    }

    /// Meaning of the key in a context of this layer. No key has two meanings within one layer, so
    /// the category does not matter.
    pub(super) fn field(self, layer: SoftwareLayer) -> Option<Field> {
        use SoftwareLayer::*;
        let (field, layers): (Field, &[SoftwareLayer]) = match self {
            TextKey::Api => (Field::Api, &[Poplibs, Popxl]),
            TextKey::OpNameCamel => (Field::OpName, &[Onnx]),
            TextKey::OpNameSnake => (Field::OpName, &[Poptorch, XlaOp]),
            TextKey::HloName => (Field::HloName, &[HloInstruction]),
            TextKey::Opid => (Field::Opid, &[Popart]),
            TextKey::InstanceId => (Field::InstanceId, &[Popart]),
            TextKey::TensorId => (Field::TensorId, &[Popart, PopartBuilder]),
            TextKey::Inputs => (Field::Inputs, &[Popart, Popxl, PopartBuilder]),
            TextKey::OutlinedIds => (Field::OutlinedIds, &[Popart]),
            TextKey::ReplacedIds => (Field::ReplacedIds, &[Popart]),
            TextKey::Type => (Field::TensorType, &[Popart]),
            TextKey::ElementType => (Field::ElementType, &[Popart]),
            TextKey::Outputs => (Field::Gradients, &[Popart]),
            TextKey::ExecutionContext => (Field::ExecutionContext, &[Popart]),
            TextKey::Recompute => (Field::Recompute, &[Popart]),
            TextKey::RecomputeType => (Field::RecomputeType, &[Popart]),
        };
        layers.contains(&layer).then_some(field)
    }
}

pub(super) fn key(text: &str) -> Option<ContextKey> {
    Some(match text {
        "id" => ContextKey::Id,
        "parentId" => ContextKey::ParentId,
        "name" => ContextKey::Name,
        "layer" => ContextKey::Layer,
        "category" => ContextKey::Category,
        "api" => ContextKey::Text(TextKey::Api),
        "opName" => ContextKey::Text(TextKey::OpNameCamel),
        "op_name" => ContextKey::Text(TextKey::OpNameSnake),
        "hlo_name" => ContextKey::Text(TextKey::HloName),
        "opid" => ContextKey::Text(TextKey::Opid),
        "instanceId" => ContextKey::Text(TextKey::InstanceId),
        "tensorId" => ContextKey::Text(TextKey::TensorId),
        "inputs" => ContextKey::Text(TextKey::Inputs),
        "outlinedDebugContextIds" => ContextKey::Text(TextKey::OutlinedIds),
        "replacedDebugContextIds" => ContextKey::Text(TextKey::ReplacedIds),
        "type" => ContextKey::Text(TextKey::Type),
        "elementType" => ContextKey::Text(TextKey::ElementType),
        "outputs" => ContextKey::Text(TextKey::Outputs),
        "attributes" => ContextKey::Attributes,
        _ => return None,
    })
}
