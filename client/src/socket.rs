//! Finds the daemon's socket: the first candidate that exists, is a socket and is ours.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use compactd_api::dirs::Env;
use compactd_api::socket::{SocketError, client_candidates, override_error};

/// Why there is no daemon to speak to.
#[derive(Debug, thiserror::Error)]
pub enum SocketProblem {
    /// Nothing listens at any of the places.
    #[error("no daemon is running{}", looked_at(tried))]
    NotRunning {
        /// Where it was looked for.
        tried: Vec<PathBuf>,
    },
    /// Something else has the socket's name.
    #[error("{} is not a socket", path.display())]
    NotASocket {
        /// What was found.
        path: PathBuf,
    },
    /// Another user listens there.
    #[error("the socket {} belongs to another user (uid {uid})", path.display())]
    OtherUser {
        /// The socket.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
    /// It is there and cannot be reached.
    #[error("cannot connect to {}", path.display())]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// `COMPACTD_SOCKET` cannot be a socket's path.
    #[error(transparent)]
    BadPath(#[from] SocketError),
}

fn looked_at(tried: &[PathBuf]) -> String {
    if tried.is_empty() {
        return String::new();
    }
    let tried: Vec<String> = tried.iter().map(|path| path.display().to_string()).collect();
    format!(": nothing listens at {}", tried.join(" or "))
}

impl SocketProblem {
    /// A next step.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotRunning { .. } => {
                "start one with `compactd &`, or let `compactctl watch` start one while it runs"
            }
            Self::NotASocket { .. } => {
                "move that file away, or set COMPACTD_SOCKET to the socket of your daemon"
            }
            Self::OtherUser { .. } => {
                "each user runs a daemon of their own: unset COMPACTD_SOCKET or set it to yours"
            }
            Self::Unreachable { .. } => "check the permissions of the socket and of its folder",
            Self::BadPath(_) => "set COMPACTD_SOCKET to a shorter, absolute path, or unset it",
        }
    }
}

/// Connects to the daemon and tells at which path.
///
/// # Errors
/// Nothing listens, or what is there is no socket of ours.
pub fn connect(env: &Env) -> Result<(UnixStream, PathBuf), SocketProblem> {
    if let Some(error) = override_error(env) {
        return Err(error.into());
    }
    let tried = client_candidates(env);
    let mut problem = None;
    for path in &tried {
        match connect_to(path) {
            Ok(Some(stream)) => return Ok((stream, path.clone())),
            Ok(None) => {}
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    Err(problem.unwrap_or(SocketProblem::NotRunning { tried }))
}

/// Connects to one path; `None` if nothing listens there.
fn connect_to(path: &Path) -> Result<Option<UnixStream>, SocketProblem> {
    let unreachable = |source| SocketProblem::Unreachable { path: path.to_path_buf(), source };
    match fs::metadata(path) {
        Ok(found) => check(path, &found, rustix::process::geteuid().as_raw())?,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(source) => return Err(unreachable(source)),
    }
    match UnixStream::connect(path) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(source) => Err(unreachable(source)),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::ConnectionRefused
    )
}

fn check(path: &Path, found: &Metadata, me: u32) -> Result<(), SocketProblem> {
    let path = path.to_path_buf();
    if !found.file_type().is_socket() {
        return Err(SocketProblem::NotASocket { path });
    }
    if found.uid() != me {
        return Err(SocketProblem::OtherUser { path, uid: found.uid() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use compactd_api::dirs::Os;

    use super::*;

    fn env(home: &Path, socket: Option<&Path>) -> Env {
        Env::from_lookup(Os::Linux, |name| match name {
            "HOME" => Some(home.into()),
            "COMPACTD_SOCKET" => socket.map(Into::into),
            _ => None,
        })
    }

    #[test]
    fn nothing_there_is_not_running() {
        let home = tempfile::tempdir().unwrap();
        let problem = connect(&env(home.path(), None)).unwrap_err();
        assert!(matches!(&problem, SocketProblem::NotRunning { tried } if tried.len() == 1));
        assert!(problem.to_string().ends_with("compactd/api.sock"), "{problem}");
    }

    #[test]
    fn a_socket_without_listener_is_not_running() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        let problem = connect(&env(home.path(), Some(&path))).unwrap_err();
        assert!(matches!(problem, SocketProblem::NotRunning { .. }));
        let _listener = UnixListener::bind(home.path().join("t")).unwrap();
        assert!(connect(&env(home.path(), Some(&home.path().join("t")))).is_ok());
    }

    #[test]
    fn a_file_a_folder_and_a_strangers_socket_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "x").unwrap();
        for path in [&file, home.path()] {
            let problem = connect(&env(home.path(), Some(path))).unwrap_err();
            assert!(matches!(problem, SocketProblem::NotASocket { .. }), "{problem}");
        }
        let path = home.path().join("s");
        let _listener = UnixListener::bind(&path).unwrap();
        let found = fs::metadata(&path).unwrap();
        let problem = check(&path, &found, found.uid() + 1).unwrap_err();
        assert!(matches!(problem, SocketProblem::OtherUser { uid, .. } if uid == found.uid()));
        assert!(check(&path, &found, found.uid()).is_ok());
    }

    #[test]
    fn a_bad_override_is_told() {
        let home = tempfile::tempdir().unwrap();
        let problem = connect(&env(home.path(), Some(Path::new("x.sock")))).unwrap_err();
        assert!(matches!(problem, SocketProblem::BadPath(_)));
    }
}
