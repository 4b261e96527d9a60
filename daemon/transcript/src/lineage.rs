//! The files that make up one Codex thread.
//!
//! A native fork or a revert starts a new file that names its history in the first line
//! (`history_base`): a thread and the first ordinal that is not part of it. Following these links
//! gives a chain of files, the oldest first, each read up to where the next one continues.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use compactd_core::record::{HistoryBase, Host, MAX_LINE_BYTES};
use serde::Deserialize;

use crate::error::Error;
use crate::identity::FileId;
use crate::layout::{Place, Rollout, Roots};
use crate::lines::{Cursor, LineReader, Slice};
use crate::source::Transcript;
use crate::walk::{Found, walk};

/// Longest chain that is followed.
const MAX_FILES: usize = 64;

/// Where a file's history lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// The thread whose files hold it.
    pub thread: String,
    /// First ordinal that is not part of it.
    pub end_ordinal: u64,
    /// First byte that is not part of it, in the file that held it then.
    pub end_offset: Option<u64>,
}

impl From<&HistoryBase<'_>> for Base {
    fn from(base: &HistoryBase<'_>) -> Self {
        let thread = base.thread.clone().into_owned();
        Self { thread, end_ordinal: base.end_ordinal, end_offset: base.end_offset }
    }
}

impl Base {
    /// Reads it from the first line of a rollout; most have none.
    #[must_use]
    pub fn of(first_line: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct First<'a> {
            #[serde(borrow, rename = "type")]
            kind: Cow<'a, str>,
            #[serde(borrow)]
            payload: Payload<'a>,
        }
        #[derive(Deserialize)]
        struct Payload<'a> {
            #[serde(borrow)]
            history_base: Option<Written<'a>>,
        }
        #[derive(Deserialize)]
        struct Written<'a> {
            #[serde(borrow)]
            thread_id: Cow<'a, str>,
            end_ordinal_exclusive: u64,
            end_byte_offset: Option<u64>,
        }
        let first: First<'_> = serde_json::from_slice(first_line).ok()?;
        let written = first.payload.history_base.filter(|_| first.kind == "session_meta")?;
        Some(Self {
            thread: written.thread_id.into_owned(),
            end_ordinal: written.end_ordinal_exclusive,
            end_offset: written.end_byte_offset,
        })
    }
}

/// The `ordinal` of a line, where it has one.
#[must_use]
pub fn ordinal(line: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Numbered {
        ordinal: Option<u64>,
    }
    serde_json::from_slice::<Numbered>(line).ok()?.ordinal
}

/// Which files belong to which thread.
#[derive(Debug, Clone, Default)]
pub struct ThreadFiles {
    threads: BTreeMap<String, Vec<(Rollout, PathBuf)>>,
}

impl ThreadFiles {
    /// Knows all rollouts inside the roots.
    #[must_use]
    pub fn in_roots(roots: &Roots) -> Self {
        let mut threads = Self::default();
        for found in walk(roots).found {
            threads.insert(&found);
        }
        threads
    }

