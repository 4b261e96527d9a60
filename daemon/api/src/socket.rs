//! Where the socket is.
//!
//! Callers and daemon agree on one path that `HOME` alone gives, because the Claude Code mod knows
//! nothing else: `~/.local/state/compactd/api.sock`, a link to where the daemon really listens.
//! `COMPACTD_SOCKET` replaces everything, the link included.

use std::path::{Path, PathBuf};

use crate::dirs::{Env, Os};

/// Path of the link below `HOME`, whatever `XDG_STATE_HOME` says.
pub const LINK_BELOW_HOME: &str = ".local/state/compactd/api.sock";
/// Private folder beside the link, for systems without a runtime folder.
const RUN_BELOW_HOME: &str = ".local/state/compactd/run/api.sock";
/// Path below `XDG_RUNTIME_DIR`, the same as in the systemd unit.
pub const BELOW_RUNTIME_DIR: &str = "compactd/api.sock";

/// Why a path cannot be the socket's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SocketError {
    /// The system would not take it.
    #[error("socket path {} is {bytes} bytes long, at most {max} are possible here", path.display())]
    TooLong {
        /// The path.
        path: PathBuf,
        /// Its length.
        bytes: usize,
        /// The longest possible.
        max: usize,
    },
    /// `COMPACTD_SOCKET` depends on the working directory.
    #[error("COMPACTD_SOCKET is not an absolute path: {}", path.display())]
    Relative {
        /// The path.
        path: PathBuf,
    },
    /// No variable gives a path.
    #[error(
        "no place for the socket: none of COMPACTD_SOCKET, XDG_RUNTIME_DIR and HOME is an absolute path"
    )]
    Nowhere,
}

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// The socket.
    pub path: PathBuf,
    /// The link to keep pointing at it.
    pub link: Option<PathBuf>,
    /// Why there is no link although `HOME` is set: callers that know only `HOME` will not find us.
    pub link_error: Option<SocketError>,
}

/// The longest path that fits `sun_path` with its final zero byte.
#[must_use]
pub const fn path_max(os: Os) -> usize {
    match os {
        Os::Linux => 107,
        Os::MacOs => 103,
    }
}

/// Checks that a socket can have this path.
///
/// # Errors
/// [`SocketError::Relative`] or [`SocketError::TooLong`].
pub fn check_path(os: Os, path: &Path) -> Result<(), SocketError> {
    if !path.is_absolute() {
        return Err(SocketError::Relative { path: path.to_path_buf() });
    }
    let bytes = path.as_os_str().as_encoded_bytes().len();
    let max = path_max(os);
    if bytes > max {
        return Err(SocketError::TooLong { path: path.to_path_buf(), bytes, max });
    }
    Ok(())
}

/// The paths to try, in order. A hit is a socket that exists and is ours; the caller checks that.
///
/// Paths that cannot work are left out; [`override_error`] says so for `COMPACTD_SOCKET`.
#[must_use]
pub fn client_candidates(env: &Env) -> Vec<PathBuf> {
    let all = match &env.socket {
        Some(path) => vec![path.clone()],
        None => [link_path(env), runtime_path(env)].into_iter().flatten().collect(),
    };
    all.into_iter().filter(|path| check_path(env.os, path).is_ok()).collect()
}

/// Why `COMPACTD_SOCKET` leads nowhere, if it does.
#[must_use]
pub fn override_error(env: &Env) -> Option<SocketError> {
    check_path(env.os, env.socket.as_ref()?).err()
}

/// The link that callers try first.
#[must_use]
pub fn link_path(env: &Env) -> Option<PathBuf> {
    Some(env.home.as_ref()?.join(LINK_BELOW_HOME))
}

fn runtime_path(env: &Env) -> Option<PathBuf> {
    Some(env.runtime.as_ref()?.join(BELOW_RUNTIME_DIR))
}

