//! Reading JSON leniently: a checked line as raw slices, text decoded only where it is asked for.
//!
//! [`object`] checks a whole line once (through `serde_json`, which takes any depth that way) and
//! hands out its members as [`Raw`] slices. What lies inside a [`Raw`] is walked by the small
//! scanner below, which relies on that check for meaning but never for safety: on text that is no
//! JSON it yields nonsense, not a panic. Keys given twice: the last one wins, as in the hosts.

mod leaves;
pub(super) mod owned;
mod unescape;

use std::borrow::Cow;
use std::fmt;

use memchr::memchr2;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Host;

pub use leaves::leaves;
pub use unescape::unescape;

/// One JSON value as it stands in its line, without white space around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raw<'a>(&'a str);

impl<'a> From<&'a RawValue> for Raw<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self(raw.get())
    }
}

impl<'a> Raw<'a> {
    /// The value as written.
    #[must_use]
    pub fn get(self) -> &'a str {
        self.0
    }

    fn first(self) -> u8 {
        self.0.as_bytes().first().copied().unwrap_or(0)
    }

    /// Is it `null`?
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0 == "null"
    }

    /// Is it `true`?
    #[must_use]
    pub fn is_true(self) -> bool {
        self.0 == "true"
    }

    /// Is it an object?
    #[must_use]
    pub fn is_object(self) -> bool {
        self.first() == b'{'
    }

    /// Is it a list?
    #[must_use]
    pub fn is_list(self) -> bool {
        self.first() == b'['
    }

    /// Is it a string?
    #[must_use]
    pub fn is_string(self) -> bool {
        self.first() == b'"'
    }

    /// The decoded text of a string; `None` for any other value.
    #[must_use]
    pub fn text(self) -> Option<Cow<'a, str>> {
        if !self.is_string() || self.0.len() < 2 {
            return None;
        }
        Some(unescape(self.0.get(1..self.0.len() - 1)?))
    }

    /// The decoded text of a string, or a number as written.
    #[must_use]
    pub fn text_or_number(self) -> Option<Cow<'a, str>> {
        if matches!(self.first(), b'-' | b'0'..=b'9') {
            Some(Cow::Borrowed(self.0))
        } else {
            self.text()
        }
    }

    /// A whole number that is not negative; `None` for any other value.
    #[must_use]
    pub fn whole(self) -> Option<u64> {
        self.0.parse().ok()
    }

    /// A place in front of this value.
    #[must_use]
    pub fn walk(self) -> Walk<'a> {
        Walk { text: self.0, at: 0 }
    }

    /// The members of an object in order; nothing for any other value.
    #[must_use]
    pub fn members(self) -> Members<'a> {
        Members(Walk { text: self.0, at: if self.is_object() { 1 } else { self.0.len() } })
    }

    /// The elements of a list in order; nothing for any other value.
    #[must_use]
    pub fn elements(self) -> Elements<'a> {
        Elements(Walk { text: self.0, at: if self.is_list() { 1 } else { self.0.len() } })
    }

    /// The kind an object names: its first member `type`, if that is a string.
    #[must_use]
    pub fn kind(self) -> Option<Cow<'a, str>> {
        self.members().find(|(name, _)| name == "type")?.1.text()
    }

    /// The member of an object with this key (the last one, if it is given twice).
    #[must_use]
    pub fn member(self, key: &str) -> Option<Self> {
        self.members().filter(|(name, _)| name == key).last().map(|(_, value)| value)
    }
}

/// The members of an object, see [`Raw::members`].
#[derive(Debug, Clone)]
pub struct Members<'a>(Walk<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, Raw<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.0.key()?, self.0.value()?))
    }
}

/// The elements of a list, see [`Raw::elements`].
#[derive(Debug, Clone)]
pub struct Elements<'a>(Walk<'a>);

impl<'a> Iterator for Elements<'a> {
    type Item = Raw<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.value()
    }
}

/// A place in a checked value. Going into an object or list with [`Walk::enter`] reads its insides
/// without looking for its end first, so that long texts are not gone over once per level.
#[derive(Debug, Clone)]
pub struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walk<'a> {
    /// The first byte of the next value behind white space, commas and colons; `None` at the end
    /// of the container.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at)?, b' ' | b'\t' | b'\r' | b'\n' | b',' | b':') {
            self.at += 1;
        }
        bytes.get(self.at).copied().filter(|byte| !matches!(byte, b'}' | b']'))
    }

    /// The next value; `None` at the end of the container.
    pub fn value(&mut self) -> Option<Raw<'a>> {
        let first = self.peek()?;
        let start = self.at;
        let bytes = self.text.as_bytes();
        self.at = match first {
            b'"' => skip_string(bytes, start),
            b'{' | b'[' => skip_container(bytes, start),
            _ => skip_scalar(bytes, start),
        };
        self.text.get(start..self.at).map(Raw)
    }

    /// The key of the next member; `None` at the end of the object.
    pub fn key(&mut self) -> Option<Cow<'a, str>> {
        self.value()?.text()
    }

    /// Goes into the next value if it opens with `bracket` (`{` or `[`).
    pub fn enter(&mut self, bracket: u8) -> bool {
        let enters = self.peek() == Some(bracket);
        self.at += usize::from(enters);
        enters
    }

    /// Goes out of the container, whose insides have been read to their end.
    pub fn leave(&mut self) {
        let end = self.peek().is_none() && self.at < self.text.len();
        self.at += usize::from(end);
    }
}

