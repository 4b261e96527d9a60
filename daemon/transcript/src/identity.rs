//! Whether a path still holds the file that was read before: same, grown, cut, or another one.
//!
//! Device and inode alone do not tell: inodes are used again at once, and a file can be rewritten
//! in place. So the first bytes and the bytes before the cursor are compared too.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use xxhash_rust::xxh3::xxh3_64;

use crate::error::Error;
use crate::source::Transcript;

const HEAD_BYTES: u64 = 1024;
const TAIL_BYTES: u64 = 256;

/// A change time younger than this proves nothing: file systems keep time in ticks of some
/// milliseconds, so a second change can carry the same time.
const TICK: Duration = Duration::from_millis(50);

/// Device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// Device of the file system.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
}

/// What the system says about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Device and inode.
    pub id: FileId,
    /// Bytes on disk.
    pub size: u64,
    /// Last change of the content.
    pub mtime: SystemTime,
    /// Last change of content or inode, in nanoseconds.
    pub ctime_ns: i128,
}

impl Stat {
    /// Takes it from what the standard library returns.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            id: FileId { dev: metadata.dev(), ino: metadata.ino() },
            size: metadata.len(),
            mtime: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            ctime_ns: i128::from(metadata.ctime()) * 1_000_000_000
                + i128::from(metadata.ctime_nsec()),
        }
    }
}

/// A file as it was when it was last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// What the system said.
    pub stat: Stat,
    /// Offset up to which complete lines were taken.
    pub cursor: u64,
    head: Sample,
    tail: Sample,
    /// Equal times mean an equal file.
    is_settled: bool,
}

/// The hash of some bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    offset: u64,
    length: u64,
    hash: u64,
}

impl Sample {
    /// Hashes `length` bytes, or fewer where the file ends.
    fn take(file: &Transcript, offset: u64, length: u64) -> Result<Self, Error> {
        let mut bytes = [0; HEAD_BYTES as usize];
        let wanted = usize::try_from(length).unwrap_or(bytes.len()).min(bytes.len());
        let read = file.read_raw_at(&mut bytes[..wanted], offset)?;
        Ok(Self { offset, length: read as u64, hash: xxh3_64(&bytes[..read]) })
    }

    fn still_holds(&self, file: &Transcript) -> Result<bool, Error> {
        Ok(Self::take(file, self.offset, self.length)? == *self)
    }
}

impl Identity {
    /// Remembers an open file of which everything before `cursor` was read.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn take(file: &Transcript, cursor: u64) -> Result<Self, Error> {
        Self::as_of(file, file.stat()?, SystemTime::now(), cursor)
    }

    /// As [`Identity::take`], with what the system said at `looked`, before the file was read: what
    /// was appended meanwhile is then noticed at the next look.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn as_of(
        file: &Transcript,
        stat: Stat,
        looked: SystemTime,
        cursor: u64,
    ) -> Result<Self, Error> {
        // The cursor of a packed file counts unpacked bytes: nothing on disk stands before it.
        let (cursor, before) = if file.is_packed() { (stat.size, 0) } else { (cursor, cursor) };
        let tail_bytes = before.min(TAIL_BYTES);
        Ok(Self {
            stat,
            cursor,
            head: Sample::take(file, 0, HEAD_BYTES.min(cursor))?,
            tail: Sample::take(file, before - tail_bytes, tail_bytes)?,
            is_settled: looked.duration_since(stat.mtime).is_ok_and(|age| age > TICK),
        })
    }
}

/// Bytes of [`Identity::to_bytes`]: twelve numbers of eight bytes, one of sixteen.
const IDENTITY_BYTES: usize = 12 * 8 + 16;

impl Identity {
    /// The identity as bytes, to be kept beside what was read.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let since = self.stat.mtime.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut bytes = Vec::with_capacity(IDENTITY_BYTES);
        for number in [
            self.stat.id.dev,
            self.stat.id.ino,
            self.stat.size,
            since.as_secs(),
            u64::from(since.subsec_nanos()),
            self.cursor,
            self.head.offset,
            self.head.length,
            self.head.hash,
            self.tail.offset,
            self.tail.length,
            self.tail.hash,
        ] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.stat.ctime_ns.to_le_bytes());
        bytes
    }

    /// Reads what [`Identity::to_bytes`] wrote. Equal times prove nothing any more: the contents
    /// are compared at the next look.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, ctime) = bytes.split_last_chunk::<16>()?;
        let mut numbers = numbers
            .chunks_exact(8)
            .map(|eight| eight.try_into().map(u64::from_le_bytes).unwrap_or_default());
        if bytes.len() != IDENTITY_BYTES {
            return None;
        }
        let mut next = || numbers.next().unwrap_or_default();
        let id = FileId { dev: next(), ino: next() };
        let size = next();
        let since = Duration::new(next(), u32::try_from(next()).ok()?.min(999_999_999));
        let cursor = next();
        Some(Self {
            stat: Stat {
                id,
                size,
                mtime: SystemTime::UNIX_EPOCH.checked_add(since)?,
                ctime_ns: i128::from_le_bytes(*ctime),
            },
            cursor,
            head: Sample { offset: next(), length: next(), hash: next() },
            tail: Sample { offset: next(), length: next(), hash: next() },
            is_settled: false,
        })
    }
}

