//! Model tokens from characters, without a tokenizer: characters per token by model, corrected by
//! what the host says its requests cost.
//!
//! Two requests in a row say how many tokens came in between: the second prompt is the first one,
//! its answer, and what was added. The characters of what was added are known, so each such
//! interval gives a ratio. The estimate is the median of the newest ratios, in which the model's
//! own ratio has some votes; so a session without usage fields has an estimate too.
//!
//! A ratio holds what the host puts around a result: it is the cost in the context.

use crate::record::{Host, Item, Role, Row, Usage};

/// So many of the newest ratios are kept.
const RATIOS: usize = 25;
/// Votes of the model's own ratio beside them.
const PRIOR_VOTES: usize = 3;
/// An interval with fewer characters says too little: what the host adds by itself weighs more.
const FLOOR_CHARS: u64 = 2_000;
/// Characters per token, in thousandths, that a real model can have; a mock or a proxy has others.
const PLAUSIBLE: std::ops::RangeInclusive<u64> = 1_200..=6_000;

/// Characters per token of tool results, in thousandths, by what the model's name holds.
const CLAUDE: [(&str, u16); 9] = [
    ("opus-4-5", 2_720),
    ("opus-4-6", 2_670),
    ("sonnet-4-5", 2_650),
    ("sonnet-4-6", 2_520),
    ("opus-4-7", 2_180),
    ("opus-4-8", 2_220),
    ("opus-5", 2_430),
    ("sonnet-5", 2_460),
    ("fable-5", 2_270),
];
const CLAUDE_UNKNOWN: u16 = 2_400;
const CODEX: u16 = 3_700;

/// Characters per token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ratio(u16);

impl Ratio {
    /// The ratio of a model before anything is measured; `None`: the name is not known yet.
    #[must_use]
    pub fn of(host: Host, model: Option<&str>) -> Self {
        match host {
            Host::Codex => Self(CODEX),
            Host::Claude => {
                let named =
                    |(name, _): &&(&str, u16)| model.is_some_and(|model| names(model, name));
                Self(CLAUDE.iter().find(named).map_or(CLAUDE_UNKNOWN, |&(_, ratio)| ratio))
            }
        }
    }

    /// Tokens that so many characters take about.
    #[must_use]
    pub fn tokens(self, chars: u64) -> u64 {
        chars.saturating_mul(1_000) / u64::from(self.0.max(1))
    }

    /// This ratio, or the larger one by which so many characters take no more than so many tokens.
    #[must_use]
    pub fn fitted(self, chars: u64, tokens: u64) -> Self {
        let least = chars.saturating_mul(1_000).div_ceil(tokens.max(1));
        Self(self.0.max(u16::try_from(least).unwrap_or(u16::MAX)))
    }

    /// Characters per token, in thousandths.
    #[must_use]
    pub fn thousandths(self) -> u16 {
        self.0
    }
}

/// Whether a model's name holds `name`, not followed by a digit of a longer number.
fn names(model: &str, name: &str) -> bool {
    model
        .match_indices(name)
        .any(|(at, found)| !model.as_bytes().get(at + found.len()).is_some_and(u8::is_ascii_digit))
}

/// What came between two requests, and what it cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interval {
    /// Characters of results and user texts.
    pub chars: u64,
    /// Of them those of results.
    pub result_chars: u64,
    /// Number of results.
    pub results: u32,
    /// Tokens, by the hosts' own count.
    pub tokens: u64,
}

/// What came in so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Between {
    pub(crate) chars: u64,
    pub(crate) result_chars: u64,
    pub(crate) results: u32,
    /// Something in it has tokens and no characters.
    pub(crate) opaque: bool,
}

impl Between {
    fn add(&mut self, other: Self) {
        self.chars = self.chars.saturating_add(other.chars);
        self.result_chars = self.result_chars.saturating_add(other.result_chars);
        self.results = self.results.saturating_add(other.results);
        self.opaque |= other.opaque;
    }

    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Text(text) => self.chars += text.chars().count() as u64,
            Item::Result(result) => {
                let chars = result.text.chars().count() as u64;
                self.add(Self { chars, result_chars: chars, results: 1, opaque: result.opaque });
            }
            Item::Opaque => self.opaque = true,
            Item::Call(_) => {}
        }
    }
}

/// A request whose cost is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// Hash of the answer's message id (Claude Code).
    pub(crate) message: u64,
    /// Where its first row stands in the log (Claude Code).
    pub(crate) row: u32,
    pub(crate) input: u64,
    pub(crate) output: u64,
}

/// Where a row of Claude Code stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Its number in the log.
    pub(crate) at: u32,
    /// Its parent's, or `u32::MAX`.
    pub(crate) up: u32,
    /// Hash of its message id, 0 = none.
    pub(crate) message: u64,
    /// It stands in the tree of rows.
    pub(crate) in_tree: bool,
}

/// The calibration of one transcript: fed row by row, constant work and memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meter {
    pub(crate) host: Host,
    pub(crate) prior: u16,
    /// The newest ratios in thousandths, the oldest first.
    pub(crate) ratios: Vec<u16>,
    pub(crate) request: Option<Request>,
    /// Message of the request before: a late row of it is no new request.
    pub(crate) earlier: u64,
    /// What came behind the request, before the next prompt.
    pub(crate) between: Between,
    /// Codex: results that stand before the count of the request that called for them.
    pub(crate) ahead: Between,
    /// Codex: a call came since the newest count.
    pub(crate) called: bool,
    pub(crate) newest: Interval,
    pub(crate) intervals: u64,
}

