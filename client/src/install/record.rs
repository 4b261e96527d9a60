//! What an installation changed, kept beside the state so that it can be undone: an index
//! (`install.json`) and, for each file of the host that was there, its bytes (`install/`).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use compactd_core::hash::hash;
use serde::{Deserialize, Serialize};

use super::error::InstallError;
use super::files::{self, Source};
use super::places::{ClaudeFolder, CodexFolder, Places};

/// Layout of the record. A record with another number is not guessed at.
const FORMAT: u32 = 1;
/// The layout with `codex` in it: who does not know that part must not undo the rest and forget it.
const FORMAT_CODEX: u32 = 2;

/// What was installed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Layout.
    pub format: u32,
    /// Version of what is installed.
    pub version: String,
    /// Every step was done. Else the run was cut short, and what is listed may not be there.
    pub complete: bool,
    /// Folders that were made, outer before inner.
    pub folders: Vec<PathBuf>,
    /// Our own files and the hash of what was put there.
    pub files: BTreeMap<PathBuf, String>,
    /// The units are enabled.
    pub service: bool,
    /// The folders of Claude Code that have the plugin.
    pub hosts: Vec<HostRecord>,
    /// Those of Codex.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codex: Vec<CodexRecord>,
}

/// What happened in one folder of Codex.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodexRecord {
    /// Its folder.
    pub folder: PathBuf,
    /// The folder was named by `CODEX_HOME`.
    pub is_named: bool,
    /// The configuration, which the host changes when a plugin comes.
    pub config: HostFile,
    /// Folders that were not there before, outer before inner.
    pub absent: Vec<PathBuf>,
}

/// What happened in one folder of Claude Code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRecord {
    /// Its program.
    pub program: PathBuf,
    /// Its folder.
    pub folder: PathBuf,
    /// The folder was named by `CLAUDE_CONFIG_DIR`.
    pub is_named: bool,
    /// Version of the plugin that the host was told of.
    pub version: String,
    /// Files that the host changes when a plugin comes or goes.
    pub files: Vec<HostFile>,
    /// Files that the host made on the side, and their hashes.
    pub litter: BTreeMap<PathBuf, String>,
    /// Folders that the host made.
    pub folders: Vec<PathBuf>,
}

/// A file of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFile {
    /// As the host names it.
    pub path: PathBuf,
    /// Where its bytes are, if that is a link.
    pub target: PathBuf,
    /// What was there before; `None`: nothing.
    pub before: Option<Saved>,
    /// Hash of what the installation left; `None`: no file, or something else changed it since.
    pub after: Option<String>,
}

/// Saved bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// Name in the folder of saved bytes.
    pub name: String,
    /// Permissions.
    pub mode: u32,
    /// Hash of the bytes.
    pub hash: String,
}

/// A hash as the record has it.
#[must_use]
pub fn shown(bytes: &[u8]) -> String {
    format!("{:016x}", hash(bytes))
}

impl Default for Record {
    fn default() -> Self {
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            complete: false,
            folders: Vec::new(),
            files: BTreeMap::new(),
            service: false,
            hosts: Vec::new(),
            codex: Vec::new(),
        }
    }
}

impl Record {
    /// Reads the record; `None` if nothing was installed.
    ///
    /// # Errors
    /// It cannot be read or understood.
    pub fn load(path: &Path) -> Result<Option<Self>, InstallError> {
        let Some(bytes) = files::read(path)? else { return Ok(None) };
        let bad = |why: String| InstallError::Record { path: path.to_path_buf(), why };
        let found: Self = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
        if ![FORMAT, FORMAT_CODEX].contains(&found.format) {
            return Err(bad(format!("it has format {}, not {FORMAT_CODEX}", found.format)));
        }
        Ok(Some(found))
    }

