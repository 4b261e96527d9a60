//! The notes that stand where the rules took something away (`docs/rules.md` §7): writing them and
//! knowing them again, byte for byte.

const DROPPED: (&str, &str) =
    ("[output removed by compactd: ", " chars; re-run the call to see it]");
const CUT: (&str, &str) =
    ("[output cut by compactd: ", " chars removed; re-run the call to see it]");
const OF: &str = " of ";
const INPUT: (&str, &str) = ("[input cut by compactd: ", " chars]");

/// Characters of a leaf that stay when it is shortened.
pub const LEAF_KEEP: usize = 200;

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

/// Shortens a leaf of a call's input to its first `keep_chars` characters ([`LEAF_KEEP`]); `None` if
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

/// A text without our note, for its terms. At most one note goes: a text that is the dropped note
/// becomes empty, else a cut note goes with the newline before it, else a leaf's note goes.
#[must_use]
pub fn strip_notes(text: &str) -> &str {
    if !text.ends_with(']') {
        text
    } else if is_dropped_note(text) {
        ""
    } else if let Some(note) = cut_note(text) {
        note.kept
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
            shortened_leaf(&text, LEAF_KEEP).unwrap(),
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
