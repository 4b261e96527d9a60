//! The notes that stand where the rules took something away (`docs/rules.md` §7): writing them and
//! knowing them again, byte for byte.

#[cfg(doc)]
use crate::settings::LEAF_KEEP_CHARS;

const DROPPED: (&str, &str) =
    ("[output removed by compactd: ", " chars; re-run the call to see it]");
const CUT: (&str, &str) =
    ("[output cut by compactd: ", " chars removed; re-run the call to see it]");
const OF: &str = " of ";
const INPUT: (&str, &str) = ("[input cut by compactd: ", " chars]");
const TEXT: (&str, &str) = ("[text cut by compactd: ", " chars removed]");

/// What stands where a host could not give back a picture or the like.
pub const NON_TEXT: &str =
    "[image or other non-text output removed by compactd; re-run the call to see it]";

/// An assistant's text of at most so many characters stays whole.
const LONG_TEXT_CHARS: u32 = 400;
/// So many characters of a longer one stay at least.
const TEXT_KEEP_CHARS: u32 = 200;

/// The note in place of a result of so many characters.
#[must_use]
pub fn dropped(chars: usize) -> String {
    format!("{}{chars}{}", DROPPED.0, DROPPED.1)
}

/// Whether a text is, as a whole, the note [`dropped`] writes.
#[must_use]
pub fn is_dropped_note(text: &str) -> bool {
    between(text, DROPPED).and_then(number).is_some()
}

/// Whether an earlier pass decided a result with this text.
#[must_use]
pub fn is_noted(text: &str) -> bool {
    text == NON_TEXT || is_dropped_note(text) || cut_note(text).is_some()
}

/// A text cut to its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// What is left: the start, a newline and the note.
    pub left: String,
    /// Length of the start in UTF-16 code units: where a JavaScript host cuts.
    pub at_utf16: usize,
    /// Length of the start in bytes.
    pub at_bytes: usize,
}

/// Cuts a text to its first `keep_chars` characters; `None` if that is not shorter in characters.
#[must_use]
pub fn cut(text: &str, keep_chars: usize) -> Option<Cut> {
    let at_bytes = text.char_indices().nth(keep_chars)?.0;
    let (kept, gone) = text.split_at(at_bytes);
    let removed = gone.chars().count();
    let note = format!("\n{}{removed}{OF}{}{}", CUT.0, keep_chars + removed, CUT.1);
    (note.len() < removed).then(|| Cut {
        left: [kept, &note].concat(),
        at_utf16: kept.chars().map(char::len_utf16).sum(),
        at_bytes,
    })
}

/// A text that ends in the note of [`cut`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutNote<'a> {
    /// The text before the note's line.
    pub kept: &'a str,
    /// How many characters the note says are gone.
    pub removed: u64,
    /// Of how many.
    pub total: u64,
}

/// Reads the note of [`cut`], if the text's last line is one.
#[must_use]
pub fn cut_note(text: &str) -> Option<CutNote<'_>> {
    let (kept, line) = text.rsplit_once('\n').unwrap_or(("", text));
    let (removed, total) = between(line, CUT)?.split_once(OF)?;
    let (removed, total) = (number(removed)?, number(total)?);
    (0 < removed && removed <= total).then_some(CutNote { kept, removed, total })
}

/// Shortens a leaf of a call's input to its first `keep_chars` characters ([`LEAF_KEEP_CHARS`]); `None` if
/// that is not shorter in characters.
#[must_use]
pub fn shortened_leaf(text: &str, keep_chars: usize) -> Option<String> {
    let at = text.char_indices().nth(keep_chars)?.0;
    let (kept, gone) = text.split_at(at);
    let removed = gone.chars().count();
    let note = format!("{}{removed}{}", INPUT.0, INPUT.1);
    (note.len() < removed).then(|| [kept, &note].concat())
}

/// The part of a shortened leaf before its note and how many characters the note says are gone.
#[must_use]
pub fn leaf_note(text: &str) -> Option<(&str, u64)> {
    let text = text.strip_suffix(INPUT.1)?;
    let digits = text.bytes().rev().take(21).take_while(u8::is_ascii_digit).count();
    let (text, digits) = text.split_at(text.len() - digits);
    let removed = number(digits).filter(|removed| *removed > 0)?;
    Some((text.strip_suffix(INPUT.0)?, removed))
}

