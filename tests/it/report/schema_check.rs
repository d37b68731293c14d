//! A small check of documents against a JSON Schema: types, required fields, constants, and lengths
//! of lists. An unknown keyword fails the test.

use serde_json::Value;

/// Keywords without a condition on values, or that are read with another keyword.
const NOTES: [&str; 7] = [
    "$schema",
    "$defs",
    "title",
    "description",
    "default",
    "format",
    "items",
];

/// Returns the values in `document` that do not conform to `schema`, each with its path.
pub fn problems(schema: &Value, document: &Value) -> Vec<String> {
    let mut check = Check {
        schema,
        problems: Vec::new(),
    };
    check.value(schema, document, "");
    check.problems
}

struct Check<'a> {
    schema: &'a Value,
    problems: Vec<String>,
}

impl Check<'_> {
    fn value(&mut self, schema: &Value, value: &Value, path: &str) {
        // A schema that is `true` or `false` accepts anything or nothing.
        if *schema == Value::Bool(false) {
            self.problems.push(format!("{path}: nothing may be there"));
        }
        for (keyword, said) in schema.as_object().into_iter().flatten() {
            let is_right = match keyword.as_str() {
                "type" => list(said).iter().any(|kind| is_of(kind, value)),
                "const" => value == said,
                "minimum" => value
                    .as_f64()
                    .is_none_or(|number| Some(number) >= said.as_f64()),
                "minItems" => length(value).is_none_or(|count| Some(count) >= said.as_u64()),
                "maxItems" => length(value).is_none_or(|count| Some(count) <= said.as_u64()),
                "anyOf" | "oneOf" => list(said).iter().any(|one| self.is_kept(one, value)),
                "required" => list(said).iter().all(|name| has(value, name)),
                _ => {
                    self.within(keyword, said, schema, value, path);
                    true
                }
            };
            if !is_right {
                self.problems
                    .push(format!("{path}: not of {keyword} {said}"));
            }
        }
    }

    /// Checks a keyword that refers to other schemas.
    fn within(&mut self, keyword: &str, said: &Value, schema: &Value, value: &Value, path: &str) {
        match keyword {
            "$ref" => {
                let name = said.as_str().expect("a name").trim_start_matches('#');
                let named = self.schema.pointer(name).expect("a definition");
                self.value(named, value, path);
            }
            "properties" => {
                let own = said.as_object().expect("fields").iter();
                for (name, field) in own.filter(|(name, _)| has(value, &Value::from(name.as_str())))
                {
                    self.value(field, &value[name], &format!("{path}/{name}"));
                }
            }
            "additionalProperties" => {
                let others = value.as_object().into_iter().flatten();
                let others = others.filter(|(name, _)| schema["properties"].get(name).is_none());
                for (name, other) in others {
                    self.value(said, other, &format!("{path}/{name}"));
                }
            }
            "prefixItems" => self.items(list(said), None, value, path),
            "items" if schema["prefixItems"].is_null() => self.items(&[], Some(said), value, path),
            _ => assert!(NOTES.contains(&keyword), "the keyword {keyword} is unknown"),
        }
    }

    /// Checks the entries of a list: the first ones by `first`, all others by `others`.
    fn items(&mut self, first: &[Value], others: Option<&Value>, value: &Value, path: &str) {
        for (place, entry) in value.as_array().into_iter().flatten().enumerate() {
            if let Some(schema) = first.get(place).or(others) {
                self.value(schema, entry, &format!("{path}/{place}"));
            }
        }
    }

    fn is_kept(&self, schema: &Value, value: &Value) -> bool {
        let mut check = Check {
            schema: self.schema,
            problems: Vec::new(),
        };
        check.value(schema, value, "");
        check.problems.is_empty()
    }
}

/// Returns the entries of a list, or the single value.
fn list(said: &Value) -> &[Value] {
    said.as_array()
        .map_or(std::slice::from_ref(said), Vec::as_slice)
}

fn length(value: &Value) -> Option<u64> {
    value.as_array().map(|list| list.len() as u64)
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
