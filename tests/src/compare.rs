//! What the live index and the full rescan decide, as values that can be compared.

use std::collections::BTreeSet;
use std::collections::HashMap;

use compactd_core::index::{History, Index};
use compactd_core::note;
use compactd_core::record::{self, Host, Item, Record, ToolResult};
use compactd_core::rules::{CallFate, Decided, Decision, Pins, Profile};
use compactd_core::settings::Settings;

use crate::core_tools::CoreTools;
use crate::rescan;

/// What happens to one result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub id: String,
    pub tool: String,
    pub chars: usize,
    pub decision: &'static str,
    pub call: &'static str,
    pub rule: String,
    /// The text that takes the place of the result's, where it changes and stays.
    pub left: Option<String>,
}

/// A whole pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    pub messages: usize,
    pub verdicts: Vec<Verdict>,
}

/// Which pass.
#[derive(Debug, Clone)]
pub struct Question {
    pub history: History,
    pub profile: Profile,
    pub settings: Settings,
    pub pins: Pins,
}

impl Question {
    /// Both histories under both profiles.
    #[must_use]
    pub fn all(settings: &Settings, pins: &Pins) -> Vec<Self> {
        [History::Context, History::Whole]
            .into_iter()
            .flat_map(|history| {
                [Profile::Standard, Profile::Reference].map(|profile| Self {
                    history,
                    profile,
                    settings: settings.clone(),
                    pins: pins.clone(),
                })
            })
            .collect()
    }

    fn options(&self) -> rescan::Options {
        let owned = |names: &BTreeSet<String>| names.iter().cloned().collect();
        rescan::Options {
            history: match self.history {
                History::Context => rescan::History::Context,
                History::Whole => rescan::History::Whole,
            },
            profile: match self.profile {
                Profile::Reference => rescan::Profile::Reference,
                Profile::Standard => rescan::Profile::Standard,
            },
            recent_results: self.settings.recent_results as usize,
            pin_last: self.settings.pin_last as usize,
            generic_above: self.settings.generic_above as usize,
            rerunnable_chars: self.settings.rerunnable_chars as usize,
            pinned_ids: owned(&self.pins.ids),
            pinned_files: owned(&self.pins.files),
        }
    }

    /// What the full rescan of the lines says.
    #[must_use]
    pub fn rescan(&self, host: Host, lines: &[&[u8]]) -> View {
        let of = match host {
            Host::Claude => rescan::Host::Claude,
            Host::Codex => rescan::Host::Codex,
        };
        let found = rescan::rescan(lines, Some(of), &CoreTools::default(), &self.options());
        let verdict = |decided: rescan::Decided| Verdict {
            id: decided.id,
            tool: decided.tool,
            chars: decided.chars,
            decision: match decided.decision {
                rescan::Decision::Keep => "keep",
                rescan::Decision::Truncate => "cut",
                rescan::Decision::Drop => "drop",
            },
            call: match decided.call {
                rescan::CallFate::Kept => "kept",
                rescan::CallFate::Shortened => "shortened",
                rescan::CallFate::Removed => "removed",
            },
            rule: decided.rule.to_owned(),
            left: decided.left,
        };
        View {
            messages: found.messages,
            verdicts: found.results.into_iter().map(verdict).collect(),
        }
    }

    /// What a settled index says. `lines` are those it was fed, for the texts that are cut.
    #[must_use]
    pub fn ask(&self, index: &Index, lines: &[impl AsRef<[u8]>]) -> View {
        let pass = index.pass(self.history, self.profile, &self.pins);
        let verdicts = pass.iter().map(|decided| verdict(index.host(), &decided, lines)).collect();
        View { messages: pass.messages() as usize, verdicts }
    }
}

fn verdict(host: Host, decided: &Decided<'_>, lines: &[impl AsRef<[u8]>]) -> Verdict {
    Verdict {
        id: decided.id.to_owned(),
        tool: decided.tool.to_owned(),
        chars: decided.chars as usize,
        decision: match decided.ruling.decision {
            Decision::Keep => "keep",
            Decision::Truncate => "cut",
            Decision::Drop => "drop",
        },
        call: match decided.call {
            CallFate::Kept => "kept",
            CallFate::Shortened => "shortened",
            CallFate::Removed => "removed",
        },
        rule: decided.ruling.rule.name().to_owned(),
        left: left(host, decided, lines),
    }
}

/// The text in place of the result's, as a host would make it from the decision's numbers.
#[must_use]
pub fn left(host: Host, decided: &Decided<'_>, lines: &[impl AsRef<[u8]>]) -> Option<String> {
    match decided.ruling.decision {
        Decision::Keep => None,
        Decision::Drop if decided.call == CallFate::Removed => None,
        Decision::Drop => Some(note::dropped(decided.chars as usize)),
        Decision::Truncate => {
            let line = lines.get(decided.line as usize)?.as_ref();
            let text = result_of(host, line, decided.id)?.text.into_owned();
            let kept = utf16_prefix(&text, decided.cut_utf16 as usize)?;
            Some(format!(
                "{kept}\n[output cut by compactd: {} of {} chars removed; re-run the call to see it]",
                decided.removed_chars, decided.chars
            ))
        }
    }
}

/// The start of a text, so many UTF-16 units long.
#[must_use]
pub fn utf16_prefix(text: &str, units: usize) -> Option<&str> {
    let mut left = units;
    for (at, char) in text.char_indices() {
        if left == 0 {
            return text.get(..at);
        }
        left = left.checked_sub(char.len_utf16())?;
    }
    (left == 0).then_some(text)
}

/// The first result with this id on a line.
#[must_use]
pub fn result_of<'a>(host: Host, line: &'a [u8], id: &str) -> Option<ToolResult<'a>> {
    items(host, line).into_iter().find_map(|item| match item {
        Item::Result(result) if result.id == id => Some(result),
        _ => None,
    })
}

/// Everything on a line; of a `compacted` record, everything in it.
#[must_use]
pub fn items(host: Host, line: &[u8]) -> Vec<Item<'_>> {
    match record::read_line(host, line) {
        Ok(Record::Row(row)) => row.items,
        Ok(Record::Compacted(compacted)) => {
            compacted.rows.into_iter().flat_map(|row| row.items).collect()
        }
        _ => Vec::new(),
    }
}

/// The first place where two views differ, in words.
#[must_use]
pub fn difference(index: &View, rescan: &View) -> Option<String> {
    if index == rescan {
        return None;
    }
    if index.messages != rescan.messages {
        return Some(format!("messages: index {}, rescan {}", index.messages, rescan.messages));
    }
    let pair = index.verdicts.iter().zip(&rescan.verdicts).find(|(a, b)| a != b);
    if let Some((a, b)) = pair {
        return Some(format!("index {a:?}\nrescan {b:?}"));
    }
    let ids = |view: &View| view.verdicts.iter().map(|v| v.id.clone()).collect::<Vec<_>>();
    Some(format!("results: index {:?}, rescan {:?}", ids(index), ids(rescan)))
}

/// How often each rule decided, for a look at what sessions exercise.
pub fn count(counts: &mut HashMap<String, usize>, view: &View) {
    for verdict in &view.verdicts {
        *counts
            .entry(format!("{} {} {}", verdict.rule, verdict.decision, verdict.call))
            .or_default() += 1;
    }
}
