//! What must be true before a fork is offered: the host would not say a word if it were not.

use std::path::Path;

use compactd_core::record::codex::shape::{self, Flaw};
use compactd_core::record::json::Raw;
use compactd_transcript::LineReader;
use compactd_transcript::load::{Loaded, for_each_line_with};

use crate::error::Error;
use crate::history::{History, Item};
use crate::intake::record;

/// Longest record that a fork carries: with some pictures a history is one of many MiB, and the host takes
/// it. So much memory a fork takes at most, a few times over.
pub(crate) const RECORD_MAX: usize = 256 * 1024 * 1024;

/// Gives the lines of a history with their offsets, as long as a fork carries them.
///
/// # Errors
/// A file cannot be read, or no host wrote it.
pub(crate) fn for_each_line(
    path: &Path,
    mut each: impl FnMut(u64, &[u8]),
) -> Result<Loaded, Error> {
    let reader = LineReader::holding(RECORD_MAX);
    Ok(for_each_line_with(reader, path, None, |_, offset, line| each(offset, line))?)
}

/// Every item must be one that the host takes and sends as it is.
///
/// # Errors
/// The first that is not, with its place.
pub(crate) fn items(items: &[Item]) -> Result<(), Error> {
    for (at, item) in items.iter().enumerate() {
        let line = u64::from(item.line) + 1;
        if let Err(flaw) = shape::item(&item.raw) {
            return Err(Error::Item { item: at, line, flaw });
        }
        if is_blank_seal(item) {
            return Err(Error::Sealed { item: at, line });
        }
    }
    Ok(())
}

/// One of the records that the fork adds.
///
/// # Errors
/// It is not one that the host takes.
pub(crate) fn added(line: &str, kind: &str) -> Result<(), Error> {
    if line.len() > RECORD_MAX {
        return Err(Error::TooLong { lines: 1 });
    }
    let flawed = |flaw: Flaw| Error::Record { kind: kind.to_owned(), flaw };
    shape::record(line.as_bytes()).map_err(flawed)
}

/// A sealed compaction stands for history; sealed text is base64, so anything else is a stand-in for
/// content that somebody took out.
fn is_blank_seal(item: &Item) -> bool {
    let Some(value) = item.value() else { return false };
    let kind = value.kind();
    let is_seal =
        matches!(kind.as_deref(), Some("compaction" | "compaction_summary" | "context_compaction"));
    let content = value.member("encrypted_content").and_then(Raw::text).unwrap_or_default();
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(&byte);
    is_seal && (content.is_empty() || !content.bytes().all(is_base64))
}

/// Reads a fork again: the history that the host will find in it is the one that was meant, and the
/// records are numbered without a gap.
///
/// # Errors
/// It is not.
pub(crate) fn read_back(
    path: &Path,
    meant: &[Item],
    records: u64,
    is_paginated: bool,
) -> Result<(), Error> {
    let wrong = |what: String| Err(Error::Check { what });
    let (mut history, mut lines, mut misnumbered) = (History::default(), 0_u64, None);
    let loaded = for_each_line(path, |_, line| {
        let Some((text, whole)) = record(line) else { return };
        let ordinal = whole.member("ordinal").and_then(Raw::whole);
        if is_paginated && ordinal != Some(lines) {
            misnumbered.get_or_insert(lines);
        }
        if let (Some(kind), Some(payload)) = (whole.kind(), whole.member("payload")) {
            history.record(text, 0, &kind, payload);
        }
        lines += 1;
    })?;
    if loaded.lines != records || lines != records || loaded.is_torn {
        return wrong(format!("{lines} records instead of {records}"));
    }
    if let Some(at) = misnumbered {
        return wrong(format!("record {at} has another ordinal"));
    }
    if history.items.len() != meant.len() {
        return wrong(format!("{} items instead of {}", history.items.len(), meant.len()));
    }
    match history.items.iter().zip(meant).position(|(found, meant)| found.raw != meant.raw) {
        Some(at) => wrong(format!("item {at} is another")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use compactd_core::record::json;

    fn item(raw: &str) -> Item {
        Item::new(json::value(raw).unwrap(), 4)
    }

    #[test]
    fn a_seal_without_content_is_history_that_is_gone() {
        for (content, is_gone) in [("", true), ("[removed]", true), ("gAAAA-_x+/==", false)] {
            let raw = format!(r#"{{"type":"compaction","encrypted_content":"{content}"}}"#);
            assert_eq!(is_blank_seal(&item(&raw)), is_gone, "{content}");
        }
        let reasoning = r#"{"type":"reasoning","summary":[],"encrypted_content":"[removed]"}"#;
        assert!(!is_blank_seal(&item(reasoning)));
    }

    #[test]
    fn a_refusal_says_where() {
        let sound =
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}"#;
        let flawed = r#"{"type":"message","role":"user","content":"a"}"#;
        let error = items(&[item(sound), item(flawed)]).unwrap_err();
        assert!(
            error.to_string().starts_with("item 1 of the history (line 5 of the source): "),
            "{error}"
        );
    }

    #[test]
    fn what_reads_back_otherwise_is_not_offered() {
        let history = |text: &str| {
            item(&format!(
                r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}"#
            ))
        };
        let meant = [history("a")];
        let write = |ordinal: u64, tail: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            let meta =
                r#"{"timestamp":"t","ordinal":0,"type":"session_meta","payload":{"id":"x"}}"#;
            let compacted = format!(
                r#"{{"timestamp":"t","ordinal":{ordinal},"type":"compacted","payload":{{"message":"","replacement_history":[{}]}}}}"#,
                meant[0].raw
            );
            std::fs::write(file.path(), format!("{meta}\n{compacted}\n{tail}")).unwrap();
            file
        };
        let read = |file: &tempfile::NamedTempFile, meant: &[Item], records| {
            read_back(file.path(), meant, records, true)
        };
        assert!(read(&write(1, ""), &meant, 2).is_ok());
        assert!(read(&write(1, ""), &meant, 3).is_err());
        assert!(read(&write(2, ""), &meant, 2).is_err());
        assert!(read(&write(1, "{"), &meant, 2).is_err());
        assert!(read(&write(1, ""), &[history("b")], 2).is_err());
        assert!(read(&write(1, ""), &[], 2).is_err());
    }
}
