//! The answer to a compaction request: the caller's rows joined with the index, the ladder, and what
//! goes beside that over the budget.

use std::collections::HashMap;

use compactd_api::compact::{
    Attached, CompactAnswer, CompactRequest, Counters, LeafCut, Outcome, ResultDecision, TextCut,
};
use compactd_api::{PROTOCOL, Role, Text, Trigger, convert};
use compactd_core::escalate::{self, Escalation, Held, Level, Occasion, Sizes, Verdict};
use compactd_core::hash::hash;
use compactd_core::index::{History, Index};
use compactd_core::rules::{Decided, Decision, Pass, Pins, Profile};
use compactd_core::tokens::Ratio;

/// Answers a request from a settled index. Costs the number of rows and results, nothing of the
/// session's bytes. `refilled`: the context was full again right after a pass of ours. `kept`: texts that
/// were read for it, see [`wanted`].
#[must_use]
pub fn answer<'a>(
    index: &'a Index,
    request: &CompactRequest<'a>,
    profile: Profile,
    pins: &Pins,
    refilled: bool,
    kept: Option<&Beside>,
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
        level: None,
        ordinals: Vec::with_capacity(request.rows.len()),
        unknown: Vec::new(),
        decisions: Vec::new(),
        texts: Vec::new(),
        opaque: Vec::new(),
        attached: Vec::new(),
        focus: None,
        counters: Counters::default(),
    };
    let mut held = Held::default();
    // Rows of the model: their place in the context, and in the request.
    let mut spoken: Vec<(u32, u32)> = Vec::new();
    let mut places: Vec<(usize, u64)> = Vec::new();
    for (at, row) in request.rows.iter().enumerate() {
        let place = join.place(row.row.as_str());
        let mut message = place.map(|(_, message)| message);
        if kept.is_some() {
            places.extend(place.map(|(place, _)| (place, at as u64)));
        }
        if let (Some((place, _)), Role::Assistant) = (place, row.role) {
            spoken.extend(u32::try_from(place).ok().zip(u32::try_from(at).ok()));
        }
        for id in &row.ids {
            match row.role {
                Role::Assistant => {
                    if !join.has_call(id) {
                        answer.unknown.push(id.clone());
                    }
                }
                Role::User | Role::Other => match join.result(id) {
                    Some((ordinal, decided)) => {
                        message = message.or(Some(decided.message));
                        count(&mut answer.counters, &decided, row.is_error);
                        if pass.is_opaque(ordinal) {
                            answer.opaque.push(id.clone());
                        }
                        // What the caller holds for an error is one, whatever the transcript says.
                        if !row.is_error {
                            held.add(ordinal, &decided);
                            if decided.ruling.decision != Decision::Keep {
                                answer.decisions.push(decision(&decided));
                            }
                        }
                    }
                    None => answer.unknown.push(id.clone()),
                },
            }
        }
        answer.ordinals.push(message);
    }
    // The oldest first.
    spoken.sort_unstable();
    spoken.dedup_by_key(|(place, _)| *place);
    held.rows.extend(spoken.iter().map(|(place, _)| *place));
    let sizes = sizes(request, index.ratio());
    let occasion = Occasion {
        automatic: !matches!(request.trigger, Trigger::Manual | Trigger::Plugin),
        refilled,
    };
    let escalation = escalate::escalate(&pass, &held, &sizes, occasion);
    judge(&mut answer, &escalation, &sizes);
    if let Some(kept) = kept {
        attach(&mut answer, &pass, kept, &places);
    }
    add(&mut answer, &escalation, &held, &spoken);
    sums(&mut answer, &escalation, &sizes);
    answer
}

/// What is read from the transcript for an answer, beside the index.
#[derive(Debug, Default)]
pub struct Beside {
    /// Texts of the rows that [`wanted`] names, by where they start.
    pub attached: HashMap<u64, String>,
    /// The focus text, where there is one.
    pub focus: Option<String>,
}

/// Where the rows start whose texts an answer has to carry: the host keeps them beside its messages.
#[must_use]
pub fn wanted(index: &Index) -> Vec<u64> {
    let pass = index.pass(History::Context, Profile::default(), &Pins::default());
    pass.attached().map(|(offset, _)| offset).collect()
}

/// Adds the texts that only the host keeps, each behind the row that it stands behind. One that could
/// not be read makes the answer one that leaves everything to the host: nothing may be lost.
fn attach(answer: &mut CompactAnswer<'_>, pass: &Pass<'_>, kept: &Beside, places: &[(usize, u64)]) {
    let mut places = places.to_vec();
    places.sort_unstable();
    for (offset, place) in pass.attached() {
        let behind = places.partition_point(|&(own, _)| own <= place as usize).checked_sub(1);
        let row = behind.and_then(|at| places.get(at)).map_or(0, |&(_, row)| row);
        let Some(text) = kept.attached.get(&offset) else {
            let reason = "a text that only the host keeps cannot be read";
            *answer = CompactAnswer::nothing(answer.compaction, Outcome::Unready, reason);
            return;
        };
        answer.attached.push(Attached { row, text: Text::from(text.clone()) });
    }
    if answer.outcome == Outcome::Escalate {
        answer.focus = kept.focus.clone().map(Text::from);
    }
}

/// Joins the caller's rows with the context. Both come in the same order almost always, so the next
/// one is tried first; a map is made only for a caller whose order is another.
struct Join<'p, 'a> {
    pass: &'p Pass<'a>,
    rows: Vec<(u64, u32)>,
    next_row: usize,
    by_row: Option<HashMap<u64, (usize, u32)>>,
    next_result: usize,
    next_call: usize,
}

