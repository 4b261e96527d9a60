//! The golden files of v1: each reads into its type, prints again byte for byte, and is valid by the
//! `OpenAPI` document.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use compactd_api::compact::{CompactAnswer, CompactRequest};
use compactd_api::fork::{ForkAnswer, ForkRequest};
use compactd_api::hooks::HookRequest;
use compactd_api::passes::{Pass, PassList, PassReport};
use compactd_api::recall::Recall;
use compactd_api::sessions::{
    Explain, Focus, Pin, Pins, SessionDetails, SessionList, Stats, Status,
};
use compactd_api::{ErrorBody, ErrorCode, openapi};
use serde::{Deserialize, Serialize};
use serde_json::Value;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/api/v1")
}

fn again<'a, T: Deserialize<'a> + Serialize>(text: &'a str) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&serde_json::from_str::<T>(text)?)
}

type Again = fn(&str) -> serde_json::Result<String>;

/// File, schema, and how to read and print it.
const FILES: &[(&str, &str, Again)] = &[
    ("compact-request", "CompactRequest", |text| again::<CompactRequest<'_>>(text)),
    ("compact-request-small", "CompactRequest", |text| again::<CompactRequest<'_>>(text)),
    ("compact-answer", "CompactAnswer", |text| again::<CompactAnswer<'_>>(text)),
    ("compact-answer-skip", "CompactAnswer", |text| again::<CompactAnswer<'_>>(text)),
    ("error", "ErrorBody", |text| again::<ErrorBody>(text)),
    ("explain", "Explain", |text| again::<Explain<'_>>(text)),
    ("focus", "Focus", |text| again::<Focus>(text)),
    ("fork-answer", "ForkAnswer", |text| again::<ForkAnswer>(text)),
    ("fork-request", "ForkRequest", |text| again::<ForkRequest>(text)),
    ("hook-request", "HookRequest", |text| again::<HookRequest<'_>>(text)),
    ("hook-request-null", "HookRequest", |text| again::<HookRequest<'_>>(text)),
    ("pass", "Pass", |text| again::<Pass>(text)),
    ("pass-report", "PassReport", |text| again::<PassReport>(text)),
    ("pass-report-small", "PassReport", |text| again::<PassReport>(text)),
    ("passes", "PassList", |text| again::<PassList>(text)),
    ("pin-file", "Pin", |text| again::<Pin>(text)),
    ("pin-id", "Pin", |text| again::<Pin>(text)),
    ("pins", "Pins", |text| again::<Pins>(text)),
    ("recall", "Recall", |text| again::<Recall>(text)),
    ("session", "SessionDetails", |text| again::<SessionDetails>(text)),
    ("sessions", "SessionList", |text| again::<SessionList>(text)),
    ("stats", "Stats", |text| again::<Stats>(text)),
    ("status", "Status", |text| again::<Status>(text)),
];

#[test]
fn files_read_and_print_again() {
    for (name, _, again) in FILES {
        let text = fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
        assert_eq!(again(&text).unwrap() + "\n", text, "{name}");
    }
}

#[test]
fn every_file_is_tested() {
    let found: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let listed: BTreeSet<String> = FILES.iter().map(|(name, ..)| format!("{name}.json")).collect();
    assert_eq!(found, listed);
}

#[test]
fn files_are_valid_by_the_document() {
    let document = openapi::document();
    for (name, schema, _) in FILES {
        let text = fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let schema = &document["components"]["schemas"][schema];
        validate(&document, schema, &value, name);
    }
    let error = ErrorCode::TooManyIds.body("m", "r");
    let error = serde_json::to_value(error).unwrap();
    validate(&document, &document["components"]["schemas"]["ErrorBody"], &error, "error");
}

#[test]
fn every_listed_field_stands_in_some_golden_file() {
    let all: String = FILES
        .iter()
        .map(|(name, ..)| fs::read_to_string(folder().join(format!("{name}.json"))).unwrap())
        .collect();
    let document = openapi::document();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        for field in schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys()) {
            assert!(all.contains(&format!("\"{field}\":")), "{name}.{field}");
        }
    }
}

fn validate(document: &Value, schema: &Value, value: &Value, at: &str) {
    let schema = resolve(document, schema);
    if let Some(words) = schema["enum"].as_array() {
        assert!(words.contains(value), "{at}: {value} is none of {words:?}");
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let allowed = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|allowed| allowed == kind),
        allowed => allowed == kind || (kind == "integer" && allowed == "number"),
    };
    assert!(allowed, "{at}: {value} is no {}", schema["type"]);
    match value {
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                let schema = schema["prefixItems"].get(place).unwrap_or(&schema["items"]);
                validate(document, schema, item, &format!("{at}[{place}]"));
            }
        }
        Value::Object(fields) => validate_object(document, schema, fields, at),
        _ => {}
    }
}

fn validate_object(
    document: &Value,
    schema: &Value,
    fields: &serde_json::Map<String, Value>,
    at: &str,
) {
    let bases = schema["allOf"].as_array().into_iter().flatten();
    let parts: Vec<&Value> = bases.map(|base| resolve(document, base)).chain([schema]).collect();
    for part in &parts {
        for required in part["required"].as_array().into_iter().flatten() {
            assert!(fields.keys().any(|name| required == name), "{at}: no {required}");
        }
    }
    let free = schema.get("properties").is_none();
    for (name, value) in fields {
        let at = format!("{at}.{name}");
        let known = parts.iter().find_map(|part| part["properties"].get(name));
        match known.or_else(|| schema.get("additionalProperties")) {
            Some(schema) => validate(document, schema, value, &at),
            None => assert!(free, "{at}: not in the document"),
        }
    }
}

fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(pointer) => {
            &document["components"]["schemas"][pointer.rsplit('/').next().unwrap_or("")]
        }
        None => schema,
    }
}
