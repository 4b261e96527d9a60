//! Writing and removing files so that a failure leaves nothing half-done.
//!
//! Every change goes into a [`Journal`], which takes all of them back unless it is told to keep them.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use super::error::InstallError;

/// Where new content comes from.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// Memory.
    Bytes(&'a [u8]),
    /// Another file.
    File(&'a Path),
}

#[derive(Debug)]
enum Change {
    Made(PathBuf),
    Folder(PathBuf),
    /// `aside` holds what was at `path`.
    Moved {
        path: PathBuf,
        aside: PathBuf,
    },
}

/// The changes of one run.
#[derive(Debug, Default)]
pub struct Journal {
    changes: Vec<Change>,
    is_kept: bool,
    clean: Option<PathBuf>,
}

fn file_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> InstallError {
    move |source| InstallError::File { doing, path: path.to_path_buf(), source }
}

/// Whether something has this name, a broken link included.
#[must_use]
pub fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The content of a file; `None` if there is none.
///
/// # Errors
/// It is there and cannot be read.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, InstallError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error("read", path)(error)),
    }
}

/// Refuses a folder that is there and not ours alone, or is no folder. Those `above` our own are often
/// links of a person's dotfiles, and writable by a group that has that person only.
///
/// # Errors
/// See [`InstallError`].
pub fn check_folder(path: &Path, above: bool, me: u32) -> Result<(), InstallError> {
    let found = if above { fs::metadata(path) } else { fs::symlink_metadata(path) };
    let found = match found {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_there(path) => return Ok(()),
        Err(error) => return Err(file_error("look at", path)(error)),
    };
    let path = path.to_path_buf();
    if !found.is_dir() {
        let found = if found.is_symlink() { "a link" } else { "a file" };
        return Err(InstallError::Kind { path, found, wanted: "a folder" });
    }
    if found.uid() != me {
        return Err(InstallError::OtherUser { path, uid: found.uid() });
    }
    let mode = found.mode() & 0o7777;
    let others = if above { 0o002 } else { 0o022 };
    if mode & others != 0 {
        return Err(InstallError::Open { path, mode });
    }
    Ok(())
}

/// Writes a file beside its place and moves it there. A program that runs from there goes on.
///
/// # Errors
/// The folder is missing, not writable, or the disk is full; nothing has changed then.
pub fn replace(path: &Path, mode: u32, source: Source<'_>) -> Result<(), InstallError> {
    let beside = aside(path, "new");
    let written = write(&beside, mode, source).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _gone = fs::remove_file(&beside);
    }
    written.map_err(file_error("write", path))
}

fn write(path: &Path, mode: u32, source: Source<'_>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    match source {
        Source::Bytes(bytes) => file.write_all(bytes)?,
        Source::File(from) => {
            io::copy(&mut File::open(from)?, &mut file)?;
        }
    }
    // The umask has no say.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

fn aside(path: &Path, what: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.compactd-{what}-{}", std::process::id()))
}

/// Removes what a run that was cut short left beside the files of a folder.
pub fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_aside = name.starts_with('.')
            && (name.contains(".compactd-new-") || name.contains(".compactd-old-"));
        if is_aside {
            let _kept = fs::remove_file(entry.path());
        }
    }
}

impl Journal {
    /// A journal that keeps what it puts aside out of a folder, because somebody copies all of it
    /// before the end.
    #[must_use]
    pub fn with_clean(folder: PathBuf) -> Self {
        Self { clean: Some(folder), changes: Vec::new(), is_kept: false }
    }

    fn aside(&self, path: &Path) -> PathBuf {
        match self.clean.as_deref().and_then(|clean| Some((clean, path.strip_prefix(clean).ok()?)))
        {
            Some((clean, below)) => {
                let name = below.to_string_lossy().replace('/', "+");
                aside(&clean.with_file_name(name), "old")
            }
            None => aside(path, "old"),
        }
    }

    /// Makes a folder and what is missing above it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn folder(&mut self, path: &Path, mode: u32) -> Result<(), InstallError> {
        let missing: Vec<&Path> = path.ancestors().take_while(|path| !is_there(path)).collect();
        for folder in missing.into_iter().rev() {
            let made = DirBuilder::new().mode(mode).create(folder);
            made.map_err(file_error("make the folder", folder))?;
            self.changes.push(Change::Folder(folder.to_path_buf()));
        }
        Ok(())
    }

    /// Puts a file in place, and what was there aside.
    ///
    /// # Errors
    /// It cannot be written; nothing has changed then.
    pub fn put(&mut self, path: &Path, mode: u32, source: Source<'_>) -> Result<(), InstallError> {
        let aside = self.aside(path);
        let had = match fs::hard_link(path, &aside) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(file_error("keep a copy of", path)(error)),
        };
        if let Err(error) = replace(path, mode, source) {
            if had {
                let _gone = fs::remove_file(&aside);
            }
            return Err(error);
        }
        let path = path.to_path_buf();
        self.changes.push(if had { Change::Moved { path, aside } } else { Change::Made(path) });
        Ok(())
    }

    /// Takes a file away.
    ///
    /// # Errors
    /// It cannot be moved.
    pub fn remove(&mut self, path: &Path) -> Result<(), InstallError> {
        let aside = self.aside(path);
        fs::rename(path, &aside).map_err(file_error("remove", path))?;
        self.changes.push(Change::Moved { path: path.to_path_buf(), aside });
        Ok(())
    }

    /// The folders that were made, outer before inner.
    #[must_use]
    pub fn folders(&self) -> Vec<PathBuf> {
        let folder = |change: &Change| match change {
            Change::Folder(path) => Some(path.clone()),
            _ => None,
        };
        self.changes.iter().filter_map(folder).collect()
    }

    /// Lets everything stay as it is now.
    pub fn keep(mut self) {
        self.is_kept = true;
        for change in &self.changes {
            if let Change::Moved { aside, .. } = change {
                let _gone = fs::remove_file(aside);
            }
        }
    }

    /// Takes everything back, the last change first, and tells what is left.
    #[must_use]
    pub fn take_back(mut self) -> Vec<String> {
        self.undo()
    }

    fn undo(&mut self) -> Vec<String> {
        let mut left = Vec::new();
        for change in std::mem::take(&mut self.changes).into_iter().rev() {
            let (undone, path) = match change {
                Change::Made(path) => (fs::remove_file(&path), path),
                // What somebody else put there meanwhile keeps the folder.
                Change::Folder(path) => (remove_empty(&path), path),
                Change::Moved { path, aside } => (fs::rename(aside, &path), path),
            };
            if let Err(error) = undone
                && error.kind() != io::ErrorKind::NotFound
            {
                left.push(format!("{}: {error}", path.display()));
            }
        }
        left
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if !self.is_kept {
            self.undo();
        }
    }
}

