//! A pass applied to a transcript: the same lines with the texts that the pass leaves.
//!
//! Nothing else changes: rows, ids and their order stay (profile `reference`: a removed call goes
//! with its result, its row stays empty).

use compactd_core::escalate::Escalation;
use compactd_core::index::LeafCut;
use compactd_core::note;
use compactd_core::record::{self, Host, Item, Record, Role};
use compactd_core::rules::{CallFate, Decided, Decision, Pass};
use serde_json::{Value, json};

use crate::compare;

/// The lines as this module writes them: keys in order, half surrogates replaced. What is no JSON
/// object stays as it is.
#[must_use]
pub fn normalised(host: Host, lines: &[impl AsRef<[u8]>]) -> Vec<Vec<u8>> {
    lines.iter().map(|line| normalised_line(host, line.as_ref())).collect()
}

fn normalised_line(host: Host, line: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(line);
    let parsed = serde_json::from_str::<Value>(&text)
        .or_else(|_| serde_json::from_str(&without_half_surrogates(&text)));
    match parsed {
        Ok(mut value) if value.is_object() => {
            if host == Host::Codex {
                for item in codex_items(&mut value) {
                    for key in ["arguments", "input"] {
                        if let Some(inner) = inner_object(&item[key]) {
                            item[key] = json!(inner.to_string());
                        }
                    }
                }
            }
            value.to_string().into_bytes()
        }
        _ => line.to_vec(),
    }
}

/// `\ud83d` without its other half is no JSON to `serde_json`.
fn without_half_surrogates(text: &str) -> String {
    let unit = |text: &str| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let second = escape.get(6..).and_then(unit);
        let taken = match unit(escape) {
            Some(0xD800..=0xDBFF) if matches!(second, Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                out.push('\u{FFFD}');
                rest = &escape[6..];
                continue;
            }
            _ => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&escape[..taken]);
        rest = &escape[taken..];
    }
    out + rest
}

/// The lines after the pass. They must be [`normalised`] and those that the pass's index was fed.
#[must_use]
pub fn apply(host: Host, lines: &[Vec<u8>], pass: &Pass<'_>) -> Vec<Vec<u8>> {
    apply_decided(host, lines, pass.iter())
}

/// As [`apply`], with what goes beside what the ladder takes.
#[must_use]
pub fn apply_escalated(
    host: Host,
    lines: &[Vec<u8>],
    pass: &Pass<'_>,
    escalation: &Escalation<'_>,
) -> Vec<Vec<u8>> {
    let mut after = apply_decided(host, lines, pass.iter());
    after = apply_decided(host, &after, escalation.results.iter().map(|(_, cut)| *cut));
    for cut in &escalation.texts {
        let line = pass.row_line(cut.row as usize).unwrap_or_default();
        let text = text_of_row(host, lines, pass, cut.row as usize);
        assert_eq!(text.chars().count(), cut.chars as usize);
        let left = note::cut_text(&text, cut.keep as usize);
        edit(host, &mut after[line as usize], |item| set_text(item, &text, &left));
    }
    after
}

/// The text of the row at a place among the pass's rows; a `compacted` record has several.
#[must_use]
pub fn text_of_row(host: Host, lines: &[Vec<u8>], pass: &Pass<'_>, place: usize) -> String {
    let line = pass.row_line(place).unwrap_or_default();
    let before = (0..place).rev().take_while(|at| pass.row_line(*at) == Some(line)).count();
    let rows = match record::read_line(host, &lines[line as usize]) {
        Ok(Record::Row(row)) => vec![row],
        Ok(Record::Compacted(compacted)) => compacted.rows,
        _ => Vec::new(),
    };
    // Reasoning alone is a row too.
    let counts = |row: &&record::Row<'_>| !row.items.is_empty() || row.role == Role::Assistant;
    let row = rows.iter().filter(counts).nth(before);
    let text = row.into_iter().flat_map(|row| &row.items).find_map(|item| match item {
        Item::Text(text) => Some(text.to_string()),
        _ => None,
    });
    text.unwrap_or_default()
}

