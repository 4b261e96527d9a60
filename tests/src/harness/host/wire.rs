//! What a request holds, for assertions and for their messages.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::mock_api::Request;

/// A message's content as blocks, also if it is one text.
#[must_use]
pub fn blocks(message: &Value) -> Vec<Value> {
    match &message["content"] {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        _ => Vec::new(),
    }
}

/// The messages of a body, contents as blocks and without marks for the cache: what two requests
/// are compared by.
#[must_use]
pub fn plain(body: &Value) -> Vec<Value> {
    let messages = body["messages"].as_array().into_iter().flatten();
    messages
        .map(|message| json!({"role": message["role"], "content": plain_blocks(message)}))
        .collect()
}

fn plain_blocks(message: &Value) -> Vec<Value> {
    let mut blocks = blocks(message);
    for block in &mut blocks {
        if let Some(fields) = block.as_object_mut() {
            fields.remove("cache_control");
        }
    }
    blocks
}

/// The text of a tool result's content; what is no text stands as `[image]` and the like.
#[must_use]
pub fn result_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().map(block_text).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

fn block_text(block: &Value) -> String {
    match block["type"].as_str() {
        Some("text") => block["text"].as_str().unwrap_or_default().to_owned(),
        Some("tool_use") => format!("{} {}", block["name"].as_str().unwrap_or("?"), block["input"]),
        Some("tool_result") => result_text(&block["content"]),
        Some("thinking") => block["thinking"].as_str().unwrap_or_default().to_owned(),
        Some(kind) => format!("[{kind}]"),
        None => block.to_string(),
    }
}

/// All that can be read in a message.
#[must_use]
pub fn all_text(message: &Value) -> String {
    let texts: Vec<String> = blocks(message).iter().map(block_text).collect();
    texts.join("\n")
}

/// A tool result as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The call's id.
    pub id: String,
    /// The call's tool, `?` if the call was not sent.
    pub tool: String,
    /// Its text, see [`result_text`].
    pub text: String,
    pub is_error: bool,
    /// Its content as it stood there.
    pub content: Value,
}

/// The tool results of a body, in order.
#[must_use]
pub fn results(body: &Value) -> Vec<Sent> {
    let mut tools: Vec<(String, String)> = Vec::new();
    let mut results = Vec::new();
    for block in body["messages"].as_array().into_iter().flatten().flat_map(blocks) {
        let text = |field: &str| block[field].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str() {
            Some("tool_use") => tools.push((text("id"), text("name"))),
            Some("tool_result") => {
                let id = text("tool_use_id");
                let tool = tools.iter().find(|(of, _)| *of == id).map(|(_, tool)| tool.clone());
                results.push(Sent {
                    id,
                    tool: tool.unwrap_or_else(|| "?".to_owned()),
                    text: result_text(&block["content"]),
                    is_error: block["is_error"] == true,
                    content: block["content"].clone(),
                });
            }
            _ => {}
        }
    }
    results
}

/// The result of a call.
///
/// # Panics
/// It was not sent, or more than once.
#[track_caller]
#[must_use]
pub fn result(body: &Value, id: &str) -> Sent {
    let mut found: Vec<Sent> = results(body).into_iter().filter(|sent| sent.id == id).collect();
    assert_eq!(found.len(), 1, "results of {id} in\n{}", outline(body));
    found.remove(0)
}

/// The texts of one role, in order, without tool results.
#[must_use]
pub fn texts(body: &Value, role: &str) -> Vec<String> {
    let messages = body["messages"].as_array().into_iter().flatten();
    messages
        .filter(|message| message["role"] == role)
        .flat_map(blocks)
        .filter_map(|block| block["text"].as_str().map(str::to_owned))
        .collect()
}

