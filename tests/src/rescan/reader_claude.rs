//! Claude Code transcripts.

use serde_json::Value;

use super::reader::{Item, Record, Role, Row, ToolResult, flag, string};

pub(super) fn read(values: &[Value]) -> Vec<Record> {
    values.iter().filter_map(record).collect()
}

fn record(value: &Value) -> Option<Record> {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    let role = match kind {
        "user" => Role::User,
        // What the host says of a failed request is shown to the person, never sent.
        "assistant" if flag(value, "isApiErrorMessage") => Role::Link,
        "assistant" => Role::Assistant,
        _ => Role::Link,
    };
    let uuid = string(value, "uuid");
    let boundary = kind == "system"
        && value.get("subtype").and_then(Value::as_str) == Some("compact_boundary");
    if role == Role::Link && uuid.is_none() && !boundary {
        return None;
    }
    let message = value.get("message");
    let items = match (role, message) {
        (Role::Link, _) | (_, None) => Vec::new(),
        (_, Some(Value::String(text))) => text_item(text),
        (_, Some(message)) => content(message.get("content")),
    };
    let row = Row {
        uuid,
        parent: string(value, "parentUuid"),
        message_id: match (role, message) {
            (Role::Assistant, Some(message)) => string(message, "id"),
            _ => None,
        },
        role,
        sidechain: flag(value, "isSidechain"),
        summary: flag(value, "isCompactSummary"),
        meta: flag(value, "isMeta"),
        thought: false,
        cwd: string(value, "cwd"),
        items,
    };
    if !boundary {
        return Some(Record::Row(row));
    }
    let preserved = value
        .pointer("/compactMetadata/preservedMessages/uuids")
        .and_then(Value::as_array)
        .map(|uuids| uuids.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    Some(Record::Boundary { row, preserved })
}

fn text_item(text: &str) -> Vec<Item> {
    if text.is_empty() { Vec::new() } else { vec![Item::Text(text.to_owned())] }
}

fn content(content: Option<&Value>) -> Vec<Item> {
    match content {
        Some(Value::String(text)) => text_item(text),
        Some(Value::Array(blocks)) => blocks.iter().flat_map(block).collect(),
        _ => Vec::new(),
    }
}

fn block(block: &Value) -> Vec<Item> {
    if let Some(text) = block.as_str() {
        return text_item(text);
    }
    match block.get("type").and_then(Value::as_str) {
        Some("text") => text_item(block.get("text").and_then(Value::as_str).unwrap_or_default()),
        Some("tool_use") => string(block, "id")
            .map(|id| Item::Call {
                id,
                tool: string(block, "name").unwrap_or_default(),
                input: block.get("input").cloned().unwrap_or_default(),
            })
            .into_iter()
            .collect(),
        Some("tool_result") => string(block, "tool_use_id")
            .map(|id| {
                let (text, opaque) = result_text(block.get("content"));
                let mut result = ToolResult::new(id, text.clone(), vec![text]);
                result.is_error = flag(block, "is_error");
                result.opaque = opaque;
                Item::Result(result)
            })
            .into_iter()
            .collect(),
        Some("thinking" | "redacted_thinking") | None => Vec::new(),
        Some(_) => vec![Item::Opaque],
    }
}

/// The text of a result and whether it has parts that are no text.
fn result_text(content: Option<&Value>) -> (String, bool) {
    let parts = match content {
        Some(Value::String(text)) => return (text.clone(), false),
        Some(Value::Array(parts)) => parts,
        _ => return (String::new(), false),
    };
    let mut texts = Vec::new();
    let mut opaque = false;
    for part in parts {
        match part.as_str().or_else(|| part.get("text").and_then(Value::as_str)) {
            Some(text) => texts.push(text),
            None => opaque = true,
        }
    }
    (texts.join("\n"), opaque)
}