fn set_text(item: &mut Value, text: &str, left: &str) -> bool {
    if item.is_string() && item == text {
        *item = json!(left);
        return true;
    }
    match item.get("content") {
        Some(Value::String(found)) if found == text => item["content"] = json!(left),
        Some(Value::Array(_)) if is_kind(item, "message") => {
            let parts = item["content"].as_array_mut().into_iter().flatten();
            let mut found = parts.filter(|part| part["text"] == text);
            let Some(part) = found.next() else { return false };
            part["text"] = json!(left);
        }
        _ if item["text"] == text => item["text"] = json!(left),
        _ => return false,
    }
    true
}

fn apply_decided<'a>(
    host: Host,
    lines: &[Vec<u8>],
    all: impl Iterator<Item = Decided<'a>>,
) -> Vec<Vec<u8>> {
    let mut lines = lines.to_vec();
    for decided in all {
        if decided.ruling.decision == Decision::Keep {
            continue;
        }
        let at = decided.line as usize;
        let left = compare::left(host, &decided, &lines);
        edit(host, &mut lines[at], |item| match &left {
            Some(left) => set_result(host, item, decided.id, left),
            None => remove(host, item, decided.id),
        });
        match decided.call {
            CallFate::Kept => {}
            CallFate::Removed => {
                for line in &mut lines[..=at] {
                    edit_all(host, line, &mut |item| remove_call(host, item, decided.id));
                }
            }
            CallFate::Shortened => shorten(host, &mut lines[..=at], &decided),
        }
    }
    lines
}

/// Shortens the long leaves of the call: of the calls with that id, those that are cut where the
/// pass says.
fn shorten(host: Host, lines: &mut [Vec<u8>], decided: &Decided<'_>) {
    for line in lines {
        if compare::items(host, line).is_empty() {
            // A record that the host refuses.
            continue;
        }
        edit_all(host, line, &mut |item| {
            let Some(mut input) = input_of(host, item, decided.id) else { return false };
            let fits = {
                let mut lengths = Vec::new();
                each_leaf(&mut input, &mut |leaf| {
                    lengths.push(leaf.as_str().map_or(0, |text| text.encode_utf16().count()));
                });
                decided
                    .leaves
                    .iter()
                    .all(|cut| lengths.get(cut.leaf as usize) == Some(&(cut.utf16 as usize)))
            };
            if !fits {
                return false;
            }
            let mut place = 0;
            each_leaf(&mut input, &mut |leaf| {
                if let Some(cut) = decided.leaves.iter().find(|cut| cut.leaf == place) {
                    cut_leaf(leaf, cut);
                }
                place += 1;
            });
            set_input(host, item, input);
            true
        });
    }
}

fn cut_leaf(leaf: &mut Value, cut: &LeafCut) {
    let text = leaf.as_str().unwrap_or_default();
    let kept = compare::utf16_prefix(text, cut.cut_utf16 as usize).unwrap_or_default();
    *leaf = json!(format!("{kept}[input cut by compactd: {} chars]", cut.removed));
}

