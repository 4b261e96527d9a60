//! Writes an answer: the same bytes as serde, which takes some times longer for thousands of
//! decisions.

use super::{CompactAnswer, ResultDecision};
use crate::text::Text;

/// Bytes that a decision and an ordinal take about, to make room at once.
const DECISION_BYTES: usize = 160;
const ORDINAL_BYTES: usize = 6;

/// The answer as JSON.
pub(super) fn write(answer: &CompactAnswer<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(
        answer.decisions.len() * DECISION_BYTES + answer.ordinals.len() * ORDINAL_BYTES + 1024,
    );
    field(&mut out, "{\"protocol\":", u64::from(answer.protocol));
    field(&mut out, ",\"compaction\":", answer.compaction);
    text(&mut out, ",\"outcome\":", answer.outcome.name());
    if let Some(reason) = &answer.reason {
        text(&mut out, ",\"reason\":", reason);
    }
    if let Some(level) = answer.level {
        text(&mut out, ",\"level\":", level.name());
    }
    out.extend_from_slice(b",\"ordinals\":[");
    for (at, ordinal) in answer.ordinals.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        match ordinal {
            Some(ordinal) => field(&mut out, comma, u64::from(*ordinal)),
            None => {
                out.extend_from_slice(comma.as_bytes());
                out.extend_from_slice(b"null");
            }
        }
    }
    if !answer.unknown.is_empty() {
        out.extend_from_slice(b"],\"unknown\":[");
        ids(&mut out, &answer.unknown);
    }
    out.extend_from_slice(b"],\"decisions\":[");
    for (at, one) in answer.decisions.iter().enumerate() {
        decision(&mut out, if at == 0 { "{\"id\":" } else { ",{\"id\":" }, one);
    }
    for (at, cut) in answer.texts.iter().enumerate() {
        field(&mut out, if at == 0 { "],\"texts\":[[" } else { "],[" }, cut.row);
        field(&mut out, ",", cut.chars);
        field(&mut out, ",", cut.keep);
    }
    if !answer.texts.is_empty() {
        out.push(b']');
    }
    if !answer.opaque.is_empty() {
        out.extend_from_slice(b"],\"opaque\":[");
        ids(&mut out, &answer.opaque);
    }
    for (at, attached) in answer.attached.iter().enumerate() {
        field(&mut out, if at == 0 { "],\"attached\":[[" } else { "],[" }, attached.row);
        text(&mut out, ",", &attached.text);
    }
    if !answer.attached.is_empty() {
        out.push(b']');
    }
    out.push(b']');
    if let Some(focus) = &answer.focus {
        text(&mut out, ",\"focus\":", focus);
    }
    let counters = &answer.counters;
    field(&mut out, ",\"counters\":{\"results\":", counters.results);
    field(&mut out, ",\"kept\":", counters.kept);
    field(&mut out, ",\"truncated\":", counters.truncated);
    field(&mut out, ",\"dropped\":", counters.dropped);
    field(&mut out, ",\"chars_before\":", counters.chars_before);
    field(&mut out, ",\"chars_after\":", counters.chars_after);
    field(&mut out, ",\"tokens_before\":", counters.tokens_before);
    field(&mut out, ",\"tokens_after\":", counters.tokens_after);
    if let Some(budget) = counters.budget {
        field(&mut out, ",\"budget\":", budget);
    }
    field(&mut out, ",\"micros\":", counters.micros);
    out.extend_from_slice(b"}}");
    out
}

fn ids(out: &mut Vec<u8>, ids: &[Text<'_>]) {
    for (at, id) in ids.iter().enumerate() {
        text(out, if at == 0 { "" } else { "," }, id);
    }
}

fn decision(out: &mut Vec<u8>, lead: &str, one: &ResultDecision<'_>) {
    text(out, lead, &one.id);
    text(out, ",\"decision\":", one.decision.name());
    text(out, ",\"rule\":", &one.rule);
    field(out, ",\"chars\":", one.chars);
    if let Some(removed) = one.removed {
        field(out, ",\"removed\":", removed);
    }
    if let Some(cut) = one.cut_utf16 {
        field(out, ",\"cut_utf16\":", cut);
    }
    text(out, ",\"call\":", one.call.name());
    for (at, leaf) in one.leaves.iter().enumerate() {
        field(out, if at == 0 { ",\"leaves\":[[" } else { ",[" }, leaf.leaf);
        field(out, ",", leaf.utf16);
        field(out, ",", leaf.cut_utf16);
        field(out, ",", leaf.removed);
        out.push(b']');
    }
    out.extend_from_slice(if one.leaves.is_empty() { b"}" } else { b"]}" });
}

/// `lead` and a string.
fn text(out: &mut Vec<u8>, lead: &str, text: &str) {
    out.extend_from_slice(lead.as_bytes());
    let plain = text
        .bytes()
        .fold(true, |plain, byte| plain & (byte >= b' ') & (byte != b'"') & (byte != b'\\'));
    if plain {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        // A string is always written.
        out.extend(serde_json::to_vec(text).unwrap_or_default());
    }
}

/// `lead` and a number.
fn field(out: &mut Vec<u8>, lead: &str, mut number: u64) {
    out.extend_from_slice(lead.as_bytes());
    let mut digits = [0_u8; 20];
    let mut start = digits.len();
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        start -= 1;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(start..).unwrap_or_default());
}
