//! Takes the plugin out of Codex by the record, with or without the host.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::config::{self, Known};
use super::is_ours;
use crate::install::error::InstallError;
use crate::install::files::{self, Source};
use crate::install::host_claude::Undone;
use crate::install::places::{CodexFolder, Places};
use crate::install::plugin::NAME;
use crate::install::record::{CodexRecord, HostFile, shown};

/// What is to be undone where the plugin came by commands that a person typed, which nothing
/// recorded; `None` where there is nothing of ours.
#[must_use]
pub fn by_hand(places: &Places) -> Option<CodexRecord> {
    let folder = &places.codex;
    let path = folder.config();
    is_ours(&super::known(folder), &places.codex_marketplace()).then(|| CodexRecord {
        folder: folder.path.clone(),
        is_named: folder.is_named,
        // Not the file that a link leads to: nobody knows that it was not there before.
        config: HostFile { target: path.clone(), path, before: None, after: None },
        absent: folder.copy().parent().map(Path::to_path_buf).into_iter().collect(),
    })
}

/// Puts the configuration back, and removes the host's copy of the plugin and what was kept of it.
/// Goes on after a failure.
#[must_use]
pub fn undo(record: &CodexRecord, places: &Places) -> Undone {
    take_out(record, places, "was changed since: it stays as it is, without the plugin")
}

/// The same for what came [`by_hand`].
#[must_use]
pub fn undo_by_hand(record: &CodexRecord, places: &Places) -> Undone {
    take_out(record, places, "got the plugin by hand: it stays, without the plugin")
}

fn take_out(record: &CodexRecord, places: &Places, why_left: &str) -> Undone {
    let folder = record.folder(&places.home);
    let mut undone = Undone::default();
    let path = folder.config();
    let shown_path = places.shown(&path);
    let now = match files::read(&path) {
        Ok(now) => now,
        Err(error) => {
            undone.left.push(error.told());
            return undone;
        }
    };
    let known = match config::parse(now.as_deref().unwrap_or_default()) {
        Ok(config) => config::known(&config),
        Err(why) => {
            undone.left.push(format!("{shown_path} cannot be read: {why}"));
            return undone;
        }
    };
    if known.marketplace.is_some() && !is_ours(&known, &places.codex_marketplace()) {
        let shown = places.shown(&folder.path);
        undone.notes.push(format!(
            "the marketplace {NAME} of {shown} comes from elsewhere by now: it is left"
        ));
        return undone;
    }
    match put_back(record, now.as_deref(), places) {
        Ok(true) => undone.notes.push(format!("{shown_path} {why_left}")),
        Ok(false) => {}
        Err(reason) => {
            undone.left.push(reason);
            return undone;
        }
    }
    for path in [folder.copy(), folder.data()] {
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                undone.left.push(format!("{}: {error}", path.display()));
            }
            _ => {}
        }
    }
    forget_baseline(&folder, &known);
    for folder in record.absent.iter().rev() {
        let _kept = files::remove_empty(folder);
    }
    undone
}

/// Whether something else had been changed in the file, which stays then.
fn put_back(record: &CodexRecord, now: Option<&[u8]>, places: &Places) -> Result<bool, String> {
    let told = |error: InstallError| error.told();
    let file = &record.config;
    // Somebody has removed it: so it stays.
    let Some(now) = now else { return Ok(false) };
    let mut before = file.saved(places).map_err(told)?;
    // A person had added our own folder by hand: it goes too.
    let of_before = before.as_deref().and_then(|bytes| config::parse(bytes).ok());
    if let (Some(bytes), Some(config)) = (&before, of_before)
        && is_ours(&config::known(&config), &places.codex_marketplace())
    {
        before = Some(config::without_us(bytes, None)?);
    }
    if before.as_deref() == Some(now) {
        return Ok(false);
    }
    let target = fs::canonicalize(&file.path).unwrap_or_else(|_| file.path.clone());
    let is_moved = target != file.target;
    let left = config::without_us(now, before.as_deref())
        .map_err(|why| format!("{}: {why}", file.path.display()))?;
    let is_untouched = file.after.as_deref() == Some(&*shown(now));
    let is_same = is_untouched || config::same_lines(&left, before.as_deref().unwrap_or_default());
    if is_same && !is_moved {
        return match (&before, &file.before) {
            (Some(bytes), Some(saved)) => {
                files::replace(&target, saved.mode, Source::Bytes(bytes)).map_err(told)
            }
            _ => fs::remove_file(&target).map_err(|error| format!("{}: {error}", target.display())),
        }
        .map(|()| false);
    }
    if left != now {
        let mode = fs::metadata(&target).map_or(0o600, |found| found.mode() & 0o7777);
        files::replace(&target, mode, Source::Bytes(&left)).map_err(told)?;
    }
    Ok(true)
}

/// The host keeps, in a file of its own naming, which bytes of the plugin were approved.
fn forget_baseline(folder: &CodexFolder, known: &Known) {
    let ours: BTreeSet<&str> = known.trusted.values().map(|trust| &*trust.content).collect();
    for entry in fs::read_dir(folder.baselines()).into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        if ours.contains(text.trim()) && !text.trim().is_empty() {
            let _kept = fs::remove_file(entry.path());
        }
    }
}

impl CodexRecord {
    /// The host's folder.
    #[must_use]
    pub fn folder(&self, home: &Path) -> CodexFolder {
        CodexFolder::new(home, self.is_named.then(|| self.folder.clone()))
    }
}
