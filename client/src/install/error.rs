//! Why nothing is installed, or why something of it is left.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use super::codex::config::switch_on;
use super::hosts::{Which, quoted};

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
        /// Which host.
        host: Which,
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
    /// Codex does not start with such a file.
    #[error("{} is not TOML: {why}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// Where it breaks.
        why: String,
    },
    /// Codex has switched off what the plugin needs.
    #[error("{} has features.{feature} = false: Codex {without}", path.display())]
    Off {
        /// The configuration.
        path: PathBuf,
        /// The feature.
        feature: &'static str,
        /// What does not go without it.
        without: &'static str,
    },
    /// The host's folder is not there, and the host does not make it.
    #[error("CODEX_HOME names {}, which is not there", path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// The host does not tell what it thinks of our hooks.
    #[error("codex does not tell which hooks are trusted: {why}")]
    Hooks {
        /// What happened.
        why: String,
    },
    /// The hooks were approved, and the host does not think so.
    #[error("{} names the hooks as trusted, and Codex does not trust {}", path.display(), names.join(", "))]
    NotTrusted {
        /// The configuration.
        path: PathBuf,
        /// The hooks.
        names: Vec<String>,
    },
    /// The host would replace a file that somebody protected.
    #[error("{} is read-only (mode {mode:o})", path.display())]
    ReadOnly {
        /// Which host.
        host: Which,
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A marketplace of our name is not ours.
    #[error("another marketplace named compactd is known to {}, from {source_shown}", host.name())]
    Marketplace {
        /// To which host.
        host: Which,
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
        /// Which host.
        host: Which,
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

/// A path in a command that a person may copy.
fn typed(path: &Path) -> String {
    quoted(&path.display().to_string())
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
            Self::Open { path, .. } => format!("chmod go-w {}", typed(path)).into(),
            Self::Kind { path, .. } => format!("move {} away", path.display()).into(),
            Self::NoProgram { .. } => {
                "build all programs with `cargo build --release`, then run the compactctl beside them"
                    .into()
            }
            Self::NoHost { host, .. } => {
                let program = host.program();
                format!("name the program itself: `--{program} /path/to/{program}`").into()
            }
            Self::Settings { path, .. } => {
                format!("mend {}: Claude Code takes neither comments nor a trailing comma", path.display())
                    .into()
            }
            Self::Config { path, .. } => {
                format!("mend {}: codex does not start with it either", path.display()).into()
            }
            Self::Off { feature, .. } => {
                format!("`{}`, then install again", switch_on(feature)).into()
            }
            Self::NoFolder { path } => format!("mkdir -p {}", typed(path)).into(),
            Self::Hooks { .. } | Self::NotTrusted { .. } => {
                "leave out --trust-hooks, then start `codex` once and trust them there".into()
            }
            Self::ReadOnly { host, path, .. } => format!(
                "{} would replace it all the same; allow it with `chmod u+w {}`, or change what \
                 generates the file",
                host.name(),
                typed(path)
            )
            .into(),
            Self::Marketplace { host, .. } => format!(
                "remove it with `{} plugin marketplace remove compactd`, then install again",
                host.program()
            )
            .into(),
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
            Self::NotThere { host, .. } => {
                format!("update {}, then install again", host.name()).into()
            }
            Self::Left { cause, .. } => cause.hint(),
            Self::Remains { .. } => "`compactctl doctor` shows what is there".into(),
        }
    }
}
