//! Codex: what its files say about our plugin, its own commands, and how to undo both.
//!
//! Seen with 0.171.0: none of the commands needs a key or the network. `marketplace add` and
//! `plugin add` edit `config.toml` by its syntax tree (comments stay, a link is followed, a read-only
//! file is replaced, lines end with a newline alone afterwards, its mode becomes 600), copy the plugin
//! to `plugins/cache`, and leave empty folders. Nothing else knows of the plugin, so taking it away
//! needs no host. `plugin remove` leaves what was approved in `[hooks.state]`.

pub mod config;
pub mod hooks;
mod undo;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::InstallError;
use super::files;
use super::hosts::Which;
use super::places::{CodexFolder, Places};
use super::plugin::{self, ID};
use super::run;
use config::Known;
pub use undo::{by_hand, undo, undo_by_hand};

/// The host's program and the folder it works in.
#[derive(Debug, Clone)]
pub struct Codex {
    /// The program.
    pub program: PathBuf,
    /// Its folder.
    pub folder: CodexFolder,
    /// Where it runs: a folder without a project.
    from: PathBuf,
}

/// How the host's copy of the plugin stands to what this program carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Copy {
    /// There is none.
    Missing,
    /// Byte for byte ours.
    Ours,
    /// Something differs: the version, and the first file that does.
    Other {
        /// Name of its folder: the version.
        version: String,
        /// Path in the plugin.
        file: String,
    },
}

/// Reads the host's configuration; what cannot be read or understood says nothing.
#[must_use]
pub fn known(folder: &CodexFolder) -> Known {
    let bytes = fs::read(folder.config()).unwrap_or_default();
    config::parse(&bytes).map(|config| config::known(&config)).unwrap_or_default()
}

/// Which features are off that the plugin needs; see [`config::switched_off`].
#[must_use]
pub fn switched_off(folder: &CodexFolder) -> Vec<&'static str> {
    let bytes = fs::read(folder.config()).unwrap_or_default();
    config::parse(&bytes).map(|config| config::switched_off(&config)).unwrap_or_default()
}

/// Whether the marketplace of our name is this folder.
#[must_use]
pub fn is_ours(known: &Known, marketplace: &Path) -> bool {
    known.marketplace.as_deref().is_some_and(|known| {
        Path::new(known) == marketplace
            || fs::canonicalize(known)
                .is_ok_and(|known| fs::canonicalize(marketplace).is_ok_and(|ours| known == ours))
    })
}

/// The copy that the host runs, with its version: of several the newest, 0.10.0 after 0.9.0.
#[must_use]
pub fn newest(folder: &CodexFolder) -> Option<(String, PathBuf)> {
    let versions = fs::read_dir(folder.copy()).into_iter().flatten().flatten();
    let named = versions
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .collect::<Vec<_>>();
    named.into_iter().max_by(|(one, _), (other, _)| age(one).cmp(&age(other)))
}

/// What versions are ordered by: their numbers, then a release after what came before it. What is no
/// version is older than every one.
fn age(version: &str) -> (Vec<u64>, bool, &str) {
    let version = version.split('+').next().unwrap_or_default();
    let (numbers, stage) = version.split_once('-').unwrap_or((version, ""));
    let numbers: Option<Vec<u64>> = numbers.split('.').map(|part| part.parse().ok()).collect();
    (numbers.unwrap_or_default(), stage.is_empty(), stage)
}

/// Compares the host's copy with what this program carries.
#[must_use]
pub fn copy(folder: &CodexFolder) -> Copy {
    let Some((version, found)) = newest(folder) else { return Copy::Missing };
    let mut there = Vec::new();
    list(&found, &found, &mut there);
    let is_carried = |name: &String| plugin::CODEX.iter().any(|file| file.path == name);
    let other = there.into_iter().find(|name| !is_carried(name)).or_else(|| {
        let differs = |file: &&plugin::Carried| {
            let path = found.join(file.path);
            let is_runnable = file.mode & 0o100 == 0 || run::is_program(&path);
            !is_runnable || fs::read(path).map_or(true, |bytes| bytes != file.bytes)
        };
        plugin::CODEX.iter().find(differs).map(|file| file.path.to_owned())
    });
    match other {
        None if version == env!("CARGO_PKG_VERSION") => Copy::Ours,
        None => Copy::Other { version, file: "its version".to_owned() },
        Some(file) => Copy::Other { version, file },
    }
}

/// Every file below a folder, as a path in `root`.
fn list(root: &Path, folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            list(root, &path, found);
        } else if let Ok(below) = path.strip_prefix(root) {
            found.push(below.to_string_lossy().into_owned());
        }
    }
}

