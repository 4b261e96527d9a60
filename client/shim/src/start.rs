//! Starts a daemon when none listens: at most one, at most once in 30 s, and never waits for it.
//! This hook run has no answer; the next one will.
//!
//! Without `unsafe` there is no `setsid` here. A process group of its own is enough: neither a
//! signal to the hook's group nor a Ctrl-C reaches the daemon, its three streams are `/dev/null`,
//! and the daemon may still leave the session by itself. Where a service manager runs it (socket
//! activation), connecting succeeds and none of this is reached.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::environment::{self, Environment};
use crate::socket;

/// A daemon that dies at once is not started again before this has passed.
const LOCK_LASTS: Duration = Duration::from_secs(30);

/// Tries to start the daemon, detached. The result is a word for the report.
pub(crate) fn start(environment: &Environment) -> &'static str {
    if !environment.may_start {
        return "no daemon";
    }
    let Some(home) = environment.home.as_deref() else { return "no daemon, no home" };
    let Some(program) = find_daemon(environment, home) else { return "no daemon, no program" };
    let folder = socket::state_folder(home);
    let Some(owner) = usable_folder(&folder) else { return "no daemon, no state folder" };
    if !take_lock(&folder.join("start.lock"), owner) {
        return "no daemon, start locked";
    }
    let mut command = Command::new(program);
    command
        .env("COMPACTD_STARTED_BY", "hook")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    for (name, _) in std::env::vars_os() {
        if environment::is_per_session(name.as_bytes()) {
            command.env_remove(name);
        }
    }
    match command.spawn() {
        Ok(_) => "daemon started",
        Err(_) => "no daemon, start failed",
    }
}

/// `COMPACTD_BIN`, else beside the shim, else where the installer puts it, else in PATH.
fn find_daemon(environment: &Environment, home: &Path) -> Option<PathBuf> {
    if let Some(program) = &environment.daemon {
        return Some(program.clone()).filter(|program| is_program(program));
    }
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("compactd"));
    let installed = home.join(".local/share/compactd/bin/compactd");
    beside
        .into_iter()
        .chain([installed])
        .chain(
            std::env::split_paths(environment.path.as_deref().unwrap_or_default())
                .filter(|folder| folder.is_absolute())
                .map(|folder| folder.join("compactd")),
        )
        .find(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o111 != 0)
}

/// The owner of the state folder, made if missing. A link, or a folder that others can write to,
/// is not used.
fn usable_folder(folder: &Path) -> Option<u32> {
    // An error shows in the next step: recursive creation succeeds for a folder that is there.
    DirBuilder::new().recursive(true).mode(0o700).create(folder).ok();
    let metadata = fs::symlink_metadata(folder).ok()?;
    (metadata.is_dir() && metadata.mode() & 0o022 == 0).then(|| metadata.uid())
}

/// True for the one that creates the lock. It is never released: its age ends it.
fn take_lock(lock: &Path, folder_owner: u32) -> bool {
    if create_lock(lock, folder_owner) {
        return true;
    }
    let Ok(metadata) = fs::symlink_metadata(lock) else { return false };
    if !is_old(&metadata) {
        return false;
    }
    // Two may see the same old lock. Each moves away what it finds; whoever moved a new one has
    // come second and puts it back. In the instant between, a third may start a second daemon,
    // which then finds the first one's own lock and ends.
    let aside = lock.with_extension(format!("old-{}", std::process::id()));
    if fs::rename(lock, &aside).is_err() {
        return false;
    }
    let was_old = fs::symlink_metadata(&aside).is_ok_and(|metadata| is_old(&metadata));
    if !was_old {
        fs::hard_link(&aside, lock).ok();
    }
    fs::remove_file(&aside).ok();
    was_old && create_lock(lock, folder_owner)
}

/// Creates the lock with our process id and the time in it. In somebody else's folder (`sudo`
/// with the user's HOME) it is taken back.
fn create_lock(lock: &Path, folder_owner: u32) -> bool {
    let Ok(mut file) = OpenOptions::new().write(true).create_new(true).mode(0o600).open(lock)
    else {
        return false;
    };
    if !is_owned_by(&file, folder_owner) {
        fs::remove_file(lock).ok();
        return false;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    file.write_all(format!("{} {now}\n", std::process::id()).as_bytes()).is_ok()
}

fn is_owned_by(file: &File, owner: u32) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.uid() == owner)
}

/// Older than the lock lasts; a time that far ahead (the clock was put back) counts as old too.
fn is_old(metadata: &fs::Metadata) -> bool {
    metadata.modified().is_ok_and(|modified| {
        let age = match SystemTime::now().duration_since(modified) {
            Ok(age) => age,
            Err(ahead) => ahead.duration(),
        };
        age > LOCK_LASTS
    })
}
