//! The keys of contexts that are kept, and what they mean.

/// Which software wrote a context.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SoftwareLayer {
    /// Poplar: variables, compute sets, programs.
    Poplar,
    /// PopLibs.
    Poplibs,
    /// PopART's builder.
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
    /// Another one, or none given.
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

/// The texts that are kept of a context, each only in the layers named here.
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
    /// `inputs` of `popart`, `popxl` and `popartbuilder`, `input` of `onnx`:
    /// a list of texts, joined by `/`.
    Inputs,
    /// `outlinedDebugContextIds` of `popart`, see
    /// [`outlined_pairs`](super::DebugInfo::outlined_pairs).
    OutlinedIds,
    /// `replacedDebugContextIds` of `popart`.
    ReplacedIds,
    /// `type` of `popart`: of a tensor, such as `Variable` or `Const`.
    TensorType,
    /// `outputs` of `popart`, joined by `/`, where one of them is a gradient:
    /// its name contains `Gradient___`.
    Gradients,
    /// `elementType` of `popart`: of a tensor, such as `FLOAT16`.
    ElementType,
    /// `__execution_context` among the `attributes` of `popart`.
    ExecutionContext,
    /// `recompute` among them, where it is `YES`.
    Recompute,
    /// `recomputetype` among them, where it is not `Checkpoint`.
    RecomputeType,
}

/// A key of a context that is looked at.
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

/// The keys that hold a text or a list of texts. Which of them is a [`Field`]
/// is known only with the layer, which may come later in the map.
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

/// A part of the names of gradients (checked against PopART's sources).
pub(super) const GRADIENT: &str = "Gradient___";
/// The value by which PopART marks an operation that is recomputed in the
/// backward pass.
pub(super) const IS_RECOMPUTED: &str = "YES";
/// The `recomputetype` that tells nothing: that of most operations.
pub(super) const IS_CHECKPOINT: &str = "Checkpoint";

/// The entries of `attributes` that are looked at.
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

    /// The meaning of the key in a context of this layer. No kept key means two
    /// things within one layer, so the category is not needed.
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
