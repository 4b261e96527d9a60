//! `POST /v1/compact`: the caller names what stands in its context, the daemon says what may go.
//!
//! No text of a message travels in either direction: the host's door takes 4 MiB, and the daemon has
//! the transcript. The caller applies the decisions to its own copy of the messages.

mod ids;
mod read;
mod write;

use serde::{Deserialize, Serialize};

pub use ids::Ids;

use crate::error::ErrorCode;
use crate::ids::is_id;
use crate::text::Text;
use crate::words::{CallFate, DecisionKind, Host, Level, Profile, Role, Trigger, words};
use crate::{IDS_MAX, PROTOCOL};

/// A request to decide a compaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompactRequest<'a> {
    /// Who asks.
    pub host: Host,
    /// The session's id.
    #[serde(borrow)]
    pub session: Text<'a>,
    /// Absolute path of its transcript.
    #[serde(borrow)]
    pub transcript: Text<'a>,
    /// What started the compaction.
    pub trigger: Trigger,
    /// The sub-agent whose context it is; the session's own if absent.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Text<'a>>,
    /// What the person typed behind `/compact`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Text<'a>>,
    /// What the host says about its context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<ContextUsage>,
    /// Tokens at which the host compacts by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u64>,
    /// Rules to use instead of the configured ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// The rows of the context, in order.
    #[serde(borrow)]
    pub rows: Vec<Row<'a>>,
}

/// Size of the context, in the model's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextUsage {
    /// What is in it, as the newest answer counted it; unknown right after a resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// What fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

/// One row of the context: what the host calls a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row<'a> {
    /// The host's name for it: Claude Code's handle, which is the row's uuid; empty if it has none.
    #[serde(borrow, default, skip_serializing_if = "is_empty")]
    pub row: Text<'a>,
    /// Whose row it is.
    pub role: Role,
    /// `assistant`: ids of its tool calls; `user`: ids of the calls whose results it holds.
    #[serde(borrow, default, skip_serializing_if = "Ids::is_empty")]
    pub ids: Ids<'a>,
    /// Characters of its text, results included.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub chars: u64,
    /// A result in it is an error.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_error: bool,
}

impl<'a> CompactRequest<'a> {
    /// Reads a body that is written as callers do; `None` means that serde has to look at it, which
    /// reads all of them and tells what is wrong.
    #[must_use]
    pub fn from_usual(body: &'a [u8]) -> Option<Self> {
        read::read(body)
    }
}

impl CompactRequest<'_> {
    /// Checks what the shape alone does not say.
    ///
    /// # Errors
    /// The code to answer with.
    pub fn check(&self) -> Result<(), ErrorCode> {
        if self.host == Host::Other {
            return Err(ErrorCode::HostUnknown);
        }
        if self.profile == Some(Profile::Other) {
            return Err(ErrorCode::ProfileUnknown);
        }
        if !is_id(&self.session) || self.agent.as_ref().is_some_and(|agent| !is_id(agent)) {
            return Err(ErrorCode::InvalidId);
        }
        if !self.transcript.starts_with('/') || self.transcript.contains('\0') {
            return Err(ErrorCode::BadRequest);
        }
        if self.rows.iter().map(|row| row.ids.len()).sum::<usize>() > IDS_MAX {
            return Err(ErrorCode::TooManyIds);
        }
        Ok(())
    }
}

