//! Hooks that write down what they get.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::setup::Codex;

/// All events that the host knows.
pub const EVENTS: &[&str] = &[
    "PreModelRequest",
    "PostModelRequest",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PreCompact",
    "PostCompact",
    "SessionStart",
    "SessionEnd",
    "UserPromptSubmit",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "Interrupt",
];

/// A file with the input of every hook that ran, in order.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
}

impl Codex {
    /// Approved hooks of the person's own for these events; each appends its input to a log and
    /// says nothing.
    #[track_caller]
    pub fn log_hooks(&self, events: &[&str]) -> Log {
        let path = self.home().join("hooks.jsonl");
        // One write a line: hooks of threads may run side by side.
        let command = format!("input=$(cat); printf '%s\\n' \"$input\" >>'{}'", path.display());
        let hooks = json!([{"hooks": [{"type": "command", "command": command}]}]);
        let of = events.iter().map(|event| ((*event).to_owned(), hooks.clone()));
        let file = json!({"hooks": of.collect::<serde_json::Map<_, _>>()});
        fs::write(self.codex_home().join("hooks.json"), file.to_string()).unwrap();
        let found = self.trust();
        assert_eq!(found.len(), events.len(), "{found:#?}");
        Log { path }
    }
}

impl Log {
    /// The inputs so far.
    ///
    /// # Panics
    /// A line is no JSON.
    #[track_caller]
    #[must_use]
    pub fn inputs(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The events so far, each with what tells its kind apart: `PreCompact manual`,
    /// `SessionStart resume`, `PreToolUse Bash`.
    #[track_caller]
    #[must_use]
    pub fn events(&self) -> Vec<String> {
        self.inputs().iter().map(event).collect()
    }

    /// Forgets what was logged.
    pub fn clear(&self) {
        let _none = fs::remove_file(&self.path);
    }
}

/// An event's name and what tells its kind apart.
#[must_use]
pub fn event(input: &Value) -> String {
    let name = input["hook_event_name"].as_str().unwrap_or("?");
    let kinds = ["trigger", "source", "tool_name", "kind"];
    let kind = kinds.iter().find_map(|field| input[*field].as_str());
    kind.map_or_else(|| name.to_owned(), |kind| format!("{name} {kind}"))
}
