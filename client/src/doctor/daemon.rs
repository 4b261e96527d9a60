//! Whether a daemon answers, and whether only we can speak to it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use compactd_api::dirs::Env;
use compactd_api::sessions::Status;
use compactd_api::socket::link_path;

use super::{Check, Hosts, Scene, State};
use crate::daemon::Daemon;
use crate::error::Error;
use crate::install::Which;
use crate::install::places::Places;
use crate::install::record::Record;
use crate::install::run::is_program;
use crate::install::service::Manager;

/// A daemon that answered.
pub(super) struct Running {
    /// Its version.
    pub(super) version: String,
    /// The command that starts its program anew.
    pub(super) restart: String,
}

/// Asks the daemon, and looks at its socket and at its service.
pub(super) fn reach(
    scene: &Scene<'_>,
    places: &Places,
    hosts: &Hosts,
) -> (Vec<Check>, Option<Running>) {
    let path = (scene.lookup)("PATH");
    let manager = Manager::find(&places.home, path.as_deref()).ok();
    let is_service = manager.is_some_and(|manager| manager.is_enabled());
    let asked = Daemon::find(scene.env).and_then(|daemon| {
        let status = daemon.status()?.value;
        Ok((daemon, status))
    });
    let mut checks = Vec::new();
    let running = match asked {
        Ok((daemon, status)) => {
            let restart = restart(is_service, status.pid);
            checks.push(answered(&status, &restart));
            checks.push(socket(daemon.socket(), scene.me, places));
            checks.push(link(scene.env, daemon.socket(), places, &restart));
            let record = Record::load(&places.record()).ok().flatten();
            let record = record.as_ref();
            if hosts.claude.is_some() {
                let root = Root {
                    host: Which::Claude,
                    folder: &places.claude.path,
                    tree: "projects",
                    is_recorded: record.is_some_and(|all| all.host(&places.claude).is_some()),
                };
                checks.extend(roots(&status, &root, places, &restart));
            }
            if hosts.codex.is_some() {
                let root = Root {
                    host: Which::Codex,
                    folder: &places.codex.path,
                    tree: "sessions",
                    is_recorded: record.is_some_and(|all| all.codex(&places.codex).is_some()),
                };
                checks.extend(roots(&status, &root, places, &restart));
            }
            Some(Running { version: status.version, restart })
        }
        Err(error) => {
            checks.push(silent(&error, is_service, places));
            None
        }
    };
    if is_service {
        checks.push(linger(scene));
    }
    (checks, running)
}

fn restart(is_service: bool, pid: u32) -> String {
    if is_service {
        "systemctl --user restart compactd.service".to_owned()
    } else {
        // The next hook starts another.
        format!("kill {pid}")
    }
}

fn answered(status: &Status, restart: &str) -> Check {
    let evidence = format!(
        "version {}, process {}, {} sessions known",
        status.version, status.pid, status.sessions.known
    );
    if status.healthy && status.problems.is_empty() {
        return Check::ok("daemon", evidence);
    }
    let evidence = format!("{evidence}; {}", status.problems.join("; "));
    Check::bad("daemon", State::Warn, evidence, restart)
}

fn silent(error: &Error, is_service: bool, places: &Places) -> Check {
    let evidence = error.to_string();
    if is_service {
        let fix = "systemctl --user restart compactd.socket compactd.service";
        return Check::bad("daemon", State::Fail, evidence, fix);
    }
    let program = places.bin().join("compactd");
    if !is_program(&program) {
        return Check::bad("daemon", State::Fail, evidence, "compactctl install");
    }
    if error.is_not_running() {
        let evidence = "none is running; the next hook starts one";
        let fix = format!("{} &", places.typed(&program));
        return Check { fix: Some(fix), ..Check::ok("daemon", evidence) };
    }
    Check::bad("daemon", State::Fail, evidence, "compactctl status")
}

fn socket(path: &Path, me: u32, places: &Places) -> Check {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let shown = places.shown(&real);
    let Ok(found) = fs::metadata(&real) else {
        let evidence = format!("{shown} has gone while it was looked at");
        return Check::bad("socket", State::Warn, evidence, "compactctl doctor");
    };
    let (mode, owner) = (found.mode() & 0o7777, found.uid());
    let folder = real.parent().unwrap_or(Path::new("/"));
    let folder_mode = fs::metadata(folder).map_or(0, |found| found.mode() & 0o7777);
    let evidence =
        format!("{shown}, mode {mode:o}, uid {owner}, its folder's mode {folder_mode:o}");
    if owner != me {
        return Check::bad("socket", State::Fail, evidence, "unset COMPACTD_SOCKET");
    }
    if folder_mode & 0o022 != 0 {
        let fix = format!("chmod 700 {}", places.typed(folder));
        return Check::bad("socket", State::Fail, evidence, fix);
    }
    if mode & 0o077 != 0 {
        let fix = format!("chmod 600 {}", places.typed(&real));
        return Check::bad("socket", State::Warn, evidence, fix);
    }
    Check::ok("socket", evidence)
}

