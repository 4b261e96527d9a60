//! Undoes an installation by its record.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use compactd_api::dirs::Env;
use compactd_api::socket;

use super::codex;
use super::error::InstallError;
use super::files;
use super::host_claude::{self, Claude, Known};
use super::look::Process;
use super::places::Places;
use super::record::{CodexRecord, HostRecord, Record, shown};
use super::run::is_program;
use super::service::{self, Manager};
use crate::daemon::Daemon;

/// An installation that is to be undone.
#[derive(Debug)]
pub struct Removal {
    /// Where everything is.
    pub places: Places,
    /// What was installed; `None`: nothing.
    pub record: Option<Record>,
    manager: Option<Manager>,
    /// The host's program for each of its folders.
    hosts: Vec<(HostRecord, Option<Claude>)>,
    /// What the record does not know of, in the folder of Codex.
    by_hand: Option<CodexRecord>,
    env: Env,
    purge: bool,
}

/// Looks what there is to undo.
///
/// # Errors
/// The record cannot be used.
pub fn look(
    process: &Process<'_>,
    named: Option<&Path>,
    purge: bool,
) -> Result<Removal, InstallError> {
    let places = Places::new(process.env, process.lookup)?;
    super::look::check_ours(&places, process.me)?;
    let record = Record::load(&places.record())?;
    let path = (process.lookup)("PATH");
    let found = Claude::find(&places, named, path.as_deref())?.map(|claude| claude.program);
    let from = if files::is_there(&places.data) { &places.data } else { &places.home };
    let hosts = record.iter().flat_map(|record| &record.hosts).map(|host| {
        // The one of now: the one of then may be an old version.
        let then = Some(host.program.clone()).filter(|program| is_program(program));
        let program = found.clone().or(then);
        let folder = host.folder(&places.home);
        (host.clone(), program.map(|program| Claude::at(program, folder, from.clone())))
    });
    let hosts = hosts.collect();
    let needs_manager = record.as_ref().is_some_and(|record| record.service);
    let manager =
        needs_manager.then(|| Manager::find(&places.home, path.as_deref()).ok()).flatten();
    let env = process.env.clone();
    let is_known = record.as_ref().is_some_and(|record| record.codex(&places.codex).is_some());
    let by_hand = if is_known { None } else { codex::by_hand(&places) };
    Ok(Removal { places, record, manager, hosts, by_hand, env, purge })
}

/// What undoing left.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Failures.
    pub left: Vec<String>,
    /// What is good to know.
    pub notes: Vec<String>,
}

