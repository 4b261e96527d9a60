//! The exact rules of §3 on one candidate. Each function gives the part of the candidate that is
//! the term.

use super::class::{ALNUM, DIGIT, LETTER, LOWER, UNDER, UPPER, behind, is};
use std::ops::Range;

/// Whether a run of word bytes with an [identifier mark](super::class::Marks) is an
/// identifier (§3.3), trimmed.
#[inline]
pub(super) fn identifier(bytes: &[u8], run: Range<usize>) -> Option<Range<usize>> {
    let Range { start, end } = run;
    if is(bytes[start], LETTER) && is(bytes[end - 1], ALNUM) {
        // Nothing to trim, so what is marked has its neighbours within, and a letter is there.
        return (6..=200).contains(&(end - start)).then_some(run);
    }
    trimmed_identifier(bytes, start, end)
}

fn trimmed_identifier(bytes: &[u8], mut start: usize, mut end: usize) -> Option<Range<usize>> {
    while start < end && !is(bytes[start], LETTER | UNDER) && bytes[start] != b'$' {
        start += 1;
    }
    while start < end && bytes[end - 1] == b'-' {
        end -= 1;
    }
    if !(6..=200).contains(&(end - start)) {
        return None;
    }
    let mut seen = 0;
    let (mut before, mut last) = (0, 0);
    let (mut worded, mut gap, mut shaped) = (false, false, false);
    for &b in &bytes[start..end] {
        let class = super::class::CLASS[usize::from(b)];
        seen |= class;
        if class & UNDER != 0 {
            gap |= worded;
        } else {
            shaped |= gap;
            worded = true;
        }
        shaped |= class & UPPER != 0 && is(last, LOWER | DIGIT);
        shaped |= last == b'-' && class & ALNUM != 0 && is(before, ALNUM);
        if shaped && seen & LETTER != 0 {
            return Some(start..end);
        }
        (before, last) = (last, b);
    }
    None
}

/// The trailing trim of paths: a lone `$` goes too, once, with what stands before it.
fn trim_path(bytes: &[u8], start: usize, end: usize) -> usize {
    let end = trim_trailing(bytes, start, end);
    let path = &bytes[start..end];
    if path.ends_with(b"$") && !path.ends_with(b"$$") {
        trim_trailing(bytes, start, end - 1)
    } else {
        end
    }
}

fn trim_trailing(bytes: &[u8], start: usize, mut end: usize) -> usize {
    while start < end && matches!(bytes[end - 1], b'.' | b'/' | b'-' | b'+' | b'@' | b'~' | b'\\') {
        end -= 1;
    }
    end
}

/// The path in a chunk, if it holds `/` (§3.2).
pub(super) fn path(bytes: &[u8], chunk: Range<usize>) -> Option<Range<usize>> {
    let Range { mut start, end } = chunk;
    let slashes = bytes[start..end].iter().take_while(|b| **b == b'/').count();
    if slashes >= 2 {
        start += slashes;
    }
    let end = trim_path(bytes, start, end);
    let path = &bytes[start..end];
    if !(5..=400).contains(&path.len()) || !path.iter().any(|b| is(*b, LETTER)) {
        return None;
    }
    let last = memchr::memrchr(b'/', path)?;
    let rooted = matches!(path[0], b'/' | b'~' | b'.');
    let deep = || path[..last].contains(&b'/');
    (rooted || deep() || extension(&path[last + 1..])).then_some(start..end)
}

/// Whether a file name ends in `.` and 1-8 letters or digits, the `.` not at its start.
fn extension(name: &[u8]) -> bool {
    let tail = name.iter().rev().take(9).take_while(|b| is(**b, ALNUM)).count();
    (1..=8).contains(&tail) && name.len() > tail + 1 && name[name.len() - tail - 1] == b'.'
}

/// The path in a chunk that starts with `\` behind a drive's letter and colon (§3.2).
pub(super) fn drive_path(bytes: &[u8], chunk: Range<usize>) -> Option<Range<usize>> {
    let Range { start, end } = chunk;
    let drive = start >= 2
        && bytes[start] == b'\\'
        && bytes[start - 1] == b':'
        && is(bytes[start - 2], LETTER)
        && !behind(bytes, start - 2, ALNUM);
    if !drive {
        return None;
    }
    let end = trim_path(bytes, start, end);
    let path = &bytes[start..end];
    ((5..=400).contains(&path.len()) && path.iter().any(|b| is(*b, LETTER))).then_some(start..end)
}

/// The number at the start of a maximal run of number bytes that starts with a digit (§3.4).
pub(super) fn number(bytes: &[u8], run: Range<usize>) -> Option<Range<usize>> {
    let Range { start, mut end } = run;
    while start < end && !bytes[end - 1].is_ascii_digit() {
        end -= 1;
    }
    if bytes.get(end).is_some_and(|b| is(*b, ALNUM | UNDER)) {
        return None;
    }
    let mut digits = 0;
    for b in &bytes[start..end] {
        digits += usize::from(b.is_ascii_digit());
        if digits > 40 {
            return None;
        }
    }
    (digits >= 4).then_some(start..end)
}

/// What an opening quote finds (§3.5): where its quotation closes and the term in it, if any.
pub(super) struct Quotation {
    pub(super) close: usize,
    pub(super) term: Option<Range<usize>>,
}

/// The quotation that opens at `open`, if it closes.
pub(super) fn quotation(text: &str, open: usize) -> Option<Quotation> {
    /// Characters of up to four bytes.
    const FAR: usize = 4 * MAX_QUOTED + 1;
    let bytes = text.as_bytes();
    let from = open + 1;
    let near = &bytes[from..bytes.len().min(from + FAR)];
    let len = memchr::memchr2(bytes[open], b'\n', near)?;
    let close = from + len;
    if bytes[close] == b'\n' {
        return None;
    }
    let content = text.get(from..close)?;
    if len > MAX_QUOTED && content.chars().count() > MAX_QUOTED {
        return None;
    }
    let end = content.trim_end_matches(|c: char| c.is_whitespace() || c == '\\').len();
    let kept = content[..end].trim_start();
    let good = kept.len() >= 8
        && kept.bytes().any(|b| is(b, LETTER))
        && (kept.is_ascii() || kept.chars().count() >= 8);
    let end = from + end;
    Some(Quotation { close, term: good.then_some(end - kept.len()..end) })
}

/// Characters of a quotation, before it is trimmed.
const MAX_QUOTED: usize = 200;

/// The line around `at`: where it ends, and the term in it, if it has a length to be one (§3.6).
/// No line break is between `from` and the line's start but those before it.
pub(super) fn line(text: &str, from: usize, at: usize) -> (usize, Option<Range<usize>>) {
    let bytes = text.as_bytes();
    let start = memchr::memrchr(b'\n', &bytes[from..at]).map_or(from, |i| from + i + 1);
    let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |i| at + i);
    let line = text.get(start..end).unwrap_or_default();
    let begun = line.trim_start();
    let start = end - begun.len();
    let trimmed = begun.trim_end();
    let good = trimmed.len() >= 8
        && trimmed.len() <= 4 * 300
        && (8..=300).contains(&trimmed.chars().count());
    (end, good.then_some(start..start + trimmed.len()))
}

/// Whether `E` and four digits stand around the digit at `at`, the `E` right before it.
pub(super) fn error_code(bytes: &[u8], at: usize) -> bool {
    at > 0
        && bytes[at - 1] == b'E'
        && bytes.get(at..at + 4).is_some_and(|d| d.iter().all(u8::is_ascii_digit))
}
