//! The follower's picture of the disk, and how it is brought up to date.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use compactd_transcript::identity::{FileId, Stat};
use compactd_transcript::layout::Roots;
use compactd_transcript::walk::{Found, list};

use super::Event;
use super::inbox::Signals;
use super::watch::{MakeWatch, Reach, Reason, Watch, WatchError};

/// A known folder.
pub(super) struct Dir {
    pub(super) id: FileId,
    pub(super) is_watched: bool,
    /// Time of its last change before it was listed.
    pub(super) mtime: SystemTime,
    /// When it was listed.
    pub(super) listed_at: SystemTime,
    pass: u64,
}

/// A known transcript.
pub(super) struct File {
    pub(super) stat: Stat,
    pass: u64,
}

pub(super) struct Tracker {
    pub(super) roots: Roots,
    signals: Signals,
    make_watch: MakeWatch,
    sink: Arc<dyn Fn(Event) + Send + Sync>,
    watch: Option<Box<dyn Watch>>,
    pub(super) files: HashMap<PathBuf, File>,
    pub(super) dirs: HashMap<PathBuf, Dir>,
    /// The one path by which a file or folder is known; others are links to it.
    paths: HashMap<FileId, PathBuf>,
    /// Folders above trees that do not exist yet.
    pub(super) anchors: HashSet<PathBuf>,
    /// Why no more is watched. Cleared at each sweep, to try again.
    limit: Option<Reason>,
    reported: Option<Reason>,
    /// Counts sweeps; what a sweep did not come across is checked for being gone.
    pass: u64,
}

/// Why something is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The system says that something happened, or that it lost count: an unchanged file is told
    /// on, and a watched folder is watched again, since its watch may be on one that is gone.
    Told,
    /// It is time to look at everything.
    Swept,
    /// It is time to look at one unwatched folder or file.
    Polled,
}

impl Tracker {
    pub(super) fn new(
        roots: Roots,
        signals: Signals,
        make_watch: MakeWatch,
        sink: Arc<dyn Fn(Event) + Send + Sync>,
    ) -> Self {
        Self {
            roots,
            signals,
            make_watch,
            sink,
            watch: None,
            files: HashMap::new(),
            dirs: HashMap::new(),
            paths: HashMap::new(),
            anchors: HashSet::new(),
            limit: None,
            reported: None,
            pass: 0,
        }
    }

    /// Looks at everything: lists all folders, tries to watch what is not watched yet.
    pub(super) fn sweep(&mut self, cause: Cause) {
        self.pass += 1;
        self.limit = None;
        if self.watch.is_none() {
            match (self.make_watch)(self.signals.clone()) {
                Ok(watch) => self.watch = Some(watch),
                Err(WatchError::Limit(reason)) => self.limit = Some(reason),
                Err(WatchError::Missing | WatchError::Denied) => {
                    self.limit = Some(Reason::Unavailable("no watcher".to_owned()));
                }
            }
        }
        for tree in self.roots.trees().to_vec() {
            self.enter(&tree.path, cause);
        }
        self.drop_missed();
        self.anchor_missing_trees();
        self.report_watching();
        self.emit(Event::SweepDone { files: self.files.len() });
    }

    /// Checks what the sweep did not come across: gone, or in a folder that cannot be listed.
    fn drop_missed(&mut self) {
        let pass = self.pass;
        let files = self.files.iter().filter(|(_, file)| file.pass != pass).map(|(path, _)| path);
        let dirs = self.dirs.iter().filter(|(_, dir)| dir.pass != pass).map(|(path, _)| path);
        for path in files.chain(dirs).cloned().collect::<Vec<_>>() {
            if is_gone(&path) {
                self.forget(&path);
            }
        }
    }

