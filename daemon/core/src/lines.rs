//! Comparisons by whole lines (`docs/rules.md` §5 and §6.2): what a read showed, what a text quotes,
//! and the words that make a text a rule.

use crate::hash::hash;
use std::borrow::Cow;

const REMINDER: &str = "<system-reminder>";
const REMINDER_END: &str = "</system-reminder>";
/// A line with fewer characters is no quotation of another.
const MIN_QUOTED: usize = 40;
/// What Claude Code answers instead of a file it has shown before, as versions word it.
const UNCHANGED: [&str; 2] =
    ["file unchanged since last read", "file unchanged since your last read"];
/// A longer answer is a file that talks about such an answer.
const UNCHANGED_MAX_BYTES: usize = 400;

/// Appends the hashes of the read lines of a body. None are appended if the body is no read.
pub fn read_lines(body: &str, out: &mut Vec<u64>) {
    let body = without_reminders(body);
    let shown = || body.split('\n').filter(|line| !line.trim().is_empty());
    let numbered = shown().all(|line| line_number(line) > 0);
    let start = out.len();
    let mut filled = start;
    for line in body.split('\n') {
        let number = if numbered { line_number(line) } else { 0 };
        let line = line.get(number..).unwrap_or_default().trim_end();
        out.push(hash(line.as_bytes()));
        if !line.is_empty() {
            filled = out.len();
        }
    }
    out.truncate(filled);
}

/// Takes the blocks `<system-reminder>` … `</system-reminder>` out of a text.
fn without_reminders(body: &str) -> Cow<'_, str> {
    let Some((mut before, mut rest)) = body.split_once(REMINDER) else {
        return Cow::Borrowed(body);
    };
    let mut kept = String::new();
    loop {
        let Some((_, behind)) = rest.split_once(REMINDER_END) else {
            // Not closed: it stays, as the text it is.
            kept.push_str(&body[body.len() - rest.len() - REMINDER.len() - before.len()..]);
            return Cow::Owned(kept);
        };
        kept.push_str(before);
        let Some((text, next)) = behind.split_once(REMINDER) else {
            kept.push_str(behind);
            return Cow::Owned(kept);
        };
        (before, rest) = (text, next);
    }
}

/// The length of the line number a reading tool puts before a line; 0 if there is none.
fn line_number(line: &str) -> usize {
    let bytes = line.as_bytes();
    let blanks = bytes.iter().take_while(|b| **b == b' ').count();
    let digits = bytes[blanks..].iter().take(8).take_while(|b| b.is_ascii_digit()).count();
    let end = blanks + digits;
    let behind = bytes.get(end..).unwrap_or_default();
    let mark = ["\t", "→", ": "].iter().find(|mark| behind.starts_with(mark.as_bytes()));
    match mark {
        Some(mark) if (1..=7).contains(&digits) => end + mark.len(),
        _ => 0,
    }
}

/// Appends the hashes of the lines of a result's body that a text may quote.
pub fn quotable_lines(body: &str, out: &mut Vec<u64>) {
    for line in body.split('\n') {
        push_long(line.trim(), out);
    }
}

/// Appends the hashes of the lines of an assistant text that may quote a result.
pub fn quoting_lines(text: &str, out: &mut Vec<u64>) {
    for line in text.split('\n') {
        if line.len() >= MIN_QUOTED {
            push_long(without_marks(line), out);
        }
    }
}

fn push_long(line: &str, out: &mut Vec<u64>) {
    if line.len() >= MIN_QUOTED && line.chars().nth(MIN_QUOTED - 1).is_some() {
        out.push(hash(line.as_bytes()));
    }
}

/// A line without Markdown's marks of quotations, lists and code around it.
fn without_marks(line: &str) -> &str {
    let mut line = line;
    loop {
        line = line.trim_start_matches(|c: char| {
            c.is_whitespace() || matches!(c, '>' | '-' | '*' | '+' | '`')
        });
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        match line.get(digits..).and_then(|behind| behind.strip_prefix('.')) {
            Some(behind) if digits > 0 && !behind.starts_with(|c: char| !c.is_whitespace()) => {
                line = behind;
            }
            _ => break,
        }
    }
    line.trim_end_matches(|c: char| c.is_whitespace() || c == '`')
}

