//! Claude Code's transcripts.

#![allow(clippy::needless_pass_by_value, reason = "`json!(..)` reads best without a borrow")]

use serde_json::{Value, json};

use super::words::{Act, Call, FILES, World};
use super::{Kind, Rng};

struct Writer<'a> {
    rng: &'a mut Rng,
    odd: bool,
    world: World,
    lines: Vec<Vec<u8>>,
    /// Every row written with a uuid: the uuid, its index in `lines`.
    rows: Vec<(String, usize)>,
    /// Line of the newest boundary.
    epoch: usize,
    leaf: Option<String>,
    uuids: usize,
    messages: usize,
    sidechain: bool,
    waiting: Vec<(Call, String)>,
}

pub(super) fn lines(rng: &mut Rng, kind: Kind, steps: usize) -> Vec<Vec<u8>> {
    let odd = kind == Kind::Odd;
    let sidechain = odd && rng.chance(10);
    let mut writer = Writer {
        rng,
        odd,
        world: World::default(),
        lines: Vec::new(),
        rows: Vec::new(),
        epoch: 0,
        leaf: None,
        uuids: 0,
        messages: 0,
        sidechain,
        waiting: Vec::new(),
    };
    if odd && writer.rng.chance(20) {
        writer.oddity();
    }
    writer.prompt();
    for _ in 0..steps {
        writer.step();
    }
    writer.lines
}