/// Where a daemon listens that got no socket from systemd.
///
/// # Errors
/// If there is no place, or the place's path is too long or relative.
pub fn listen_path(env: &Env) -> Result<Listen, SocketError> {
    if let Some(path) = &env.socket {
        check_path(env.os, path)?;
        return Ok(Listen { path: path.clone(), link: None, link_error: None });
    }
    let path = runtime_path(env)
        .or_else(|| Some(env.home.as_ref()?.join(RUN_BELOW_HOME)))
        .ok_or(SocketError::Nowhere)?;
    check_path(env.os, &path)?;
    let (link, link_error) = match link_path(env) {
        None => (None, None),
        Some(link) => match check_path(env.os, &link) {
            Ok(()) => (Some(link), None),
            Err(error) => (None, Some(error)),
        },
    };
    Ok(Listen { path, link, link_error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(home: &str, runtime: &str, socket: &str) -> Env {
        Env::from_lookup(Os::Linux, |name| {
            Some(match name {
                "HOME" => home.into(),
                "XDG_RUNTIME_DIR" => runtime.into(),
                "COMPACTD_SOCKET" => socket.into(),
                "XDG_STATE_HOME" => "/elsewhere".into(),
                _ => return None,
            })
        })
    }

    fn listen(path: &str, link: Option<&str>) -> Listen {
        Listen { path: path.into(), link: link.map(PathBuf::from), link_error: None }
    }

    const LINK: &str = "/h/.local/state/compactd/api.sock";

    #[test]
    fn order_of_callers() {
        let runtime = "/run/user/1000/compactd/api.sock";
        assert_eq!(
            client_candidates(&env("/h", "/run/user/1000", "")),
            [PathBuf::from(LINK), PathBuf::from(runtime)]
        );
        assert_eq!(client_candidates(&env("/h", "", "")), [PathBuf::from(LINK)]);
        assert_eq!(client_candidates(&env("/h", "run", "")), [PathBuf::from(LINK)]);
        assert_eq!(client_candidates(&env("", "/run/user/1000", "")), [PathBuf::from(runtime)]);
        assert_eq!(client_candidates(&env("/h", "/r", "/x.sock")), [PathBuf::from("/x.sock")]);
        assert!(client_candidates(&env("", "", "")).is_empty());
    }

    #[test]
    fn a_bad_override_leads_nowhere_else() {
        let relative = env("/h", "/r", "x.sock");
        assert!(client_candidates(&relative).is_empty());
        assert_eq!(
            override_error(&relative),
            Some(SocketError::Relative { path: "x.sock".into() })
        );
        assert_eq!(listen_path(&relative).unwrap_err(), override_error(&relative).unwrap());
        assert_eq!(override_error(&env("/h", "/r", "")), None);
        assert_eq!(override_error(&env("/h", "/r", "/x")), None);
    }

    #[test]
    fn place_of_the_daemon() {
        assert_eq!(listen_path(&env("/h", "/r", "/x")).unwrap(), listen("/x", None));
        assert_eq!(
            listen_path(&env("/h", "/r", "")).unwrap(),
            listen("/r/compactd/api.sock", Some(LINK))
        );
        assert_eq!(
            listen_path(&env("/h", "", "")).unwrap(),
            listen("/h/.local/state/compactd/run/api.sock", Some(LINK))
        );
        assert_eq!(listen_path(&env("", "/r", "")).unwrap(), listen("/r/compactd/api.sock", None));
        assert_eq!(listen_path(&env("", "", "")).unwrap_err(), SocketError::Nowhere);
    }

    #[test]
    fn length() {
        let long = format!("/{}", "x".repeat(107));
        let error = listen_path(&env("/h", "/r", &long)).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("socket path {long} is 108 bytes long, at most 107 are possible here")
        );
        assert!(listen_path(&env("/h", "/r", &long[..107])).is_ok());
        assert!(check_path(Os::MacOs, Path::new(&long[..103])).is_ok());
        assert!(check_path(Os::MacOs, Path::new(&long[..104])).is_err());
        // A home too long for the link: the socket still works for those who know the runtime folder.
        let listen = listen_path(&env(&long, "/r", "")).unwrap();
        assert_eq!(listen.link, None);
        assert!(matches!(listen.link_error, Some(SocketError::TooLong { .. })));
        assert_eq!(
            client_candidates(&env(&long, "/r", "")),
            [PathBuf::from("/r/compactd/api.sock")]
        );
        assert!(listen_path(&env(&long, "", "")).is_err());
    }
}
