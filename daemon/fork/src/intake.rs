//! One pass over the source: the body goes out as it comes in, and what the fork needs to know of it
//! is gathered.

use std::io::{self, Write};

use compactd_core::index::Index;
use compactd_core::record::json::{self, Raw};
use compactd_core::record::{Host, Record, codex};
use compactd_core::settings::Settings;

use crate::body::Identity;
use crate::companions::Companions;
use crate::history::History;

/// What was gathered, and where the body goes.
pub(crate) struct Intake<'a, W> {
    identity: &'a Identity,
    out: W,
    /// The first failure to write; nothing is written behind it.
    failed: Option<io::Error>,
    pub(crate) index: Index,
    pub(crate) history: History,
    pub(crate) companions: Companions,
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
            failed: None,
            index: Index::new(Host::Codex, settings),
            history: History::default(),
            companions: Companions::default(),
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
            self.written += 1;
        }
    }

    /// Takes in one line; the first of a file is not written: the fork has a meta of its own.
    pub(crate) fn line(&mut self, line: &[u8], offset: u64) {
        self.index.apply(line, offset);
        let number = self.lines;
        self.lines = self.lines.saturating_add(1);
        let Some((text, whole)) = record(line) else {
            self.left_out += u64::from(!line.trim_ascii().is_empty());
            return;
        };
        let kind = whole.member("type").and_then(Raw::text).unwrap_or_default();
        let payload = whole.member("payload");
        if let Some(payload) = payload {
            let is_sound =
                kind != "compacted" || matches!(codex::read(line), Ok(Record::Compacted(_)));
            self.history.record(text, number, &kind, payload);
            self.companions.record(&kind, payload, is_sound);
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

/// A line as the JSON object that it has to be, as the host sees it.
pub(crate) fn record(line: &[u8]) -> Option<(&str, Raw<'_>)> {
    let text = std::str::from_utf8(line).ok()?.trim_ascii();
    Some((text, json::value(text).filter(|whole| whole.is_object())?))
}