    /// Writes the record. Its folder must be there.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), InstallError> {
        let format = if self.codex.is_empty() { FORMAT } else { FORMAT_CODEX };
        let whole = Self { format, ..self.clone() };
        let bytes = serde_json::to_vec_pretty(&whole).map_err(|error| InstallError::Record {
            path: path.to_path_buf(),
            why: error.to_string(),
        })?;
        files::replace(path, 0o600, Source::Bytes(&bytes))
    }

    /// The record of this folder of Codex.
    #[must_use]
    pub fn codex(&self, folder: &CodexFolder) -> Option<&CodexRecord> {
        self.codex.iter().find(|host| host.folder == folder.path)
    }

    /// Every file of a host whose bytes were saved.
    pub fn host_files(&self) -> impl Iterator<Item = &HostFile> {
        let claude = self.hosts.iter().flat_map(|host| &host.files);
        claude.chain(self.codex.iter().map(|host| &host.config))
    }

    /// The record of this folder of Claude Code.
    #[must_use]
    pub fn host(&self, folder: &ClaudeFolder) -> Option<&HostRecord> {
        self.hosts.iter().find(|host| host.folder == folder.path)
    }
}

impl HostRecord {
    /// The host's folder.
    #[must_use]
    pub fn folder(&self, home: &Path) -> ClaudeFolder {
        ClaudeFolder::new(home, self.is_named.then(|| self.folder.clone()))
    }

    /// Saves the bytes of the host's files before anything is changed.
    ///
    /// # Errors
    /// A file cannot be read, or its bytes cannot be kept.
    pub fn begin(
        places: &Places,
        program: &Path,
        number: usize,
        journal: &mut files::Journal,
    ) -> Result<Self, InstallError> {
        let files = places.claude.files().into_iter();
        let kept = files.map(|path| HostFile::save(path, &number.to_string(), places, journal));
        let kept = kept.collect::<Result<_, _>>()?;
        Ok(Self {
            program: program.to_path_buf(),
            folder: places.claude.path.clone(),
            is_named: places.claude.is_named,
            version: String::new(),
            files: kept,
            litter: BTreeMap::new(),
            folders: Vec::new(),
        })
    }
}

impl HostFile {
    /// Saves the bytes of a file before it is changed, under its name with `prefix` before it.
    ///
    /// # Errors
    /// It cannot be read, or its bytes cannot be kept.
    pub fn save(
        path: PathBuf,
        prefix: &str,
        places: &Places,
        journal: &mut files::Journal,
    ) -> Result<Self, InstallError> {
        journal.folder(&places.saved(), 0o700)?;
        let target = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let before = match files::read(&path)? {
            None => None,
            Some(bytes) => {
                let found = fs::metadata(&path).map_err(|source| InstallError::File {
                    doing: "look at",
                    path: path.clone(),
                    source,
                })?;
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let name = format!("{prefix}{name}");
                journal.put(&places.saved().join(&name), 0o600, Source::Bytes(&bytes))?;
                let mode = found.mode() & 0o7777;
                Some(Saved { name, mode, hash: shown(&bytes) })
            }
        };
        Ok(Self { path, target, before, after: None })
    }

    /// The bytes that were there before.
    ///
    /// # Errors
    /// They are not what was saved.
    pub fn saved(&self, places: &Places) -> Result<Option<Vec<u8>>, InstallError> {
        let Some(saved) = &self.before else { return Ok(None) };
        let path = places.saved().join(&saved.name);
        let bytes = files::read(&path)?.filter(|bytes| shown(bytes) == saved.hash);
        bytes.map(Some).ok_or_else(|| InstallError::Record {
            path,
            why: "these are not the bytes that were saved".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_as_written_and_a_strange_one_not_at_all() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("install.json");
        assert_eq!(Record::load(&path).unwrap(), None);
        let record = Record { service: true, ..Record::default() };
        record.save(&path).unwrap();
        assert_eq!(Record::load(&path).unwrap(), Some(record));
        let text = fs::read_to_string(&path).unwrap();
        let strange = text.replace("\"format\": 1,", "\"format\": 3,");
        assert_ne!(text, strange);
        let file = HostFile { path: "/c".into(), target: "/c".into(), before: None, after: None };
        let codex = CodexRecord {
            folder: "/x".into(),
            is_named: true,
            config: file,
            absent: vec!["/x".into()],
        };
        let record = Record { codex: vec![codex], ..Record::default() };
        record.save(&path).unwrap();
        let found = Record::load(&path).unwrap().unwrap();
        // Who does not know of Codex must not undo the rest alone.
        assert_eq!((found.format, found.codex), (2, record.codex));
        for text in [strange, "{".to_owned(), "[]".to_owned()] {
            fs::write(&path, text).unwrap();
            assert!(matches!(Record::load(&path), Err(InstallError::Record { .. })));
        }
    }
}
