//! Whether a host holds a thread: it locks `thread-writer-locks/<thread>.lock` in its home while the
//! thread is loaded. And whether one of us still writes a draft.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

fn path(home: &Path, thread: &str) -> PathBuf {
    home.join("thread-writer-locks").join(format!("{thread}.lock"))
}

/// Whether some program holds the thread, as far as can be seen without trying: to try the lock, even
/// for a moment, could make a host that starts just then fail. Only Linux lists its locks.
pub(crate) fn is_held(home: &Path, thread: &str) -> bool {
    let Ok(found) = std::fs::metadata(path(home, thread)) else { return false };
    let Ok(locks) = std::fs::read_to_string("/proc/locks") else { return false };
    let inode = found.ino().to_string();
    locks.lines().any(|line| {
        // `1: FLOCK  ADVISORY  WRITE 4711 fd:01:262159 0 EOF`
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some("FLOCK")
            && words.nth(3).and_then(|file| file.rsplit(':').next()) == Some(&*inode)
    })
}

/// Takes the lock of a thread that no host holds, for as long as the file is kept. `None`: it is held.
/// A thread that no host ever loaded has no lock, and needs none.
pub(crate) fn take(home: &Path, thread: &str) -> Option<Option<File>> {
    match File::open(path(home, thread)) {
        Ok(file) => match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Some(Some(file)),
            Err(_) => None,
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(None),
        Err(_) => None,
    }
}

/// Holds a file of ours for as long as it is open: the system lets go of it when the program is killed.
/// Where a file system has no locks nobody can take it either.
pub(crate) fn hold(file: &File) {
    let _held = flock(file, FlockOperation::NonBlockingLockExclusive);
}

/// Whether nobody holds an open file of ours; from then on it is held by its opener.
pub(crate) fn is_free(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_seen_and_not_taken_twice() {
        let home = tempfile::tempdir().unwrap();
        assert!(!is_held(home.path(), "t"));
        assert!(matches!(take(home.path(), "t"), Some(None)));
        let lock = path(home.path(), "t");
        std::fs::create_dir(lock.parent().unwrap()).unwrap();
        std::fs::write(&lock, "").unwrap();
        assert!(!is_held(home.path(), "t"));
        let held = take(home.path(), "t").unwrap();
        assert!(held.is_some());
        assert_eq!(is_held(home.path(), "t"), cfg!(target_os = "linux"));
        assert!(take(home.path(), "t").is_none());
        drop(held);
        assert!(!is_held(home.path(), "t"));
    }
}