impl Meter {
    pub(crate) fn new(host: Host) -> Self {
        Self {
            host,
            prior: Ratio::of(host, None).0,
            ratios: Vec::new(),
            request: None,
            earlier: 0,
            between: Between::default(),
            ahead: Between::default(),
            called: false,
            newest: Interval::default(),
            intervals: 0,
        }
    }

    /// The estimate now.
    #[must_use]
    pub fn ratio(&self) -> Ratio {
        let mut votes = self.ratios.clone();
        votes.extend([self.prior; PRIOR_VOTES]);
        votes.sort_unstable();
        let high = votes.get(votes.len() / 2).copied().unwrap_or(self.prior);
        let low = votes.get((votes.len() - 1) / 2).copied().unwrap_or(self.prior);
        Ratio(u16::midpoint(low, high))
    }

    /// Intervals measured so far, those that give no ratio too, and the newest of them.
    #[must_use]
    pub fn measured(&self) -> (u64, Interval) {
        (self.intervals, self.newest)
    }

    /// The model that answers from now on. Another model with another ratio starts over.
    pub(crate) fn model(&mut self, model: &str) {
        let prior = Ratio::of(self.host, Some(model)).0;
        if prior != self.prior {
            self.prior = prior;
            self.ratios.clear();
            self.cut();
        }
    }

    /// The context changed otherwise than by growing.
    pub(crate) fn cut(&mut self) {
        self.request = None;
        self.between = Between::default();
        self.ahead = Between::default();
        self.called = false;
    }

    /// Takes in a row of Claude Code.
    pub(crate) fn claude(&mut self, row: &Row<'_>, place: Place) {
        let starts = self.request.map_or(0, |request| request.row);
        if place.in_tree && (place.up == u32::MAX || place.up < starts) {
            // A rewind to before the newest answer, or another beginning.
            self.cut();
        }
        match row.role {
            Role::Link => {}
            Role::User => row.items.iter().for_each(|item| self.between.item(item)),
            Role::Assistant => self.answer(row.about.usage, place),
        }
    }

    /// A row of an answer. The usage of its request stands on each; at first it may be partial.
    fn answer(&mut self, usage: Option<Usage>, place: Place) {
        let known = place.message != 0;
        if let Some(request) = &mut self.request
            && known
            && request.message == place.message
        {
            request.output = request.output.max(usage.map_or(0, |usage| usage.output_tokens));
            return;
        }
        if known && place.message == self.earlier {
            return;
        }
        self.earlier = self.request.map_or(0, |request| request.message);
        let Some(usage) = usage.filter(|_| known) else { return self.cut() };
        self.close(usage.input_tokens);
        self.request = Some(Request {
            message: place.message,
            row: place.at,
            input: usage.input_tokens,
            output: usage.output_tokens,
        });
    }

    /// Takes in a row of Codex.
    pub(crate) fn codex(&mut self, row: &Row<'_>) {
        if row.role == Role::Assistant {
            self.called |= row.items.iter().any(|item| matches!(item, Item::Call(_)));
            return;
        }
        for item in &row.items {
            // From 0.139 on a call and its result stand before the count of the request that made
            // the call, in older versions the result stands behind it: in both it is part of the
            // next prompt.
            let early = self.called && matches!(item, Item::Result(_));
            if early { &mut self.ahead } else { &mut self.between }.item(item);
        }
    }

    /// Takes in Codex' count of a request.
    pub(crate) fn count(&mut self, usage: &Usage) {
        let (input, output) = (usage.input_tokens, usage.output_tokens);
        if self.request.is_some_and(|request| (request.input, request.output) == (input, output)) {
            return;
        }
        if input == 0 || output == 0 {
            // An estimate of the host's, or nothing: no request.
            return self.cut();
        }
        self.close(input);
        self.between = std::mem::take(&mut self.ahead);
        self.called = false;
        self.request = Some(Request { input, output, ..Request::default() });
    }

    /// The next request's prompt is known: measures what came in between.
    fn close(&mut self, prompt: u64) {
        let between = std::mem::take(&mut self.between);
        let Some(request) = self.request else { return };
        let before = request.input.saturating_add(request.output);
        let Some(tokens) = prompt.checked_sub(before).filter(|tokens| *tokens > 0) else { return };
        if between.opaque || between.chars == 0 {
            return;
        }
        let Between { chars, result_chars, results, .. } = between;
        self.newest = Interval { chars, result_chars, results, tokens };
        self.intervals += 1;
        let ratio = chars.saturating_mul(1_000) / tokens;
        if chars < FLOOR_CHARS || !PLAUSIBLE.contains(&ratio) {
            return;
        }
        if self.ratios.len() >= RATIOS {
            self.ratios.remove(0);
        }
        self.ratios.extend(u16::try_from(ratio));
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.ratios.capacity() * size_of::<u16>()
    }
}

#[cfg(test)]
mod tests;
