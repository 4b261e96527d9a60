//! Why nothing is installed, or why something of it is left.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

/// Why an installation or its undoing failed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// There is no place to install to.
    #[error("cannot tell where to install: HOME is not an absolute path")]
    NoHome,
    /// A folder or file belongs to somebody else.
    #[error("{} belongs to another user (uid {uid})", path.display())]
    OtherUser {
        /// It.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// Others could put something in the place of what is installed.
    #[error("{} can be written by other users (mode {mode:o})", path.display())]
    Open {
        /// The folder.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Something else has the name of what is installed.
    #[error("{} is {found}, not {wanted}", path.display())]
    Kind {
        /// It.
        path: PathBuf,
        /// What it is.
        found: &'static str,
        /// What it would have to be.
        wanted: &'static str,
    },
    /// The programs are not together.
    #[error("there is no {name} beside {}", ours.display())]
    NoProgram {
        /// What is missing.
        name: &'static str,
        /// Our own program.
        ours: PathBuf,
    },
    /// The host named by the person is not there.
    #[error("{} is not a program", path.display())]
    NoHost {
        /// What was named.
        path: PathBuf,
    },
    /// The host would not take the file, or would lose what is in it.
    #[error("{} is not a JSON object: {why}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// Where it breaks.
        why: String,
    },
    /// The host would replace a file that somebody protected.
    #[error("{} is read-only (mode {mode:o})", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A marketplace of our name is not ours.
    #[error("another marketplace named compactd is known to Claude Code, from {source_shown}")]
    Marketplace {
        /// Where it comes from.
        source_shown: String,
    },
    /// A unit of our name is not ours.
    #[error("{} is there and was not written by compactctl, or was changed since", path.display())]
    Unit {
        /// The unit.
        path: PathBuf,
    },
    /// The record cannot be used.
    #[error("cannot use the install record {}: {why}", path.display())]
    Record {
        /// The record.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file operation failed.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A command failed.
    #[error("`{command}` failed ({status}): {said}")]
    Command {
        /// As a person would type it.
        command: String,
        /// How it ended.
        status: String,
        /// What it said on stderr.
        said: String,
    },
    /// The host said that all is well, and its files say otherwise.
    #[error("`{command}` succeeded, but {} does not name the plugin", path.display())]
    NotThere {
        /// As a person would type it.
        command: String,
        /// Where the plugin would have to be named.
        path: PathBuf,
    },
    /// The failure above, and what could not be undone.
    #[error("{cause}; it could not all be undone: {}", left.join("; "))]
    Left {
        /// What failed first.
        cause: Box<Self>,
        /// What is left.
        left: Vec<String>,
    },
    /// Undoing went on, and something is left.
    #[error("not everything could be removed: {}", left.join("; "))]
    Remains {
        /// What is left.
        left: Vec<String>,
    },
}

impl InstallError {
    /// The message with what caused it, in one line.
    #[must_use]
    pub fn told(&self) -> String {
        match self {
            Self::File { source, .. } => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }

    /// A next step.
    #[must_use]
    pub fn hint(&self) -> Cow<'_, str> {
        match self {
            Self::NoHome => "set HOME".into(),
            Self::OtherUser { .. } => {
                "run it as the user who will use it, without sudo".into()
            }
            Self::Open { path, .. } => format!("chmod go-w {}", path.display()).into(),
            Self::Kind { path, .. } => format!("move {} away", path.display()).into(),
            Self::NoProgram { .. } => {
                "build all programs with `cargo build --release`, then run the compactctl beside them"
                    .into()
            }
            Self::NoHost { .. } => "name the program itself: `--claude /path/to/claude`".into(),
            Self::Settings { path, .. } => {
                format!("mend {}: Claude Code takes neither comments nor a trailing comma", path.display())
                    .into()
            }
            Self::ReadOnly { path, .. } => format!(
                "Claude Code would replace it all the same; allow it with `chmod u+w {}`, or change what \
                 generates the file",
                path.display()
            )
            .into(),
            Self::Marketplace { .. } => {
                "remove it with `claude plugin marketplace remove compactd`, then install again".into()
            }
            Self::Unit { path } => format!(
                "keep changes in {}.d/*.conf, or leave the service out with --no-service",
                path.display()
            )
            .into(),
            Self::Record { path, .. } => {
                format!("use the compactctl that wrote {}", path.display()).into()
            }
            Self::File { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                "make room on that disk, then run it again".into()
            }
            Self::File { path, .. } => {
                format!("check the permissions of {} and of its folder", path.display()).into()
            }
            Self::Command { command, .. } if command.starts_with("systemctl") => {
                "leave the service out with --no-service: the hooks start the daemon then".into()
            }
            Self::Command { command, .. } => format!("run `{command}` by itself").into(),
            Self::NotThere { .. } => "update Claude Code, then install again".into(),
            Self::Left { cause, .. } => cause.hint(),
            Self::Remains { .. } => "`compactctl doctor` shows what is there".into(),
        }
    }
}