impl Removal {
    /// Whether there is nothing to undo.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.record.is_none() && self.by_hand.is_none() && self.purged().is_empty()
    }

    /// One line for each thing that would be done.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (host, claude) in &self.hosts {
            let folder = host.folder(&self.places.home);
            let known = Known::read(&folder);
            if claude.is_none() {
                lines.push("leave out Claude Code's own commands: it is not there".to_owned());
            } else if known.marketplace.is_some() || known.version.is_some() {
                lines.push("run `claude plugin marketplace remove compactd`".to_owned());
            }
            let shown = |path: &Path| self.places.shown(path);
            lines.extend(host.files.iter().map(|file| match &file.before {
                Some(_) => format!("put back {} where nothing else changed it", shown(&file.path)),
                None => format!("remove {} where nothing else is in it", shown(&file.path)),
            }));
        }
        for host in self.record.iter().flat_map(|record| &record.codex) {
            let folder = host.folder(&self.places.home);
            lines.push(format!(
                "put back {} where nothing else changed it, or take the plugin out of it",
                self.places.shown(&folder.config())
            ));
            lines.push(format!("remove {}", self.places.shown(&folder.copy())));
        }
        if self.by_hand.is_some() {
            let folder = &self.places.codex;
            let config = self.places.shown(&folder.config());
            lines.push(format!("take the plugin, which came by hand, out of {config}"));
            lines.push(format!("remove {}", self.places.shown(&folder.copy())));
        }
        if self.record.as_ref().is_some_and(|record| record.service) {
            lines.push(format!("run `{}`", service::shown(service::DISABLE)));
        }
        for path in self.record.iter().flat_map(|record| record.files.keys()) {
            lines.push(format!("remove {}", self.places.shown(path)));
        }
        if self.record.is_some() {
            lines.push(format!("remove the record {}", self.places.shown(&self.places.record())));
        }
        lines.extend(
            self.purged().iter().map(|path| format!("remove all of {}", self.places.shown(path))),
        );
        lines
    }

    /// Undoes everything that can be undone.
    #[must_use]
    pub fn apply(&self, stop: &dyn Fn(&Path) -> Option<String>) -> Outcome {
        let mut outcome = Outcome::default();
        if let Some(by_hand) = &self.by_hand {
            let undone = codex::undo_by_hand(by_hand, &self.places);
            outcome.left.extend(undone.left);
            outcome.notes.extend(undone.notes);
        }
        let Some(record) = &self.record else {
            self.purge(&mut outcome);
            return outcome;
        };
        for (host, claude) in &self.hosts {
            let undone = host_claude::undo(host, &self.places, claude.as_ref());
            outcome.left.extend(undone.left);
            outcome.notes.extend(undone.notes);
            if claude.is_none() {
                outcome.notes.push(
                    "Claude Code's program was not found: its own commands were left out"
                        .to_owned(),
                );
            }
        }
        for host in &record.codex {
            let undone = codex::undo(host, &self.places);
            outcome.left.extend(undone.left);
            outcome.notes.extend(undone.notes);
        }
        // Without the record and the plugin the host could not be helped a second time.
        if !outcome.left.is_empty() {
            return outcome;
        }
        if record.service {
            match &self.manager {
                Some(manager) => outcome.left.extend(manager.disable().err().map(said)),
                None => outcome.notes.push(
                    "no systemd user manager answers: the units are removed, not stopped"
                        .to_owned(),
                ),
            }
        }
        outcome.left.extend(stop(&self.places.bin().join("compactd")));
        for (path, hash) in &record.files {
            self.remove_file(path, hash, &mut outcome);
        }
        if record.service
            && let Some(manager) = &self.manager
        {
            outcome.left.extend(manager.forget().err().map(said));
        }
        if outcome.left.is_empty() {
            self.forget(record, &mut outcome);
        }
        if outcome.left.is_empty() {
            self.leavings(&mut outcome);
        }
        self.purge(&mut outcome);
        files::sweep(&self.places.state);
        for folder in self.folders(record).iter().rev() {
            if folder.starts_with(&self.places.data) {
                files::sweep(folder);
            }
            let _kept = files::remove_empty(folder);
        }
        outcome
    }

    /// Removes what only a running daemon needs, what can be made again, and what the host wrote
    /// beside the plugin.
    fn leavings(&self, outcome: &mut Outcome) {
        let declarations = self.places.plugin().join(".claude-plugin/types");
        remove(fs::remove_dir_all(&declarations), &declarations, outcome);
        // One that runs from elsewhere, started by hand, still needs its own.
        if Daemon::find(&self.env).is_ok() {
            return;
        }
        let link = socket::link_path(&self.env);
        let below_home = link.as_deref().and_then(Path::parent).map(Path::to_path_buf);
        let mut folders = vec![self.places.state.clone()];
        folders.extend(below_home.filter(|folder| *folder != self.places.state));
        for folder in folders {
            let run = folder.join("run");
            for place in [&run, &folder] {
                remove_all(place, is_daemons, outcome);
            }
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                // Only empty ones go.
                let _kept = fs::remove_dir(entry.path());
            }
            let _kept = files::remove_empty(&folder);
        }
        let snapshots = self.places.cache.join("index");
        remove(fs::remove_dir_all(&snapshots), &snapshots, outcome);
        let _kept = files::remove_empty(&self.places.cache);
    }

    /// What is left of ours, each with what it is.
    #[must_use]
    pub fn kept(&self) -> Vec<String> {
        let below = |folder: &Path, what: &str| {
            let shown = self.places.shown(folder);
            files::is_there(folder).then(|| format!("{shown} ({what})"))
        };
        let state = &self.places.state;
        let wanted = [
            ("pins", "what was pinned"),
            ("passes", "what each compaction did"),
            ("recovery", "words of the sessions that compactions took out"),
        ];
        let mut kept: Vec<String> =
            wanted.into_iter().filter_map(|(name, what)| below(&state.join(name), what)).collect();
        if kept.is_empty() {
            kept.extend(below(state, "state"));
        }
        kept.extend(below(&self.places.cache, "snapshots"));
        kept.extend(below(&self.places.config, "configuration"));
        kept
    }

    fn remove_file(&self, path: &Path, hash: &str, outcome: &mut Outcome) {
        // A unit that was changed since holds somebody's work. All below our own folder is ours.
        let is_ours = path.starts_with(&self.places.data)
            || fs::read(path).map_or(true, |bytes| shown(&bytes) == hash);
        if !is_ours {
            let path = self.places.shown(path);
            outcome.notes.push(format!("{path} was changed since: it is left"));
            return;
        }
        remove(fs::remove_file(path), path, outcome);
    }

    fn forget(&self, record: &Record, outcome: &mut Outcome) {
        for saved in record.host_files().filter_map(|file| file.before.as_ref()) {
            let path = self.places.saved().join(&saved.name);
            remove(fs::remove_file(&path), &path, outcome);
        }
        let _kept = files::remove_empty(&self.places.saved());
        let path = self.places.record();
        remove(fs::remove_file(&path), &path, outcome);
    }

    /// Folders of ours that may be empty now, outer before inner.
    fn folders(&self, record: &Record) -> Vec<PathBuf> {
        let mut folders = record.folders.clone();
        for path in record.files.keys() {
            let below = path.ancestors().skip(1);
            folders.extend(
                below.take_while(|path| path.starts_with(&self.places.data)).map(Path::to_path_buf),
            );
        }
        folders.sort();
        folders.dedup();
        folders
    }

    fn purged(&self) -> Vec<PathBuf> {
        let both = [&self.places.state, &self.places.cache];
        let both = both.into_iter().filter(|path| self.purge && files::is_there(path));
        both.cloned().collect()
    }

    fn purge(&self, outcome: &mut Outcome) {
        if !outcome.left.is_empty() {
            return;
        }
        for path in self.purged() {
            remove(fs::remove_dir_all(&path), &path, outcome);
        }
    }
}

/// Whether a daemon or a hook makes this file while it runs.
fn is_daemons(name: &str) -> bool {
    ["compactd.lock", "api.sock"].contains(&name) || name.starts_with("start.")
}

fn remove_all(folder: &Path, wanted: fn(&str) -> bool, outcome: &mut Outcome) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if wanted(&entry.file_name().to_string_lossy()) {
            remove(fs::remove_file(entry.path()), &entry.path(), outcome);
        }
    }
}

fn remove(result: io::Result<()>, path: &Path, outcome: &mut Outcome) {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            outcome.left.push(format!("{}: {error}", path.display()));
        }
        _ => {}
    }
}

#[expect(clippy::needless_pass_by_value, reason = "given to map")]
fn said(error: InstallError) -> String {
    error.told()
}
