//! The socket's place: what we make, what we refuse, what we leave alone.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use compactd_api::socket::Listen;

use super::error::FolderProblem;
use super::{BindError, adopt, bind};

fn scratch() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::set_permissions(root.path(), Permissions::from_mode(0o700)).unwrap();
    root
}

fn listen(path: impl Into<PathBuf>, link: Option<PathBuf>) -> Listen {
    Listen { path: path.into(), link, link_error: None }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn make_folder(path: &Path, mode: u32) {
    fs::create_dir(path).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// What a daemon leaves that was killed. Closing alone would not do: while another test starts a
/// process, that has a copy of the socket for a moment.
fn end(listener: UnixListener) {
    rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).unwrap();
    drop(listener);
}

#[test]
fn makes_everything_private_and_takes_it_away() {
    let root = scratch();
    let path = root.path().join("run/compactd/api.sock");
    let link = root.path().join("state/compactd/api.sock");
    let bound = bind(&listen(&path, Some(link.clone()))).unwrap();
    assert!(bound.link_error.is_none());
    assert_eq!((bound.guard.path(), bound.guard.link()), (Some(&*path), Some(&*link)));
    assert_eq!(mode(&path), 0o600);
    for folder in ["run", "run/compactd", "state", "state/compactd"] {
        assert_eq!(mode(&root.path().join(folder)), 0o700, "{folder}");
    }
    let lock = path.with_file_name("compactd.lock");
    assert_eq!(mode(&lock), 0o600);
    assert_eq!(fs::read_to_string(&lock).unwrap(), format!("{}\n", std::process::id()));
    UnixStream::connect(&path).unwrap();
    UnixStream::connect(&link).unwrap();
    assert_eq!(fs::read_link(&link).unwrap(), path);
    let left: Vec<_> = fs::read_dir(link.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 2, "link and lock only: {left:?}");
    drop(bound);
    assert!(fs::symlink_metadata(&path).is_err() && fs::symlink_metadata(&link).is_err());
    drop(bind(&listen(&path, Some(link))).unwrap());
}

/// In a process of its own: the umask would change what the other tests make.
#[test]
fn no_mode_comes_from_the_umask() {
    let output = std::process::Command::new("sh")
        .args(["-c", "umask 000; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["tests_bind::makes_everything_private", "--nocapture"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn second_daemon_is_refused_with_pid() {
    let root = scratch();
    let path = root.path().join("a/api.sock");
    let link = root.path().join("home/api.sock");
    let first = bind(&listen(&path, Some(link.clone()))).unwrap();
    let pid = std::process::id();
    // At the same place, and at another one for the same HOME.
    for other in [path, root.path().join("b/api.sock")] {
        let error = bind(&listen(&other, Some(link.clone()))).unwrap_err();
        assert!(matches!(error, BindError::AlreadyRunning { pid: Some(p), .. } if p == pid));
        assert_eq!(error.to_string(), format!("another compactd is running (pid {pid})"));
        assert!(error.hint().is_some());
    }
    UnixStream::connect(&link).unwrap();
    assert!(!root.path().join("b/api.sock").exists());
    drop(first);
    bind(&listen(root.path().join("b/api.sock"), Some(link))).unwrap();
}

#[test]
fn stale_socket_is_replaced_and_live_one_is_not() {
    let root = scratch();
    let path = root.path().join("api.sock");
    let other = UnixListener::bind(&path).unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    let error = bind(&listen(&path, None)).unwrap_err();
    assert!(matches!(error, BindError::InUse { .. }), "{error}");
    assert_eq!(fs::metadata(&path).unwrap().ino(), before);
    assert!(other.accept().is_ok(), "only the probe came");
    UnixStream::connect(&path).unwrap();
    end(other);
    let bound = bind(&listen(&path, None)).unwrap();
    UnixStream::connect(&path).unwrap();
    bound.listener.accept().unwrap();
}

#[test]
fn a_full_queue_is_alive() {
    let root = scratch();
    let path = root.path().join("api.sock");
    let other = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&other, 0).unwrap();
    let _waits = UnixStream::connect(&path).unwrap();
    assert!(matches!(bind(&listen(&path, None)), Err(BindError::InUse { .. })));
}

#[test]
fn unsafe_folders_are_refused() {
    let root = scratch();
    let check = |name: &str, expected: FolderProblem, text: &str| {
        let error = bind(&listen(root.path().join(name).join("api.sock"), None)).unwrap_err();
        assert!(
            matches!(error, BindError::UnsafeFolder { problem, .. } if problem == expected),
            "{name}: {error}"
        );
        let folder = root.path().join(name);
        assert_eq!(
            error.to_string(),
            format!("will not use the folder {}: {text}", folder.display())
        );
        assert!(error.hint().is_some());
        assert!(!folder.join("compactd.lock").exists() && !folder.join("api.sock").exists());
    };
    make_folder(&root.path().join("all"), 0o777);
    check("all", FolderProblem::Writable(0o777), "others may write to it (mode 0777)");
    make_folder(&root.path().join("group"), 0o770);
    check("group", FolderProblem::Writable(0o770), "others may write to it (mode 0770)");
    make_folder(&root.path().join("good"), 0o700);
    symlink(root.path().join("good"), root.path().join("link")).unwrap();
    check("link", FolderProblem::Link, "it is a symbolic link");
    fs::write(root.path().join("file"), "").unwrap();
    // Looking below a file fails earlier for the lock, but this is what people see.
    let error = bind(&listen(root.path().join("file/api.sock"), None)).unwrap_err();
    assert!(matches!(error, BindError::UnsafeFolder { problem: FolderProblem::NotAFolder, .. }));
    if rustix::process::geteuid().is_root() {
        make_folder(&root.path().join("foreign"), 0o700);
        std::os::unix::fs::chown(root.path().join("foreign"), Some(12345), None).unwrap();
        check("foreign", FolderProblem::Foreign(12345), "it belongs to another user (uid 12345)");
    }
}

#[test]
fn strange_things_in_the_way_stay() {
    let root = scratch();
    let path = root.path().join("api.sock");
    fs::write(&path, "precious").unwrap();
    assert!(matches!(bind(&listen(&path, None)), Err(BindError::NotASocket { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    fs::remove_file(&path).unwrap();
    symlink("nowhere", &path).unwrap();
    assert!(matches!(bind(&listen(&path, None)), Err(BindError::NotASocket { .. })));
    fs::remove_file(&path).unwrap();
    if rustix::process::geteuid().is_root() {
        end(UnixListener::bind(&path).unwrap());
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        assert!(matches!(
            bind(&listen(&path, None)),
            Err(BindError::ForeignSocket { uid: 12345, .. })
        ));
        assert!(path.exists());
    }
}

#[test]
fn link_is_replaced_only_if_it_is_ours() {
    let root = scratch();
    let path = root.path().join("run/api.sock");
    let link = root.path().join("api.sock");
    let bind = || bind(&listen(&path, Some(link.clone()))).unwrap();
    let leads_here = || fs::read_link(&link).is_ok_and(|target| target == path);

    symlink("/old/place", &link).unwrap();
    drop(bind());
    assert!(fs::symlink_metadata(&link).is_err());

    end(UnixListener::bind(&link).unwrap());
    let bound = bind();
    assert!(bound.link_error.is_none() && leads_here());
    // A later daemon's link is not ours to remove.
    fs::remove_file(&link).unwrap();
    symlink("/new/place", &link).unwrap();
    drop(bound);
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("/new/place"));
    fs::remove_file(&link).unwrap();

    let live = UnixListener::bind(&link).unwrap();
    assert!(matches!(bind().link_error, Some(BindError::LinkOccupied { .. })));
    end(live);
    fs::remove_file(&link).unwrap();

    fs::write(&link, "precious").unwrap();
    let bound = bind();
    assert!(matches!(bound.link_error, Some(BindError::LinkOccupied { .. })));
    assert_eq!(bound.guard.link(), None);
    UnixStream::connect(&path).unwrap();
    drop(bound);
    assert_eq!(fs::read_to_string(&link).unwrap(), "precious");
    fs::remove_file(&link).unwrap();

    fs::set_permissions(root.path(), Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(bind().link_error, Some(BindError::UnsafeFolder { .. })));
}

#[test]
fn link_and_socket_may_be_the_same_place() {
    let root = scratch();
    let path = root.path().join("x/api.sock");
    let bound = bind(&listen(&path, Some(path.clone()))).unwrap();
    assert!(bound.link_error.is_none() && bound.guard.link().is_none());
    UnixStream::connect(&path).unwrap();
    drop(bound);
    // The same folder, another name.
    let bound = bind(&listen(&path, Some(root.path().join("x/link.sock")))).unwrap();
    assert!(bound.link_error.is_none());
    UnixStream::connect(root.path().join("x/link.sock")).unwrap();
}

#[test]
fn guard_removes_only_its_own_socket() {
    let root = scratch();
    let path = root.path().join("api.sock");
    let bound = bind(&listen(&path, None)).unwrap();
    fs::remove_file(&path).unwrap();
    let other = UnixListener::bind(&path).unwrap();
    drop(bound);
    assert!(path.exists());
    end(other);
    let bound = bind(&listen(&path, None)).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "x").unwrap();
    drop(bound);
    assert!(path.exists());
}

#[test]
fn adopted_socket_stays() {
    let root = scratch();
    let path = root.path().join("api.sock");
    let link = root.path().join("home/api.sock");
    let systemd = UnixListener::bind(&path).unwrap();
    let bound = adopt(systemd.try_clone().unwrap(), Some(&link)).unwrap();
    assert_eq!(fs::read_link(&link).unwrap(), path);
    assert!(matches!(
        adopt(systemd.try_clone().unwrap(), Some(&link)),
        Err(BindError::AlreadyRunning { .. })
    ));
    drop(bound);
    assert!(path.exists());
    UnixStream::connect(&link).unwrap();
    adopt(systemd, Some(&link)).unwrap();
}

#[test]
fn lock_file_may_be_removed_under_us() {
    let root = scratch();
    let path = root.path().join("api.sock");
    let first = bind(&listen(&path, None)).unwrap();
    fs::remove_file(root.path().join("compactd.lock")).unwrap();
    // The lock is gone, but the socket lives.
    assert!(matches!(bind(&listen(&path, None)), Err(BindError::InUse { .. })));
    drop(first);
    bind(&listen(&path, None)).unwrap();
}