    /// Knows the rollouts of the Codex home that a file lies in, or else those in its own folder.
    #[must_use]
    pub fn beside(path: &Path) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let is_tree = |dir: &&Path| {
            dir.file_name().is_some_and(|name| name == "sessions" || name == "archived_sessions")
        };
        if let Some(home) = path.ancestors().skip(1).find(is_tree).and_then(Path::parent) {
            return Self::in_roots(&Roots::new([], [home.to_path_buf()]));
        }
        let mut threads = Self::default();
        let entries = path.parent().and_then(|dir| fs::read_dir(dir).ok());
        for entry in entries.into_iter().flatten().flatten() {
            let place = Place::loose(&entry.path(), Host::Codex);
            if let Some(rollout) = place.rollout {
                threads.add(place.key, rollout, entry.path());
            }
        }
        threads
    }

    /// Adds a file; anything but a rollout is ignored.
    pub fn insert(&mut self, found: &Found) {
        if let Some(rollout) = &found.rollout {
            self.add(found.key.clone(), rollout.clone(), found.path.clone());
        }
    }

    /// Forgets a file.
    pub fn remove(&mut self, path: &Path) {
        self.threads.retain(|_, files| {
            files.retain(|(_, known)| known != path);
            !files.is_empty()
        });
    }

    fn add(&mut self, thread: String, rollout: Rollout, path: PathBuf) {
        let files = self.threads.entry(thread).or_default();
        if files.iter().all(|(_, known)| *known != path) {
            files.push((rollout, path));
            files.sort_by(|(a, _), (b, _)| age(a).cmp(&age(b)));
        }
    }

    /// The file that a thread continues in: its newest.
    #[must_use]
    pub fn current(&self, thread: &str) -> Option<&Path> {
        self.threads.get(thread)?.last().map(|(_, path)| path.as_path())
    }

    fn newest_first(&self, thread: &str) -> impl Iterator<Item = &(Rollout, PathBuf)> {
        self.threads.get(thread).into_iter().flatten().rev()
    }
}

/// Sorts a thread's files from old to new; of two copies the live and plain one counts as newer.
fn age(rollout: &Rollout) -> (&str, Option<&str>, bool, bool) {
    let Rollout { stamp, segment, is_archived, is_packed } = rollout;
    (stamp, segment.as_deref(), !is_archived, !is_packed)
}

/// One file of a chain and how much of it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The file.
    pub path: PathBuf,
    /// First ordinal that does not count; `None` for the file that the chain was asked for.
    pub end_ordinal: Option<u64>,
    /// First byte that does not count, where it was seen to agree with the ordinal.
    pub end_offset: Option<u64>,
}

impl Segment {
    /// Whether a line of the file counts. The first that does not ends the segment.
    #[must_use]
    pub fn holds(&self, offset: u64, line: &[u8]) -> bool {
        match (self.end_offset, self.end_ordinal) {
            (Some(end), _) => offset < end,
            (None, Some(end)) => ordinal(line).is_none_or(|ordinal| ordinal < end),
            (None, None) => true,
        }
    }
}

/// Why the oldest part of a history is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Gap {
    /// No readable file of the thread continues up to where the history ends.
    #[error("the history up to record {end_ordinal} of thread {thread} is missing")]
    Missing {
        /// The thread that is named.
        thread: String,
        /// First ordinal that would not have been part of it.
        end_ordinal: u64,
    },
    /// The links lead back to a file that was already passed.
    #[error("the history of thread {thread} leads back to itself")]
    Cycle {
        /// The thread that is named for the second time.
        thread: String,
    },
    /// More links than any real session has.
    #[error("the history has more than {MAX_FILES} files")]
    TooDeep,
}

impl Gap {
    /// What a person can do next.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing { .. } => {
                "the result covers what follows; restore the file named by `history_base` for all"
            }
            Self::Cycle { .. } | Self::TooDeep => {
                "the file was edited by hand; check `history_base`"
            }
        }
    }
}

/// The files of a history, the oldest first; the last is the one asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The files.
    pub segments: Vec<Segment>,
    /// Why it does not reach the beginning.
    pub gap: Option<Gap>,
}

/// Follows the links from a file back to the beginning of its history.
///
/// # Errors
/// The file itself cannot be read. Trouble with older files is a [`Gap`].
pub fn chain(path: &Path, threads: &ThreadFiles) -> Result<Chain, Error> {
    let mut file = Transcript::open(path)?;
    let mut seen = HashSet::from([file.stat()?.id]);
    let mut base = first_line(&mut file)?.as_deref().and_then(Base::of);
    let mut child = Place::loose(path, Host::Codex).rollout;
    let mut segments =
        vec![Segment { path: path.to_path_buf(), end_ordinal: None, end_offset: None }];
    let mut gap = None;
    while let Some(wanted) = base {
        if segments.len() >= MAX_FILES {
            gap = Some(Gap::TooDeep);
            break;
        }
        match find_parent(&wanted, child.as_ref(), threads, &mut seen) {
            Ok(parent) => {
                base = parent.base;
                child = Some(parent.rollout);
                segments.push(parent.segment);
            }
            Err(reason) => {
                gap = Some(reason);
                break;
            }
        }
    }
    segments.reverse();
    Ok(Chain { segments, gap })
}

