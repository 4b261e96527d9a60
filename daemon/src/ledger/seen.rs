//! What is taken along from an answer for the ledger: owned numbers, as few copies as possible, because
//! the session's lock is held meanwhile. The words are made on the ledger's thread.

use std::collections::HashMap;
use std::time::SystemTime;

use compactd_api::compact::{CompactAnswer, CompactRequest, Counters, Outcome, ResultDecision};
use compactd_api::passes::{KeptPass, Pass, PassItem, PassResult, PassState};
use compactd_api::{CallFate, DecisionKind, Level, Profile, Trigger};
use compactd_core::index::{History, Index};
use compactd_core::rules::{self, Decision, Pins, Ruling};

use crate::sessions::SessionKey;
use crate::time::rfc3339;

/// Every result of a context and what was decided about it.
#[derive(Debug, Default)]
pub struct Seen {
    /// Ids and tools, one behind the other.
    names: String,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    id_end: usize,
    tool_end: usize,
    chars: u32,
    ruling: Ruling,
    call: rules::CallFate,
    answer: InAnswer,
}

/// What the answer says about a result.
#[derive(Debug)]
enum InAnswer {
    /// The same as the rules.
    Same,
    /// Nothing: it stays whole.
    Kept,
    /// Something that goes further than the rules.
    Other { decision: DecisionKind, call: CallFate, rule: String },
}

impl Seen {
    /// Takes everything along. Costs the number of results.
    #[must_use]
    pub fn of(
        index: &Index,
        profile: rules::Profile,
        pins: &Pins,
        answer: &CompactAnswer<'_>,
    ) -> Self {
        let pass = index.pass(History::Context, profile, pins);
        // About as many bytes as ids and names of tools have.
        let names = String::with_capacity(pass.len() * 40);
        let mut seen = Self { names, rows: Vec::with_capacity(pass.len()) };
        let mut next = answer.decisions.iter().peekable();
        let mut matched = 0;
        for decided in pass.iter() {
            let made = next.next_if(|made| made.id.as_str() == decided.id);
            matched += usize::from(made.is_some());
            seen.names.push_str(decided.id);
            let id_end = seen.names.len();
            seen.names.push_str(decided.tool);
            seen.rows.push(Row {
                id_end,
                tool_end: seen.names.len(),
                chars: decided.chars,
                ruling: decided.ruling,
                call: decided.call,
                answer: in_answer(decided.ruling, made),
            });
        }
        if matched < answer.decisions.len() {
            seen.match_by_id(answer);
        }
        seen
    }

    /// The decisions came in another order than the context.
    fn match_by_id(&mut self, answer: &CompactAnswer<'_>) {
        let made: HashMap<&str, &ResultDecision<'_>> =
            answer.decisions.iter().map(|made| (made.id.as_str(), made)).collect();
        let mut start = 0;
        for row in &mut self.rows {
            let id = self.names.get(start..row.id_end).unwrap_or_default();
            row.answer = in_answer(row.ruling, made.get(id).copied());
            start = row.tool_end;
        }
    }

    fn results(&self, outcome: Outcome) -> Vec<PassResult> {
        let mut start = 0;
        let result = |row: &Row| {
            let id = self.names.get(start..row.id_end).unwrap_or_default().to_owned();
            let tool = self.names.get(row.id_end..row.tool_end).unwrap_or_default().to_owned();
            start = row.tool_end;
            let (decision, call, rule, reason) = match &row.answer {
                InAnswer::Same => (
                    row.ruling.decision.into(),
                    row.call.into(),
                    row.ruling.rule.name().to_owned(),
                    row.ruling.reason.text(),
                ),
                InAnswer::Kept => {
                    let reason = match outcome {
                        Outcome::Skip => "too little could go: the pass was skipped",
                        _ => "the host holds it for an error, or did not name it",
                    };
                    let rule = row.ruling.rule.name().to_owned();
                    (DecisionKind::Keep, CallFate::Kept, rule, reason.to_owned())
                }
                InAnswer::Other { decision, call, rule } => {
                    let reason = "the rules alone would leave too much".to_owned();
                    (*decision, *call, rule.clone(), reason)
                }
            };
            PassResult { id, tool, chars: u64::from(row.chars), decision, call, rule, reason }
        };
        self.rows.iter().map(result).collect()
    }
}

fn in_answer(ruling: Ruling, made: Option<&ResultDecision<'_>>) -> InAnswer {
    match made {
        None if ruling.decision == Decision::Keep => InAnswer::Same,
        None => InAnswer::Kept,
        Some(made) if made.rule.as_str() == ruling.rule.name() => InAnswer::Same,
        Some(made) => InAnswer::Other {
            decision: made.decision,
            call: made.call,
            rule: made.rule.as_str().to_owned(),
        },
    }
}

/// A compaction that was answered.
#[derive(Debug)]
pub struct Answered {
    /// Whose context it is.
    pub key: SessionKey,
    /// When.
    pub at: SystemTime,
    /// What started it.
    pub trigger: Trigger,
    /// Rules used.
    pub profile: Profile,
    /// Its number.
    pub number: u64,
    /// What the caller was asked to do.
    pub outcome: Outcome,
    /// How far the pass went, where that is more than the rules.
    pub level: Option<String>,
    /// A focus text went along.
    pub focus: bool,
    /// Why the outcome is what it is.
    pub reason: Option<String>,
    /// Sums.
    pub counters: Counters,
    /// The results.
    pub seen: Seen,
}

impl Answered {
    /// Takes along what the ledger needs of an answer. `None` for one that is no pass: nothing was
    /// decided, or ahead of need.
    #[must_use]
    pub fn of(
        key: &SessionKey,
        request: &CompactRequest<'_>,
        answer: &CompactAnswer<'_>,
        profile: rules::Profile,
        seen: Seen,
    ) -> Option<Self> {
        let decides = matches!(answer.outcome, Outcome::Apply | Outcome::Escalate | Outcome::Skip);
        if !decides || request.trigger == Trigger::Precompute {
            return None;
        }
        let level = answer.level.filter(|level| *level != Level::Rules);
        Some(Self {
            key: key.clone(),
            at: SystemTime::now(),
            trigger: request.trigger,
            profile: profile.into(),
            number: answer.compaction,
            outcome: answer.outcome,
            level: level.map(|level| level.name().to_owned()),
            focus: answer.focus.is_some(),
            reason: answer.reason.as_ref().map(|reason| reason.as_str().to_owned()),
            counters: answer.counters,
            seen,
        })
    }

    /// As the ledger keeps it.
    #[must_use]
    pub fn into_kept(self) -> KeptPass {
        let results = self.seen.results(self.outcome);
        let left = results.iter().filter(|result| result.call != CallFate::Removed).count();
        let state = match self.outcome {
            Outcome::Skip => PassState::Left,
            _ => PassState::Answered,
        };
        let item = PassItem {
            number: self.number,
            at: rfc3339(self.at),
            trigger: self.trigger,
            outcome: self.outcome,
            level: self.level,
            profile: self.profile,
            state,
            focus: self.focus,
            reason: self.reason,
            counters: self.counters,
            report: None,
        };
        let pass = Pass { host: self.key.host.into(), session: self.key.id, item, results };
        KeptPass { pass, told: false, asked: false, finished: false, results_after: left as u64 }
    }
}
