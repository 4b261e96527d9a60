//! The few forms of JSON Schema that the document is made of.

use std::fmt::Display;

use serde_json::{Map, Value, json};

/// One field of an object.
pub(super) struct Field {
    name: &'static str,
    schema: Value,
    required: bool,
}

/// A field that is always there.
pub(super) fn must(name: &'static str, schema: Value, about: &str) -> Field {
    Field { name, schema: described(schema, about), required: true }
}

/// A field that may be missing.
pub(super) fn may(name: &'static str, schema: Value, about: &str) -> Field {
    Field { name, schema: described(schema, about), required: false }
}

fn described(mut schema: Value, about: &str) -> Value {
    schema["description"] = Value::from(about);
    schema
}

/// An object. Fields that are not listed are allowed and ignored, as everywhere in the protocol.
pub(super) fn object<const N: usize>(about: &str, fields: [Field; N]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields {
        if field.required {
            required.push(Value::from(field.name));
        }
        properties.insert(field.name.to_owned(), field.schema);
    }
    json!({ "type": "object", "description": about, "properties": properties, "required": required })
}

pub(super) fn string() -> Value {
    json!({ "type": "string" })
}

pub(super) fn integer() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

/// A number that need not be whole.
pub(super) fn number() -> Value {
    json!({ "type": "number", "minimum": 0 })
}

pub(super) fn boolean() -> Value {
    json!({ "type": "boolean" })
}

/// RFC 3339.
pub(super) fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

pub(super) fn pattern(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

pub(super) fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

/// An array of so many whole numbers.
pub(super) fn numbers(count: usize, about: &str) -> Value {
    json!({
        "type": "array",
        "description": about,
        "items": integer(),
        "minItems": count,
        "maxItems": count,
    })
}

pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// The known words of a set, without `other`.
pub(super) fn words(all: &[impl Display]) -> Value {
    let names: Vec<String> = all.iter().map(ToString::to_string).collect();
    json!({ "type": "string", "enum": names })
}