    /// Looks at one path because something may have happened to it.
    pub(super) fn look_at(&mut self, path: &Path) {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                if self.roots.enters(path) {
                    self.enter(path, Cause::Told);
                }
                if self.is_above_a_tree(path) {
                    self.anchor_missing_trees();
                }
            }
            Ok(metadata) if metadata.is_file() => {
                if let Some(place) = self.roots.place(path) {
                    let stat = Stat::of(&metadata);
                    self.note(Found::new(path.to_path_buf(), place, &stat), stat, Cause::Told);
                }
            }
            Ok(_) => {}
            Err(error) if says_gone(&error) => {
                self.forget(path);
                if self.is_above_a_tree(path) {
                    self.anchor_missing_trees();
                }
            }
            Err(error) => tracing::debug!(%error, "a changed path cannot be looked at"),
        }
    }

    /// Watches and then lists a folder and all that are below it, in this order: what is made
    /// before the watch is in the list, what is made after it is told.
    pub(super) fn enter(&mut self, path: &Path, cause: Cause) {
        let mut open = vec![path.to_path_buf()];
        while let Some(path) = open.pop() {
            let Ok(metadata) = fs::metadata(&path) else { continue };
            let stat = Stat::of(&metadata);
            if !metadata.is_dir() || !self.claim(&path, stat.id) {
                continue;
            }
            let before = self.dirs.get(&path).map(|dir| (dir.id, dir.is_watched));
            let is_watched = match before {
                Some((id, true)) if id == stat.id && cause != Cause::Told => true,
                Some((id, true)) if id != stat.id => {
                    self.unwatch(&path);
                    self.watch(&path)
                }
                _ => self.watch(&path),
            };
            let (mtime, listed_at, pass) = (stat.mtime, SystemTime::now(), self.pass);
            self.dirs.insert(path.clone(), Dir { id: stat.id, is_watched, mtime, listed_at, pass });
            let listing = list(&self.roots, &path);
            for (found, stat) in listing.files {
                self.note(found, stat, Cause::Swept);
            }
            for error in listing.problems {
                tracing::debug!(%error, "a folder or file cannot be looked at");
            }
            for (dir, _) in listing.dirs {
                if cause != Cause::Polled || !self.dirs.contains_key(&dir) {
                    open.push(dir);
                }
            }
        }
    }

    /// Says whether `path` is the name to know `id` by. A name that no longer leads there gives way.
    fn claim(&mut self, path: &Path, id: FileId) -> bool {
        if let Some(known) = self.paths.get(&id).filter(|known| *known != path).cloned() {
            if fs::metadata(&known).is_ok_and(|metadata| Stat::of(&metadata).id == id) {
                return false;
            }
            if is_gone(&known) {
                self.forget(&known);
            }
        }
        let before = self
            .dirs
            .get(path)
            .map(|dir| dir.id)
            .or_else(|| self.files.get(path).map(|file| file.stat.id));
        if let Some(before) = before.filter(|before| *before != id) {
            self.release(path, before);
        }
        self.paths.insert(id, path.to_path_buf());
        true
    }

    fn release(&mut self, path: &Path, id: FileId) {
        if self.paths.get(&id).is_some_and(|known| known == path) {
            self.paths.remove(&id);
        }
    }

    /// Takes note of a transcript that was just seen.
    fn note(&mut self, found: Found, stat: Stat, cause: Cause) {
        if !self.claim(&found.path, stat.id) {
            // A link: what happened to it, happened to the file that it leads to.
            if let Some(known) = self.paths.get(&stat.id).cloned()
                && self.files.contains_key(&known)
            {
                self.restat(&known, stat, cause);
            }
            return;
        }
        if self.files.contains_key(&found.path) {
            self.restat(&found.path, stat, cause);
        } else {
            self.files.insert(found.path.clone(), File { stat, pass: self.pass });
            self.emit(Event::Found(found));
        }
    }

    fn restat(&mut self, path: &Path, stat: Stat, cause: Cause) {
        let pass = self.pass;
        let Some(file) = self.files.get_mut(path) else { return };
        let has_changed = file.stat != stat;
        *file = File { stat, pass };
        if has_changed || cause == Cause::Told {
            self.emit(Event::Changed(path.to_path_buf()));
        }
    }

    /// Compares a known transcript with what the system says now.
    pub(super) fn check(&mut self, path: &Path) {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => {
                let stat = Stat::of(&metadata);
                if let Some(place) = self.roots.place(path) {
                    self.note(Found::new(path.to_path_buf(), place, &stat), stat, Cause::Polled);
                }
            }
            Ok(_) => self.forget(path),
            Err(error) if says_gone(&error) => self.forget(path),
            Err(error) => tracing::debug!(%error, "a transcript cannot be looked at"),
        }
    }

    /// Drops what is known of a path that is gone, and of all below it.
    pub(super) fn forget(&mut self, path: &Path) {
        if let Some(file) = self.files.remove(path) {
            self.release(path, file.stat.id);
            self.emit(Event::Gone(path.to_path_buf()));
        }
        if !self.dirs.contains_key(path) {
            return;
        }
        let below = |known: &&PathBuf| known.starts_with(path);
        for dir in self.dirs.keys().filter(below).cloned().collect::<Vec<_>>() {
            self.unwatch(&dir);
            if let Some(known) = self.dirs.remove(&dir) {
                self.release(&dir, known.id);
            }
        }
        for file in self.files.keys().filter(below).cloned().collect::<Vec<_>>() {
            self.forget(&file);
        }
    }

    fn watch(&mut self, dir: &Path) -> bool {
        let is_tree = self.roots.trees().iter().any(|tree| tree.path == dir);
        let Some(watch) = &mut self.watch else { return false };
        if watch.covers_below() && !is_tree {
            return true;
        }
        let reach = if is_tree { Reach::Below } else { Reach::Entries };
        self.watch_with(dir, reach)
    }

    pub(super) fn watch_with(&mut self, dir: &Path, reach: Reach) -> bool {
        let Some(watch) = self.watch.as_mut().filter(|_| self.limit.is_none()) else {
            return false;
        };
        match watch.watch(dir, reach) {
            Ok(()) => true,
            Err(WatchError::Missing | WatchError::Denied) => false,
            Err(WatchError::Limit(reason)) => {
                self.limit = Some(reason);
                false
            }
        }
    }

    pub(super) fn unwatch(&mut self, dir: &Path) {
        if let Some(watch) = &mut self.watch {
            watch.unwatch(dir);
        }
    }

    /// The watcher failed by itself, behind our back.
    pub(super) fn watch_failed(&mut self, reason: Reason) {
        self.limit = Some(reason);
    }

    /// Some changes would go unseen until the next sweep.
    pub(super) fn must_poll(&self) -> bool {
        self.watch.is_none() || self.limit.is_some()
    }

    /// Tells of a change in what is watched, once.
    pub(super) fn report_watching(&mut self) {
        if self.reported == self.limit {
            return;
        }
        self.reported.clone_from(&self.limit);
        match self.limit.clone() {
            Some(reason) => {
                tracing::warn!(reason = reason.name(), "some changes are noticed by polling only");
                self.emit(Event::Degraded { reason });
            }
            None => self.emit(Event::Restored),
        }
    }

    fn emit(&self, event: Event) {
        (self.sink)(event);
    }
}

fn says_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn is_gone(path: &Path) -> bool {
    fs::metadata(path).is_err_and(|error| says_gone(&error))
}
