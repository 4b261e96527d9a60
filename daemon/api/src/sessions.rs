//! Status, counters, sessions, pins, and what a compaction would do. Sizes, counts, ids and paths only:
//! never content of a transcript.

use serde::{Deserialize, Serialize};

use crate::text::Text;
use crate::words::{CallFate, DecisionKind, History, Host, Level, Profile, words};

/// `GET /v1/status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Version of the daemon.
    pub version: String,
    /// Protocol it speaks.
    pub protocol: u32,
    /// Its process.
    pub pid: u32,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// Nothing is wrong.
    pub healthy: bool,
    /// What is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// Sessions.
    pub sessions: SessionCounts,
    /// Memory.
    pub memory: Memory,
    /// Where it listens.
    pub socket: String,
    /// The folders in which it looks for transcripts; none of a daemon that does not tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// How it learns of changes.
    pub watching: Watching,
}

/// How many sessions there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCounts {
    /// Found on disk.
    pub known: u64,
    /// With an index that is up to date.
    pub indexed: u64,
    /// Waiting to be indexed.
    pub bulk_queue: u64,
}

/// Memory of the indexes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// In use.
    pub index_bytes: u64,
    /// Allowed.
    pub budget_bytes: u64,
}

/// How the daemon learns of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watching {
    /// By which means.
    pub mode: WatchMode,
    /// In how many folders.
    pub dirs: u64,
}

words! {
    /// How the daemon learns of changes.
    WatchMode {
        /// The system tells.
        Notify = "notify",
        /// It looks again and again.
        Poll = "poll",
    }
}

/// `GET /v1/stats`: counters since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stats {
    /// Seconds since the start.
    pub uptime_s: u64,
    /// Requests served, errors included.
    pub requests: u64,
    /// Requests that ended in an error.
    pub errors: u64,
    /// Compactions by outcome.
    pub compactions: OutcomeCounts,
    /// Results cut by them.
    pub results_truncated: u64,
    /// Results dropped by them.
    pub results_dropped: u64,
    /// Tokens freed by them, estimated.
    pub tokens_freed: u64,
    /// Times of compaction requests.
    pub compact_micros: Times,
    /// Hook requests by answer.
    pub hooks: HookCounts,
    /// Bytes of transcripts read.
    pub bytes_read: u64,
    /// Lines of transcripts read.
    pub lines_read: u64,
    /// Lines that held nothing for an index.
    pub skipped: SkipCounts,
    /// Indexes built again because their file was rewritten.
    pub rebuilds: u64,
    /// Sessions that cannot be indexed.
    pub broken: u64,
    /// Indexes loaded from disk.
    pub snapshots_loaded: u64,
    /// Indexes saved to disk.
    pub snapshots_saved: u64,
}

/// Compactions by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutcomeCounts {
    /// Decisions were given.
    pub apply: u64,
    /// Nothing worth doing.
    pub skip: u64,
    /// Decisions, and the host's summary.
    pub escalate: u64,
    /// The session was not known well enough.
    pub unready: u64,
}

/// A spread of times in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// The median.
    pub p50: u64,
    /// 99 of 100 were not longer.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

/// Hook requests by answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HookCounts {
    /// With text to print.
    pub text: u64,
    /// With nothing to print.
    pub silent: u64,
}

/// Lines that held nothing for an index, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SkipCounts {
    /// White space.
    pub blank: u64,
    /// No JSON object.
    pub malformed: u64,
    /// Longer than a line may be.
    pub too_long: u64,
    /// The host's own book-keeping.
    pub bookkeeping: u64,
    /// A kind that this version does not know.
    pub unknown: u64,
    /// A known kind of another shape.
    pub odd: u64,
}

/// Query of `GET /v1/sessions`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionsQuery {
    /// Only this host's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// Only those in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<SessionState>,
    /// At most so many, the newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// `GET /v1/sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionList {
    /// The newest first.
    pub sessions: Vec<SessionItem>,
}

words! {
    /// How well the daemon knows a session.
    SessionState {
        /// Its index is up to date.
        Indexed = "indexed",
        /// Its index is being made.
        Indexing = "indexing",
        /// It has no index in memory; one is made when it is asked for.
        Cold = "cold",
        /// It could not be indexed.
        Broken = "broken",
    }
}

/// One session in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionItem {
    /// The session's or thread's id.
    pub id: String,
    /// Whose session it is.
    pub host: Host,
    /// Its file.
    pub path: String,
    /// Where the host ran, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Size of the file.
    pub size_bytes: u64,
    /// How far it is indexed.
    pub indexed_bytes: u64,
    /// Lines read.
    pub lines: u64,
    /// API messages in the context.
    pub messages: u64,
    /// Tool results in the context.
    pub results: u64,
    /// When it last changed, RFC 3339.
    pub updated_at: String,
    /// How well the daemon knows it.
    pub state: SessionState,
    /// The sub-agent whose file it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// `GET /v1/sessions/{id}`: the item and more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionDetails {
    /// What the list has too.
    #[serde(flatten)]
    pub item: SessionItem,
    /// Version of the host that wrote it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_version: Option<String>,
    /// Model that answered last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The thread that this one was forked or spawned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Tokens of the context as the host last said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// Tokens that fit, where the host says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_tokens: Option<u64>,
    /// Memory of its index.
    pub index_bytes: u64,
    /// Compactions in its file.
    pub boundaries: u64,
    /// Number of its newest compaction that is known to have happened: `boundaries`, or one more while
    /// the host has not written it down yet.
    #[serde(default)]
    pub compaction: u64,
    /// The text that its agent gets behind a compaction of the host, where one was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// How often its index was built again.
    pub rebuilds: u64,
    /// Pins that the person set.
    pub pins: u64,
    /// Lines that held nothing for the index.
    pub skipped: SkipCounts,
    /// `state: broken`: why, without content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How far the newest text is that an agent gets behind a compaction of its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// Number of the compaction that it is for.
    pub compaction: u64,
    /// How far it is.
    pub state: RecoveryState,
}

