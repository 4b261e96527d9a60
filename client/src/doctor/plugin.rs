//! The plugin in Claude Code: the same version everywhere, enabled, its hooks whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::daemon::Running;
use super::{Check, Scene, State, codex};
use crate::install::host_claude::{Claude, Known};
use crate::install::hosts::quoted;
use crate::install::places::Places;
use crate::install::plugin::{FILES, ID, NAME, events};
use crate::install::record::Record;
use crate::install::run;

/// The version of the host that this plugin was tried with.
const TESTED: [u64; 3] = [2, 1, 332];
/// The first version that loads mods without a flag.
const MODS: [u64; 3] = [2, 1, 287];
/// What `--version` may take.
const ASK: Duration = Duration::from_secs(20);
const INSTALL: &str = "compactctl install";

fn json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// The folder that the host reads the plugin from.
fn folder(places: &Places) -> Option<PathBuf> {
    let known = Known::read(&places.claude);
    if known.is_ours(&places.marketplace()) {
        return Some(places.marketplace().join(NAME));
    }
    // A marketplace that somebody added by hand, for instance a checkout.
    let root = PathBuf::from(known.marketplace?);
    let manifest = json(&root.join(".claude-plugin/marketplace.json"))?;
    let plugins = manifest.get("plugins")?.as_array()?;
    let entry =
        plugins.iter().find(|plugin| plugin.get("name").is_some_and(|name| name == NAME))?;
    Some(root.join(entry.get("source")?.as_str()?))
}

fn plugin_version(places: &Places) -> Option<String> {
    let manifest = json(&folder(places)?.join(".claude-plugin/plugin.json"))?;
    Some(manifest.get("version")?.as_str()?.to_owned())
}

/// What a program says to `--version`, without its name.
fn program_version(program: &Path) -> Option<String> {
    let ran = run::run(Command::new(program).arg("--version"), ASK).ok()?;
    Some(ran.out.split_whitespace().nth(1)?.to_owned())
}

/// Compares the versions of everything that has to fit together.
pub(super) fn versions(places: &Places, daemon: Option<&Running>) -> Check {
    let ours = env!("CARGO_PKG_VERSION");
    let installed = |name: &str| {
        let path = places.bin().join(name);
        run::is_program(&path).then(|| program_version(&path)).flatten()
    };
    let all = [
        ("client", Some(ours.to_owned())),
        ("installed client", installed("compactctl")),
        ("shim", installed("compactd-hook")),
        ("daemon", daemon.map(|daemon| daemon.version.clone())),
        ("plugin", plugin_version(places)),
        ("plugin as the host knows it", Known::read(&places.claude).version),
        ("plugin in Codex", codex::version(places)),
    ];
    compare(&all, ours, daemon.map(|daemon| daemon.restart.as_str()))
}

fn compare(all: &[(&str, Option<String>)], ours: &str, restart: Option<&str>) -> Check {
    let known: Vec<(&str, &str)> =
        all.iter().filter_map(|(name, version)| Some((*name, version.as_deref()?))).collect();
    if known.iter().all(|(_, version)| *version == ours) {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        return Check::ok("versions", format!("{ours}: {}", names.join(", ")));
    }
    let told: Vec<String> =
        known.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let mut others = known.iter().filter(|(name, _)| *name != "daemon");
    // Everything on disk is new: only what still runs is not.
    let is_new = others.all(|(_, version)| *version == ours);
    let fix = restart.filter(|_| is_new).unwrap_or(INSTALL);
    Check::bad("versions", State::Warn, told.join(", "), fix)
}

/// Whether the host has the plugin, and whether its hooks lead to a program.
pub(super) fn plugin(places: &Places, is_wanted: bool) -> Vec<Check> {
    let known = Known::read(&places.claude);
    let mut checks = vec![presence(&known, is_wanted, places)];
    if let Some(folder) = folder(places) {
        checks.push(hooks(&folder, places));
    }
    checks
}

/// Looks at the folder that the plugin was installed into, where `CLAUDE_CONFIG_DIR` named it then and
/// names nothing now.
pub(super) fn elsewhere(places: &mut Places) -> Option<Check> {
    if places.claude.is_named || Known::read(&places.claude).version.is_some() {
        return None;
    }
    let record = Record::load(&places.record()).ok()??;
    let mut folders = record.hosts.iter().map(|host| host.folder(&places.home));
    let folder = folders.find(|folder| folder.is_named && Known::read(folder).version.is_some())?;
    let (usual, there) = (places.shown(&places.claude.path), places.shown(&folder.path));
    let evidence = format!(
        "CLAUDE_CONFIG_DIR is not set: Claude Code has the plugin in {there} only, not in {usual}"
    );
    let fix = format!("export CLAUDE_CONFIG_DIR={}", quoted(&folder.path.display().to_string()));
    places.claude = folder;
    Some(Check::bad("folder", State::Warn, evidence, fix))
}