/// How many characters stay of an assistant's text of so many characters: `fraction` of them, at
/// least 200. `None` if it has at most 400 or would not become shorter.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded down")]
pub fn text_keep(chars: u32, fraction: f64) -> Option<u32> {
    if chars <= LONG_TEXT_CHARS {
        return None;
    }
    let keep = ((f64::from(chars) * fraction) as u32).max(TEXT_KEEP_CHARS);
    (i64::from(chars) > i64::from(keep) + text_chars(chars, keep)).then_some(keep)
}

/// An assistant's text cut to its first characters.
#[must_use]
pub fn cut_text(text: &str, keep_chars: usize) -> String {
    let at = text.char_indices().nth(keep_chars).map_or(text.len(), |(at, _)| at);
    let (kept, gone) = text.split_at(at);
    let removed = gone.chars().count();
    format!("{kept}\n{}{removed}{OF}{}{}", TEXT.0, keep_chars + removed, TEXT.1)
}

/// Reads the note of [`cut_text`], if the text ends in one: the text before its line.
#[must_use]
pub fn text_note(text: &str) -> Option<&str> {
    let (kept, line) = text.rsplit_once('\n')?;
    let (removed, total) = between(line, TEXT)?.split_once(OF)?;
    let (removed, total) = (number(removed)?, number(total)?);
    (0 < removed && removed <= total).then_some(kept)
}

/// Characters that [`cut_text`] adds to the start that it keeps.
#[must_use]
pub fn text_chars(chars: u32, keep_chars: u32) -> i64 {
    let removed = chars.saturating_sub(keep_chars);
    1 + length(TEXT) + digits(removed) + 4 + digits(chars)
}

/// A text without our note, for its terms. At most one note goes: a text that is the dropped note
/// or [`NON_TEXT`] becomes empty, else [`NON_TEXT`] as the last line, a cut note or a text's note
/// goes with the newline before it, else a leaf's note goes.
#[must_use]
pub fn strip_notes(text: &str) -> &str {
    if !text.ends_with(']') {
        text
    } else if is_dropped_note(text) || text == NON_TEXT {
        ""
    } else if let Some(kept) = text.strip_suffix(NON_TEXT).and_then(|text| text.strip_suffix('\n'))
    {
        kept
    } else if let Some(note) = cut_note(text) {
        note.kept
    } else if let Some(kept) = text_note(text) {
        kept
    } else {
        leaf_note(text).map_or(text, |(kept, _)| kept)
    }
}

/// Characters of the note in place of a result of so many characters.
#[must_use]
pub fn dropped_chars(chars: u32) -> i64 {
    length(DROPPED) + digits(chars)
}

/// Characters that [`cut`] adds to the start that it keeps.
#[must_use]
pub fn cut_chars(chars: u32, keep_chars: u32) -> i64 {
    let removed = chars.saturating_sub(keep_chars);
    1 + length(CUT) + digits(removed) + 4 + digits(chars)
}

fn length((before, behind): (&str, &str)) -> i64 {
    i64::try_from(before.len() + behind.len()).unwrap_or(0)
}

fn digits(number: u32) -> i64 {
    i64::from(number.checked_ilog10().unwrap_or(0)) + 1
}

fn between<'a>(text: &'a str, (before, behind): (&str, &str)) -> Option<&'a str> {
    text.strip_prefix(before)?.strip_suffix(behind)
}

