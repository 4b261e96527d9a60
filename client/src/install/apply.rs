//! Carries a plan out. A failure takes back all that this run did, or says what is left.

use std::fs;

use super::error::InstallError;
use super::files::{self, Journal, Source};
use super::host_claude::{self, Before, Claude, Known, typed};
use super::look::Prepared;
use super::places::Places;
use super::plan::{Change, Content, Host, Service};
use super::record::{HostRecord, Record, shown};

/// What has to be taken back by other means than the journal.
#[derive(Default)]
struct Begun {
    service: bool,
    host: Option<HostRecord>,
}

/// Does what the plan says.
///
/// # Errors
/// A step failed; the steps before it are undone.
pub fn apply(prepared: &Prepared) -> Result<(), InstallError> {
    let mut journal = Journal::default();
    let mut begun = Begun::default();
    let Err(cause) = steps(prepared, &mut journal, &mut begun) else {
        journal.keep();
        return Ok(());
    };
    let mut left = Vec::new();
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
    if let (Host::Run(commands), Some(claude)) = (&plan.host, &prepared.claude) {
        run_host(commands, claude, places, &mut record, journal, begun)?;
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
    let command = commands.last().map(|args| typed(args)).unwrap_or_default();
    Err(InstallError::NotThere { command, path: places.claude.settings() })
}
