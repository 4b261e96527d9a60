//! Whether what is in a host's file now says the same as what was in it before the installation.
//!
//! Pure. A host does not edit its files, it prints them again: order, white space, escapes and the
//! digits of numbers change. Files are therefore compared by what the host reads in them, without
//! what only our plugin's coming and going leaves there.

use serde_json::{Map, Value};

use super::plugin::{ID, NAME};

/// What to do with a file of the host once its own commands have run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It has the bytes that it had, or is as absent as it was.
    Same,
    /// Put the saved bytes back.
    PutBack,
    /// It was not there and holds nothing now.
    Remove,
    /// Something else changed: leave it.
    Leave,
}

/// A file at four times; `None` where it was not there.
#[derive(Debug, Clone, Copy)]
pub struct History<'a> {
    /// Before the installation.
    pub before: Option<&'a [u8]>,
    /// Whether the file that stood there when undoing began was, byte for byte, what the
    /// installation left.
    pub untouched_since: bool,
    /// When undoing began.
    pub found: Option<&'a [u8]>,
    /// After the host's own commands.
    pub now: Option<&'a [u8]>,
}

/// Decides about one file.
#[must_use]
pub fn verdict(history: History<'_>) -> Verdict {
    let History { before, untouched_since, found, now } = history;
    match (before, now) {
        (before, now) if before == now => Verdict::Same,
        (Some(before), Some(now)) if same(before, now) => Verdict::PutBack,
        (None, Some(now)) if same(b"", now) => Verdict::Remove,
        // The host's own state, made when the installation first ran it, and not used since.
        (None, Some(now)) if untouched_since && found.is_some_and(|found| same(found, now)) => {
            Verdict::Remove
        }
        _ => Verdict::Leave,
    }
}

/// Whether both mean the same to the host, apart from our plugin.
#[must_use]
pub fn same(one: &[u8], other: &[u8]) -> bool {
    match (parse(one), parse(other)) {
        (Some(one), Some(other)) => equal(&without_us(one), &without_us(other)),
        _ => false,
    }
}

/// Keys that the host made for our plugin and leaves empty.
#[must_use]
pub fn left_empty(before: Option<&[u8]>, now: Option<&[u8]>) -> Vec<&'static str> {
    let parsed = |bytes: Option<&[u8]>| bytes.and_then(parse).unwrap_or_default();
    let (before, now) = (parsed(before), parsed(now));
    let is_left = |key: &&str| {
        let is_empty = now.get(key).and_then(Value::as_object).is_some_and(Map::is_empty);
        is_empty && before.get(key).is_none()
    };
    ["enabledPlugins", "extraKnownMarketplaces"].into_iter().filter(is_left).collect()
}

/// Reads a file as the host does: an empty one is an empty object, a byte order mark is skipped.
#[must_use]
pub fn parse(bytes: &[u8]) -> Option<Value> {
    let text = text(bytes)?;
    if text.trim().is_empty() {
        return Some(Value::Object(Map::new()));
    }
    serde_json::from_str(&whole_escapes(text)).ok()
}

/// Why the host could not keep what is in its settings, if it could not.
#[must_use]
pub fn problem(bytes: &[u8]) -> Option<String> {
    let Some(text) = text(bytes) else { return Some("it is not UTF-8".to_owned()) };
    if text.trim().is_empty() {
        return None;
    }
    match serde_json::from_str(&whole_escapes(text)) {
        Ok(Value::Object(_)) => None,
        Ok(_) => Some("it holds another value".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Turns each escape of half a surrogate pair, which JavaScript keeps and no Rust string can hold,
/// into the same text with two backslashes; strings with such halves then compare by it.
fn whole_escapes(text: &str) -> String {
    let half = |at: usize| {
        let digits = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        let unit = u16::from_str_radix(digits, 16).ok()?;
        (unit & 0xf800 == 0xd800).then_some(unit & 0x0400 == 0)
    };
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(found) = rest.find('\\') {
        let at = text.len() - rest.len() + found;
        // An escape that is not of half a pair is two bytes for us; `\u` has no backslash after it.
        let (kept, doubled) = match (half(at), half(at + 6)) {
            (Some(true), Some(false)) => (12, false),
            (Some(_), _) => (6, true),
            (None, _) => (2, false),
        };
        let end = (found + kept).min(rest.len());
        let (Some(before), Some(escape)) = (rest.get(..found), rest.get(found..end)) else { break };
        whole.push_str(before);
        if doubled {
            whole.push('\\');
        }
        whole.push_str(escape);
        rest = rest.get(end..).unwrap_or_default();
    }
    whole.push_str(rest);
    whole
}

/// Takes out what the plugin's coming and going leaves: its own entries, and the containers that
/// hold nothing without them.
fn without_us(mut value: Value) -> Value {
    let Value::Object(all) = &mut value else { return value };
    let has_plugins = all.get("plugins").is_some_and(Value::is_object);
    // Lists and maps of settings, marketplaces, plugins and the host's own state.
    for (key, ours) in [
        ("enabledPlugins", ID),
        ("extraKnownMarketplaces", NAME),
        ("declinedPlugins", ID),
        ("plugins", ID),
    ] {
        let is_empty = match all.get_mut(key) {
            Some(Value::Object(entries)) => {
                entries.remove(ours);
                entries.is_empty()
            }
            Some(Value::Array(entries)) => {
                entries.retain(|entry| entry != ours);
                entries.is_empty()
            }
            _ => false,
        };
        if is_empty {
            all.remove(key);
        }
    }
    // `known_marketplaces.json` holds them at its top.
    if all.get(NAME).is_some_and(|entry| entry.get("installLocation").is_some()) {
        all.remove(NAME);
    }
    // All that is left of `installed_plugins.json` is its format.
    if has_plugins && all.len() == 1 && all.get("version").is_some_and(Value::is_number) {
        all.remove("version");
    }
    value
}

/// Whether a JavaScript program sees the same: numbers are doubles there, and order is nothing.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64().is_some() && one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, one)| other.get(key).is_some_and(|other| equal(one, other)))
        }
        _ => one == other,
    }
}

#[cfg(test)]
#[path = "restore_tests.rs"]
mod tests;
