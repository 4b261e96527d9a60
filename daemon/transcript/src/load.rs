//! Reads a whole session from a path: what the offline client does.

use std::ops::ControlFlow;
use std::path::Path;

use compactd_core::record::{Host, sniff};
use memchr::memchr;

use crate::error::Error;
use crate::layout::Place;
use crate::lineage::{Chain, Gap, Segment, ThreadFiles, chain};
use crate::lines::{Cursor, LineReader, Slice};
use crate::source::Transcript;

/// Lines and bytes that are looked at to tell the host.
const SNIFF_LINES: u64 = 200;
const SNIFF_BYTES: u64 = 4 * 1024 * 1024;

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// Host and session.
    pub place: Place,
    /// The files that were read, the oldest first.
    pub segments: Vec<Segment>,
    /// Why the beginning of the history is not among them.
    pub gap: Option<Gap>,
    /// Lines given.
    pub lines: u64,
    /// Lines skipped because they are too long to hold.
    pub too_long: u64,
    /// The last line had no newline; it was given too.
    pub is_torn: bool,
}

/// Gives the lines of a session, with the host and their offset in their own file: those of older
/// files in a Codex history first, a torn last line included, `limit_lines` at most.
///
/// # Errors
/// A file cannot be read, or neither host wrote it.
pub fn for_each_line(
    path: &Path,
    limit_lines: Option<usize>,
    each: impl FnMut(Host, u64, &[u8]),
) -> Result<Loaded, Error> {
    for_each_line_with(LineReader::new(), path, limit_lines, each)
}

/// The same with a reader of the caller's, for one that holds longer lines.
///
/// # Errors
/// As [`for_each_line`].
pub fn for_each_line_with(
    mut reader: LineReader,
    path: &Path,
    limit_lines: Option<usize>,
    mut each: impl FnMut(Host, u64, &[u8]),
) -> Result<Loaded, Error> {
    let host = resolve_host(path, &mut reader)?;
    let place = Place::of(path)
        .filter(|place| place.host == host)
        .unwrap_or_else(|| Place::loose(path, host));
    let Chain { segments, gap } = resolve_chain(path, host)?;
    let mut loaded = Loaded { place, segments, gap, lines: 0, too_long: 0, is_torn: false };
    let mut left = limit_lines.unwrap_or(usize::MAX);
    for segment in &loaded.segments {
        let mut file = Transcript::open(&segment.path)?;
        // Behind an end, a torn line is one that does not count.
        let is_last = segment.end_ordinal.is_none();
        let slice = if is_last { Slice::whole().with_torn() } else { Slice::whole() };
        let mut cursor = Cursor::default();
        let mut has_ended = left == 0;
        while !has_ended {
            let progress = reader.read(&mut file, cursor, slice, |line| {
                if !segment.holds(line.offset, line.bytes) {
                    has_ended = true;
                    return ControlFlow::Break(());
                }
                each(host, line.offset, line.bytes);
                loaded.lines += 1;
                left -= 1;
                loaded.is_torn = !line.is_complete;
                has_ended = left == 0;
                if has_ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            loaded.too_long += progress.too_long;
            cursor = progress.cursor;
            has_ended |= !progress.has_more;
        }
    }
    Ok(loaded)
}

/// The host of a file and the files of its history.
///
/// # Errors
/// A file cannot be read, or neither host wrote it.
pub fn chain_of(path: &Path) -> Result<(Host, Chain), Error> {
    let host = resolve_host(path, &mut LineReader::new())?;
    Ok((host, resolve_chain(path, host)?))
}

fn resolve_chain(path: &Path, host: Host) -> Result<Chain, Error> {
    let alone = ThreadFiles::default();
    let found = match host {
        Host::Codex => chain(path, &alone)?,
        Host::Claude => {
            let only = Segment { path: path.to_path_buf(), end_ordinal: None, end_offset: None };
            return Ok(Chain { segments: vec![only], gap: None });
        }
    };
    // Other files are looked for only if the first line names any.
    if found.gap.is_some() { chain(path, &ThreadFiles::beside(path)) } else { Ok(found) }
}

/// Tells the host by the first lines, or by the path if they are not typical of one.
fn resolve_host(path: &Path, reader: &mut LineReader) -> Result<Host, Error> {
    let mut file = Transcript::open(path)?;
    let mut host = None;
    let mut first = None;
    let mut has_nul = false;
    let mut looked_at = 0;
    let slice = Slice::of(SNIFF_BYTES).with_torn();
    let progress = reader.read(&mut file, Cursor::default(), slice, |line| {
        host = sniff(line.bytes);
        looked_at += 1;
        has_nul |= memchr(0, line.bytes).is_some();
        first = first.or_else(|| first_byte(line.bytes));
        if host.is_some() || looked_at >= SNIFF_LINES {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    let by_path = || Place::of(path).map(|place| place.host);
    let reason = if let Some(host) = host {
        return Ok(host);
    } else if progress.lines + progress.too_long == 0 {
        "it is empty"
    } else if has_nul {
        "it holds binary data"
    } else if progress.lines > 0 && first != Some(b'{') {
        "its lines are no JSON objects"
    } else {
        "no line is a record of Claude Code or Codex"
    };
    let may_trust_path = progress.lines == 0 || first == Some(b'{');
    by_path()
        .filter(|_| may_trust_path)
        .ok_or(Error::NotATranscript { path: path.to_path_buf(), reason })
}

fn first_byte(line: &[u8]) -> Option<u8> {
    line.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
