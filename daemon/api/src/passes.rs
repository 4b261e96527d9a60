//! The ledger of passes: what the daemon remembers of every compaction that it answered, and the files
//! below the state folder that hold it. Daemon and client read them; only the daemon writes.
//!
//! Ids, sizes, rules and reasons only: never content of a transcript.

use std::path::{Path, PathBuf};

use compactd_core::record;
use serde::{Deserialize, Serialize};

use crate::compact::{Counters, Outcome};
use crate::words::{CallFate, DecisionKind, Host, Profile, Trigger, words};

/// Number of the layout of a file.
const FORMAT: u32 = 1;

/// So many of the newest passes of a session are kept.
pub const KEPT: usize = 20;

/// The name that stands for the newest pass in `GET /v1/sessions/{id}/passes/{number}`.
pub const LAST: &str = "last";

words! {
    /// How a pass ended, as far as is known.
    PassState {
        /// The answer was given; nothing was heard since.
        Answered = "answered",
        /// The decisions became the new context.
        Applied = "applied",
        /// The answer was to ask for the host's own summary, and the host made one. Only a report says
        /// that it was made of what the pass left.
        HandedOver = "handed_over",
        /// The host went on without the pass.
        Left = "left",
        /// Nobody will tell any more.
        Unknown = "unknown",
    }
}

words! {
    /// What the caller says it did.
    ReportOutcome {
        /// The decisions became the new context.
        Applied = "applied",
        /// It asked for the host's own summary, with what the pass left.
        HandedOver = "handed_over",
        /// It went on without the pass.
        Left = "left",
    }
}

impl ReportOutcome {
    /// The state that a pass is in after such a report.
    #[must_use]
    pub fn state(self) -> PassState {
        match self {
            Self::Applied => PassState::Applied,
            Self::HandedOver => PassState::HandedOver,
            Self::Left => PassState::Left,
            Self::Other => PassState::Unknown,
        }
    }
}

/// `POST /v1/sessions/{id}/passes/{number}`: what the caller did with an answer. All sizes are the
/// caller's own; those that it does not know are absent. Telling the same again changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PassReport {
    /// What it did.
    pub outcome: ReportOutcome,
    /// Whose session it is, where the id alone does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// The sub-agent whose context it is; the session's own if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Results that stayed whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
    /// Results that were cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated: Option<u64>,
    /// Results that went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// Results that were decided and stayed whole all the same: their text was not the decided one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_alone: Option<u64>,
    /// Characters of the context before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chars_before: Option<u64>,
    /// And after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chars_after: Option<u64>,
    /// Tokens of the context before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_before: Option<u64>,
    /// And after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_after: Option<u64>,
    /// Milliseconds that it took in the caller, the answer included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub millis: Option<f64>,
}

impl PassReport {
    /// A report that says only what was done.
    #[must_use]
    pub fn of(outcome: ReportOutcome) -> Self {
        Self {
            outcome,
            host: None,
            agent: None,
            kept: None,
            truncated: None,
            dropped: None,
            left_alone: None,
            chars_before: None,
            chars_after: None,
            tokens_before: None,
            tokens_after: None,
            millis: None,
        }
    }
}

/// One pass in a list; also the answer to a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PassItem {
    /// Number of the compaction: boundaries before it, and one.
    pub number: u64,
    /// When the answer was given, RFC 3339.
    pub at: String,
    /// What started the compaction.
    pub trigger: Trigger,
    /// What the answer asked the caller to do.
    pub outcome: Outcome,
    /// How far the pass went; absent where the rules alone were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Rules used.
    pub profile: Profile,
    /// How it ended.
    pub state: PassState,
    /// A focus text was handed to the caller.
    pub focus: bool,
    /// Why the outcome is what it is, where that is not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Sums of the answer.
    pub counters: Counters,
    /// What the caller says it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<PassReport>,
}

/// `GET /v1/sessions/{id}/passes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PassList {
    /// Whose session it is.
    pub host: Host,
    /// Its id; a sub-agent's own.
    pub session: String,
    /// The newest first.
    pub passes: Vec<PassItem>,
}

