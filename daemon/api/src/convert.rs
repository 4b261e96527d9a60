//! From the core's types to their twins on the wire: daemon and offline client say the same.

use std::collections::BTreeMap;

use compactd_core::escalate::{self, Escalation, Held, Occasion, Sizes};
use compactd_core::index::{History, Index};
use compactd_core::note;
use compactd_core::record;
use compactd_core::rules::{self, Decided, Decision, Pass, Pins, Totals};
use compactd_core::settings::Settings;
use compactd_core::tokens::Ratio;

use crate::sessions::{self, Explain, ExplainedResult, ShortenedText};
use crate::settings::Rules;
use crate::text::Text;
use crate::words;

impl From<record::Host> for words::Host {
    fn from(host: record::Host) -> Self {
        match host {
            record::Host::Claude => Self::Claude,
            record::Host::Codex => Self::Codex,
        }
    }
}

impl From<Decision> for words::DecisionKind {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Keep => Self::Keep,
            Decision::Truncate => Self::Truncate,
            Decision::Drop => Self::Drop,
        }
    }
}

impl From<rules::CallFate> for words::CallFate {
    fn from(fate: rules::CallFate) -> Self {
        match fate {
            rules::CallFate::Kept => Self::Kept,
            rules::CallFate::Shortened => Self::Shortened,
            rules::CallFate::Removed => Self::Removed,
        }
    }
}

impl From<escalate::Level> for words::Level {
    fn from(level: escalate::Level) -> Self {
        match level {
            escalate::Level::Rules => Self::Rules,
            escalate::Level::Cuts => Self::Cuts,
            escalate::Level::Texts => Self::Texts,
            escalate::Level::Summary => Self::Summary,
        }
    }
}

impl From<rules::Profile> for words::Profile {
    fn from(profile: rules::Profile) -> Self {
        match profile {
            rules::Profile::Reference => Self::Reference,
            rules::Profile::Standard => Self::Standard,
        }
    }
}

impl From<History> for words::History {
    fn from(history: History) -> Self {
        match history {
            History::Context => Self::Context,
            History::Whole => Self::Whole,
        }
    }
}

/// The core's host; `None` for one that this version does not know.
#[must_use]
pub fn host(host: words::Host) -> Option<record::Host> {
    record::Host::from_name(host.name())
}

/// The core's profile; `None` for one that this version does not know.
#[must_use]
pub fn profile(profile: words::Profile) -> Option<rules::Profile> {
    rules::Profile::from_name(profile.name())
}

/// The core's settings from the configured rules.
#[must_use]
pub fn settings(rules: &Rules) -> Settings {
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Settings {
        recent_results: narrow(rules.recent_results),
        pin_last: narrow(rules.pin_last),
        generic_above: narrow(rules.generic_above),
        rerunnable_chars: narrow(rules.rerunnable_chars),
        min_removal_fraction: rules.min_removal_fraction,
        text_fraction: rules.text_fraction,
        rerunnable: rules.rerunnable.clone(),
        rerunnable_tests: rules.rerunnable_tests.clone(),
    }
}

/// A pass to show: over what, by which rules, and the tokens that may be left, if that matters.
#[derive(Debug, Clone, Copy)]
pub struct View<'v> {
    /// Which rows count.
    pub history: History,
    /// Which rules.
    pub profile: rules::Profile,
    /// What the person wants kept.
    pub pins: &'v Pins,
    /// Tokens that may be left.
    pub budget: Option<u64>,
}

/// What a compaction would do with every result. `texts` holds the texts of the results that are
/// cut ([`cut_ids`] names them); one that is missing there shows no `left`.
#[must_use]
pub fn explain<'a>(
    index: &'a Index,
    session: &'a str,
    history: History,
    profile: rules::Profile,
    pins: &Pins,
    texts: &BTreeMap<String, String>,
) -> Explain<'a> {
    View { history, profile, pins, budget: None }.explain(index, session, texts)
}

/// Ids of the results that a pass would cut.
#[must_use]
pub fn cut_ids(
    index: &Index,
    history: History,
    profile: rules::Profile,
    pins: &Pins,
) -> Vec<String> {
    View { history, profile, pins, budget: None }.cut_ids(index)
}

