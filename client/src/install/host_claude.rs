//! Claude Code: what its files say about our plugin, its own commands, and how to undo both.
//!
//! Seen with 2.1.332: none of the commands needs a key or the network. `marketplace add` and
//! `plugin install` print `settings.json` again (rename; mode and link are kept, a read-only file is
//! replaced all the same), and write two files in `plugins/`, a copy of the plugin in
//! `plugins/cache`, `.claude.json` and a backup of it. `marketplace remove` removes the plugin too,
//! and leaves `{}` where there was nothing and the copy in the cache. Comments in the settings make
//! every command fail. The order of keys, white space and the digits of numbers change.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::error::InstallError;
use super::files::{self, Source};
use super::hosts::Which;
use super::places::{ClaudeFolder, Places};
use super::plugin::{ID, NAME};
use super::record::{HostFile, HostRecord, shown};
use super::restore::{self, History, Verdict};
use super::run;

/// Variables that keep the host from doing anything but what it is asked for.
const QUIET: [&str; 3] =
    ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER"];

/// The host's program and the folder it works in.
#[derive(Debug, Clone)]
pub struct Claude {
    /// The program.
    pub program: PathBuf,
    folder: ClaudeFolder,
    /// Where it runs: a folder without a project.
    from: PathBuf,
}

/// What the host's files say about our plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// Where the marketplace of our name comes from: a folder, or the whole entry.
    pub marketplace: Option<String>,
    /// The settings declare it too.
    pub is_declared: bool,
    /// The version that the host was told of.
    pub version: Option<String>,
    /// What the user's settings say.
    pub enabled: Option<bool>,
}

impl Known {
    /// Reads the host's files; what cannot be read or understood says nothing.
    #[must_use]
    pub fn read(folder: &ClaudeFolder) -> Self {
        let json = |path: PathBuf| {
            let bytes = fs::read(path).unwrap_or_default();
            restore::parse(&bytes).unwrap_or_default()
        };
        let settings = json(folder.settings());
        let known = json(folder.marketplaces());
        let installed = json(folder.plugins());
        let declared = settings.get("extraKnownMarketplaces").and_then(|all| all.get(NAME));
        let source = known.get(NAME).or(declared).and_then(|entry| entry.get("source"));
        let is_folder =
            |source: &Value| source.get("source").is_some_and(|kind| kind == "directory");
        let marketplace = source.map(|source| match source.get("path").and_then(Value::as_str) {
            Some(path) if is_folder(source) => path.to_owned(),
            _ => source.to_string(),
        });
        let entries =
            installed.get("plugins").and_then(|all| all.get(ID)).and_then(Value::as_array);
        let version = entries.into_iter().flatten().find_map(|entry| {
            let is_users = entry.get("scope").is_none_or(|scope| scope == "user");
            Some(entry.get("version")?.as_str()?.to_owned()).filter(|_| is_users)
        });
        let enabled = settings.get("enabledPlugins").and_then(|all| all.get(ID)?.as_bool());
        Self { marketplace, is_declared: declared.is_some(), version, enabled }
    }

    /// Whether the marketplace of our name is this folder.
    #[must_use]
    pub fn is_ours(&self, marketplace: &Path) -> bool {
        self.marketplace.as_deref().is_some_and(|known| {
            Path::new(known) == marketplace
                || fs::canonicalize(known).is_ok_and(|known| {
                    fs::canonicalize(marketplace).is_ok_and(|ours| known == ours)
                })
        })
    }
}

/// The commands that lead from what the host knows to our plugin, installed and enabled.
#[must_use]
pub fn steps(known: &Known, marketplace: &Path, version: &str) -> Vec<Vec<String>> {
    let mut steps = Vec::new();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    if !(known.is_declared && known.is_ours(marketplace)) {
        let folder = marketplace.display().to_string();
        steps.push(words(&["plugin", "marketplace", "add", &folder]));
    }
    match &known.version {
        Some(theirs) if theirs != version => steps.push(words(&["plugin", "update", ID])),
        _ => {}
    }
    if known.version.is_none() || known.enabled != Some(true) {
        steps.push(words(&["plugin", "install", ID]));
    }
    steps
}

