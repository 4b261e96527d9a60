//! What goes when the ladder alone does not free enough (`docs/rules.md` §8): further results, then
//! the ends of old assistant texts, then the host's own summary. The size is computed anew after
//! each step; nothing more goes than is needed.
//!
//! Below the budget the cost is a comparison; above it, that of sorting the results in question.

use crate::note;
use crate::rules::{Class, Decided, Decision, Pass, Rule, TextPart, Totals};
use crate::tokens::Ratio;

/// How far a pass had to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The ladder's decisions.
    Rules,
    /// Further results, easy to have again.
    Cuts,
    /// The ends of old assistant texts.
    Texts,
    /// All that, and it is not enough.
    Summary,
}

/// What the caller should do with the decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Apply them.
    Apply,
    /// Leave the context as it is: not worth a pass.
    Skip,
    /// Apply them, and let the host summarise what is left.
    Escalate,
}

/// min(60% of the window, 90% of the host's own threshold), of what is known; in tokens.
#[must_use]
pub fn budget(window: Option<u64>, threshold: Option<u64>) -> Option<u64> {
    let window = window.map(|window| share(window, 60));
    let threshold = threshold.map(|threshold| share(threshold, 90));
    window.into_iter().chain(threshold).min()
}

fn share(of: u64, percent: u64) -> u64 {
    (u128::from(of) * u128::from(percent) / 100).try_into().unwrap_or(u64::MAX)
}

/// How large a context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Characters per token.
    pub ratio: Ratio,
    /// Characters of the rows that the caller holds.
    pub chars: u64,
    /// Tokens of the context as the host counts them.
    pub tokens: Option<u64>,
    /// Tokens that fit.
    pub window: Option<u64>,
    /// Tokens that may be left ([`budget`]).
    pub budget: Option<u64>,
}

impl Sizes {
    /// A context of which only the characters are known.
    #[must_use]
    pub fn of(ratio: Ratio, chars: u64) -> Self {
        Self { ratio, chars, tokens: None, window: None, budget: None }
    }

    /// Measured size in tokens once so many characters are freed.
    #[must_use]
    pub fn left(&self, freed: i64) -> u64 {
        self.ratio.tokens(self.chars.saturating_add_signed(freed.saturating_neg()))
            + self.overhead()
    }

    /// What the host adds beside the messages: what its count has above the estimate, at most a
    /// quarter of the window.
    fn overhead(&self) -> u64 {
        let (Some(tokens), Some(window)) = (self.tokens, self.window) else { return 0 };
        tokens.saturating_sub(self.ratio.tokens(self.chars)).min(share(window, 25))
    }
}

/// Why a pass is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Occasion {
    /// The host asks because its context is full: doing nothing would make it ask again at once.
    pub automatic: bool,
    /// It was full again right after a pass of ours.
    pub refilled: bool,
}

/// The part of a context that a caller holds, after the ladder.
#[derive(Debug, Clone, Default)]
pub struct Held {
    /// Ordinals of results that the ladder shortens or takes away, in order.
    pub gone: Vec<u32>,
    /// Ordinals of results that stay and may be asked for more, in order.
    pub open: Vec<u32>,
    /// Ordinals of results that stay and are no longer than a note in their place.
    pub tight: Vec<u32>,
    /// Places of rows among [`Pass::rows`], in order.
    pub rows: Vec<u32>,
    /// Characters that the ladder frees.
    pub freed: i64,
}

impl Held {
    /// Adds a result with the ladder's decision.
    pub fn add(&mut self, ordinal: usize, decided: &Decided<'_>) {
        let Ok(ordinal) = u32::try_from(ordinal) else { return };
        if decided.ruling.decision != Decision::Keep {
            self.gone.push(ordinal);
            self.freed += decided.freed_chars;
            return;
        }
        if decided.ruling.is_open() {
            self.open.push(ordinal);
        }
        let short = i64::from(decided.chars) <= note::dropped_chars(decided.chars);
        if short && decided.ruling.rule != Rule::Noted {
            self.tight.push(ordinal);
        }
    }

    /// All of a context.
    #[must_use]
    pub fn whole(pass: &Pass<'_>) -> Self {
        let mut held = Self::default();
        for (ordinal, decided) in pass.iter().enumerate() {
            held.add(ordinal, &decided);
        }
        held.rows = (0..pass.rows().count()).filter_map(|at| u32::try_from(at).ok()).collect();
        held
    }
}

/// One text that is shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextCut {
    /// Place of its row among [`Pass::rows`].
    pub row: u32,
    /// Its characters.
    pub chars: u32,
    /// So many of them stay.
    pub keep: u32,
}

/// What goes beside what the ladder takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Escalation<'a> {
    /// What to do with all of it.
    pub verdict: Verdict,
    /// How far it went.
    pub level: Level,
    /// Further results by ordinal, in the order of the context.
    pub results: Vec<(u32, Decided<'a>)>,
    /// Shortened texts, in the order of the context.
    pub texts: Vec<TextCut>,
    /// Characters that all decisions free, the ladder's too.
    pub freed: i64,
    /// Measured size that is left, in tokens.
    pub left: u64,
    /// What was to be reached, if anything was.
    pub target: Option<u64>,
}

