//! Codex's `compacted` record: the host takes it only as a whole, so one unsound item voids it.

use std::borrow::Cow;

use super::super::json::Raw;
use super::super::{Compacted, Item, Record, Role, Row, Skip};
use super::{Parts, item, row};

pub(super) fn read<'a>(
    payload: Raw<'a>,
    timestamp: Option<&Cow<'a, str>>,
) -> Result<Record<'a>, Skip> {
    let (mut message, mut history, mut metadata, mut window) = (None, None, None, None);
    for (key, value) in payload.members() {
        let value = (!value.is_null()).then_some(value);
        match key.as_ref() {
            "message" => message = value,
            "replacement_history" => history = value,
            "replacement_history_metadata" => metadata = value,
            "window_number" => window = value,
            _ => {}
        }
    }
    let message = message.and_then(Raw::text).ok_or(Skip::Odd)?;
    let window_number = window.map(|window| window.whole().ok_or(Skip::Odd)).transpose()?;
    let mut compacted = Compacted { rows: Vec::new(), sealed: false, window_number };
    if let Some(history) = history {
        if !history.is_list() {
            return Err(Skip::Odd);
        }
        let same_length = |metadata: Raw<'_>| {
            metadata.is_list() && metadata.elements().count() == history.elements().count()
        };
        if !metadata.is_none_or(same_length) {
            return Err(Skip::Odd);
        }
        for entry in history.elements() {
            compacted.sealed |= check(entry).ok_or(Skip::Odd)?;
            // A kind that is no part of the conversation, or unknown: the host takes it, we leave it.
            if let Ok(mut row) = item(entry) {
                mark_summary(&mut row, &message);
                compacted.rows.push(row);
            }
        }
    } else if !message.is_empty() {
        let mut summary = row(Role::User, vec![Item::Text(message)]);
        summary.summary = true;
        summary.meta = true;
        compacted.rows.push(summary);
    }
    for row in &mut compacted.rows {
        row.about.timestamp = timestamp.cloned();
    }
    Ok(Record::Compacted(compacted))
}

/// The record's `message` is the summary; the same text stands in the history as a user message.
fn mark_summary(row: &mut Row<'_>, message: &str) {
    if row.role == Role::User
        && !message.is_empty()
        && let [Item::Text(text)] = row.items.as_slice()
    {
        row.summary = text == message;
        row.meta |= row.summary;
    }
}

/// Would the host take this item? Then: is it sealed?
///
/// Looser than [`super::shape`], which says what 0.171 takes of what others write: here the host
/// itself wrote, older versions had other shapes, and images may have been blanked since.
fn check(raw: Raw<'_>) -> Option<bool> {
    let parts = Parts::of(raw);
    let kind = parts.kind?.text()?;
    let string = |part: Option<Raw<'_>>| part.is_some_and(Raw::is_string);
    let sound = match kind.as_ref() {
        "message" => {
            string(parts.role) && parts.content.is_some_and(|content| are_sound(content, false))
        }
        "function_call" => string(parts.call) && string(parts.name) && string(parts.arguments),
        "custom_tool_call" => string(parts.call) && string(parts.name) && string(parts.input),
        "function_call_output" | "custom_tool_call_output" => {
            string(parts.call)
                && parts.output.is_some_and(|output| output.is_string() || are_sound(output, true))
        }
        "local_shell_call" => string(parts.status) && parts.action.is_some_and(Raw::is_object),
        "reasoning" => parts.summary.is_some_and(Raw::is_list),
        _ => true,
    };
    sound.then_some(matches!(
        kind.as_ref(),
        "compaction" | "compaction_summary" | "context_compaction"
    ))
}

/// Is this a list of parts that the host knows?
fn are_sound(list: Raw<'_>, output: bool) -> bool {
    let string = |part: Raw<'_>, key| part.member(key).is_some_and(Raw::is_string);
    list.is_list()
        && list.elements().all(|part| match part.kind().as_deref() {
            Some("input_text") => string(part, "text"),
            Some("output_text") => !output && string(part, "text"),
            Some("input_image" | "input_audio") => true, // its address may have been blanked
            Some("encrypted_content") => output,
            _ => false,
        })
}
