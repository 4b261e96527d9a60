//! Complete lines of a transcript, a bounded slice at a time.
//!
//! A line is complete when its newline is there, never because it parses: a torn line can hold all
//! that a lazy reader looks at. The state between two calls is a [`Cursor`]; the buffer belongs to
//! the [`LineReader`] and serves any number of files.

use std::ops::ControlFlow;

use compactd_core::record::MAX_LINE_BYTES;
use memchr::{memchr, memchr_iter};

use crate::error::Error;
use crate::source::{CHUNK_BYTES, Transcript};

/// Where to go on reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Start of the first line that was not taken yet.
    pub offset: u64,
    /// Bytes before this and from `offset` on hold no newline, so that a huge torn line is not
    /// searched again for each byte that it grows by.
    scanned: u64,
}

impl Cursor {
    /// The line that starts at `offset`.
    #[must_use]
    pub fn at(offset: u64) -> Self {
        Self { offset, scanned: offset }
    }
}

/// One line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// Offset of its first byte.
    pub offset: u64,
    /// The line without its newline.
    pub bytes: &'a [u8],
    /// Its newline is there; only [`Slice::with_torn`] asks for lines without.
    pub is_complete: bool,
}

/// How much one call may take.
#[derive(Debug, Clone, Copy)]
pub struct Slice {
    max_bytes: u64,
    with_torn: bool,
}

impl Slice {
    /// Everything up to the end of the file.
    #[must_use]
    pub fn whole() -> Self {
        Self { max_bytes: u64::MAX, with_torn: false }
    }

    /// Stops at the first end of a line at or behind `max_bytes`.
    #[must_use]
    pub fn of(max_bytes: u64) -> Self {
        Self { max_bytes, with_torn: false }
    }

    /// Also gives the last line if its newline is missing. The cursor stays before it.
    #[must_use]
    pub fn with_torn(self) -> Self {
        Self { with_torn: true, ..self }
    }
}

/// What one call did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Where to go on.
    pub cursor: Cursor,
    /// Lines given.
    pub lines: u64,
    /// Lines skipped because they are longer than the reader holds.
    pub too_long: u64,
    /// Bytes behind the cursor that are no complete line yet (known at the end of the file).
    pub torn_bytes: u64,
    /// Stopped before the end of the file.
    pub has_more: bool,
}

/// Reads lines into a buffer that is used again.
#[derive(Debug)]
pub struct LineReader {
    buffer: Vec<u8>,
    /// Longer lines are passed over.
    max_line: usize,
}

impl Default for LineReader {
    fn default() -> Self {
        Self::holding(MAX_LINE_BYTES)
    }
}

/// Why a step ended.
enum Step {
    /// Look again at what the cursor says now.
    Again,
    /// End of the file, of the slice, or by the caller's wish.
    Stop,
}

impl LineReader {
    /// A reader without a buffer yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A reader that holds lines of up to so many bytes, and so much memory while it does.
    #[must_use]
    pub fn holding(max_line: usize) -> Self {
        Self { buffer: Vec::new(), max_line }
    }