/// A number as we write it: below 2^64, without leading zeros.
fn number(digits: &str) -> Option<u64> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit());
    let leading_zero = digits.len() > 1 && digits.starts_with('0');
    if plain && !leading_zero { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::LEAF_KEEP_CHARS;
    use proptest::prelude::*;

    #[test]
    fn notes_are_these_bytes() {
        let text = "x".repeat(1234);
        let x200 = "x".repeat(200);
        assert_eq!(
            dropped(1234),
            "[output removed by compactd: 1234 chars; re-run the call to see it]"
        );
        assert_eq!(
            cut(&text, 200).unwrap().left,
            x200.clone()
                + "\n[output cut by compactd: 1034 of 1234 chars removed; re-run the call to see it]"
        );
        assert_eq!(
            shortened_leaf(&text, LEAF_KEEP_CHARS).unwrap(),
            x200 + "[input cut by compactd: 1034 chars]"
        );
    }

    #[test]
    fn nothing_is_cut_that_would_not_get_shorter() {
        let note = "\n[output cut by compactd: 80 of 90 chars removed; re-run the call to see it]";
        assert_eq!(note.len(), 76);
        assert!(cut(&"é".repeat(10 + 76), 10).is_none());
        assert_eq!(cut(&"é".repeat(10 + 77), 10).unwrap().left.chars().count(), 10 + 76);
        assert!(cut("", 0).is_none());
        assert!(shortened_leaf(&"x".repeat(10 + 33), 10).is_none());
        assert!(shortened_leaf(&"x".repeat(10 + 34), 10).is_some());
    }

    #[test]
    fn offsets_stand_between_characters() {
        let text = format!("a😀é{}", "b".repeat(100));
        let cut = cut(&text, 2).unwrap();
        assert_eq!((cut.at_utf16, cut.at_bytes), (3, 5));
        assert!(cut.left.starts_with("a😀\n["));
    }

    #[test]
    fn near_misses_are_no_notes() {
        let tail = "; re-run the call to see it]";
        assert!(is_dropped_note(&dropped(0)));
        for text in [
            format!("[output removed by compactd: 012 chars{tail}"),
            format!("[output removed by compactd: +12 chars{tail}"),
            format!("[output removed by compactd:  chars{tail}"),
            format!("[output removed by compactd:  12 chars{tail}"),
            format!("[output removed by compactd: 99999999999999999999 chars{tail}"),
            format!("{} ", dropped(12)),
            format!("{}\n", dropped(12)),
            format!(" {}", dropped(12)),
            format!("{}{}", dropped(1), dropped(2)),
        ] {
            assert!(!is_dropped_note(&text), "{text:?}");
            assert_eq!(strip_notes(&text), text);
        }
        let line = |n: &str| format!("a\n[output cut by compactd: {n} chars removed{tail}");
        assert_eq!(cut_note(&line("7 of 9")), Some(CutNote { kept: "a", removed: 7, total: 9 }));
        assert_eq!(cut_note(&line("9 of 9")[2..]).map(|note| note.kept), Some(""));
        for n in ["10 of 9", "0 of 9", "07 of 9", "7 of 09", "7 of  9", "7 of 9 of 9", "7", ""] {
            assert_eq!(cut_note(&line(n)), None, "{n:?}");
            assert_eq!(strip_notes(&line(n)), line(n));
        }
        assert_eq!(cut_note(&format!("{}\n", line("7 of 9"))), None);
        assert_eq!(cut_note(&line("7 of 9").replace('\n', " ")), None);
        assert_eq!(leaf_note("ab[input cut by compactd: 12 chars]"), Some(("ab", 12)));
        for text in [
            "ab[input cut by compactd: 012 chars]",
            "ab[input cut by compactd: 0 chars]",
            "ab[input cut by compactd: 12 chars] ",
            "ab[input cut by compactd: 12 chars]\n",
            "ab[input cut by compactd: x12 chars]",
            "ab[input cut by compactd: 999999999999999999999 chars]",
            "12 chars]",
        ] {
            assert_eq!(leaf_note(text), None, "{text:?}");
            assert_eq!(strip_notes(text), text);
        }
    }

    #[test]
    fn texts_are_cut_to_a_fraction() {
        assert_eq!(text_keep(400, 0.0), None);
        assert_eq!(text_keep(401, 0.0), Some(200));
        assert_eq!(text_keep(1_001, 0.5), Some(500));
        assert_eq!(text_keep(1_000, 1.0), None);
        assert_eq!(text_keep(u32::MAX, 1.0), None);
        let marker = "\n[text cut by compactd: 501 of 1001 chars removed]";
        let text = "é".repeat(1_001);
        let cut = cut_text(&text, 500);
        assert_eq!(cut, "é".repeat(500) + marker);
        assert_eq!((text_note(&cut), strip_notes(&cut)), (Some(&text[..1_000]), &text[..1_000]));
        for near in [
            marker.replace('\n', " "),
            marker.replace("501", "0501"),
            marker.replace("501", "1002"),
            marker.replace("501", "0"),
            format!("{marker} "),
            marker[1..].to_owned(),
        ] {
            assert_eq!(text_note(&near), None, "{near:?}");
            assert_eq!(strip_notes(&near), near);
        }
        // Not worth it: the marker takes what would go.
        let least = (401..).find(|chars| text_keep(*chars, 0.9).is_some()).unwrap();
        assert_eq!(least, 481);
        assert_eq!(text_chars(481, 432), 48);
    }

    #[test]
    fn what_is_no_text_has_a_note() {
        assert!(is_noted(NON_TEXT) && is_noted(&dropped(3)));
        assert_eq!(strip_notes(NON_TEXT), "");
        let behind = format!("seen\n{NON_TEXT}");
        assert_eq!((strip_notes(&behind), is_noted(&behind)), ("seen", false));
        for text in [format!("seen {NON_TEXT}"), format!("{NON_TEXT}\n")] {
            assert_eq!((strip_notes(&text), is_noted(&text)), (&*text, false));
        }
    }

    #[test]
    fn one_note_goes() {
        assert_eq!(strip_notes(&dropped(5)), "");
        let twice = "ab[input cut by compactd: 12 chars][input cut by compactd: 13 chars]";
        assert_eq!(strip_notes(twice), "ab[input cut by compactd: 12 chars]");
    }

    proptest! {
        #[test]
        fn a_cut_is_a_prefix_and_a_note(text in "(?s).{0,400}", keep in 0..300_usize) {
            if let Some(cut) = cut(&text, keep) {
                let note = cut_note(&cut.left).unwrap();
                prop_assert_eq!(note.kept, &text[..cut.at_bytes]);
                prop_assert_eq!(note.kept.chars().count(), keep);
                prop_assert_eq!(note.kept.encode_utf16().count(), cut.at_utf16);
                prop_assert_eq!(note.total, text.chars().count() as u64);
                prop_assert_eq!(note.removed, note.total - keep as u64);
                let added = cut.left.chars().count() - keep;
                prop_assert_eq!(cut_chars(note.total as u32, keep as u32), added as i64);
                prop_assert!(cut.left.chars().count() < text.chars().count());
                prop_assert_eq!(strip_notes(&cut.left), note.kept);
                prop_assert!(!is_dropped_note(&cut.left));
            }
            if let Some(left) = shortened_leaf(&text, keep) {
                let (kept, removed) = leaf_note(&left).unwrap();
                prop_assert!(text.starts_with(kept));
                prop_assert_eq!(removed as usize + keep, text.chars().count());
                prop_assert!(left.chars().count() < text.chars().count());
                prop_assert_eq!(strip_notes(&left), kept);
            }
        }

        #[test]
        fn a_text_is_cut_to_a_prefix_and_a_note(text in "(?s).{380,900}", fraction in 0.0..1.0_f64) {
            let chars = text.chars().count() as u32;
            if let Some(keep) = text_keep(chars, fraction) {
                let left = cut_text(&text, keep as usize);
                let kept = text_note(&left).unwrap();
                prop_assert!(text.starts_with(kept));
                prop_assert_eq!(kept.chars().count() as u32, keep);
                let added = left.chars().count() as i64 - i64::from(keep);
                prop_assert_eq!(added, text_chars(chars, keep));
                prop_assert!(left.chars().count() < text.chars().count());
                prop_assert!(!is_noted(&left));
            }
        }

        #[test]
        fn a_number_is_as_we_write_it(n: u64, digits in "[0-9]{0,21}") {
            prop_assert_eq!(number(&n.to_string()), Some(n));
            let ours = digits.parse::<u64>().ok().filter(|n| n.to_string() == digits);
            prop_assert_eq!(number(&digits), ours);
        }

        #[test]
        fn only_whole_notes_are_dropped_notes(chars: usize, before in "(?s).{0,3}", behind in "(?s).{0,3}") {
            prop_assert!(is_dropped_note(&dropped(chars)));
            let few = chars as u32;
            prop_assert_eq!(dropped_chars(few), dropped(few as usize).len() as i64);
            let around = format!("{before}{}{behind}", dropped(chars));
            prop_assert_eq!(is_dropped_note(&around), before.is_empty() && behind.is_empty());
        }
    }
}