/// Whether this stands anywhere in the messages.
#[must_use]
pub fn has(body: &Value, text: &str) -> bool {
    body["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|message| all_text(message).contains(text))
}

fn line(at: usize, message: &Value, block: &Value) -> String {
    let text = block_text(block);
    let short: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = short.chars().take(100).collect();
    let role = message["role"].as_str().unwrap_or("?");
    let kind = block["type"].as_str().unwrap_or("?");
    format!("  [{at}] {role:9} {kind:11} {:6}  {short}", text.chars().count())
}

/// A body's messages, one line a block.
#[must_use]
pub fn outline(body: &Value) -> String {
    let mut lines = Vec::new();
    for (at, message) in body["messages"].as_array().into_iter().flatten().enumerate() {
        lines.extend(blocks(message).iter().map(|block| line(at, message, block)));
    }
    lines.join("\n")
}

/// All requests, for the message of a failure.
#[must_use]
pub fn outlines(requests: &[Arc<Request>]) -> String {
    let mut out = String::new();
    for request in requests {
        let agent = request.agent.as_deref().map_or(String::new(), |id| format!(" of agent {id}"));
        let (at, kind, path) = (request.at, request.kind, &request.path);
        writeln!(out, "=== request {at} {kind:?}{agent} {path}").unwrap();
        writeln!(out, "{}", outline(&request.body)).unwrap();
    }
    out
}

/// How the messages of `right` differ from those of `left`; nothing if they are the same. The
/// first differing block is shown with its surroundings in both.
#[must_use]
pub fn difference(left: &Value, right: &Value) -> Option<String> {
    differ(&plain(left), &plain(right))
}

/// How the first messages of `right` differ from all messages of `left`: the next request of a
/// session begins with the messages of the one before.
#[must_use]
pub fn continues(left: &Value, right: &Value) -> Option<String> {
    let (left, mut right) = (plain(left), plain(right));
    right.truncate(left.len());
    differ(&left, &right)
}

fn differ(left: &[Value], right: &[Value]) -> Option<String> {
    let at = (0..left.len().max(right.len())).find(|at| left.get(*at) != right.get(*at))?;
    let mut out = format!("messages differ from [{at}] on ({} and {})\n", left.len(), right.len());
    for (side, messages) in [("left", left), ("right", right)] {
        writeln!(out, "{side}:").unwrap();
        let from = at.saturating_sub(1);
        for (number, message) in messages.iter().enumerate().skip(from).take(3) {
            for block in blocks(message) {
                writeln!(out, "{}", line(number, message, &block)).unwrap();
            }
        }
    }
    if let (Some(left), Some(right)) = (left.get(at), right.get(at)) {
        let (left, right) = (blocks(left), blocks(right));
        let block = (0..left.len().max(right.len())).find(|at| left.get(*at) != right.get(*at));
        if let Some(block) = block {
            let show =
                |blocks: &[Value]| blocks.get(block).map_or("-".to_owned(), Value::to_string);
            let (left, right) = (show(&left), show(&right));
            let same = left.bytes().zip(right.bytes()).take_while(|(l, r)| l == r).count();
            for (side, text) in [("left", left), ("right", right)] {
                let around: String = excerpt(&text, same);
                writeln!(out, "{side} [{at}] block {block}, byte {same} on: {around}").unwrap();
            }
        }
    }
    Some(out)
}

fn excerpt(text: &str, from: usize) -> String {
    let bytes = text.as_bytes();
    let from = from.saturating_sub(20).min(bytes.len());
    let to = (from + 200).min(bytes.len());
    String::from_utf8_lossy(&bytes[from..to]).into_owned()
}

/// That two requests have the same messages.
///
/// # Panics
/// They have not; the first difference is told.
#[track_caller]
pub fn assert_same(what: &str, left: &Value, right: &Value) {
    if let Some(difference) = difference(left, right) {
        panic!("{what}: {difference}");
    }
}

/// That a request goes on where another ended: it begins with the other's messages.
///
/// # Panics
/// It does not; the first difference is told.
#[track_caller]
pub fn assert_continues(what: &str, left: &Value, right: &Value) {
    if let Some(difference) = continues(left, right) {
        panic!("{what}: {difference}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(last: &str) -> Value {
        json!({"messages": [
            {"role": "user", "content": "Read it."},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "/a"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1",
                "content": [{"type": "text", "text": last}, {"type": "image", "source": {}}],
                "cache_control": {"type": "ephemeral"}}]},
        ]})
    }

    #[test]
    fn results_have_their_tool_and_text() {
        let sent = result(&body("alpha"), "toolu_1");
        assert_eq!((&*sent.tool, &*sent.text), ("Read", "alpha\n[image]"));
        assert_eq!(texts(&body("alpha"), "user"), ["Read it."]);
        assert!(has(&body("alpha"), "alpha") && !has(&body("alpha"), "beta"));
    }

    #[test]
    fn a_difference_is_shown_where_it_is() {
        let mut unmarked = body("alpha");
        unmarked["messages"][2]["content"][0].as_object_mut().unwrap().remove("cache_control");
        unmarked["messages"][0]["content"] = json!([{"type": "text", "text": "Read it."}]);
        assert_eq!(difference(&body("alpha"), &unmarked), None);
        let shown = difference(&body("alpha"), &body("alpine")).unwrap();
        assert!(shown.starts_with("messages differ from [2] on (3 and 3)"), "{shown}");
        assert!(shown.contains("alpine") && shown.contains("alpha"), "{shown}");
    }

    #[test]
    fn a_request_continues_one_with_fewer_messages() {
        let (long, mut short) = (body("alpha"), body("alpha"));
        short["messages"].as_array_mut().unwrap().pop();
        assert_eq!(continues(&short, &long), None);
        assert!(continues(&long, &short).unwrap().contains("(3 and 2)"));
        assert!(difference(&short, &long).is_some());
    }
}
