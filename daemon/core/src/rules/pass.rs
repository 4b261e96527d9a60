//! A pass: the ladder asked for every result of a context, with what it would free.

use super::{CallFate, Case, Decision, Pins, Profile, Reason, Rule, Ruling, ladder};
use crate::index::live::{Live, LiveResult};
use crate::index::log::{Log, ResultEntry, call_flag};
use crate::index::{History, Index, LeafCut};
use crate::note;
use crate::record::Host;

/// One result with its decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decided<'a> {
    /// Id that joins call and result.
    pub id: &'a str,
    /// Name of the tool.
    pub tool: &'a str,
    /// Characters of the result's text.
    pub chars: u32,
    /// Number of its message in the context.
    pub message: u32,
    /// Line of the transcript, from 0, and the byte where that line starts.
    pub line: u32,
    /// See `line`.
    pub offset: u64,
    /// What happens and why.
    pub ruling: Ruling,
    /// What happens to its call.
    pub call: CallFate,
    /// Where the text is cut, in UTF-16 units (truncations only).
    pub cut_utf16: u32,
    /// Where the call's long leaves are cut (shortened calls only).
    pub leaves: &'a [LeafCut],
    /// Characters of the result's text that go.
    pub removed_chars: u32,
    /// Characters that result and call take up afterwards less than before; never negative where
    /// the profile forbids growth.
    pub freed_chars: i64,
}

/// Sums of a pass. Characters are Unicode scalar values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Results in the context.
    pub results: u32,
    /// Of them kept whole.
    pub kept: u32,
    /// Of them cut.
    pub truncated: u32,
    /// Of them dropped.
    pub dropped: u32,
    /// Of them pinned.
    pub pinned: u32,
    /// Size of the context before the pass.
    pub chars_before: u64,
    /// Size of the context after it.
    pub chars_after: u64,
}

impl Totals {
    /// The fraction of the context that goes, 0 to 1.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a ratio for comparison with a setting")]
    pub fn removed_fraction(&self) -> f64 {
        if self.chars_before == 0 {
            return 0.0;
        }
        self.chars_before.saturating_sub(self.chars_after) as f64 / self.chars_before as f64
    }
}

/// The ladder over one context.
#[derive(Debug)]
pub struct Pass<'a> {
    log: &'a Log,
    live: std::borrow::Cow<'a, Live>,
    index: &'a Index,
    profile: Profile,
    pinned_ids: Vec<u32>,
    pinned_files: Vec<u32>,
}

impl Index {
    /// Prepares a pass. For [`History::Context`] the index must be settled; the cost is then the
    /// pins' alone, and that of iterating the number of results.
    #[must_use]
    pub fn pass(&self, history: History, profile: Profile, pins: &Pins) -> Pass<'_> {
        let log = self.log();
        let numbers = |names: &std::collections::BTreeSet<String>| {
            let mut numbers: Vec<u32> =
                names.iter().filter_map(|name| log.names.find(name)).collect();
            numbers.sort_unstable();
            numbers
        };
        Pass {
            log,
            live: self.live(history),
            index: self,
            profile,
            pinned_ids: numbers(&pins.ids),
            pinned_files: numbers(&pins.files),
        }
    }
}

impl<'a> Pass<'a> {
    /// API messages in the context.
    #[must_use]
    pub fn messages(&self) -> u32 {
        self.live.messages()
    }

