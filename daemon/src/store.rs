//! The only writer: index snapshots (which can be made again), pins, passes and texts that are kept for
//! after a compaction (which cannot).
//!
//! Every file is written beside its place, synced and renamed, 0600 in folders 0700, so a crash or
//! a full disk leaves the old file or the new one. Transcripts are never written.

mod passes;
mod recovery;

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use compactd_api::pins;
use compactd_core::hash::hash;
use compactd_core::index::Index;
use compactd_core::rules::Pins;
use compactd_core::settings::Settings;
use compactd_transcript::lineage::Segment;
use compactd_transcript::{Change, Identity, Transcript, compare};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::sessions::SessionKey;
use crate::tail::Tail;

/// Number of the layout around the index's own.
const FORMAT: u32 = 1;

/// A snapshot or pins file larger than this is not ours.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Start of the name of a file that is being written.
const NEW: &str = ".new-";
/// No write takes longer: what is older was left by a crash.
const WRITE_LASTS: Duration = Duration::from_secs(600);

/// Where files go; either folder may be missing, then nothing of that kind is kept.
#[derive(Debug, Clone, Default)]
pub struct Store {
    snapshots: Option<PathBuf>,
    state: Option<PathBuf>,
}

/// An operation on a file that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {}", path.display())]
pub struct StoreError {
    operation: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl StoreError {
    fn of(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { operation, path: path.to_path_buf(), source }
    }

    /// The disk is full or the quota used up.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// What stands before the index in a snapshot: where it was read from, as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Origin {
    format: u32,
    segments: Vec<SegmentRecord>,
    identity: Vec<u8>,
    has_gap: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct SegmentRecord {
    path: PathBuf,
    end_ordinal: Option<u64>,
    end_offset: Option<u64>,
}

impl Store {
    /// Keeps snapshots below `cache` and pins below `state`.
    #[must_use]
    pub fn new(cache: Option<PathBuf>, state: Option<PathBuf>) -> Self {
        Self { snapshots: cache.map(|cache| cache.join("index")), state }
    }

    fn snapshot_path(&self, key: &SessionKey) -> Option<PathBuf> {
        Some(self.snapshots.as_ref()?.join(format!("{}.idx", Self::name(key))))
    }

    /// Name of a session's files, without what tells them apart.
    #[must_use]
    pub fn name(key: &SessionKey) -> String {
        format!("{}-{}", key.host.name(), key.id)
    }

    /// A snapshot's bytes; `None` when none are kept or the index has not read its file whole.
    #[must_use]
    pub fn encode(&self, tail: &Tail) -> Option<Vec<u8>> {
        self.snapshots.as_ref()?;
        let origin = Origin {
            format: FORMAT,
            segments: tail
                .segments()
                .iter()
                .map(|segment| SegmentRecord {
                    path: segment.path.clone(),
                    end_ordinal: segment.end_ordinal,
                    end_offset: segment.end_offset,
                })
                .collect(),
            identity: tail.identity()?.to_bytes(),
            has_gap: tail.has_gap(),
        };
        let mut head = serde_json::to_vec(&origin).ok()?;
        head.push(b'\n');
        let index = tail.index().encode();
        let mut bytes = Vec::with_capacity(8 + head.len() + index.len());
        bytes.extend_from_slice(&hash(&head).to_le_bytes());
        bytes.append(&mut head);
        bytes.extend_from_slice(&index);
        Some(bytes)
    }

    /// Writes a snapshot.
    ///
    /// # Errors
    /// The folder or file cannot be written; what was there stays.
    pub fn save(&self, key: &SessionKey, bytes: &[u8]) -> Result<(), StoreError> {
        match self.snapshot_path(key) {
            Some(path) => write(&path, bytes),
            None => Ok(()),
        }
    }

    /// The index as it was saved, if the file it was read from is still the same or has grown.
    /// Anything else (another format, damage, a rewritten transcript) is no error: the index is
    /// built anew.
    #[must_use]
    pub fn load(&self, key: &SessionKey, file: &Path, settings: &Settings) -> Option<Tail> {
        let path = self.snapshot_path(key)?;
        let bytes = match read(&path, MAX_FILE_BYTES) {
            Ok(bytes) => bytes?,
            Err(error) => {
                tracing::warn!(session = key.id, %error, "snapshot cannot be read");
                return None;
            }
        };
        match decode(&bytes, file, settings) {
            Ok(tail) => tail,
            Err(reason) => {
                tracing::info!(session = key.id, reason, "snapshot not used");
                let _removed = fs::remove_file(&path);
                None
            }
        }
    }

    /// Removes the snapshots of sessions whose [`Self::name`] `is_known` does not know, and what
    /// a crash left half written.
    pub fn clean(&self, is_known: impl Fn(&str) -> bool) {
        let Some(folder) = &self.snapshots else { return };
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let known =
                name.to_str().and_then(|name| name.strip_suffix(".idx")).is_some_and(&is_known);
            let is_being_written = name.as_encoded_bytes().starts_with(NEW.as_bytes())
                && entry
                    .metadata()
                    .and_then(|metadata| metadata.modified())
                    .is_ok_and(|at| at.elapsed().map_or(true, |age| age < WRITE_LASTS));
            if !known && !is_being_written {
                let _removed = fs::remove_file(entry.path());
            }
        }
    }

    /// What the person pinned in a session.
    ///
    /// # Errors
    /// The file is there and cannot be read or understood; it is left as it is.
    pub fn pins(&self, key: &SessionKey) -> Result<Pins, StoreError> {
        let Some(path) = self.pins_path(key) else { return Ok(Pins::default()) };
        let Some(bytes) = read(&path, MAX_FILE_BYTES)? else { return Ok(Pins::default()) };
        pins::parse(&bytes)
            .map_err(io::Error::other)
            .map_err(StoreError::of("read pins from", &path))
    }

    /// Writes what the person pinned.
    ///
    /// # Errors
    /// The file cannot be written; what was there stays.
    pub fn save_pins(&self, key: &SessionKey, pins: &Pins) -> Result<(), StoreError> {
        let Some(path) = self.pins_path(key) else {
            return Err(StoreError::of(
                "write pins without a state folder for",
                Path::new(&key.id),
            )(io::Error::from(io::ErrorKind::NotFound)));
        };
        write(&path, &pins::print(pins))
    }

    fn pins_path(&self, key: &SessionKey) -> Option<PathBuf> {
        Some(pins::path(self.state.as_ref()?, key.host, &key.id))
    }
}

fn decode(bytes: &[u8], file: &Path, settings: &Settings) -> Result<Option<Tail>, String> {
    let torn = || "not a snapshot".to_owned();
    let (sum, rest) = bytes.split_first_chunk().ok_or_else(torn)?;
    let end = rest.iter().position(|&byte| byte == b'\n').ok_or_else(torn)?;
    let (head, index) = rest.split_at(end + 1);
    if hash(head) != u64::from_le_bytes(*sum) {
        return Err("its head is damaged".to_owned());
    }
    let origin: Origin = serde_json::from_slice(head).map_err(|error| error.to_string())?;
    if origin.format != FORMAT {
        return Err(format!("format {}, this version reads {FORMAT}", origin.format));
    }
    if origin.has_gap {
        return Err("its history had no beginning then".to_owned());
    }
    let mut segments: Vec<Segment> = origin
        .segments
        .into_iter()
        .map(|segment| Segment {
            path: segment.path,
            end_ordinal: segment.end_ordinal,
            end_offset: segment.end_offset,
        })
        .collect();
    let identity = Identity::from_bytes(&origin.identity).ok_or_else(torn)?;
    let now = Transcript::open(file).map_err(|error| error.to_string())?;
    match compare(&identity, &now).map_err(|error| error.to_string())? {
        Change::Same | Change::Grown => {}
        change => return Err(format!("the transcript was {change:?}").to_lowercase()),
    }
    if let Some(own) = segments.last_mut() {
        own.path = file.to_path_buf();
    }
    let index = Index::decode(index, settings).map_err(|error| error.to_string())?;
    Ok(Some(Tail::resume(index, segments, identity, origin.has_gap)))
}

/// Reads a file of ours; `None` if there is none. Another user's, one behind a link, and anything that
/// is no file is refused: a pipe would not even open before somebody writes to it.
fn read(path: &Path, max_bytes: u64) -> Result<Option<Vec<u8>>, StoreError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let opened = File::options().read(true).custom_flags(flags).open(path);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(StoreError::of("open", path))?,
    };
    let metadata = file.metadata().map_err(StoreError::of("look at", path))?;
    if !metadata.is_file() || metadata.uid() != rustix::process::getuid().as_raw() {
        let refused = io::Error::new(io::ErrorKind::PermissionDenied, "not a file of ours");
        return Err(StoreError::of("read", path)(refused));
    }
    if metadata.len() > max_bytes {
        let refused = io::Error::new(io::ErrorKind::FileTooLarge, "larger than any of ours");
        return Err(StoreError::of("read", path)(refused));
    }
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes).map_err(StoreError::of("read", path))?;
    Ok(Some(bytes))
}

/// Whether a folder is there. A link in its place could lead anywhere: it is refused, as is another user's
/// folder.
fn own_folder(path: &Path) -> Result<bool, StoreError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::of("look at", path)(error)),
        Ok(metadata) if is_own_folder(&metadata) => Ok(true),
        Ok(_) => {
            let kind = io::ErrorKind::PermissionDenied;
            Err(StoreError::of("use", path)(io::Error::new(kind, "not a folder of ours")))
        }
    }
}

fn is_own_folder(metadata: &fs::Metadata) -> bool {
    metadata.is_dir() && metadata.uid() == rustix::process::getuid().as_raw()
}

/// Puts `bytes` at `path`, whole or not at all.
fn write(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(StoreError::of("create", folder))?;
    let mut file = tempfile::Builder::new()
        .prefix(NEW)
        .tempfile_in(folder)
        .map_err(StoreError::of("create a file in", folder))?;
    file.write_all(bytes).map_err(StoreError::of("write", path))?;
    file.as_file().sync_all().map_err(StoreError::of("sync", path))?;
    file.persist(path).map_err(|error| StoreError::of("rename to", path)(error.error))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(StoreError::of("sync", folder))
}
