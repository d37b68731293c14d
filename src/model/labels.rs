//! Names of persistent variables, and the kind of tensor that they hold.

use crate::debug_info::{DebugInfo, Field, SoftwareLayer};
use crate::profile::VariableLabel;
use serde::{Deserialize, Serialize};

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

impl TensorKind {
    /// All kinds, each at the index `kind as usize`.
    pub const ALL: [TensorKind; 4] = [
        TensorKind::Unknown,
        TensorKind::Variable,
        TensorKind::Constant,
        TensorKind::Other,
    ];
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
        let tensors = label.debug_ids.iter().flat_map(|&id| debug_info.chain(id));
        let tensors = tensors.filter(|&context| debug_info.layer(context) == SoftwareLayer::Popart);
        let mut tensors = tensors.filter_map(|context| {
            let tensor = debug_info.text(context, Field::TensorId)?;
            Some((
                tensor,
                debug_info.text(context, Field::TensorType),
                debug_info.text(context, Field::ElementType),
            ))
        });
        let (tensor, kind, element) = tensors.next().unwrap_or(("", None, None));
        Self {
            name: label.name.as_str().into(),
            tensor: tensor.into(),
            kind: match kind {
                None => TensorKind::Unknown,
                Some("Variable") => TensorKind::Variable,
                Some("Const") => TensorKind::Constant,
                Some(_) => TensorKind::Other,
            },
            element_bytes: element.and_then(element_bytes),
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
