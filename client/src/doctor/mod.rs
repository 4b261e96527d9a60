//! Checks of an installation: what is looked at, what was seen, and the one command that mends it.
//! Nothing here changes anything.

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

/// Makes all checks.
///
/// # Errors
/// There is no home, or the configuration is wrong.
pub fn examine(scene: &Scene<'_>) -> Result<Report, Error> {
    let mut places = Places::new(scene.env, scene.lookup)?;
    let elsewhere = plugin::elsewhere(&mut places);
    let (mut checks, running) = daemon::reach(scene, &places);
    checks.extend(elsewhere);
    checks.push(plugin::versions(&places, running.as_ref()));
    checks.extend(plugin::plugin(&places));
    checks.push(plugin::host(scene, &places));
    checks.extend(settings::settings(scene, &places));
    checks.extend(system::system(scene, &places)?);
    let healthy = checks.iter().all(|check| check.state != State::Fail);
    Ok(Report { healthy, version: env!("CARGO_PKG_VERSION"), checks })
}