/// `GET /v1/sessions/{id}/passes/{number}`: one pass with all its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pass {
    /// Whose session it is.
    pub host: Host,
    /// Its id; a sub-agent's own.
    pub session: String,
    /// What the list has too.
    #[serde(flatten)]
    pub item: PassItem,
    /// Every result of the context, in order.
    pub results: Vec<PassResult>,
}

/// What was decided about one result, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassResult {
    /// Id that joins call and result.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Characters of the result before the pass.
    pub chars: u64,
    /// What was decided.
    pub decision: DecisionKind,
    /// What became of its call.
    pub call: CallFate,
    /// The rule that decided.
    pub rule: String,
    /// Why, in words.
    pub reason: String,
}

/// A pass as it stands on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptPass {
    /// The pass.
    pub pass: Pass,
    /// The person was told of it.
    pub told: bool,
    /// The host's hook before its own compaction came.
    pub asked: bool,
    /// The host's hook behind the compaction came.
    pub finished: bool,
    /// Results in the context behind it, notes counted.
    pub results_after: u64,
}

#[derive(Serialize, Deserialize)]
struct File<P> {
    format: u32,
    #[serde(default)]
    told: bool,
    #[serde(default)]
    asked: bool,
    #[serde(default)]
    finished: bool,
    #[serde(default)]
    results_after: u64,
    pass: P,
}

/// Why bytes are no pass.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// Not what we write.
    #[error("not a file of a pass")]
    NotAPass(#[from] serde_json::Error),
    /// Written by another version.
    #[error("a pass of format {0}, this version knows {FORMAT}")]
    Format(u32),
}

/// The folder with the passes of all sessions, below the state folder.
#[must_use]
pub fn base(state: &Path) -> PathBuf {
    state.join("passes")
}

/// The folder with the passes of a session, below the state folder.
#[must_use]
pub fn folder(state: &Path, host: record::Host, id: &str) -> PathBuf {
    base(state).join(format!("{}-{id}", host.name()))
}

/// Name of the file of a pass.
#[must_use]
pub fn file_name(number: u64) -> String {
    format!("{number}.json")
}

/// Name of the file beside it with the results of the pass: it is large and never changes.
#[must_use]
pub fn results_name(number: u64) -> String {
    format!("{number}.results.json")
}

/// The number in a file's name, if it is one that [`file_name`] gives.
#[must_use]
pub fn number_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".json")?.parse().ok()?;
    (file_name(number) == name).then_some(number)
}

#[derive(Serialize, Deserialize)]
struct ResultsFile<T, R> {
    format: u32,
    /// That of the answer: a pass that was answered again has other results.
    at: T,
    results: R,
}

fn check_format(bytes: &[u8]) -> Result<(), PassError> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    let Head { format } = serde_json::from_slice(bytes)?;
    if format == FORMAT { Ok(()) } else { Err(PassError::Format(format)) }
}

/// Reads a file with the results of a pass: when the pass was answered, and the results.
///
/// # Errors
/// It is none of this version's; it is to be left as it is.
pub fn parse_results(bytes: &[u8]) -> Result<(String, Vec<PassResult>), PassError> {
    check_format(bytes)?;
    let ResultsFile { at, results, .. } = serde_json::from_slice(bytes)?;
    Ok((at, results))
}

/// The bytes of a file with the results of the pass that was answered `at` that time.
#[must_use]
pub fn print_results(at: &str, results: &[PassResult]) -> Vec<u8> {
    let file = ResultsFile { format: FORMAT, at, results };
    serde_json::to_vec(&file).unwrap_or_default()
}

/// Reads a file of a pass. Its results stand in a file of their own ([`results_name`]).
///
/// # Errors
/// It is none of this version's; it is to be left as it is.
pub fn parse(bytes: &[u8]) -> Result<KeptPass, PassError> {
    check_format(bytes)?;
    let File { told, asked, finished, results_after, pass, .. } = serde_json::from_slice(bytes)?;
    Ok(KeptPass { pass, told, asked, finished, results_after })
}

/// The bytes of a file of a pass, with what results the pass has.
#[must_use]
pub fn print(kept: &KeptPass) -> Vec<u8> {
    let KeptPass { pass, told, asked, finished, results_after } = kept;
    let file = File {
        format: FORMAT,
        told: *told,
        asked: *asked,
        finished: *finished,
        results_after: *results_after,
        pass,
    };
    serde_json::to_vec(&file).unwrap_or_default()
}

