//! Which calls of dropped results may lose the ends of long inputs (§7, profile `standard`).

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::ToolSemantics;
use super::decide::Vocabulary;
use super::history::History;
use super::notes;
use super::terms::terms;

/// A leaf longer than this is shortened.
const LONG_LEAF_CHARS: usize = 400;

/// What stays of it.
const KEPT_CHARS: usize = 200;

/// A use in a call's input: call, term.
pub(super) type FirstUse = (usize, String);

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
) -> HashSet<FirstUse> {
    let mut events = Vec::new();
    let positions = history.results.iter().map(|answer| answer.position);
    events.extend(positions.enumerate().map(|(at, position)| (position, Event::Result(at))));
    let positions = history.texts.iter().map(|spoken| spoken.position);
    events.extend(positions.enumerate().map(|(at, position)| (position, Event::Text(at))));
    let positions = history.calls.iter().map(|call| call.position);
    events.extend(positions.enumerate().map(|(at, position)| (position, Event::Call(at))));
    events.sort_by_key(|(position, _)| *position);

    let mut waiting = Waiting { generic_above, ..Waiting::default() };
    let mut first_uses = HashSet::new();
    for (_, event) in events {
        match event {
            Event::Result(at) => {
                let answer = &history.results[at];
                for term in &vocabulary.of_result[at] {
                    let own = vocabulary.own(answer.call, term);
                    waiting.add(term, (!own).then_some(answer.message));
                }
            }
            Event::Text(at) => {
                for term in &vocabulary.of_text[at] {
                    waiting.is_first_use(term, history.texts[at].message);
                }
            }
            Event::Call(at) => {
                for term in vocabulary.of_call[at].iter().flatten() {
                    if waiting.is_first_use(term, history.calls[at].message) {
                        first_uses.insert((at, term.clone()));
                    }
                }
            }
        }
    }
    first_uses
}

/// Per term, the results so far that hold it and the messages of those that wait for its use.
#[derive(Default)]
struct Waiting {
    generic_above: usize,
    holders: HashMap<String, usize>,
    messages: HashMap<String, Vec<usize>>,
}

impl Waiting {
    fn add(&mut self, term: &str, message: Option<usize>) {
        *self.holders.entry(term.to_owned()).or_default() += 1;
        if let Some(message) = message {
            self.messages.entry(term.to_owned()).or_default().push(message);
        }
    }

    /// Whether a use in that message is the first for some result.
    fn is_first_use(&mut self, term: &str, message: usize) -> bool {
        if self.holders.get(term).is_none_or(|holders| *holders > self.generic_above) {
            return false;
        }
        let Some(messages) = self.messages.get_mut(term) else {
            return false;
        };
        let before = messages.len();
        messages.retain(|of_result| *of_result >= message);
        messages.len() < before
    }
}

/// How many characters go if the long leaves of a call are shortened; nothing if none may.
pub(super) fn gain(
    history: &History,
    vocabulary: &Vocabulary,
    tools: &dyn ToolSemantics,
    number: usize,
    first_uses: &HashSet<FirstUse>,
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
            kept.extend(terms(notes::without_input_note(leaf)));
        }
    }
    let mut gone = vocabulary.of_call[number].iter().flatten().filter(|term| !kept.contains(*term));
    if gone.any(|term| first_uses.contains(&(number, term.clone()))) {
        return None;
    }
    if freed == 0 {
        return None;
    }
    let action = |input: &Value| {
        let cwd = call.cwd.as_deref();
        tools.whole(history.host.name(), &call.tool, input, cwd, &call.commands)
    };
    let whole = action(&call.input);
    let shortened = action(&shortened(&call.input));
    (whole.read == shortened.read && whole.writes == shortened.writes).then_some(freed)
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
