//! The daemon's socket: made by us, or adopted from systemd, with the link under HOME that leads to it.
//!
//! Order: private folder, lock, look at what is there, bind, chmod, listen. Nobody can connect before
//! the mode is right, because that takes `listen`. Whoever holds the lock may remove a socket that
//! refuses connections; one that accepts them is never touched.

use std::fs::{self, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use compactd_api::socket::Listen;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::error::BindError;
use super::folder::{is_same, make_private, own_uid};
use super::lock::Lock;

/// Connections that wait while all places are taken; the system may allow fewer.
const BACKLOG: i32 = 1024;

/// A socket to serve on.
#[derive(Debug)]
pub struct Bound {
    /// The listening socket, not blocking.
    pub listener: UnixListener,
    /// Holds the lock and cleans up; drop it when the last state is saved.
    pub guard: SocketGuard,
    /// Why the link under HOME does not lead here: worth a warning.
    pub link_error: Option<BindError>,
}

/// What the daemon owns while it runs: the lock, the socket and the link.
///
/// Dropping it removes the socket and the link if they still are those that it made.
#[derive(Debug)]
pub struct SocketGuard {
    path: Option<PathBuf>,
    made: Option<Identity>,
    link: Option<PathBuf>,
    _locks: Vec<Lock>,
}

impl SocketGuard {
    /// Where the daemon listens, if the socket has a path.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The link that leads there.
    #[must_use]
    pub fn link(&self) -> Option<&Path> {
        self.link.as_deref()
    }
}

impl Drop for SocketGuard {
    fn drop(&mut self) {
        let (Some(path), Some(made)) = (&self.path, &self.made) else { return };
        if let Some(link) = &self.link
            && fs::read_link(link).is_ok_and(|target| &target == path)
        {
            drop(fs::remove_file(link));
        }
        if Identity::at(path).is_some_and(|found| &found == made) {
            drop(fs::remove_file(path));
        }
    }
}

/// Which file it is. The time of birth tells a new file from an old one with the same number.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    born: Option<SystemTime>,
}

impl Identity {
    fn at(path: &Path) -> Option<Self> {
        let metadata = fs::symlink_metadata(path).ok()?;
        metadata.file_type().is_socket().then(|| Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            born: metadata.created().ok(),
        })
    }
}

/// Makes the socket.
///
/// # Errors
/// If another daemon runs, the folder is not safe, or something that is not ours is in the way. That
/// the link cannot be made is no such error: see [`Bound::link_error`].
pub fn bind(listen: &Listen) -> Result<Bound, BindError> {
    let path = &listen.path;
    let claim = Claim::new(Some(path), listen.link.as_deref())?;
    clear_stale(path)?;
    let listener =
        listen_at(path).map_err(|source| BindError::io("listen on the socket", path, source))?;
    let made = Identity::at(path);
    Ok(claim.finish(listener, Some(path.clone()), made))
}

/// Takes over a socket that systemd made: it stays when the daemon ends, and so does the link.
///
/// # Errors
/// If another daemon runs, or the socket's folder is not safe.
pub fn adopt(listener: UnixListener, link: Option<&Path>) -> Result<Bound, BindError> {
    let path = listener
        .local_addr()
        .ok()
        .and_then(|address| address.as_pathname().map(Path::to_path_buf))
        .filter(|path| path.is_absolute());
    listener.set_nonblocking(true).map_err(|source| {
        BindError::io("use the socket", path.clone().unwrap_or_default(), source)
    })?;
    let claim = Claim::new(path.as_deref(), link)?;
    Ok(claim.finish(listener, path, None))
}

/// The right to serve: locks in the socket's folder and in the link's.
struct Claim {
    locks: Vec<Lock>,
    link: Option<PathBuf>,
    link_error: Option<BindError>,
}

