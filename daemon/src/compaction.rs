//! The answer to a compaction request: the caller's rows joined with the index and the ladder.

use std::collections::HashMap;

use compactd_api::compact::{
    CompactAnswer, CompactRequest, Counters, LeafCut, Outcome, ResultDecision,
};
use compactd_api::{PROTOCOL, Role, Text, Trigger, convert};
use compactd_core::hash::hash;
use compactd_core::index::{History, Index};
use compactd_core::record::Host;
use compactd_core::rules::{Decided, Decision, Pass, Pins, Profile, tokens_estimate};

/// Answers a request from a settled index. Costs the number of rows and results, nothing of the
/// session's bytes.
#[must_use]
pub fn answer<'a>(
    index: &'a Index,
    request: &CompactRequest<'a>,
    profile: Profile,
    pins: &Pins,
) -> CompactAnswer<'a> {
    let number = index.facts().compactions + 1;
    if request.trigger == Trigger::Precompute {
        let reason = "decided in a moment when it is needed, not ahead";
        return CompactAnswer::nothing(number, Outcome::Skip, reason);
    }
    let pass = index.pass(History::Context, profile, pins);
    let mut join = Join::new(&pass);
    let mut answer = CompactAnswer {
        protocol: PROTOCOL,
        compaction: number,
        outcome: Outcome::Apply,
        reason: None,
        ordinals: Vec::with_capacity(request.rows.len()),
        unknown: Vec::new(),
        decisions: Vec::new(),
        counters: Counters::default(),
    };
    let mut freed = 0_i64;
    for row in &request.rows {
        let mut message = join.message(row.row.as_str());
        for id in &row.ids {
            match row.role {
                Role::Assistant => {
                    if !join.has_call(id) {
                        answer.unknown.push(id.clone());
                    }
                }
                Role::User | Role::Other => match join.result(id) {
                    Some(decided) => {
                        message = message.or(Some(decided.message));
                        // What the caller holds for an error is one, whatever the transcript says.
                        let keep = row.is_error && decided.ruling.decision != Decision::Keep;
                        count(&mut answer.counters, &decided, keep);
                        if decided.ruling.decision != Decision::Keep && !keep {
                            freed += decided.freed_chars;
                            answer.decisions.push(decision(&decided));
                        }
                    }
                    None => answer.unknown.push(id.clone()),
                },
            }
        }
        answer.ordinals.push(message);
    }
    let chars_before = request.rows.iter().map(|row| row.chars).sum::<u64>();
    sums(&mut answer.counters, index.host(), chars_before, freed);
    judge(&mut answer, index, request);
    answer
}

/// Joins the caller's rows with the context. Both come in the same order almost always, so the next
/// one is tried first; a map is made only for a caller whose order is another.
struct Join<'p, 'a> {
    pass: &'p Pass<'a>,
    rows: Vec<(u64, u32)>,
    next_row: usize,
    by_row: Option<HashMap<u64, u32>>,
    next_result: usize,
    next_call: usize,
}

impl<'p, 'a> Join<'p, 'a> {
    fn new(pass: &'p Pass<'a>) -> Self {
        let rows = pass.rows().collect();
        Self { pass, rows, next_row: 0, by_row: None, next_result: 0, next_call: 0 }
    }

    /// Number of the API message of the row with this handle.
    fn message(&mut self, handle: &str) -> Option<u32> {
        if handle.is_empty() {
            return None;
        }
        let wanted = hash(handle.as_bytes()).max(2);
        let rows = &self.rows;
        for (at, &(row, message)) in rows.iter().enumerate().skip(self.next_row).take(4) {
            if row == wanted {
                self.next_row = at + 1;
                return Some(message);
            }
        }
        let by_row = self.by_row.get_or_insert_with(|| rows.iter().copied().collect());
        by_row.get(&wanted).copied()
    }

    fn result(&mut self, id: &str) -> Option<Decided<'a>> {
        let ordinal = if self.pass.id(self.next_result) == Some(id) {
            self.next_result
        } else {
            self.pass.ordinal(id)?
        };
        self.next_result = ordinal + 1;
        self.pass.get(ordinal)
    }

    fn has_call(&mut self, id: &str) -> bool {
        if self.pass.id(self.next_call) == Some(id) {
            self.next_call += 1;
            return true;
        }
        match self.pass.ordinal(id) {
            Some(ordinal) => {
                self.next_call = ordinal + 1;
                true
            }
            None => self.pass.has_call(id),
        }
    }
}

