//! A pass applied to a transcript: the same lines with the texts that the pass leaves.
//!
//! Nothing else changes: rows, ids and their order stay (profile `reference`: a removed call goes
//! with its result, its row stays empty).

use compactd_core::index::LeafCut;
use compactd_core::record::{Host, Item};
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
    let mut lines = lines.to_vec();
    for decided in pass.iter() {
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
        Host::Claude => {
            if let Some(Value::Array(blocks)) = value.pointer_mut("/message/content") {
                for block in &mut *blocks {
                    changed |= change(block);
                }
                blocks.retain(|block| !block.is_null());
            }
        }
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
            found.extend(texts.filter(|text| compactd_core::note::leaf_note(text).is_some()));
        }
    }
    found
}
