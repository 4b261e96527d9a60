//! A pass applied to the history of a thread: what stays is byte for byte what it was.

use std::collections::{HashMap, HashSet};

use compactd_core::escalate::{Escalation, TextCut};
use compactd_core::index::LeafCut;
use compactd_core::note;
use compactd_core::record::json::{self, Raw};
use compactd_core::record::{Item as Part, codex};
use compactd_core::rules::{CallFate, Decided, Decision, Pass};
use compactd_core::settings::LEAF_KEEP_CHARS;

use crate::history::Item;
use crate::splice::{Splice, quote};

/// Deeper inputs are left as they are; the host's own parser stops at this depth too.
const DEPTH_MAX: usize = 127;

/// What a pass did to a history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Gone {
    /// Results whose text went.
    pub(crate) dropped: u64,
    /// Results that were cut to their start.
    pub(crate) truncated: u64,
    /// Calls whose long inputs were shortened.
    pub(crate) inputs: u64,
    /// Texts of the assistant that were shortened.
    pub(crate) texts: u64,
}

/// Applies the decisions of a pass, with what goes beside what the ladder takes.
pub(crate) fn rewrite(items: &mut Vec<Item>, pass: &Pass<'_>, escalation: &Escalation<'_>) -> Gone {
    let mut gone = Gone::default();
    let all = decided(pass, escalation);
    shorten_texts(items, pass, &escalation.texts, &mut gone);
    let mut kept = Vec::with_capacity(items.len());
    // A script that notifies has a second output, which nothing was decided about.
    let mut done: HashSet<String> = HashSet::new();
    for mut item in items.drain(..) {
        match id_of(&item) {
            Some(Id::Result(id)) => {
                let result = all.get(&*id);
                if result.is_some_and(|result| result.call == CallFate::Removed) {
                    gone.dropped += u64::from(done.insert(id));
                    continue;
                }
                let is_first = |result: &&Decided<'_>| result.line == item.line;
                if let Some(result) = result.filter(is_first)
                    && done.insert(id)
                {
                    answered(&mut item, result, pass, &mut gone);
                }
            }
            Some(Id::Call(id)) => match all.get(&*id).map(|result| (result, result.call)) {
                Some((_, CallFate::Removed)) => continue,
                Some((result, CallFate::Shortened)) => {
                    if let Some(raw) = shortened(&item.raw, result.leaves) {
                        item.raw = raw;
                        gone.inputs += 1;
                    }
                }
                Some((_, CallFate::Kept)) | None => {}
            },
            None => {}
        }
        kept.push(item);
    }
    *items = kept;
    gone
}

/// What becomes of every result that does not stay whole, by its id.
fn decided<'a>(pass: &Pass<'a>, escalation: &Escalation<'a>) -> HashMap<&'a str, Decided<'a>> {
    let more = escalation.results.iter().map(|(_, cut)| *cut);
    pass.iter()
        .filter(|result| result.ruling.decision != Decision::Keep)
        .chain(more)
        .map(|result| (result.id, result))
        .collect()
}

enum Id {
    Call(String),
    Result(String),
}

fn id_of(item: &Item) -> Option<Id> {
    let row = codex::item(item.value()?).ok()?;
    row.items.into_iter().find_map(|part| match part {
        Part::Call(call) => Some(Id::Call(call.id.into_owned())),
        Part::Result(result) => Some(Id::Result(result.id.into_owned())),
        Part::Text(_) | Part::Opaque => None,
    })
}

/// Puts the note, or the start and the note, in the place of a result's text.
fn answered(item: &mut Item, result: &Decided<'_>, pass: &Pass<'_>, gone: &mut Gone) {
    let Some(text) = text_of(&item.raw) else { return };
    let left = match result.ruling.decision {
        Decision::Keep => return,
        Decision::Drop => note::dropped(result.chars as usize),
        Decision::Truncate => {
            let keep = pass.settings().rerunnable_chars as usize;
            match note::cut(&text, keep) {
                Some(cut) => cut.left,
                None => return,
            }
        }
    };
    let Some(raw) = with_output(&item.raw, &left) else { return };
    // Whatever the shape of the output: the next reader has to find exactly this.
    if text_of(&raw).as_deref() != Some(&left) {
        return;
    }
    item.raw = raw;
    match result.ruling.decision {
        Decision::Drop => gone.dropped += 1,
        _ => gone.truncated += 1,
    }
}

fn text_of(raw: &str) -> Option<String> {
    let row = codex::item(json::value(raw)?).ok()?;
    row.items.into_iter().find_map(|part| match part {
        Part::Result(result) => Some(result.text.into_owned()),
        _ => None,
    })
}

