//! The ladder (§6).

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use super::history::{Answer, History, Spoken};
use super::lines::{quotable_lines, quoting_lines};
use super::supersede::{Reads, actions, reads};
use super::terms::{regex, terms};
use super::{Action, CallFate, Decided, Decision, Options, Profile, ToolSemantics, notes, shorten};

static RULE_WORD: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?i)\b(?:must|never|always|do not|don['’]t)\b"));

/// The terms of a history.
pub(super) struct Vocabulary {
    /// Per result, all its terms.
    pub(super) of_result: Vec<HashSet<String>>,
    /// Per call, the terms of each leaf of its input.
    pub(super) of_call: Vec<Vec<HashSet<String>>>,
    /// Per call, its whole input if that is short.
    inputs: Vec<Option<String>>,
    /// Per assistant text.
    pub(super) of_text: Vec<HashSet<String>>,
}

/// An input of at most so many bytes, its leaves joined by newlines, is searched as text.
const SHORT_INPUT_BYTES: usize = 4096;

impl Vocabulary {
    fn new(history: &History) -> Self {
        let of_leaf = |leaf: &String| terms(notes::without_note(leaf));
        Self {
            of_result: history
                .results
                .iter()
                .map(|answer| terms(notes::without_note(&answer.result.body)))
                .collect(),
            of_call: history
                .calls
                .iter()
                .map(|call| call.leaves.iter().map(of_leaf).collect())
                .collect(),
            inputs: history
                .calls
                .iter()
                .map(|call| {
                    let bytes: usize = call.leaves.iter().map(|leaf| leaf.len() + 1).sum();
                    (bytes <= SHORT_INPUT_BYTES).then(|| call.leaves.join("\n"))
                })
                .collect(),
            of_text: history
                .texts
                .iter()
                .map(|spoken| terms(notes::without_note(&spoken.text)))
                .collect(),
        }
    }

    /// Whether the call's own input says a term: a short one as text, a long one as a term of it.
    pub(super) fn own(&self, call: usize, term: &str) -> bool {
        match &self.inputs[call] {
            Some(input) => input.contains(term),
            None => self.of_call[call].iter().any(|leaf| leaf.contains(term)),
        }
    }
}

pub(super) fn decide(
    history: &History,
    tools: &dyn ToolSemantics,
    options: &Options,
) -> Vec<Decided> {
    let vocabulary = Vocabulary::new(history);
    let actions = actions(history, tools);
    let reads = reads(history, &actions);
    let ladder = Ladder {
        history,
        tools,
        options,
        actions: &actions,
        reads: &reads,
        referenced: referenced(history, &vocabulary, options.generic_above),
        vocabulary: &vocabulary,
        quotes: quotes(&history.texts),
    };
    let first_uses = match options.profile {
        Profile::Reference => shorten::FirstUses::new(),
        Profile::Standard => shorten::first_uses(history, &vocabulary, options.generic_above),
    };
    let mut decided = Vec::new();
    for (number, answer) in history.results.iter().enumerate() {
        let (mut decision, mut rule) = ladder.decide(number);
        let call = &history.calls[answer.call];
        let chars = answer.result.text.chars().count();
        let mut fate = CallFate::Kept;
        if decision == Decision::Drop {
            match options.profile {
                Profile::Reference if !actions[number].reads.is_empty() => {}
                Profile::Reference => fate = CallFate::Removed,
                Profile::Standard => {
                    let stays = |number| ladder.decide(number).0 == Decision::Keep;
                    let gain =
                        shorten::gain(history, &vocabulary, tools, answer.call, &first_uses, stays);
                    if notes::dropped(chars).chars().count() >= chars + gain.unwrap_or(0) {
                        (decision, rule) = (Decision::Keep, "no_gain");
                    } else if gain.is_some() {
                        fate = CallFate::Shortened;
                    }
                }
            }
        }
        let left = match decision {
            Decision::Drop if fate != CallFate::Removed => Some(notes::dropped(chars)),
            Decision::Truncate => Some(notes::cut(&answer.result.text, options.rerunnable_chars)),
            _ => None,
        };
        decided.push(Decided {
            id: call.id.clone(),
            tool: call.tool.clone(),
            chars,
            decision,
            call: fate,
            rule,
            left,
        });
    }
    decided
}

/// Per result, whether one of its deciding terms was used later.
fn referenced(history: &History, vocabulary: &Vocabulary, generic_above: usize) -> Vec<bool> {
    let mut holders: HashMap<&str, usize> = HashMap::new();
    for term in vocabulary.of_result.iter().flatten() {
        *holders.entry(term).or_default() += 1;
    }
    // Where each term is used: position and message.
    let mut uses: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
    for (spoken, terms) in history.texts.iter().zip(&vocabulary.of_text) {
        for term in terms {
            uses.entry(term).or_default().push((spoken.position, spoken.message));
        }
    }
    for (call, leaves) in history.calls.iter().zip(&vocabulary.of_call) {
        for term in leaves.iter().flatten() {
            uses.entry(term).or_default().push((call.position, call.message));
        }
    }
    let is_referenced = |(answer, terms): (&Answer, &HashSet<String>)| {
        terms.iter().any(|term| {
            uses.get(term.as_str()).is_some_and(|uses| {
                uses.iter().any(|(position, message)| {
                    *position > answer.position && *message > answer.message
                })
            }) && holders[term.as_str()] <= generic_above
                && !vocabulary.own(answer.call, term)
        })
    };
    history.results.iter().zip(&vocabulary.of_result).map(is_referenced).collect()
}

/// Lines that the assistant may have quoted, with the last message that holds them.
fn quotes(texts: &[Spoken]) -> HashMap<&str, usize> {
    let mut quotes = HashMap::new();
    for spoken in texts {
        for line in quoting_lines(&spoken.text) {
            let last = quotes.entry(line).or_insert(spoken.message);
            *last = spoken.message.max(*last);
        }
    }
    quotes
}

struct Ladder<'a> {
    history: &'a History,
    tools: &'a dyn ToolSemantics,
    options: &'a Options,
    actions: &'a [Action],
    reads: &'a Reads,
    vocabulary: &'a Vocabulary,
    referenced: Vec<bool>,
    quotes: HashMap<&'a str, usize>,
}

impl Ladder<'_> {
    fn decide(&self, number: usize) -> (Decision, &'static str) {
        let answer = &self.history.results[number];
        if notes::is_noted(&answer.result.text) {
            return (Decision::Keep, "noted");
        }
        if self.is_pinned(number, answer) {
            return (Decision::Keep, "pinned");
        }
        if self.is_quoted(answer) || self.is_ruled(answer) {
            return (Decision::Keep, "never_drop");
        }
        if self.reads.superseded.contains(&number) {
            return (Decision::Drop, "superseded_read");
        }
        if self.reads.superseders.contains(&number) {
            return (Decision::Keep, "superseder");
        }
        if self.reads.latest.contains(&number) {
            return (Decision::Keep, "latest_read");
        }
        let rule = self.by_reference(number, answer);
        if rule == "unreferenced" {
            return (Decision::Drop, rule);
        }
        if self.is_rerunnable(number, answer, rule) {
            return (Decision::Truncate, "rerunnable");
        }
        (Decision::Keep, rule)
    }

    fn is_pinned(&self, number: usize, answer: &Answer) -> bool {
        let last = self.history.messages.saturating_sub(self.options.pin_last);
        answer.message == 0
            || answer.message >= last
            || answer.result.is_error
            || self.options.pinned_ids.contains(&answer.result.id)
            || self.reads.stubs.contains(&number)
            || self.actions[number].reads.iter().any(|path| {
                self.options
                    .pinned_files
                    .iter()
                    .any(|file| path == file || path.ends_with(&format!("/{file}")))
            })
    }

    /// A later assistant text quotes a line of it.
    fn is_quoted(&self, answer: &Answer) -> bool {
        quotable_lines(&answer.result.body)
            .any(|line| self.quotes.get(line).is_some_and(|message| *message > answer.message))
    }

    /// The next assistant text lays down a rule.
    fn is_ruled(&self, answer: &Answer) -> bool {
        let texts = &self.history.texts;
        let behind = texts.partition_point(|spoken| spoken.position < answer.position);
        texts[behind..]
            .iter()
            .find(|spoken| spoken.message > answer.message && !spoken.text.trim().is_empty())
            .is_some_and(|spoken| {
                spoken.message - answer.message <= 2 && RULE_WORD.is_match(&spoken.text)
            })
    }

    fn by_reference(&self, number: usize, answer: &Answer) -> &'static str {
        let result = &answer.result;
        let has_terms = !self.vocabulary.of_result[number].is_empty();
        let unsure = self.actions[number].unsure;
        if result.text.trim().is_empty() || (result.opaque && !has_terms) || unsure {
            "undecided"
        } else if self.history.results.len() - 1 - number < self.options.recent_results {
            "too_recent"
        } else if self.referenced[number] {
            "referenced"
        } else {
            "unreferenced"
        }
    }

    fn is_rerunnable(&self, number: usize, answer: &Answer, rule: &str) -> bool {
        let Some(rerunnable) = self.actions[number].rerunnable else {
            return false;
        };
        let text = &answer.result.text;
        let cut = notes::cut(text, self.options.rerunnable_chars);
        let body = notes::without_note(&answer.result.body);
        (rule != "referenced" || rerunnable.even_if_used)
            && !(rerunnable.needs_pass && self.tools.shows_failure(body))
            && cut.chars().count() < text.chars().count()
    }
}