impl<'p, 'a> Join<'p, 'a> {
    fn new(pass: &'p Pass<'a>) -> Self {
        let rows = pass.rows().collect();
        Self { pass, rows, next_row: 0, by_row: None, next_result: 0, next_call: 0 }
    }

    /// Place in the context of the row with this handle, and number of its API message.
    fn place(&mut self, handle: &str) -> Option<(usize, u32)> {
        if handle.is_empty() {
            return None;
        }
        let wanted = hash(handle.as_bytes()).max(2);
        let rows = &self.rows;
        for (at, &(row, message)) in rows.iter().enumerate().skip(self.next_row).take(4) {
            if row == wanted {
                self.next_row = at + 1;
                return Some((at, message));
            }
        }
        let by_row = self.by_row.get_or_insert_with(|| {
            let place = |(at, &(row, message)): (usize, &(u64, u32))| (row, (at, message));
            rows.iter().enumerate().map(place).collect()
        });
        by_row.get(&wanted).copied()
    }

    fn result(&mut self, id: &str) -> Option<(usize, Decided<'a>)> {
        let ordinal = if self.pass.id(self.next_result) == Some(id) {
            self.next_result
        } else {
            self.pass.ordinal(id)?
        };
        self.next_result = ordinal + 1;
        Some((ordinal, self.pass.get(ordinal)?))
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

fn sizes(request: &CompactRequest<'_>, ratio: Ratio) -> Sizes {
    let window = request.usage.and_then(|usage| usage.window);
    Sizes {
        ratio,
        chars: request.rows.iter().map(|row| row.chars).sum(),
        tokens: request.usage.and_then(|usage| usage.tokens),
        window,
        budget: escalate::budget(window, request.threshold),
    }
}

/// What the caller should do, and why where it is not plain.
fn judge(answer: &mut CompactAnswer<'_>, escalation: &Escalation<'_>, sizes: &Sizes) {
    let left = escalation.left;
    let target = escalation.target.unwrap_or_default();
    answer.level = Some(escalation.level.into());
    match (escalation.verdict, escalation.level) {
        (Verdict::Apply, Level::Rules) => {}
        (Verdict::Apply, _) => {
            answer.reason = Some(Text::from(format!(
                "the rules alone leave more than {target} tokens: {} more results and {} texts go",
                escalation.results.len(),
                escalation.texts.len()
            )));
        }
        (Verdict::Skip, _) => {
            #[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
            let fraction = escalation.freed as f64 / sizes.chars.max(1) as f64;
            answer.outcome = Outcome::Skip;
            answer.level = None;
            let (gone, results) = (answer.decisions.len(), answer.counters.results);
            answer.reason = Some(Text::from(match gone {
                0 => format!(
                    "nothing to remove: each of the {results} tool results was used later, \
                     is new, or is protected"
                ),
                _ => format!(
                    "{gone} of {results} results could go, {:.1}% of the context: not worth a pass",
                    fraction * 100.0
                ),
            }));
            answer.decisions.clear();
        }
        (Verdict::Escalate, _) => {
            answer.outcome = Outcome::Escalate;
            answer.reason = Some(Text::from(if left > target {
                format!("about {left} tokens would be left, the aim is {target}")
            } else {
                "the context was full again right after a pass".to_owned()
            }));
        }
    }
}

/// Adds what goes beside what the ladder takes.
fn add<'a>(
    answer: &mut CompactAnswer<'a>,
    escalation: &Escalation<'a>,
    held: &Held,
    spoken: &[(u32, u32)],
) {
    let counters = &mut answer.counters;
    for (_, decided) in &escalation.results {
        counters.kept = counters.kept.saturating_sub(1);
        match decided.ruling.decision {
            Decision::Truncate => counters.truncated += 1,
            Decision::Drop => counters.dropped += 1,
            Decision::Keep => {}
        }
    }
    if !escalation.results.is_empty() {
        let ladder = held.gone.iter().copied().zip(std::mem::take(&mut answer.decisions));
        let more = escalation.results.iter().map(|(ordinal, cut)| (*ordinal, decision(cut)));
        let mut all: Vec<_> = ladder.chain(more).collect();
        all.sort_by_key(|(ordinal, _)| *ordinal);
        answer.decisions = all.into_iter().map(|(_, decision)| decision).collect();
    }
    for text in &escalation.texts {
        let Ok(at) = spoken.binary_search_by_key(&text.row, |(place, _)| *place) else { continue };
        let Some(&(_, row)) = spoken.get(at) else { continue };
        let (chars, keep) = (u64::from(text.chars), u64::from(text.keep));
        answer.texts.push(TextCut { row: u64::from(row), chars, keep });
    }
}

fn sums(answer: &mut CompactAnswer<'_>, escalation: &Escalation<'_>, sizes: &Sizes) {
    let counters = &mut answer.counters;
    counters.chars_before = sizes.chars;
    counters.chars_after = sizes.chars.saturating_add_signed(escalation.freed.saturating_neg());
    let (before, after) =
        (sizes.ratio.tokens(sizes.chars), sizes.ratio.tokens(counters.chars_after));
    counters.tokens_before = sizes.tokens.unwrap_or(before);
    counters.tokens_after = counters.tokens_before.saturating_sub(before.saturating_sub(after));
    counters.budget = sizes.budget;
}

/// The profile that a request asks for, else the configured one.
#[must_use]
pub fn profile(request: &CompactRequest<'_>, configured: Profile) -> Profile {
    request.profile.and_then(convert::profile).unwrap_or(configured)
}
