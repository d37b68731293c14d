//! Defines which keys of a debug context are kept, and what they mean in each software layer.

/// The software that wrote a debug context, from the context's key `layer`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum SoftwareLayer {
    /// Poplar wrote the context, for a variable, a compute set or a program.
    Poplar,
    /// The PopLibs libraries wrote the context, for a call of one of their functions.
    Poplibs,
    /// The builder of PopART wrote the context, for a call that adds a node to the ONNX graph.
    PopartBuilder,
    /// PopART wrote the context for a node of the ONNX graph that it read.
    Onnx,
    /// PopART wrote the context for an operation or a tensor of its own.
    Popart,
    /// PopTorch wrote the context, for an operation of the user's model.
    Poptorch,
    /// PopXL wrote the context, for an operation of the user's model.
    Popxl,
    /// TensorFlow or JAX wrote the context, for an operation before XLA compiles it.
    XlaOp,
    /// XLA wrote the context, for an instruction of its intermediate language HLO.
    HloInstruction,
    /// Other software wrote the context, or the context has no key `layer`.
    #[default]
    Other,
}

impl SoftwareLayer {
    /// Returns the software layer whose contexts have this text under `layer`.
    pub(super) fn from_text(text: &str) -> Self {
        match text {
            "poplar" => Self::Poplar,
            "poplibs" => Self::Poplibs,
            "popartbuilder" => Self::PopartBuilder,
            "onnx" => Self::Onnx,
            "popart" => Self::Popart,
            "poptorch" => Self::Poptorch,
            "popxl" => Self::Popxl,
            "xla_op" => Self::XlaOp,
            "hloinstruction" => Self::HloInstruction,
            _ => Self::Other,
        }
    }
}

/// A text of a context that is kept. Each variant names the key under which a software layer writes
/// the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContextField {
    /// Name of a function of the API: `api` of `poplibs` and `popxl`.
    Api,
    /// Name of the operation: `opName` of `onnx`; `op_name` of `poptorch` and `xla_op`.
    OpName,
    /// Name of the instruction: `hlo_name` of `hloinstruction`.
    HloName,
    /// Type and number of the operation: `opid` of `popart`, such as `ai.onnx.Add:6`.
    Opid,
    /// Id of the instance of an operation: `instanceId` of `popart`.
    InstanceId,
    /// Name of the tensor: `tensorId` of `popart` and `popartbuilder`.
    TensorId,
    /// Names of the inputs of the operation, joined by `/`: the list `inputs` of `popart`, `popxl`
    /// and `popartbuilder`.
    Inputs,
    /// Ids of the contexts of outlined operations: `outlinedDebugContextIds` of `popart`, see
    /// [`outlined_pairs`](super::DebugInfo::outlined_pairs).
    OutlinedIds,
    /// Ids of the contexts that outlined operations replace: `replacedDebugContextIds` of `popart`,
    /// see [`outlined_pairs`](super::DebugInfo::outlined_pairs).
    ReplacedIds,
    /// Kind of the tensor, such as `Variable` or `Const`: `type` of `popart`.
    TensorType,
    /// Names of the outputs of the operation, joined by `/`: the list `outputs` of `popart`. Kept
    /// only if an output is a gradient: its name contains `Gradient___`.
    Gradients,
    /// Type of the elements of the tensor, such as `FLOAT16`: `elementType` of `popart`.
    ElementType,
    /// When PopART runs the operation, such as in the weight update: `__execution_context` in the
    /// `attributes` of `popart`.
    ExecutionContext,
    /// `YES` on an operation that PopART recomputes in the backward pass: `recompute` in the
    /// `attributes` of `popart`. Other values are not kept.
    Recompute,
    /// How PopART recomputes the operation: `recomputetype` in the `attributes` of `popart`. The
    /// value `Checkpoint` is not kept.
    RecomputeType,
}

/// A key of a debug context whose value is read; all other keys are skipped.
#[derive(Clone, Copy)]
pub(super) enum ContextKey {
    Id,
    ParentId,
    Name,
    Layer,
    Category,
    Attributes,
    Text(TextKey),
}

/// A key of a context whose value is a text or a list of texts: the field in which the value is
/// kept, and the software layers that write the key. No key has two meanings within one layer, so
/// the category of the context does not matter.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct TextKey {
    /// The field in which the value is kept.
    pub field: ContextField,
    /// The software layers whose contexts mean `field` by this key.
    layers: &'static [SoftwareLayer],
}

/// Returns the meaning of a key within the `attributes` of a context; `None` if its value is not
/// read.
pub(super) fn attribute(name: &str) -> Option<ContextKey> {
    let field = match name {
        "__execution_context" => ContextField::ExecutionContext,
        "recompute" => ContextField::Recompute,
        "recomputetype" => ContextField::RecomputeType,
        _ => return None,
    };
    Some(ContextKey::Text(TextKey {
        field,
        layers: &[SoftwareLayer::Popart],
    }))
}

impl TextKey {
    /// Returns whether the value of the key is a list of texts rather than a text.
    pub fn is_list(self) -> bool {
        matches!(self.field, ContextField::Inputs | ContextField::Gradients)
    }

    /// Returns the field in which the value of this key is kept if the context was written by
    /// `layer`; `None` if that layer does not write the key. The layer may stand after the key in
    /// the file.
    pub fn field(self, layer: SoftwareLayer) -> Option<ContextField> {
        self.layers.contains(&layer).then_some(self.field)
    }
}

/// Returns the meaning of a key of a context; `None` if its value is not read.
pub(super) fn key(text: &str) -> Option<ContextKey> {
    use {ContextField::*, ContextKey::*, SoftwareLayer::*};
    let of = |field, layers: &'static _| Some(Text(TextKey { field, layers }));
    match text {
        "id" => Some(Id),
        "parentId" => Some(ParentId),
        "name" => Some(Name),
        "layer" => Some(Layer),
        "category" => Some(Category),
        "attributes" => Some(Attributes),
        "api" => of(Api, &[Poplibs, Popxl]),
        "opName" => of(OpName, &[Onnx]),
        "op_name" => of(OpName, &[Poptorch, XlaOp]),
        "hlo_name" => of(HloName, &[HloInstruction]),
        "opid" => of(Opid, &[Popart]),
        "instanceId" => of(InstanceId, &[Popart]),
        "tensorId" => of(TensorId, &[Popart, PopartBuilder]),
        "inputs" => of(Inputs, &[Popart, Popxl, PopartBuilder]),
        "outlinedDebugContextIds" => of(OutlinedIds, &[Popart]),
        "replacedDebugContextIds" => of(ReplacedIds, &[Popart]),
        "type" => of(TensorType, &[Popart]),
        "elementType" => of(ElementType, &[Popart]),
        "outputs" => of(Gradients, &[Popart]),
        _ => None,
    }
}
