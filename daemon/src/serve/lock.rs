//! At most one daemon: a lock that ends with its process, whatever way that ends.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use super::error::BindError;

const NAME: &str = "compactd.lock";

/// A held lock. The file stays when it is given back: removing it would let two daemons hold locks on
/// two files of the same name.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock of a folder and writes the process id into it.
    pub(super) fn take(folder: &Path) -> Result<Self, BindError> {
        let path = folder.join(NAME);
        loop {
            let mut file = open(&path).map_err(|e| BindError::io("open the lock", &path, e))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => {
                    return Err(BindError::AlreadyRunning { pid: read_pid(&mut file), lock: path });
                }
                Err(error) => return Err(BindError::io("lock", &path, error.into())),
            }
            if is_at(&file, &path) {
                return write_pid(file).map_err(|e| BindError::io("write the lock", &path, e));
            }
            // Somebody removed the file between opening and locking it: try the new one.
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Only for people who look: the number means nothing without the lock.
        drop(self.file.set_len(0));
        // Closing is not enough: a child between its fork and its exec still has the file open.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn open(path: &PathBuf) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?))
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(held), Ok(found)) => (held.dev(), held.ino()) == (found.dev(), found.ino()),
        _ => false,
    }
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn write_pid(mut file: File) -> io::Result<Lock> {
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())?;
    Ok(Lock { file })
}