    /// Results in the context.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live.results().len()
    }

    /// Whether the context holds no result.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The result at an ordinal.
    #[must_use]
    pub fn get(&self, ordinal: usize) -> Option<Decided<'a>> {
        self.live.results().get(ordinal).map(|&result| self.decided(ordinal, result))
    }

    /// The id of the result at an ordinal, without deciding about it.
    #[must_use]
    pub fn id(&self, ordinal: usize) -> Option<&'a str> {
        let result = self.live.results().get(ordinal)?;
        Some(self.log.names.get(self.log.result(result.entry).id))
    }

    /// Ordinal of the result with this id.
    #[must_use]
    pub fn ordinal(&self, id: &str) -> Option<usize> {
        self.live.ordinal(self.log.names.find(id)?).map(|ordinal| ordinal as usize)
    }

    /// Whether the context holds a call with this id.
    #[must_use]
    pub fn has_call(&self, id: &str) -> bool {
        self.log.names.find(id).is_some_and(|id| self.live.call(id).is_some())
    }

    /// All results in order.
    pub fn iter(&self) -> impl Iterator<Item = Decided<'a>> + '_ {
        self.live
            .results()
            .iter()
            .enumerate()
            .map(|(ordinal, &result)| self.decided(ordinal, result))
    }

    /// The rows of the context that hold something: hash of the uuid (0 = none) and the number of
    /// the API message, in context order.
    pub fn rows(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.live.rows().iter().map(|&(row, message)| (self.log.row(row).uuid, message))
    }

    /// Sums over all results.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { chars_before: self.live.chars(), ..Totals::default() };
        let mut freed = 0_i64;
        for decided in self.iter() {
            totals.count(&decided);
            freed += decided.freed_chars;
        }
        totals.chars_after = totals.chars_before.saturating_add_signed(-freed);
        totals
    }

    fn case(&self, ordinal: usize, result: LiveResult) -> Case<'_> {
        let entry = self.log.result(result.entry);
        Case {
            log: self.log,
            live: &self.live,
            settings: self.index.settings(),
            ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX),
            results: u32::try_from(self.len()).unwrap_or(u32::MAX),
            messages: self.live.messages(),
            result,
            entry,
            pinned_by_person: self.is_pinned(entry),
        }
    }

    fn decided(&self, ordinal: usize, result: LiveResult) -> Decided<'a> {
        let case = self.case(ordinal, result);
        let entry = case.entry;
        let row = self.log.row(entry.row);
        let mut ruling = ladder::decide(&case);
        let mut fate = self.call_fate(ruling, &case);
        let mut freed = self.freed(ruling.decision, fate, &case);
        if self.profile != Profile::Reference && ruling.decision == Decision::Drop && freed <= 0 {
            ruling = Ruling::keep(Rule::NoGain, Reason::NoteNotShorter);
            fate = CallFate::Kept;
            freed = 0;
        }
        Decided {
            id: self.log.names.get(entry.id),
            tool: self.log.names.get(self.log.call(result.call).tool),
            chars: entry.chars,
            message: result.message,
            line: row.line,
            offset: row.offset,
            ruling,
            call: fate,
            cut_utf16: entry.cut_utf16,
            removed_chars: match ruling.decision {
                Decision::Keep => 0,
                Decision::Truncate => entry.chars.saturating_sub(case.settings.rerunnable_chars),
                Decision::Drop => entry.chars,
            },
            leaves: match fate {
                CallFate::Shortened => self.log.leaf_cuts(self.log.call(case.result.call).leaves),
                CallFate::Kept | CallFate::Removed => &[],
            },
            freed_chars: freed,
        }
    }

    fn is_pinned(&self, entry: ResultEntry) -> bool {
        self.pinned_ids.binary_search(&entry.id).is_ok()
            || self.pinned_files.binary_search(&entry.read).is_ok()
    }

    fn call_fate(&self, ruling: Ruling, case: &Case<'_>) -> CallFate {
        if ruling.decision != Decision::Drop {
            return CallFate::Kept;
        }
        match self.profile {
            Profile::Reference if is_read(case.entry) => CallFate::Kept,
            Profile::Reference => CallFate::Removed,
            Profile::Standard => {
                let flags = self.log.call(case.result.call).flags;
                let may = flags & (call_flag::LONG | call_flag::ACTS_IN_CUT) == call_flag::LONG;
                if may && !self.bears(case) { CallFate::Shortened } else { CallFate::Kept }
            }
        }
    }

    /// Whether the part of the call's input that would go is why some result stays whole: then a second
    /// pass, which does not see it any more, would take that result.
    fn bears(&self, case: &Case<'_>) -> bool {
        self.live.borne_by(case.entry.id).iter().any(|&ordinal| {
            let ordinal = ordinal as usize;
            self.live.results().get(ordinal).is_some_and(|&result| {
                ladder::decide(&self.case(ordinal, result)).decision == Decision::Keep
            })
        })
    }

    fn freed(&self, decision: Decision, fate: CallFate, case: &Case<'_>) -> i64 {
        let call = self.log.call(case.result.call);
        let chars = i64::from(case.entry.chars);
        match (decision, fate) {
            (Decision::Keep, _) => 0,
            (Decision::Truncate, _) => {
                let keep = case.settings.rerunnable_chars;
                chars - i64::from(keep) - note::cut_chars(case.entry.chars, keep)
            }
            (Decision::Drop, CallFate::Removed) => chars + i64::from(call.chars),
            (Decision::Drop, fate) => {
                let input = if fate == CallFate::Shortened { call.cut_chars } else { 0 };
                chars - note::dropped_chars(case.entry.chars) + i64::from(input)
            }
        }
    }
}

impl Totals {
    fn count(&mut self, decided: &Decided<'_>) {
        self.results += 1;
        match decided.ruling.decision {
            Decision::Keep => self.kept += 1,
            Decision::Truncate => self.truncated += 1,
            Decision::Drop => self.dropped += 1,
        }
        self.pinned += u32::from(decided.ruling.rule == Rule::Pinned);
    }
}

/// A result that shows a file keeps its call in every profile.
fn is_read(entry: ResultEntry) -> bool {
    entry.read != u32::MAX
}

/// An estimate of model tokens from characters, by host (median characters
/// per token of tool results as the hosts account for them).
#[must_use]
pub fn tokens_estimate(host: Host, chars: u64) -> u64 {
    match host {
        Host::Claude => chars * 10 / 24,
        Host::Codex => chars * 10 / 37,
    }
}