/// Removes a folder if nothing is in it.
///
/// # Errors
/// It is empty and cannot be removed.
pub fn remove_empty(path: &Path) -> io::Result<()> {
    match fs::remove_dir(path) {
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::DirectoryNotEmpty
                    | io::ErrorKind::NotADirectory
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(folder: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let mut found = Vec::new();
        let mut waiting = vec![folder.to_path_buf()];
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let mode = fs::metadata(&path).unwrap().mode();
                found.push((path.clone(), mode, fs::read(&path).unwrap_or_default()));
                waiting.extend(path.is_dir().then_some(path));
            }
        }
        found.sort();
        found
    }

    fn change(home: &Path, journal: &mut Journal) {
        journal.folder(&home.join("a/b/c"), 0o755).unwrap();
        journal.put(&home.join("a/b/c/new"), 0o755, Source::Bytes(b"new")).unwrap();
        journal.put(&home.join("old"), 0o644, Source::File(&home.join("other"))).unwrap();
        journal.put(&home.join("old"), 0o600, Source::Bytes(b"twice")).unwrap_err();
        journal.remove(&home.join("other")).unwrap();
    }

    fn home() -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("old"), "old").unwrap();
        fs::set_permissions(home.path().join("old"), Permissions::from_mode(0o640)).unwrap();
        fs::write(home.path().join("other"), "other").unwrap();
        home
    }

    #[test]
    fn what_is_not_kept_is_taken_back() {
        let home = home();
        let before = tree(home.path());
        let mut journal = Journal::default();
        change(home.path(), &mut journal);
        assert_ne!(tree(home.path()), before);
        assert!(journal.take_back().is_empty());
        assert_eq!(tree(home.path()), before);
        let mut journal = Journal::default();
        change(home.path(), &mut journal);
        drop(journal);
        assert_eq!(tree(home.path()), before);
    }

    #[test]
    fn a_folder_that_is_copied_meanwhile_holds_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let clean = home.path().join("plugins/codex");
        fs::create_dir_all(clean.join("bin")).unwrap();
        for name in ["old", "gone", "bin/x"] {
            fs::write(clean.join(name), name).unwrap();
        }
        let before = tree(home.path());
        let mut journal = Journal::with_clean(clean.clone());
        journal.put(&clean.join("old"), 0o644, Source::Bytes(b"new")).unwrap();
        journal.put(&clean.join("bin/x"), 0o644, Source::Bytes(b"new")).unwrap();
        journal.remove(&clean.join("gone")).unwrap();
        let names: Vec<PathBuf> = tree(&clean).into_iter().map(|(path, ..)| path).collect();
        assert_eq!(names, ["bin", "bin/x", "old"].map(|name| clean.join(name)));
        assert!(journal.take_back().is_empty());
        assert_eq!(tree(home.path()), before);
    }

    #[test]
    fn what_is_kept_stays_and_nothing_lies_beside_it() {
        let home = home();
        let mut journal = Journal::default();
        change(home.path(), &mut journal);
        assert_eq!(journal.folders(), ["a", "a/b", "a/b/c"].map(|path| home.path().join(path)));
        journal.keep();
        let names: Vec<PathBuf> = tree(home.path())
            .into_iter()
            .map(|(path, ..)| path.strip_prefix(home.path()).unwrap().to_path_buf())
            .collect();
        assert_eq!(names, ["a", "a/b", "a/b/c", "a/b/c/new", "old"].map(PathBuf::from));
        assert_eq!(fs::read(home.path().join("old")).unwrap(), b"other");
        let mode = fs::metadata(home.path().join("a/b/c/new")).unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o755);
    }

    #[test]
    fn folders_of_others_and_open_ones_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let me = fs::metadata(home.path()).unwrap().uid();
        let folder = home.path().join("folder");
        assert!(check_folder(&folder, false, me).is_ok());
        fs::create_dir(&folder).unwrap();
        assert!(check_folder(&folder, false, me).is_ok());
        let other = check_folder(&folder, false, me + 1);
        assert!(matches!(other, Err(InstallError::OtherUser { .. })));
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(
            check_folder(&folder, false, me),
            Err(InstallError::Open { mode: 0o777, .. })
        ));
        fs::set_permissions(&folder, Permissions::from_mode(0o775)).unwrap();
        assert!(
            check_folder(&folder, true, me).is_ok() && check_folder(&folder, false, me).is_err()
        );
        let link = home.path().join("link");
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        assert!(check_folder(&link, true, me).is_ok());
        assert!(matches!(
            check_folder(&link, false, me),
            Err(InstallError::Kind { found: "a link", .. })
        ));
    }
}
