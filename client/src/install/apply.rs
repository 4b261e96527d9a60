//! Carries a plan out. A failure takes back all that this run did, or says what is left.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::codex::{self, Codex, config};
use super::error::InstallError;
use super::files::{self, Journal, Source};
use super::host_claude::{self, Before, Claude, Known};
use super::hosts::Which;
use super::look::Prepared;
use super::places::Places;
use super::plan::{Change, Content, Host, Service};
use super::record::{CodexRecord, HostFile, HostRecord, Record, shown};

/// What has to be taken back by other means than the journal.
#[derive(Default)]
struct Begun {
    service: bool,
    host: Option<HostRecord>,
    codex: Option<CodexRecord>,
}

/// Does what the plan says.
///
/// # Errors
/// A step failed; the steps before it are undone.
pub fn apply(prepared: &Prepared) -> Result<(), InstallError> {
    // Codex copies the folder that its marketplace names.
    let mut journal = Journal::with_clean(prepared.places.codex_marketplace());
    let mut begun = Begun::default();
    let Err(cause) = steps(prepared, &mut journal, &mut begun) else {
        journal.keep();
        return Ok(());
    };
    let mut left = Vec::new();
    if let Some(codex) = &begun.codex {
        left.extend(codex::undo(codex, &prepared.places).left);
    }
    if let Some(host) = &begun.host {
        left.extend(host_claude::undo(host, &prepared.places, prepared.claude.as_ref()).left);
    }
    if let Some(manager) = prepared.manager.as_ref().filter(|_| begun.service) {
        left.extend(manager.disable().err().map(|error| error.told()));
    }
    left.extend(journal.take_back());
    if let Some(manager) = prepared.manager.as_ref().filter(|_| begun.service) {
        left.extend(manager.forget().err().map(|error| error.told()));
    }
    if left.is_empty() {
        return Err(cause);
    }
    Err(InstallError::Left { cause: Box::new(cause), left })
}

fn steps(
    prepared: &Prepared,
    journal: &mut Journal,
    begun: &mut Begun,
) -> Result<(), InstallError> {
    let Prepared { places, plan, .. } = prepared;
    let mut record = prepared.record.clone().unwrap_or_default();
    record.complete = false;
    env!("CARGO_PKG_VERSION").clone_into(&mut record.version);
    journal.folder(&places.state, 0o700)?;
    for step in plan.files.iter().filter(|step| step.change != Change::Keep) {
        record.files.insert(step.path.clone(), hash_of(&step.content)?);
    }
    // From here on a run that is cut short can be undone by `uninstall`. The journal knows what was
    // in its place; what is written later goes over it.
    let empty: &[u8] = b"{}";
    journal.put(&places.record(), 0o600, Source::Bytes(empty))?;
    record.save(&places.record())?;
    for step in plan.files.iter().filter(|step| step.change != Change::Keep) {
        if let Some(folder) = step.path.parent() {
            journal.folder(folder, 0o755)?;
        }
        let source = match &step.content {
            Content::File(from) => Source::File(from),
            Content::Carried(bytes) => Source::Bytes(bytes),
        };
        journal.put(&step.path, step.mode, source)?;
    }
    for path in &plan.stale {
        journal.remove(path)?;
        record.files.remove(path);
    }
    if let Some(manager) = &prepared.manager {
        match &plan.service {
            Service::Enable => {
                begun.service = true;
                manager.enable()?;
                record.service = true;
            }
            Service::Restart => manager.restart()?,
            Service::Keep | Service::OnDemand(_) => {}
        }
    }
    if let (Host::Run(commands), Some(claude)) = (&plan.claude, &prepared.claude) {
        run_host(commands, claude, places, &mut record, journal, begun)?;
    }
    let commands: &[Vec<String>] = match &plan.codex {
        Host::Run(commands) => commands,
        _ => &[],
    };
    if let Some(codex) = prepared.codex.as_ref().filter(|_| !commands.is_empty() || plan.trust) {
        run_codex(commands, plan.trust, codex, places, &mut record, journal, begun)?;
    }
    for folder in journal.folders() {
        if !record.folders.contains(&folder) {
            record.folders.push(folder);
        }
    }
    record.complete = true;
    record.save(&places.record())
}

fn hash_of(content: &Content) -> Result<String, InstallError> {
    match content {
        Content::Carried(bytes) => Ok(shown(bytes)),
        Content::File(from) => match files::read(from)? {
            Some(bytes) => Ok(shown(&bytes)),
            None => Ok(String::new()),
        },
    }
}

fn run_host(
    commands: &[Vec<String>],
    claude: &Claude,
    places: &Places,
    record: &mut Record,
    journal: &mut Journal,
    begun: &mut Begun,
) -> Result<(), InstallError> {
    let folder = &places.claude;
    let known = Known::read(folder);
    let at = record.hosts.iter().position(|host| host.folder == folder.path);
    let number = at.unwrap_or(record.hosts.len());
    let is_fresh = known.marketplace.is_none() && known.version.is_none();
    let old = record.host(folder).cloned();
    let mut host = match &old {
        // What was there before is known from the first time, and is not what is there now.
        Some(old) if !is_fresh => old.clone(),
        _ => HostRecord::begin(places, &claude.program, number, journal)?,
    };
    // Where somebody has written since the first time, the chain of ours is broken.
    let broken: Vec<bool> = host
        .files
        .iter()
        .map(|file| match &old {
            Some(_) if !is_fresh => {
                fs::read(&file.path).ok().map(|bytes| shown(&bytes)) != file.after
            }
            _ => false,
        })
        .collect();
    if let Some(old) = old.filter(|_| is_fresh) {
        host.folders = old.folders;
        host.litter = old.litter;
    }
    host.program.clone_from(&claude.program);
    env!("CARGO_PKG_VERSION").clone_into(&mut host.version);
    match record.hosts.get_mut(number) {
        Some(place) => *place = host.clone(),
        None => record.hosts.push(host.clone()),
    }
    record.save(&places.record())?;
    let before = Before::look(folder);
    let result = run_all(commands, claude, places);
    before.note(folder, &mut host);
    for (file, broken) in host.files.iter_mut().zip(broken) {
        if broken {
            file.after = None;
        }
    }
    // An upgrade that fails leaves the plugin as it was; only a first time is taken back.
    if is_fresh {
        begun.host = Some(host.clone());
    }
    if let Some(place) = record.hosts.get_mut(number) {
        *place = host;
    }
    result
}

