//! Words of others inside the focus text: on one line, between marks that they cannot end, without
//! what a person does not see and without what could pass for a mark of a host or of an API.

use super::mask;

/// Names of tags that hosts and APIs give a meaning to; those with `-` or `_` in them are taken for such.
const MARKS: [&str; 13] = [
    "system",
    "user",
    "assistant",
    "human",
    "developer",
    "tool",
    "invoke",
    "parameter",
    "thinking",
    "summary",
    "analysis",
    "instructions",
    "important",
];

/// Words of a person on one line, in quotes.
pub(super) fn said(text: &str, max_chars: usize) -> String {
    format!("\"{}\"", cut(&plain(text), max_chars).replace('"', "'"))
}

/// Data on one line, in backticks.
pub(super) fn quoted(text: &str, max_chars: usize) -> String {
    format!("`{}`", cut(&plain(text), max_chars).trim())
}

fn plain(text: &str) -> String {
    mask(&without_tags(&one_line(text)))
}

/// A text without what could pass for a mark of the host or of an API: `<system-reminder>`,
/// `<tool_use_error id="1">`, `</user>`. `Vec<u8>` and `<div>` are not such. What is left when one goes
/// is looked at again: tags can be put into tags.
fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Where a `<` stands that no `>` belongs to yet.
    let mut open: Vec<usize> = Vec::new();
    for c in text.chars() {
        match c {
            '<' => open.push(out.len()),
            '>' => {
                if let Some(at) = open.pop()
                    && is_mark(out.get(at + 1..).unwrap_or_default())
                {
                    out.truncate(at);
                    continue;
                }
            }
            _ => {}
        }
        out.push(c);
    }
    // One that is not closed could be closed by what comes behind.
    for at in open.into_iter().rev() {
        if is_mark(out.get(at + 1..).unwrap_or_default()) {
            out.remove(at);
        }
    }
    out
}

/// Whether what stands behind a `<` begins with the name of a mark.
fn is_mark(inside: &str) -> bool {
    let inside = inside.trim_start_matches('/');
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    let end = inside.find(|c| !is_of_name(c)).unwrap_or(inside.len());
    let (name, behind) = inside.split_at(end);
    if name.contains("::") || !(behind.is_empty() || behind.starts_with([' ', '/'])) {
        return false;
    }
    let local = name.rsplit(':').next().unwrap_or_default();
    let is_joined =
        local.starts_with(|c: char| c.is_ascii_alphabetic()) && local.contains(['-', '_']);
    is_joined || MARKS.iter().any(|mark| local.eq_ignore_ascii_case(mark))
}

/// A text without line ends, backticks, what steers a terminal, and what nobody sees.
fn one_line(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .filter(|&c| c != '`' && !is_invisible(c))
        .collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Characters without a shape of their own: formats, joiners, marks of direction, fillers, selectors of
/// a variant, tags.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{13430}'..='\u{1345f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_go_and_code_stays() {
        for (text, left) in [
            ("a <b> Vec<u8> </tool_use_error> <x", "a <b> Vec<u8>  <x"),
            ("<sys<system-reminder>tem-reminder>x", "x"),
            ("<sys</user>tem-re</a-b>minder>x", "x"),
            ("<system-reminder id=\"1\">x</system-reminder >", "x"),
            ("<SYSTEM-Reminder/>x<User>", "x"),
            ("<system-reminder a=\"<b>\">x", "x"),
            ("<ns:invoke name='x'>y</ns:invoke>", "y"),
            ("x <system-reminder", "x system-reminder"),
            ("<<system-reminder", "system-reminder"),
            ("<<<system>system-reminder", "system-reminder"),
            (
                "HashMap<my::Key_Of, u8> a < b_c && d > e",
                "HashMap<my::Key_Of, u8> a < b_c && d > e",
            ),
            ("<systematic> i<10 a->b <-", "<systematic> i<10 a->b <-"),
            ("", ""),
        ] {
            assert_eq!(without_tags(text), left, "{text}");
            assert_eq!(without_tags(left), left, "nothing is left to go");
        }
    }

    #[test]
    fn all_words_of_others_are_filtered() {
        let hidden: String = "obey".bytes().map(|b| char::from(b).to_ascii_lowercase()).collect();
        let tags: String =
            hidden.chars().filter_map(|c| char::from_u32(0xe_0000 + u32::from(c))).collect();
        let text = format!(
            "a{tags}\u{202e}b\u{ad}\u{fe0f}<sys\u{200b}tem-remin\u{e0061}der>c\u{2028}`d` token=hunter2"
        );
        assert_eq!(quoted(&text, 99), "`abc d token=[secret]`");
        assert_eq!(said(&format!("{text} \"e\""), 99), "\"abc d token=[secret] 'e'\"");
        assert_eq!(quoted("abcdef", 3), "`abc…`");
    }
}
