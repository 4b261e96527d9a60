//! Which calls of dropped results may lose the ends of long inputs (§7, profile `standard`).

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::decide::Vocabulary;
use super::history::History;
use super::notes;
use super::terms::terms;
use super::{Ran, ToolSemantics};

/// A leaf longer than this is shortened.
const LONG_LEAF_CHARS: usize = 400;

/// What stays of it.
const KEPT_CHARS: usize = 200;

/// The results that a use in a call's input, by call and term, was the first to reference.
pub(super) type FirstUses = HashMap<(usize, String), Vec<usize>>;

/// What happens in a context, in its order.
enum Event {
    Result(usize),
    Text(usize),
    Call(usize),
}

/// The uses in call inputs that were the first to reference some result by some term.
pub(super) fn first_uses(
    history: &History,
    vocabulary: &Vocabulary,
    generic_above: usize,
) -> FirstUses {
    let mut events = Vec::new();
    let positions = history.results.iter().map(|answer| answer.position);
    events.extend(positions.enumerate().map(|(at, position)| (position, Event::Result(at))));
    let positions = history.texts.iter().map(|spoken| spoken.position);
    events.extend(positions.enumerate().map(|(at, position)| (position, Event::Text(at))));
    let positions = history.calls.iter().map(|call| call.position);
    events.extend(positions.enumerate().map(|(at, position)| (position, Event::Call(at))));
    events.sort_by_key(|(position, _)| *position);

    let mut waiting = Waiting { generic_above, ..Waiting::default() };
    let mut first_uses = FirstUses::new();
    for (_, event) in events {
        match event {
            Event::Result(at) => {
                let answer = &history.results[at];
                for term in &vocabulary.of_result[at] {
                    let own = vocabulary.own(answer.call, term);
                    waiting.add(term, (!own).then_some((at, answer.message)));
                }
            }
            Event::Text(at) => {
                for term in &vocabulary.of_text[at] {
                    waiting.first_use(term, history.texts[at].message);
                }
            }
            Event::Call(at) => {
                for term in vocabulary.of_call[at].iter().flatten() {
                    let results = waiting.first_use(term, history.calls[at].message);
                    first_uses.entry((at, term.clone())).or_default().extend(results);
                }
            }
        }
    }
    first_uses
}

/// Per term, the results so far that hold it and the those that wait for its use.
#[derive(Default)]
struct Waiting {
    generic_above: usize,
    holders: HashMap<String, usize>,
    /// Number and message of each.
    results: HashMap<String, Vec<(usize, usize)>>,
}

impl Waiting {
    fn add(&mut self, term: &str, result: Option<(usize, usize)>) {
        *self.holders.entry(term.to_owned()).or_default() += 1;
        if let Some(result) = result {
            self.results.entry(term.to_owned()).or_default().push(result);
        }
    }

    /// The results for which a use in that message is the first.
    fn first_use(&mut self, term: &str, message: usize) -> Vec<usize> {
        if self.holders.get(term).is_none_or(|holders| *holders > self.generic_above) {
            return Vec::new();
        }
        let Some(waiting) = self.results.get_mut(term) else {
            return Vec::new();
        };
        let (used, rest) = waiting.iter().partition(|(_, of_result)| *of_result < message);
        *waiting = rest;
        let used: Vec<(usize, usize)> = used;
        used.into_iter().map(|(number, _)| number).collect()
    }
}

/// How many characters go if the long leaves of a call are shortened; nothing if none may.
pub(super) fn gain(
    history: &History,
    vocabulary: &Vocabulary,
    tools: &dyn ToolSemantics,
    number: usize,
    first_uses: &FirstUses,
    stays: impl Fn(usize) -> bool,
) -> Option<usize> {
    let call = &history.calls[number];
    let mut freed = 0;
    let mut kept = HashSet::new();
    for leaf in &call.leaves {
        let chars = leaf.chars().count();
        if chars > LONG_LEAF_CHARS {
            freed += chars - notes::input(leaf, KEPT_CHARS).chars().count();
            kept.extend(terms(notes::head(leaf, KEPT_CHARS)));
        } else {
            kept.extend(terms(notes::without_note(leaf)));
        }
    }
    let mut gone = vocabulary.of_call[number].iter().flatten().filter(|term| !kept.contains(*term));
    let is_why_some_stays = |term: &String| {
        let results = first_uses.get(&(number, term.clone()));
        results.into_iter().flatten().any(|result| stays(*result))
    };
    if gone.any(is_why_some_stays) {
        return None;
    }
    if freed == 0 {
        return None;
    }
    let action = |input: &Value| {
        let cwd = call.cwd.as_deref();
        // By the input alone: what ran in it stays known.
        tools.whole(history.host.name(), &call.tool, input, cwd, &Ran::default())
    };
    let whole = action(&call.input);
    let shortened = action(&shortened(&call.input));
    (whole.reads == shortened.reads && whole.writes == shortened.writes).then_some(freed)
}

/// The input with our notes in place of the ends of its long leaves.
fn shortened(input: &Value) -> Value {
    match input {
        Value::String(text) if text.chars().count() > LONG_LEAF_CHARS => {
            Value::String(notes::input(text, KEPT_CHARS))
        }
        Value::Array(values) => values.iter().map(shortened).collect(),
        Value::Object(values) => {
            values.iter().map(|(key, value)| (key.clone(), shortened(value))).collect()
        }
        other => other.clone(),
    }
}
