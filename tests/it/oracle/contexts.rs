//! `debug.cbor` as one document in memory, and the chains of contexts.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use ciborium::Value;

/// A context with all its fields.
pub struct Context {
    pub id: u64,
    pub parent: Option<u64>,
    pub layer: String,
    /// The name in the string table; empty without one.
    pub name: String,
    fields: HashMap<String, Value>,
}

impl Context {
    /// Returns a field with text that is not empty.
    pub fn text(&self, key: &str) -> Option<&str> {
        let text = self.fields.get(key).and_then(Value::as_text);
        text.filter(|text| !text.is_empty())
    }

    /// Returns a field with a list of text.
    pub fn texts(&self, key: &str) -> Vec<&str> {
        let list = self.fields.get(key).and_then(Value::as_array);
        let texts = list.into_iter().flatten().filter_map(Value::as_text);
        texts.collect()
    }

    /// Returns the pairs of an operation that replaced others: from the context in the function to
    /// the context at the call site.
    pub fn pairs(&self) -> Option<HashMap<u64, u64>> {
        let numbers = |key: &str| -> Option<Vec<u64>> {
            let text = self.text(key)?.trim_matches(['[', ']', ' ']);
            let numbers = text.split(',').filter(|number| !number.trim().is_empty());
            Some(numbers.map(|n| n.trim().parse().expect("an id")).collect())
        };
        let outlined = numbers("outlinedDebugContextIds")?;
        let replaced = numbers("replacedDebugContextIds")?;
        assert_eq!(outlined.len(), replaced.len());
        let pairs: HashMap<u64, u64> = outlined.into_iter().zip(replaced).collect();
        (!pairs.is_empty()).then_some(pairs)
    }
}

/// All contexts by id.
pub struct Contexts {
    all: HashMap<u64, Context>,
}

impl Contexts {
    pub fn read(path: &Path) -> Self {
        let file = BufReader::new(File::open(path).expect("debug.cbor opens"));
        let document: Value = ciborium::from_reader(file).expect("debug.cbor is CBOR");
        let document = fields(&document);
        let strings = document["stringTable"].as_array().expect("a list").iter();
        let strings = strings.map(|string| string.as_text().expect("a string").to_string());
        let strings: Vec<String> = strings.collect();
        let list = document["contexts"].as_array().expect("a list of contexts");
        let contexts = list.iter().map(|value| context(value, &strings));
        Self {
            all: contexts.map(|context| (context.id, context)).collect(),
        }
    }

    pub fn get(&self, id: u64) -> Option<&Context> {
        self.all.get(&id)
    }

    pub fn has_layer(&self, layer: &str) -> bool {
        self.all.values().any(|context| context.layer == layer)
    }

    /// Returns the context, its parent, and so on.
    pub fn chain(&self, id: u64) -> Vec<&Context> {
        let mut chain = Vec::new();
        let mut seen = HashSet::new();
        let mut next = Some(id);
        while let Some(id) = next {
            if !seen.insert(id) {
                break;
            }
            let Some(context) = self.get(id) else { break };
            chain.push(context);
            next = context.parent;
        }
        chain
    }
}

fn fields(map: &Value) -> HashMap<String, Value> {
    let entries = map.as_map().expect("a map").iter();
    let text = |key: &Value| key.as_text().expect("a text key").to_string();
    let entries = entries.map(|(key, value)| (text(key), value.clone()));
    entries.collect()
}

fn context(value: &Value, strings: &[String]) -> Context {
    let fields = fields(value);
    let number = |key: &str| -> Option<u64> {
        let integer = fields.get(key)?.as_integer()?;
        Some(integer.try_into().expect("not negative"))
    };
    let name = number("name").map(|index| strings[index as usize].clone());
    let layer = fields.get("layer").and_then(Value::as_text);
    Context {
        id: number("id").expect("an id"),
        parent: number("parentId"),
        layer: layer.unwrap_or_default().to_string(),
        name: name.unwrap_or_default(),
        fields,
    }
}