/// Strings and numbers of an input, in order.
fn each_leaf(value: &mut Value, each: &mut impl FnMut(&mut Value)) {
    match value {
        Value::String(_) | Value::Number(_) => each(value),
        Value::Array(values) => values.iter_mut().for_each(|value| each_leaf(value, each)),
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(_, value)| each_leaf(value, each));
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Calls `change` with the items of a line until it says that it changed one.
fn edit(host: Host, line: &mut Vec<u8>, mut change: impl FnMut(&mut Value) -> bool) {
    let mut done = false;
    edit_all(host, line, &mut |item| {
        if done {
            return false;
        }
        done = change(item);
        done
    });
}

/// Calls `change` with every item of a line; the line is written anew if one changed.
fn edit_all(host: Host, line: &mut Vec<u8>, change: &mut impl FnMut(&mut Value) -> bool) {
    let Ok(mut value) = serde_json::from_slice::<Value>(line) else { return };
    let mut changed = false;
    match host {
        Host::Claude => match value.pointer_mut("/message/content") {
            Some(Value::Array(blocks)) => {
                for block in &mut *blocks {
                    changed |= change(block);
                }
                blocks.retain(|block| !block.is_null());
            }
            Some(content) => changed |= change(content),
            None => {}
        },
        Host::Codex => {
            for item in codex_items(&mut value) {
                changed |= change(item);
            }
            if let Some(Value::Array(items)) = value.pointer_mut("/payload/replacement_history") {
                items.retain(|item| !item.is_null());
            }
            if value.get("payload").is_some_and(Value::is_null) {
                line.clear();
                return;
            }
        }
    }
    if changed {
        *line = value.to_string().into_bytes();
    }
}

fn codex_items(value: &mut Value) -> Vec<&mut Value> {
    match value.get("type").and_then(Value::as_str) {
        Some("response_item") => value.get_mut("payload").into_iter().collect(),
        Some("compacted") => match value.pointer_mut("/payload/replacement_history") {
            Some(Value::Array(items)) => items.iter_mut().collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn is_kind(item: &Value, end: &str) -> bool {
    item.get("type").and_then(Value::as_str).is_some_and(|kind| kind.ends_with(end))
}

fn is_result(host: Host, item: &Value, id: &str) -> bool {
    let (kind, key) = match host {
        Host::Claude => ("tool_result", "tool_use_id"),
        Host::Codex => ("_output", "call_id"),
    };
    is_kind(item, kind) && item.get(key).and_then(Value::as_str) == Some(id)
}

fn is_call(host: Host, item: &Value, id: &str) -> bool {
    let (kind, key) = match host {
        Host::Claude => ("tool_use", "id"),
        Host::Codex => ("_call", "call_id"),
    };
    is_kind(item, kind) && item.get(key).and_then(Value::as_str) == Some(id)
}

fn set_result(host: Host, item: &mut Value, id: &str, text: &str) -> bool {
    if !is_result(host, item, id) {
        return false;
    }
    item[if host == Host::Claude { "content" } else { "output" }] = json!(text);
    true
}

fn remove(host: Host, item: &mut Value, id: &str) -> bool {
    let found = is_result(host, item, id);
    if found {
        *item = Value::Null;
    }
    found
}

fn remove_call(host: Host, item: &mut Value, id: &str) -> bool {
    let found = is_call(host, item, id);
    if found {
        *item = Value::Null;
    }
    found
}

fn inner_object(value: &Value) -> Option<Value> {
    let text = value.as_str()?;
    serde_json::from_str::<Value>(text.trim()).ok().filter(Value::is_object)
}

/// Where the input of a Codex call stands.
fn codex_key(item: &Value) -> &'static str {
    match item.get("type").and_then(Value::as_str) {
        Some("custom_tool_call") => "input",
        Some("local_shell_call") => "action",
        _ => "arguments",
    }
}

fn input_of(host: Host, item: &Value, id: &str) -> Option<Value> {
    if !is_call(host, item, id) {
        return None;
    }
    let input = match host {
        Host::Claude => item.get("input")?,
        Host::Codex => item.get(codex_key(item))?,
    };
    Some(if host == Host::Codex {
        inner_object(input).unwrap_or_else(|| input.clone())
    } else {
        input.clone()
    })
}

fn set_input(host: Host, item: &mut Value, input: Value) {
    match host {
        Host::Claude => item["input"] = input,
        Host::Codex => {
            let key = codex_key(item);
            let inside = item[key].is_string() && !input.is_string();
            item[key] = if inside { json!(input.to_string()) } else { input };
        }
    }
}

/// Every shortened leaf in the lines, in order.
#[must_use]
pub fn shortened_leaves(host: Host, lines: &[Vec<u8>]) -> Vec<String> {
    let mut found = Vec::new();
    for line in lines {
        for item in compare::items(host, line) {
            let Item::Call(call) = item else { continue };
            let texts = call.leaves.into_iter().map(|leaf| leaf.text.into_owned());
            found.extend(texts.filter(|text| note::leaf_note(text).is_some()));
        }
    }
    found
}
