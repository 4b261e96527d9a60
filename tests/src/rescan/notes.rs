//! Our own notes (§7).

use std::sync::LazyLock;

use regex::Regex;

use super::terms::regex;

static DROPPED: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"\A\[output removed by compactd: (0|[1-9][0-9]*) chars; re-run the call to see it\]\z")
});
static CUT: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?:\A|\n)\[output cut by compactd: ([1-9][0-9]*) of ([1-9][0-9]*) chars removed; re-run the call to see it\]\z",
    )
});
static TEXT: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"\n\[text cut by compactd: ([1-9][0-9]*) of ([1-9][0-9]*) chars removed\]\z")
});
static NON_TEXT: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?:\A|\n)\[image or other non-text output removed by compactd; re-run the call to see it\]\z",
    )
});
static INPUT: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\[input cut by compactd: ([1-9][0-9]*) chars\]\z"));

/// The first characters of a text.
pub(super) fn head(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(at, _)| &text[..at])
}

pub(super) fn dropped(chars: usize) -> String {
    format!("[output removed by compactd: {chars} chars; re-run the call to see it]")
}

pub(super) fn cut(text: &str, chars: usize) -> String {
    let total = text.chars().count();
    let removed = total.saturating_sub(chars);
    format!(
        "{}\n[output cut by compactd: {removed} of {total} chars removed; re-run the call to see it]",
        head(text, chars)
    )
}

pub(super) fn input(text: &str, chars: usize) -> String {
    let removed = text.chars().count().saturating_sub(chars);
    format!("{}[input cut by compactd: {removed} chars]", head(text, chars))
}

/// Where the note starts that a pattern finds, if its numbers are ours: below 2^64, not falling.
fn found(pattern: &Regex, text: &str) -> Option<usize> {
    let note = pattern.captures(text)?;
    let numbers = note
        .iter()
        .skip(1)
        .map(|number| number?.as_str().parse::<u64>().ok())
        .collect::<Option<Vec<_>>>()?;
    numbers.is_sorted().then(|| note.get_match().start())
}

/// An earlier pass decided this result.
pub(super) fn is_noted(text: &str) -> bool {
    found(&DROPPED, text).is_some()
        || found(&CUT, text).is_some()
        || found(&NON_TEXT, text) == Some(0) && !text.starts_with('\n')
}

/// A text without a note of ours at its end.
pub(super) fn without_note(text: &str) -> &str {
    let patterns = [&DROPPED, &NON_TEXT, &CUT, &TEXT, &INPUT];
    let start = patterns.into_iter().find_map(|pattern| found(pattern, text));
    start.map_or(text, |start| &text[..start])
}
