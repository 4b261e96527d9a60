//! The model-visible history of a thread, item by item as it was written.
//!
//! It is the `replacement_history` of the newest `compacted` record that the host takes, and the
//! response items behind it; turns that were taken back are out.

mod pairs;
mod prompt;

use compactd_core::record::codex::shape::{self, Flaw};
use compactd_core::record::json::{self, Raw};
use compactd_core::record::{Record, Role, Row, codex};

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
            is_prompt: row.as_ref().is_some_and(|row| prompt::is_prompt(raw, row)),
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

/// The host sends such a message of a compacted history on, but takes none up from the body.
fn is_system(payload: Raw<'_>) -> bool {
    let is = |key, word| payload.member(key).and_then(Raw::text).is_some_and(|text| text == word);
    is("type", "message") && is("role", "system")
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
    /// More turns were taken back than stand behind the newest compaction: a legacy host takes it back
    /// with them.
    pub(crate) is_torn_up: bool,
    /// The newest compaction has a summary only; what it kept beside that is not written down.
    pub(crate) is_summary_only: bool,
    /// A `compacted` record, by its line, of which it cannot be told whether the host takes it, and why.
    /// `None` again behind one that it takes.
    pub(crate) doubt: Option<(u32, Flaw)>,
    /// The line of the newest compaction.
    compacted_at: u32,
}

impl History {
    /// Takes in one record: the whole line, its number, its type and payload. `false`: it is a
    /// `compacted` record that the host passes over.
    pub(crate) fn record(&mut self, text: &str, line: u32, kind: &str, payload: Raw<'_>) -> bool {
        match kind {
            "response_item" if !is_system(payload) => self.items.extend(Item::of(payload, line)),
            "compacted" if !self.takes(text, line, payload) => return false,
            "compacted" => self.compacted(payload, line),
            "event_msg" if payload.kind().as_deref() == Some("thread_rolled_back") => {
                // The host ignores the event if the number does not fit.
                let turns = payload.member("num_turns").and_then(Raw::whole);
                self.roll_back(turns.and_then(|turns| u32::try_from(turns).ok()).unwrap_or(0));
            }
            _ => {}
        }
        true
    }

    /// The host passes over a whole `compacted` record if one thing in it is not sound.
    fn takes(&mut self, text: &str, line: u32, payload: Raw<'_>) -> bool {
        let is_read = matches!(codex::read(text.as_bytes()), Ok(Record::Compacted(_)));
        let flaw = match (is_read, shape::compacted_of_host(payload.get())) {
            (true, Ok(())) => return true,
            (false, Err(_)) => return false,
            (true, Err(flaw)) => flaw,
            (false, Ok(())) => {
                Flaw { place: String::new(), expected: "a compaction that can be read".to_owned() }
            }
        };
        self.doubt = Some((line, flaw));
        false
    }

    fn compacted(&mut self, payload: Raw<'_>, line: u32) {
        self.is_compacted = true;
        self.compacted_at = line;
        self.doubt = None;
        self.is_torn_up = false;
        let replacement = payload.member("replacement_history").filter(|list| list.is_list());
        self.is_summary_only = replacement.is_none();
        self.items = replacement
            .into_iter()
            .flat_map(Raw::elements)
            .filter_map(|item| Item::of(item, line))
            .collect();
    }

    /// Takes the newest turns back, each from a person's prompt on. What stands before the first one
    /// stays, however many are taken back.
    fn roll_back(&mut self, turns: u32) {
        if turns == 0 {
            return;
        }
        let turns = usize::try_from(turns).unwrap_or(usize::MAX);
        let is_behind = |item: &&Item| item.is_prompt && item.line > self.compacted_at;
        let behind = self.items.iter().filter(is_behind).count();
        self.has_taken_back = true;
        self.is_torn_up |= self.is_compacted && turns > behind;
        let prompts = self.items.iter().enumerate().filter(|(_, item)| item.is_prompt);
        let prompts: Vec<usize> = prompts.map(|(at, _)| at).collect();
        if let Some(&keep) = prompts.get(prompts.len().saturating_sub(turns)) {
            self.items.truncate(keep);
        }
    }
}

#[cfg(test)]
mod tests;