fn decision<'a>(decided: &Decided<'a>) -> ResultDecision<'a> {
    let truncate = decided.ruling.decision == Decision::Truncate;
    ResultDecision {
        id: Text::from(decided.id),
        decision: decided.ruling.decision.into(),
        rule: Text::from(decided.ruling.rule.name()),
        chars: u64::from(decided.chars),
        removed: truncate.then_some(u64::from(decided.removed_chars)),
        cut_utf16: truncate.then_some(u64::from(decided.cut_utf16)),
        call: decided.call.into(),
        leaves: decided
            .leaves
            .iter()
            .map(|leaf| LeafCut {
                leaf: u64::from(leaf.leaf),
                utf16: u64::from(leaf.utf16),
                cut_utf16: u64::from(leaf.cut_utf16),
                removed: u64::from(leaf.removed),
            })
            .collect(),
    }
}

fn count(counters: &mut Counters, decided: &Decided<'_>, keep: bool) {
    counters.results += 1;
    match decided.ruling.decision {
        Decision::Truncate if !keep => counters.truncated += 1,
        Decision::Drop if !keep => counters.dropped += 1,
        _ => counters.kept += 1,
    }
}

fn sums(counters: &mut Counters, host: Host, chars_before: u64, freed: i64) {
    counters.chars_before = chars_before;
    counters.chars_after = chars_before.saturating_add_signed(-freed);
    counters.tokens_before = tokens_estimate(host, counters.chars_before);
    counters.tokens_after = tokens_estimate(host, counters.chars_after);
}

/// Whether the decisions are worth applying, and whether they are enough.
fn judge(answer: &mut CompactAnswer<'_>, index: &Index, request: &CompactRequest<'_>) {
    let counters = &answer.counters;
    let freed = counters.chars_before.saturating_sub(counters.chars_after);
    #[expect(clippy::cast_precision_loss, reason = "a ratio for comparison with a setting")]
    let fraction = freed as f64 / counters.chars_before.max(1) as f64;
    let too_little =
        answer.decisions.is_empty() || fraction < index.settings().min_removal_fraction;
    let manual = matches!(request.trigger, Trigger::Manual | Trigger::Plugin);
    if too_little && manual {
        answer.outcome = Outcome::Skip;
        answer.reason = Some(Text::from(format!(
            "{} of {} results could go, {:.1}% of the context: not worth a pass",
            answer.decisions.len(),
            counters.results,
            fraction * 100.0
        )));
        answer.decisions.clear();
    } else if too_little {
        // Never a no-op on an automatic compaction: the host would ask again at once.
        answer.outcome = Outcome::Escalate;
        answer.reason = Some(Text::from("the rules free too little"));
    } else if let Some(left) = tokens_left(index.host(), freed, request)
        && let Some(budget) = budget(request)
        && left > budget
    {
        answer.outcome = Outcome::Escalate;
        let reason = format!("about {left} tokens would be left, the budget is {budget}");
        answer.reason = Some(Text::from(reason));
    }
}

/// min(60% of the window, 90% of the host's own threshold), of what is known.
fn budget(request: &CompactRequest<'_>) -> Option<u64> {
    let window = request.usage.and_then(|usage| usage.window).map(|window| window * 6 / 10);
    let threshold = request.threshold.map(|threshold| threshold * 9 / 10);
    match (window, threshold) {
        (Some(window), Some(threshold)) => Some(window.min(threshold)),
        (window, threshold) => window.or(threshold),
    }
}

fn tokens_left(host: Host, freed_chars: u64, request: &CompactRequest<'_>) -> Option<u64> {
    let tokens = request.usage?.tokens;
    Some(tokens.saturating_sub(tokens_estimate(host, freed_chars)))
}

/// The profile that a request asks for, else the configured one.
#[must_use]
pub fn profile(request: &CompactRequest<'_>, configured: Profile) -> Profile {
    request.profile.and_then(convert::profile).unwrap_or(configured)
}
