//! From the core's types to their twins on the wire: daemon and offline client say the same.

use std::collections::BTreeMap;

use compactd_core::index::{History, Index};
use compactd_core::note;
use compactd_core::record;
use compactd_core::rules::{self, Decided, Decision, Pins, Totals, tokens_estimate};
use compactd_core::settings::Settings;

use crate::sessions::{self, Explain, ExplainedResult};
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
        rerunnable: rules.rerunnable.clone(),
        rerunnable_tests: rules.rerunnable_tests.clone(),
    }
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
    let pass = index.pass(history, profile, pins);
    let keep_chars = index.settings().rerunnable_chars as usize;
    let results = pass
        .iter()
        .map(|decided| explained(index.host(), &decided, texts.get(decided.id), keep_chars))
        .collect();
    Explain {
        host: index.host().into(),
        session: Text::from(session),
        profile: profile.into(),
        history: history.into(),
        lines: index.facts().lines,
        messages: u64::from(pass.messages()),
        results,
        totals: totals(index.host(), &pass.totals()),
    }
}

/// Ids of the results that a pass would cut.
#[must_use]
pub fn cut_ids(
    index: &Index,
    history: History,
    profile: rules::Profile,
    pins: &Pins,
) -> Vec<String> {
    index
        .pass(history, profile, pins)
        .iter()
        .filter(|decided| decided.ruling.decision == Decision::Truncate)
        .map(|decided| decided.id.to_owned())
        .collect()
}

fn explained<'a>(
    host: record::Host,
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
        tokens_est: tokens_estimate(host, u64::from(decided.chars)),
        decision: decided.ruling.decision.into(),
        call: decided.call.into(),
        rule: Text::from(decided.ruling.rule.name()),
        reason: Text::from(decided.ruling.reason.text()),
        left: left.map(Text::from),
    }
}

/// Sums on the wire.
#[must_use]
pub fn totals(host: record::Host, totals: &Totals) -> sessions::Totals {
    sessions::Totals {
        results: u64::from(totals.results),
        kept: u64::from(totals.kept),
        truncated: u64::from(totals.truncated),
        dropped: u64::from(totals.dropped),
        pinned: u64::from(totals.pinned),
        chars_before: totals.chars_before,
        chars_after: totals.chars_after,
        tokens_before: tokens_estimate(host, totals.chars_before),
        tokens_after: tokens_estimate(host, totals.chars_after),
    }
}