fn presence(known: &Known, is_wanted: bool, places: &Places) -> Check {
    let settings = places.shown(&places.claude.settings());
    match (&known.version, known.enabled, &known.marketplace) {
        (None, ..) => Check::bad(
            "plugin",
            if is_wanted { State::Fail } else { State::Warn },
            format!("Claude Code has no plugin {ID} ({settings})"),
            INSTALL,
        ),
        (Some(_), Some(true), Some(from)) => {
            Check::ok("plugin", format!("{ID} is enabled, from {}", places.shown(Path::new(from))))
        }
        (Some(_), Some(true), None) => {
            Check::bad("plugin", State::Fail, format!("{ID} has no marketplace any more"), INSTALL)
        }
        _ => Check::bad(
            "plugin",
            State::Fail,
            format!("{ID} is installed and not enabled ({settings})"),
            format!("claude plugin enable {ID}"),
        ),
    }
}

fn hooks(folder: &Path, places: &Places) -> Check {
    let path = folder.join("hooks/hooks.json");
    let shown = places.shown(&path);
    let Some(hooks) = json(&path) else {
        let evidence = format!("{shown} cannot be read");
        return Check::bad("hooks", State::Fail, evidence, INSTALL);
    };
    let has = |event: &String| hooks.get("hooks").is_some_and(|all| all.get(event).is_some());
    let events = events(FILES);
    let missing: Vec<&str> =
        events.iter().filter(|event| !has(event)).map(String::as_str).collect();
    if !missing.is_empty() {
        let evidence = format!("{shown} has no {}", missing.join(", "));
        return Check::bad("hooks", State::Fail, evidence, INSTALL);
    }
    // The launcher in the plugin, and the shim that it runs.
    for program in [folder.join("bin/compactd-hook"), places.bin().join("compactd-hook")] {
        if !run::is_program(&program) {
            let evidence = format!("the hooks lead to {}, no program", places.shown(&program));
            return Check::bad("hooks", State::Fail, evidence, INSTALL);
        }
    }
    Check::ok("hooks", format!("{} events lead to the shim", events.len()))
}

/// The host's program, if it is there.
pub(super) fn find(scene: &Scene<'_>, places: &Places) -> Option<Claude> {
    let path = (scene.lookup)("PATH");
    Claude::find(places, None, path.as_deref()).ok().flatten()
}

/// Whether the host knows the plugin.
pub(super) fn has_plugin(places: &Places) -> bool {
    Known::read(&places.claude).version.is_some()
}

/// Which version the host is.
pub(super) fn host(scene: &Scene<'_>, places: &Places) -> Check {
    let Some(claude) = find(scene, places) else {
        let fix = "npm install -g @anthropic-ai/claude-code";
        return Check::bad("host", State::Warn, "claude is not in PATH", fix);
    };
    let ran = run::run(Command::new(&claude.program).arg("--version"), ASK).ok();
    let said = ran.map(|ran| ran.out).unwrap_or_default();
    judge(&said)
}

fn judge(said: &str) -> Check {
    let text = said.split_whitespace().next().unwrap_or_default();
    let mut parts = text.split('.').map(|part| part.parse::<u64>().ok());
    let mut next = || parts.next().flatten();
    let (Some(major), Some(minor), Some(patch)) = (next(), next(), next()) else {
        let evidence = "claude does not tell its version";
        return Check::bad("host", State::Warn, evidence, "claude --version");
    };
    let version = [major, minor, patch];
    let tested = TESTED.map(|part| part.to_string()).join(".");
    if version < MODS {
        let evidence = format!("Claude Code {text} loads no mods: only the command hooks work");
        return Check::bad("host", State::Warn, evidence, "claude update");
    }
    if version == TESTED {
        return Check::ok("host", format!("Claude Code {text}"));
    }
    Check::ok("host", format!("Claude Code {text}; tried with {tested}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_judged_by_its_version() {
        for (said, state, words) in [
            ("2.1.332 (Claude Code)\n", State::Ok, "Claude Code 2.1.332"),
            ("2.2.0 (Claude Code)", State::Ok, "tried with 2.1.332"),
            ("2.1.287", State::Ok, "2.1.287"),
            ("2.1.286", State::Warn, "only the command hooks"),
            ("1.9.900", State::Warn, "only the command hooks"),
            ("", State::Warn, "does not tell"),
            ("claude 2", State::Warn, "does not tell"),
        ] {
            let check = judge(said);
            assert_eq!(check.state, state, "{said}");
            assert!(check.evidence.contains(words), "{said}: {check:?}");
            assert_eq!(check.fix.is_some(), state != State::Ok, "{said}");
        }
    }

    #[test]
    fn versions_that_differ_are_named_with_what_mends_them() {
        let version = |text: &str| Some(text.to_owned());
        let all = |shim: Option<String>, daemon: Option<String>| {
            compare(
                &[("client", version("1.0.0")), ("shim", shim), ("daemon", daemon)],
                "1.0.0",
                Some("kill 7"),
            )
        };
        let good = all(version("1.0.0"), None);
        assert_eq!((good.state, good.evidence.as_str()), (State::Ok, "1.0.0: client, shim"));
        let old = all(version("0.9.0"), version("1.0.0"));
        assert_eq!(old.evidence, "client 1.0.0, shim 0.9.0, daemon 1.0.0");
        assert_eq!(old.fix.as_deref(), Some(INSTALL));
        let daemon = all(None, version("0.9.0"));
        assert_eq!(daemon.fix.as_deref(), Some("kill 7"));
    }
}