impl View<'_> {
    /// As [`explain`].
    #[must_use]
    pub fn explain<'a>(
        &self,
        index: &'a Index,
        session: &'a str,
        texts: &BTreeMap<String, String>,
    ) -> Explain<'a> {
        let Self { history, profile, pins, budget } = *self;
        let pass = index.pass(history, profile, pins);
        let ratio = index.ratio();
        let keep_chars = index.settings().rerunnable_chars as usize;
        let escalation = budget.map(|budget| (budget, escalated(&pass, index.ratio(), budget)));
        let results = decided(&pass, escalation.as_ref().map(|(_, escalation)| escalation))
            .map(|decided| explained(ratio, &decided, texts.get(decided.id), keep_chars))
            .collect();
        let sums = escalation
            .as_ref()
            .map_or_else(|| pass.totals(), |(_, escalation)| escalate::totals(&pass, escalation));
        Explain {
            host: index.host().into(),
            session: Text::from(session),
            profile: profile.into(),
            history: history.into(),
            lines: index.facts().lines,
            messages: u64::from(pass.messages()),
            results,
            totals: totals(ratio, &sums),
            escalation: escalation.map(|(budget, escalation)| sessions::Escalation {
                budget,
                left: escalation.left,
                level: escalation.level.into(),
                texts: shortened(&pass, &escalation),
            }),
        }
    }

    /// As [`cut_ids`].
    #[must_use]
    pub fn cut_ids(&self, index: &Index) -> Vec<String> {
        let pass = index.pass(self.history, self.profile, self.pins);
        let escalation = self.budget.map(|budget| escalated(&pass, index.ratio(), budget));
        decided(&pass, escalation.as_ref())
            .filter(|decided| decided.ruling.decision == Decision::Truncate)
            .map(|decided| decided.id.to_owned())
            .collect()
    }
}

/// The pass over all of a context, as if a person had asked for it.
fn escalated<'a>(pass: &Pass<'a>, ratio: Ratio, budget: u64) -> Escalation<'a> {
    let sizes = Sizes { budget: Some(budget), ..Sizes::of(ratio, pass.chars()) };
    escalate::escalate(pass, &Held::whole(pass), &sizes, Occasion::default())
}

/// All decisions in order, those over the budget in the place of the ladder's.
fn decided<'p, 'a>(
    pass: &'p Pass<'a>,
    escalation: Option<&'p Escalation<'a>>,
) -> impl Iterator<Item = Decided<'a>> + use<'p, 'a> {
    let mut more = escalation.map_or(&[][..], |found| &found.results).iter().peekable();
    pass.iter().enumerate().map(move |(ordinal, decided)| {
        more.next_if(|(cut, _)| *cut as usize == ordinal).map_or(decided, |(_, cut)| *cut)
    })
}

fn shortened(pass: &Pass<'_>, escalation: &Escalation<'_>) -> Vec<ShortenedText> {
    let text = |cut: &escalate::TextCut| ShortenedText {
        line: u64::from(pass.row_line(cut.row as usize).unwrap_or_default()),
        chars: u64::from(cut.chars),
        keep: u64::from(cut.keep),
    };
    escalation.texts.iter().map(text).collect()
}

fn explained<'a>(
    ratio: Ratio,
    decided: &Decided<'a>,
    text: Option<&String>,
    keep_chars: usize,
) -> ExplainedResult<'a> {
    let left = match decided.ruling.decision {
        Decision::Keep => None,
        Decision::Drop if decided.call == rules::CallFate::Removed => None,
        Decision::Drop => Some(note::dropped(decided.chars as usize)),
        Decision::Truncate => text.and_then(|text| note::cut(text, keep_chars)).map(|cut| cut.left),
    };
    ExplainedResult {
        id: Text::from(decided.id),
        tool: Text::from(decided.tool),
        chars: u64::from(decided.chars),
        tokens_est: ratio.tokens(u64::from(decided.chars)),
        decision: decided.ruling.decision.into(),
        call: decided.call.into(),
        rule: Text::from(decided.ruling.rule.name()),
        reason: Text::from(decided.ruling.reason.text()),
        left: left.map(Text::from),
    }
}

/// Sums on the wire.
#[must_use]
pub fn totals(ratio: Ratio, totals: &Totals) -> sessions::Totals {
    sessions::Totals {
        results: u64::from(totals.results),
        kept: u64::from(totals.kept),
        truncated: u64::from(totals.truncated),
        dropped: u64::from(totals.dropped),
        pinned: u64::from(totals.pinned),
        chars_before: totals.chars_before,
        chars_after: totals.chars_after,
        tokens_before: ratio.tokens(totals.chars_before),
        tokens_after: ratio.tokens(totals.chars_after),
    }
}