/// The commands that lead from what the host has to our plugin, installed and enabled.
#[must_use]
pub fn steps(known: &Known, copy: &Copy, marketplace: &Path) -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let mut steps = Vec::new();
    if !is_ours(known, marketplace) {
        let folder = marketplace.display().to_string();
        steps.push(words(&["plugin", "marketplace", "add", &folder, "--json"]));
    }
    if known.enabled != Some(true) || *copy != Copy::Ours {
        steps.push(words(&["plugin", "add", ID, "--json"]));
    }
    steps
}

impl Codex {
    /// The program that a person named, or the one that is found.
    ///
    /// # Errors
    /// What was named is no program.
    pub fn find(
        places: &Places,
        named: Option<&Path>,
        path: Option<&OsStr>,
    ) -> Result<Option<Self>, InstallError> {
        let usual = [places.home.join(".local/bin/codex")];
        let program = Which::Codex.find(named, path, &usual)?;
        Ok(program.map(|program| Self {
            program,
            folder: places.codex.clone(),
            from: places.data.clone(),
        }))
    }

    /// The program, told which folder it works in.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if self.folder.is_named {
            command.env("CODEX_HOME", &self.folder.path);
        } else {
            command.env_remove("CODEX_HOME");
        }
        command
    }

    /// Runs one of the host's commands.
    ///
    /// # Errors
    /// It fails; what it said is told.
    pub fn run(&self, args: &[String]) -> Result<String, InstallError> {
        let mut command = self.command();
        command.args(args).current_dir(&self.from);
        run::must(&mut command, &Which::Codex.typed(args))
    }
}

/// Which of the folders that the host makes are not there.
#[must_use]
pub fn missing(folder: &CodexFolder) -> Vec<PathBuf> {
    let mut missing = folder.folders();
    missing.retain(|path| !files::is_there(path));
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(home: &Path) -> CodexFolder {
        CodexFolder::new(home, None)
    }

    fn lay_out(folder: &CodexFolder, version: &str) -> PathBuf {
        let root = folder.copy().join(version);
        for file in plugin::CODEX {
            let path = root.join(file.path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            files::replace(&path, file.mode, files::Source::Bytes(file.bytes)).unwrap();
        }
        root
    }

    #[test]
    fn the_copy_is_ours_byte_for_byte_or_told_where_not() {
        let home = tempfile::tempdir().unwrap();
        let folder = folder(home.path());
        assert_eq!(copy(&folder), Copy::Missing);
        let root = lay_out(&folder, env!("CARGO_PKG_VERSION"));
        assert_eq!(copy(&folder), Copy::Ours);
        let differs = |expected: &str| match copy(&folder) {
            Copy::Other { file, .. } => assert_eq!(file, expected),
            other => panic!("{other:?}"),
        };
        fs::write(root.join("hooks/more.json"), "{}").unwrap();
        differs("hooks/more.json");
        fs::remove_file(root.join("hooks/more.json")).unwrap();
        fs::write(root.join("README.md"), "changed").unwrap();
        differs("README.md");
        fs::remove_file(root.join("README.md")).unwrap();
        differs("README.md");
        fs::remove_dir_all(&root).unwrap();
        lay_out(&folder, "0.0.1");
        differs("its version");
    }

    #[test]
    fn the_newest_copy_counts_by_its_numbers() {
        let home = tempfile::tempdir().unwrap();
        let folder = folder(home.path());
        assert_eq!(newest(&folder), None);
        for (version, expected) in [
            ("notes", "notes"),
            ("0.9.0", "0.9.0"),
            ("0.10.0-rc.1", "0.10.0-rc.1"),
            ("0.10.0", "0.10.0"),
            ("0.2.0", "0.10.0"),
        ] {
            lay_out(&folder, version);
            assert_eq!(newest(&folder).unwrap().0, expected);
            let Copy::Other { version, .. } = copy(&folder) else { panic!("{expected}") };
            assert_eq!(version, expected);
        }
    }

    #[test]
    fn only_the_commands_that_are_needed_are_run() {
        let ours =
            |enabled| Known { marketplace: Some("/m".to_owned()), enabled, ..Known::default() };
        let typed = |known: &Known, copy: &Copy| -> Vec<String> {
            let steps = steps(known, copy, Path::new("/m"));
            steps.iter().map(|args| Which::Codex.typed(args)).collect()
        };
        let add = "codex plugin add compactd@compactd --json";
        assert_eq!(
            typed(&Known::default(), &Copy::Missing),
            ["codex plugin marketplace add /m --json", add]
        );
        assert!(typed(&ours(Some(true)), &Copy::Ours).is_empty());
        assert_eq!(typed(&ours(Some(false)), &Copy::Ours), [add]);
        let old = Copy::Other { version: "0.0.1".to_owned(), file: String::new() };
        assert_eq!(typed(&ours(Some(true)), &old), [add]);
    }
}
