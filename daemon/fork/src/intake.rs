//! One pass over the source: the body goes out as it comes in, and what the fork needs to know of it
//! is gathered.

use std::io::{self, Write};

use compactd_core::index::Index;
use compactd_core::record::json::{self, Raw};
use compactd_core::record::{Host, codex};
use compactd_core::settings::Settings;

use crate::body::Identity;
use crate::companions::Companions;
use crate::history::History;
use crate::seal::Sealing;

/// What was gathered, and where the body goes.
pub(crate) struct Intake<'a, W> {
    identity: &'a Identity,
    out: W,
    /// Of all that stands behind the first record.
    pub(crate) sealing: Sealing,
    /// The first failure to write; nothing is written behind it.
    failed: Option<io::Error>,
    pub(crate) index: Index,
    pub(crate) history: History,
    pub(crate) companions: Companions,
    /// Items of the history when the host counted its tokens last.
    pub(crate) counted: usize,
    /// Records written: the ordinal of the next one.
    pub(crate) written: u64,
    /// Lines that are no records (torn, broken): the host passes over them.
    pub(crate) left_out: u64,
    lines: u32,
}

impl<'a, W: Write> Intake<'a, W> {
    pub(crate) fn new(identity: &'a Identity, settings: &Settings, out: W) -> Self {
        Self {
            identity,
            out,
            sealing: Sealing::default(),
            failed: None,
            index: Index::new(Host::Codex, settings),
            history: History::default(),
            companions: Companions::default(),
            counted: 0,
            written: 0,
            left_out: 0,
            lines: 0,
        }
    }

    /// Writes a record that is not the source's.
    pub(crate) fn write(&mut self, record: &str) {
        if self.failed.is_none() {
            let done =
                self.out.write_all(record.as_bytes()).and_then(|()| self.out.write_all(b"\n"));
            self.failed = done.err();
            if self.written > 0 {
                self.sealing.add(record.as_bytes());
                self.sealing.add(b"\n");
            }
            self.written += 1;
        }
    }

    /// Takes in one line; the first of a file is not written: the fork has a meta of its own.
    pub(crate) fn line(&mut self, line: &[u8], offset: u64) {
        // Without the index's own limit of a line: a history with pictures is a long one.
        match codex::read(line) {
            Ok(record) => self.index.apply_record(&record, offset),
            Err(skip) => self.index.skip(skip),
        }
        let number = self.lines;
        self.lines = self.lines.saturating_add(1);
        let Some((text, whole)) = record(line) else {
            self.left_out += u64::from(!line.trim_ascii().is_empty());
            return;
        };
        let kind = whole.member("type").and_then(Raw::text).unwrap_or_default();
        let payload = whole.member("payload");
        if let Some(payload) = payload {
            let is_taken = self.history.record(text, number, &kind, payload);
            self.companions.record(&kind, payload, is_taken);
            if payload.kind().as_deref() == Some("token_count") {
                self.counted = self.history.items.len();
            }
        }
        if offset == 0 && kind == "session_meta" {
            return;
        }
        let out = self.identity.record(text, whole, self.written);
        self.write(&out);
    }

    /// Ends the body: everything is handed to the system.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}

/// A line as the record that it has to be, as the host sees it: without a time, or with an ordinal that
/// is no number, it passes over the whole line, and so it does where half a surrogate stands anywhere.
pub(crate) fn record(line: &[u8]) -> Option<(&str, Raw<'_>)> {
    let text = std::str::from_utf8(line).ok()?.trim_ascii();
    let whole = json::value(text).filter(|whole| whole.is_object())?;
    let (mut timestamp, mut ordinal) = (None, None);
    for (key, value) in whole.members() {
        match key.as_ref() {
            "timestamp" => timestamp = Some(value),
            "ordinal" => ordinal = Some(value).filter(|value| !value.is_null()),
            _ => {}
        }
    }
    let is_timed = timestamp.is_some_and(Raw::is_string);
    let is_numbered = ordinal.is_none_or(|ordinal| ordinal.whole().is_some());
    let may_be_half = text.contains("\\ud") || text.contains("\\uD");
    let is_whole = !may_be_half || serde_json::from_str::<serde_json::Value>(text).is_ok();
    (is_timed && is_numbered && is_whole).then_some((text, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_the_host_passes_over() {
        let is_record = |line: &str| record(line.as_bytes()).is_some();
        assert!(is_record(r#"{"timestamp":"","type":"x"}"#));
        assert!(is_record(r#" {"timestamp":"t","ordinal":null,"a":"\ud83d\ude00"}"#));
        assert!(is_record(r#"{"timestamp":"t","ordinal":7}"#));
        for line in [
            r#"{"type":"x"}"#,
            r#"{"timestamp":null}"#,
            r#"{"timestamp":"t","ordinal":1.5}"#,
            r#"{"timestamp":"t","ordinal":"7"}"#,
            r#"{"timestamp":"t","a":"\ud83d"}"#,
            r#"{"timestamp":"t"} x"#,
            r#"["timestamp"]"#,
            r#"{"timestamp":"t""#,
        ] {
            assert!(!is_record(line), "{line}");
        }
    }
}