/// Whether the mod finds this daemon: it knows `COMPACTD_SOCKET` of its own process and one link.
fn link(env: &Env, answered: &Path, places: &Places, restart: &str) -> Check {
    const NAME: &str = "link";
    let Some(link) = link_path(env) else {
        return Check::bad(NAME, State::Fail, "there is no home to look for it in", "set HOME");
    };
    let shown = places.shown(&link);
    let id = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let (leads, answered_id) = (id(&link), id(answered));
    if leads.is_some() && leads == answered_id {
        return Check::ok(NAME, format!("{shown} leads to it"));
    }
    let word = if leads.is_some() { "leads to another socket" } else { "leads nowhere" };
    let evidence = format!("{shown} {word}: the mod does not find {}", places.shown(answered));
    if env.socket.is_some() {
        let evidence = format!("{evidence} unless COMPACTD_SOCKET is set for Claude Code too");
        return Check::bad(NAME, State::Warn, evidence, "unset COMPACTD_SOCKET");
    }
    Check::bad(NAME, State::Fail, evidence, restart)
}

/// Where a host writes its transcripts.
struct Root<'a> {
    host: Which,
    folder: &'a Path,
    tree: &'static str,
    is_recorded: bool,
}

/// Whether the daemon follows the folder in which a host writes its transcripts.
fn roots(status: &Status, root: &Root<'_>, places: &Places, restart: &str) -> Option<Check> {
    // An older daemon does not tell.
    if status.roots.is_empty() {
        return None;
    }
    let Root { host, folder, tree, is_recorded } = root;
    let name = match host {
        Which::Claude => "roots",
        Which::Codex => "codex-roots",
    };
    let projects = folder.join(tree);
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let is_followed = status.roots.iter().map(Path::new).any(|root| {
        root == projects || real(root) == real(&projects) || real(root) == real(folder).join(tree)
    });
    let shown = places.shown(&projects);
    if is_followed {
        return Some(Check::ok(name, format!("the daemon follows {shown}")));
    }
    let evidence =
        format!("the daemon does not follow {shown}: {} compacts there by itself", host.name());
    Some(if *is_recorded {
        // It reads the record when it starts.
        Check::bad(name, State::Fail, evidence, restart)
    } else {
        let evidence = format!(
            "{evidence}; name it in the configuration: [roots] {} = [\"{}\"]",
            host.program(),
            folder.display()
        );
        let file = places.typed(&places.config);
        Check::bad(name, State::Fail, evidence, format!("${{EDITOR:-vi}} {file}"))
    })
}

fn linger(scene: &Scene<'_>) -> Check {
    let user = (scene.lookup)("USER").unwrap_or_default();
    let lingers = !user.is_empty() && Path::new("/var/lib/systemd/linger").join(&user).exists();
    if lingers {
        return Check::ok("service", "enabled, and goes on after logout");
    }
    // Nothing is broken: the socket is there again with the next login.
    let fix = Some("loginctl enable-linger".to_owned());
    Check { fix, ..Check::ok("service", "enabled, ends at logout") }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixListener;

    use compactd_api::dirs::Os;

    use super::*;

    #[test]
    fn a_socket_that_others_can_reach_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_path_buf();
        let lookup = |name: &str| (name == "HOME").then(|| home.clone().into_os_string());
        let env = Env::from_lookup(Os::Linux, lookup);
        let places = Places::new(&env, &lookup).unwrap();
        let path = dir.path().join("s");
        let _listener = UnixListener::bind(&path).unwrap();
        let me = fs::metadata(&path).unwrap().uid();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        set(&path, 0o600);
        assert_eq!(socket(&path, me, &places).state, State::Ok);
        assert_eq!(socket(&path, me + 1, &places).state, State::Fail);
        set(&path, 0o666);
        let check = socket(&path, me, &places);
        assert_eq!((check.state, check.fix.as_deref()), (State::Warn, Some("chmod 600 ~/s")));
        set(dir.path(), 0o777);
        let check = socket(&path, me, &places);
        assert_eq!((check.state, check.fix.as_deref()), (State::Fail, Some("chmod 700 ~")));
        set(dir.path(), 0o700);
    }

    #[test]
    fn a_link_that_leads_elsewhere_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_path_buf();
        let path = dir.path().join("s");
        let _listener = UnixListener::bind(&path).unwrap();
        let check = |socket: Option<&Path>| {
            let lookup = |name: &str| match name {
                "HOME" => Some(home.clone().into_os_string()),
                "COMPACTD_SOCKET" => socket.map(|path| path.as_os_str().to_owned()),
                _ => None,
            };
            let env = Env::from_lookup(Os::Linux, lookup);
            let places = Places::new(&env, &lookup).unwrap();
            let check = link(&env, &path, &places, "kill 7");
            (check.state, check.fix.unwrap_or_default())
        };
        assert_eq!(check(None), (State::Fail, "kill 7".to_owned()));
        assert_eq!(check(Some(&path)), (State::Warn, "unset COMPACTD_SOCKET".to_owned()));
        let link = dir.path().join(".local/state/compactd/api.sock");
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        let other = dir.path().join("other");
        let _other = UnixListener::bind(&other).unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        assert_eq!(check(None), (State::Fail, "kill 7".to_owned()));
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(check(None), (State::Ok, String::new()));
    }
}
