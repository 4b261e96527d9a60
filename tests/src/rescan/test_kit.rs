//! Small transcripts for the tests.

#![allow(clippy::needless_pass_by_value, reason = "`json!(..)` reads best without a borrow")]

use serde_json::{Value, json};

use super::standin::Standin;
use super::{Decided, Decision, Host, Options, Outcome, Profile, rescan};

/// Options under which a short session is not pinned or too recent.
pub(super) fn open_options() -> Options {
    Options { pin_last: 0, recent_results: 0, profile: Profile::Reference, ..Options::default() }
}

pub(super) fn run(host: Host, rows: &[Value], options: &Options) -> Outcome {
    let lines = rows.iter().map(|row| row.to_string().into_bytes()).collect::<Vec<_>>();
    let lines = lines.iter().map(Vec::as_slice).collect::<Vec<_>>();
    rescan(&lines, Some(host), &Standin, options)
}

pub(super) fn ids(outcome: &Outcome) -> Vec<&str> {
    outcome.results.iter().map(|result| result.id.as_str()).collect()
}

pub(super) fn result<'a>(outcome: &'a Outcome, id: &str) -> &'a Decided {
    outcome.results.iter().find(|result| result.id == id).expect("a result of that id")
}

pub(super) fn rule(outcome: &Outcome, id: &str) -> &'static str {
    result(outcome, id).rule
}

pub(super) fn decision(outcome: &Outcome, id: &str) -> Decision {
    result(outcome, id).decision
}

/// A Claude Code transcript whose rows hang on each other.
#[derive(Default)]
pub(super) struct Claude {
    pub(super) rows: Vec<Value>,
    messages: usize,
}

impl Claude {
    /// A session that a person opened.
    pub(super) fn new() -> Self {
        let mut session = Self::default();
        session.user(json!("please look"));
        session
    }

    /// Adds a row behind the last one; its uuid is `u` and its number.
    pub(super) fn row(&mut self, mut row: Value) -> String {
        let uuid = format!("u{}", self.rows.len());
        if row.get("uuid").is_none() {
            row["uuid"] = json!(uuid);
        }
        if row.get("parentUuid").is_none() {
            row["parentUuid"] = self.rows.last().map_or(Value::Null, |last| last["uuid"].clone());
        }
        self.rows.push(row);
        uuid
    }

    pub(super) fn user(&mut self, content: Value) -> String {
        self.row(json!({"type": "user", "message": {"role": "user", "content": content}}))
    }

    pub(super) fn says(&mut self, text: &str) -> String {
        self.messages += 1;
        let id = format!("m{}", self.messages);
        self.block(&id, json!({"type": "text", "text": text}))
    }

    pub(super) fn block(&mut self, message: &str, block: Value) -> String {
        self.row(json!({"type": "assistant",
            "message": {"role": "assistant", "id": message, "content": [block]}}))
    }

    pub(super) fn calls(&mut self, id: &str, tool: &str, input: Value) -> String {
        self.messages += 1;
        let message = format!("m{}", self.messages);
        self.block(&message, call(id, tool, input))
    }

    pub(super) fn answers(&mut self, id: &str, text: &str) -> String {
        self.user(json!([answer(id, text)]))
    }

    /// A call and its result.
    pub(super) fn pair(&mut self, id: &str, tool: &str, input: Value, text: &str) {
        self.calls(id, tool, input);
        self.answers(id, text);
    }

    pub(super) fn read(&mut self, id: &str, path: &str, text: &str) {
        self.pair(id, "Read", json!({"file_path": path}), text);
    }

    pub(super) fn bash(&mut self, id: &str, command: &str, text: &str) {
        self.pair(id, "Bash", json!({"command": command}), text);
    }

    pub(super) fn run(&self, options: &Options) -> Outcome {
        run(Host::Claude, &self.rows, options)
    }

    pub(super) fn open(&self) -> Outcome {
        self.run(&open_options())
    }
}

pub(super) fn call(id: &str, tool: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": tool, "input": input})
}

pub(super) fn answer(id: &str, text: &str) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": text})
}

/// A row of a Codex rollout.
pub(super) fn item(payload: Value) -> Value {
    json!({"type": "response_item", "payload": payload})
}

pub(super) fn codex_user(text: &str) -> Value {
    item(json!({"type": "message", "role": "user",
        "content": [{"type": "input_text", "text": text}]}))
}

pub(super) fn codex_says(text: &str) -> Value {
    item(json!({"type": "message", "role": "assistant",
        "content": [{"type": "output_text", "text": text}]}))
}

pub(super) fn codex_call(id: &str, command: &str) -> Value {
    let arguments = json!({"cmd": command}).to_string();
    item(json!({"type": "function_call", "name": "exec_command", "arguments": arguments,
        "call_id": id}))
}

pub(super) fn codex_output(id: &str, output: Value) -> Value {
    item(json!({"type": "function_call_output", "call_id": id, "output": output}))
}
