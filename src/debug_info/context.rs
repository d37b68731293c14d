//! Reads one debug context. Defines which keys of a context are kept, what each key means in each
//! software layer, and the form in which contexts are stored.

use super::cbor::{Items, Left, Unreadable};
use ciborium_ll::Header;
use serde::Deserialize;
use serde::de::value::{Error as ValueError, StrDeserializer};
use std::{io::Read, ops::Range};

/// The software layer, such as PopART, that wrote a debug context, from the key `layer` of the
/// context.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SoftwareLayer {
    /// Poplar wrote the debug context, for example for a variable, compute set or program.
    Poplar,
    /// The PopLibs libraries wrote the debug context, for a call of one of their functions.
    Poplibs,
    /// PopART's builder wrote the debug context, for a function call that adds a node to the ONNX
    /// graph.
    PopartBuilder,
    /// PopART wrote the debug context for a node of the ONNX graph that it read.
    Onnx,
    /// PopART wrote the debug context, for one of PopART's operations or tensors.
    Popart,
    /// PopTorch wrote the debug context, for an operation of the user's model.
    Poptorch,
    /// PopXL wrote the debug context, for an operation of the user's model.
    Popxl,
    /// TensorFlow or JAX wrote the debug context, for an operation before XLA compiles it.
    #[serde(rename = "xla_op")]
    XlaOp,
    /// XLA wrote the debug context, for an instruction of its intermediate language HLO.
    HloInstruction,
    /// The debug context has no key `layer`, or names software for which there is no variant.
    #[default]
    #[serde(other)]
    Other,
}

/// A kind of text in a debug context that popliner needs, such as the name of an operation. Other
/// texts are skipped. The description of each variant has the software layers that write the text,
/// and the key of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContextField {
    /// Name of the API function that was called: key `api` in contexts of `poplibs` and `popxl`.
    Api,
    /// Name of the operation: key `opName` in contexts of `onnx`; key `op_name` in contexts of
    /// `poptorch` and `xla_op`.
    OpName,
    /// Name of the instruction: key `hlo_name` in contexts of `hloinstruction`.
    HloName,
    /// Type and number of the operation, such as `ai.onnx.Add:6`: key `opid` in contexts of
    /// `popart`.
    Opid,
    /// Id of the instance of an operation: key `instanceId` in contexts of `popart`.
    InstanceId,
    /// Name of the tensor: key `tensorId` in contexts of `popart` and `popartbuilder`.
    TensorId,
    /// Names of the inputs of the operation, joined by `/`: the list `inputs` in contexts of
    /// `popart`, `popxl` and `popartbuilder`.
    Inputs,
    /// For a Call to a function that PopART made of repeated operations: ids of the contexts of the
    /// operations in the function. Key `outlinedDebugContextIds` in contexts of `popart`.
    OutlinedIds,
    /// For a Call to a function that PopART made of repeated operations: ids of the contexts of the
    /// operations that the Call replaced. Key `replacedDebugContextIds` in contexts of `popart`,
    /// see [`outlined_pairs`](super::DebugInfo::outlined_pairs).
    ReplacedIds,
    /// Kind of the tensor, such as `Variable` or `Const`: key `type` in contexts of `popart`.
    TensorType,
    /// Names of the outputs of the operation, joined by `/`: the list `outputs` in contexts of
    /// `popart`. The text is kept only if an output is a gradient, whose name contains
    /// `Gradient___`.
    Gradients,
    /// Type of a tensor's elements, such as `FLOAT16`: key `elementType` in contexts of `popart`.
    ElementType,
    /// The phase in which PopART runs the operation, such as the weight update: key
    /// `__execution_context` in the `attributes` of a context of `popart`.
    ExecutionContext,
    /// The text `YES` for an operation that PopART recomputes in the backward pass: key `recompute`
    /// in the `attributes` of a context of `popart`. Other values are not kept.
    Recompute,
    /// PopART's recompute type of the operation, such as `Recompute`: key `recomputetype` in the
    /// `attributes` of a context of `popart`. The type `Checkpoint` (no recomputation), which most
    /// operations have, is not kept.
    RecomputeType,
}

/// A key of a debug context whose value is read. Poplar writes many other keys, which are skipped.
#[derive(Clone, Copy)]
enum ContextKey {
    Id,
    ParentId,
    Name,
    Layer,
    Category,
    Attributes,
    Text(TextKey),
}

