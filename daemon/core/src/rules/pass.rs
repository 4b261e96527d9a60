//! A pass: the ladder asked for every result of a context, with what it would free.

use super::{
    CallFate, Case, Class, Decision, Pins, Profile, Reason, Rule, Ruling, ladder, over_budget,
};
use crate::index::live::{Live, LiveResult};
use crate::index::log::{Item, Log, ResultEntry, RowKind, call_flag, result_flag, text_flag};
use crate::index::{History, Index, LeafCut};
use crate::note;
use crate::settings::Settings;

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

/// An assistant's text that can be shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPart {
    at: u32,
    /// Its characters.
    pub chars: u32,
    /// So many of them stay.
    pub keep: u32,
}

impl TextPart {
    /// Characters that shortening frees.
    #[must_use]
    pub fn freed_chars(&self) -> i64 {
        i64::from(self.chars) - i64::from(self.keep) - note::text_chars(self.chars, self.keep)
    }
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

    /// Rows with text that the host keeps beside the messages and that would be lost: where each starts
    /// in its file, and the place among [`Pass::rows`] that it stands behind.
    pub fn attached(&self) -> impl ExactSizeIterator<Item = (u64, u32)> + '_ {
        self.live.attached().iter().map(|&(row, place)| (self.log.row(row).offset, place))
    }

    /// Whether the result at an ordinal holds something that is no text.
    #[must_use]
    pub fn is_opaque(&self, ordinal: usize) -> bool {
        self.live
            .results()
            .get(ordinal)
            .is_some_and(|result| self.log.result(result.entry).flags & result_flag::OPAQUE != 0)
    }

    /// The numbers of the rules.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        self.index.settings()
    }

    /// How easily the result at an ordinal can be had again, if it may be cut over the budget.
    pub(crate) fn class(&self, ordinal: usize) -> Option<Class> {
        let &result = self.live.results().get(ordinal)?;
        over_budget::rule(&self.case(ordinal, result)).map(|(class, _)| class)
    }

    /// The result at an ordinal, cut over the budget; `None` if it may not be, or would not become
    /// shorter.
    pub(crate) fn over_budget(&self, ordinal: usize) -> Option<Decided<'a>> {
        let &result = self.live.results().get(ordinal)?;
        let case = self.case(ordinal, result);
        let (_, ruling) = over_budget::rule(&case)?;
        let fate = self.call_fate(ruling, &case);
        let freed = self.freed(ruling.decision, fate, &case);
        (freed > 0).then(|| self.ruled(&case, ruling, fate, freed))
    }

    /// Whether a result stays only as long as something points to it: then nothing that does may go.
    pub(crate) fn rests_on_uses(&self, ordinal: usize) -> bool {
        let Some(&result) = self.live.results().get(ordinal) else { return false };
        let case = self.case(ordinal, result);
        let ruling = ladder::decide(&case);
        let for_good = match ruling.rule {
            Rule::Noted => true,
            Rule::Pinned => matches!(
                ruling.reason,
                Reason::FirstMessage | Reason::Error | Reason::UnchangedStub | Reason::StubTarget
            ),
            _ => false,
        };
        // As if its call's input could always be shortened: another pass may find that it can.
        let fate = match self.profile {
            Profile::Reference => CallFate::Removed,
            Profile::Standard => CallFate::Shortened,
        };
        !for_good && self.freed(Decision::Drop, fate, &case) > 0
    }

    /// The assistant's text in the row at a place among [`Pass::rows`], if it can be shortened: the
    /// only text of its row, long, not shortened before, in none of the pinned messages.
    pub(crate) fn text(&self, place: usize) -> Option<TextPart> {
        let &(row, message) = self.live.rows().get(place)?;
        if message == 0 || message + self.settings().pin_last >= self.live.messages() {
            return None;
        }
        if self.log.row(row).kind != RowKind::Assistant {
            return None;
        }
        let mut texts = self.log.items(row).iter().filter_map(|item| match item {
            Item::Text(text) => Some(*text),
            _ => None,
        });
        let (Some(at), None) = (texts.next(), texts.next()) else { return None };
        let entry = self.log.text(at);
        if entry.flags & text_flag::LONG == 0 {
            return None;
        }
        let keep = note::text_keep(entry.chars, self.settings().text_fraction)?;
        Some(TextPart { at, chars: entry.chars, keep })
    }

    /// Ordinals of the results that may stay only because of the long part of the input of a result's
    /// call.
    pub(crate) fn borne_by_call(&self, ordinal: usize) -> &[u32] {
        let result = self.live.results().get(ordinal);
        result.map_or(&[], |result| self.live.borne_by(self.log.result(result.entry).id))
    }

    /// Ordinals of the results that may stay only because of what a text would lose.
    pub(crate) fn borne_by_text(&self, text: &TextPart) -> &[u32] {
        self.live.borne_by_text(text.at)
    }

    /// Line of the transcript of the row at a place among [`Pass::rows`], from 0.
    #[must_use]
    pub fn row_line(&self, place: usize) -> Option<u32> {
        self.live.rows().get(place).map(|&(row, _)| self.log.row(row).line)
    }

    /// Characters of the context.
    #[must_use]
    pub fn chars(&self) -> u64 {
        self.live.chars()
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
        let mut ruling = ladder::decide(&case);
        let mut fate = self.call_fate(ruling, &case);
        let mut freed = self.freed(ruling.decision, fate, &case);
        if self.profile != Profile::Reference && ruling.decision == Decision::Drop && freed <= 0 {
            ruling = Ruling::keep(Rule::NoGain, Reason::NoteNotShorter);
            fate = CallFate::Kept;
            freed = 0;
        }
        self.ruled(&case, ruling, fate, freed)
    }

    fn ruled(&self, case: &Case<'_>, ruling: Ruling, fate: CallFate, freed: i64) -> Decided<'a> {
        let entry = case.entry;
        let row = self.log.row(entry.row);
        Decided {
            id: self.log.names.get(entry.id),
            tool: self.log.names.get(self.log.call(case.result.call).tool),
            chars: entry.chars,
            message: case.result.message,
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
            || (!self.pinned_files.is_empty()
                && self
                    .log
                    .reads(entry)
                    .any(|(path, _)| self.pinned_files.binary_search(&path).is_ok()))
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
    /// Counts a result.
    pub fn count(&mut self, decided: &Decided<'_>) {
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