impl Claude {
    /// The program that a person named, or the one that is found.
    ///
    /// # Errors
    /// What was named is no program.
    pub fn find(
        places: &Places,
        named: Option<&Path>,
        path: Option<&OsStr>,
    ) -> Result<Option<Self>, InstallError> {
        let usual =
            [places.home.join(".local/bin/claude"), places.claude.path.join("local/claude")];
        let program = Which::Claude.find(named, path, &usual)?;
        Ok(program.map(|program| Self::at(program, places.claude.clone(), places.data.clone())))
    }

    /// The program at a place, for a folder of the host.
    #[must_use]
    pub fn at(program: PathBuf, folder: ClaudeFolder, from: PathBuf) -> Self {
        Self { program, folder, from }
    }

    /// Runs one of the host's commands.
    ///
    /// # Errors
    /// It fails; what it said is told.
    pub fn run(&self, args: &[String]) -> Result<String, InstallError> {
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(&self.from);
        if self.folder.is_named {
            command.env("CLAUDE_CONFIG_DIR", &self.folder.path);
        } else {
            command.env_remove("CLAUDE_CONFIG_DIR");
        }
        for name in QUIET {
            command.env(name, "1");
        }
        run::must(&mut command, &Which::Claude.typed(args))
    }
}

/// What is there before the host's commands run, to tell what they made.
#[derive(Debug)]
pub struct Before {
    litter: BTreeSet<PathBuf>,
    folders: Vec<PathBuf>,
}

impl Before {
    /// Looks.
    #[must_use]
    pub fn look(folder: &ClaudeFolder) -> Self {
        let all = folder.folders().into_iter().chain([folder.copy()]);
        let missing = all.filter(|path| !files::is_there(path)).collect();
        Self { litter: litter(folder), folders: missing }
    }

    /// Adds to the record what was made since, and what the files hold now.
    pub fn note(&self, folder: &ClaudeFolder, record: &mut HostRecord) {
        let made = self.folders.iter().filter(|path| files::is_there(path)).cloned();
        let made: Vec<PathBuf> = made.filter(|path| !record.folders.contains(path)).collect();
        record.folders.extend(made);
        for path in litter(folder).difference(&self.litter) {
            if let Ok(bytes) = fs::read(path) {
                record.litter.insert(path.clone(), shown(&bytes));
            }
        }
        for file in &mut record.files {
            file.after = fs::read(&file.path).ok().map(|bytes| shown(&bytes));
        }
    }
}

/// Backups and unsent reports: files that the host makes on the side.
fn litter(folder: &ClaudeFolder) -> BTreeSet<PathBuf> {
    let entries = folder.litter().into_iter().filter_map(|folder| fs::read_dir(folder).ok());
    let paths = entries.flatten().filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(".claude.json.backup.") || name.starts_with("1p_failed_events.")
        })
        .collect()
}

/// What undoing did not undo.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// Failures.
    pub left: Vec<String>,
    /// What was left on purpose.
    pub notes: Vec<String>,
}