/// What became of a file since it was last read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing new.
    Same,
    /// What was read is intact, and there may be more behind the cursor: go on from it.
    Grown,
    /// Shorter than what was read: start again.
    Truncated,
    /// Another file, or another content: start again.
    Replaced,
    /// No file any more.
    Gone,
}

/// Compares an open file with what was remembered of its path.
///
/// # Errors
/// The file cannot be read.
pub fn compare(before: &Identity, now: &Transcript) -> Result<Change, Error> {
    let stat = now.stat()?;
    if stat == before.stat && before.is_settled {
        return Ok(Change::Same);
    }
    if stat.id != before.stat.id {
        return Ok(Change::Replaced);
    }
    if stat.size < before.cursor {
        return Ok(Change::Truncated);
    }
    if !before.head.still_holds(now)? || !before.tail.still_holds(now)? {
        return Ok(Change::Replaced);
    }
    if now.is_packed() && stat.size != before.stat.size {
        return Ok(Change::Replaced);
    }
    // Written, and nothing behind the cursor: what was read before may be another now, in the middle.
    let is_as_long = stat.size == before.stat.size && stat.size == before.cursor;
    if is_as_long && stat.mtime != before.stat.mtime {
        return Ok(Change::Replaced);
    }
    Ok(if stat.size > before.cursor { Change::Grown } else { Change::Same })
}

/// Compares whatever is at `path` now with what was remembered of it.
///
/// # Errors
/// The file is there but cannot be read, or is no regular file.
pub fn compare_path(before: &Identity, path: &Path) -> Result<Change, Error> {
    match Transcript::open(path) {
        Ok(file) => compare(before, &file),
        Err(Error::NotFound { .. }) => Ok(Change::Gone),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn check(before: &str, cursor: u64, change: impl FnOnce(&Path), expected: Change) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        fs::write(&path, before).unwrap();
        let identity = Identity::take(&Transcript::open(&path).unwrap(), cursor).unwrap();
        change(&path);
        assert_eq!(compare_path(&identity, &path).unwrap(), expected);
    }

    #[test]
    fn tells_the_five_changes() {
        check("one\ntwo\n", 8, |_| {}, Change::Same);
        check("one\ntw", 4, |p| fs::write(p, "one\ntwo\n").unwrap(), Change::Grown);
        check("one\ntwo\n", 8, |p| fs::write(p, "one\n").unwrap(), Change::Truncated);
        check("one\ntwo\n", 8, |p| fs::write(p, "six\nten\n").unwrap(), Change::Replaced);
        check("one\ntwo\n", 8, |p| fs::write(p, "one\nten\nthree\n").unwrap(), Change::Replaced);
        check("one\ntwo\n", 8, |p| fs::remove_file(p).unwrap(), Change::Gone);
        let atomic = |p: &Path| {
            fs::write(p.with_extension("new"), "one\ntwo\nthree\n").unwrap();
            fs::rename(p.with_extension("new"), p).unwrap();
        };
        check("one\ntwo\n", 8, atomic, Change::Replaced);
    }

    #[test]
    fn a_changed_beginning_is_another_file_though_its_end_is_the_same() {
        let text = |first: &str| format!("{first}\n{}\n", "x".repeat(5_000));
        let change = |p: &Path| fs::write(p, text("two") + "three\n").unwrap();
        check(&text("one"), 5_005, change, Change::Replaced);
    }

    #[test]
    fn a_changed_middle_is_another_file_if_nothing_was_appended() {
        let text = |middle: &str| format!("{0}{middle}\n{0}", "line\n".repeat(500));
        let change = |p: &Path| {
            fs::write(p, text("two")).unwrap();
            let later = SystemTime::now() + Duration::from_secs(1);
            fs::File::options().append(true).open(p).unwrap().set_modified(later).unwrap();
        };
        check(&text("one"), 5_004, change, Change::Replaced);
    }

    #[test]
    fn a_repaired_torn_line_is_no_new_file() {
        check("one\ntwo-thr", 4, |p| fs::write(p, "one\ntw").unwrap(), Change::Grown);
        check("one\ntwo", 4, |p| fs::write(p, "one\n").unwrap(), Change::Same);
        check("one\ntwo!", 4, |p| fs::write(p, "one\ntwo\n").unwrap(), Change::Grown);
    }

    #[test]
    fn an_empty_file_may_become_anything() {
        check("", 0, |p| fs::write(p, "one\n").unwrap(), Change::Grown);
    }
}
