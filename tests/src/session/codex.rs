//! Codex's rollouts.

use serde_json::{Value, json};

use super::words::{Act, Call, FILES, World};
use super::{Kind, Rng};

struct Writer<'a> {
    rng: &'a mut Rng,
    odd: bool,
    code_mode: bool,
    world: World,
    lines: Vec<Vec<u8>>,
    /// Conversation items, for replacement histories.
    items: Vec<Value>,
    waiting: Vec<Call>,
}

pub(super) fn lines(rng: &mut Rng, kind: Kind, steps: usize) -> Vec<Vec<u8>> {
    let code_mode = rng.chance(30);
    let mut writer = Writer {
        rng,
        odd: kind == Kind::Odd,
        code_mode,
        world: World::default(),
        lines: Vec::new(),
        items: Vec::new(),
        waiting: Vec::new(),
    };
    let meta = json!({"id": "t-1", "session_id": "t-1", "cwd": "/work/app", "cli_version": "0.1"});
    writer.line(
        &json!({"type": "session_meta", "timestamp": "2026-11-30T00:00:00Z", "payload": meta}),
    );
    writer.developer();
    writer.prompt();
    for _ in 0..steps {
        writer.step();
    }
    writer.lines
}

impl Writer<'_> {
    fn line(&mut self, value: &Value) {
        self.lines.push(value.to_string().into_bytes());
    }

    fn item(&mut self, payload: Value) {
        self.line(&json!({"type": "response_item", "timestamp": "2026-11-30T00:00:01Z", "payload": payload}));
        self.items.push(payload);
    }

    fn event(&mut self, payload: &Value) {
        self.line(&json!({"type": "event_msg", "payload": payload}));
    }

    fn message(&mut self, role: &str, text: &str) {
        let kind = if role == "assistant" { "output_text" } else { "input_text" };
        self.item(
            json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}),
        );
    }

    fn developer(&mut self) {
        let text = self.world.prose(self.rng);
        self.message("developer", &text);
    }

    fn prompt(&mut self) {
        let mut text = self.world.prose(self.rng);
        if self.rng.chance(15) {
            text = format!("<environment_context>{text}");
        }
        self.message("user", &text);
    }

    fn step(&mut self) {
        if self.odd && self.rng.chance(15) {
            return self.oddity();
        }
        match self.rng.below(14) {
            0 => self.prompt(),
            1 => self.developer(),
            2 => self.item(json!({"type": "reasoning", "summary": [], "encrypted_content": "x"})),
            3 => self.count(self.tokens()),
            4 => self.line(
                &json!({"type": "turn_context", "payload": {"cwd": "/work/app", "model": "m"}}),
            ),
            _ => self.turn(),
        }
    }

    /// As if all that stands there were sent.
    fn tokens(&self) -> usize {
        10 + self.lines.iter().map(Vec::len).sum::<usize>() / 6
    }

    fn count(&mut self, tokens: usize) {
        let usage = json!({"input_tokens": tokens, "output_tokens": 2});
        self.event(&json!({"type": "token_count", "info": {"last_token_usage": usage}}));
    }

    /// One request: its answer, the results, and behind them what its prompt was, as new versions
    /// have it.
    fn turn(&mut self) {
        let sent = self.tokens();
        self.request();
        if self.rng.chance(70) {
            self.count(sent);
        }
    }

    fn request(&mut self) {
        if self.rng.chance(60) {
            let text = self.world.spoken(self.rng);
            self.message("assistant", &text);
        }
        let count = self.rng.pick(&[0, 1, 1, 1, 1, 2, 3]);
        let count = if self.code_mode { count.min(1) } else { count };
        let mut calls = Vec::new();
        for _ in 0..count {
            let call = self.world.call(self.rng);
            let item = if self.code_mode { script(&call) } else { called(&call) };
            self.item(item);
            calls.push(call);
        }
        if self.odd && self.rng.chance(6) {
            return self.waiting.append(&mut calls);
        }
        if self.rng.chance(30) {
            calls.reverse();
        }
        for call in calls {
            self.answer(&call);
        }
    }

    fn answer(&mut self, call: &Call) {
        if self.code_mode {
            return self.answer_script(call);
        }
        if let Act::Shell { command } = &call.act {
            let code = i32::from(call.error);
            self.event(
                &json!({"type": "exec_command_begin", "call_id": call.id, "command": command}),
            );
            if self.rng.chance(50) {
                self.command(&call.id, command, code);
            }
        }
        let custom = matches!(call.act, Act::Edit { .. });
        let kind = if custom { "custom_tool_call_output" } else { "function_call_output" };
        let output = self.output(call);
        self.item(json!({"type": kind, "call_id": call.id, "output": output}));
    }

    fn command(&mut self, id: &str, command: &str, code: i32) {
        let status = if code == 0 { "completed" } else { "failed" };
        self.event(&json!({"type": "item_completed", "item": {"type": "CommandExecution",
            "id": id, "command": ["bash", "-lc", command], "cwd": "file:///work/app",
            "status": status, "exit_code": code, "parsed_cmd": []}}));
    }

    fn output(&mut self, call: &Call) -> Value {
        let code = i32::from(call.error);
        let text = &call.output;
        if call.image {
            return json!([{"type": "input_text", "text": text}, {"type": "input_image", "image_url": "data:"}]);
        }
        match self.rng.below(8) {
            0 => json!(text),
            1 => json!([{"type": "input_text", "text": text}]),
            2 => json!({"content": text, "success": !call.error}),
            3 => json!(
                json!({"output": text, "metadata": {"exit_code": code, "duration_seconds": 0.1}})
                    .to_string()
            ),
            4 => json!(format!("Exit code: {code}\nWall time: 0.1 seconds\nOutput:\n{text}")),
            _ => json!(format!(
                "Chunk ID: 12ab\nWall time: 0.1000 seconds\nProcess exited with code {code}\nOriginal token count: 31337\nOutput:\n{text}"
            )),
        }
    }

    fn answer_script(&mut self, call: &Call) {
        let code = i32::from(call.error);
        let commands = match self.rng.below(6) {
            0 => 0,
            1 => 2,
            _ => 1,
        };
        for at in 0..commands {
            let command = if at == 1 { "git status".to_owned() } else { shell(&call.act) };
            self.command("exec-1", &command, code);
        }
        let header = json!({"type": "input_text", "text": "Script completed\nWall time 0.1 seconds\nOutput:\n"});
        let part = |text: &str| json!({"type": "input_text", "text": text});
        let inner = json!({"exit_code": code, "output": call.output}).to_string();
        let output = match self.rng.below(5) {
            0 => json!([header, part(&call.output)]),
            1 => json!([header, part(&inner), part("done with cart_total")]),
            _ => json!([header, part(&inner)]),
        };
        self.item(json!({"type": "custom_tool_call_output", "call_id": call.id, "output": output}));
    }

    fn oddity(&mut self) {
        match self.rng.below(14) {
            0..=2 => {
                let turns = self.rng.below(4);
                self.event(&json!({"type": "thread_rolled_back", "num_turns": turns}));
            }
            3..=5 => self.compacted(),
            6 => {
                let waiting = std::mem::take(&mut self.waiting);
                for call in waiting {
                    self.answer(&call);
                }
            }
            7 => self.item(json!({"type": "function_call_output", "call_id": "orphan", "output": "cart_total"})),
            8 => {
                let call = self.world.call(self.rng);
                self.answer(&call);
                let item = if self.code_mode { script(&call) } else { called(&call) };
                self.item(item);
            }
            9 => {
                let garbage: &[u8] = self.rng.pick::<&[u8]>(&[
                    b"", b"{", b"nope", b"{\"type\":\"event_msg\",\"payload\":{}}",
                    b"{\"type\":\"response_item\",\"payload\":7}",
                    b"{\"type\":\"response_item\",\"payload\":{\"type\":\"message\"}}",
                    b"{\"type\":\"world_state\",\"payload\":{}}",
                    b"{\"type\":\"event_msg\",\"payload\":{\"type\":\"thread_rolled_back\"}}",
                ]);
                self.lines.push(garbage.to_vec());
            }
            10 => {
                self.prompt();
                if let Some(line) = self.lines.last_mut() {
                    line.truncate(line.len() / 2);
                }
                self.items.pop();
            }
            11 => {
                let line = "{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"cart_total \\ud83d plain_one\"}]}}";
                self.lines.push(line.as_bytes().to_vec());
            }
            12 => {
                let kind = self.rng.pick(&["web_search_call", "tool_search_output", "agent_message", "ghost_snapshot", "unheard_of"]);
                self.item(json!({"type": kind, "content": [{"type": "input_text", "text": "cart_total"}]}));
            }
            _ => {
                // The same item again.
                if !self.items.is_empty() {
                    let item = self.rng.pick(&self.items);
                    // A second result of a call comes only with a copy of the call.
                    if item["output"].is_null() {
                        self.item(item);
                    }
                }
            }
        }
    }

    fn compacted(&mut self) {
        let summary = format!("Summary: {}", self.world.prose(self.rng));
        let from = self.items.len().saturating_sub(2 + self.rng.below(20));
        let mut history: Vec<Value> =
            self.items[from..].iter().filter(|_| self.rng.chance(80)).cloned().collect();
        if self.rng.chance(50) {
            history.push(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": summary}]}));
        }
        if self.rng.chance(15) {
            history.push(json!({"type": "compaction", "encrypted_content": "x"}));
        }
        let mut payload = json!({"message": summary, "replacement_history": history});
        match self.rng.below(12) {
            0 => payload["replacement_history"] = Value::Null,
            1 => payload["replacement_history"] = json!("wrong"),
            2 => payload["replacement_history"] = json!([{"type": "message", "role": "user"}]),
            3 => payload["window_number"] = json!("one"),
            4 => payload["replacement_history_metadata"] = json!([1]),
            5 => payload["message"] = Value::Null,
            _ => {}
        }
        self.line(&json!({"type": "compacted", "payload": payload}));
    }
}

