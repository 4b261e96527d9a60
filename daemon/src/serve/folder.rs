//! Folders that nobody else can write to.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use super::error::{BindError, FolderProblem};

const GROUP_OR_OTHER_WRITE: u32 = 0o022;

/// Makes the folder with mode 0700 if it is missing, and checks that it is ours alone.
pub(super) fn make_private(path: &Path) -> Result<(), BindError> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .map_err(|source| BindError::io("make the folder", path, source))?;
            fs::symlink_metadata(path)
        }
        found => found,
    }
    .map_err(|source| BindError::io("look at the folder", path, source))?;
    match problem(&metadata) {
        None => Ok(()),
        Some(problem) => Err(BindError::UnsafeFolder { path: path.to_path_buf(), problem }),
    }
}

fn problem(metadata: &fs::Metadata) -> Option<FolderProblem> {
    if metadata.is_symlink() {
        Some(FolderProblem::Link)
    } else if !metadata.is_dir() {
        Some(FolderProblem::NotAFolder)
    } else if metadata.uid() != own_uid() {
        Some(FolderProblem::Foreign(metadata.uid()))
    } else if metadata.mode() & GROUP_OR_OTHER_WRITE != 0 {
        Some(FolderProblem::Writable(metadata.mode() & 0o7777))
    } else {
        None
    }
}

/// Whether both paths lead to the same folder.
pub(super) fn is_same(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

pub(super) fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}
