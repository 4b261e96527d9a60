//! Trees that do not exist yet: the nearest folder above each is watched until it does.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::tracker::{Cause, Tracker};
use super::watch::Reach;

/// Looks at a path that changes all the time end here; the next sweep goes on.
const MAX_LOOKS: usize = 64;

impl Tracker {
    /// Enters trees that exist by now, and watches above those that do not.
    pub(super) fn anchor_missing_trees(&mut self) {
        let mut needed = HashSet::new();
        for tree in self.roots.trees().to_vec() {
            if !self.dirs.contains_key(&tree.path) {
                self.anchor(&tree.path, &mut needed);
            }
        }
        for anchor in self.anchors.difference(&needed).cloned().collect::<Vec<_>>() {
            self.anchors.remove(&anchor);
            if !self.dirs.contains_key(&anchor) {
                self.unwatch(&anchor);
            }
        }
    }

    fn anchor(&mut self, tree: &Path, needed: &mut HashSet<PathBuf>) {
        let mut watched = None;
        for _ in 0..MAX_LOOKS {
            let Some(nearest) = tree.ancestors().find(|above| above.is_dir()) else { return };
            if nearest == tree {
                self.enter(tree, Cause::Told);
                return;
            }
            // The next folder can be made between the look and the watch: look again after it.
            if watched == Some(nearest) {
                return;
            }
            watched = Some(nearest);
            if self.watch_with(nearest, Reach::Entries) {
                self.anchors.insert(nearest.to_path_buf());
                needed.insert(nearest.to_path_buf());
            }
        }
    }

    /// Whether a change at `path` can be about a tree that is missing.
    pub(super) fn is_above_a_tree(&self, path: &Path) -> bool {
        self.roots.trees().iter().any(|tree| tree.path.starts_with(path))
    }
}
