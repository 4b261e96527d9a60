//! What a request holds, for assertions and for their messages.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use super::api::Request;

/// The items of a body.
#[must_use]
pub fn input(body: &Value) -> &[Value] {
    body["input"].as_array().map_or(&[], Vec::as_slice)
}

/// All that can be read in an item: a message's texts, a call's input, an output's texts, one a
/// line.
#[must_use]
pub fn text(item: &Value) -> String {
    let fields = ["content", "output", "arguments", "input", "summary"];
    let mut texts: Vec<String> = Vec::new();
    for value in fields.iter().map(|field| &item[*field]) {
        match value {
            Value::String(text) => texts.push(text.clone()),
            Value::Array(parts) => texts.extend(parts.iter().map(|part| {
                let kind = part["type"].as_str().unwrap_or("?");
                part["text"].as_str().map_or_else(|| format!("[{kind}]"), str::to_owned)
            })),
            _ => {}
        }
    }
    texts.join("\n")
}

/// Whether an item of the body has this in what can be read of it.
#[must_use]
pub fn has(body: &Value, needle: &str) -> bool {
    input(body).iter().any(|item| text(item).contains(needle))
}

/// A tool result as it was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The call's id.
    pub id: String,
    /// The call's tool, `?` if the call was not sent.
    pub tool: String,
    /// Its text, see [`text`].
    pub text: String,
}

/// The tool results of a body, in order.
#[must_use]
pub fn results(body: &Value) -> Vec<Sent> {
    let of = |item: &Value, field: &str| item[field].as_str().unwrap_or_default().to_owned();
    let calls = input(body).iter().filter(|item| of(item, "type").ends_with("_call"));
    let calls: Vec<(String, String)> =
        calls.map(|item| (of(item, "call_id"), of(item, "name"))).collect();
    let outputs = input(body).iter().filter(|item| of(item, "type").ends_with("_call_output"));
    outputs
        .map(|item| {
            let id = of(item, "call_id");
            let tool = calls.iter().find(|(call, _)| *call == id).map(|(_, tool)| tool.clone());
            Sent { id, tool: tool.unwrap_or_else(|| "?".to_owned()), text: text(item) }
        })
        .collect()
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

/// An item as the model gets it, without what the host keeps for itself: an item of a rollout and
/// the same item of a request are equal then.
#[must_use]
pub fn plain(item: &Value) -> Value {
    let mut item = item.clone();
    if let Some(fields) = item.as_object_mut() {
        fields.remove("internal_chat_message_metadata_passthrough");
        fields.remove("status");
    }
    item
}

/// Whether an item says how the host works and not what was done: base instructions and the tools
/// of code mode, which a host sends before the history and keeps in no rollout's items.
fn is_base(item: &Value) -> bool {
    item["type"] == "additional_tools" || item["role"] == "developer"
}

/// The items of a request, [`plain`].
#[must_use]
pub fn model_history(request: &Request) -> Vec<Value> {
    request.input().iter().map(plain).collect()
}

/// How a request differs from one that has nothing but base instructions, then exactly this
/// history, then a prompt; nothing if it does not.
#[must_use]
pub fn differs_from_resume(request: &Request, history: &[Value]) -> Option<String> {
    let sent = model_history(request);
    let history: Vec<Value> = history.iter().map(plain).collect();
    let shown = |items: &[Value]| items.iter().map(line).collect::<Vec<_>>().join("\n");
    let Some(head) = sent.len().checked_sub(history.len() + 1) else {
        return Some(format!("{} items of history, sent:\n{}", history.len(), shown(&sent)));
    };
    let (before, rest) = sent.split_at(head);
    let last = &sent[sent.len() - 1];
    if let Some(at) = history.iter().zip(rest).position(|(kept, sent)| kept != sent) {
        let (kept, sent) = (&history[at], &rest[at]);
        return Some(format!(
            "item {at} of the history\nkept: {kept}\nsent: {sent}\n{}",
            shown(before)
        ));
    }
    let is_prompt = last["role"] == "user" && before.iter().all(is_base);
    (!is_prompt).then(|| format!("before the history:\n{}\nafter: {}", shown(before), line(last)))
}

fn line(item: &Value) -> String {
    let text = text(item);
    let chars = text.chars().count();
    let short: String = text.replace('\n', "⏎").chars().take(100).collect();
    let kind = item["type"].as_str().unwrap_or("?");
    let who = ["role", "name", "call_id"].map(|field| item[field].as_str().unwrap_or_default());
    format!("  {kind:22} {} {chars:6}  {short}", who.join(" "))
}

/// A body's items, one a line.
#[must_use]
pub fn outline(body: &Value) -> String {
    input(body).iter().map(line).collect::<Vec<_>>().join("\n")
}

/// All requests, for the message of a failure.
#[must_use]
pub fn outlines(requests: &[Arc<Request>]) -> String {
    let mut out = String::new();
    for request in requests {
        let agent = if request.is_agent { " of an agent" } else { "" };
        let (at, kind, thread) = (request.at, request.kind, &request.thread);
        writeln!(out, "=== request {at} {kind:?}{agent} {thread}").unwrap();
        writeln!(out, "{}", outline(&request.body)).unwrap();
    }
    out
}
