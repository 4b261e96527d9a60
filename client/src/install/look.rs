//! Looks at this machine and makes the plan: what is there, what is missing, what forbids it.
//! Changes nothing.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use compactd_api::dirs::Env;

use super::binaries;
use super::codex::{self, Codex};
use super::error::InstallError;
use super::files::{self, check_folder};
use super::host_claude::{Claude, Known, steps};
use super::hosts::Which;
use super::places::Places;
use super::plan::{Change, Content, FileStep, Host, Plan, Service};
use super::plugin;
use super::record::{Record, shown};
use super::restore;
use super::service::{Manager, UNITS};

/// What an installation depends on, of this process.
pub struct Process<'a> {
    /// The folders.
    pub env: &'a Env,
    /// Any other variable.
    pub lookup: &'a dyn Fn(&str) -> Option<OsString>,
    /// Our own program.
    pub ours: PathBuf,
    /// Our user.
    pub me: u32,
}

/// What the person wants.
#[derive(Debug, Clone, Copy)]
pub struct Wishes<'a> {
    /// The only host to install in; `None`: every one that is found.
    pub host: Option<Which>,
    /// Claude Code's program.
    pub claude: Option<&'a Path>,
    /// Codex's program.
    pub codex: Option<&'a Path>,
    /// Approve the hooks that Codex would otherwise ask about.
    pub trust: bool,
    /// Make the daemon a service where that is possible.
    pub service: bool,
}

/// A plan and what it is carried out with.
#[derive(Debug)]
pub struct Prepared {
    /// Where everything goes.
    pub places: Places,
    /// What was installed so far.
    pub record: Option<Record>,
    /// What is to be done.
    pub plan: Plan,
    /// Claude Code.
    pub claude: Option<Claude>,
    /// Codex.
    pub codex: Option<Codex>,
    /// The service manager.
    pub manager: Option<Manager>,
    /// What is good to know.
    pub notes: Vec<String>,
}

/// Makes the plan.
///
/// # Errors
/// Something forbids the installation.
pub fn look(process: &Process<'_>, wishes: Wishes<'_>) -> Result<Prepared, InstallError> {
    let places = Places::new(process.env, process.lookup)?;
    check_ours(&places, process.me)?;
    let record = Record::load(&places.record())?;
    let path = (process.lookup)("PATH");
    let mut files = Vec::new();
    for (name, from) in binaries::beside(&process.ours)? {
        files.push(file(places.bin().join(name), 0o755, Content::File(from))?);
    }
    let claude = Claude::find(&places, wishes.claude, path.as_deref())?;
    let codex = Codex::find(&places, wishes.codex, path.as_deref())?;
    // Without any host the plugins are laid out for the one that comes.
    let is_none = claude.is_none() && codex.is_none();
    let is_wanted = |which: Which, is_found: bool| match wishes.host {
        Some(wanted) => wanted == which,
        None => is_found || is_none,
    };
    let mut marketplaces = Vec::new();
    if is_wanted(Which::Claude, claude.is_some()) {
        marketplaces.push((places.marketplace(), plugin::marketplace()));
    }
    if is_wanted(Which::Codex, codex.is_some()) {
        marketplaces.push((places.codex_marketplace(), plugin::codex_marketplace()));
    }
    let mut old = Vec::new();
    for (folder, laid_out) in marketplaces {
        for (below, mode, bytes) in laid_out {
            files.push(file(folder.join(below), mode, Content::Carried(bytes))?);
        }
        old.extend(stale(&folder, &files));
    }
    let manager = if wishes.service {
        Manager::find(&places.home, path.as_deref())
    } else {
        Err("--no-service was given".to_owned())
    };
    let service = match &manager {
        Ok(manager) => {
            let units = units(&places, record.as_ref())?;
            let is_changed = units.iter().any(|unit| unit.change != Change::Keep);
            files.extend(units);
            let is_new = files
                .iter()
                .any(|file| file.path.ends_with("bin/compactd") && file.change == Change::Replace);
            if !manager.is_enabled() {
                Service::Enable
            } else if is_changed || is_new {
                Service::Restart
            } else {
                Service::Keep
            }
        }
        Err(reason) => Service::OnDemand(reason.clone()),
    };
    let mut notes = Vec::new();
    let mut plan =
        Plan { files, stale: old, service, claude: Host::Out, codex: Host::Out, trust: false };
    if is_wanted(Which::Claude, claude.is_some()) {
        plan.claude = for_claude(&places, claude.is_some(), process.me, &mut notes)?;
    }
    if is_wanted(Which::Codex, codex.is_some()) {
        plan.codex = for_codex(&places, codex.is_some(), wishes.trust, process.me, &mut notes)?;
        plan.trust = wishes.trust
            && match (&plan.codex, &codex) {
                (Host::Run(_), _) => true,
                (Host::Keep, Some(codex)) => {
                    !codex::hooks::ask(codex)?.iter().all(codex::hooks::Hook::is_trusted)
                }
                _ => false,
            };
    }
    Ok(Prepared { places, record, plan, claude, codex, manager: manager.ok(), notes })
}

/// Refuses folders of ours that are not ours alone.
///
/// # Errors
/// See [`InstallError`].
pub fn check_ours(places: &Places, me: u32) -> Result<(), InstallError> {
    check_folder(&places.home, true, me)?;
    for folder in [&places.data, &places.state] {
        let above = folder.ancestors().skip(1).take_while(|above| *above != places.home);
        for above in above.filter(|above| above.starts_with(&places.home)) {
            check_folder(above, true, me)?;
        }
    }
    for folder in [&places.data, &places.bin(), &places.data.join("plugins"), &places.state] {
        check_folder(folder, false, me)?;
    }
    Ok(())
}