impl Claim {
    fn new(path: Option<&Path>, link: Option<&Path>) -> Result<Self, BindError> {
        let mut claim = Self { locks: Vec::new(), link: None, link_error: None };
        let folder = path.and_then(Path::parent);
        if let Some(folder) = folder {
            make_private(folder)?;
            claim.locks.push(Lock::take(folder)?);
        }
        let Some((link, link_folder)) = link.and_then(|link| Some((link, link.parent()?))) else {
            return Ok(claim);
        };
        match make_private(link_folder) {
            Err(error) => claim.link_error = Some(error),
            Ok(()) => {
                let same = folder.is_some_and(|folder| is_same(folder, link_folder));
                if !same {
                    claim.locks.push(Lock::take(link_folder)?);
                }
                // The runtime folder may be where the link is: then the socket itself stands there.
                if !(same && path.and_then(Path::file_name) == link.file_name()) {
                    claim.link = Some(link.to_path_buf());
                }
            }
        }
        Ok(claim)
    }

    fn finish(
        mut self,
        listener: UnixListener,
        path: Option<PathBuf>,
        made: Option<Identity>,
    ) -> Bound {
        if let (Some(link), Some(path)) = (&self.link, &path)
            && let Err(error) = point(link, path)
        {
            self.link = None;
            self.link_error = Some(error);
        }
        let guard = SocketGuard { path, made, link: self.link, _locks: self.locks };
        Bound { listener, guard, link_error: self.link_error }
    }
}

/// Removes what a daemon left that did not end well.
fn clear_stale(path: &Path) -> Result<(), BindError> {
    let Some(found) = look(path)? else { return Ok(()) };
    if !found.file_type().is_socket() {
        return Err(BindError::NotASocket { path: path.to_path_buf() });
    }
    if found.uid() != own_uid() {
        return Err(BindError::ForeignSocket { path: path.to_path_buf(), uid: found.uid() });
    }
    if is_live(path).map_err(|source| BindError::io("connect to the old socket", path, source))? {
        return Err(BindError::InUse { path: path.to_path_buf() });
    }
    match fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(BindError::io("remove the old socket", path, source))
        }
        _ => Ok(()),
    }
}

fn look(path: &Path) -> Result<Option<Metadata>, BindError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(BindError::io("look at", path, source)),
    }
}

/// Whether somebody listens. Never blocks: a full queue means yes.
fn is_live(path: &Path) -> io::Result<bool> {
    let address = SocketAddrUnix::new(path)?;
    let socket = new_socket()?;
    rustix::io::ioctl_fionbio(&socket, true)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS) => Ok(true),
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn listen_at(path: &Path) -> io::Result<UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let socket = new_socket()?;
    rustix::net::bind(&socket, &address)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    rustix::net::listen(&socket, BACKLOG)?;
    let listener = UnixListener::from(socket);
    listener.set_nonblocking(true)?;
    Ok(listener)
}

fn new_socket() -> io::Result<rustix::fd::OwnedFd> {
    #[cfg(target_os = "linux")]
    let flags = SocketFlags::CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = SocketFlags::empty();
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    #[cfg(not(target_os = "linux"))]
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    Ok(socket)
}

/// Makes `link` lead to `target`, in one step for those who look.
fn point(link: &Path, target: &Path) -> Result<(), BindError> {
    if let Some(found) = look(link)? {
        let ours = found.uid() == own_uid();
        let replaceable = ours
            && (found.is_symlink()
                || (found.file_type().is_socket() && matches!(is_live(link), Ok(false))));
        if !replaceable {
            return Err(BindError::LinkOccupied { path: link.to_path_buf() });
        }
        if fs::read_link(link).is_ok_and(|old| old == target) {
            return Ok(());
        }
    }
    let mut name = std::ffi::OsString::from(".");
    name.push(link.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    let new = link.with_file_name(name);
    // Left by a process of the same number that was killed in between.
    drop(fs::remove_file(&new));
    let done = symlink(target, &new).and_then(|()| fs::rename(&new, link));
    done.map_err(|source| {
        drop(fs::remove_file(&new));
        BindError::io("make the link", link, source)
    })
}
