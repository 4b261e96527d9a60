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
    late: Vec<Script>,
    /// Scripts that go on behind their result: cell, and what is to come of them.
    cells: Vec<(String, Vec<Call>)>,
    scripts: usize,
}

/// A code-mode call: what it runs, in its order.
struct Script {
    id: String,
    calls: Vec<Call>,
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
        late: Vec::new(),
        cells: Vec::new(),
        scripts: 0,
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
        if self.code_mode {
            return self.request_scripts(count);
        }
        let mut calls = Vec::new();
        for _ in 0..count {
            let call = self.world.call(self.rng);
            self.item(called(&call));
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
        if self.rng.chance(5) {
            self.tool_event(&call.id);
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
        let file = FILES.iter().find(|file| command.contains(**file) && self.rng.chance(80));
        let parsed: Vec<Value> =
            file.iter().map(|file| json!({"type": "read", "cmd": command, "path": file})).collect();
        self.event(&json!({"type": "item_completed", "item": {"type": "CommandExecution",
            "id": id, "command": ["bash", "-lc", command], "cwd": "file:///work/app",
            "status": status, "exit_code": code, "parsed_cmd": parsed}}));
    }

    /// A tool of a server, or a patch.
    fn tool_event(&mut self, id: &str) {
        let status = self.rng.pick(&["completed", "failed", "declined"]);
        let file = self.rng.pick(&FILES);
        let item = if self.rng.chance(50) {
            json!({"type": "FileChange", "id": id, "status": status, "changes": {file: {"type": "add"}}})
        } else {
            let is_error = status == "failed";
            json!({"type": "McpToolCall", "id": id, "status": status, "result": {"content": [], "isError": is_error}})
        };
        self.event(&json!({"type": "item_completed", "item": item}));
    }

    fn output(&mut self, call: &Call) -> Value {
        let code = i32::from(call.error);
        let text = &call.output;
        if call.image {
            return json!([{"type": "input_text", "text": text}, {"type": "input_image", "image_url": "data:"}]);
        }
        let warning =
            "Warning: truncated output (original token count: 9123)\nTotal output lines: 4567\n\n";
        match self.rng.below(11) {
            0 => json!(text),
            8 => json!(format!("{warning}{text}")),
            9 => json!(format!("Wall time: 0.0 seconds\nOutput:\n{warning}{text}")),
            10 => json!(format!(
                "Wall time: 0.0 seconds\nOutput:\nExit code: {code}\nWall time: 0 seconds\nOutput:\n{text}"
            )),
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

    /// The scripts of one answer: the host runs one after the other.
    fn request_scripts(&mut self, count: usize) {
        let mut scripts = Vec::new();
        for _ in 0..count {
            let script = self.script();
            self.item(script.item());
            scripts.push(script);
        }
        if self.odd && self.rng.chance(6) {
            return self.late.append(&mut scripts);
        }
        for script in scripts {
            self.cell_event();
            let id = script.id.clone();
            self.answer_script(script);
            if self.rng.chance(6) {
                // What a script tells before it ends comes behind its result.
                self.item(
                    json!({"type": "custom_tool_call_output", "call_id": id, "output": "half way"}),
                );
            }
        }
        if self.rng.chance(40) {
            self.wait();
        }
    }

    fn script(&mut self) -> Script {
        self.scripts += 1;
        let count = self.rng.pick(&[0, 1, 1, 1, 2, 2, 3]);
        let calls = (0..count).map(|_| self.world.call(self.rng)).collect();
        Script { id: format!("script_{}", self.scripts), calls }
    }

    fn answer_script(&mut self, mut script: Script) {
        let mut first = "Script completed".to_owned();
        if self.rng.chance(12) {
            let rest = script.calls.split_off(script.calls.len() / 2);
            let cell = self.scripts.to_string();
            first = format!("Script running with cell ID {cell}");
            self.cells.push((cell, rest));
        }
        let output = self.shown(&first, &script.calls);
        self.item(
            json!({"type": "custom_tool_call_output", "call_id": script.id, "output": output}),
        );
    }

    /// Asks for the next words of a script that goes on.
    fn wait(&mut self) {
        if self.cells.is_empty() {
            return;
        }
        let at = self.rng.below(self.cells.len());
        let (cell, rest) = self.cells.remove(at);
        self.scripts += 1;
        let id = format!("wait_{}", self.scripts);
        self.item(json!({"type": "function_call", "name": "wait", "call_id": id,
            "arguments": json!({"cell_id": cell}).to_string()}));
        let mut first = "Script completed".to_owned();
        if self.rng.chance(20) {
            first = format!("Script running with cell ID {cell}");
            self.cells.push((cell, Vec::new()));
        }
        let output = self.shown(&first, &rest);
        self.item(json!({"type": "function_call_output", "call_id": id, "output": output}));
    }

    /// Something ran in a script that goes on, whatever else is under way.
    fn cell_event(&mut self) {
        if !self.cells.is_empty() && self.rng.chance(30) {
            let call = self.world.call(self.rng);
            let code = i32::from(call.error && self.rng.chance(30));
            self.command("exec-2", &shell(&call.act), code);
        }
    }

    /// What these calls print, and the host's lines about them.
    fn shown(&mut self, first: &str, calls: &[Call]) -> Value {
        let mut parts = vec![format!("{first}\nWall time 0.1 seconds\nOutput:\n")];
        for call in calls {
            let code = i32::from(call.error);
            if self.rng.chance(90) {
                self.command("exec-1", &shell(&call.act), code);
            }
            if self.rng.chance(4) {
                self.tool_event("exec-3");
            }
            let answer = json!({"chunk_id": "83a9a7", "wall_time_seconds": 0.1, "exit_code": code, "output": call.output});
            match self.rng.below(12) {
                0 => parts.push("done with cart_total".to_owned()),
                1 => parts.push(json!([{"status": "fulfilled", "value": answer}]).to_string()),
                2 => parts.push(format!("Warning: truncated output (original token count: 9)\nTotal output lines: 1\n\n{}", answer.to_string().replace("0.1", "0.1x"))),
                3 => parts.push(json!({"content": [{"type": "text", "text": call.output}], "isError": call.error}).to_string()),
                4 => parts.push(json!({"output": call.output}).to_string()),
                5 | 6 => parts.push(call.output.clone()),
                7 => {
                    if let Some(last) = parts.last_mut() {
                        last.push_str(&call.output);
                    }
                }
                _ => parts.push(answer.to_string()),
            }
        }
        if parts.len() == 1 && self.rng.chance(50) {
            return json!(parts[0]);
        }
        parts.iter().map(|text| json!({"type": "input_text", "text": text})).collect()
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
                for script in std::mem::take(&mut self.late) {
                    self.answer_script(script);
                }
            }
            7 => self.item(json!({"type": "function_call_output", "call_id": "orphan", "output": "cart_total"})),
            8 => {
                let call = self.world.call(self.rng);
                self.answer(&call);
                self.item(called(&call));
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

impl Script {
    fn item(&self) -> Value {
        let lines = self.calls.iter().map(|call| {
            let command = json!(shell(&call.act)).to_string();
            format!("text(await tools.exec_command({{cmd: {command}}}));\n")
        });
        let input: String = lines.collect();
        let mut item =
            json!({"type": "custom_tool_call", "name": "exec", "call_id": self.id, "input": input});
        if self.id.ends_with('7') {
            item["namespace"] = json!("functions");
        }
        item
    }
}