/// A key of a debug context whose value is a text or a list of texts. Within one software layer, a
/// key has the same meaning in all contexts, whatever the category of the context.
#[derive(Clone, Copy, PartialEq)]
struct TextKey {
    field: ContextField,
    /// The software layers (such as PopART) in whose debug contexts popliner needs the text at this
    /// key. In the contexts of all other software layers, the text is dropped.
    layers: &'static [SoftwareLayer],
}

/// Returns what the key `name` in the `attributes` of a debug context means; `None` if popliner
/// does not need the value of this key.
fn attribute(name: &str) -> Option<ContextKey> {
    let field = match name {
        "__execution_context" => ContextField::ExecutionContext,
        "recompute" => ContextField::Recompute,
        "recomputetype" => ContextField::RecomputeType,
        _ => return None,
    };
    let layers = &[SoftwareLayer::Popart];
    Some(ContextKey::Text(TextKey { field, layers }))
}

impl TextKey {
    fn is_list(self) -> bool {
        matches!(self.field, ContextField::Inputs | ContextField::Gradients)
    }
}

/// Returns what the key `text` of a debug context means, such as its id or the name of an
/// operation; `None` if popliner does not need the value of this key.
fn key(text: &str) -> Option<ContextKey> {
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

/// A debug context in memory. The default, which has id 0, stands for a missing context.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContextRecord {
    /// Id of the debug context; 0 stands for a missing context.
    pub id: u64,
    /// Id of the parent debug context; 0 for a root.
    pub parent: u64,
    /// Index of the context's name in the string table; `None` for a context without a name. An
    /// index of more than 32 bits is stored as `u32::MAX`, which is beyond the end of every string
    /// table.
    pub name: Option<u32>,
    /// Index into `DebugInfo::fields` of the first text of this context. Only texts that popliner
    /// needs are stored there.
    pub first_field: u32,
    /// Number of texts of the context that popliner needs, which are consecutive in
    /// `DebugInfo::fields`.
    pub field_count: u8,
    /// Software that wrote the debug context.
    pub layer: SoftwareLayer,
    /// Whether Poplar gave the debug context the category `program` or `compilation`.
    pub is_of_programs: bool,
    /// Whether the context is its own ancestor, so that following parents leads back to the
    /// context.
    pub on_cycle: bool,
}

/// The debug context that is being read: its record and its texts. One `Draft` is filled with all
/// contexts in turn, so that its buffers are reused.
#[derive(Default)]
pub struct Draft {
    /// The debug context that is being read, without its texts; `first_field` and `field_count` are
    /// not set yet.
    pub record: ContextRecord,
    bytes: String,
    /// The texts of the debug context that is being read. Each entry has the key that the text has
    /// in the context, and the range of the text in `bytes`.
    texts: Vec<(TextKey, Range<usize>)>,
    /// Number of keys and values of the context that have an unexpected type: keys that are not
    /// texts, and values of the keys for id, parent, name, layer and category. A negative number, a
    /// float, a boolean or null is not counted, since it may stand for a missing value.
    pub mistyped: usize,
}

impl Draft {
    /// Reads one debug context from the entries of its CBOR map, in place of the context that was
    /// read before.
    ///
    /// Values of an unexpected type are ignored. If a key repeats, its last valid value is kept.
    pub fn read(&mut self, items: &mut Items<impl Read>, left: Left) -> Result<(), Unreadable> {
        self.record = ContextRecord::default();
        self.bytes.clear();
        self.texts.clear();
        self.mistyped = 0;
        self.mistyped += self.read_entries(items, left, key)?;
        Ok(())
    }

    /// Reads the entries of a CBOR map and stores their values in the debug context that is being
    /// read. `meaning` returns which value of a debug context a key stands for, or `None` if the
    /// value of the key is to be skipped. Returns the number of keys that are not text strings.
    fn read_entries(
        &mut self,
        items: &mut Items<impl Read>,
        mut left: Left,
        meaning: fn(&str) -> Option<ContextKey>,
    ) -> Result<usize, Unreadable> {
        let mut no_texts = 0;
        let mut meaning = |key: Option<&str>| {
            no_texts += usize::from(key.is_none());
            key.and_then(meaning)
        };
        while let Some(key) = items.next_key(&mut left, &mut meaning)? {
            let header = items.item()?;
            match key {
                Some(key) => self.read_value(items, key, header)?,
                None => items.skip(header)?,
            }
        }
        Ok(no_texts)
    }