words! {
    /// What the caller should do.
    Outcome {
        /// Apply the decisions; the result is the new context.
        Apply = "apply",
        /// Nothing worth doing: leave the context as it is.
        Skip = "skip",
        /// Apply the decisions, then let the host summarise: they alone do not free enough.
        Escalate = "escalate",
        /// The daemon does not know the session well enough yet: let the host do what it does.
        Unready = "unready",
    }
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompactAnswer<'a> {
    /// Protocol of the answer.
    pub protocol: u32,
    /// Number of this compaction in the daemon's ledger.
    pub compaction: u64,
    /// What the caller should do.
    pub outcome: Outcome,
    /// Why, where it is not plain.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text<'a>>,
    /// How far the pass had to go; absent where nothing was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<Level>,
    /// For each row of the request, in order, the number of the API message it belongs to, so that the
    /// caller can put rows of one message together; `null` where the daemon does not have the row.
    #[serde(default)]
    pub ordinals: Vec<Option<u32>>,
    /// Ids of the request that the daemon does not have: nothing is decided about them.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<Text<'a>>,
    /// What happens to the results that do not stay whole, in the order of the context. Every other
    /// result stays as it is.
    #[serde(borrow, default)]
    pub decisions: Vec<ResultDecision<'a>>,
    /// Assistant texts that are shortened, in the order of the context.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<TextCut>,
    /// Ids of the request whose result holds something that is no text: a caller that can only build
    /// text puts a note in its place ([`compactd_core::note::NON_TEXT`]).
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub opaque: Vec<Text<'a>>,
    /// Texts that the host keeps beside its messages and hands to no plugin (what the person typed while
    /// a tool ran, a skill's body, rules of a folder): a caller that builds the messages anew puts each
    /// behind the row that it stands behind.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<Attached<'a>>,
    /// What a summary should look at, where one is to be made.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<Text<'a>>,
    /// Sums.
    pub counters: Counters,
}

impl CompactAnswer<'_> {
    /// The bytes on the wire, the same as serde's.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        write::write(self)
    }

    /// An answer that leaves everything as it is.
    #[must_use]
    pub fn nothing(compaction: u64, outcome: Outcome, reason: &'static str) -> Self {
        Self {
            protocol: PROTOCOL,
            compaction,
            outcome,
            reason: Some(Text::from(reason)),
            level: None,
            ordinals: Vec::new(),
            unknown: Vec::new(),
            decisions: Vec::new(),
            texts: Vec::new(),
            opaque: Vec::new(),
            attached: Vec::new(),
            focus: None,
            counters: Counters::default(),
        }
    }
}

/// A text that only the host keeps. On the wire `[row, text]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "(u64, Text<'a>)", into = "(u64, Text<'a>)")]
pub struct Attached<'a> {
    /// Place among the request's rows of the row that it stands behind.
    pub row: u64,
    /// The text as the host sends it.
    #[serde(borrow)]
    pub text: Text<'a>,
}

impl<'a> From<(u64, Text<'a>)> for Attached<'a> {
    fn from((row, text): (u64, Text<'a>)) -> Self {
        Self { row, text }
    }
}

impl<'a> From<Attached<'a>> for (u64, Text<'a>) {
    fn from(attached: Attached<'a>) -> Self {
        (attached.row, attached.text)
    }
}

/// What happens to one result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultDecision<'a> {
    /// Id that joins call and result.
    #[serde(borrow)]
    pub id: Text<'a>,
    /// `truncate` or `drop`.
    pub decision: DecisionKind,
    /// The rule that decided.
    #[serde(borrow)]
    pub rule: Text<'a>,
    /// Characters (Unicode scalar values) of the result as the daemon read it. A caller whose text has
    /// another length leaves the result alone.
    pub chars: u64,
    /// `truncate`: characters that go, the first number in the note (the second is `chars`, as is the
    /// one number in the note for `drop`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
    /// `truncate`: where the text is cut, in UTF-16 units as `JavaScript` counts, never inside a pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_utf16: Option<u64>,
    /// What becomes of the call.
    pub call: CallFate,
    /// `call: shortened`: which parts of its input are cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves: Vec<LeafCut>,
}

/// Where one string of a call's input is cut. On the wire an array of its four numbers, in this order:
/// an answer may hold thousands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[u64; 4]", into = "[u64; 4]")]
pub struct LeafCut {
    /// Its place among the strings and numbers of the input, from 0, in the order of the transcript.
    pub leaf: u64,
    /// Its whole length in UTF-16 units; a caller that finds another length leaves the call alone.
    pub utf16: u64,
    /// Where it is cut, in UTF-16 units.
    pub cut_utf16: u64,
    /// Characters that go: the number in its note.
    pub removed: u64,
}