impl Writer<'_> {
    fn raw(&mut self, value: &Value) {
        self.lines.push(value.to_string().into_bytes());
    }

    fn uuid(&mut self) -> String {
        self.uuids += 1;
        format!("u{}", self.uuids)
    }

    /// Writes a row that hangs on `parent` and makes it the leaf.
    fn hang(&mut self, parent: Option<String>, mut row: Value) -> String {
        let uuid = self.uuid();
        row["uuid"] = json!(uuid);
        row["parentUuid"] = json!(parent);
        row["isSidechain"] = json!(self.sidechain);
        row["sessionId"] = json!("s-1");
        row["cwd"] = json!("/work/app");
        self.rows.push((uuid.clone(), self.lines.len()));
        self.raw(&row);
        self.leaf = Some(uuid.clone());
        uuid
    }

    fn row(&mut self, row: Value) -> String {
        self.hang(self.leaf.clone(), row)
    }

    fn prompt(&mut self) {
        let text = self.world.prose(self.rng);
        let content = match self.rng.below(6) {
            0 => json!([{"type": "text", "text": text}, {"type": "image", "source": {}}]),
            1 => json!(format!("<command-name>{text}")),
            2 => json!([{"type": "text", "text": text}]),
            _ => json!(text),
        };
        let meta = self.rng.chance(10);
        self.row(json!({"type": "user", "isMeta": meta,
            "message": {"role": "user", "content": content}}));
    }

    fn step(&mut self) {
        if self.odd && self.rng.chance(22) {
            return self.oddity();
        }
        match self.rng.below(12) {
            0 => self.prompt(),
            1 => self.link(),
            _ => self.turn(),
        }
    }

    fn link(&mut self) {
        let kind = self.rng.pick(&["attachment", "system", "progress"]);
        let row = json!({"type": kind, "subtype": "turn_duration", "content": "cart_total"});
        self.row(row);
    }

    fn block(&mut self, message: &str, block: &Value) -> Value {
        // As if all that stands there were sent.
        let tokens = 10 + self.lines.iter().map(Vec::len).sum::<usize>() / 6;
        json!({"type": "assistant", "message": {"role": "assistant", "id": message,
            "model": "model-x", "content": [block],
            "usage": {"input_tokens": 10, "cache_read_input_tokens": tokens, "output_tokens": 2}}})
    }

    /// One answer of the model and the results of its calls.
    fn turn(&mut self) {
        self.messages += 1;
        let message = if self.odd && self.rng.chance(4) {
            format!("m{}", 1 + self.rng.below(self.messages))
        } else {
            format!("m{}", self.messages)
        };
        let mut blocks = Vec::new();
        if self.rng.chance(15) {
            blocks.push(json!({"type": "thinking", "thinking": "cart_total must be 4096"}));
        }
        if self.rng.chance(60) {
            blocks.push(json!({"type": "text", "text": self.world.spoken(self.rng)}));
        }
        let count = self.rng.pick(&[0, 1, 1, 1, 1, 1, 2, 3]);
        let calls: Vec<Call> = (0..count).map(|_| self.world.call(self.rng)).collect();
        if blocks.is_empty() && calls.is_empty() {
            blocks.push(json!({"type": "text", "text": "ok"}));
        }
        let uses: Vec<Value> = calls.iter().map(tool_use).collect();
        let shape = self.rng.below(10);
        if shape == 0 {
            // All blocks in one row, as rewrites and old versions have it.
            blocks.extend(uses);
            let row = json!({"type": "assistant", "message": {"role": "assistant",
                "id": message, "content": blocks}});
            let at = self.row(row);
            return self.answer_all(calls.into_iter().map(|call| (call, at.clone())).collect());
        }
        for block in &blocks {
            let row = self.block(&message, block);
            self.row(row);
        }
        let mut placed = Vec::new();
        for (call, block) in calls.into_iter().zip(&uses) {
            let row = self.block(&message, block);
            let at = self.row(row);
            if shape == 1 {
                // Its result comes before the message's next call, which hangs on this call.
                let above = self.leaf.clone();
                self.answer(&call, Some(at));
                if self.rng.chance(60) {
                    self.leaf = above;
                }
            } else {
                placed.push((call, at));
            }
        }
        self.answer_all(placed);
    }

    /// The results of parallel calls, in any order, each on its own call or on the leaf.
    fn answer_all(&mut self, mut calls: Vec<(Call, String)>) {
        if self.odd && self.rng.chance(6) {
            return self.waiting.append(&mut calls);
        }
        if self.rng.chance(30) {
            calls.reverse();
        }
        if calls.len() > 1 && self.rng.chance(15) {
            let blocks: Vec<Value> =
                calls.iter().map(|(call, _)| tool_result(self.rng, call)).collect();
            self.row(json!({"type": "user", "message": {"role": "user", "content": blocks}}));
            return;
        }
        let own = self.rng.chance(80);
        for (call, at) in calls {
            let parent = if own { Some(at) } else { self.leaf.clone() };
            self.answer(&call, parent);
            if self.rng.chance(6) {
                self.link();
            }
        }
    }

    fn answer(&mut self, call: &Call, parent: Option<String>) {
        let mut blocks = vec![tool_result(self.rng, call)];
        if self.rng.chance(4) {
            blocks.push(json!({"type": "text", "text": "a word of the host"}));
        }
        let row = json!({"type": "user", "message": {"role": "user", "content": blocks},
            "toolUseResult": {"stdout": "copied"}});
        self.hang(parent, row);
    }

    fn oddity(&mut self) {
        match self.rng.below(22) {
            0..=3 => self.rewind(),
            4 | 5 => self.boundary(),
            6 | 7 => self.rewrite(),
            8 => {
                // The same row again.
                if let Some((_, at)) = self.some_row() {
                    let line = self.lines[at].clone();
                    // A second result of a call comes only with a copy of the call.
                    if at >= self.epoch || !is_answer(&line) {
                        self.lines.push(line);
                    }
                }
            }
            9 => {
                let row = json!({"type": "user", "message": {"content": "lost parent"}});
                self.hang(Some("gone".to_owned()), row);
            }
            10 => {
                // A row of the other kind of file.
                let sidechain = self.sidechain;
                let leaf = self.leaf.clone();
                self.sidechain = !sidechain;
                self.turn();
                self.sidechain = sidechain;
                if self.rng.chance(80) {
                    self.leaf = leaf;
                }
            }
            11 => {
                let call = self.world.call(self.rng);
                let blocks =
                    json!([{"type": "text", "text": self.world.spoken(self.rng)}, tool_use(&call)]);
                self.raw(&json!({"type": "assistant", "cwd": "/work/app", "message": {"id": "old", "content": blocks}}));
                let blocks = json!([tool_result(self.rng, &call)]);
                self.raw(
                    &json!({"type": "user", "cwd": "/work/app", "message": {"content": blocks}}),
                );
            }
            12 => {
                let garbage: &[u8] = self.rng.pick::<&[u8]>(&[
                    b"", b"   ", b"not json", b"{\"type\":\"user\"", b"[1,2]", b"\xff\xfe\x00{}", b"7",
                    b"{\"type\":\"new-kind\",\"uuid\":\"uu\",\"parentUuid\":null}",
                    b"{\"type\":\"user\",\"message\":{\"content\":[7,null,{\"type\":\"tool_use\"}]}}",
                    b"{\"type\":\"summary\",\"summary\":\"x\",\"leafUuid\":\"u1\"}",
                    b"{\"type\":\"api-request\",\"uuid\":null}",
                ]);
                self.lines.push(garbage.to_vec());
            }
            13 => {
                // Torn: the beginning of a row.
                let before = self.leaf.clone();
                self.prompt();
                let line = self.lines.last_mut();
                if let Some(line) = line {
                    line.truncate(line.len() / 2);
                }
                if self.rng.chance(50) {
                    self.leaf = before;
                }
            }
            14 => {
                // Half of a surrogate pair, in text and in a result.
                let call = self.world.call(self.rng);
                let mut text = tool_result(self.rng, &call).to_string();
                text = text.replacen("\"tool_use_id\"", "\"extra\":\"\\ud83d\",\"tool_use_id\"", 1);
                text = text.replacen(" ", "\\ude00cart_total ", 1);
                let uuid = self.uuid();
                let parent = json!(self.leaf);
                let use_row = self.block("m-half", &tool_use(&call));
                self.row(use_row);
                let line = format!(
                    "{{\"type\":\"user\",\"uuid\":\"{uuid}\",\"parentUuid\":{parent},\"cwd\":\"/work/app\",\"isSidechain\":{},\"message\":{{\"content\":[{text}]}}}}",
                    self.sidechain
                );
                self.rows.push((uuid.clone(), self.lines.len()));
                self.lines.push(line.into_bytes());
                self.leaf = Some(uuid);
            }
            15 => {
                // A result without its call.
                let row = json!({"type": "user", "message": {"content": [
                    {"type": "tool_result", "tool_use_id": "orphan", "content": "cart_total"}]}});
                self.row(row);
            }
            16 => {
                // The result before the call.
                let call = self.world.call(self.rng);
                let leaf = self.leaf.clone();
                self.answer(&call, leaf);
                let row = self.block("m-late", &tool_use(&call));
                self.row(row);
            }
            17 | 18 => {
                let waiting = std::mem::take(&mut self.waiting);
                for (call, at) in waiting {
                    self.answer(&call, Some(at));
                }
            }
            19 => {
                let row = json!({"type": "assistant", "isApiErrorMessage": true,
                    "message": {"id": "m-error", "content": [{"type": "text", "text": "cart_total failed"}]}});
                self.row(row);
            }
            20 => {
                let content = self.rng.pick(&[json!([]), json!(""), json!(null)]);
                let kind = self.rng.pick(&["user", "assistant"]);
                let row = json!({"type": kind, "message": {"id": "m-empty", "content": content}});
                self.row(row);
            }
            _ => {
                // No message id.
                let text = self.world.spoken(self.rng);
                let row = json!({"type": "assistant",
                    "message": {"content": [{"type": "text", "text": text}]}});
                self.row(row);
            }
        }
    }

    fn some_row(&mut self) -> Option<(String, usize)> {
        (!self.rows.is_empty()).then(|| self.rng.pick(&self.rows))
    }

    fn rewind(&mut self) {
        self.leaf = if self.rng.chance(10) {
            None
        } else if self.rng.chance(30) {
            self.some_row().map(|(uuid, _)| uuid)
        } else {
            let back = 1 + self.rng.below(10);
            self.rows.len().checked_sub(back).map(|at| self.rows[at].0.clone())
        };
        if self.rng.chance(50) {
            self.prompt();
        }
    }

    fn boundary(&mut self) {
        let mut preserved = Vec::new();
        if self.rng.chance(60) {
            let from = self.rows.len().saturating_sub(1 + self.rng.below(9));
            let to = (from + 1 + self.rng.below(8)).min(self.rows.len());
            preserved.extend(self.rows[from..to].iter().map(|(uuid, _)| uuid.clone()));
            if self.rng.chance(15) {
                preserved.reverse();
            }
            if self.rng.chance(15) {
                preserved.push("gone".to_owned());
                preserved.extend(self.some_row().map(|(uuid, _)| uuid));
            }
        }
        let mut row = json!({"type": "system", "subtype": "compact_boundary",
            "compactMetadata": {"trigger": "auto"}});
        if !preserved.is_empty() {
            row["compactMetadata"]["preservedMessages"] = json!({"uuids": preserved});
        }
        self.epoch = self.lines.len();
        let old = self.leaf.clone();
        if self.rng.chance(5) {
            row["isSidechain"] = json!(self.sidechain);
            self.raw(&row);
        } else {
            let parent = if self.rng.chance(80) { None } else { old.clone() };
            self.hang(parent, row);
        }
        if self.rng.chance(20) {
            self.link();
        }
        if self.rng.chance(70) {
            let summary = json!({"type": "user", "isCompactSummary": true,
                "message": {"role": "user", "content": format!("Summary: {}", self.world.prose(self.rng))}});
            let parent = match self.rng.below(6) {
                0 => None,
                1 => old,
                _ => self.leaf.clone(),
            };
            self.hang(parent, summary);
        } else if self.rng.chance(60) {
            self.copies(old);
        }
    }

    /// Rows of before once more with new uuids.
    fn rewrite(&mut self) {
        let leaf = self.leaf.clone();
        self.copies(leaf);
    }

    fn copies(&mut self, parent: Option<String>) {
        let count = 1 + self.rng.below(12);
        let from = self.rows.len().saturating_sub(count + self.rng.below(4));
        let copied: Vec<usize> = self.rows[from..].iter().take(count).map(|row| row.1).collect();
        let keep_parents = self.rng.chance(20);
        let mut called = std::collections::HashSet::new();
        if self.rng.chance(50) {
            self.leaf = parent;
        }
        for at in copied {
            let Ok(mut row) = serde_json::from_slice::<Value>(&self.lines[at]) else { continue };
            if row["subtype"] == "compact_boundary" {
                continue;
            }
            let blocks = row["message"]["content"].as_array().cloned().unwrap_or_default();
            called
                .extend(blocks.iter().filter_map(|block| block["id"].as_str().map(str::to_owned)));
            let mut answered = blocks.iter().filter_map(|block| block["tool_use_id"].as_str());
            if !answered.all(|id| called.remove(id)) {
                continue;
            }
            if row["type"] == "assistant" && self.rng.chance(70) {
                self.messages += 1;
                row["message"]["id"] = json!(format!("m{}", self.messages));
            }
            let named = row["parentUuid"].as_str().map(str::to_owned);
            let parent = if keep_parents { named } else { self.leaf.clone() };
            self.hang(parent, row);
        }
    }
}