/// Decides what goes beside what the ladder takes.
#[must_use]
pub fn escalate<'a>(
    pass: &Pass<'a>,
    held: &Held,
    sizes: &Sizes,
    occasion: Occasion,
) -> Escalation<'a> {
    let size = |freed: i64| sizes.left(freed);
    let left = size(held.freed);
    let mut out = Escalation {
        verdict: Verdict::Apply,
        level: Level::Rules,
        results: Vec::new(),
        texts: Vec::new(),
        freed: held.freed,
        left,
        target: None,
    };
    let too_little = held.gone.is_empty()
        || fraction(held.freed, sizes.chars) < pass.settings().min_removal_fraction;
    let above = sizes.budget.filter(|budget| left > *budget);
    let must = (occasion.automatic && too_little) || occasion.refilled;
    if above.is_none() && !must {
        out.verdict = if too_little { Verdict::Skip } else { Verdict::Apply };
        return out;
    }
    // A pass that has to free something frees a tenth at least.
    let tenth = must.then(|| share(size(0), 90));
    let target = sizes.budget.into_iter().chain(tenth).min().unwrap_or(u64::MAX);
    out.target = Some(target);
    cuts(pass, held, &mut out, |freed| size(freed) <= target);
    if size(out.freed) > target {
        texts(pass, held, &mut out, |freed| size(freed) <= target);
    }
    out.left = size(out.freed);
    if out.left > target || occasion.refilled {
        (out.level, out.verdict) = (Level::Summary, Verdict::Escalate);
    }
    out
}

/// Results that the ladder lets stay, class by class, the oldest first.
fn cuts<'a>(pass: &Pass<'a>, held: &Held, out: &mut Escalation<'a>, enough: impl Fn(i64) -> bool) {
    if enough(out.freed) {
        return;
    }
    // What keeps the input of a call whole has to stay: without it the call could be shortened, and
    // the next pass might find that its result, which stays for want of gain, can go.
    let mut needed: Vec<u32> =
        held.tight.iter().flat_map(|&at| pass.borne_by_call(at as usize)).copied().collect();
    needed.sort_unstable();
    let class = |&ordinal: &u32| {
        let class = pass.class(ordinal as usize)?;
        needed.binary_search(&ordinal).is_err().then_some((class, ordinal))
    };
    let mut candidates: Vec<(Class, u32)> = held.open.iter().filter_map(class).collect();
    candidates.sort_unstable();
    candidates.dedup();
    for (_, ordinal) in candidates {
        let Some(decided) = pass.over_budget(ordinal as usize) else { continue };
        out.level = Level::Cuts;
        out.freed += decided.freed_chars;
        out.results.push((ordinal, decided));
        if enough(out.freed) {
            break;
        }
    }
    out.results.sort_unstable_by_key(|(ordinal, _)| *ordinal);
}

/// The ends of old assistant texts, the oldest first.
fn texts(pass: &Pass<'_>, held: &Held, out: &mut Escalation<'_>, enough: impl Fn(i64) -> bool) {
    // What goes is no reason any more to leave a text alone.
    let mut gone = vec![false; pass.len()];
    let cut = out.results.iter().map(|(ordinal, _)| ordinal);
    for &ordinal in held.gone.iter().chain(cut) {
        if let Some(slot) = gone.get_mut(ordinal as usize) {
            *slot = true;
        }
    }
    for &row in &held.rows {
        let Some(text) = pass.text(row as usize) else { continue };
        let bears = |&ordinal: &u32| {
            let ordinal = ordinal as usize;
            !gone.get(ordinal).copied().unwrap_or(false) && pass.rests_on_uses(ordinal)
        };
        if pass.borne_by_text(&text).iter().any(bears) {
            continue;
        }
        let TextPart { chars, keep, .. } = text;
        out.level = Level::Texts;
        out.freed += text.freed_chars();
        out.texts.push(TextCut { row, chars, keep });
        if enough(out.freed) {
            break;
        }
    }
}

/// Sums over a whole context, with what goes beside what the ladder takes.
#[must_use]
pub fn totals(pass: &Pass<'_>, escalation: &Escalation<'_>) -> Totals {
    let mut totals = Totals { chars_before: pass.chars(), ..Totals::default() };
    let mut more = escalation.results.iter().peekable();
    for (ordinal, decided) in pass.iter().enumerate() {
        let cut = more.next_if(|(cut, _)| *cut as usize == ordinal);
        totals.count(cut.map_or(&decided, |(_, cut)| cut));
    }
    let freed = escalation.freed.saturating_neg();
    totals.chars_after = totals.chars_before.saturating_add_signed(freed);
    totals
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for comparison with a setting")]
fn fraction(freed: i64, chars: u64) -> f64 {
    freed as f64 / chars.max(1) as f64
}
