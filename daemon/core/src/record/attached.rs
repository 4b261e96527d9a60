//! What Claude Code sends beside its messages and hands to no plugin: attachments and rows that it wrote
//! itself (2.1.332). A prompt's ride on the prompt; those behind a result or an answer are lost when a
//! plugin builds the messages anew, unless it is told their texts.

use std::borrow::Cow;

use super::json::{self, Raw};

/// Attachments that the host sends again by itself when they are gone, or that were of the moment.
const FLEETING: [&str; 14] = [
    "agent_listing_delta",
    "compact_file_reference",
    "date",
    "deferred_tools_delta",
    "environment",
    "instructions",
    "model",
    "prompt_snapshot",
    "remote_session_change",
    "session_context",
    "silent_turn_reminder",
    "skill_listing",
    "task_reminder",
    "todo_reminder",
];

/// What the host puts before the echo of a command: it is no part of a context that a plugin sees.
const CAVEAT: &str = "<local-command-caveat>";

/// Whether an attachment has a text that would be lost.
pub(super) fn is_lasting(attachment: Raw<'_>, rendered: Raw<'_>) -> bool {
    let kind = attachment.member("type").and_then(Raw::text);
    kind.is_some_and(|kind| !FLEETING.contains(&&*kind))
        && texts(rendered).any(|text| !text.trim().is_empty())
}

/// Whether a text of the host's own row would be lost.
pub(super) fn is_lasting_text(text: &str) -> bool {
    !text.trim().is_empty() && !text.starts_with(CAVEAT)
}

fn texts(rendered: Raw<'_>) -> impl Iterator<Item = Cow<'_, str>> {
    rendered.elements().filter_map(|part| part.member("content")?.text())
}

/// The text of a row whose [`super::Row::attached`] is set: an attachment's as the host rendered it, or
/// the row's own. Parts are joined by empty lines, as the host's own blocks read.
#[must_use]
pub fn attached_text(line: &[u8]) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    let (mut rendered, mut message) = (None, None);
    json::object(&line, |key, value| match key {
        "rendered" => rendered = Some(value),
        "message" => message = Some(value),
        _ => {}
    });
    let parts: Vec<Cow<'_, str>> = match (rendered, message) {
        (Some(rendered), _) => texts(rendered).collect(),
        (None, message) => {
            let content = message?.member("content")?;
            match content.text() {
                Some(text) => vec![text],
                None => {
                    content.elements().filter_map(|block| block.member("text")?.text()).collect()
                }
            }
        }
    };
    let text = parts.join("\n\n");
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::super::{Host, Record, read_line};
    use super::*;

    fn is_attached(line: &str) -> bool {
        match read_line(Host::Claude, line.as_bytes()) {
            Ok(Record::Row(row)) => row.attached,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_would_be_lost_is_known() {
        let queued = r#"{"type":"attachment","uuid":"a","parentUuid":"r","attachment":{"type":"queued_command","prompt":"stop"},"rendered":[{"content":"<system-reminder>\nstop\n</system-reminder>"}]}"#;
        let text = "<system-reminder>\nstop\n</system-reminder>";
        assert!(is_attached(queued));
        assert_eq!(attached_text(queued.as_bytes()).as_deref(), Some(text));
        let date = queued.replace("queued_command", "date");
        assert!(!is_attached(&date));
        let silent = queued.replace("stop\\n", "").replace(r#"[{"content""#, r#"[{"other""#);
        assert!(!is_attached(&silent), "{silent}");
        let skill = r#"{"type":"user","uuid":"b","isMeta":true,"message":{"role":"user","content":[{"type":"text","text":"Base directory"},{"type":"text","text":"and more"}]}}"#;
        assert!(is_attached(skill));
        assert_eq!(attached_text(skill.as_bytes()).as_deref(), Some("Base directory\n\nand more"));
        let caveat = r#"{"type":"user","uuid":"c","isMeta":true,"message":{"role":"user","content":"<local-command-caveat>x</local-command-caveat>"}}"#;
        assert!(!is_attached(caveat));
        let prompt = r#"{"type":"user","uuid":"d","message":{"role":"user","content":"go on"}}"#;
        assert!(!is_attached(prompt));
    }
}