words! {
    /// How far a text for after a compaction is.
    RecoveryState {
        /// It was written; the compaction is not over, or came to nothing.
        Kept = "kept",
        /// The compaction is over, the agent has not got it yet.
        Pending = "pending",
        /// The agent got it.
        Delivered = "delivered",
    }
}

/// Query of `GET /v1/sessions/{id}/explain`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExplainQuery {
    /// Rules to use instead of the configured ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Which part is looked at; `context` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
}

/// `GET /v1/sessions/{id}/focus`: what the host's own summary should keep word for word. It is written
/// from the newest rows of the context, so unlike all else here it holds words of the session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Focus {
    /// The text; absent where there is nothing to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
}

/// `GET /v1/sessions/{id}/explain`, and what `compactctl compact --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explain<'a> {
    /// Whose session it is.
    pub host: Host,
    /// Its id.
    #[serde(borrow)]
    pub session: Text<'a>,
    /// Rules used.
    pub profile: Profile,
    /// Which part was looked at.
    pub history: History,
    /// Lines read.
    pub lines: u64,
    /// API messages.
    pub messages: u64,
    /// Every result, in order.
    #[serde(borrow)]
    pub results: Vec<ExplainedResult<'a>>,
    /// Sums.
    pub totals: Totals,
    /// How far the pass went for the budget that was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Escalation>,
}

/// A pass that had to fit a budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escalation {
    /// Tokens that may be left.
    pub budget: u64,
    /// Tokens that are left, estimated.
    pub left: u64,
    /// How far it went.
    pub level: Level,
    /// Assistant texts that are shortened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<ShortenedText>,
}

/// One assistant text that is shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShortenedText {
    /// Line of the transcript, from 0.
    pub line: u64,
    /// Its characters.
    pub chars: u64,
    /// So many of them stay, and a note behind them.
    pub keep: u64,
}

/// What would happen to one result, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExplainedResult<'a> {
    /// Id that joins call and result.
    #[serde(borrow)]
    pub id: Text<'a>,
    /// The tool.
    #[serde(borrow)]
    pub tool: Text<'a>,
    /// Characters of the result.
    pub chars: u64,
    /// Its tokens, estimated.
    pub tokens_est: u64,
    /// What would happen.
    pub decision: DecisionKind,
    /// What would become of its call.
    pub call: CallFate,
    /// The rule that decided.
    #[serde(borrow)]
    pub rule: Text<'a>,
    /// Why, in words.
    #[serde(borrow)]
    pub reason: Text<'a>,
    /// The text that would be left where it is not kept: a note, or the beginning and a note. Absent
    /// where call and result go together.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Text<'a>>,
}

/// Sums over the results of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Results looked at.
    pub results: u64,
    /// That stay whole.
    pub kept: u64,
    /// That are cut.
    pub truncated: u64,
    /// That go.
    pub dropped: u64,
    /// Of the kept: those that no rule may touch.
    pub pinned: u64,
    /// Characters before.
    pub chars_before: u64,
    /// And after.
    pub chars_after: u64,
    /// Tokens before, estimated.
    pub tokens_before: u64,
    /// And after.
    pub tokens_after: u64,
}

/// One thing that the person wants kept: `{"id":…}` or `{"file":…}`.
///
/// Body of `POST` and `DELETE /v1/sessions/{id}/pins`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "PinFields", into = "PinFields")]
pub enum Pin {
    /// The result of this call.
    Id(String),
    /// Every read of this file.
    File(String),
}

#[derive(Serialize, Deserialize)]
struct PinFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

impl TryFrom<PinFields> for Pin {
    type Error = &'static str;

    fn try_from(fields: PinFields) -> Result<Self, Self::Error> {
        match (fields.id, fields.file) {
            (Some(id), None) if !id.is_empty() => Ok(Self::Id(id)),
            (None, Some(file)) if !file.is_empty() => Ok(Self::File(file)),
            _ => Err("a pin is either an id or a file"),
        }
    }
}

impl From<Pin> for PinFields {
    fn from(pin: Pin) -> Self {
        match pin {
            Pin::Id(id) => Self { id: Some(id), file: None },
            Pin::File(file) => Self { id: None, file: Some(file) },
        }
    }
}

/// Answer of all three methods of `/v1/sessions/{id}/pins`: what is pinned now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pins {
    /// In the order in which they were set.
    pub pins: Vec<Pin>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_one_thing() {
        assert_eq!(
            serde_json::from_str::<Pin>(r#"{"id":"x","new":1}"#).unwrap(),
            Pin::Id("x".to_owned())
        );
        assert_eq!(serde_json::to_string(&Pin::File("/f".to_owned())).unwrap(), r#"{"file":"/f"}"#);
        for bad in ["{}", r#"{"id":"x","file":"/f"}"#, r#"{"id":""}"#, "[]"] {
            assert!(serde_json::from_str::<Pin>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_older_daemon_counts_less() {
        let stats: Stats = serde_json::from_str(r#"{"requests":3}"#).unwrap();
        assert_eq!((stats.requests, stats.errors), (3, 0));
    }
}