/// An output with another text: a string stays a string, a list a list, and parts of it that are no
/// text stay where they are.
fn with_output(raw: &str, left: &str) -> Option<String> {
    let output = json::value(raw)?.member("output")?;
    let new = if output.is_list() {
        let mut parts = Vec::new();
        let mut text = Some(format!(r#"{{"type":"input_text","text":{}}}"#, quote(left)));
        for part in output.elements() {
            let is_text = part.is_string() || part.member("text").is_some_and(Raw::is_string);
            if is_text { parts.extend(text.take()) } else { parts.push(part.get().to_owned()) }
        }
        parts.extend(text);
        format!("[{}]", parts.join(","))
    } else {
        quote(left)
    };
    let mut splice = Splice::default();
    splice.replace(raw, output.get(), new);
    Some(splice.apply(raw))
}

/// A call with its long leaves cut; `None` if it is another call than the one that was decided.
fn shortened(raw: &str, cuts: &[LeafCut]) -> Option<String> {
    let call = json::value(raw)?;
    let input = ["arguments", "input", "action"].iter().find_map(|key| call.member(key))?;
    let mut splice = Splice::default();
    if let Some(text) = input.text() {
        // JSON inside a string, or a free-form input, which is one leaf.
        let inner = match json::value(text.trim()).filter(|inner| inner.is_object()) {
            Some(inner) => cut_leaves(&text, inner, cuts)?,
            None => cut_leaf(&text, cuts.iter().find(|cut| cut.leaf == 0)?)?,
        };
        splice.replace(raw, input.get(), quote(&inner));
    } else {
        let inner = cut_leaves(input.get(), input, cuts)?;
        splice.replace(raw, input.get(), inner);
    }
    Some(splice.apply(raw))
}

fn cut_leaves(text: &str, value: Raw<'_>, cuts: &[LeafCut]) -> Option<String> {
    let mut leaves = Vec::new();
    each_leaf(value, DEPTH_MAX, &mut leaves);
    let mut splice = Splice::default();
    for cut in cuts {
        let leaf = leaves.get(cut.leaf as usize)?;
        splice.replace(text, leaf.get(), quote(&cut_leaf(&leaf.text()?, cut)?));
    }
    Some(splice.apply(text))
}

fn cut_leaf(text: &str, cut: &LeafCut) -> Option<String> {
    let is_it = text.encode_utf16().count() == cut.utf16 as usize;
    note::shortened_leaf(text, LEAF_KEEP_CHARS).filter(|_| is_it)
}

/// The strings and numbers of a value in order, as [`json::leaves`] counts them.
fn each_leaf<'a>(value: Raw<'a>, depth: usize, leaves: &mut Vec<Raw<'a>>) {
    if value.is_object() && depth > 0 {
        value.members().for_each(|(_, value)| each_leaf(value, depth - 1, leaves));
    } else if value.is_list() && depth > 0 {
        value.elements().for_each(|value| each_leaf(value, depth - 1, leaves));
    } else if value.text_or_number().is_some() {
        leaves.push(value);
    }
}

/// Shortens the texts that a budget took the ends of.
fn shorten_texts(items: &mut [Item], pass: &Pass<'_>, cuts: &[TextCut], gone: &mut Gone) {
    // The rows of the context by the line that they stand in; a `compacted` record has many.
    let mut rows: HashMap<u32, Vec<usize>> = HashMap::new();
    for (at, item) in items.iter().enumerate().filter(|(_, item)| item.is_row) {
        rows.entry(item.line).or_default().push(at);
    }
    let mut place = 0;
    let mut nth = HashMap::<u32, usize>::new();
    for cut in cuts {
        while place < cut.row as usize {
            if let Some(line) = pass.row_line(place) {
                *nth.entry(line).or_default() += 1;
            }
            place += 1;
        }
        let Some(line) = pass.row_line(place) else { continue };
        let before = nth.get(&line).copied().unwrap_or_default();
        let Some(&at) = rows.get(&line).and_then(|rows| rows.get(before)) else { continue };
        let Some(item) = items.get_mut(at) else { continue };
        if let Some(raw) = with_text(&item.raw, cut) {
            item.raw = raw;
            gone.texts += 1;
        }
    }
}

fn with_text(raw: &str, cut: &TextCut) -> Option<String> {
    let content = json::value(raw)?.member("content")?;
    let text = content
        .elements()
        .filter_map(|part| part.member("text"))
        .find(|text| text.text().is_some_and(|text| text.chars().count() == cut.chars as usize))?;
    let mut splice = Splice::default();
    splice.replace(raw, text.get(), quote(&note::cut_text(&text.text()?, cut.keep as usize)));
    Some(splice.apply(raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_keeps_its_type_and_what_is_no_text() {
        let string = r#"{"type":"function_call_output", "output" : "a\nb","call_id":"c"}"#;
        assert_eq!(
            with_output(string, "x\"y").unwrap(),
            r#"{"type":"function_call_output", "output" : "x\"y","call_id":"c"}"#
        );
        let list = r#"{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:x"},{"type":"input_text","text":"b"}]}"#;
        assert_eq!(
            with_output(list, "x").unwrap(),
            r#"{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_text","text":"x"},{"type":"input_image","image_url":"data:x"}]}"#
        );
    }

    #[test]
    fn inputs_are_cut_where_they_stand() {
        let long = "é".repeat(300) + &"y".repeat(200);
        let cut = |leaf| LeafCut { leaf, utf16: 500, cut_utf16: 200, removed: 300 };
        let note = format!("{}[input cut by compactd: 300 chars]", "é".repeat(200));
        let inner = format!(r#"{{ "n": 1.50, "k": ["a", {}], "z":null }}"#, quote(&long));
        let call = format!(
            r#"{{"type":"function_call","name":"x","arguments":{} ,"call_id":"c"}}"#,
            quote(&inner)
        );
        let left = shortened(&call, &[cut(2)]).unwrap();
        let arguments = json::value(&left).unwrap().member("arguments").unwrap().text().unwrap();
        assert_eq!(
            arguments,
            format!(r#"{{ "n": 1.50, "k": ["a", {}], "z":null }}"#, quote(&note))
        );
        assert_eq!(shortened(&call, &[cut(1)]), None, "another leaf");
        let free = format!(r#"{{"type":"custom_tool_call","input":{}}}"#, quote(&long));
        let left = shortened(&free, &[cut(0)]).unwrap();
        assert_eq!(left, format!(r#"{{"type":"custom_tool_call","input":{}}}"#, quote(&note)));
        let action = format!(
            r#"{{"type":"local_shell_call","action":{{"command":["sh",{}]}}}}"#,
            quote(&long)
        );
        assert!(shortened(&action, &[cut(1)]).unwrap().contains(&quote(&note)));
    }
}