fn file(path: PathBuf, mode: u32, content: Content) -> Result<FileStep, InstallError> {
    let change = match fs::symlink_metadata(&path) {
        Err(_) => Change::Create,
        Ok(found) if found.is_dir() => {
            return Err(InstallError::Kind { path, found: "a folder", wanted: "a file" });
        }
        // A link is replaced, not followed.
        Ok(found) if !found.is_file() || found.mode() & 0o7777 != mode => Change::Replace,
        Ok(_) => {
            let is_equal = match &content {
                Content::File(from) => binaries::are_equal(from, &path),
                Content::Carried(bytes) => fs::read(&path).map(|found| found == **bytes),
            };
            if is_equal.unwrap_or(false) { Change::Keep } else { Change::Replace }
        }
    };
    Ok(FileStep { path, mode, content, change })
}

/// Files in our own folder that no longer belong there.
fn stale(folder: &Path, wanted: &[FileStep]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                // The host's declarations, which it writes anew: not ours, and in nobody's way.
                if !path.ends_with(".claude-plugin/types") {
                    waiting.push(path);
                }
            } else if !wanted.iter().any(|file| file.path == path) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn units(places: &Places, record: Option<&Record>) -> Result<Vec<FileStep>, InstallError> {
    let mut steps = Vec::new();
    for (name, bytes) in UNITS {
        let step = file(places.units.join(name), 0o644, Content::Carried(bytes.into()))?;
        let recorded = record.and_then(|record| record.files.get(&step.path));
        let is_ours = || {
            let found = fs::read(&step.path).unwrap_or_default();
            found == bytes || recorded.is_some_and(|recorded| *recorded == shown(&found))
        };
        if step.change == Change::Replace && !is_ours() {
            return Err(InstallError::Unit { path: step.path });
        }
        steps.push(step);
    }
    Ok(steps)
}

fn for_claude(
    places: &Places,
    is_there: bool,
    me: u32,
    notes: &mut Vec<String>,
) -> Result<Host, InstallError> {
    let folder = &places.claude;
    let known = Known::read(folder);
    let marketplace = places.marketplace();
    let steps = steps(&known, &marketplace, env!("CARGO_PKG_VERSION"));
    if steps.is_empty() {
        return Ok(Host::Keep);
    }
    if !is_there {
        return Ok(Host::Later(steps));
    }
    if let Some(source_shown) = known.marketplace.clone()
        && !known.is_ours(&marketplace)
    {
        return Err(InstallError::Marketplace { host: Which::Claude, source_shown });
    }
    check_folder(&folder.path, true, me)?;
    for path in folder.files() {
        check_file(Which::Claude, &path, me)?;
    }
    let settings = folder.settings();
    let found = files::read(&settings)?.unwrap_or_default();
    if let Some(why) = restore::problem(&found) {
        return Err(InstallError::Settings { path: settings, why });
    }
    notes.extend(linked(Which::Claude, &settings, places));
    Ok(Host::Run(steps))
}

fn for_codex(
    places: &Places,
    is_there: bool,
    trust: bool,
    me: u32,
    notes: &mut Vec<String>,
) -> Result<Host, InstallError> {
    let folder = &places.codex;
    let path = folder.config();
    check_folder(&folder.path, true, me)?;
    check_file(Which::Codex, &path, me)?;
    let found = files::read(&path)?.unwrap_or_default();
    let config = codex::config::parse(&found)
        .map_err(|why| InstallError::Config { path: path.clone(), why })?;
    let known = codex::config::known(&config);
    let marketplace = places.codex_marketplace();
    let steps = codex::steps(&known, &codex::copy(folder), &marketplace);
    if !steps.is_empty() && !is_there {
        return Ok(Host::Later(steps));
    }
    for feature in codex::config::switched_off(&config) {
        let is_plugins = feature == codex::config::PLUGINS;
        let without = match trust {
            _ if is_plugins && !steps.is_empty() => "installs no plugin",
            true => "runs no hook, trusted or not",
            false => {
                let shown = places.shown(&path);
                notes.push(format!(
                    "features.{feature} = false in {shown} keeps the plugin's hooks from running: \
                     `{}` lets them",
                    codex::config::switch_on(feature)
                ));
                continue;
            }
        };
        return Err(InstallError::Off { path, feature, without });
    }
    if steps.is_empty() {
        return Ok(Host::Keep);
    }
    if folder.is_named && !folder.path.is_dir() {
        return Err(InstallError::NoFolder { path: folder.path.clone() });
    }
    if let Some(source_shown) = known.marketplace.clone()
        && !codex::is_ours(&known, &marketplace)
    {
        return Err(InstallError::Marketplace { host: Which::Codex, source_shown });
    }
    notes.extend(linked(Which::Codex, &path, places));
    Ok(Host::Run(steps))
}

fn linked(host: Which, path: &Path, places: &Places) -> Option<String> {
    let target = fs::read_link(path).ok()?;
    let target = fs::canonicalize(path).unwrap_or(target);
    let (path, target) = (places.shown(path), places.shown(&target));
    Some(format!("{path} is a link: {} writes {target}", host.name()))
}

/// Refuses a file that the host would replace although somebody protected it.
fn check_file(host: Which, path: &Path, me: u32) -> Result<(), InstallError> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    let path = path.to_path_buf();
    if !found.is_file() {
        return Err(InstallError::Kind { path, found: "no file", wanted: "a file" });
    }
    if found.uid() != me {
        return Err(InstallError::OtherUser { path, uid: found.uid() });
    }
    let mode = found.permissions().mode() & 0o7777;
    if mode & 0o200 == 0 {
        return Err(InstallError::ReadOnly { host, path, mode });
    }
    Ok(())
}
