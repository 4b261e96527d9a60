//! Codex's `event_msg` lines: usage, what ran inside a call and turns taken back; the rest repeats
//! items.

use std::borrow::Cow;

use super::super::json::Raw;
use super::super::{InnerCommand, Record, Skip, Usage};

pub(super) fn read(payload: Raw<'_>) -> Result<Record<'_>, Skip> {
    let kind = payload.kind().ok_or(Skip::Odd)?;
    match kind.as_ref() {
        "token_count" => usage(payload).map(Record::Usage).ok_or(Skip::Bookkeeping),
        "item_completed" => {
            let item = payload.member("item").filter(|item| item.is_object()).ok_or(Skip::Odd)?;
            match item.kind().as_deref() {
                Some("CommandExecution") => {
                    command(item).map(Record::InnerCommand).ok_or(Skip::Odd)
                }
                Some("FileChange" | "McpToolCall") => {
                    other(item).map(Record::InnerCommand).ok_or(Skip::Odd)
                }
                _ => Err(Skip::Bookkeeping),
            }
        }
        "exec_command_end" => command(payload).map(Record::InnerCommand).ok_or(Skip::Odd),
        "mcp_tool_call_end" => other(payload).map(Record::InnerCommand).ok_or(Skip::Odd),
        "thread_rolled_back" => {
            let turns = payload.member("num_turns").and_then(Raw::whole).ok_or(Skip::Odd)?;
            Ok(Record::RolledBack { turns: u32::try_from(turns).unwrap_or(u32::MAX) })
        }
        _ => Err(Skip::Bookkeeping),
    }
}

fn usage(payload: Raw<'_>) -> Option<Usage> {
    let info = payload.member("info")?;
    let last = info.member("last_token_usage")?;
    let count = |key| last.member(key).and_then(Raw::whole);
    let mut usage = Usage {
        input_tokens: count("input_tokens").unwrap_or(0),
        output_tokens: count("output_tokens").unwrap_or(0),
        window_tokens: info.member("model_context_window").and_then(Raw::whole),
    };
    if usage.input_tokens == 0 && usage.output_tokens == 0 {
        // Behind a compaction the host writes its estimate, as a total only.
        usage.input_tokens = count("total_tokens").unwrap_or(0);
    }
    last.is_object().then_some(usage)
}

fn command(item: Raw<'_>) -> Option<InnerCommand<'_>> {
    let (mut id, mut call, mut cwd, mut command, mut failed) = (None, None, None, None, false);
    let mut reads = Vec::new();
    for (key, value) in item.members() {
        match key.as_ref() {
            "id" => id = value.text(),
            "call_id" => call = value.text(),
            "cwd" => cwd = value.text().map(local_path),
            "command" => command = Some(unwrapped(value)),
            "parsed_cmd" => reads = value.elements().filter_map(read_path).collect(),
            "exit_code" => failed |= !value.is_null() && value.get() != "0",
            "status" => failed |= value.text().as_deref() == Some("failed"),
            _ => {}
        }
    }
    let (id, writes) = (call.or(id)?, Vec::new());
    Some(InnerCommand { id, cwd, command: command?, reads, writes, failed })
}

/// A patch or a tool of an MCP server: what it changed, and whether it failed. The text of the
/// result says nothing of the latter.
fn other(item: Raw<'_>) -> Option<InnerCommand<'_>> {
    let (mut id, mut call, mut failed) = (None, None, false);
    let mut writes = Vec::new();
    for (key, value) in item.members() {
        match key.as_ref() {
            "id" => id = value.text(),
            "call_id" => call = value.text(),
            "changes" => {
                for (path, change) in value.members() {
                    writes.push(local_path(path));
                    let moved = change.member("move_path").and_then(Raw::text);
                    writes.extend(moved.map(local_path));
                }
            }
            "status" => failed |= matches!(value.text().as_deref(), Some("failed" | "declined")),
            "result" => {
                // Old versions: the answer stands in `Ok`, a failure in `Err`.
                failed |= value.member("Err").is_some();
                let answer = value.member("Ok").unwrap_or(value);
                failed |= answer.member("isError").is_some_and(Raw::is_true);
            }
            _ => {}
        }
    }
    Some(InnerCommand { id: call.or(id)?, writes, failed, ..InnerCommand::default() })
}

fn read_path(parsed: Raw<'_>) -> Option<Cow<'_, str>> {
    if parsed.kind().as_deref() != Some("read") {
        return None;
    }
    parsed.member("path").and_then(Raw::text).or_else(|| parsed.member("name").and_then(Raw::text))
}

/// The command without `bash -lc`; words of any other command are joined by blanks.
fn unwrapped(raw: Raw<'_>) -> Cow<'_, str> {
    if let Some(text) = raw.text() {
        return text;
    }
    let mut words: Vec<Cow<'_, str>> = raw.elements().filter_map(Raw::text).collect();
    if let [shell, flag, _] = words.as_slice() {
        let is_shell = shell.rsplit('/').next().is_some_and(|name| name.ends_with("sh"));
        if is_shell && matches!(flag.as_ref(), "-lc" | "-c" | "-ic" | "-lic") {
            return words.swap_remove(2);
        }
    }
    Cow::Owned(words.join(" "))
}

/// A path without the `file://` scheme (and then without percent signs for odd characters).
pub(super) fn local_path(path: Cow<'_, str>) -> Cow<'_, str> {
    let Some(plain) = path.strip_prefix("file://") else { return path };
    if !plain.contains('%') {
        return Cow::Owned(plain.into());
    }
    let bytes = plain.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = plain.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (byte, digits) {
            (b'%', Some(decoded)) => {
                out.push(decoded);
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}
