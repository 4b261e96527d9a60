//! The index of one session and the files it was read from: catches up with what was appended.
//!
//! A transcript is only read, by offset, complete lines only. When its file was cut, replaced or
//! unpacked anew, the index starts again; nothing is ever guessed from a changed file.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::SystemTime;

use compactd_core::index::Index;
use compactd_core::record::{Host, Skip};
use compactd_core::settings::Settings;
use compactd_transcript::error::Error;
use compactd_transcript::identity::{Change, FileId, Identity, compare, compare_path};
use compactd_transcript::lineage::{Chain, Segment, ThreadFiles, chain};
use compactd_transcript::lines::{Cursor, LineReader, Slice};
use compactd_transcript::source::Transcript;

/// An index and how far it has read.
#[derive(Debug)]
pub struct Tail {
    index: Index,
    /// The files of the history, the oldest first; the last is the session's own.
    segments: Vec<Segment>,
    /// The one being read.
    at: usize,
    cursor: Cursor,
    /// The own file at the end of the last complete catch-up.
    identity: Option<Identity>,
    /// The file that is being read for the first time, or that has more than one step could take.
    reading: Option<FileId>,
    /// A history that could not be followed to its beginning.
    has_gap: bool,
}

/// What a step did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Lines taken in.
    pub lines: u64,
    /// Bytes taken in.
    pub bytes: u64,
    /// There is more to read.
    pub has_more: bool,
    /// The file was cut or replaced: the index was started again.
    pub restarted: bool,
}

impl Tail {
    /// An empty index for the session whose newest file is at `path`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn new(
        host: Host,
        path: &Path,
        threads: &ThreadFiles,
        settings: &Settings,
    ) -> Result<Self, Error> {
        let own = Segment { path: path.to_path_buf(), end_ordinal: None, end_offset: None };
        let Chain { segments, gap } = match host {
            Host::Codex => chain(path, threads)?,
            Host::Claude => Chain { segments: vec![own], gap: None },
        };
        Ok(Self {
            index: Index::new(host, settings),
            segments,
            at: 0,
            cursor: Cursor::default(),
            identity: None,
            reading: None,
            has_gap: gap.is_some(),
        })
    }

    /// Goes on from a snapshot.
    #[must_use]
    pub fn resume(index: Index, segments: Vec<Segment>, identity: Identity, has_gap: bool) -> Self {
        let at = segments.len().saturating_sub(1);
        let cursor = Cursor::at(identity.cursor);
        Self { index, segments, at, cursor, identity: Some(identity), reading: None, has_gap }
    }

    /// The index. It is settled between steps.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The session's own file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.segments.last().map_or(Path::new(""), |segment| &segment.path)
    }

    /// The files of the history, the oldest first.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The own file as it was when it was last read; `None` before its first complete step.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// Bytes of the own file that were taken in.
    #[must_use]
    pub fn indexed_bytes(&self) -> u64 {
        if self.at + 1 == self.segments.len() { self.cursor.offset } else { 0 }
    }

    /// Whether the beginning of the history is missing.
    #[must_use]
    pub fn has_gap(&self) -> bool {
        self.has_gap
    }

    /// Goes on at `path` if the own file was renamed to there; says whether it was.
    pub fn moved(&mut self, path: &Path) -> bool {
        let Some(identity) = &self.identity else { return false };
        let is_same = matches!(compare_path(identity, path), Ok(Change::Same | Change::Grown));
        if is_same && let Some(own) = self.segments.last_mut() {
            own.path = path.to_path_buf();
        }
        is_same
    }

    /// Takes in at most about `max_bytes` of what is new.
    ///
    /// # Errors
    /// A file of the history cannot be read. What was taken in so far stays.
    pub fn step(&mut self, reader: &mut LineReader, max_bytes: u64) -> Result<Progress, Error> {
        let Some(segment) = self.segments.get(self.at) else { return Ok(Progress::default()) };
        let mut file = Transcript::open(&segment.path)?;
        let mut restarted = false;
        let mut looked = (file.stat()?, SystemTime::now());
        let id = looked.0.id;
        let change = match (&self.identity, self.reading) {
            (Some(identity), _) => compare(identity, &file)?,
            (None, Some(reading)) if reading != id => Change::Replaced,
            (None, _) => Change::Grown,
        };
        match change {
            Change::Same => return Ok(Progress::default()),
            Change::Grown => self.reading = Some(id),
            Change::Truncated | Change::Replaced | Change::Gone => {
                self.restart();
                restarted = true;
                file = Transcript::open(&self.segments[0].path)?;
                looked = (file.stat()?, SystemTime::now());
                self.reading = Some(looked.0.id);
            }
        }
        // A packed file is unpacked from its start each time: in one step, then.
        let max_bytes = if file.is_packed() { u64::MAX } else { max_bytes };
        let before = self.cursor.offset;
        let mut ended = false;
        let Self { index, segments, at, cursor, .. } = self;
        let segment = &segments[*at];
        let read = reader.read(&mut file, *cursor, Slice::of(max_bytes), |line| {
            if !segment.holds(line.offset, line.bytes) {
                ended = true;
                return ControlFlow::Break(());
            }
            index.apply(line.bytes, line.offset);
            ControlFlow::Continue(())
        })?;
        *cursor = read.cursor;
        for _ in 0..read.too_long {
            index.skip(Skip::TooLong);
        }
        index.settle();
        let mut progress = Progress {
            lines: read.lines + read.too_long,
            bytes: cursor.offset.saturating_sub(before),
            has_more: read.has_more && !ended,
            restarted,
        };
        if self.at + 1 < self.segments.len() {
            if !progress.has_more {
                self.at += 1;
                self.cursor = Cursor::default();
                self.reading = None;
                progress.has_more = true;
            }
        } else {
            let done = !progress.has_more;
            let (stat, at) = looked;
            self.identity = if done {
                Some(Identity::as_of(&file, stat, at, self.cursor.offset)?)
            } else {
                None
            };
        }
        Ok(progress)
    }

    fn restart(&mut self) {
        self.index = Index::new(self.index.host(), &self.index.settings().clone());
        self.at = 0;
        self.cursor = Cursor::default();
        self.identity = None;
        self.reading = None;
    }

    /// Takes in everything that is new.
    ///
    /// # Errors
    /// As [`Tail::step`].
    pub fn catch_up(&mut self, reader: &mut LineReader) -> Result<Progress, Error> {
        let mut sum = Progress::default();
        loop {
            let step = self.step(reader, u64::MAX)?;
            sum.lines += step.lines;
            sum.bytes += step.bytes;
            sum.restarted |= step.restarted;
            if !step.has_more {
                return Ok(sum);
            }
        }
    }
}
