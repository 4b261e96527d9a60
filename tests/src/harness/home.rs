//! A home of its own for each test, and a watch over its transcripts: nobody but the test may
//! change one.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use compactd_core::hash::hash;
use tempfile::TempDir;

/// The folder with the recorded sessions of a host (`claude-code`, `codex`) or of the API.
#[must_use]
pub fn fixtures(of: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(of)
}

/// All files below a folder, by path; none if there is no such folder.
#[must_use]
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut open) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { open.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

/// A home. At its end the transcripts in it must be as the test left them.
#[derive(Debug)]
pub struct Home {
    dir: TempDir,
    transcripts: Mutex<BTreeMap<PathBuf, u64>>,
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    #[must_use]
    pub fn new() -> Self {
        // Short, because a socket's path may have 107 bytes.
        let dir = tempfile::Builder::new().prefix("cd-").tempdir().unwrap();
        Self { dir, transcripts: Mutex::default() }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    #[must_use]
    pub fn join(&self, path: impl AsRef<Path>) -> PathBuf {
        self.path().join(path)
    }

    /// Where the transcript of a session of Claude Code is.
    #[must_use]
    pub fn claude(&self, id: &str) -> PathBuf {
        self.join(format!(".claude/projects/-work-app/{id}.jsonl"))
    }

    /// Where the transcript of a sub-agent is.
    #[must_use]
    pub fn agent(&self, session: &str, agent: &str) -> PathBuf {
        self.join(format!(".claude/projects/-work-app/{session}/subagents/agent-{agent}.jsonl"))
    }

    /// Where the rollout of a Codex thread is.
    #[must_use]
    pub fn codex(&self, thread: &str) -> PathBuf {
        self.join(format!(".codex/sessions/2026/11/30/rollout-2026-11-30T08-00-00-{thread}.jsonl"))
    }

    fn note(&self, path: &Path) {
        let mut transcripts = self.transcripts.lock().unwrap();
        match fs::read(path) {
            Ok(bytes) => transcripts.insert(path.to_path_buf(), hash(&bytes)),
            Err(_) => transcripts.remove(path),
        };
    }

    /// Puts a file there, with the folders above it.
    pub fn put(&self, path: &Path, bytes: impl AsRef<[u8]>) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self.note(path);
    }

    /// Appends to a file, in one write.
    pub fn append(&self, path: &Path, bytes: impl AsRef<[u8]>) {
        let mut file = fs::File::options().append(true).open(path).unwrap();
        file.write_all(bytes.as_ref()).unwrap();
        self.note(path);
    }

    /// Cuts a file.
    pub fn truncate(&self, path: &Path, length: u64) {
        fs::File::options().write(true).open(path).unwrap().set_len(length).unwrap();
        self.note(path);
    }

    /// Puts another file in the place of one, as editors do.
    pub fn replace(&self, path: &Path, bytes: impl AsRef<[u8]>) {
        let new = path.with_extension("new");
        fs::write(&new, bytes).unwrap();
        fs::rename(&new, path).unwrap();
        self.note(path);
    }

    /// Moves a file.
    pub fn rename(&self, from: &Path, to: &Path) {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::rename(from, to).unwrap();
        self.note(from);
        self.note(to);
    }

    /// Removes a file.
    pub fn remove(&self, path: &Path) {
        fs::remove_file(path).unwrap();
        self.note(path);
    }

    /// Copies the transcripts below a folder; each ends with a newline there, because the daemon takes
    /// whole lines only. Returns where they are.
    pub fn copy(&self, from: &Path, to: &Path) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let there = to.join(path.file_name().unwrap());
            if path.is_dir() {
                files.extend(self.copy(&path, &there));
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                let mut bytes = fs::read(&path).unwrap();
                if !bytes.ends_with(b"\n") {
                    bytes.push(b'\n');
                }
                self.put(&there, bytes);
                files.push(there);
            }
        }
        files.sort();
        files
    }

    /// Copies a recorded session of Claude Code.
    pub fn recorded_claude(&self, name: &str) -> Vec<PathBuf> {
        let from = fixtures("claude-code").join(name);
        self.copy(&from, &self.join(format!(".claude/projects/-home-dev-{name}")))
    }

    /// Copies the recorded rollouts of a case of Codex.
    pub fn recorded_codex(&self, name: &str) -> Vec<PathBuf> {
        self.copy(&fixtures("codex").join(name), &self.join(".codex"))
    }

    /// That the transcripts are as the test left them.
    #[track_caller]
    pub fn assert_untouched(&self) {
        for (path, hashed) in &*self.transcripts.lock().unwrap() {
            let now = fs::read(path).map(|bytes| hash(&bytes)).ok();
            assert_eq!(now, Some(*hashed), "{} was touched", path.display());
        }
    }

    /// Files in the folder of the snapshots.
    #[must_use]
    pub fn snapshots(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.join(".cache/compactd/index"));
        let mut files: Vec<PathBuf> =
            entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.assert_untouched();
        }
    }
}
