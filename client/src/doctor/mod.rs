//! Checks of an installation: what is looked at, what was seen, and the one command that mends it.
//! Nothing here changes anything.

mod codex;
mod codex_settings;
mod daemon;
mod plugin;
mod settings;
mod system;

use std::ffi::OsString;
use std::path::PathBuf;

use compactd_api::dirs::Env;
use serde::Serialize;

use crate::error::Error;
use crate::install::places::Places;

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Ok,
    /// It works, and not as well as it could.
    Warn,
    /// It does not work.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name, for programs too.
    pub name: &'static str,
    /// How it went.
    pub state: State,
    /// What was seen.
    pub evidence: String,
    /// The one command that mends it, or that could be of use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    fn ok(name: &'static str, evidence: impl Into<String>) -> Self {
        Self { name, state: State::Ok, evidence: evidence.into(), fix: None }
    }

    fn bad(
        name: &'static str,
        state: State,
        evidence: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { name, state, evidence: evidence.into(), fix: Some(fix.into()) }
    }
}

/// All checks; the shape of `--json`.
#[derive(Debug, Serialize)]
pub struct Report {
    /// No check failed.
    pub healthy: bool,
    /// Of this program.
    pub version: &'static str,
    /// What was looked at.
    pub checks: Vec<Check>,
}

/// What is looked at, so that tests can look elsewhere.
pub struct Scene<'a> {
    /// The folders.
    pub env: &'a Env,
    /// Any other variable.
    pub lookup: &'a dyn Fn(&str) -> Option<OsString>,
    /// The project.
    pub project: PathBuf,
    /// The organisation's settings of Claude Code.
    pub managed: PathBuf,
    /// The organisation's settings of Codex.
    pub codex_managed: PathBuf,
    /// The kernel's limits of watching.
    pub inotify: PathBuf,
    /// Our user.
    pub me: u32,
}

/// Where an organisation's settings of Claude Code are on this system.
#[must_use]
pub fn managed_folder() -> PathBuf {
    if cfg!(target_os = "macos") {
        PathBuf::from("/Library/Application Support/ClaudeCode")
    } else {
        PathBuf::from("/etc/claude-code")
    }
}

/// Where an organisation's settings of Codex are.
#[must_use]
pub fn codex_managed_folder() -> PathBuf {
    PathBuf::from("/etc/codex")
}

/// The hosts that are looked at: those that are there or have the plugin.
struct Hosts {
    claude: Option<Wanted>,
    codex: Option<Wanted>,
}

/// Whether somebody wants the plugin in a host: it is there already, or in no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wanted(bool);

impl Hosts {
    fn look(claude: Seen, codex: Seen) -> Self {
        let is_nowhere = !claude.has_plugin && !codex.has_plugin;
        let wanted = |seen: Seen| {
            (seen.has_plugin || seen.is_found).then_some(Wanted(seen.has_plugin || is_nowhere))
        };
        let codex = wanted(codex);
        // Without any the advice is for the one.
        Self { claude: wanted(claude).or(codex.is_none().then_some(Wanted(true))), codex }
    }
}

/// What is there of a host.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    has_plugin: bool,
    is_found: bool,
}

/// Makes all checks.
///
/// # Errors
/// There is no home, or the configuration is wrong.
pub fn examine(scene: &Scene<'_>) -> Result<Report, Error> {
    let mut places = Places::new(scene.env, scene.lookup)?;
    let elsewhere = [plugin::elsewhere(&mut places), codex::elsewhere(&mut places)];
    let program = codex::find(scene, &places);
    let hosts = Hosts::look(
        Seen {
            has_plugin: plugin::has_plugin(&places),
            is_found: plugin::find(scene, &places).is_some(),
        },
        Seen { has_plugin: codex::has_plugin(&places), is_found: program.is_some() },
    );
    let (mut checks, running) = daemon::reach(scene, &places, &hosts);
    checks.extend(elsewhere.into_iter().flatten());
    checks.push(plugin::versions(&places, running.as_ref()));
    if let Some(Wanted(is_wanted)) = hosts.claude {
        checks.extend(plugin::plugin(&places, is_wanted));
        checks.push(plugin::host(scene, &places));
        checks.extend(settings::settings(scene, &places));
    }
    if let Some(Wanted(is_wanted)) = hosts.codex {
        checks.extend(codex::codex(program.as_ref(), is_wanted, &places));
        checks.extend(codex_settings::settings(scene, &places));
        checks.push(codex_settings::folders(&places));
    }
    checks.extend(system::system(scene, &places)?);
    let healthy = checks.iter().all(|check| check.state != State::Fail);
    Ok(Report { healthy, version: env!("CARGO_PKG_VERSION"), checks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_looked_at_where_they_are() {
        let seen = |has_plugin, is_found| Seen { has_plugin, is_found };
        let none = seen(false, false);
        for (claude, codex, expected) in [
            (none, none, (Some(true), None)),
            (seen(false, true), none, (Some(true), None)),
            (none, seen(false, true), (None, Some(true))),
            (seen(false, true), seen(false, true), (Some(true), Some(true))),
            (seen(true, true), seen(false, true), (Some(true), Some(false))),
            (seen(false, true), seen(true, false), (Some(false), Some(true))),
            (none, seen(true, true), (None, Some(true))),
        ] {
            let hosts = Hosts::look(claude, codex);
            let found = (hosts.claude.map(|found| found.0), hosts.codex.map(|found| found.0));
            assert_eq!(found, expected, "{claude:?} {codex:?}");
        }
    }
}
