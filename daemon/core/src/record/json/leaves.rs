//! The strings and numbers of a tool call's input, without recursion.

use super::{Raw, skip_scalar, skip_string, unescape};
use crate::record::Leaf;

/// The strings and numbers in a checked value, in order and at any depth.
///
/// Every object or list counts one level of depth; truth values and nulls are left out.
#[must_use]
pub fn leaves(raw: Raw<'_>) -> Vec<Leaf<'_>> {
    /// An open container: the place of the key under which it stands, and whether it has its own.
    struct Open {
        key: (u32, u32),
        object: bool,
    }
    let text = raw.get();
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    if u32::try_from(bytes.len()).is_err() {
        return out;
    }
    let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let mut open: Vec<Open> = Vec::new();
    let mut key = (0, 0);
    let mut wants_key = false;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let start = at;
        match byte {
            b'{' | b'[' => {
                wants_key = *byte == b'{';
                open.push(Open { key, object: wants_key });
                at += 1;
                continue;
            }
            b'}' | b']' => {
                open.pop();
                at += 1;
                continue;
            }
            b',' => {
                wants_key = open.last().is_some_and(|o| o.object);
                if let Some(Open { key: outer, object: false }) = open.last() {
                    key = *outer;
                }
                at += 1;
                continue;
            }
            b'"' => at = skip_string(bytes, at),
            b'-' | b'0'..=b'9' => at = skip_scalar(bytes, at),
            _ => {
                at += 1;
                continue;
            }
        }
        if wants_key {
            key = (place(start + 1), place(at.saturating_sub(1)));
            wants_key = false;
            continue;
        }
        let leaf = Raw(text.get(start..at).unwrap_or_default());
        if let Some(decoded) = leaf.text_or_number() {
            out.push(Leaf {
                key: unescape(text.get(key.0 as usize..key.1 as usize).unwrap_or_default()),
                depth: u8::try_from(open.len()).unwrap_or(u8::MAX),
                string: leaf.is_string(),
                text: decoded,
            });
        }
    }
    out
}