struct Parent {
    segment: Segment,
    rollout: Rollout,
    base: Option<Base>,
}

/// Finds the file in which a base ends.
///
/// A thread can have several files and they overlap in ordinals, so the newest is not always the
/// right one. The byte offset decides if the record before it has the right ordinal; else the
/// newest file that is not younger than the child and begins before the end is taken.
fn find_parent(
    base: &Base,
    child: Option<&Rollout>,
    threads: &ThreadFiles,
    seen: &mut HashSet<FileId>,
) -> Result<Parent, Gap> {
    let mut best: Option<(bool, FileId, Parent)> = None;
    let mut leads_back = false;
    for (rollout, path) in threads.newest_first(&base.thread) {
        let Ok(mut file) = Transcript::open(path) else { continue };
        let Ok(stat) = file.stat() else { continue };
        if seen.contains(&stat.id) {
            leads_back = true;
            continue;
        }
        let Ok(Some(first)) = first_line(&mut file) else { continue };
        if ordinal(&first).is_some_and(|ordinal| ordinal >= base.end_ordinal) {
            continue;
        }
        let end_offset = base.end_offset.filter(|end| ends_at(&mut file, *end, base.end_ordinal));
        let segment =
            Segment { path: path.clone(), end_ordinal: Some(base.end_ordinal), end_offset };
        let parent = Parent { segment, rollout: rollout.clone(), base: Base::of(&first) };
        if end_offset.is_some() {
            seen.insert(stat.id);
            return Ok(parent);
        }
        let is_older = child.is_none_or(|child| rollout.stamp <= child.stamp);
        if best.as_ref().is_none_or(|(was_older, ..)| is_older && !was_older) {
            best = Some((is_older, stat.id, parent));
        }
    }
    let thread = base.thread.clone();
    match best {
        Some((_, id, parent)) => {
            seen.insert(id);
            Ok(parent)
        }
        None if leads_back => Err(Gap::Cycle { thread }),
        None => Err(Gap::Missing { thread, end_ordinal: base.end_ordinal }),
    }
}

/// The first complete line of a file.
///
/// # Errors
/// The file cannot be read.
pub fn first_line(file: &mut Transcript) -> Result<Option<Vec<u8>>, Error> {
    let mut first = None;
    LineReader::new().read(file, Cursor::default(), Slice::whole(), |line| {
        first = Some(line.bytes.to_vec());
        ControlFlow::Break(())
    })?;
    Ok(first)
}

/// Whether a line ends right before `offset` and has the ordinal before `end_ordinal`.
fn ends_at(file: &mut Transcript, offset: u64, end_ordinal: u64) -> bool {
    if file.is_packed() || file.stat().is_ok_and(|stat| stat.size < offset) {
        return false;
    }
    let mut length = 64 * 1024;
    while length <= 2 * MAX_LINE_BYTES as u64 {
        let start = offset.saturating_sub(length);
        let mut bytes = vec![0; usize::try_from(offset - start).unwrap_or_default()];
        if !matches!(file.read_raw_at(&mut bytes, start), Ok(read) if read == bytes.len()) {
            return false;
        }
        let Some((b'\n', before)) = bytes.split_last() else { return false };
        match memchr::memrchr(b'\n', before) {
            Some(newline) => return ordinal(&before[newline + 1..]) == end_ordinal.checked_sub(1),
            None if start == 0 => return ordinal(before) == end_ordinal.checked_sub(1),
            None => length *= 4,
        }
    }
    false
}

#[cfg(test)]
#[path = "lineage_tests.rs"]
pub(crate) mod tests;
