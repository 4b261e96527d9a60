//! The API as an `OpenAPI` 3.1 document, written by hand so that every field has its sentence.
//!
//! Two tests hold it to the code: every route and error code is in it, and every golden file in
//! `tests/fixtures/api/v1` is valid by it.

mod schema;
mod schemas;

use serde_json::{Map, Value, json};

use crate::error::ErrorCode;
use crate::routes;
use crate::words::{History, Host, Profile};
use crate::{BODY_MAX, PROTOCOL, PROTOCOL_HEADER, REQUEST_ID_HEADER, sessions::SessionState};
use schema::{integer, pattern, reference, words};

/// The whole document.
#[must_use]
pub fn document() -> Value {
    let mut paths = Map::new();
    for route in routes::ALL {
        let methods = paths.entry(route.path).or_insert_with(|| {
            let mut parameters = path_parameters(route.path);
            parameters.push(reference_to("parameters", "Protocol"));
            json!({ "parameters": parameters })
        });
        methods[route.method.to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "compactd",
            "version": env!("CARGO_PKG_VERSION"),
            "description": format!(
                "HTTP/1.1 over a Unix socket, for processes of the same user only. Protocol {PROTOCOL}: \
                 inside /v1 fields are only added; both sides ignore fields that they do not know and \
                 read words that they do not know as `other`. Bodies are JSON of at most {BODY_MAX} \
                 bytes. Nothing carries the text of messages but the focus text."
            ),
        },
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "parameters": { "Protocol": protocol_parameter() },
            "responses": { "Error": error_response() },
        },
    })
}

fn reference_to(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

fn protocol_parameter() -> Value {
    json!({
        "name": PROTOCOL_HEADER,
        "in": "header",
        "required": false,
        "description": "Protocol of the caller. A newer one than the daemon's gives 426.",
        "schema": integer(),
    })
}

fn error_response() -> Value {
    let codes: Vec<String> =
        ErrorCode::ALL.iter().map(|code| format!("{} `{code}`", code.status())).collect();
    json!({
        "description": format!("Any answer that is no success: {}.", codes.join(", ")),
        "headers": {
            REQUEST_ID_HEADER: {
                "description": "Id of the request, as in the log.",
                "schema": { "type": "string" },
            },
        },
        "content": { "application/json": { "schema": reference("ErrorBody") } },
    })
}

fn operation(route: &routes::Route) -> Value {
    let mut operation = json!({
        "summary": route.summary,
        "responses": { "200": success(route), "default": reference_to("responses", "Error") },
    });
    if route.path == routes::HOOK {
        operation["responses"]["204"] = json!({ "description": "Nothing to print." });
    }
    let query = query_parameters(route.path);
    if !query.is_empty() {
        operation["parameters"] = Value::Array(query);
    }
    if let Some(body) = request_schema(route) {
        operation["requestBody"] = json!({
            "required": true,
            "content": { "application/json": { "schema": reference(body) } },
        });
    }
    operation
}

fn request_schema(route: &routes::Route) -> Option<&'static str> {
    match (route.method, route.path) {
        (_, routes::COMPACT) => Some("CompactRequest"),
        (_, routes::FORK) => Some("ForkRequest"),
        (_, routes::HOOK) => Some("HookRequest"),
        ("POST" | "DELETE", routes::PINS) => Some("Pin"),
        ("POST", routes::PASS) => Some("PassReport"),
        _ => None,
    }
}

