//! Lists the transcripts that exist now. Problems are collected: one unreadable folder hides no
//! other file.

use std::collections::HashSet;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use compactd_core::record::Host;

use crate::error::Error;
use crate::identity::{FileId, Stat};
use crate::layout::{Place, Rollout, Roots, Tree};

/// A transcript that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where it lies.
    pub path: PathBuf,
    /// The program that writes it.
    pub host: Host,
    /// The session (Claude Code) or thread (Codex).
    pub key: String,
    /// The sub-agent whose transcript it is, where the path tells.
    pub agent: Option<String>,
    /// What else the name of a rollout tells (Codex).
    pub rollout: Option<Rollout>,
    /// Bytes on disk.
    pub size: u64,
    /// Last change of the content.
    pub mtime: SystemTime,
    /// Device and inode.
    pub id: FileId,
}

impl Found {
    /// Joins what the path and the system say.
    #[must_use]
    pub fn new(path: PathBuf, place: Place, stat: &Stat) -> Self {
        let Place { host, key, agent, rollout } = place;
        Self { path, host, key, agent, rollout, size: stat.size, mtime: stat.mtime, id: stat.id }
    }
}

/// What lies directly in one directory.
#[derive(Debug, Default)]
pub struct Listing {
    /// Transcripts.
    pub files: Vec<(Found, Stat)>,
    /// Directories that can hold more, links to directories included.
    pub dirs: Vec<(PathBuf, FileId)>,
    /// What could not be looked at.
    pub problems: Vec<Error>,
}

/// Lists one directory inside the roots.
#[must_use]
pub fn list(roots: &Roots, dir: &Path) -> Listing {
    let mut listing = Listing::default();
    let Some((tree, parts)) = roots.locate(dir) else { return listing };
    match fs::read_dir(dir) {
        Ok(entries) => {
            for entry in entries {
                let seen = entry
                    .map_err(|e| Error::from_io(dir, "list", e))
                    .and_then(|entry| listing.add(tree, &parts, &entry));
                match seen {
                    // It went away since: no problem.
                    Ok(()) | Err(Error::NotFound { .. }) => {}
                    Err(error) => listing.problems.push(error),
                }
            }
        }
        Err(error) => listing.problems.push(Error::from_io(dir, "list", error)),
    }
    listing
}

impl Listing {
    fn add(&mut self, tree: &Tree, dir: &[&str], entry: &DirEntry) -> Result<(), Error> {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { return Ok(()) };
        let parts = [dir, &[name]].concat();
        let place = tree.place(&parts);
        let can_enter = tree.enters(&parts);
        if place.is_none() && !can_enter {
            return Ok(());
        }
        let path = entry.path();
        let kind = entry.file_type().map_err(|e| Error::from_io(&path, "stat", e))?;
        if !(kind.is_dir() || kind.is_symlink() || (kind.is_file() && place.is_some())) {
            return Ok(());
        }
        let found = if kind.is_symlink() { fs::metadata(&path) } else { entry.metadata() };
        let metadata = found.map_err(|e| Error::from_io(&path, "stat", e))?;
        let stat = Stat::of(&metadata);
        if metadata.is_dir() {
            if can_enter {
                self.dirs.push((path, stat.id));
            }
        } else if metadata.is_file()
            && let Some(place) = place
        {
            self.files.push((Found::new(path, place, &stat), stat));
        }
        Ok(())
    }
}

/// All transcripts and what could not be looked at.
#[derive(Debug, Default)]
pub struct Walk {
    /// Transcripts, in order of their paths.
    pub found: Vec<Found>,
    /// Folders and files that could not be read.
    pub problems: Vec<Error>,
}

/// Lists all transcripts inside the roots. A tree that does not exist is empty; a directory that
/// is reached twice (links) is listed once.
#[must_use]
pub fn walk(roots: &Roots) -> Walk {
    let mut walk = Walk::default();
    let mut seen = HashSet::new();
    let mut open: Vec<PathBuf> = Vec::new();
    for tree in roots.trees() {
        match fs::metadata(&tree.path) {
            Ok(metadata) if metadata.is_dir() && seen.insert(Stat::of(&metadata).id) => {
                open.push(tree.path.clone());
            }
            Ok(_) => {}
            Err(error) => match Error::from_io(&tree.path, "list", error) {
                Error::NotFound { .. } => {}
                error => walk.problems.push(error),
            },
        }
    }
    while let Some(dir) = open.pop() {
        let listing = list(roots, &dir);
        walk.found.extend(listing.files.into_iter().map(|(found, _)| found));
        walk.problems.extend(listing.problems);
        open.extend(
            listing.dirs.into_iter().filter(|(_, id)| seen.insert(*id)).map(|(dir, _)| dir),
        );
    }
    walk.found.sort_by(|a, b| a.path.cmp(&b.path));
    walk
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn put(dir: &Path, path: &str) {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "{}\n").unwrap();
    }

    #[test]
    fn finds_both_hosts_files_once_and_survives_loops() {
        let dir = tempfile::tempdir().unwrap();
        let rollout = "rollout-2026-11-30T08-56-12-01a22bab-7fc4-7621-9bf6-c6757fc8279e.jsonl";
        put(dir.path(), ".claude/projects/-w/s.jsonl");
        put(dir.path(), ".claude/projects/-w/s/subagents/agent-a.jsonl");
        put(dir.path(), ".claude/projects/-w/s/tool-results/x.jsonl");
        put(dir.path(), ".claude/projects/-w/notes.txt");
        put(dir.path(), &format!(".codex/sessions/2026/11/30/{rollout}.zst"));
        put(dir.path(), &format!(".codex/archived_sessions/{rollout}"));
        put(dir.path(), "elsewhere/t.jsonl");
        let projects = dir.path().join(".claude/projects");
        symlink("..", projects.join("-w/loop")).unwrap();
        symlink(dir.path().join("elsewhere"), projects.join("-linked")).unwrap();
        symlink("/nowhere", projects.join("-w/dangling.jsonl")).unwrap();
        symlink("/dev/zero", projects.join("-w/zero.jsonl")).unwrap();
        let roots = Roots::new([dir.path().join(".claude")], [dir.path().join(".codex")]);
        let walk = walk(&roots);
        let names: Vec<_> = walk
            .found
            .iter()
            .map(|f| f.path.strip_prefix(dir.path()).unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(
            names,
            [
                ".claude/projects/-linked/t.jsonl".to_owned(),
                ".claude/projects/-w/s/subagents/agent-a.jsonl".to_owned(),
                ".claude/projects/-w/s.jsonl".to_owned(),
                format!(".codex/archived_sessions/{rollout}"),
                format!(".codex/sessions/2026/11/30/{rollout}.zst"),
            ]
        );
        assert!(walk.problems.is_empty(), "{:?}", walk.problems);
        assert_eq!(walk.found[2].size, 3);
    }

    #[test]
    fn missing_roots_are_empty_and_a_broken_one_hides_no_other() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "a/projects/-w/s.jsonl");
        symlink("loop", dir.path().join("loop")).unwrap();
        let missing = dir.path().join("none");
        let roots = Roots::new([dir.path().join("a"), missing, dir.path().join("loop")], []);
        let walk = walk(&roots);
        assert_eq!(walk.found.len(), 1);
        assert_eq!(walk.problems.len(), 1);
    }
}
