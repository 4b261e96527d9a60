//! The files of texts that are kept for after a compaction: for each thread a folder with `thread.json`,
//! which says how far they are, and one file for each text.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{Store, StoreError, own_folder, read, write};
use crate::sessions::SessionKey;

/// A file that is larger is none of ours.
const MAX_TEXT_BYTES: u64 = 1 << 20;
/// Name of the file that says how far the texts are.
const THREAD: &str = "thread.json";
/// Delivered texts stay for so long, for whoever wants to look.
const DELIVERED_STAYS: Duration = Duration::from_secs(7 * 86_400);
/// Texts that nobody took stay for so long.
const OPEN_STAYS: Duration = Duration::from_secs(30 * 86_400);

fn text_name(number: u64) -> String {
    format!("{number}.md")
}

/// Whether a file of this name is one that we write here.
fn is_ours(name: &str) -> bool {
    let number = name.strip_suffix(".md").and_then(|number| number.parse::<u64>().ok());
    name == THREAD || name.starts_with(super::NEW) || number.is_some_and(|n| text_name(n) == name)
}

impl Store {
    /// What is kept of the texts of a thread.
    ///
    /// # Errors
    /// The file is there and cannot be read; it is left as it is.
    pub fn recovery(&self, key: &SessionKey) -> Result<Option<Vec<u8>>, StoreError> {
        match &self.state {
            Some(_) => read(&self.recovery_folder(key)?.join(THREAD), MAX_TEXT_BYTES),
            None => Ok(None),
        }
    }

    /// Writes what is kept of the texts of a thread.
    ///
    /// # Errors
    /// There is no state folder, or the file cannot be written; what was there stays.
    pub fn save_recovery(&self, key: &SessionKey, bytes: &[u8]) -> Result<(), StoreError> {
        write(&self.recovery_folder(key)?.join(THREAD), bytes)
    }

