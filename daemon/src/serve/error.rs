//! What can go wrong: for the caller of a route, and for the start of the daemon.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::PathBuf;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use compactd_api::{ErrorBody, ErrorCode};

/// A request that was not served.
///
/// As a response it is empty and carries itself; [`super::apply`] writes the body, because only that
/// knows the request's id.
#[derive(Debug, Clone)]
pub struct ApiError {
    code: ErrorCode,
    message: Cow<'static, str>,
    hint: Option<Cow<'static, str>>,
    cause: Option<String>,
}

impl ApiError {
    /// An error with a message for people: lower case, no full stop, never content of a transcript.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), hint: None, cause: None }
    }

    /// A bug or a failing system. The cause goes into the log, not to the caller.
    pub fn internal(cause: impl fmt::Display) -> Self {
        Self::new(ErrorCode::Internal, "the daemon failed").with_cause(cause)
    }

    /// Says what the caller can do, instead of the code's own hint; an empty text changes nothing.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into()).filter(|hint| !hint.is_empty());
        self
    }

    /// Adds what only the log shall tell.
    #[must_use]
    pub fn with_cause(mut self, cause: impl fmt::Display) -> Self {
        self.cause = Some(cause.to_string());
        self
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// The message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn body(&self, id: &str) -> ErrorBody {
        let mut body = self.code.body(&*self.message, id);
        if let Some(hint) = &self.hint {
            body.error.hint = Some(hint.clone().into_owned());
        }
        body
    }

    pub(super) fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    pub(super) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<ErrorCode> for ApiError {
    fn from(code: ErrorCode) -> Self {
        Self::new(code, code.name().replace('_', " "))
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Why the daemon has no socket.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another daemon of this user holds the lock.
    #[error("another compactd is running{}", pid_suffix(*pid))]
    AlreadyRunning {
        /// Its process, if the lock file says so.
        pid: Option<u32>,
        /// The lock file.
        lock: PathBuf,
    },
    /// The folder is not a safe place for the socket.
    #[error("will not use the folder {}: {problem}", path.display())]
    UnsafeFolder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: FolderProblem,
    },
    /// Something that is no socket stands in its place.
    #[error("{} exists and is not a socket", path.display())]
    NotASocket {
        /// The socket's path.
        path: PathBuf,
    },
    /// Another user's socket stands in its place.
    #[error("the socket {} belongs to another user (uid {uid})", path.display())]
    ForeignSocket {
        /// The socket's path.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// Somebody who does not hold the lock listens there.
    #[error("something already listens on {}", path.display())]
    InUse {
        /// The socket's path.
        path: PathBuf,
    },
    /// Something that is not ours to replace stands in the link's place.
    #[error("will not replace {} by a link to the socket", path.display())]
    LinkOccupied {
        /// The link's path.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What is wrong with a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FolderProblem {
    /// A link could lead anywhere.
    #[error("it is a symbolic link")]
    Link,
    /// A file, or something else.
    #[error("it is not a folder")]
    NotAFolder,
    /// Its owner could replace the socket.
    #[error("it belongs to another user (uid {0})")]
    Foreign(u32),
    /// Others could replace the socket.
    #[error("others may write to it (mode {0:04o})")]
    Writable(u32),
}

impl BindError {
    pub(super) fn io(doing: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { doing, path: path.into(), source }
    }

    /// What the person can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::AlreadyRunning { .. } => "`compactctl status` tells about it".to_owned(),
            Self::UnsafeFolder { path, problem: FolderProblem::Writable(_) } => {
                format!("if nobody else needs it: chmod 700 {}", path.display())
            }
            Self::UnsafeFolder { .. } => {
                "name a socket in a folder of your own with COMPACTD_SOCKET".to_owned()
            }
            Self::NotASocket { path } | Self::LinkOccupied { path } => {
                format!("look what it is, and move it away: {}", path.display())
            }
            Self::ForeignSocket { .. } => {
                "each user runs a daemon of their own, in a folder of their own".to_owned()
            }
            Self::InUse { .. } => "if systemd holds the socket, let it start the daemon: \
                 systemctl --user start compactd.service"
                .to_owned(),
            Self::Io { .. } => return None,
        })
    }
}

fn pid_suffix(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (pid {pid})"))
}