impl From<[u64; 4]> for LeafCut {
    fn from([leaf, utf16, cut_utf16, removed]: [u64; 4]) -> Self {
        Self { leaf, utf16, cut_utf16, removed }
    }
}

impl From<LeafCut> for [u64; 4] {
    fn from(cut: LeafCut) -> Self {
        [cut.leaf, cut.utf16, cut.cut_utf16, cut.removed]
    }
}

/// Where the text of one assistant row is cut. On the wire an array of its three numbers, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[u64; 3]", into = "[u64; 3]")]
pub struct TextCut {
    /// The row, by its place among the rows of the request, from 0.
    pub row: u64,
    /// Characters (Unicode scalar values) of its text; a caller that finds another length leaves it alone.
    pub chars: u64,
    /// So many of them stay, and a note behind them.
    pub keep: u64,
}

impl From<[u64; 3]> for TextCut {
    fn from([row, chars, keep]: [u64; 3]) -> Self {
        Self { row, chars, keep }
    }
}

impl From<TextCut> for [u64; 3] {
    fn from(cut: TextCut) -> Self {
        [cut.row, cut.chars, cut.keep]
    }
}

/// Sums over the results of a context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Results looked at.
    pub results: u64,
    /// That stay whole.
    pub kept: u64,
    /// That are cut.
    pub truncated: u64,
    /// That go.
    pub dropped: u64,
    /// Characters of the context before.
    pub chars_before: u64,
    /// And after.
    pub chars_after: u64,
    /// Tokens of the context before: the host's count, else an estimate.
    pub tokens_before: u64,
    /// And after: less what the removed characters are estimated at.
    pub tokens_after: u64,
    /// Tokens that may be left, where window or threshold are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// Time that the decision took, in microseconds.
    pub micros: u64,
}

