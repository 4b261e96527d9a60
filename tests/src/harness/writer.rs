//! Writes sessions line by line, for tests that need to know what is in them.

use serde_json::{Value, json};

/// A session of Claude Code.
#[derive(Debug)]
pub struct Claude {
    id: String,
    rows: usize,
    messages: usize,
    parent: Option<String>,
    lines: Vec<String>,
    /// The rows as a caller of the API would name them.
    named: Vec<Value>,
}

impl Claude {
    #[must_use]
    pub fn new(id: &str) -> Self {
        let (lines, named) = (Vec::new(), Vec::new());
        Self { id: id.to_owned(), rows: 0, messages: 0, parent: None, lines, named }
    }

    fn row(&mut self, mut row: Value, named: Value) -> &mut Self {
        self.rows += 1;
        let uuid = format!("{:08x}-0000-4000-8000-{:012x}", self.rows, self.rows);
        row["uuid"] = json!(uuid);
        row["parentUuid"] = json!(self.parent);
        row["isSidechain"] = json!(false);
        row["sessionId"] = json!(self.id);
        row["cwd"] = json!("/work/app");
        row["version"] = json!("2.1.332");
        row["timestamp"] = json!("2026-11-30T08:16:00.433Z");
        self.lines.push(row.to_string());
        let mut named = named;
        named["row"] = json!(uuid);
        self.named.push(named);
        self.parent = Some(uuid);
        self
    }

    /// The person says something.
    pub fn prompt(&mut self, text: &str) -> &mut Self {
        let row = json!({"type": "user", "message": {"role": "user", "content": text}});
        self.row(row, json!({"role": "user", "chars": text.chars().count()}))
    }

    fn assistant(&mut self, message: &str, block: &Value, named: Value) -> &mut Self {
        let row = json!({"type": "assistant", "message": {"role": "assistant", "id": message,
            "model": "claude-test", "content": [block],
            "usage": {"input_tokens": 10, "output_tokens": 2}}});
        self.row(row, named)
    }

    /// The model says something.
    pub fn say(&mut self, text: &str) -> &mut Self {
        self.messages += 1;
        let message = format!("msg_{:04}", self.messages);
        let block = json!({"type": "text", "text": text});
        self.assistant(
            &message,
            &block,
            json!({"role": "assistant", "chars": text.chars().count()}),
        )
    }

    /// A tool call in an API message of its own.
    pub fn call(&mut self, id: &str, tool: &str, input: &Value) -> &mut Self {
        self.messages += 1;
        let message = format!("msg_{:04}", self.messages);
        self.call_in(&message, id, tool, input)
    }

    /// A tool call in this API message.
    pub fn call_in(&mut self, message: &str, id: &str, tool: &str, input: &Value) -> &mut Self {
        let block = json!({"type": "tool_use", "id": id, "name": tool, "input": input});
        self.assistant(message, &block, json!({"role": "assistant", "ids": [id]}))
    }

    /// The result of a call.
    pub fn result(&mut self, id: &str, text: &str) -> &mut Self {
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": text});
        let row = json!({"type": "user", "message": {"role": "user", "content": [block]}});
        self.row(row, json!({"role": "user", "ids": [id], "chars": text.chars().count()}))
    }

    /// A command and its output.
    pub fn bash(&mut self, id: &str, command: &str, output: &str) -> &mut Self {
        self.call(id, "Bash", &json!({"command": command})).result(id, output)
    }

    /// A file that is read.
    pub fn read(&mut self, id: &str, file: &str, text: &str) -> &mut Self {
        self.call(id, "Read", &json!({"file_path": file})).result(id, text)
    }

    /// The host writes down that a compaction happened; what follows is the new context.
    pub fn boundary(&mut self) -> &mut Self {
        self.parent = None;
        let row = json!({"type": "system", "subtype": "compact_boundary",
            "compactMetadata": {"trigger": "manual", "preTokens": 10}});
        self.row(row, json!({}));
        self.named.clear();
        self
    }

