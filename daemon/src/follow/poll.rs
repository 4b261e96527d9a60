//! Looking at what cannot be watched: one `stat` for each known file and folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use compactd_transcript::identity::Stat;

use super::tracker::{Cause, Dir, Tracker};

/// A folder changed within this time of its listing may have changed after it, too: file systems
/// keep time in ticks.
const TICK: Duration = Duration::from_millis(100);

impl Tracker {
    /// Looks at the folders that are not watched and at the files in them.
    pub(super) fn poll(&mut self) {
        let is_unwatched = |dir: &Path| self.dirs.get(dir).is_some_and(|dir| !dir.is_watched);
        let files: Vec<PathBuf> = self
            .files
            .keys()
            .filter(|file| file.parent().is_some_and(is_unwatched))
            .cloned()
            .collect();
        let dirs: Vec<PathBuf> = self
            .dirs
            .iter()
            .filter(|(path, dir)| !dir.is_watched && has_new_entries(path, dir))
            .map(|(path, _)| path.clone())
            .collect();
        for file in files {
            self.check(&file);
        }
        for dir in dirs {
            if dir.is_dir() { self.enter(&dir, Cause::Polled) } else { self.forget(&dir) }
        }
        self.anchor_missing_trees();
    }
}

fn has_new_entries(path: &Path, dir: &Dir) -> bool {
    let Ok(metadata) = fs::metadata(path) else { return true };
    let stat = Stat::of(&metadata);
    stat.id != dir.id
        || stat.mtime != dir.mtime
        || dir.listed_at.duration_since(dir.mtime).unwrap_or_default() < TICK
}