fn is_empty(text: &Text<'_>) -> bool {
    text.as_str().is_empty()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> CompactRequest<'_> {
        serde_json::from_str(text).unwrap()
    }

    const SMALL: &str = r#"{"host":"claude","session":"s","transcript":"/t","trigger":"auto","rows":[
        {"row":"u","role":"assistant","ids":["toolu_1"],"new":{"deep":[1]}}],"newer":true}"#;

    #[test]
    fn borrows_and_ignores_the_unknown() {
        let request = request(SMALL);
        assert!(request.session.is_borrowed() && request.rows[0].row.is_borrowed());
        assert!(request.rows[0].ids[0].is_borrowed());
        assert_eq!((request.rows[0].chars, request.rows[0].is_error), (0, false));
        assert_eq!(request.check(), Ok(()));
        assert!(!serde_json::to_string(&request).unwrap().contains("is_error"));
    }

    #[test]
    fn reads_by_hand_what_serde_reads() {
        let head = r#"{"host":"claude","session":"s","transcript":"/t","trigger":"auto","agent":"a","instructions":"say \"x\"","usage":{"tokens":5,"window":9},"threshold":7,"profile":"reference","rows":["#;
        let rows = [
            r#"{"row":"u1","role":"assistant","ids":["toolu_1","toolu_2"],"chars":12}"#,
            r#"{"role":"user","ids":["toolu_é"],"chars":0,"is_error":true}"#,
            r#"{"row":"u3","role":"user"}"#,
        ];
        let body = format!("{head}{}]}}", rows.join(","));
        let read = CompactRequest::from_usual(body.as_bytes()).unwrap();
        assert_eq!(read, request(&body));
        assert!(read.rows[0].row.is_borrowed() && read.rows[0].ids[1].is_borrowed());
        // What is written otherwise is left to serde, right or wrong.
        for (from, to) in [
            ("u1", r"u\n"),
            ("\"chars\":12", "\"chars\":012"),
            ("\"chars\":12", "\"chars\":-1"),
            ("\"chars\":12", "\"chars\":99999999999999999999"),
            ("\"chars\":12", "\"new\":12"),
            ("12}", "12} "),
            ("\"user\"}]}", "\"user\"}],\"rows\":[]}"),
            ("\"user\"}]}", "\"user\"}]}}"),
            ("\"user\"}]}", "\"user\"},]}"),
            ("\"assistant\"", "\"robot\""),
            ("\"host\":", "\"deep\":{\"a\":1,\"rows\":[]},\"host\":"),
            ("\"s\"", "7"),
        ] {
            let other = body.replacen(from, to, 1);
            assert_ne!(other, body);
            assert!(CompactRequest::from_usual(other.as_bytes()).is_none(), "{other}");
        }
        for end in 0..body.len() {
            assert!(CompactRequest::from_usual(&body.as_bytes()[..end]).is_none());
        }
    }

    #[test]
    fn writes_by_hand_what_serde_writes() {
        let decision = |id: &'static str, decision, removed, cut_utf16, leaves| ResultDecision {
            id: Text::from(id),
            decision,
            rule: Text::from("unreferenced"),
            chars: 1_234_567_890,
            removed,
            cut_utf16,
            call: CallFate::Kept,
            leaves,
        };
        let leaf = LeafCut { leaf: 0, utf16: u64::MAX, cut_utf16: 10, removed: 100 };
        let mut answer = CompactAnswer::nothing(7, Outcome::Escalate, "too \"little\"");
        answer.counters = Counters { results: 3, chars_before: u64::MAX, ..Counters::default() };
        assert_eq!(answer.to_json(), serde_json::to_vec(&answer).unwrap());
        answer.reason = None;
        answer.level = Some(Level::Texts);
        answer.counters.budget = Some(9_007_199);
        answer.opaque = vec![Text::from("é\\"), Text::from("b")];
        answer.focus = Some(Text::from("line\n"));
        answer.attached = vec![Attached { row: 3, text: Text::from("stop\n") }];
        answer.texts = vec![TextCut { row: 0, chars: 1_000, keep: 500 }];
        assert_eq!(answer.to_json(), serde_json::to_vec(&answer).unwrap());
        answer.texts.push(TextCut { row: 7, chars: u64::MAX, keep: 200 });
        answer.ordinals = vec![None, Some(0), Some(u32::MAX)];
        answer.unknown = vec![Text::from("a\n"), Text::from("é")];
        answer.decisions = vec![
            decision("a\"\\b\u{1}", DecisionKind::Drop, None, None, vec![]),
            decision("b", DecisionKind::Truncate, Some(9), Some(200), vec![leaf, leaf]),
            decision("c", DecisionKind::Drop, None, None, vec![leaf]),
        ];
        assert_eq!(answer.to_json(), serde_json::to_vec(&answer).unwrap());
    }

    #[test]
    fn checks() {
        let check = |from: &str, to: &str| request(&SMALL.replace(from, to)).check().unwrap_err();
        assert_eq!(check("\"claude\"", "\"zed\""), ErrorCode::HostUnknown);
        assert_eq!(check("\"s\"", "\"../s\""), ErrorCode::InvalidId);
        assert_eq!(check("\"rows\"", "\"agent\":\"a/b\",\"rows\""), ErrorCode::InvalidId);
        assert_eq!(check("\"rows\"", "\"profile\":\"x\",\"rows\""), ErrorCode::ProfileUnknown);
        assert_eq!(check("\"/t\"", "\"t\""), ErrorCode::BadRequest);
        assert_eq!(check("\"/t\"", "\"/t\\u0000\""), ErrorCode::BadRequest);
        let ids = vec!["\"x\""; IDS_MAX + 1].join(",");
        assert_eq!(check("\"toolu_1\"", &ids), ErrorCode::TooManyIds);
    }

    #[test]
    fn a_lone_surrogate_does_not_fail_the_request() {
        let text = SMALL.replace("\"rows\"", r#""instructions":"\ud83d keep ports","rows""#);
        assert!(request(&text).instructions.unwrap().ends_with("keep ports"));
    }
}
