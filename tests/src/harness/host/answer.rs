//! A step as the API's answer: one JSON message, or the same as server-sent events.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::serve::Answer;
use super::step::{Reply, Step};

/// Ids differ in all sessions of this process: the host joins rows by the id of their message.
fn unique(prefix: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("{prefix}{:022}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The answer of a step to a request of about `tokens` tokens.
pub(super) fn answer(step: &Step, request: &Value, tokens: usize) -> Answer {
    match &step.reply {
        Reply::Error { status, kind, message } => Answer::json(
            *status,
            &json!({"type": "error", "request_id": "req_mock",
                "error": {"type": kind, "message": message}}),
        ),
        Reply::Message { .. } => {
            let message = message(step, request, tokens);
            if request["stream"] == true {
                let mut body = events(&message);
                let rest = step.hold.as_ref().map(|(blocks, gate)| {
                    let begin = "event: content_block_start\n";
                    let mut starts = body.match_indices(begin).map(|(at, _)| at);
                    let from = starts.nth(*blocks).expect("a block that is held back");
                    (gate.clone(), body.split_off(from))
                });
                Answer { rest, ..Answer::events(body) }
            } else {
                Answer::json(200, &message)
            }
        }
    }
}

fn message(step: &Step, request: &Value, tokens: usize) -> Value {
    let mut content = Vec::new();
    let mut stop = "end_turn";
    if let Reply::Message { thinking, text, calls } = &step.reply {
        if let Some(thought) = thinking {
            content.push(json!({"type": "thinking", "thinking": thought, "signature": "bW9jaw=="}));
        }
        if let Some(text) = text {
            content.push(json!({"type": "text", "text": text}));
        }
        for call in calls {
            let id = call.id.clone().unwrap_or_else(|| unique("toolu_01"));
            content.push(
                json!({"type": "tool_use", "id": id, "name": call.name, "input": call.input}),
            );
            stop = "tool_use";
        }
    }
    let output = json!(content).to_string().len() / 4;
    let mut usage = json!({"input_tokens": tokens, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0, "output_tokens": output.max(1)});
    for (field, value) in &step.usage {
        usage[field] = value.clone();
    }
    let model = request["model"].as_str().unwrap_or("mock");
    json!({"id": unique("msg_01"), "type": "message", "role": "assistant", "model": model,
        "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage})
}

fn events(message: &Value) -> String {
    let mut out = String::new();
    let mut event = |data: Value| {
        let kind = data["type"].as_str().unwrap_or_default();
        write!(out, "event: {kind}\ndata: {data}\n\n").unwrap();
    };
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = json!(1);
    event(json!({"type": "message_start", "message": start}));
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let (start, deltas) = parts(block);
        event(json!({"type": "content_block_start", "index": index, "content_block": start}));
        for delta in deltas {
            event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        event(json!({"type": "content_block_stop", "index": index}));
    }
    event(json!({"type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": null},
        "usage": {"output_tokens": message["usage"]["output_tokens"]}}));
    event(json!({"type": "message_stop"}));
    out
}

/// A block as it begins, and what is added to it.
fn parts(block: &Value) -> (Value, Vec<Value>) {
    match block["type"].as_str() {
        Some("tool_use") => {
            let mut start = block.clone();
            start["input"] = json!({});
            let input = block["input"].to_string();
            (start, vec![json!({"type": "input_json_delta", "partial_json": input})])
        }
        Some("thinking") => (
            json!({"type": "thinking", "thinking": "", "signature": ""}),
            vec![
                json!({"type": "thinking_delta", "thinking": block["thinking"]}),
                json!({"type": "signature_delta", "signature": block["signature"]}),
            ],
        ),
        _ => (
            json!({"type": "text", "text": ""}),
            vec![json!({"type": "text_delta", "text": block["text"]})],
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::step::Call;
    use super::*;

    #[test]
    fn events_carry_what_the_message_holds() {
        let call = Call::new("Read", json!({"file_path": "/a"})).id("toolu_1");
        let step = Step::tools([call]).say("Reading.").think("Which file?").tokens(70_000);
        let answer = answer(&step, &json!({"stream": true, "model": "m"}), 12);
        assert_eq!((answer.status, answer.content_type), (200, "text/event-stream"));
        let data: Vec<Value> = answer
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect();
        assert_eq!(data[0]["message"]["usage"]["input_tokens"], 70_000);
        let deltas: Vec<&Value> = data.iter().map(|data| &data["delta"]).collect();
        assert!(deltas.contains(&&json!({"type": "thinking_delta", "thinking": "Which file?"})));
        assert!(deltas.contains(&&json!({"type": "text_delta", "text": "Reading."})));
        let input = json!({"type": "input_json_delta", "partial_json": "{\"file_path\":\"/a\"}"});
        assert!(deltas.contains(&&input));
        assert!(deltas.iter().any(|delta| delta["stop_reason"] == "tool_use"));
        assert_eq!(data.last().unwrap()["type"], "message_stop");
    }

    #[test]
    fn an_error_is_in_the_shape_of_the_api() {
        let answer = answer(&Step::prompt_too_long(), &json!({"stream": true}), 1);
        assert_eq!(answer.status, 400);
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(body["type"], "error");
        assert_eq!(body["error"]["type"], "invalid_request_error");
        assert!(body["error"]["message"].as_str().unwrap().starts_with("prompt is too long: "));
    }
}
