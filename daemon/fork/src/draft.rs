//! Drafts that were left behind: a program that is killed while it writes a fork cannot take its file
//! away. No host reads such a file, and nobody holds it any more.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use compactd_core::record::Host;
use compactd_transcript::Roots;
use rustix::fs::OFlags;

use crate::error::Error;
use crate::lock;
use crate::own::{Stays, is_young};
use crate::write::DRAFT;

/// `YYYY/MM/DD` below `sessions`.
const DEPTH: usize = 3;

/// A fork that is not whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Its file.
    pub path: PathBuf,
    /// When it was last written to.
    pub written: SystemTime,
    /// Its size.
    pub bytes: u64,
}

/// All drafts, by path: those that are being written too.
#[must_use]
pub fn drafts(roots: &Roots) -> Vec<Draft> {
    let mut found = Vec::new();
    for tree in roots.trees().iter().filter(|tree| tree.host == Host::Codex) {
        look(&tree.path, DEPTH, &mut found);
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Links are not followed: what lies elsewhere was not written here.
fn look(folder: &Path, depth: usize, found: &mut Vec<Draft>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth > 0 {
            look(&entry.path(), depth - 1, found);
        } else if kind.is_file() && is_draft(&entry.file_name().to_string_lossy()) {
            let Ok(metadata) = entry.metadata() else { continue };
            let Ok(written) = metadata.modified() else { continue };
            found.push(Draft { path: entry.path(), written, bytes: metadata.len() });
        }
    }
}

fn is_draft(name: &str) -> bool {
    let inner = name.strip_prefix(DRAFT.0).and_then(|name| name.strip_suffix(DRAFT.1));
    inner.is_some_and(|inner| {
        !inner.is_empty() && inner.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

impl Draft {
    /// Why it is not one to remove, as far as can be said without touching it.
    #[must_use]
    pub fn stays(&self, older_than: Duration) -> Option<Stays> {
        is_young(self.written, older_than).then_some(Stays::Young)
    }
}

/// Removes a draft that nobody writes any more: whoever does so holds its file.
///
/// # Errors
/// The file cannot be opened, or not removed.
pub fn remove_draft(draft: &Draft, older_than: Duration) -> Result<Option<Stays>, Error> {
    if let Some(stays) = draft.stays(older_than) {
        return Ok(Some(stays));
    }
    let path = &draft.path;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        // It has become a fork, or somebody else removed it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(Stays::Written)),
        Err(error) => return Err(Error::write("open", path)(error)),
    };
    if !lock::is_free(&file) {
        return Ok(Some(Stays::Written));
    }
    // It may have been published before it was free.
    let is_there = |found: &fs::Metadata| {
        file.metadata().is_ok_and(|open| (open.dev(), open.ino()) == (found.dev(), found.ino()))
    };
    if !fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && is_there(&found)) {
        return Ok(Some(Stays::Written));
    }
    fs::remove_file(path).map_err(Error::write("remove", path))?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_writes_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("sessions/2026/11/30");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(".compactd-fork-Ab12cd.partial");
        fs::write(&path, "{}\n").unwrap();
        let others = [".compactd-fork-.partial", ".compactd-fork-a b.partial", "x.partial"];
        for name in others {
            fs::write(folder.join(name), "").unwrap();
        }
        fs::create_dir(folder.join(".compactd-fork-folder.partial")).unwrap();
        std::os::unix::fs::symlink(&path, folder.join(".compactd-fork-link.partial")).unwrap();
        let roots = Roots::new([], [home.path().to_path_buf()]);
        let [draft] = drafts(&roots).try_into().unwrap();
        assert_eq!((&draft.path, draft.bytes), (&path, 3));
        let minute = Duration::from_secs(60);
        assert_eq!(remove_draft(&draft, minute).unwrap(), Some(Stays::Young));
        let writer = File::open(&path).unwrap();
        lock::hold(&writer);
        assert_eq!(remove_draft(&draft, Duration::ZERO).unwrap(), Some(Stays::Written));
        assert!(path.exists());
        drop(writer);
        assert_eq!(remove_draft(&draft, Duration::ZERO).unwrap(), None);
        assert_eq!(remove_draft(&draft, Duration::ZERO).unwrap(), Some(Stays::Written));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), others.len() + 2);
    }
}