    /// Reads the value of `key`, which begins with `header`, and stores it in the debug context. A
    /// value of an unexpected type is skipped. If `key` is the id, parent, name, layer or category,
    /// such a value is counted as mistyped, unless it may stand for a missing value: a negative
    /// number, a float, a boolean or null.
    fn read_value(
        &mut self,
        items: &mut Items<impl Read>,
        key: ContextKey,
        header: Header,
    ) -> Result<(), Unreadable> {
        let record = &mut self.record;
        match (key, header) {
            (ContextKey::Id, Header::Positive(number)) => record.id = number,
            (ContextKey::ParentId, Header::Positive(number)) => record.parent = number,
            (ContextKey::Name, Header::Positive(number)) => {
                record.name = Some(u32::try_from(number).unwrap_or(u32::MAX));
            }
            (ContextKey::Layer, Header::Text(length)) => {
                let layer = StrDeserializer::<ValueError>::new(items.text(length)?);
                record.layer = SoftwareLayer::deserialize(layer).unwrap_or_default();
            }
            (ContextKey::Category, Header::Text(length)) => {
                record.is_of_programs = matches!(items.text(length)?, "program" | "compilation");
            }
            (ContextKey::Text(key), Header::Text(length)) if !key.is_list() => {
                let start = self.bytes.len();
                self.bytes.push_str(items.text(length)?);
                self.store_text_from(key, start);
            }
            (ContextKey::Text(key), Header::Array(left)) if key.is_list() => {
                self.read_list(items, key, left)?;
            }
            // The attributes of a context may have keys that are no texts, which are skipped and
            // are no sign of damage.
            (ContextKey::Attributes, Header::Map(left)) => {
                self.read_entries(items, left, attribute)?;
            }
            (key, header) => {
                let may_be_missing = matches!(
                    header,
                    Header::Negative(_) | Header::Float(_) | Header::Simple(_)
                );
                let may_differ = matches!(key, ContextKey::Attributes | ContextKey::Text(_));
                self.mistyped += usize::from(!may_be_missing && !may_differ);
                items.skip(header)?;
            }
        }
        Ok(())
    }

    /// Stores the text of a debug context that was appended to `bytes` from `start` on, as the
    /// value of `key`. It replaces an earlier value of this key. A text that popliner does not need
    /// ([`is_needed`]) is removed from `bytes` instead.
    fn store_text_from(&mut self, key: TextKey, start: usize) {
        if !is_needed(key, &self.bytes[start..]) {
            return self.bytes.truncate(start);
        }
        let text = start..self.bytes.len();
        match self.texts.iter_mut().find(|(stored, _)| *stored == key) {
            Some((_, range)) => *range = text,
            None => self.texts.push((key, text)),
        }
    }

    /// Reads the list that is the value of `key` in a debug context, and stores its texts, joined
    /// by `/`. Stores nothing if an item of the list is not a text.
    fn read_list(
        &mut self,
        items: &mut Items<impl Read>,
        key: TextKey,
        mut left: Left,
    ) -> Result<(), Unreadable> {
        let start = self.bytes.len();
        let mut only_texts = true;
        let mut separator = "";
        while let Some(header) = items.next(&mut left)? {
            if let Header::Text(length) = header {
                self.bytes.push_str(separator);
                self.bytes.push_str(items.text(length)?);
                separator = "/";
            } else {
                only_texts = false;
                items.skip(header)?;
            }
        }
        if only_texts {
            self.store_text_from(key, start);
        } else {
            self.bytes.truncate(start);
        }
        Ok(())
    }

    /// Returns the texts of the debug context that popliner needs, each with its kind, such as the
    /// name of an operation. Leaves out texts whose keys have no meaning in contexts of the
    /// software layer that wrote the context. This is decided only here, since the file may name
    /// the layer after the texts.
    pub fn fields(&self) -> impl Iterator<Item = (ContextField, &str)> {
        self.texts
            .iter()
            .filter(|(key, _)| key.layers.contains(&self.record.layer))
            .map(|(key, text)| (key.field, &self.bytes[text.clone()]))
    }
}

/// Returns whether popliner needs the text `value`, which a debug context has at `key`. It needs
/// outputs only if one of them is a gradient, `recompute` only if it is `YES`, `recomputetype` only
/// if it is not `Checkpoint`, and all other texts always.
fn is_needed(key: TextKey, value: &str) -> bool {
    match key.field {
        // A list of outputs is kept only if one of them is a gradient. PopART puts `Gradient___`
        // into the name of every gradient (checked against the source code of PopART).
        ContextField::Gradients => value.contains("Gradient___"),
        ContextField::Recompute => value == "YES",
        // Most operations have the recompute type `Checkpoint`, so it is not stored.
        ContextField::RecomputeType => value != "Checkpoint",
        _ => true,
    }
}
