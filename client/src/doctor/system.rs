//! The machine: folders, disk, and how much the kernel lets us watch.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use compactd_transcript::Roots;
use compactd_transcript::walk;

use super::{Check, Scene, State};
use crate::config;
use crate::error::Error;
use crate::install::places::Places;
use crate::render::figures::number;

/// Below this, snapshots and pins are about to fail.
const DISK_FAIL_BYTES: u64 = 16 << 20;
/// Below this, a busy day could fill it.
const DISK_WARN_BYTES: u64 = 256 << 20;
/// Other programs watch too.
const INSTANCES_LEAST: u64 = 16;
/// A count of folders that no limit needs to exceed.
const FOLDERS_MAX: u64 = 1_000_000;

/// Folders, disk and limits.
pub(super) fn system(scene: &Scene<'_>, places: &Places) -> Result<Vec<Check>, Error> {
    let config = config::from_lookup(scene.lookup)?;
    let mut checks = vec![state_folder(places, scene.me), disk(places)];
    checks.extend(watching(&scene.inotify, folders(&config::roots(&config))));
    Ok(checks)
}

fn state_folder(places: &Places, me: u32) -> Check {
    let (shown, typed) = (places.shown(&places.state), places.typed(&places.state));
    let Ok(found) = fs::symlink_metadata(&places.state) else {
        return Check::ok("state", format!("{shown} is not there yet"));
    };
    let mode = found.mode() & 0o7777;
    let evidence = format!("{shown}, mode {mode:o}, uid {}", found.uid());
    if !found.is_dir() {
        let fix = format!("mv {typed} {typed}.old");
        return Check::bad("state", State::Fail, format!("{shown} is no folder"), fix);
    }
    if found.uid() != me {
        let fix = format!("sudo chown -R {me} {typed}");
        return Check::bad("state", State::Fail, evidence, fix);
    }
    match mode {
        mode if mode & 0o022 != 0 => {
            Check::bad("state", State::Fail, evidence, format!("chmod 700 {typed}"))
        }
        mode if mode & 0o055 != 0 => {
            Check::bad("state", State::Warn, evidence, format!("chmod 700 {typed}"))
        }
        _ => Check::ok("state", evidence),
    }
}

fn disk(places: &Places) -> Check {
    let mut least: Option<(u64, &Path)> = None;
    for path in [&places.state, &places.cache] {
        // A folder that is not there yet will be on the disk of what is above it.
        let there = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
        if let Ok(found) = rustix::fs::statvfs(there) {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            least = Some(least.map_or((free, path), |least| least.min((free, path))));
        }
    }
    let Some((free, path)) = least else {
        return Check::ok("disk", "the system does not tell how much is free");
    };
    let shown = places.shown(path);
    let evidence = format!("{} MiB free for {shown}", number(free >> 20));
    let fix = format!("du -sh {}", places.typed(path));
    match free {
        free if free < DISK_FAIL_BYTES => Check::bad("disk", State::Fail, evidence, fix),
        free if free < DISK_WARN_BYTES => Check::bad("disk", State::Warn, evidence, fix),
        _ => Check::ok("disk", evidence),
    }
}

/// Folders that hold transcripts, or could.
fn folders(roots: &Roots) -> u64 {
    let mut waiting: Vec<_> = roots.trees().iter().map(|tree| tree.path.clone()).collect();
    let mut seen = HashSet::new();
    let mut count = 0;
    while let Some(folder) = waiting.pop().filter(|_| count < FOLDERS_MAX) {
        count += u64::from(folder.is_dir());
        for (path, id) in walk::list(roots, &folder).dirs {
            if seen.insert(id) {
                waiting.push(path);
            }
        }
    }
    count
}

fn watching(limits: &Path, folders: u64) -> Option<Check> {
    let limit = |name: &str| fs::read_to_string(limits.join(name)).ok()?.trim().parse::<u64>().ok();
    let (watches, instances) = (limit("max_user_watches")?, limit("max_user_instances")?);
    let evidence = format!(
        "{} watches and {} instances allowed for {} folders of sessions",
        number(watches),
        number(instances),
        number(folders)
    );
    if watches < folders {
        let fix = "sudo sysctl fs.inotify.max_user_watches=524288";
        return Some(Check::bad(
            "inotify",
            State::Warn,
            format!("{evidence}: the rest is polled"),
            fix,
        ));
    }
    if instances < INSTANCES_LEAST {
        let fix = "sudo sysctl fs.inotify.max_user_instances=128";
        return Some(Check::bad("inotify", State::Warn, evidence, fix));
    }
    Some(Check::ok("inotify", evidence))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use compactd_api::dirs::{Env, Os};

    use super::*;

    #[test]
    fn limits_are_compared_with_what_there_is_to_watch() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(watching(dir.path(), 1), None);
        let check = |watches: &str, instances: &str| {
            fs::write(dir.path().join("max_user_watches"), watches).unwrap();
            fs::write(dir.path().join("max_user_instances"), instances).unwrap();
            watching(dir.path(), 100).unwrap()
        };
        assert_eq!(check("100\n", "128\n").state, State::Ok);
        let few = check("99\n", "128\n");
        assert!(few.state == State::Warn && few.evidence.contains("100 folders"), "{few:?}");
        assert!(few.fix.unwrap().contains("max_user_watches"));
        assert!(check("100", "15").fix.unwrap().contains("max_user_instances"));
    }

    #[test]
    fn folders_of_sessions_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots::new([dir.path().join("claude")], Vec::<std::path::PathBuf>::new());
        assert_eq!(folders(&roots), 0);
        fs::create_dir_all(dir.path().join("claude/projects/-a/s/subagents")).unwrap();
        fs::create_dir_all(dir.path().join("claude/projects/-b")).unwrap();
        assert!(folders(&roots) >= 3, "{}", folders(&roots));
    }

    #[test]
    fn the_state_folder_is_for_us_alone() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_path_buf();
        let lookup = |name: &str| (name == "HOME").then(|| home.clone().into_os_string());
        let places = Places::new(&Env::from_lookup(Os::Linux, lookup), &lookup).unwrap();
        let me = fs::metadata(dir.path()).unwrap().uid();
        assert_eq!(state_folder(&places, me).state, State::Ok);
        fs::create_dir_all(&places.state).unwrap();
        for (mode, state) in [(0o700, State::Ok), (0o755, State::Warn), (0o770, State::Fail)] {
            fs::set_permissions(&places.state, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(state_folder(&places, me).state, state, "{mode:o}");
        }
        assert_eq!(state_folder(&places, me + 1).state, State::Fail);
        assert_eq!(disk(&places).name, "disk");
    }
}
