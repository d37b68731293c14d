//! The types of the report for the scripts of the page, made from the schema.
//!
//! `BLESS=1 cargo test json_schema` writes them again.

use serde_json::Value;
use std::fmt::Write;

/// Returns all types of the report, in a namespace, since browsers have a `Report` of their own.
pub fn text(schema: &Value) -> String {
    let mut text = String::from(
        "// The report as its schema has it: written by `BLESS=1 cargo test json_schema`.\n\
         declare namespace Json {\n",
    );
    let others = schema["$defs"].as_object().expect("types").iter();
    let others = others.map(|(name, other)| (name.as_str(), other));
    for (name, schema) in [("Report", schema)].into_iter().chain(others) {
        writeln!(text, "  type {name} = {};", shape(schema)).expect("a text");
    }
    text + "}\n"
}

/// Joins the items of a list, each as a type, with `between` between them.
fn joined(list: &Value, between: &str, of: impl Fn(&Value) -> String) -> Option<String> {
    let types: Vec<String> = list.as_array()?.iter().map(of).collect();
    Some(types.join(between))
}

/// Returns a schema as a type. Nothing, and a schema that accepts everything, is any type.
fn shape(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return name.rsplit('/').next().expect("a name").to_string();
    }
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    let either = joined(&schema["anyOf"], " | ", shape);
    let either = either.or_else(|| joined(&schema["oneOf"], " | ", shape));
    let plain = |kind: &Value| plain(kind.as_str().expect("a kind"), schema);
    let types = match &schema["type"] {
        Value::Null => None,
        kind => joined(kind, " | ", plain).or_else(|| Some(plain(kind))),
    };
    match (types, either) {
        (Some(types), Some(either)) if types != "{ }" => format!("{types} & ({either})"),
        (types, either) => either.or(types).unwrap_or("any".into()),
    }
}

/// Returns one kind of value as a type.
fn plain(kind: &str, schema: &Value) -> String {
    let each = || shape(&schema["items"]);
    match (kind, schema["maxItems"].as_u64()) {
        ("integer" | "number", _) => "number".into(),
        ("array", count) => match (joined(&schema["prefixItems"], ", ", shape), count) {
            (Some(places), _) => format!("[{places}]"),
            (None, Some(count)) => format!("[{}]", vec![each(); count as usize].join(", ")),
            (None, None) if each().contains(' ') => format!("({})[]", each()),
            (None, None) => format!("{}[]", each()),
        },
        ("object", _) => object(schema),
        (other, _) => other.into(),
    }
}

fn object(schema: &Value) -> String {
    let Some(fields) = schema["properties"].as_object() else {
        return format!("Record<string, {}>", shape(&schema["additionalProperties"]));
    };
    let required = schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|all| all.contains(&name.into()));
    let mut text = String::from("{ ");
    for (name, field) in fields {
        let sign = if is_required(name) { "" } else { "?" };
        write!(text, "{name}{sign}: {}; ", shape(field)).expect("a text");
    }
    text + "}"
}
