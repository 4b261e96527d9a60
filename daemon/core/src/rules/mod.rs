//! The rules: what a compaction would do with every result of the context (`docs/rules.md` §6).
//!
//! One rule a file. A rule sees a `Case` and rules or passes; `ladder` asks them in order.

mod ladder;
mod latest_read;
mod never_drop;
mod over_budget;
mod pass;
mod pinned;
mod referenced;
mod rerunnable;
mod superseded;

pub use over_budget::Class;
pub use pass::{Decided, Pass, TextPart, Totals};

use std::collections::BTreeSet;

use crate::index::live::{Live, LiveResult, live_flag};
use crate::index::log::{Log, ResultEntry, result_flag};
use crate::settings::Settings;

/// What happens to a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Stays, byte for byte.
    Keep,
    /// Its first characters and a note stay.
    Truncate,
    /// A note stays (or nothing, if its call goes too).
    Drop,
}

/// The rule that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "docs/rules.md §6 tells each; `Reason` puts it in words")]
pub enum Rule {
    Noted,
    Pinned,
    NeverDrop,
    SupersededRead,
    Superseder,
    LatestRead,
    Undecided,
    TooRecent,
    Referenced,
    Unreferenced,
    Rerunnable,
    NoGain,
    OverBudget,
}

impl Rule {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Noted => "noted",
            Self::Pinned => "pinned",
            Self::NeverDrop => "never_drop",
            Self::SupersededRead => "superseded_read",
            Self::Superseder => "superseder",
            Self::LatestRead => "latest_read",
            Self::Undecided => "undecided",
            Self::TooRecent => "too_recent",
            Self::Referenced => "referenced",
            Self::Unreferenced => "unreferenced",
            Self::Rerunnable => "rerunnable",
            Self::NoGain => "no_gain",
            Self::OverBudget => "over_budget",
        }
    }
}

/// Why, with its figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "`text` puts each in words")]
pub enum Reason {
    AlreadyNoted,
    FirstMessage,
    LastMessages(u32),
    Error,
    PinnedByPerson,
    UnchangedStub,
    StubTarget,
    Quoted,
    RuleWord,
    ReadAgain { message: u32 },
    Supersedes,
    LatestRead,
    NoTerms,
    FilesUnknown,
    ResultsAfter(u32),
    TermsUsed(u32),
    NothingUsed,
    CheapToRerun(u32),
    NoteNotShorter,
    OverBudget(Class),
}

impl Reason {
    /// One clause for people.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::AlreadyNoted => "removed or cut by an earlier pass".into(),
            Self::FirstMessage => "stands in the first message".into(),
            Self::LastMessages(last) => format!("stands in one of the last {last} messages"),
            Self::Error => "is an error".into(),
            Self::PinnedByPerson => "pinned by you".into(),
            Self::UnchangedStub => "says that an earlier read still holds".into(),
            Self::StubTarget => "a later \"file unchanged\" answer points to it".into(),
            Self::Quoted => "a later message quotes a line of it".into(),
            Self::RuleWord => {
                "the message after it states a rule (must, never, always, ...)".into()
            }
            Self::ReadAgain { message } => {
                format!("the file was read again, unchanged, in message {message}")
            }
            Self::Supersedes => "stands in for an earlier read of the file".into(),
            Self::LatestRead => "latest read of its file".into(),
            Self::NoTerms => "nothing in it to judge by".into(),
            Self::FilesUnknown => "which files it shows cannot be told".into(),
            Self::ResultsAfter(after) => {
                format!("too recent to judge: {after} results after it")
            }
            Self::TermsUsed(terms) => format!("used later: {terms} of its terms"),
            Self::NothingUsed => "none of its terms was used later".into(),
            Self::CheapToRerun(chars) => {
                format!("cheap to run again: first {chars} characters stay")
            }
            Self::NoteNotShorter => "the note in its place would not be shorter".into(),
            Self::OverBudget(class) => format!("over the budget: {}", class.text()),
        }
    }
}

/// What happens to a call whose result is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFate {
    /// Stays as it is.
    Kept,
    /// Stays, with its long inputs shortened.
    Shortened,
    /// Goes with its result.
    Removed,
}

/// Which set of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// The reference's five rules exactly, calls going with their results.
    Reference,
    /// The same rules; every call stays, long inputs of removed calls are shortened.
    #[default]
    Standard,
}

impl Profile {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Standard => "standard",
        }
    }

    /// Reads a name as [`Profile::name`] writes it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "reference" => Some(Self::Reference),
            "standard" => Some(Self::Standard),
            _ => None,
        }
    }
}

/// What the person wants kept whatever the rules say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins {
    /// Ids of tool results.
    pub ids: BTreeSet<String>,
    /// Absolute paths of files: every read of them.
    pub files: BTreeSet<String>,
}

/// A decision and where it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ruling {
    /// What happens.
    pub decision: Decision,
    /// The rule that said so.
    pub rule: Rule,
    /// Why.
    pub reason: Reason,
}

impl Ruling {
    fn keep(rule: Rule, reason: Reason) -> Self {
        Self { decision: Decision::Keep, rule, reason }
    }

    fn drop(rule: Rule, reason: Reason) -> Self {
        Self { decision: Decision::Drop, rule, reason }
    }
}

/// One result and what the rules may look at.
#[derive(Clone, Copy)]
struct Case<'a> {
    log: &'a Log,
    live: &'a Live,
    settings: &'a Settings,
    /// Ordinal among `results` results of `messages` messages.
    ordinal: u32,
    results: u32,
    messages: u32,
    result: LiveResult,
    entry: ResultEntry,
    pinned_by_person: bool,
}

impl Case<'_> {
    fn is(&self, flag: u16) -> bool {
        self.entry.flags & flag != 0
    }

    fn has(&self, flag: u8) -> bool {
        self.result.flags & flag != 0
    }
}
