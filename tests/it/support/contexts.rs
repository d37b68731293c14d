//! Changes of `debug.cbor`.

use std::fs;
use std::path::Path;

use ciborium::Value;

fn change_document(path: &Path, change: impl FnOnce(&mut Value)) {
    let bytes = fs::read(path).expect("a debug file");
    let mut document = ciborium::from_reader(&*bytes).expect("CBOR");
    change(&mut document);
    let mut bytes = Vec::new();
    ciborium::into_writer(&document, &mut bytes).expect("CBOR");
    fs::write(path, bytes).expect("a debug file");
}

/// Changes the contexts and the string table of a debug file.
pub fn change(path: &Path, change: impl FnOnce(&mut Vec<Value>, &mut Vec<Value>)) {
    change_document(path, |document| {
        let [(_, contexts), (_, strings)] = &mut document.as_map_mut().expect("a map")[..] else {
            panic!("two entries");
        };
        let lists = [contexts, strings].map(|list| list.as_array_mut().expect("a list"));
        let [contexts, strings] = lists;
        change(contexts, strings);
    });
}

/// Changes all texts of a debug file except the keys of its maps.
pub fn change_texts(path: &Path, mut change: impl FnMut(&mut String)) {
    change_document(path, |document| change_texts_of(document, &mut change));
}

fn change_texts_of(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::Text(text) => change(text),
        Value::Array(values) => values
            .iter_mut()
            .for_each(|one| change_texts_of(one, change)),
        Value::Map(entries) => {
            let values = entries.iter_mut().map(|(_, value)| value);
            values.for_each(|value| change_texts_of(value, change));
        }
        _ => {}
    }
}

/// Returns a field of a context, or null.
pub fn field(context: &Value, key: &str) -> Value {
    let mut fields = context.as_map().expect("a map").iter();
    let field = fields.find(|(name, _)| name.as_text() == Some(key));
    field.map_or(Value::Null, |(_, value)| value.clone())
}

/// Returns the number in a field of a context.
pub fn number(context: &Value, key: &str) -> Option<u64> {
    field(context, key).as_integer()?.try_into().ok()
}

pub fn remove(context: &mut Value, key: &str) {
    let fields = context.as_map_mut().expect("a map");
    fields.retain(|(name, _)| name.as_text() != Some(key));
}

pub fn set(context: &mut Value, key: &str, value: impl Into<Value>) {
    remove(context, key);
    let fields = context.as_map_mut().expect("a map");
    fields.push((key.into(), value.into()));
}
