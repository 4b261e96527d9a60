//! The kernel's side of watching, behind a trait so that its limits can be tried without them.

use std::fmt;
use std::io;
use std::path::Path;

use notify::{Config, ErrorKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::inbox::Signals;

/// Watches folders and reports to [`Signals`].
pub trait Watch: Send {
    /// Starts watching a folder. When this returns, no later change is missed. Watching a folder
    /// again is harmless.
    ///
    /// # Errors
    /// The folder is not watched.
    fn watch(&mut self, dir: &Path, reach: Reach) -> Result<(), WatchError>;

    /// Stops watching a folder, if it was watched.
    fn unwatch(&mut self, dir: &Path);

    /// One watch on a tree covers all folders below it. Else each needs its own.
    fn covers_below(&self) -> bool {
        false
    }
}

/// Makes a new watcher; called again at each sweep while there is none.
pub type MakeWatch =
    Box<dyn Fn(Signals) -> Result<Box<dyn Watch>, WatchError> + Send + Sync + 'static>;

/// How far a watch reaches, where the system can choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The folder's own entries.
    Entries,
    /// Everything below.
    Below,
}

/// Why a folder, or anything, is not watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchError {
    /// More cannot be watched now.
    Limit(Reason),
    /// The folder is gone.
    Missing,
    /// The folder may not be read, so there is nothing to see in it.
    Denied,
}

/// Why some changes are noticed by polling only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The user's watches are used up (`fs.inotify.max_user_watches`).
    WatchLimit,
    /// The user's watchers or the process's files are used up (`fs.inotify.max_user_instances`).
    InstanceLimit,
    /// The system said something else.
    Unavailable(String),
}

impl Reason {
    /// A short name for status and logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::WatchLimit => "watch_limit",
            Self::InstanceLimit => "instance_limit",
            Self::Unavailable(_) => "unavailable",
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::WatchLimit => "raise fs.inotify.max_user_watches; until then changes are polled",
            Self::InstanceLimit => {
                "raise fs.inotify.max_user_instances or the open-files limit; until then changes \
                 are polled"
            }
            Self::Unavailable(_) => "changes are polled; the file system may not support watching",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WatchLimit => f.write_str("the limit of watched folders is reached"),
            Self::InstanceLimit => f.write_str("the limit of watchers or open files is reached"),
            Self::Unavailable(text) => write!(f, "folders cannot be watched: {text}"),
        }
    }
}

impl From<notify::Error> for WatchError {
    fn from(error: notify::Error) -> Self {
        let text = error.to_string();
        match error.kind {
            ErrorKind::MaxFilesWatch => Self::Limit(Reason::WatchLimit),
            ErrorKind::PathNotFound | ErrorKind::WatchNotFound => Self::Missing,
            ErrorKind::Io(error) => Self::from(error),
            ErrorKind::Generic(_) | ErrorKind::InvalidConfig(_) => {
                Self::Limit(Reason::Unavailable(text))
            }
        }
    }
}

impl From<io::Error> for WatchError {
    fn from(error: io::Error) -> Self {
        /// The same numbers on Linux and macOS.
        const ENFILE: i32 = 23;
        const EMFILE: i32 = 24;
        const ENOSPC: i32 = 28;
        match (error.raw_os_error(), error.kind()) {
            (Some(ENOSPC), _) => Self::Limit(Reason::WatchLimit),
            (Some(EMFILE | ENFILE), _) => Self::Limit(Reason::InstanceLimit),
            (_, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Self::Missing,
            (_, io::ErrorKind::PermissionDenied) => Self::Denied,
            _ => Self::Limit(Reason::Unavailable(error.to_string())),
        }
    }
}

/// The system's own way: inotify, or `FSEvents`.
pub(super) fn notify() -> MakeWatch {
    Box::new(|signals| {
        let handler = move |event| signals.notify(event);
        let watcher = RecommendedWatcher::new(handler, Config::default())?;
        Ok(Box::new(Notify { watcher }))
    })
}

struct Notify {
    watcher: RecommendedWatcher,
}

impl Watch for Notify {
    fn watch(&mut self, dir: &Path, reach: Reach) -> Result<(), WatchError> {
        // inotify has no recursion: notify would add folders by itself, but behind our back, so
        // that neither the moment nor the failure of a single one is known.
        let mode = match reach {
            Reach::Below if self.covers_below() => RecursiveMode::Recursive,
            Reach::Below | Reach::Entries => RecursiveMode::NonRecursive,
        };
        Ok(self.watcher.watch(dir, mode)?)
    }

    fn unwatch(&mut self, dir: &Path) {
        if let Err(error) = self.watcher.unwatch(dir) {
            // The kernel drops the watch of a removed folder before we do.
            tracing::trace!(%error, "watch was gone already");
        }
    }

    fn covers_below(&self) -> bool {
        cfg!(target_os = "macos")
    }
}
