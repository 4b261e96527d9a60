//! The model-visible history of a thread, item by item as it was written.
//!
//! It is the `replacement_history` of the newest `compacted` record that the host takes, and the
//! response items behind it; turns that were taken back are out.

use std::collections::HashSet;

use compactd_core::record::json::{self, Raw};
use compactd_core::record::{Item as Part, Record, Role, Row, codex};

/// One item of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// Its JSON, byte for byte.
    pub(crate) raw: String,
    /// The line that it stands in, counted from 0 over all files of the history.
    pub(crate) line: u32,
    /// It is a row of the context for the index: something that the model wrote or reads as text.
    pub(crate) is_row: bool,
    /// A person's prompt, which starts a turn for the host.
    is_prompt: bool,
}

/// What user messages start with that the host puts in by itself (SEEN in 0.171): they start no turn.
const NO_PROMPT: [&str; 8] = [
    "<environment_context>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<hook_prompt",
    "<skill>",
    "<skill ",
];

impl Item {
    /// `None` for what older versions kept beside the conversation and never sent; the host does not
    /// know it any more and would send a hollow item.
    pub(crate) fn of(raw: Raw<'_>, line: u32) -> Option<Self> {
        let is_beside = matches!(
            raw.kind().as_deref(),
            Some("ghost_snapshot" | "compaction_trigger" | "configuration_update")
        );
        (!is_beside).then(|| Self::new(raw, line))
    }

    pub(crate) fn new(raw: Raw<'_>, line: u32) -> Self {
        let row = codex::item(raw).ok();
        Self {
            line,
            is_row: row.as_ref().is_some_and(is_row),
            is_prompt: row.as_ref().is_some_and(is_prompt),
            raw: raw.get().to_owned(),
        }
    }

    /// The item as a value.
    pub(crate) fn value(&self) -> Option<Raw<'_>> {
        json::value(&self.raw)
    }
}

/// Reasoning alone is a message of the model too.
fn is_row(row: &Row<'_>) -> bool {
    !row.items.is_empty() || row.role == Role::Assistant
}

fn is_prompt(row: &Row<'_>) -> bool {
    let text = row.items.iter().find_map(|part| match part {
        Part::Text(text) => Some(text.trim_start()),
        _ => None,
    });
    let is_own = |text: &str| NO_PROMPT.iter().any(|start| text.starts_with(start));
    row.role == Role::User
        && !row.meta
        && text.is_none_or(|text| !is_own(text))
        && !row.items.iter().any(|part| matches!(part, Part::Result(_)))
}

/// The history so far.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Its items in order.
    pub(crate) items: Vec<Item>,
    /// It starts with a `compacted` record: what stood before is out of the context.
    pub(crate) is_compacted: bool,
    /// Turns were taken back somewhere.
    pub(crate) has_taken_back: bool,
    /// Turns were taken back since the newest compaction: a legacy host may take it back with them.
    pub(crate) is_torn_up: bool,
    /// The newest compaction has a summary only; what it kept beside that is not written down.
    pub(crate) is_summary_only: bool,
}

impl History {
    /// Takes in one record: the whole line, its number, its type and payload.
    pub(crate) fn record(&mut self, text: &str, line: u32, kind: &str, payload: Raw<'_>) {
        match kind {
            "response_item" => self.items.extend(Item::of(payload, line)),
            "compacted" => {
                // The host passes over the whole record if one thing in it is not sound.
                if let Ok(Record::Compacted(_)) = codex::read(text.as_bytes()) {
                    self.compacted(payload, line);
                }
            }
            "event_msg" if payload.kind().as_deref() == Some("thread_rolled_back") => {
                let turns = payload.member("num_turns").and_then(Raw::whole).unwrap_or_default();
                self.roll_back(turns);
            }
            _ => {}
        }
    }

    fn compacted(&mut self, payload: Raw<'_>, line: u32) {
        self.is_compacted = true;
        self.is_torn_up = false;
        let replacement = payload.member("replacement_history").filter(|list| list.is_list());
        self.is_summary_only = replacement.is_none();
        self.items = replacement
            .into_iter()
            .flat_map(Raw::elements)
            .filter_map(|item| Item::of(item, line))
            .collect();
    }

    /// Takes the newest turns back, each from a person's prompt on.
    fn roll_back(&mut self, turns: u64) {
        let Some(before) = turns.checked_sub(1) else { return };
        self.has_taken_back = true;
        self.is_torn_up = self.is_compacted;
        let prompts = self.items.iter().enumerate().rev().filter(|(_, item)| item.is_prompt);
        let before = usize::try_from(before).unwrap_or(usize::MAX);
        let keep = prompts.map(|(at, _)| at).nth(before).unwrap_or_default();
        self.items.truncate(keep);
    }

