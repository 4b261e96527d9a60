//! A step as the API's answer: server-sent events with whole items.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::super::serve::Answer;
use super::api::{Kind, Request};
use super::step::{Call, Input, Reply, Step};

/// Ids differ in all threads of this process.
fn unique(prefix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{prefix}_{:06}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Stands for what only the API can read: the hex digits of the text.
fn sealed(text: &str) -> String {
    text.bytes().fold("sealed".to_owned(), |mut out, byte| {
        write!(out, "{byte:02x}").unwrap();
        out
    })
}

pub(super) fn answer(step: &Step, request: &Request) -> Answer {
    let id = unique("resp");
    let mut out = String::new();
    let mut event = |data: Value| {
        let kind = data["type"].as_str().unwrap_or_default();
        write!(out, "event: {kind}\ndata: {data}\n\n").unwrap();
    };
    event(json!({"type": "response.created", "response": {"id": id}}));
    match &step.reply {
        Reply::Status { status, message } => {
            return Answer::json(*status, &json!({"error": {"message": message}}));
        }
        Reply::Failed { code, message } => {
            let error = json!({"code": code, "message": message});
            event(json!({"type": "response.failed", "response": {"id": id, "error": error}}));
        }
        Reply::Items { thought, text, calls, more } => {
            let mut items: Vec<Value> = thought.iter().map(|thought| thinking(thought)).collect();
            items.extend(text.iter().map(|text| match request.kind {
                Kind::CompactRemote => json!({"type": "compaction", "id": unique("cmp"),
                    "encrypted_content": sealed(text)}),
                _ => message(text, calls.is_empty()),
            }));
            items.extend(calls.iter().map(call));
            items.extend(more.iter().cloned());
            for (at, item) in items.iter().enumerate() {
                for kind in ["response.output_item.added", "response.output_item.done"] {
                    event(json!({"type": kind, "output_index": at, "item": item}));
                }
            }
            let output = json!(items).to_string().len() as u64 / 4;
            let input = step.tokens.unwrap_or(request.body_bytes as u64 / 4);
            let usage = json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": input + output});
            event(json!({"type": "response.completed", "response": {"id": id, "usage": usage}}));
        }
    }
    Answer::events(out)
}

fn thinking(thought: &str) -> Value {
    json!({"type": "reasoning", "id": unique("rs"), "encrypted_content": sealed(thought),
        "summary": [{"type": "summary_text", "text": thought}]})
}

fn message(text: &str, is_last: bool) -> Value {
    let phase = if is_last { "final_answer" } else { "commentary" };
    json!({"type": "message", "id": unique("msg"), "role": "assistant", "status": "completed",
        "phase": phase, "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn call(call: &Call) -> Value {
    let id = call.id.clone().unwrap_or_else(|| unique("call"));
    let mut item = json!({"status": "completed", "call_id": id, "name": call.name});
    let (kind, prefix, field, input) = match &call.input {
        Input::Arguments(arguments) => ("function_call", "fc", "arguments", arguments.to_string()),
        Input::Text(text) => ("custom_tool_call", "ctc", "input", text.clone()),
    };
    item["type"] = json!(kind);
    item["id"] = json!(unique(prefix));
    item[field] = json!(input);
    if let Some(namespace) = &call.namespace {
        item["namespace"] = json!(namespace);
    }
    item
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsealed_text_is_not_in_the_sealed_one() {
        assert_eq!(sealed("ab"), "sealed6162");
    }

    #[test]
    fn calls_have_the_field_of_their_kind() {
        let direct = call(&Call::shell("ls").id("call_1"));
        assert_eq!(
            (&direct["type"], &direct["call_id"]),
            (&json!("function_call"), &json!("call_1"))
        );
        assert_eq!(direct["arguments"], r#"{"cmd":"ls"}"#);
        let custom = call(&Call::patch("*** Add File: a\n+b\n"));
        assert_eq!(custom["input"], "*** Begin Patch\n*** Add File: a\n+b\n*** End Patch\n");
        assert_eq!(call(&Call::spawn("Count."))["namespace"], "multi_agent_v1");
    }
}