    /// A long piece of work: the same files again and again, so that much of it may go.
    pub fn work(&mut self, rounds: usize) -> &mut Self {
        for round in 0..rounds {
            let at = self.rows;
            let file = format!("/work/app/src/part{}.rs", round % 3);
            let text = format!("fn part_{round}() {{ let value_{at} = {round}; }}\n").repeat(12);
            self.read(&format!("toolu_read{at:06}"), &file, &text);
            let output = format!("src/part{}.rs | {at} +-\n", round % 3).repeat(20);
            self.bash(&format!("toolu_bash{at:06}"), "git status", &output);
            self.say("Going on with the next part.");
        }
        self
    }

    /// Takes the lines that were written since the last time.
    pub fn take(&mut self) -> String {
        let lines = std::mem::take(&mut self.lines);
        lines.into_iter().map(|line| line + "\n").collect()
    }

    /// How many lines there were so far.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.rows as u64
    }

    /// The rows as a caller of `/v1/compact` names them.
    #[must_use]
    pub fn named(&self) -> &[Value] {
        &self.named
    }

    /// A compaction request for the whole session.
    #[must_use]
    pub fn request(&self, transcript: &std::path::Path, trigger: &str) -> Value {
        json!({"host": "claude", "session": self.id, "transcript": transcript, "trigger": trigger,
            "rows": self.named})
    }
}

/// A rollout of Codex.
#[derive(Debug)]
pub struct Codex {
    ordinal: u64,
    lines: Vec<String>,
}

impl Codex {
    #[must_use]
    pub fn new(thread: &str) -> Self {
        let mut codex = Self { ordinal: 0, lines: Vec::new() };
        codex.line(
            "session_meta",
            &json!({"id": thread, "timestamp": "2026-11-30T08:00:00.000Z",
            "cwd": "/work/app", "originator": "codex_cli_rs", "cli_version": "0.171.0"}),
        );
        codex
    }

    fn line(&mut self, kind: &str, payload: &Value) -> &mut Self {
        let line = json!({"timestamp": "2026-11-30T08:00:00.000Z", "ordinal": self.ordinal,
            "type": kind, "payload": payload});
        self.ordinal += 1;
        self.lines.push(line.to_string());
        self
    }

    /// The person says something.
    pub fn prompt(&mut self, text: &str) -> &mut Self {
        let content = json!([{"type": "input_text", "text": text}]);
        let item = json!({"type": "message", "role": "user", "content": content});
        self.line("response_item", &item)
    }

    /// The model says something.
    pub fn say(&mut self, text: &str) -> &mut Self {
        let content = json!([{"type": "output_text", "text": text}]);
        let item = json!({"type": "message", "role": "assistant", "content": content});
        self.line("response_item", &item)
    }

    /// The host compacted: a summary stands in the place of all before.
    pub fn compacted(&mut self, summary: &str) -> &mut Self {
        let content = json!([{"type": "input_text", "text": summary}]);
        let item = json!({"type": "message", "role": "user", "content": content});
        self.line("compacted", &json!({"message": summary, "replacement_history": [item]}))
    }

    /// A command and its output.
    pub fn shell(&mut self, id: &str, command: &str, output: &str) -> &mut Self {
        let arguments = json!({"command": ["bash", "-lc", command]}).to_string();
        self.line(
            "response_item",
            &json!({"type": "function_call", "name": "shell",
            "arguments": arguments, "call_id": id}),
        );
        self.line(
            "response_item",
            &json!({"type": "function_call_output", "call_id": id,
            "output": output}),
        )
    }

    /// Commands whose outputs nothing ever uses: most of them may go.
    pub fn searches(&mut self, count: usize) -> &mut Self {
        for number in 0..count {
            let output: String =
                (0..40).map(|line| format!("unused_name_{number}_{line} = {line}\n")).collect();
            let command = format!("grep -n unused file{number}.txt");
            self.shell(&format!("call_{number}"), &command, &output);
        }
        self
    }

    /// Commands with outputs of so many bytes each.
    pub fn outputs(&mut self, count: usize, bytes: usize) -> &mut Self {
        for number in 0..count {
            let line = format!("what number {number} says, again and again\n");
            let output = line.repeat(bytes / line.len());
            self.shell(&format!("call_long_{number}"), "./measure", &output);
        }
        self
    }

    /// Takes the lines that were written since the last time.
    pub fn take(&mut self) -> String {
        let lines = std::mem::take(&mut self.lines);
        lines.into_iter().map(|line| line + "\n").collect()
    }
}
