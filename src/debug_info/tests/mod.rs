//! Tests the reader of debug files on generated documents; `tests/it/numbers/fixtures.rs` and
//! `tests/it/cli/input_files.rs` read debug files of real models.

mod damage;
mod fields;
mod ids;
mod properties;
mod shapes;

use ciborium::Value;

use super::{ContextField, Damage, DebugInfo, Position, SoftwareLayer, Truncation};

impl DebugInfo {
    fn truncation(&self) -> Option<&Truncation> {
        match self.damage.first() {
            Some(Damage::Truncated(truncation)) => Some(truncation),
            _ => None,
        }
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).unwrap();
    bytes
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn int(value: u64) -> Value {
    Value::Integer(value.into())
}

fn texts(items: &[&str]) -> Value {
    Value::Array(items.iter().map(|item| text(item)).collect())
}

fn map(entries: &[(&str, Value)]) -> Value {
    let entry = |(key, value): &(&str, Value)| (text(key), value.clone());
    Value::Map(entries.iter().map(entry).collect())
}

/// Returns a debug context as Poplar writes it, without a parent if `parent` is 0.
fn context(id: u64, parent: u64, layer: &str, rest: &[(&str, Value)]) -> Value {
    let mut entries = vec![("id", int(id)), ("layer", text(layer))];
    if parent != 0 {
        entries.push(("parentId", int(parent)));
    }
    entries.extend_from_slice(rest);
    map(&entries)
}

/// Returns a debug file as Poplar lays it out: the encoded contexts, then the string table.
fn document_of(contexts: &[Vec<u8>], table: &Value) -> Vec<u8> {
    let mut document = vec![0xa2];
    document.extend(bytes(&text("contexts")));
    document.push(0x9f);
    contexts.iter().for_each(|bytes| document.extend(bytes));
    document.push(0xff);
    document.extend(bytes(&text("stringTable")));
    document.extend(bytes(table));
    document
}

fn document(contexts: &[Value], names: &[&str]) -> Vec<u8> {
    let contexts: Vec<Vec<u8>> = contexts.iter().map(bytes).collect();
    document_of(&contexts, &texts(names))
}

fn read(bytes: &[u8]) -> Result<DebugInfo, String> {
    DebugInfo::from_reader(bytes).map_err(|error| error.to_string())
}

/// Reads a debug file and checks that it has no sign of damage and no warning.
fn read_sound(bytes: &[u8]) -> DebugInfo {
    let info = read(bytes).unwrap();
    assert_eq!(info.damage(), []);
    assert_eq!(info.warning(), None);
    info
}

fn at(info: &DebugInfo, id: u64) -> Position {
    let position = info.position(id).unwrap();
    assert_eq!(info.id(position), id);
    position
}

fn chain_ids(info: &DebugInfo, id: u64) -> Vec<u64> {
    info.chain(id).map(|position| info.id(position)).collect()
}

/// Returns the data of every debug context, so that the results of reading two files can be
/// compared.
fn everything(info: &DebugInfo) -> Vec<(u64, SoftwareLayer, Vec<Option<String>>)> {
    let known = |place: u32| {
        let position = Position(place);
        let texts = ALL_FIELDS.map(|field| info.text(position, field).map(str::to_owned));
        (info.id(position), info.layer(position), texts.to_vec())
    };
    (0..info.len() as u32).map(known).collect()
}

const ALL_FIELDS: [ContextField; 9] = [
    ContextField::Api,
    ContextField::OpName,
    ContextField::HloName,
    ContextField::Opid,
    ContextField::InstanceId,
    ContextField::TensorId,
    ContextField::Inputs,
    ContextField::OutlinedIds,
    ContextField::ReplacedIds,
];
