//! The files that the host wrote.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The rollouts of a thread below a Codex home, archived ones too, by name: a thread that was
/// reverted has several. A file's name has the thread's id, and may have a segment's behind it.
#[must_use]
pub fn find(codex_home: &Path, thread: &str) -> Vec<PathBuf> {
    let mut found = all(codex_home);
    found.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let id = name.get("rollout-2026-11-30T08-00-00-".len()..).unwrap_or_default();
        id.starts_with(thread)
    });
    found
}

/// All rollouts below a Codex home, by path.
#[must_use]
pub fn all(codex_home: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = ["sessions", "archived_sessions"].map(|name| codex_home.join(name)).to_vec();
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
            let path = entry.path();
            if path.is_dir() {
                waiting.push(path);
            } else if entry.file_name().to_string_lossy().starts_with("rollout-") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The records of a rollout.
///
/// # Panics
/// A line is no JSON.
#[track_caller]
#[must_use]
pub fn records(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The payloads of the records of a type.
#[must_use]
pub fn payloads(records: &[Value], kind: &str) -> Vec<Value> {
    let of_kind = records.iter().filter(|record| record["type"] == kind);
    of_kind.map(|record| record["payload"].clone()).collect()
}

/// What the newest `compacted` record keeps; nothing if there is none.
#[must_use]
pub fn replacement_history(records: &[Value]) -> Option<Vec<Value>> {
    let newest = payloads(records, "compacted").pop()?;
    newest["replacement_history"].as_array().cloned()
}
