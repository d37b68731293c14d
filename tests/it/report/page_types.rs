//! The types of the report for the scripts of the page, made from the schema.
//!
//! `BLESS=1 cargo test json_schema::` writes them again.

use popliner::report::Report;
use serde_json::{Map, Value};
use std::fmt::Write;

/// Returns all types of the report, in a namespace, since browsers have a `Report` of their own.
pub fn text() -> String {
    let schema = serde_json::to_value(Report::schema()).expect("JSON");
    let mut text = String::from(
        "// The report as its schema has it: written by `BLESS=1 cargo test json_schema::`.\n\
         declare namespace Json {\n",
    );
    let report = ("Report", schema.as_object().expect("a schema"));
    let others = schema["$defs"].as_object().expect("types").iter();
    let others = others.map(|(name, other)| (name.as_str(), other.as_object().expect("a schema")));
    for (name, schema) in [report].into_iter().chain(others) {
        writeln!(text, "  type {name} = {};", shape(schema)).expect("a text");
    }
    text + "}\n"
}

/// Returns a schema as a type.
fn shape(schema: &Map<String, Value>) -> String {
    let all = |name: &str| {
        let list = schema.get(name)?.as_array()?.iter();
        let list = list.filter_map(Value::as_object).map(shape);
        Some(list.collect::<Vec<_>>())
    };
    if let Some(name) = schema.get("$ref") {
        let name = name.as_str().expect("a name");
        return name.rsplit('/').next().expect("a name").to_string();
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    let either = all("anyOf")
        .or_else(|| all("oneOf"))
        .map(|all| all.join(" | "));
    let types = schema.get("type").map(|kind| match kind {
        Value::Array(kinds) => {
            let kinds = kinds.iter().map(|kind| plain(kind, schema));
            kinds.collect::<Vec<_>>().join(" | ")
        }
        kind => plain(kind, schema),
    });
    match (types, either) {
        (Some(types), Some(either)) if types != "{ }" => format!("{types} & ({either})"),
        (_, Some(either)) => either,
        (Some(types), None) => types,
        (None, None) => "any".into(),
    }
}

/// Returns one kind of value as a type.
fn plain(kind: &Value, schema: &Map<String, Value>) -> String {
    match kind.as_str().expect("a kind") {
        "integer" | "number" => "number".into(),
        "array" => match schema.get("prefixItems").and_then(Value::as_array) {
            Some(places) => {
                let places = places.iter().map(inner);
                format!("[{}]", places.collect::<Vec<_>>().join(", "))
            }
            None => {
                let each = schema.get("items").map_or("any".into(), inner);
                match schema.get("maxItems").and_then(Value::as_u64) {
                    Some(count) => format!("[{}]", vec![each; count as usize].join(", ")),
                    None if each.contains(' ') => format!("({each})[]"),
                    None => format!("{each}[]"),
                }
            }
        },
        "object" => object(schema),
        other => other.into(),
    }
}

fn object(schema: &Map<String, Value>) -> String {
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else {
        return match schema.get("additionalProperties") {
            Some(Value::Object(object)) => format!("Record<string, {}>", shape(object)),
            _ => "Record<string, any>".into(),
        };
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|all| all.iter().any(|other| other == name));
    let mut text = String::from("{ ");
    for (name, field) in fields {
        let sign = if is_required(name) { "" } else { "?" };
        write!(text, "{name}{sign}: {}; ", inner(field)).expect("a text");
    }
    text + "}"
}

fn inner(schema: &Value) -> String {
    schema.as_object().map_or("any".into(), shape)
}