/// Whether a text states a rule: `must`, `never`, `always`, `do not` or `don't`, as words.
#[must_use]
pub fn has_rule_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(found) =
        bytes[at..].iter().position(|b| matches!(b | 0x20, b'm' | b'n' | b'a' | b'd'))
    {
        let start = at + found;
        at = start + 1;
        if start > 0 && is_plain_word(bytes[start - 1]) {
            continue;
        }
        let rest = &bytes[start..];
        let word = ["must", "never", "always", "do not", "don't", "don’t"].iter().find(|word| {
            rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes()))
        });
        if let Some(word) = word
            && !text[..start].ends_with(is_word)
            && !text[start + word.len()..].starts_with(is_word)
        {
            return true;
        }
    }
    false
}

fn is_plain_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Whether a result only says that the file is as an earlier read showed it.
#[must_use]
pub fn is_unchanged_stub(text: &str) -> bool {
    text.len() <= UNCHANGED_MAX_BYTES && {
        let text = text.to_ascii_lowercase();
        UNCHANGED.iter().any(|stub| text.contains(stub))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(body: &str) -> Vec<u64> {
        let mut out = vec![1];
        read_lines(body, &mut out);
        assert_eq!(out.remove(0), 1);
        out
    }

    fn hashes(lines: &[&str]) -> Vec<u64> {
        lines.iter().map(|line| hash(line.as_bytes())).collect()
    }

    fn quoting(text: &str) -> Vec<u64> {
        let mut out = Vec::new();
        quoting_lines(text, &mut out);
        out
    }

    #[test]
    fn line_numbers_go_if_every_line_has_one() {
        let want = hashes(&["fn a() {", "", "    b", "}"]);
        assert_eq!(read("     1\tfn a() {\n     2\t\n     3\t    b\n     4\t}\n"), want);
        assert_eq!(read("1→fn a() {\n2→\n3→    b  \n4→}\n\n  \n"), want);
        assert_eq!(read("1: fn a() {\n\n3:     b\r\n1234567: }"), want);
        assert_eq!(read("fn a() {\n\n    b\n}\n"), want);
        assert_eq!(read("1: a\nb"), hashes(&["1: a", "b"]));
        assert_eq!(read("12345678: a"), hashes(&["12345678: a"]));
        assert_eq!(read("1:a"), hashes(&["1:a"]));
        assert_eq!(read("\t1\ta"), hashes(&["\t1\ta"]));
        assert_eq!(read("  12\n"), hashes(&["  12"]));
    }

    #[test]
    fn a_body_without_lines_is_no_read() {
        for body in
            ["", "\n\n", "  \n\t\n", "1\t\n2\t\n", "<system-reminder>a\nb</system-reminder>"]
        {
            assert!(read(body).is_empty(), "{body:?}");
        }
    }

    #[test]
    fn reminders_go() {
        let r = "<system-reminder>\n1\n</system-reminder>";
        assert_eq!(read(&format!("1\ta\n2\tb\n\n{r}\n")), hashes(&["a", "b"]));
        assert_eq!(read(&format!("{r}a{r}{r}b{r}")), hashes(&["ab"]));
        assert_eq!(read("a <system-reminder> b"), hashes(&["a <system-reminder> b"]));
        let open = format!("a{r}b<system-reminder> c");
        assert_eq!(read(&open), hashes(&["ab<system-reminder> c"]));
        assert_eq!(read("</system-reminder>"), hashes(&["</system-reminder>"]));
    }

    #[test]
    fn quotations_match_what_they_quote() {
        let line = "the quick brown fox jumps over the lazy dog";
        let mut shown = Vec::new();
        quotable_lines(&format!("short\n  {line}\r\n"), &mut shown);
        assert_eq!(shown, hashes(&[line]));
        for text in [
            line.to_owned(),
            format!("> {line}"),
            format!("  - `{line}` "),
            format!("> 12. * ``{line}``\n"),
            format!("1. 2. + {line} ` `"),
        ] {
            assert_eq!(quoting(&text), shown, "{text:?}");
        }
        let number = format!("3.14 {line}");
        assert_eq!(quoting(&number), hashes(&[&number]));
        assert!(quoting("> 1. `short`").is_empty());
        assert!(quoting(&"é".repeat(39)).is_empty());
        assert_eq!(quoting(&"é".repeat(40)), hashes(&[&"é".repeat(40)]));
    }

    #[test]
    fn rule_words_stand_alone() {
        for text in [
            "must",
            "You MUST.",
            "(never)",
            "Always,",
            "do not",
            "Don't do",
            "DON’T",
            "a-must-b",
            "mustmust must",
            "“never”",
            "must\n",
            "1 never 2",
            "mmust never",
        ] {
            assert!(has_rule_word(text), "{text:?}");
        }
        for text in [
            "",
            "mustard",
            "_must",
            "must_",
            "must1",
            "whenever",
            "nevermore",
            "do  not",
            "do\nnot",
            "undo not",
            "do nothing",
            "dont",
            "don`t",
            "émust",
            "musté",
            "must²",
            "日never",
        ] {
            assert!(!has_rule_word(text), "{text:?}");
        }
    }

    #[test]
    fn stubs_are_short_and_hold_the_sentence() {
        assert!(is_unchanged_stub("File unchanged since last read. The content from"));
        assert!(is_unchanged_stub("Wasted call - file unchanged since your last Read."));
        assert!(!is_unchanged_stub("File unchanged"));
        let long = format!("File unchanged since last read{}", " ".repeat(400));
        assert!(!is_unchanged_stub(&long));
    }

    #[test]
    fn hostile_texts_take_linear_time() {
        let n = 2_000_000;
        let mut out = Vec::new();
        for unit in ["<system-reminder>", "1", "1. ", "> ", "`", "mustmust", "do ", "\n", " ", "é"]
        {
            let text = unit.repeat(n);
            read_lines(&text, &mut out);
            quotable_lines(&text, &mut out);
            quoting_lines(&text, &mut out);
            assert!(!has_rule_word(&text));
            out.clear();
        }
    }

    /// §5 once more, with the regex crate.
    fn slow_read(body: &str) -> Vec<String> {
        let re = |s: &str| regex::Regex::new(s).unwrap();
        let body = re("(?s)<system-reminder>.*?</system-reminder>").replace_all(body, "");
        let number = re("^ *[0-9]{1,7}(?:\t|→|: )");
        let lines: Vec<&str> = body.split('\n').collect();
        let all = lines.iter().filter(|l| !l.trim().is_empty()).all(|l| number.is_match(l));
        let cut = |l: &&str| {
            if all { number.replace(l, "").into_owned() } else { (*l).to_owned() }
        };
        let mut lines: Vec<String> =
            lines.iter().map(cut).map(|l| l.trim_end().to_owned()).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    fn slow_quoting(text: &str) -> Vec<String> {
        let re = |s: &str| regex::Regex::new(s).unwrap();
        let (head, tail) = (re(r"^(?:[\s>*+`-]|[0-9]+\.(?:\s|$))+"), re(r"[\s`]+$"));
        text.split('\n')
            .map(|l| tail.replace(&head.replace(l, ""), "").into_owned())
            .filter(|l| l.chars().count() >= 40)
            .collect()
    }

    proptest! {
        #[test]
        fn read_lines_agree_with_the_slow_twin(
            body in "((  ){0,2}([0-9]{1,8}(\t|→|: |:)){0,2}( |é|\\{|\r|<system-reminder>|</system-reminder>){0,3}\n){0,5}",
            numbered in "( {0,2}[0-9]{1,7}\t[a ]{0,3}\n?){0,5}",
        ) {
            for body in [body, numbered] {
                let want: Vec<u64> = slow_read(&body).iter().map(|l| hash(l.as_bytes())).collect();
                prop_assert_eq!(read(&body), want);
            }
        }

        #[test]
        fn quoting_lines_agree_with_the_slow_twin(
            text in "([> `*+\u{a0}-]|[0-9]{1,2}\\.? ?){0,6}[a-zé]{35,45}([`. ]|\n){0,4}[0-9.]{0,3}",
        ) {
            let want: Vec<u64> = slow_quoting(&text).iter().map(|l| hash(l.as_bytes())).collect();
            prop_assert_eq!(quoting(&text), want);
        }

        #[test]
        fn rule_words_agree_with_the_slow_twin(
            text in "([ _.é²1]|must|NEVER|Always|do|not|don['’]t|DO NOT|n){0,6}",
        ) {
            let words = regex::Regex::new("(?i-u:must|never|always|do not|don't|don\u{2019}t)").unwrap();
            let bounded = |from: usize| words.find_at(&text, from).map(|m| {
                let word = |c: Option<char>| c.is_some_and(|c| c == '_' || c.is_alphanumeric());
                !word(text[..m.start()].chars().next_back()) && !word(text[m.end()..].chars().next())
            });
            let any = (0..text.len()).filter(|i| text.is_char_boundary(*i)).any(|i| bounded(i) == Some(true));
            prop_assert_eq!(has_rule_word(&text), any);
        }
    }
}
