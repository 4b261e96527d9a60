//! Rollouts of Codex, and a look at everything in a home.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Home;

pub const THREAD: &str = "01a22bab-1111-7000-8000-000000000001";
pub const OTHER: &str = "01a22bab-2222-7000-8000-000000000002";

/// A thread with so many searches, most of which nothing uses; each result is of about `chars`
/// characters.
pub fn rollout(id: &str, searches: usize, chars: usize) -> String {
    let mut text = String::new();
    let mut line = |kind: &str, payload: &Value| {
        writeln!(
            text,
            "{}",
            json!({"timestamp": "2026-11-30T08:00:00.000Z", "type": kind, "payload": payload})
        )
        .unwrap();
    };
    let meta = json!({"id": id, "session_id": id, "timestamp": "2026-11-30T08:00:00.000Z",
        "cwd": "/w", "originator": "codex_cli_rs", "cli_version": "0.171.0", "source": "cli"});
    line("session_meta", &meta);
    let content = json!([{"type": "input_text", "text": "Look around."}]);
    line("response_item", &json!({"type": "message", "role": "user", "content": content}));
    for number in 0..searches {
        let call = format!("call_{number}");
        let command =
            if number < 9 { "./measure".to_owned() } else { format!("grep -n x file{number}") };
        let arguments = json!({"cmd": command}).to_string();
        line(
            "response_item",
            &json!({"type": "function_call", "name": "exec_command",
            "arguments": arguments, "call_id": call}),
        );
        let row = format!("unused_name_{number} = {number}\n");
        let output = row.repeat(chars / row.len() + 1);
        line(
            "response_item",
            &json!({"type": "function_call_output", "call_id": call,
            "output": output}),
        );
    }
    // The first ones are used after all: only a budget takes them.
    let used: Vec<String> = (0..searches.min(9)).map(|at| format!("unused_name_{at}")).collect();
    let content = json!([{"type": "output_text", "text": format!("I saw {}.", used.join(", "))}]);
    line("response_item", &json!({"type": "message", "role": "assistant", "content": content}));
    text
}

impl Home {
    /// A thread in the home's own Codex folder.
    pub fn thread(&self, id: &str, searches: usize, chars: usize) -> PathBuf {
        let name = format!(".codex/sessions/2026/11/30/rollout-2026-11-30T08-00-00-{id}.jsonl");
        self.put(&name, rollout(id, searches, chars))
    }

    /// Every file and folder of the home; files with their bytes.
    pub fn tree(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut tree = BTreeMap::new();
        let mut open = vec![self.path().to_path_buf()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path.clone());
                    tree.insert(path, None);
                } else {
                    let bytes = std::fs::read(&path).unwrap();
                    tree.insert(path, Some(bytes));
                }
            }
        }
        tree
    }

    /// Every file below the folders of Codex, but for these.
    pub fn files_but(&self, known: &[&Path]) -> Vec<PathBuf> {
        let files = self.tree().into_iter().filter(|(_, bytes)| bytes.is_some());
        files.map(|(path, _)| path).filter(|path| !known.contains(&path.as_path())).collect()
    }
}
