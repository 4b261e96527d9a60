//! Codex rollouts.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::InnerCommand;
use super::reader::{Item, Record, Role, Row, ToolResult, parse_inner, string};
use super::terms::regex;
use super::ties;

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
    ties::tie(&mut records);
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
            let inner = match item.get("type").and_then(Value::as_str)? {
                "CommandExecution" => inner_command(item),
                "FileChange" | "McpToolCall" => inner_other(item),
                _ => return None,
            };
            Some(Record::Row(Row::new(Role::Link, vec![Item::Inner(inner)])))
        }
        "exec_command_end" => {
            Some(Record::Row(Row::new(Role::Link, vec![Item::Inner(inner_command(payload))])))
        }
        "mcp_tool_call_end" => {
            Some(Record::Row(Row::new(Role::Link, vec![Item::Inner(inner_other(payload))])))
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
    InnerCommand { id: inner_id(item), command, cwd, reads, failed, writes: Vec::new() }
}

fn inner_id(item: &Value) -> String {
    string(item, "call_id").or_else(|| string(item, "id")).unwrap_or_default()
}

/// A patch, or a tool of a server.
fn inner_other(item: &Value) -> InnerCommand {
    let mut writes = Vec::new();
    for (path, change) in item.get("changes").and_then(Value::as_object).into_iter().flatten() {
        writes.push(path.clone());
        writes.extend(string(change, "move_path"));
    }
    let status = item.get("status").and_then(Value::as_str);
    let answer = item.get("result");
    let is_error = |answer: &Value| answer.get("isError") == Some(&Value::Bool(true));
    let failed = matches!(status, Some("failed" | "declined"))
        || answer.is_some_and(|answer| {
            answer.get("Err").is_some() || is_error(answer.get("Ok").unwrap_or(answer))
        });
    InnerCommand { id: inner_id(item), writes, failed, ..InnerCommand::default() }
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
static HOST_FAILURE: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\A(?:aborted\z|(?:Wall time[^\n]*\r?\n)?aborted by user|unsupported (?:custom tool )?call:|(?:exec_command|write_stdin|collab spawn|apply_patch verification) failed|failed to parse function arguments|failed in sandbox|command timed out|exec expects raw JavaScript|patch rejected|unable to locate image)",
    )
});
/// Where the host says that it left out the middle of an output.
static WARNING: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\A(?:Warning: truncated output \([^\n]*(?:\n|\z)(?:Total output lines: [^\n]*(?:\n|\z))?|Total output lines: [^\n]*(?:\n|\z))(?:\r*(?:\n|\z))?",
    )
});
static RUNNING: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?m)^(?:Script running with cell ID|Process running with session ID) ([^\n\r]*[^\s])[^\S\n]*$",
    )
});
static CUT_ANSWER: LazyLock<Regex> = LazyLock::new(|| {
    regex(r#"(?s)\A(\{"(?:chunk_id|wall_time_seconds)":.*?)"output":"(.*?)(?:"\})?\z"#)
});

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
    is_error |= HOST_FAILURE.is_match(&text);
    is_error |= parts.iter().any(|part| part.starts_with("Script error:"));
    let pieces = if start > 0 && text.starts_with("Script ") {
        is_error |= head.starts_with("Script failed") || head.starts_with("Script error:");
        let (pieces, failed) = shown(&parts);
        is_error |= failed;
        pieces
    } else if start > 0 {
        is_error |= text[start..].starts_with("Script error:");
        let (body, failed) = behind_header(&text[start..]);
        is_error |= failed;
        vec![body.to_owned()]
    } else {
        vec![text.clone()]
    };
    let running = RUNNING.captures(&text[..start]).map(|found| found[1].trim().to_owned());
    let mut result = ToolResult::new(id, text, pieces);
    (result.is_error, result.opaque, result.running) = (is_error, opaque, running);
    result
}

/// A body without a second header of the host, and whether that says of a failure.
fn behind_header(body: &str) -> (&str, bool) {
    let start = if body.starts_with("Exit code:") { body_start(body) } else { 0 };
    let failed = EXIT_CODE.captures_iter(&body[..start]).any(|code| &code[1] != "0");
    (without_warning(&body[start..]), failed)
}

fn without_warning(body: &str) -> &str {
    WARNING.find(body).map_or(body, |found| &body[found.end()..])
}

/// Code mode: behind the header part, what the other parts show, JSON of the host decoded.
fn shown(parts: &[String]) -> (Vec<String>, bool) {
    let mut failed = false;
    let mut pieces = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let part = if number == 0 { &part[body_start(part)..] } else { part.as_str() };
        if number == 0 && part.is_empty() {
            continue;
        }
        let part = without_warning(part);
        let mut texts = Vec::new();
        let mut is_answer = false;
        let trimmed = part.trim();
        let json = (trimmed.starts_with('{') && trimmed.ends_with('}'))
            || (trimmed.starts_with('[') && trimmed.ends_with(']'));
        if let Some(value) = json.then(|| parse_inner(trimmed)).flatten() {
            texts_of(&value, 0, &mut texts, &mut is_answer, &mut failed);
        } else if let Some(cut) = CUT_ANSWER.captures(trimmed) {
            is_answer = true;
            failed |= cut[1]
                .split_once("\"exit_code\":")
                .is_some_and(|(_, code)| code.split([',', '}']).next().map(str::trim) != Some("0"));
            let output = compactd_core::record::json::unescape(&cut[2]);
            let (body, inner_failed) = behind_header(&output);
            failed |= inner_failed;
            texts.push(body.to_owned());
        }
        if is_answer {
            pieces.append(&mut texts);
        } else {
            pieces.push(part.to_owned());
        }
    }
    (pieces, failed)
}

fn texts_of(
    value: &Value,
    depth: usize,
    texts: &mut Vec<String>,
    is_answer: &mut bool,
    failed: &mut bool,
) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(_) | Value::Object(_) if depth > 8 => texts.push(value.to_string()),
        Value::Array(values) => {
            values.iter().for_each(|value| texts_of(value, depth + 1, texts, is_answer, failed));
        }
        Value::Object(fields) => {
            let of_command = ["chunk_id", "wall_time_seconds", "exit_code", "session_id"]
                .iter()
                .any(|key| fields.contains_key(*key));
            let output = fields.get("output").and_then(Value::as_str);
            let content = fields.get("content").and_then(Value::as_array);
            if let (Some(output), true) = (output, of_command) {
                let code = fields.get("exit_code").filter(|code| !code.is_null());
                *failed |= code.is_some_and(|code| code.as_i64() != Some(0));
                let (body, inner_failed) = behind_header(output);
                *failed |= inner_failed;
                *is_answer = true;
                texts.push(body.to_owned());
            } else if let (Some(content), Some(is_error)) = (content, fields.get("isError")) {
                *failed |= is_error == &Value::Bool(true);
                *is_answer = true;
                texts.extend(content.iter().filter_map(|part| string_or_empty(part.get("text"))));
            } else {
                for (key, value) in fields {
                    if key != "status" {
                        texts_of(value, depth + 1, texts, is_answer, failed);
                    }
                }
            }
        }
        _ if depth > 8 => texts.push(value.to_string()),
        _ => {}
    }
}

fn string_or_empty(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
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
        // The address of an image or a sound may have been blanked.
        Some("input_image" | "input_audio" | "encrypted_content") => true,
        _ => false,
    }
}