    /// Gives each complete line from `from` on to `each`, until the slice is used up, the file
    /// ends, or `each` breaks (the line it broke on counts as taken).
    ///
    /// # Errors
    /// Nothing could be read. An error behind the first line shows only at the next call, so that
    /// no progress is lost.
    pub fn read(
        &mut self,
        file: &mut Transcript,
        from: Cursor,
        slice: Slice,
        mut each: impl FnMut(Line<'_>) -> ControlFlow<()>,
    ) -> Result<Progress, Error> {
        self.buffer.resize(self.buffer.len().max(2 * CHUNK_BYTES), 0);
        let mut progress = Progress { cursor: from, ..Progress::default() };
        let cursor = &mut progress.cursor;
        if cursor.scanned < cursor.offset
            || (!file.is_packed() && file.stat()?.size < cursor.scanned)
        {
            cursor.scanned = cursor.offset; // the torn end was cut off since
        }
        let result = self.run(file, slice, &mut progress, &mut each);
        if self.buffer.len() > 8 * CHUNK_BYTES {
            self.buffer = Vec::new(); // one huge line shall not stay in memory
        }
        match result {
            Err(error) if progress.lines + progress.too_long == 0 => Err(error),
            Err(_) => Ok(Progress { has_more: true, ..progress }),
            Ok(()) => Ok(progress),
        }
    }

    fn run(
        &mut self,
        file: &mut Transcript,
        slice: Slice,
        progress: &mut Progress,
        each: &mut impl FnMut(Line<'_>) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let end = progress.cursor.scanned.saturating_add(slice.max_bytes);
        loop {
            let step = if progress.cursor.scanned > progress.cursor.offset {
                self.find_end(file, slice, end, progress)?
            } else {
                self.give_lines(file, slice, end, progress, each)?
            };
            match step {
                Step::Stop => return Ok(()),
                Step::Again if progress.cursor.offset >= end => {
                    progress.has_more = true;
                    return Ok(());
                }
                Step::Again => {}
            }
        }
    }

    /// Gives lines from the cursor on; leaves a line that is too long to [`Self::find_end`].
    fn give_lines(
        &mut self,
        file: &mut Transcript,
        slice: Slice,
        end: u64,
        progress: &mut Progress,
        each: &mut impl FnMut(Line<'_>) -> ControlFlow<()>,
    ) -> Result<Step, Error> {
        let mut filled = 0;
        loop {
            if self.buffer.len() < filled + CHUNK_BYTES {
                let wanted = (self.buffer.len() * 2).min(self.max_line + 2 * CHUNK_BYTES);
                self.buffer.resize(wanted, 0);
            }
            let base = progress.cursor.offset;
            let room = &mut self.buffer[filled..filled + CHUNK_BYTES];
            let read = file.read_at(room, base + filled as u64)?;
            if read == 0 {
                self.give_torn(filled, slice, progress, each);
                return Ok(Step::Stop);
            }
            let mut taken = 0;
            for newline in memchr_iter(b'\n', &self.buffer[filled..filled + read]) {
                let bytes = &self.buffer[taken..filled + newline];
                let offset = base + taken as u64;
                taken = filled + newline + 1;
                progress.cursor = Cursor::at(base + taken as u64);
                let flow = if bytes.len() > self.max_line {
                    progress.too_long += 1;
                    ControlFlow::Continue(())
                } else {
                    progress.lines += 1;
                    each(Line { offset, bytes, is_complete: true })
                };
                if flow.is_break() || progress.cursor.offset >= end {
                    progress.has_more = true;
                    return Ok(Step::Stop);
                }
            }
            filled += read;
            self.buffer.copy_within(taken..filled, 0);
            filled -= taken;
            if filled > self.max_line {
                progress.cursor.scanned = progress.cursor.offset + filled as u64;
                return Ok(Step::Again);
            }
        }
    }

    fn give_torn(
        &self,
        filled: usize,
        slice: Slice,
        progress: &mut Progress,
        each: &mut impl FnMut(Line<'_>) -> ControlFlow<()>,
    ) {
        let offset = progress.cursor.offset;
        progress.torn_bytes = filled as u64;
        if filled > CHUNK_BYTES {
            progress.cursor.scanned = offset + filled as u64;
        }
        if slice.with_torn && filled > 0 {
            progress.lines += 1;
            // Nothing follows, so it does not matter whether the caller wants more.
            let _at_the_end =
                each(Line { offset, bytes: &self.buffer[..filled], is_complete: false });
        }
    }

    /// Looks for the end of a line whose start was searched before, without holding the line.
    fn find_end(
        &mut self,
        file: &mut Transcript,
        slice: Slice,
        end: u64,
        progress: &mut Progress,
    ) -> Result<Step, Error> {
        loop {
            let cursor = &mut progress.cursor;
            let read = file.read_at(&mut self.buffer[..CHUNK_BYTES], cursor.scanned)?;
            let length = cursor.scanned - cursor.offset;
            if read == 0 {
                progress.torn_bytes = length;
                if slice.with_torn && length > self.max_line as u64 {
                    progress.too_long += 1;
                } else if slice.with_torn {
                    cursor.scanned = cursor.offset;
                    return Ok(Step::Again);
                }
                return Ok(Step::Stop);
            }
            if let Some(newline) = memchr(b'\n', &self.buffer[..read]) {
                let newline = newline as u64;
                if length + newline > self.max_line as u64 {
                    progress.too_long += 1;
                    *cursor = Cursor::at(cursor.scanned + newline + 1);
                } else {
                    cursor.scanned = cursor.offset;
                }
                return Ok(Step::Again);
            }
            cursor.scanned += read as u64;
            if cursor.scanned >= end {
                progress.has_more = true;
                return Ok(Step::Stop);
            }
        }
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