fn success(route: &routes::Route) -> Value {
    let schema = match route.path {
        routes::STATUS => "Status",
        routes::STATS => "Stats",
        routes::SESSIONS => "SessionList",
        routes::SESSION => "SessionDetails",
        routes::EXPLAIN => "Explain",
        routes::PINS => "Pins",
        routes::FOCUS => "Focus",
        routes::PASSES => "PassList",
        routes::PASS if route.method == "POST" => "PassItem",
        routes::PASS => "Pass",
        routes::RECALL => "Recall",
        routes::COMPACT => "CompactAnswer",
        routes::FORK => "ForkAnswer",
        routes::METRICS => {
            return json!({
                "description": "Counters and gauges in the Prometheus text form.",
                "content": { "text/plain": { "schema": { "type": "string" } } },
            });
        }
        routes::HOOK => {
            return json!({
                "description": "Text for the hook to print, as it is.",
                "content": { "text/plain": { "schema": { "type": "string" } } },
            });
        }
        _ => {
            return json!({
                "description": "This document.",
                "content": { "application/json": { "schema": { "type": "object" } } },
            });
        }
    };
    json!({
        "description": "Success.",
        "content": { "application/json": { "schema": reference(schema) } },
    })
}

fn path_parameters(path: &str) -> Vec<Value> {
    let parameter = |name: &str, about: &str, schema: &Value| json!({ "name": name, "in": "path", "required": true, "description": about, "schema": schema });
    let mut parameters = Vec::new();
    if path.contains("{id}") {
        let about = if path == routes::RECALL {
            "Id that joins call and result."
        } else {
            "Id of the session."
        };
        parameters.push(parameter("id", about, &pattern("^[A-Za-z0-9._-]{1,128}$")));
    }
    if path.contains("{number}") {
        let about = "Number of the compaction, or `last`.";
        parameters.push(parameter("number", about, &pattern("^([0-9]{1,19}|last)$")));
    }
    if path.contains("{host}") {
        parameters.push(parameter("host", "Whose hook it is.", &words(Host::ALL)));
    }
    if path.contains("{event}") {
        parameters.push(parameter("event", "Name of the event.", &pattern("^[A-Za-z]{1,64}$")));
    }
    parameters
}

fn query_parameters(path: &str) -> Vec<Value> {
    let parameter = |name: &str, about: &str, schema: &Value| json!({ "name": name, "in": "query", "required": false, "description": about, "schema": schema });
    match path {
        routes::SESSIONS => vec![
            parameter("host", "Only this host's.", &words(Host::ALL)),
            parameter("state", "Only those in this state.", &words(SessionState::ALL)),
            parameter("limit", "At most so many, the newest first.", &integer()),
        ],
        routes::RECALL => vec![parameter(
            "session",
            "Only in this session and its sub-agents.",
            &pattern("^[A-Za-z0-9._-]{1,128}$"),
        )],
        routes::EXPLAIN => vec![
            parameter(
                "profile",
                "Rules to use instead of the configured ones.",
                &words(Profile::ALL),
            ),
            parameter(
                "history",
                "Which part is looked at; `context` if absent.",
                &words(History::ALL),
            ),
        ],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_in_it_and_every_reference_leads_somewhere() {
        let document = document();
        for route in routes::ALL {
            let operation = &document["paths"][route.path][route.method.to_ascii_lowercase()];
            assert_eq!(operation["summary"], route.summary);
            for part in route.path.split('/').filter_map(|part| part.strip_prefix('{')) {
                let name = part.trim_end_matches('}');
                let parameters = document["paths"][route.path]["parameters"].as_array().unwrap();
                assert!(parameters.iter().any(|parameter| parameter["name"] == name), "{name}");
            }
        }
        let text = document.to_string();
        for part in text.split("\"$ref\":\"#").skip(1) {
            let pointer = part.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }

    #[test]
    fn every_error_code_is_in_it() {
        let document = document();
        let listed = &document["components"]["schemas"]["ErrorCode"]["enum"];
        let about = document["components"]["responses"]["Error"]["description"].as_str().unwrap();
        for code in ErrorCode::ALL {
            assert!(listed.as_array().unwrap().iter().any(|name| name == code.name()), "{code}");
            assert!(about.contains(code.name()), "{code}");
        }
    }

    #[test]
    fn every_schema_is_used() {
        let text = document().to_string();
        for name in schemas::all().as_object().unwrap().keys() {
            assert!(text.contains(&format!("#/components/schemas/{name}\"")), "{name}");
        }
    }
}