/// What the boundaries in the transcript say about a pass that nothing was heard of: with `boundaries`
/// of them, that many compactions ended.
#[must_use]
pub fn settled(item: &PassItem, boundaries: u64) -> PassState {
    match (item.state, item.outcome) {
        (PassState::Answered, outcome) if item.number <= boundaries => ended(outcome),
        (state, _) => state,
    }
}

/// How a pass with this outcome ends if its compaction ends as it asked for.
#[must_use]
pub fn ended(outcome: Outcome) -> PassState {
    match outcome {
        Outcome::Apply => PassState::Applied,
        Outcome::Escalate => PassState::HandedOver,
        Outcome::Skip | Outcome::Unready | Outcome::Other => PassState::Left,
    }
}

/// Whether a pass changed the context, as far as is known.
#[must_use]
pub fn really_ran(item: &PassItem) -> bool {
    match item.state {
        PassState::Applied | PassState::HandedOver => true,
        PassState::Answered | PassState::Unknown => {
            matches!(item.outcome, Outcome::Apply | Outcome::Escalate)
        }
        PassState::Left | PassState::Other => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(number: u64, outcome: Outcome, state: PassState) -> PassItem {
        PassItem {
            number,
            at: "2026-11-30T08:16:00Z".to_owned(),
            trigger: Trigger::Manual,
            outcome,
            level: None,
            profile: Profile::Standard,
            state,
            focus: false,
            reason: None,
            counters: Counters::default(),
            report: None,
        }
    }

    fn kept() -> KeptPass {
        let result = PassResult {
            id: "toolu_1".to_owned(),
            tool: "Bash".to_owned(),
            chars: 9,
            decision: DecisionKind::Drop,
            call: CallFate::Kept,
            rule: "unreferenced".to_owned(),
            reason: "none of its terms was used later".to_owned(),
        };
        let pass = Pass {
            host: Host::Claude,
            session: "s".to_owned(),
            item: item(3, Outcome::Apply, PassState::Answered),
            results: vec![result],
        };
        KeptPass { pass, told: true, asked: true, finished: false, results_after: 1 }
    }

    #[test]
    fn what_is_written_is_read() {
        let kept = kept();
        assert_eq!(parse(&print(&kept)).unwrap(), kept);
        let text = String::from_utf8(print(&kept)).unwrap();
        let newer = text.replacen("\"format\":1", "\"format\":2", 1);
        assert!(matches!(parse(newer.as_bytes()), Err(PassError::Format(2))));
        assert!(matches!(parse(br#"{"format":7}"#), Err(PassError::Format(7))));
        assert!(matches!(parse(br#"{"format":1}"#), Err(PassError::NotAPass(_))));
    }

    #[test]
    fn results_are_read_as_they_are_written() {
        let kept = kept();
        let bytes = print_results("then", &kept.pass.results);
        assert_eq!(parse_results(&bytes).unwrap(), ("then".to_owned(), kept.pass.results));
        let other = br#"{"format":7,"at":1}"#;
        assert!(matches!(parse_results(other), Err(PassError::Format(7))));
        assert!(matches!(parse_results(b"{ torn"), Err(PassError::NotAPass(_))));
    }

    #[test]
    fn names() {
        assert_eq!(number_of("12.json"), Some(12));
        for other in [
            "",
            ".json",
            "012.json",
            "+1.json",
            "1.results.json",
            "1.json.new",
            "x.json",
            "-1.json",
        ] {
            assert_eq!(number_of(other), None, "{other}");
        }
    }

    #[test]
    fn boundaries_settle_what_nobody_told() {
        use PassState::{Answered, Applied, HandedOver, Left};
        for (number, outcome, state, boundaries, expected) in [
            (3, Outcome::Apply, Answered, 2, Answered),
            (3, Outcome::Apply, Answered, 3, Applied),
            (3, Outcome::Escalate, Answered, 4, HandedOver),
            (3, Outcome::Skip, Answered, 3, Left),
            (3, Outcome::Apply, Left, 9, Left),
        ] {
            assert_eq!(settled(&item(number, outcome, state), boundaries), expected);
        }
    }
}