fn run_all(commands: &[Vec<String>], claude: &Claude, places: &Places) -> Result<(), InstallError> {
    for args in commands {
        claude.run(args)?;
    }
    let known = Known::read(&places.claude);
    if known.enabled == Some(true) && known.version.is_some() {
        return Ok(());
    }
    Err(not_there(Which::Claude, commands, places.claude.settings()))
}

fn not_there(host: Which, commands: &[Vec<String>], path: PathBuf) -> InstallError {
    let command = commands.last().map(|args| host.typed(args)).unwrap_or_default();
    InstallError::NotThere { host, command, path }
}

fn run_codex(
    commands: &[Vec<String>],
    trust: bool,
    codex: &Codex,
    places: &Places,
    record: &mut Record,
    journal: &mut Journal,
    begun: &mut Begun,
) -> Result<(), InstallError> {
    let folder = &places.codex;
    let known = codex::known(folder);
    let is_fresh = known.marketplace.is_none() && known.enabled.is_none();
    let at = record.codex.iter().position(|host| host.folder == folder.path);
    let number = at.unwrap_or(record.codex.len());
    let old = record.codex(folder).cloned();
    let current = || fs::read(folder.config()).ok().map(|bytes| shown(&bytes));
    let mut is_broken = false;
    let mut host = match old {
        // What was there before is known from the first time, and is not what is there now.
        Some(old) if !is_fresh => {
            is_broken = current() != old.config.after;
            old
        }
        old => {
            let prefix = format!("codex{number}");
            let absent = old.map_or_else(|| codex::missing(folder), |old| old.absent);
            CodexRecord {
                folder: folder.path.clone(),
                is_named: folder.is_named,
                config: HostFile::save(folder.config(), &prefix, places, journal)?,
                absent,
            }
        }
    };
    match record.codex.get_mut(number) {
        Some(place) => *place = host.clone(),
        None => record.codex.push(host.clone()),
    }
    record.save(&places.record())?;
    // An upgrade that fails leaves the plugin as it was; only a first time is taken back.
    if is_fresh {
        begun.codex = Some(host.clone());
    }
    let mode = fs::metadata(folder.config()).map(|found| found.permissions()).ok();
    let result = codex_steps(commands, trust, codex, places);
    if let Some(mode) = mode {
        // The host leaves its own.
        let _kept = fs::set_permissions(folder.config(), mode);
    }
    host.config.after = current().filter(|_| !is_broken);
    if is_fresh {
        // A link that led nowhere leads to a file that the host has made.
        if let Ok(target) = fs::canonicalize(&host.config.path) {
            host.config.target = target;
        }
        begun.codex = Some(host.clone());
    }
    if let Some(place) = record.codex.get_mut(number) {
        *place = host;
    }
    result
}

fn codex_steps(
    commands: &[Vec<String>],
    trust: bool,
    codex: &Codex,
    places: &Places,
) -> Result<(), InstallError> {
    for args in commands {
        codex.run(args)?;
    }
    let path = codex.folder.config();
    let is_whole = codex::copy(&codex.folder) == codex::Copy::Ours;
    if !is_whole || codex::known(&codex.folder).enabled != Some(true) {
        return Err(not_there(Which::Codex, commands, path));
    }
    if trust { approve(codex, places) } else { Ok(()) }
}

/// Writes what the host's own question would write, for the bytes that were just compared.
fn approve(codex: &Codex, places: &Places) -> Result<(), InstallError> {
    let path = codex.folder.config();
    let hooks = codex::hooks::ask(codex)?;
    let untrusted = hooks.iter().filter(|hook| !hook.is_trusted());
    let approvals: Option<Vec<_>> = untrusted.map(codex::hooks::Hook::approval).collect();
    let approvals = approvals.filter(|_| !hooks.is_empty());
    let approvals = approvals.ok_or_else(|| InstallError::Hooks {
        why: format!("it lists {} of them, or no hash", hooks.len()),
    })?;
    let found = files::read(&path)?.unwrap_or_default();
    let bytes = config::trust(&found, &approvals)
        .map_err(|why| InstallError::Config { path: path.clone(), why })?;
    let target = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
    let mode = fs::metadata(&target).map_or(0o600, |found| found.permissions().mode() & 0o7777);
    files::replace(&target, mode, Source::Bytes(&bytes))?;
    let still = codex::hooks::ask(codex)?;
    let names: Vec<String> =
        still.into_iter().filter(|hook| !hook.is_trusted()).map(|hook| hook.event_name).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(InstallError::NotTrusted { path: places.codex.config(), names })
}
