//! What can go wrong with a file, one variant for each thing a caller can do about it.

use std::io;
use std::path::{Path, PathBuf};

/// A failed operation on a transcript.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such file.
    #[error("cannot {operation} {}: no such file", path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
        /// What was tried.
        operation: &'static str,
    },
    /// The file exists and may not be read.
    #[error("cannot {operation} {}: permission denied", path.display())]
    Permission {
        /// The file.
        path: PathBuf,
        /// What was tried.
        operation: &'static str,
    },
    /// The path names a directory.
    #[error("cannot {operation} {}: it is a directory", path.display())]
    IsDirectory {
        /// The directory.
        path: PathBuf,
        /// What was tried.
        operation: &'static str,
    },
    /// A pipe, a socket or a device, from which a read may never return.
    #[error("cannot {operation} {}: not a regular file", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
        /// What was tried.
        operation: &'static str,
    },
    /// A readable file that neither host wrote.
    #[error("{} is not a transcript: {reason}", path.display())]
    NotATranscript {
        /// The file.
        path: PathBuf,
        /// How that shows.
        reason: &'static str,
    },
    /// Compressed data that is broken, cut off or asks for too much memory.
    #[error("cannot unpack {}", path.display())]
    Zstd {
        /// The file.
        path: PathBuf,
        /// What the decoder said.
        source: io::Error,
    },
    /// Anything else the system said.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        operation: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// Sorts what the system said about `operation` on `path`.
    #[must_use]
    pub fn from_io(path: &Path, operation: &'static str, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                Self::NotFound { path, operation }
            }
            io::ErrorKind::PermissionDenied => Self::Permission { path, operation },
            io::ErrorKind::IsADirectory => Self::IsDirectory { path, operation },
            _ => Self::Io { path, operation, source },
        }
    }

    /// The file or directory it is about.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::NotFound { path, .. }
            | Self::Permission { path, .. }
            | Self::IsDirectory { path, .. }
            | Self::NotRegular { path, .. }
            | Self::NotATranscript { path, .. }
            | Self::Zstd { path, .. }
            | Self::Io { path, .. } => path,
        }
    }

    /// What a person can do next, for the `hint:` line.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "check the path; `compactctl sessions` lists what is known",
            Self::Permission { .. } => "run as the user who owns the transcript",
            Self::IsDirectory { .. } => "name one .jsonl file inside it",
            Self::NotRegular { .. } => "copy the data into a file and name that",
            Self::NotATranscript { .. } => {
                "expected a .jsonl file of Claude Code (projects/) or Codex (sessions/)"
            }
            Self::Zstd { .. } => {
                "test it with `zstd -t`; windows above 16 MiB (`--long`, `--ultra`) are refused"
            }
            Self::Io { .. } => "the file system reported this; check the disk and the mount",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn text_names_operation_and_path_and_leaves_the_source_to_the_chain() {
        let broken = Error::Io {
            path: "/x/a.jsonl".into(),
            operation: "read",
            source: io::Error::other("disk on fire"),
        };
        assert_eq!(broken.to_string(), "cannot read /x/a.jsonl");
        assert_eq!(broken.source().unwrap().to_string(), "disk on fire");
        let gone = Error::from_io(Path::new("/y"), "open", io::ErrorKind::NotFound.into());
        assert_eq!(gone.to_string(), "cannot open /y: no such file");
        assert_eq!(gone.path(), Path::new("/y"));
        assert!(!gone.hint().is_empty());
    }
}
