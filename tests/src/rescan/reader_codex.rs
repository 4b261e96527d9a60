//! Codex rollouts.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::InnerCommand;
use super::reader::{Item, Record, Role, Row, ToolResult, parse_inner, string};
use super::terms::regex;

pub(super) fn read(values: &[Value]) -> Vec<Record> {
    let mut cwd = None;
    let mut records = Vec::new();
    for value in values {
        let Some(payload) = value.get("payload").filter(|payload| payload.is_object()) else {
            continue;
        };
        match value.get("type").and_then(Value::as_str) {
            Some("session_meta" | "turn_context") => cwd = string(payload, "cwd").or(cwd),
            Some("response_item") => {
                records.extend(response_item(payload, cwd.as_ref()).map(Record::Row));
            }
            Some("compacted") => {
                records.extend(compacted(payload, cwd.as_ref()).map(Record::Compacted));
            }
            Some("event_msg") => records.extend(event(payload)),
            _ => {}
        }
    }
    records
}

fn event(payload: &Value) -> Option<Record> {
    match payload.get("type").and_then(Value::as_str)? {
        "thread_rolled_back" => {
            let turns = payload.get("num_turns").and_then(Value::as_u64)?;
            Some(Record::RolledBack(usize::try_from(turns).unwrap_or(usize::MAX)))
        }
        "item_completed" => {
            let item = payload.get("item")?;
            if item.get("type").and_then(Value::as_str) != Some("CommandExecution") {
                return None;
            }
            Some(Record::Row(Row::new(Role::Link, vec![Item::Inner(inner_command(item))])))
        }
        _ => None,
    }
}

fn inner_command(item: &Value) -> InnerCommand {
    let command = match item.get("command") {
        Some(Value::String(command)) => command.clone(),
        Some(Value::Array(words)) => {
            let words = words.iter().filter_map(Value::as_str).collect::<Vec<_>>();
            match words.as_slice() {
                [_, "-lc" | "-c", script] => (*script).to_owned(),
                words => words.join(" "),
            }
        }
        _ => String::new(),
    };
    let reads = item.get("parsed_cmd").and_then(Value::as_array).map_or_else(Vec::new, |parsed| {
        parsed
            .iter()
            .filter(|part| part.get("type").and_then(Value::as_str) == Some("read"))
            .filter_map(|part| string(part, "path"))
            .collect()
    });
    let exit_code = item.get("exit_code").and_then(Value::as_i64).unwrap_or(0);
    let cwd = string(item, "cwd").map(|cwd| cwd.trim_start_matches("file://").to_owned());
    let failed = exit_code != 0 || item.get("status").and_then(Value::as_str) == Some("failed");
    InnerCommand { command, cwd, reads, failed }
}

fn response_item(payload: &Value, cwd: Option<&String>) -> Option<Row> {
    let mut row = match payload.get("type").and_then(Value::as_str)? {
        "message" => {
            let role = payload.get("role").and_then(Value::as_str)?;
            let mut row = Row::new(
                if role == "assistant" { Role::Assistant } else { Role::User },
                message_items(payload.get("content")),
            );
            row.meta = matches!(role, "developer" | "system");
            row
        }
        "agent_message" => {
            Row { meta: true, ..Row::new(Role::User, message_items(payload.get("content"))) }
        }
        "reasoning" => Row { thought: true, ..Row::new(Role::Assistant, Vec::new()) },
        "web_search_call" | "tool_search_call" | "image_generation_call" => {
            Row::new(Role::Assistant, vec![Item::Opaque])
        }
        "function_call" => {
            let arguments = payload.get("arguments").cloned().unwrap_or_default();
            let input = match arguments.as_str().and_then(parse_inner) {
                Some(input) => input,
                None => arguments,
            };
            Row::new(Role::Assistant, vec![call(payload, input)?])
        }
        "custom_tool_call" => {
            let input = payload.get("input").cloned().unwrap_or_default();
            Row::new(Role::Assistant, vec![call(payload, input)?])
        }
        "local_shell_call" => {
            let input = payload.get("action").cloned().unwrap_or_default();
            Row::new(Role::Assistant, vec![call(payload, input)?])
        }
        "function_call_output" | "custom_tool_call_output" => {
            let result = output(string(payload, "call_id")?, payload.get("output"));
            Row::new(Role::User, vec![Item::Result(result)])
        }
        "tool_search_output" => Row { meta: true, ..Row::new(Role::User, vec![Item::Opaque]) },
        "compaction" | "compaction_summary" | "context_compaction" => {
            Row { summary: true, ..Row::new(Role::User, vec![Item::Opaque]) }
        }
        _ => return None,
    };
    row.cwd = cwd.cloned();
    Some(row)
}

