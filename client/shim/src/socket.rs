//! Which socket to talk to. One path follows from HOME alone, so that everyone computes the same:
//! `~/.local/state/compactd/api.sock`, a link that the daemon keeps to where it really listens.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::environment::Environment;

/// What `sockaddr_un` holds, less its end mark.
const MAX_PATH_BYTES: usize = if cfg!(target_os = "macos") { 103 } else { 107 };

#[derive(Debug)]
pub(crate) enum Miss {
    /// No daemon listens there, and one could.
    Absent,
    /// No path to use, or what is there is not ours: leave everything alone.
    Unusable,
}

/// The state folder under HOME.
pub(crate) fn state_folder(home: &Path) -> PathBuf {
    home.join(".local/state/compactd")
}

/// Connects to the first candidate that answers.
pub(crate) fn connect(environment: &Environment) -> Result<UnixStream, Miss> {
    let candidates = candidates(environment);
    let mut miss = Miss::Unusable;
    for path in candidates.iter().flatten() {
        match connect_to(path) {
            Ok(stream) => return Ok(stream),
            Err(Miss::Absent) => miss = Miss::Absent,
            // Something foreign stands in the place: not for us to start another beside it.
            Err(Miss::Unusable) => return Err(Miss::Unusable),
        }
    }
    Err(miss)
}

/// `COMPACTD_SOCKET` alone if set; else the path under HOME, then the one in the runtime folder
/// (socket activation before the daemon's first start, when the link is not there yet).
fn candidates(environment: &Environment) -> [Option<PathBuf>; 2] {
    let candidates = match &environment.socket {
        Some(socket) => [Some(socket.clone()), None],
        None => [
            environment.home.as_deref().map(|home| state_folder(home).join("api.sock")),
            environment.runtime.as_deref().map(|runtime| runtime.join("compactd/api.sock")),
        ],
    };
    candidates.map(|path| path.filter(|path| path.as_os_str().as_bytes().len() <= MAX_PATH_BYTES))
}

fn connect_to(path: &Path) -> Result<UnixStream, Miss> {
    let absent_or = |kind| match kind {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => Miss::Absent,
        _ => Miss::Unusable,
    };
    let metadata = fs::metadata(path).map_err(|error| absent_or(error.kind()))?;
    if !metadata.file_type().is_socket() || own_uid().is_some_and(|uid| uid != metadata.uid()) {
        return Err(Miss::Unusable);
    }
    UnixStream::connect(path).map_err(|error| absent_or(error.kind()))
}

/// Our own user id, from procfs: the standard library has no call for it. Unknown elsewhere (macOS),
/// where the folder's mode has to do.
fn own_uid() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|metadata| metadata.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_come_in_order() {
        let mut environment = Environment::read();
        environment.socket = None;
        environment.home = Some("/h".into());
        environment.runtime = Some("/run/user/1".into());
        let [first, second] = candidates(&environment);
        assert_eq!(first.unwrap(), Path::new("/h/.local/state/compactd/api.sock"));
        assert_eq!(second.unwrap(), Path::new("/run/user/1/compactd/api.sock"));
        environment.home = Some(format!("/{}", "h".repeat(80)).into());
        assert_eq!(candidates(&environment)[0], None);
        environment.socket = Some("/s".into());
        assert_eq!(candidates(&environment), [Some("/s".into()), None]);
    }
}