/// What a call does, as a shell command.
fn shell(act: &Act) -> String {
    match act {
        Act::Read { file, from, lines } if *lines < 2000 => {
            format!("sed -n '{},{}p' {}", from + 1, from + lines, FILES[*file])
        }
        Act::Read { file, .. } => format!("cat {}", FILES[*file]),
        Act::Shell { command } => command.clone(),
        Act::Edit { file, .. } => format!("sed -i 's/a/b/' {}", FILES[*file]),
        Act::Write { file, content } => format!("cat > {} << 'EOF'\n{content}\nEOF", FILES[*file]),
        Act::Other { name, .. } => format!("{name} --version"),
    }
}

fn called(call: &Call) -> Value {
    match &call.act {
        Act::Edit { file, old, new } => {
            let body = |text: &str, mark: &str| {
                text.lines().map(|line| format!("{mark}{line}\n")).collect::<String>()
            };
            let patch = format!(
                "*** Begin Patch\n*** Update File: {}\n@@\n{}{}*** End Patch\n",
                FILES[*file],
                body(old, "-"),
                body(new, "+")
            );
            json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": call.id, "input": patch})
        }
        Act::Other { name, input } => json!({"type": "function_call", "name": name,
            "namespace": "mcp", "call_id": call.id, "arguments": input.to_string()}),
        act => json!({"type": "function_call", "name": "exec_command", "call_id": call.id,
            "arguments": json!({"cmd": shell(act), "workdir": "/work/app"}).to_string()}),
    }
}

fn script(call: &Call) -> Value {
    let command = json!(shell(&call.act)).to_string();
    let input = format!("const r = await tools.exec_command({{cmd: {command}}});\ntext(r);");
    json!({"type": "custom_tool_call", "name": "exec", "call_id": call.id, "input": input})
}