fn call(payload: &Value, input: Value) -> Option<Item> {
    let name = string(payload, "name").unwrap_or_else(|| "local_shell".to_owned());
    let tool = match string(payload, "namespace") {
        Some(namespace) => format!("{namespace}__{name}"),
        None => name,
    };
    Some(Item::Call { id: string(payload, "call_id")?, tool, input })
}

fn message_items(content: Option<&Value>) -> Vec<Item> {
    let parts = match content {
        Some(Value::String(text)) if !text.is_empty() => return vec![Item::Text(text.clone())],
        Some(Value::Array(parts)) => parts,
        _ => return Vec::new(),
    };
    parts
        .iter()
        .filter_map(|part| match part.get("text").and_then(Value::as_str) {
            Some("") => None,
            Some(text) => Some(Item::Text(text.to_owned())),
            None => Some(Item::Opaque),
        })
        .collect()
}

static HEADER: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\A(?:Command: |Chunk ID: |Wall time|Exit code: |Process (?:exited|running) with |Original token count: |Total output lines: |Script (?:completed|failed|running))",
    )
});
static OUTPUT_LINE: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^Output:[ \t\r]*(?:\n|\z)"));
static EXIT_CODE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?m)^(?:Process exited with code|Exit code:) *(-?[0-9]+)"));

/// What the host itself answers when a call could not be run.
const HOST_FAILURES: [&str; 7] = [
    "unsupported call:",
    "aborted by user",
    "exec_command failed",
    "write_stdin failed",
    "failed to parse function arguments",
    "apply_patch verification failed",
    "collab spawn failed",
];

/// Where the body starts: behind the `Output:` line of the host's header.
fn body_start(text: &str) -> usize {
    if !HEADER.is_match(text) {
        return 0;
    }
    OUTPUT_LINE.find(text).map_or(0, |line| line.end())
}

fn output(id: String, output: Option<&Value>) -> ToolResult {
    let mut is_error = false;
    let mut opaque = false;
    let mut parts = Vec::new();
    let mut value = output.cloned().unwrap_or_default();
    // Old versions: the output and its exit code as JSON in a string.
    let inner = value.as_str().filter(|text| text.starts_with('{')).and_then(parse_inner);
    if let Some(inner) = inner
        && inner.get("output").is_some_and(Value::is_string)
        && inner.get("metadata").is_some()
    {
        let code = inner.pointer("/metadata/exit_code").and_then(Value::as_i64);
        is_error |= code.is_some_and(|code| code != 0);
        value = inner.get("output").cloned().unwrap_or_default();
    }
    if value.is_object() {
        is_error |= value.get("success").and_then(Value::as_bool) == Some(false);
        value = match value.get("content") {
            Some(content) => content.clone(),
            None => Value::Array(vec![value]),
        };
    }
    match &value {
        Value::String(text) => parts.push(text.clone()),
        Value::Array(values) => {
            for part in values {
                match part.as_str().or_else(|| part.get("text").and_then(Value::as_str)) {
                    Some(text) => parts.push(text.to_owned()),
                    None => opaque = true,
                }
            }
        }
        _ => {}
    }
    let text = parts.join("\n");
    let start = body_start(&text);
    let head = if start > 0 { &text[..start] } else { text.lines().next().unwrap_or_default() };
    if HEADER.is_match(head) {
        is_error |= EXIT_CODE.captures_iter(head).any(|code| &code[1] != "0");
    }
    is_error |= text == "aborted" || HOST_FAILURES.iter().any(|start| text.starts_with(start));
    let mut body = text[start..].to_owned();
    if value.is_array() && text.starts_with("Script ") && start > 0 {
        is_error |= text.starts_with("Script failed");
        is_error |= parts.iter().skip(1).any(|part| part.starts_with("Script error:"));
        let (code_body, failed) = code_mode_body(&parts);
        body = code_body;
        is_error |= failed;
    }
    ToolResult { id, text, body, is_error, opaque }
}

