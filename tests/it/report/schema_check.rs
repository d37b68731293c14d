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
    let whole = schema;
    Check { whole }.value(schema, document, "")
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
        let keywords = schema.as_object().into_iter().flatten();
        let problems = keywords.flat_map(|(keyword, said)| {
            let is_at_least =
                |number: Option<f64>| number.is_none_or(|own| Some(own) >= said.as_f64());
            let is_right = match keyword.as_str() {
                "type" => list(said).iter().any(|kind| is_of(kind, value)),
                "const" => value == said,
                "minimum" => is_at_least(value.as_f64()),
                "minItems" => is_at_least(length(value)),
                "maxItems" => length(value).is_none_or(|count| Some(count) <= said.as_f64()),
                "anyOf" | "oneOf" => list(said)
                    .iter()
                    .any(|one| self.value(one, value, "").is_empty()),
                "required" => list(said).iter().all(|name| has(value, name)),
                _ => return self.within(keyword, schema, value, path),
            };
            let problem = || format!("{path}: not of {keyword} {said}");
            (!is_right).then(problem).into_iter().collect()
        });
        problems.collect()
    }

    /// Returns the problems of a keyword that refers to other schemas.
    fn within(&self, keyword: &str, schema: &Value, value: &Value, path: &str) -> Vec<String> {
        let said = &schema[keyword];
        let fields = || value.as_object().into_iter().flatten();
        let items = || value.as_array().into_iter().flatten().enumerate();
        let first = list(&schema["prefixItems"]);
        let parts: Vec<(String, &Value, &Value)> = match keyword {
            "$ref" => {
                let name = said.as_str().expect("a name").trim_start_matches('#');
                let named = self.whole.pointer(name).expect("a definition");
                return self.value(named, value, path);
            }
            "properties" => fields()
                .filter_map(|(name, field)| Some((name.clone(), said.get(name)?, field)))
                .collect(),
            "additionalProperties" => fields()
                .filter(|(name, _)| schema["properties"].get(name).is_none())
                .map(|(name, field)| (name.clone(), said, field))
                .collect(),
            "prefixItems" => items()
                .filter_map(|(place, entry)| Some((place.to_string(), first.get(place)?, entry)))
                .collect(),
            "items" if schema["prefixItems"].is_null() => items()
                .map(|(place, entry)| (place.to_string(), said, entry))
                .collect(),
            _ => {
                assert!(NOTES.contains(&keyword), "the keyword {keyword} is unknown");
                Vec::new()
            }
        };
        let parts = parts.iter();
        let problems = parts
            .flat_map(|(name, schema, part)| self.value(schema, part, &format!("{path}/{name}")));
        problems.collect()
    }
}

/// Returns the entries of a list, or the single value.
fn list(said: &Value) -> &[Value] {
    said.as_array()
        .map_or(std::slice::from_ref(said), Vec::as_slice)
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