    /// A text.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn recovery_text(
        &self,
        key: &SessionKey,
        number: u64,
    ) -> Result<Option<String>, StoreError> {
        let path = self.recovery_folder(key)?.join(text_name(number));
        let text = read(&path, MAX_TEXT_BYTES)?.map(String::from_utf8).transpose();
        text.map_err(io::Error::other).map_err(StoreError::of("read", &path))
    }

    /// Writes a text.
    ///
    /// # Errors
    /// As [`Self::save_recovery`].
    pub fn save_recovery_text(
        &self,
        key: &SessionKey,
        number: u64,
        text: &str,
    ) -> Result<(), StoreError> {
        write(&self.recovery_folder(key)?.join(text_name(number)), text.as_bytes())
    }

    /// Removes a text.
    ///
    /// # Errors
    /// It is there and stays.
    pub fn remove_recovery_text(&self, key: &SessionKey, number: u64) -> Result<(), StoreError> {
        let path = self.recovery_folder(key)?.join(text_name(number));
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::of("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Removes the texts of threads that did not change for a week, or for 30 days where `is_open` says of
    /// the bytes of a thread that something in it was never delivered. What is none of ours stays. Says
    /// whether anything was removed.
    pub fn clean_recovery(&self, is_open: impl Fn(&[u8]) -> bool, now: SystemTime) -> bool {
        let Some(base) = self.state.as_deref().map(base) else { return false };
        if own_folder(&base).is_err() {
            return false;
        }
        let mut has_removed = false;
        for entry in fs::read_dir(&base).into_iter().flatten().flatten() {
            match clean_folder(&entry.path(), &is_open, now) {
                Ok(removed) => has_removed |= removed,
                Err(error) => tracing::warn!(%error, "old texts stay"),
            }
        }
        has_removed
    }

    /// The folder with the texts of a thread. A link in its place could lead anywhere: it is refused, as is
    /// another user's folder.
    fn recovery_folder(&self, key: &SessionKey) -> Result<PathBuf, StoreError> {
        let Some(state) = &self.state else {
            let missing = io::Error::from(io::ErrorKind::NotFound);
            return Err(StoreError::of("keep texts without a state folder for", key.id.as_ref())(
                missing,
            ));
        };
        let base = base(state);
        let folder = base.join(Self::name(key));
        if own_folder(&base)? {
            own_folder(&folder)?;
        }
        Ok(folder)
    }
}

fn base(state: &Path) -> PathBuf {
    state.join("recovery")
}

fn clean_folder(
    folder: &Path,
    is_open: impl Fn(&[u8]) -> bool,
    now: SystemTime,
) -> Result<bool, StoreError> {
    if own_folder(folder).is_err() {
        return Ok(false);
    }
    let thread = folder.join(THREAD);
    let changed = match fs::symlink_metadata(&thread) {
        Ok(metadata) => metadata.modified().map_err(StoreError::of("look at", &thread))?,
        // Texts without it were left by a crash.
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::symlink_metadata(folder)
            .and_then(|metadata| metadata.modified())
            .map_err(StoreError::of("look at", folder))?,
        Err(error) => return Err(StoreError::of("look at", &thread)(error)),
    };
    let age = now.duration_since(changed).unwrap_or_default();
    if age <= DELIVERED_STAYS {
        return Ok(false);
    }
    let is_open = read(&thread, MAX_TEXT_BYTES)?.is_some_and(|bytes| is_open(&bytes));
    if is_open && age <= OPEN_STAYS {
        return Ok(false);
    }
    remove_folder(folder).map_err(StoreError::of("remove the texts in", folder))?;
    Ok(true)
}

fn remove_folder(folder: &Path) -> io::Result<()> {
    let mut others = 0;
    for entry in fs::read_dir(folder)?.flatten() {
        match entry.file_name().to_str() {
            Some(name) if is_ours(name) => fs::remove_file(entry.path())?,
            _ => others += 1,
        }
    }
    if others == 0 { fs::remove_dir(folder) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use compactd_core::record::Host;

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn key(id: &str) -> SessionKey {
        SessionKey { host: Host::Codex, id: id.to_owned() }
    }

    #[test]
    fn files_are_private_and_go_when_they_are_old() {
        let state = tempfile::tempdir().unwrap();
        let store = Store::new(None, Some(state.path().to_path_buf()));
        for id in ["open", "done"] {
            store.save_recovery_text(&key(id), 2, "text").unwrap();
            store.save_recovery(&key(id), id.as_bytes()).unwrap();
        }
        assert_eq!(store.recovery_text(&key("open"), 2).unwrap().unwrap(), "text");
        assert_eq!(store.recovery_text(&key("open"), 3).unwrap(), None);
        assert_eq!(store.recovery(&key("done")).unwrap().unwrap(), b"done");
        let base = base(state.path());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&base.join("codex-open")), 0o700);
        assert_eq!(mode(&base.join("codex-open/2.md")), 0o600);
        assert_eq!(mode(&base.join("codex-open/thread.json")), 0o600);
        fs::write(base.join("codex-done/notes.txt"), "x").unwrap();
        let clean = |days: u32| {
            store.clean_recovery(|bytes| bytes == b"open", SystemTime::now() + DAY * days)
        };
        let names = |id: &str| fs::read_dir(base.join(format!("codex-{id}"))).unwrap().count();
        assert!(!clean(6));
        assert_eq!((names("open"), names("done")), (2, 3));
        assert!(clean(8));
        assert_eq!((names("open"), names("done")), (2, 1), "what is not ours stays");
        assert!(clean(31));
        assert!(!base.join("codex-open").exists());
        store.remove_recovery_text(&key("open"), 2).unwrap();
    }

    #[test]
    fn a_link_in_the_place_of_a_folder_is_refused() {
        let state = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("1.md"), "precious").unwrap();
        let store = Store::new(None, Some(state.path().to_path_buf()));
        fs::create_dir(base(state.path())).unwrap();
        symlink(elsewhere.path(), base(state.path()).join("codex-a")).unwrap();
        assert!(store.save_recovery_text(&key("a"), 1, "x").is_err());
        assert!(store.remove_recovery_text(&key("a"), 1).is_err());
        assert!(!store.clean_recovery(|_| false, SystemTime::now() + DAY * 90));
        assert_eq!(fs::read_to_string(elsewhere.path().join("1.md")).unwrap(), "precious");
        assert!(Store::new(None, None).save_recovery(&key("a"), b"x").is_err());
        assert_eq!(Store::new(None, None).recovery(&key("a")).unwrap(), None);
    }
}