fn tool_use(call: &Call) -> Value {
    let (name, input) = match &call.act {
        Act::Read { file, from, lines } => {
            let mut input = json!({"file_path": FILES[*file]});
            if *lines < 2000 {
                input["offset"] = json!(from + 1);
                input["limit"] = json!(lines);
            }
            ("Read", input)
        }
        Act::Shell { command } => ("Bash", json!({"command": command})),
        Act::Edit { file, old, new } => {
            ("Edit", json!({"file_path": FILES[*file], "old_string": old, "new_string": new}))
        }
        Act::Write { file, content } => {
            ("Write", json!({"file_path": FILES[*file], "content": content}))
        }
        Act::Other { name, input } => (*name, input.clone()),
    };
    json!({"type": "tool_use", "id": call.id, "name": name, "input": input})
}

fn tool_result(rng: &mut Rng, call: &Call) -> Value {
    let image = json!({"type": "image", "source": {"data": "AAAA"}});
    let content = match rng.below(8) {
        _ if call.image => json!([{"type": "text", "text": call.output}, image]),
        0 if call.output.is_empty() => json!([]),
        1 if call.output.is_empty() => json!([image]),
        2 if call.output.is_empty() => Value::Null,
        3 => json!([{"type": "text", "text": call.output}]),
        4 if call.output.is_char_boundary(call.output.len() / 2) => {
            let (one, two) = call.output.split_at(call.output.len() / 2);
            json!([{"type": "text", "text": one}, {"type": "text", "text": two}])
        }
        _ => json!(call.output),
    };
    let mut result = json!({"type": "tool_result", "tool_use_id": call.id, "content": content});
    if call.error {
        result["is_error"] = json!(true);
    }
    result
}

fn is_answer(line: &[u8]) -> bool {
    line.windows(13).any(|part| part == b"\"tool_result\"")
}