    /// Makes pairs of calls and outputs as the host does before it sends: an output without a call
    /// is left out, a call without an output gets one. Gives how many of each.
    pub(crate) fn pair(&mut self) -> (usize, usize) {
        let calls: HashSet<String> = self.items.iter().filter_map(call_id).collect();
        let outputs: HashSet<String> = self.items.iter().filter_map(output_id).collect();
        let before = self.items.len();
        self.items.retain(|item| output_id(item).is_none_or(|id| calls.contains(&id)));
        let left_out = before - self.items.len();
        let mut answered = 0;
        let mut items = Vec::with_capacity(self.items.len());
        for item in self.items.drain(..) {
            let open = call_id(&item).filter(|id| !outputs.contains(id));
            let kind = item.value().and_then(Raw::kind).map(|kind| kind.into_owned());
            let line = item.line;
            items.push(item);
            if let (Some(id), Some(kind)) = (open, kind) {
                let kind = if kind == "custom_tool_call" {
                    "custom_tool_call_output"
                } else {
                    "function_call_output"
                };
                let raw = serde_json::json!({ "type": kind, "call_id": id, "output": "aborted" });
                let raw = raw.to_string();
                items.push(Item { raw, line, is_row: true, is_prompt: false });
                answered += 1;
            }
        }
        self.items = items;
        (left_out, answered)
    }
}

/// The id of a call that has to have an output.
fn call_id(item: &Item) -> Option<String> {
    let row = codex::item(item.value()?).ok()?;
    row.items.into_iter().find_map(|part| match part {
        Part::Call(call) => Some(call.id.into_owned()),
        _ => None,
    })
}

/// The id that an output answers.
fn output_id(item: &Item) -> Option<String> {
    let row = codex::item(item.value()?).ok()?;
    row.items.into_iter().find_map(|part| match part {
        Part::Result(result) => Some(result.id.into_owned()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(lines: &[&str]) -> History {
        let mut history = History::default();
        for (at, line) in lines.iter().enumerate() {
            let whole = json::value(line).unwrap();
            let kind = whole.kind().unwrap();
            let payload = whole.member("payload").unwrap();
            history.record(line, u32::try_from(at).unwrap(), &kind, payload);
        }
        history
    }

    fn user(text: &str) -> String {
        format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}}}"#
        )
    }

    fn texts(history: &History) -> Vec<String> {
        let text = |item: &Item| {
            let row = codex::item(item.value()?).ok()?;
            row.items.into_iter().find_map(|part| match part {
                Part::Text(text) => Some(text.into_owned()),
                Part::Result(result) => Some(format!("{}={}", result.id, result.text)),
                Part::Call(call) => Some(call.id.into_owned()),
                Part::Opaque => None,
            })
        };
        history.items.iter().filter_map(text).collect()
    }

    #[test]
    fn the_newest_sound_compaction_replaces_what_was_before() {
        let good = r#"{"type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"kept"}]}]}}"#;
        let bad = r#"{"type":"compacted","payload":{"message":"","replacement_history":[{"type":"message","content":[]}]}}"#;
        let history = history(&[&user("a"), good, &user("b"), bad, &user("c")]);
        assert_eq!(texts(&history), ["kept", "b", "c"]);
        assert!(history.is_compacted && !history.is_summary_only);
        assert_eq!(history.items.iter().map(|item| item.line).collect::<Vec<_>>(), [1, 2, 4]);
    }

    #[test]
    fn turns_are_taken_back() {
        let back = r#"{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":2}}"#;
        let lines = [
            &user("<environment_context>"),
            &user("a"),
            &user("<user_instructions>"),
            &user("<turn_aborted>"),
            back,
            &user("c"),
        ];
        let history = history(&lines.map(|line| line as &str));
        assert_eq!(texts(&history), ["<environment_context>", "c"]);
        assert!(history.has_taken_back && !history.is_torn_up);
    }

    #[test]
    fn pairs_are_whole() {
        let call = |id: &str, kind: &str| {
            format!(
                r#"{{"type":"response_item","payload":{{"type":"{kind}","call_id":"{id}","name":"x","arguments":"{{}}","input":""}}}}"#
            )
        };
        let output = |id: &str| {
            format!(
                r#"{{"type":"response_item","payload":{{"type":"function_call_output","call_id":"{id}","output":"ok"}}}}"#
            )
        };
        let lines = [
            call("c1", "function_call"),
            call("c2", "function_call"),
            output("c1"),
            output("gone"),
            call("c3", "custom_tool_call"),
        ];
        let mut history = history(&lines.each_ref().map(String::as_str));
        assert_eq!(history.pair(), (1, 2));
        assert_eq!(texts(&history), ["c1", "c2", "c2=aborted", "c1=ok", "c3", "c3=aborted"]);
        assert!(history.items[5].raw.contains("custom_tool_call_output"));
        assert_eq!(history.pair(), (0, 0));
    }
}
