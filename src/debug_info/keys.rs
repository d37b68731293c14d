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

/// A key that holds a text or a list of texts, with the bits of the layers whose contexts mean
/// `field` by it. No key has two meanings within one layer, so the category does not matter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TextKey {
    pub field: Field,
    layers: u16,
}

/// Part of the name of every gradient (checked against the sources of PopART).
pub(super) const GRADIENT: &str = "Gradient___";
/// Value of `recompute` on operations that PopART recomputes in the backward pass.
pub(super) const IS_RECOMPUTED: &str = "YES";
/// Value of `recomputetype` on most operations, which is not kept.
pub(super) const IS_CHECKPOINT: &str = "Checkpoint";

/// Key of an entry of `attributes`; `None` if the entry is not read.
pub(super) fn attribute(name: &str) -> Option<ContextKey> {
    let field = match name {
        "__execution_context" => Field::ExecutionContext,
        "recompute" => Field::Recompute,
        "recomputetype" => Field::RecomputeType,
        _ => return None,
    };
    let layers = SoftwareLayer::Popart.bit();
    Some(ContextKey::Text(TextKey { field, layers }))
}

impl TextKey {
    pub(super) fn is_list(self) -> bool {
        matches!(self.field, Field::Inputs | Field::Gradients)
    }

    /// Meaning of the key in a context of this layer, which may come later in the map.
    pub(super) fn field(self, layer: SoftwareLayer) -> Option<Field> {
        (self.layers & layer.bit() != 0).then_some(self.field)
    }
}

/// Key of a context; `None` if it is not read.
pub(super) fn key(text: &str) -> Option<ContextKey> {
    use SoftwareLayer::*;
    let (field, layers) = match text {
        "id" => return Some(ContextKey::Id),
        "parentId" => return Some(ContextKey::ParentId),
        "name" => return Some(ContextKey::Name),
        "layer" => return Some(ContextKey::Layer),
        "category" => return Some(ContextKey::Category),
        "attributes" => return Some(ContextKey::Attributes),
        "api" => (Field::Api, Poplibs.bit() | Popxl.bit()),
        "opName" => (Field::OpName, Onnx.bit()),
        "op_name" => (Field::OpName, Poptorch.bit() | XlaOp.bit()),
        "hlo_name" => (Field::HloName, HloInstruction.bit()),
        "opid" => (Field::Opid, Popart.bit()),
        "instanceId" => (Field::InstanceId, Popart.bit()),
        "tensorId" => (Field::TensorId, Popart.bit() | PopartBuilder.bit()),
        "inputs" => (
            Field::Inputs,
            Popart.bit() | Popxl.bit() | PopartBuilder.bit(),
        ),
        "outlinedDebugContextIds" => (Field::OutlinedIds, Popart.bit()),
        "replacedDebugContextIds" => (Field::ReplacedIds, Popart.bit()),
        "type" => (Field::TensorType, Popart.bit()),
        "elementType" => (Field::ElementType, Popart.bit()),
        "outputs" => (Field::Gradients, Popart.bit()),
        _ => return None,
    };
    Some(ContextKey::Text(TextKey { field, layers }))
}