/// The place of the next byte that is `one` or `two`: most are near, so a few words are looked at
/// before the vector search is called.
#[inline]
fn next_of(one: u8, two: u8, bytes: &[u8], mut at: usize) -> Option<usize> {
    const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    for _ in 0..4 {
        let Some(word) = bytes.get(at..at + 8).and_then(|word| <[u8; 8]>::try_from(word).ok())
        else {
            break;
        };
        let word = u64::from_le_bytes(word);
        // A byte that is zero after the exclusive or borrows from its top bit; the lowest such
        // byte is exact, bytes above it need not be.
        let (first, second) = (word ^ (LOW * u64::from(one)), word ^ (LOW * u64::from(two)));
        let hits =
            ((first.wrapping_sub(LOW) & !first) | (second.wrapping_sub(LOW) & !second)) & HIGH;
        if hits != 0 {
            return Some(at + hits.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    memchr2(one, two, bytes.get(at..)?).map(|hop| at + hop)
}

/// The place behind the string that opens at `at`.
#[inline]
fn skip_string(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while let Some(mark) = next_of(b'"', b'\\', bytes, at) {
        if bytes.get(mark) == Some(&b'"') {
            return mark + 1;
        }
        at = mark + 2;
    }
    bytes.len()
}

/// The place behind the object or list that opens at `at`.
fn skip_container(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = skip_string(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// The place behind the number or word that starts at `at`.
fn skip_scalar(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let end =
        |byte: &u8| matches!(byte, b',' | b':' | b'}' | b']' | b'"' | b' ' | b'\t' | b'\r' | b'\n');
    at + rest.iter().position(end).unwrap_or(rest.len()).max(1)
}

/// Checks that `text` is one JSON object and hands its members to `member`, in order.
///
/// `false`: it is not; members before the fault may have been handed out already.
pub fn object<'a>(text: &'a str, member: impl FnMut(&str, Raw<'a>)) -> bool {
    struct Top<F>(F);
    impl<'de, F: FnMut(&str, Raw<'de>)> Visitor<'de> for Top<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            // Raw keys too: a lone surrogate in a key is no reason to lose the line.
            while let Some((key, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                if let Some(key) = Raw::from(key).text() {
                    (self.0)(&key, value.into());
                }
            }
            Ok(())
        }
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.deserialize_map(Top(member)).is_ok() && reader.end().is_ok()
}

/// Checks that `text` is one JSON value of any kind and depth.
#[must_use]
pub fn value(text: &str) -> Option<Raw<'_>> {
    serde_json::from_str::<&RawValue>(text).ok().map(Raw::from)
}

/// Is this text a JSON object (cheaply refused when it does not look like one)?
#[must_use]
pub fn looks_like_object(text: &str) -> Option<Raw<'_>> {
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
    if text.starts_with('{') && text.ends_with('}') { value(text) } else { None }
}

/// Tells a host by the keys and kinds that are typical of it; `None` where a line is neither's.
#[must_use]
pub fn sniff(line: &[u8]) -> Option<Host> {
    let text = String::from_utf8_lossy(line);
    let (mut kind, mut record, mut claude, mut codex) = (None, false, false, false);
    let whole = object(&text, |key, value| match key {
        "type" => kind = value.text(),
        "parentUuid" => claude = true,
        "payload" => codex = value.is_object(),
        "record_type" | "instructions" | "git" => record = true,
        _ => {}
    });
    if !whole {
        return None;
    }
    match kind.as_deref() {
        Some("session_meta" | "response_item" | "event_msg" | "turn_context" | "compacted")
            if codex =>
        {
            Some(Host::Codex)
        }
        _ if claude => Some(Host::Claude),
        Some(
            "user"
            | "assistant"
            | "summary"
            | "system"
            | "attachment"
            | "file-history-snapshot"
            | "queue-operation"
            | "progress"
            | "permission-mode",
        ) => Some(Host::Claude),
        Some(
            "message" | "function_call" | "function_call_output" | "reasoning" | "local_shell_call",
        ) => Some(Host::Codex),
        None if record => Some(Host::Codex),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