/// Code mode: behind the header part, the outputs that stand as JSON in the other parts.
fn code_mode_body(parts: &[String]) -> (String, bool) {
    let mut failed = false;
    let mut bodies = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let part = if number == 0 { &part[body_start(part)..] } else { part.as_str() };
        let inner = Some(part).filter(|part| part.starts_with('{')).and_then(parse_inner);
        if let Some(inner) = inner {
            let code = inner.get("exit_code").and_then(Value::as_i64);
            failed |= code.is_some_and(|code| code != 0);
            if let Some(output) = inner.get("output").and_then(Value::as_str) {
                bodies.push(output.to_owned());
                continue;
            }
        }
        if number > 0 || !part.is_empty() {
            bodies.push(part.to_owned());
        }
    }
    (bodies.join("\n"), failed)
}

/// The rows of a `compacted` record, or nothing if the host would refuse it.
fn compacted(payload: &Value, cwd: Option<&String>) -> Option<Vec<Row>> {
    let message = payload.get("message")?.as_str()?;
    if payload.get("window_number").is_some_and(|number| !number.is_null() && !number.is_u64()) {
        return None;
    }
    let items = match payload.get("replacement_history") {
        None | Some(Value::Null) => {
            if message.is_empty() {
                return Some(Vec::new());
            }
            let items = vec![Item::Text(message.to_owned())];
            return Some(vec![Row { summary: true, meta: true, ..Row::new(Role::User, items) }]);
        }
        Some(items) => items.as_array()?,
    };
    let metadata = payload.get("replacement_history_metadata").filter(|data| !data.is_null());
    if metadata.is_some_and(|data| data.as_array().is_none_or(|data| data.len() != items.len())) {
        return None;
    }
    if !items.iter().all(well_formed) {
        return None;
    }
    let mut rows = items.iter().filter_map(|item| response_item(item, cwd)).collect::<Vec<_>>();
    // The summary stands among them as if the person had said it.
    for row in rows.iter_mut().filter(|row| row.role == Role::User) {
        row.meta |=
            !message.is_empty() && matches!(&row.items[..], [Item::Text(text)] if text == message);
    }
    Some(rows)
}

fn well_formed(item: &Value) -> bool {
    let Some(kind) = item.get("type").and_then(Value::as_str) else {
        return false;
    };
    let is_string = |key: &str| item.get(key).is_some_and(Value::is_string);
    match kind {
        "message" => {
            is_string("role")
                && item
                    .get("content")
                    .and_then(Value::as_array)
                    .is_some_and(|parts| parts.iter().all(well_formed_part))
        }
        "function_call" => is_string("name") && is_string("arguments") && is_string("call_id"),
        "custom_tool_call" => is_string("name") && is_string("input") && is_string("call_id"),
        "function_call_output" | "custom_tool_call_output" => {
            is_string("call_id")
                && match item.get("output") {
                    Some(Value::String(_)) => true,
                    Some(Value::Array(parts)) => parts.iter().all(well_formed_part),
                    _ => false,
                }
        }
        _ => true,
    }
}

fn well_formed_part(part: &Value) -> bool {
    match part.get("type").and_then(Value::as_str) {
        Some("input_text" | "output_text") => part.get("text").is_some_and(Value::is_string),
        // The address of an image may have been blanked.
        Some("input_image" | "encrypted_content") => true,
        _ => false,
    }
}
