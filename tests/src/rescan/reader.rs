//! From a line to a JSON value, and the shape of a row that both hosts are read into.

use std::borrow::Cow;

use serde_json::Value;

use super::{Host, InnerCommand, Ran};

const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    User,
    Assistant,
    /// Only there for the chain of rows.
    Link,
}

#[derive(Debug, Clone)]
pub(super) enum Item {
    Text(String),
    Call {
        id: String,
        tool: String,
        input: Value,
    },
    Result(ToolResult),
    /// A part without text, such as an image.
    Opaque,
    /// What ran inside a call.
    Inner(InnerCommand),
}

#[derive(Debug, Clone)]
pub(super) struct ToolResult {
    pub(super) id: String,
    /// What the model read.
    pub(super) text: String,
    /// The tool's own output in it, piece by piece.
    pub(super) pieces: Vec<String>,
    /// The pieces, a newline between them.
    pub(super) body: String,
    pub(super) is_error: bool,
    pub(super) opaque: bool,
    /// What goes on running, by the id that the host gave it.
    pub(super) running: Option<String>,
    pub(super) ran: Ran,
}

impl ToolResult {
    pub(super) fn new(id: String, text: String, pieces: Vec<String>) -> Self {
        let body = pieces.join("\n");
        let (is_error, opaque, running) = (false, false, None);
        Self { id, text, pieces, body, is_error, opaque, running, ran: Ran::default() }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) uuid: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) message_id: Option<String>,
    pub(super) role: Role,
    pub(super) sidechain: bool,
    pub(super) summary: bool,
    pub(super) meta: bool,
    /// The model said something, even if no item of it is kept (Codex reasoning).
    pub(super) thought: bool,
    pub(super) cwd: Option<String>,
    pub(super) items: Vec<Item>,
}

impl Row {
    pub(super) fn new(role: Role, items: Vec<Item>) -> Self {
        Self {
            uuid: None,
            parent: None,
            message_id: None,
            role,
            sidechain: false,
            summary: false,
            meta: false,
            thought: false,
            cwd: None,
            items,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Record {
    Row(Row),
    Boundary { row: Row, preserved: Vec<String> },
    Compacted(Vec<Row>),
    RolledBack(usize),
}

/// The object on a line, if there is one.
pub(super) fn parse(line: &[u8]) -> Option<Value> {
    if line.len() > MAX_LINE_BYTES {
        return None;
    }
    let text = String::from_utf8_lossy(line);
    let text = replace_lone_surrogates(&text);
    serde_json::from_str::<Value>(&text).ok().filter(Value::is_object)
}

/// A whole JSON document inside a string, such as the arguments of a Codex call.
pub(super) fn parse_inner(text: &str) -> Option<Value> {
    serde_json::from_str(&replace_lone_surrogates(text)).ok()
}

/// `serde_json` refuses `\ud800` without its other half; such an escape becomes `\ufffd`.
fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let taken = match unit(escape) {
            Some(0xD800..=0xDBFF) if matches!(unit(&escape[6..]), Some(0xDC00..=0xDFFF)) => {
                out.push_str(&escape[..12]);
                12
            }
            Some(0xD800..=0xDFFF) => {
                out.push_str("\\ufffd");
                6
            }
            _ => {
                // The character behind the backslash goes along, so that `\\` is one escape.
                let taken = 1 + escape[1..].chars().next().map_or(0, char::len_utf8);
                out.push_str(&escape[..taken]);
                taken
            }
        };
        rest = &escape[taken..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The value of a `\uXXXX` escape at the start of a text.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u32::from_str_radix(digits, 16).ok()
}

/// Tells the host by one line.
pub(super) fn sniff(value: &Value) -> Option<Host> {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        "session_meta" | "response_item" | "event_msg" | "turn_context" | "compacted" => {
            Some(Host::Codex)
        }
        "user"
        | "assistant"
        | "summary"
        | "system"
        | "attachment"
        | "progress"
        | "queue-operation"
        | "file-history-snapshot"
        | "permission-mode" => Some(Host::Claude),
        _ if value.get("parentUuid").is_some() => Some(Host::Claude),
        _ => None,
    }
}

/// A non-empty string under a key.
pub(super) fn string(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Whether a key holds `true`.
pub(super) fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// The strings and numbers of an input.
pub(super) fn leaves(input: &Value) -> Vec<String> {
    match input {
        Value::String(text) => vec![text.clone()],
        Value::Number(number) => vec![number.to_string()],
        Value::Array(values) => values.iter().flat_map(leaves).collect(),
        Value::Object(values) => values.values().flat_map(leaves).collect(),
        Value::Null | Value::Bool(_) => Vec::new(),
    }
}
