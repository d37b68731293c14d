//! A small check of documents against a JSON Schema: types, required fields, constants, and lengths
//! of lists. An unknown keyword fails the test.

use serde_json::Value;

/// Keywords without a condition on values, or that are read with the parts of a value.
const NOTES: &str = "$schema $defs title description default format properties \
                     additionalProperties items prefixItems";

/// Returns the values in `document` that do not conform to `schema`, each with its path.
pub fn problems(schema: &Value, document: &Value) -> Vec<String> {
    Check { whole: schema }.value(schema, document, "")
}

struct Check<'a> {
    /// The schema that has the definitions.
    whole: &'a Value,
}

impl Check<'_> {
    /// Returns the problems of a value, which is at a path.
    fn value(&self, schema: &Value, value: &Value, path: &str) -> Vec<String> {
        // A schema that is `true` or `false` accepts anything or nothing.
        if *schema == Value::Bool(false) {
            return vec![format!("{path}: nothing may be there")];
        }
        let mut problems = Vec::new();
        for (keyword, said) in schema.as_object().into_iter().flatten() {
            let is_at_least = |own: Option<f64>| own.is_none_or(|own| Some(own) >= said.as_f64());
            let accepts = |one: &Value| self.value(one, value, "").is_empty();
            let is_right = match keyword.as_str() {
                "type" => list(said).iter().any(|kind| is_of(kind, value)),
                "const" => value == said,
                "minimum" => is_at_least(value.as_f64()),
                "minItems" => is_at_least(length(value)),
                "maxItems" => length(value).is_none_or(|count| Some(count) <= said.as_f64()),
                "anyOf" | "oneOf" => list(said).iter().any(accepts),
                "required" => list(said).iter().all(|name| has(value, name)),
                "$ref" => {
                    let name = said.as_str().expect("a name").trim_start_matches('#');
                    let named = self.whole.pointer(name).expect("a definition");
                    problems.extend(self.value(named, value, path));
                    true
                }
                _ => {
                    let is_known = NOTES.split(' ').any(|known| known == keyword);
                    assert!(is_known, "the keyword {keyword} is unknown");
                    true
                }
            };
            let problem = || format!("{path}: not of {keyword} {said}");
            problems.extend((!is_right).then(problem));
        }
        for (name, schema, part) in parts(schema, value) {
            problems.extend(self.value(schema, part, &format!("{path}/{name}")));
        }
        problems
    }
}

/// Returns the parts of a value that have a schema: their names, schemas and values.
fn parts<'a>(schema: &'a Value, value: &'a Value) -> Vec<(String, &'a Value, &'a Value)> {
    let fields = value.as_object().into_iter().flatten().map(|(name, part)| {
        let own = schema["properties"].get(name);
        let own = own.or(schema.get("additionalProperties"));
        (name.clone(), own, part)
    });
    let entries = value.as_array().into_iter().flatten().enumerate();
    let entries = entries.map(|(place, part)| {
        let own = schema["prefixItems"].get(place);
        (place.to_string(), own.or(schema.get("items")), part)
    });
    let known = |(name, schema, part)| Some((name, schema?, part));
    fields.chain(entries).filter_map(known).collect()
}

/// Returns the entries of a list, or the single value.
fn list(said: &Value) -> &[Value] {
    let list = said.as_array().map(Vec::as_slice);
    list.unwrap_or(std::slice::from_ref(said))
}

fn length(value: &Value) -> Option<f64> {
    value.as_array().map(|list| list.len() as f64)
}

fn has(value: &Value, name: &Value) -> bool {
    let fields = value.as_object();
    fields.is_none_or(|fields| name.as_str().is_some_and(|name| fields.contains_key(name)))
}

fn is_of(kind: &Value, value: &Value) -> bool {
    match kind.as_str().expect("a kind") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the type {other} is unknown"),
    }
}
