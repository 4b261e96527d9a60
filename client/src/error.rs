//! Everything that can make a command fail, with what the person can do next.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use compactd_api::ErrorCode;

use crate::config::ConfigError;
use crate::find::Unresolved;
use crate::http::HttpError;
use crate::install::InstallError;
use crate::recall::Unrecalled;
use crate::socket::SocketProblem;
use crate::start::StartError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Standard output does not take it.
    #[error("cannot write the output")]
    Output(#[from] io::Error),
    /// No daemon can be spoken to.
    #[error(transparent)]
    Socket(#[from] SocketProblem),
    /// A daemon was there, but no whole answer came.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The daemon said no.
    #[error("{message}")]
    Refused {
        /// Its reason, for programs.
        code: ErrorCode,
        /// Its reason, for people.
        message: String,
        /// What it advises.
        hint: Option<String>,
    },
    /// The answer has another shape than this version knows.
    #[error("cannot understand the answer of the daemon at {}", socket.display())]
    Answer {
        /// Where it listens.
        socket: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The daemon does not speak our version at all.
    #[error("the daemon at {} speaks protocol {theirs}, this compactctl speaks {ours}", socket.display())]
    Protocol {
        /// Where it listens.
        socket: PathBuf,
        /// What it speaks.
        theirs: u32,
        /// What we speak.
        ours: u32,
    },
    /// A transcript cannot be read.
    #[error(transparent)]
    Transcript(#[from] compactd_transcript::Error),
    /// A session id leads to none, or to more than one.
    #[error(transparent)]
    Unresolved(#[from] Unresolved),
    /// A result cannot be given back.
    #[error(transparent)]
    Recall(#[from] Unrecalled),
    /// A session has no such pass.
    #[error("session {session} has no pass {number}")]
    NoPass {
        /// The session.
        session: String,
        /// The number, or `last`.
        number: String,
    },
    /// There is no fork.
    #[error(transparent)]
    Fork(#[from] compactd_fork::Error),
    /// There is nowhere to write a fork to.
    #[error("the rollout lies in no Codex home, and there is no CODEX_HOME or HOME")]
    NoCodexHome,
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No daemon could be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The pins of a session are there and cannot be used.
    #[error("cannot read the pins in {}", path.display())]
    Pins {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// Installing or removing did not work.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// The system does not let us hear of signals.
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
}

impl Error {
    /// Whether the reader of our output went away, which is no failure.
    #[must_use]
    pub fn is_closed_output(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Whether there simply is no daemon.
    #[must_use]
    pub fn is_not_running(&self) -> bool {
        matches!(self, Self::Socket(SocketProblem::NotRunning { .. }))
    }

    /// A next step, for the `hint:` line.
    #[must_use]
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Output(_) => "check the disk and the file that the output goes to",
            Self::Socket(problem) => problem.hint(),
            Self::Http(error) => error.hint(),
            Self::Refused { hint, .. } => return hint.as_deref().map(Cow::Borrowed),
            Self::Answer { .. } => {
                "daemon and compactctl are of different versions: compare `compactctl status` with \
                 `compactctl version`, then restart the daemon"
            }
            Self::Protocol { theirs, ours, .. } if theirs > ours => {
                "the daemon is newer: update compactctl, or use the one that came with the daemon"
            }
            Self::Protocol { .. } => {
                "the daemon is older: restart it, so that the new version runs"
            }
            Self::Transcript(error) => error.hint(),
            Self::Unresolved(error) => return Some(error.hint()),
            Self::Recall(error) => return Some(error.hint()),
            Self::NoPass { .. } => {
                "the daemon keeps the newest 20 passes that it answered; `explain --now` shows what one \
                 would do"
            }
            Self::Fork(error) => return Some(error.hint().into()),
            Self::NoCodexHome => "set CODEX_HOME to the folder that holds `sessions`",
            Self::Config(error) => error.hint(),
            Self::Start(error) => return Some(error.hint()),
            Self::Pins { .. } => {
                "the daemon writes this file; move it away if it is damaged, then pin again"
            }
            Self::Install(error) => return Some(error.hint()),
            Self::Signals(_) => return None,
        };
        Some(Cow::Borrowed(hint))
    }
}
