//! Decoding the inside of a JSON string, whatever a host wrote there.

use std::borrow::Cow;

use memchr::memchr;

use super::next_of;

/// Decodes what stands between the quotes of a JSON string.
///
/// Lone surrogates and escapes that JSON does not know become U+FFFD.
#[must_use]
pub fn unescape(inner: &str) -> Cow<'_, str> {
    let Some(mut hop) = memchr(b'\\', inner.as_bytes()) else { return Cow::Borrowed(inner) };
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    loop {
        // Every cut is at or behind an ASCII byte, so none of these falls inside a character.
        let (plain, tail) = rest.split_at_checked(hop).unwrap_or((rest, ""));
        out.push_str(plain);
        let (decoded, used) = escape(tail.as_bytes());
        if !tail.is_empty() {
            out.push(decoded);
        }
        rest = tail.get(used..).unwrap_or_default();
        match next_of(b'\\', b'\\', rest.as_bytes(), 0) {
            Some(next) => hop = next,
            None => break,
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The character for the escape at the start of `tail`, and its length.
fn escape(tail: &[u8]) -> (char, usize) {
    let decoded = match tail.get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'u') => return unicode_escape(tail),
        _ => return (char::REPLACEMENT_CHARACTER, 1),
    };
    (decoded, 2)
}

fn unicode_escape(tail: &[u8]) -> (char, usize) {
    let Some(unit) = hex4(tail.get(2..6)) else { return (char::REPLACEMENT_CHARACTER, 2) };
    if (0xd800..0xdc00).contains(&unit)
        && tail.get(6..8) == Some(b"\\u")
        && let Some(low @ 0xdc00..0xe000) = hex4(tail.get(8..12))
    {
        let code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
    }
    (char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER), 6)
}

fn hex4(digits: Option<&[u8]>) -> Option<u32> {
    digits?.iter().try_fold(0, |sum, digit| Some(sum << 4 | char::from(*digit).to_digit(16)?))
}
