//! `debug.cbor` as another CBOR reader reads it.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use ciborium::Value;

use super::{Made, rows};

/// The fields of a context by their names.
pub type Context = HashMap<String, Value>;

/// Returns the contexts of a model, and the number of names in its string table.
pub fn contexts(directory: &Path) -> (Vec<Context>, usize) {
    let file = std::fs::read(directory.join("debug.cbor")).unwrap();
    let document: Value = ciborium::from_reader(&*file).unwrap();
    let entries: [(Value, Value); 2] = document.into_map().unwrap().try_into().unwrap();
    let [(first, contexts), (second, strings)] = entries;
    assert_eq!(
        [first, second],
        ["contexts", "stringTable"].map(Value::from)
    );
    let contexts = contexts.into_array().unwrap().into_iter().map(|context| {
        let fields = context.into_map().unwrap().into_iter();
        let fields = fields.map(|(key, value)| (key.into_text().unwrap(), value));
        fields.collect()
    });
    (contexts.collect(), strings.into_array().unwrap().len())
}

/// Returns the number in a field.
pub fn uint(context: &Context, key: &str) -> Option<u64> {
    let value = context.get(key)?.as_integer().unwrap();
    value.try_into().ok()
}

pub fn contexts_parse_and_come_before_their_parents(case: &str, made: &Made) {
    let (contexts, strings) = contexts(made.directory.path());
    let ids = contexts.iter().map(|context| uint(context, "id").unwrap());
    let ids: HashSet<u64> = ids.collect();
    assert_eq!(ids.len(), contexts.len(), "{case}");
    let mut written = HashSet::new();
    for context in &contexts {
        let is_later = |parent| ids.contains(&parent) && !written.contains(&parent);
        assert!(uint(context, "parentId").is_none_or(is_later), "{case}");
        written.insert(uint(context, "id").unwrap());
        assert!((uint(context, "name").unwrap() as usize) < strings);
    }
    let used = "SELECT debug_id FROM programs UNION SELECT debug_id FROM compute_sets";
    let used: Vec<u64> = rows(&made.profile, used, |row| row.get(0));
    assert!(used.iter().all(|id| ids.contains(id)), "{case}");
    pairs_of_calls_resolve_to_operations(&contexts);
}

fn pairs_of_calls_resolve_to_operations(contexts: &[Context]) {
    let is_operation = |context: &&Context| context["layer"] == Value::from("popart");
    let operations = contexts.iter().filter(is_operation);
    let operations: HashSet<u64> = operations.map(|own| uint(own, "id").unwrap()).collect();
    let calls = contexts.iter();
    for call in calls.filter(|own| own.contains_key("outlinedDebugContextIds")) {
        let [outlined, replaced] =
            ["outlinedDebugContextIds", "replacedDebugContextIds"].map(|key| ids(call, key));
        assert_eq!(outlined.len(), replaced.len());
        let mut all = outlined.iter().chain(&replaced);
        assert!(all.all(|id| operations.contains(id)));
    }
}

/// Reads a list such as `[12,13]`.
pub fn ids(context: &Context, key: &str) -> Vec<u64> {
    let text = context[key].as_text().unwrap();
    serde_json::from_str(text).unwrap()
}
