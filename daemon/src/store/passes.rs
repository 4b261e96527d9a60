//! The files of passes: for each a small one that follows what becomes of it, and one with its results
//! that is written once. What stands there and cannot be read is never written over.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use compactd_api::passes;
use compactd_core::record::Host;

use super::{NEW, Store, StoreError, is_own_folder, own_folder, read, write};
use crate::sessions::SessionKey;

/// A file of a pass that is larger is none of ours: the largest contexts have some thousand results.
const MAX_PASS_BYTES: u64 = 64 << 20;

/// Passes of a session whose transcript is gone stay for so long: it may come back.
const GONE_STAYS: Duration = Duration::from_secs(30 * 86_400);
/// The file whose time says since when the transcript is gone.
const GONE: &str = "gone";

impl Store {
    /// Numbers of the passes that are kept of a session, in no order; those of other versions too.
    ///
    /// # Errors
    /// The folder is there and cannot be listed, or is none of ours.
    pub fn pass_numbers(&self, key: &SessionKey) -> Result<Vec<u64>, StoreError> {
        let Some(folder) = self.passes_folder(key)? else { return Ok(Vec::new()) };
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(StoreError::of("list", &folder))?,
        };
        let name = |entry: fs::DirEntry| passes::number_of(entry.file_name().to_str()?);
        Ok(entries.flatten().filter_map(name).collect())
    }

    /// The bytes of a pass, without its results.
    ///
    /// # Errors
    /// The file is there and cannot be read; it is left as it is.
    pub fn pass(&self, key: &SessionKey, number: u64) -> Result<Option<Vec<u8>>, StoreError> {
        match self.passes_folder(key)? {
            Some(folder) => read(&folder.join(passes::file_name(number)), MAX_PASS_BYTES),
            None => Ok(None),
        }
    }

    /// The bytes of the results of a pass.
    ///
    /// # Errors
    /// The file is there and cannot be read; it is left as it is.
    pub fn results(&self, key: &SessionKey, number: u64) -> Result<Option<Vec<u8>>, StoreError> {
        match self.passes_folder(key)? {
            Some(folder) => read(&folder.join(passes::results_name(number)), MAX_PASS_BYTES),
            None => Ok(None),
        }
    }

    /// Writes a pass; false if passes are not kept.
    ///
    /// # Errors
    /// The file cannot be written, or cannot be read as one of ours; what was there stays.
    pub fn save_pass(
        &self,
        key: &SessionKey,
        number: u64,
        bytes: impl FnOnce() -> Vec<u8>,
    ) -> Result<bool, StoreError> {
        self.save_file(key, &passes::file_name(number), |old| passes::parse(old).map(drop), bytes)
    }

    /// Writes the results of a pass; false if passes are not kept.
    ///
    /// # Errors
    /// As [`Self::save_pass`].
    pub fn save_results(
        &self,
        key: &SessionKey,
        number: u64,
        bytes: impl FnOnce() -> Vec<u8>,
    ) -> Result<bool, StoreError> {
        let is_ours = |old: &[u8]| passes::parse_results(old).map(drop);
        self.save_file(key, &passes::results_name(number), is_ours, bytes)
    }

    fn save_file(
        &self,
        key: &SessionKey,
        name: &str,
        is_ours: impl FnOnce(&[u8]) -> Result<(), passes::PassError>,
        bytes: impl FnOnce() -> Vec<u8>,
    ) -> Result<bool, StoreError> {
        let Some(folder) = self.passes_folder(key)? else { return Ok(false) };
        let path = folder.join(name);
        replaceable(&path, is_ours)?;
        write(&path, &bytes())?;
        Ok(true)
    }

    /// Removes a pass with its results.
    ///
    /// # Errors
    /// It is there and stays.
    pub fn remove_pass(&self, key: &SessionKey, number: u64) -> Result<(), StoreError> {
        let Some(folder) = self.passes_folder(key)? else { return Ok(()) };
        for name in [passes::file_name(number), passes::results_name(number)] {
            let path = folder.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(StoreError::of("remove", &path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes the passes of sessions whose transcript has been gone for 30 days: those whose
    /// [`Self::name`] `is_known` did not know since then, however often this was called. `is_whole` says of
    /// a host whether all folders in which its transcripts are looked for are there: a disk that is
    /// not mounted takes no passes along. What is none of ours stays.
    pub fn clean_passes(
        &self,
        is_known: impl Fn(&str) -> bool,
        is_whole: impl Fn(Host) -> bool,
        now: SystemTime,
    ) {
        let Some(base) = self.state.as_deref().map(passes::base) else { return };
        if !fs::symlink_metadata(&base).is_ok_and(|metadata| is_own_folder(&metadata)) {
            return;
        }
        let whole: Vec<String> = [Host::Claude, Host::Codex]
            .into_iter()
            .filter(|host| is_whole(*host))
            .map(|host| format!("{}-", host.name()))
            .collect();
        for entry in fs::read_dir(&base).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let folder = entry.path();
            let is_ours =
                fs::symlink_metadata(&folder).is_ok_and(|metadata| is_own_folder(&metadata));
            if !is_ours || !whole.iter().any(|host| name.starts_with(host)) {
                continue;
            }
            if let Err(error) = clean_folder(&folder, is_known(name), now) {
                tracing::warn!(%error, "old passes stay");
            }
        }
    }

    /// The folder with the passes of a session; an error where something else is in its place.
    fn passes_folder(&self, key: &SessionKey) -> Result<Option<PathBuf>, StoreError> {
        let Some(state) = &self.state else { return Ok(None) };
        let folder = passes::folder(state, key.host, &key.id);
        if own_folder(&passes::base(state))? {
            own_folder(&folder)?;
        }
        Ok(Some(folder))
    }
}

/// Notes that the transcript is gone, or is there again; removes the passes when it is gone for long.
fn clean_folder(folder: &Path, is_known: bool, now: SystemTime) -> Result<(), StoreError> {
    let mark = folder.join(GONE);
    let since = match fs::symlink_metadata(&mark) {
        Ok(metadata) if !metadata.is_file() => return Ok(()),
        Ok(metadata) => Some(metadata.modified().map_err(StoreError::of("look at", &mark))?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(StoreError::of("look at", &mark)(error)),
    };
    match (is_known, since) {
        (true, None) => Ok(()),
        (true, Some(_)) => fs::remove_file(&mark).map_err(StoreError::of("remove", &mark)),
        (false, None) => write(&mark, b""),
        (false, Some(since)) if now.duration_since(since).is_ok_and(|gone| gone > GONE_STAYS) => {
            remove_folder(folder).map_err(StoreError::of("remove the passes in", folder))
        }
        (false, Some(_)) => Ok(()),
    }
}

/// Removes what we wrote, and the folder if nothing else is in it. The mark goes last: what was cut off is
/// taken up again.
fn remove_folder(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        let results = name.strip_suffix(".results.json").map(|number| format!("{number}.json"));
        let is_pass = passes::number_of(results.as_deref().unwrap_or(name)).is_some();
        if is_pass || name.starts_with(NEW) {
            fs::remove_file(entry.path())?;
        }
    }
    let others = fs::read_dir(folder)?.flatten().filter(|entry| entry.file_name() != GONE).count();
    if others == 0 {
        fs::remove_file(folder.join(GONE))?;
        fs::remove_dir(folder)?;
    }
    Ok(())
}

/// Whether a new file may take the place of what is at `path`: nothing, a file that `parse` knows, or a
/// link or pipe (only itself goes, nothing that it leads to).
fn replaceable(
    path: &Path,
    parse: impl FnOnce(&[u8]) -> Result<(), passes::PassError>,
) -> Result<(), StoreError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StoreError::of("look at", path)(error)),
        Ok(metadata) if !metadata.is_file() => Ok(()),
        Ok(_) => {
            let Some(bytes) = read(path, MAX_PASS_BYTES)? else { return Ok(()) };
            parse(&bytes).map_err(io::Error::other).map_err(StoreError::of("write over", path))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn passes_go_when_the_transcript_is_gone_for_long() {
        let state = tempfile::tempdir().unwrap();
        let store = Store::new(None, Some(state.path().to_path_buf()));
        let base = passes::base(state.path());
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("1.json"), "precious").unwrap();
        let key = |id: &str| SessionKey { host: Host::Claude, id: id.to_owned() };
        for id in ["gone", "back", "known"] {
            assert!(store.save_pass(&key(id), 1, || b"{}".to_vec()).unwrap());
            assert!(store.save_results(&key(id), 1, || b"{}".to_vec()).unwrap());
        }
        fs::create_dir(base.join("other")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), base.join("claude-link")).unwrap();
        store.save_pass(&key("mixed"), 1, || b"{}".to_vec()).unwrap();
        fs::write(base.join("claude-mixed/notes.txt"), "x").unwrap();
        let now = SystemTime::now();
        let names = |of: &str| fs::read_dir(base.join(of)).unwrap().count();
        let clean = |known: &[&str], is_whole: bool, days: u32| {
            let is_known = |name: &str| known.contains(&name);
            store.clean_passes(is_known, |_| is_whole, now + DAY * days);
        };
        // Not while a folder with transcripts is missing: not even a mark is set.
        clean(&[], false, 90);
        assert_eq!(names("claude-gone"), 2);
        clean(&["claude-known"], true, 0);
        assert_eq!((names("claude-gone"), names("claude-known")), (3, 2));
        clean(&["claude-known", "claude-back"], true, 20);
        clean(&["claude-known"], true, 29);
        assert_eq!((names("claude-gone"), names("claude-back")), (3, 3));
        clean(&["claude-known"], true, 31);
        assert!(!base.join("claude-gone").exists());
        assert_eq!(names("claude-known"), 2);
        assert!(base.join("other").exists());
        // What is not ours stays where it is, and behind a link everything.
        assert_eq!(names("claude-mixed"), 2);
        assert_eq!(fs::read_to_string(elsewhere.path().join("1.json")).unwrap(), "precious");
        assert!(base.join("claude-link").exists());
    }
}