/// Removes the plugin by the host's commands and puts back what was there before. Goes on after a
/// failure.
pub fn undo(record: &HostRecord, places: &Places, claude: Option<&Claude>) -> Undone {
    let folder = record.folder(&places.home);
    let Undone { mut left, mut notes } = Undone::default();
    let before = Before::look(&folder);
    let found: Vec<Option<Vec<u8>>> =
        record.files.iter().map(|file| fs::read(&file.path).ok()).collect();
    let known = Known::read(&folder);
    if known.marketplace.is_some() && !known.is_ours(&places.marketplace()) {
        let note = format!(
            "the marketplace {NAME} of {} comes from elsewhere by now: it is left",
            places.shown(&folder.path)
        );
        return Undone { left, notes: vec![note] };
    }
    let is_known = known.marketplace.is_some() || known.version.is_some();
    let failure = match claude {
        Some(claude) if is_known => ask_host(claude, &folder).err(),
        _ => None,
    };
    let by_host = claude.is_some() && failure.is_none();
    // Without the host the bytes of before are right only where nobody has written since, and only
    // all of them together.
    let untouched = record.files.iter().zip(&found).all(|(file, found)| {
        file.path == folder.state_file || found.as_deref().map(shown) == file.after
    });
    if by_host || untouched {
        for (file, found) in record.files.iter().zip(&found) {
            match put_back(file, found.as_deref(), by_host, places) {
                Ok(note) => notes.extend(note),
                Err(reason) => left.push(reason),
            }
        }
    }
    let now = Known::read(&folder);
    let is_gone = now.version.is_none() && !now.is_ours(&places.marketplace());
    if is_gone {
        remove_litter(record, &folder, &before);
        let copy = folder.copy();
        if record.folders.contains(&copy)
            && let Err(error) = fs::remove_dir_all(&copy)
            && error.kind() != io::ErrorKind::NotFound
        {
            left.push(format!("{}: {error}", copy.display()));
        }
        notes.extend(failure.map(|error| format!("{error}; its files were put back without it")));
        for folder in record.folders.iter().chain(&before.folders).rev() {
            let _kept = files::remove_empty(folder);
        }
    } else {
        let word = format!("{} still names the plugin", places.shown(&folder.path));
        if claude.is_some() {
            left.extend(failure.map(|error| error.told()));
            left.push(word);
        } else {
            notes.push(word);
        }
    }
    Undone { left, notes }
}

/// Removes what the host made on the side, then and now.
fn remove_litter(record: &HostRecord, folder: &ClaudeFolder, before: &Before) {
    for path in litter(folder).difference(&before.litter) {
        let _kept = fs::remove_file(path);
    }
    for (path, hash) in &record.litter {
        if fs::read(path).is_ok_and(|bytes| shown(&bytes) == *hash) {
            let _kept = fs::remove_file(path);
        }
    }
}

/// The marketplace goes first, the plugin with it: the other order leaves a note that the person
/// declined the plugin.
fn ask_host(claude: &Claude, folder: &ClaudeFolder) -> Result<(), InstallError> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    if Known::read(folder).marketplace.is_some() {
        claude.run(&words(&["plugin", "marketplace", "remove", NAME]))?;
    }
    if Known::read(folder).version.is_some() {
        claude.run(&words(&["plugin", "uninstall", ID]))?;
    }
    Ok(())
}

fn put_back(
    file: &HostFile,
    found: Option<&[u8]>,
    by_host: bool,
    places: &Places,
) -> Result<Option<String>, String> {
    let path = places.shown(&file.path);
    let before = file.saved(places).map_err(|error| error.told())?;
    let now = fs::read(&file.path).ok();
    let untouched = found.map(shown) == file.after;
    let mut verdict = restore::verdict(History {
        before: before.as_deref(),
        untouched_since: untouched,
        found,
        now: now.as_deref(),
    });
    if verdict == Verdict::Leave && !by_host && untouched && now.as_deref() == found {
        verdict = if before.is_some() { Verdict::PutBack } else { Verdict::Remove };
    }
    let moved = fs::canonicalize(&file.path).is_ok_and(|target| target != file.target);
    match (verdict, &before, &file.before) {
        (Verdict::Same, ..) => Ok(None),
        (Verdict::PutBack, Some(bytes), Some(saved)) if !moved => {
            files::replace(&file.target, saved.mode, Source::Bytes(bytes))
                .map(|()| None)
                .map_err(|error| error.told())
        }
        (Verdict::Remove, ..) if !moved => {
            fs::remove_file(&file.path).map(|()| None).map_err(|error| format!("{path}: {error}"))
        }
        // The host's own files change with every use: that they are kept needs no word.
        _ if file.path.file_name().is_some_and(|name| name == "settings.json") => {
            let empty = restore::left_empty(before.as_deref(), now.as_deref());
            let rest = match &*empty {
                [] => String::new(),
                keys => format!("; the host leaves {} in it, empty", keys.join(" and ")),
            };
            Ok(Some(format!(
                "{path} was changed since: it stays as it is, without the plugin{rest}"
            )))
        }
        _ => Ok(None),
    }
}
